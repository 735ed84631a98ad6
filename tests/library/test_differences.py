"""Differences and the trapezoidal rule give what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A2, C1, C2, C3, E1, S1, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for n in (0, 1, 2, 9, -1):
        yield call(np.diff, C2, n)
    yield call(np.diff, C1)
    yield call(np.diff, C3)
    yield call(np.ediff1d, C2)
    yield call(np.ediff1d, C1, 5.0, C2)
    yield call(np.ediff1d, E1, 1.0)
    if hasattr(np, "trapezoid"):
        yield call(np.trapezoid, C1)
        yield call(np.trapezoid, S1)
        yield call(np.trapezoid, A2, dx=0.5)
        yield call(np.trapezoid, C1, C1 * C1)
        yield call(np.trapezoid, A2, C1[:3])


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
