"""Products of vectors are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba.np import extensions

from .same_as_numba import A1, A2, C1, C2, F2, S1, Case, call, same_as_numba, sampled, wave


def cases() -> Iterator[Case]:
    for f in (np.dot, np.vdot):
        yield call(f, C1, A1)
        yield call(f, S1, S1)
    yield call("dot", C1, C1)
    yield call(np.dot, C1, C1[:3])
    yield call(np.outer, C1, A2)
    yield call(np.outer, 2.0, C1)
    yield call(np.kron, C1, C1[:2])
    yield call(np.kron, C2, F2)
    for a, b in ((C1[:3], C1[3:6]), (C2, C1[:3]), (A2, C2[:, :2]), (C2[0], C2), (wave(2, 4, 3), C2), (C2[:, :2], C2[:, :2]), (C1, C1)):
        yield call(np.cross, a, b)
    for a, b in ((C1[:2], C1[2:4]), (C2[:, :2], A2[:, :2]), (C2[:, :2], C1[:2]), (C1, C1)):
        yield call(extensions.cross2d, a, b)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
