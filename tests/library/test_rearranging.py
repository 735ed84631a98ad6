"""`np.roll`, `np.repeat` and `np.take` give what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A1, A2, A3, C1, C3, F2, I1, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for a in (A1, F2, A3):
        yield call(np.roll, a, 2)
        yield call(np.roll, a, -1)
        yield call(np.repeat, a, 2)
    yield call(np.repeat, C1, np.arange(7))
    yield call(np.repeat, C1, np.arange(6))
    yield call("repeat", C1, 0)
    yield call(np.repeat, C1, -1)
    for index in (2, -7, 12, I1, I1.reshape(2, 2), np.array([0, 99])):
        yield call(np.take, A2, index)
    yield call("take", C1, I1)
    yield call(np.take, C3, I1[:3] % 2, 1)
    yield call(np.take, C3, I1[:2], -1)
    yield call(np.take, A2, 1, 0)
    yield call(np.take, A2, I1, 2)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
