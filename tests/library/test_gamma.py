"""The digamma and polygamma functions against mpmath."""

from __future__ import annotations

import math
from math import nan

import mpmath as mp
import pytest

from numbarules.library.gamma import digamma, polygamma


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("x", [1e-3, 0.2, 1.3, 9.9, 50.0, 1e5, -0.4, -3.3, -50.7])
def test_polygamma_against_mpmath(n, x):
    assert polygamma(n, x) == pytest.approx(float(mp.polygamma(n, x)), rel=1e-12)
    assert digamma(x) == pytest.approx(float(mp.digamma(x)), rel=1e-12, abs=1e-14)


def test_digamma_at_the_poles_and_beyond():
    assert all(math.isnan(digamma(x)) for x in (0.0, -1.0, -7.0, nan))
    assert digamma(1e300) == pytest.approx(math.log(1e300))
    assert all(math.isnan(polygamma(1, x)) for x in (0.0, -2.0, -1e5, nan))
