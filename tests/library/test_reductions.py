"""Reductions give what Numba gives; sums and products to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A2, ALL, C1, C2, C3, E1, E2, F3, S2, VIEWS, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for a in ALL:
        yield call(np.sum, a)
    for f in (np.prod, np.mean, np.var, np.std):
        for a in VIEWS:
            yield call(f, a)
    for f in (np.prod, np.mean):
        yield call(f, E1)
    for name in ("sum", "prod", "mean", "var", "std"):
        yield call(name, C1)
    for axis in (0, 1, -1, 2, -3):
        yield call(np.sum, A2, axis)
        yield call(np.sum, C3, axis=axis)
    yield call("sum", F3, 1)
    yield call(np.sum, S2, axis=0)
    yield call(np.sum, S2, dtype=np.dtype(np.float64))
    yield call(np.sum, C1, 0)
    yield call(np.sum, C1, 1)
    yield call(np.sum, E2, 0)
    for axes in ((0, 2), (-1,), (0, 1, 2), (0, 0)):
        yield call(np.sum, C3, axes)
    yield call(np.average, C1)
    yield call(np.average, C2, weights=np.abs(C2))
    yield call(np.average, C1, weights=np.zeros(7))


CASES = list(cases())

EXACT = (np.sum, np.mean, np.var, np.prod, "sum", "mean")


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case, exact=case.key in EXACT)
