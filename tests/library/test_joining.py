"""Joined and stacked arrays are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A1, A2, A3, C1, C2, C3, F2, F3, S1, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for axis in (0, 1, -1, 2):
        yield call(np.concatenate, (C2, A2), axis)
        yield call(np.stack, (C2, A2, F2), axis)
        yield call(np.concatenate, (F3, F3, F3), axis)
    yield call(np.concatenate, (C1, A1, S1))
    yield call(np.concatenate, (C2, C2[:, :2]))
    yield call(np.stack, (F2, F2), 3)
    yield call(np.stack, (C1, A1))
    yield call(np.stack, (C1, C1[:3]))
    yield call(np.stack, (np.array(1.0), np.array(2.0)))
    for arrays in ((C1, A1), (C2, A2), (F2, F2), (C3, A3)):
        for f in (np.hstack, np.vstack, np.dstack):
            if f is not np.dstack or arrays[0].ndim > 1:
                yield call(f, arrays)
    yield call(np.column_stack, (C1, A1))
    yield call(np.column_stack, (A2[:, 0], C2, C1[:4]))
    yield call(np.column_stack, (C1, C2))
    yield call(np.append, C2, A1)
    yield call(np.append, C1, 3.0)
    yield call(np.append, C2, A2, 1)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
