"""Norms are what Numba gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import inf, nan

import numpy as np
import pytest

from .same_as_numba import A2, C1, C2, E1, E2, F2, S1, Case, call, expanded, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for order in (None, 2, 1, inf, -inf, 0, 3, 0.5, -1.5):
        yield call(np.linalg.norm, C1, order)
    for a in (S1, np.zeros(3), E1, C2, F2, A2, E2, np.array([1e200, 1e200]), np.array([1e-200, 1e-200]), np.array([1.0, nan])):
        yield call(np.linalg.norm, a)
    yield call(np.linalg.norm, S1, 1)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)


def test_norm_of_a_reversed_view_is_right() -> None:
    """Numba's own is wrong for negative strides."""
    reverse = np.arange(1.0, 6.0)[::-1]
    assert expanded(call(np.linalg.norm, reverse))(reverse) == pytest.approx(math.sqrt(55.0))
