"""Interpolated values are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import numpy as np
import pytest

from .same_as_numba import C1, E1, F2, S1, Case, call, same_as_numba, sampled, wave


def cases() -> Iterator[Case]:
    xp, fp = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 4.0]), wave(6)
    for x in (np.linspace(-2, 5, 15).reshape(3, 5), xp, 0.25, 9.0, nan, F2):
        yield call(np.interp, x, xp, fp)
    yield call(np.interp, S1, xp.astype(np.float32), fp)
    yield call(np.interp, C1, xp[:1], fp[:1])
    yield call(np.interp, C1, np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0]))
    yield call(np.interp, C1, xp, fp[:3])
    yield call(np.interp, C1, E1, E1)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
