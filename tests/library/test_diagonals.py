"""Diagonals and triangles are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A2, A3, C1, C2, F2, S2, Case, call, same_as_numba, sampled, strided, wave


def cases() -> Iterator[Case]:
    for k in (0, 1, -2):
        for a in (C1, F2, A3):
            yield call(np.tril, a, k)
            yield call(np.triu, a, k)
        yield call(np.diag, C1, k)
        yield call(np.diag, A2, k)
    yield call(np.diag, A2, 9)
    yield call(np.diagflat, A2)
    yield call(np.fill_diagonal, wave(6, 3), 2.5)
    yield call(np.fill_diagonal, wave(6, 3), 2.5, True)
    yield call(np.fill_diagonal, strided(3, 3, 3), C1[:2])
    yield call(np.fill_diagonal, wave(3, 3, 2), 1.0)
    yield call(np.trace, A2)
    yield call(np.trace, C2, -1)
    yield call(np.trace, S2, 5)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
