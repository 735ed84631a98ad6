"""Functions element by element give what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import numpy as np
import pytest

from .same_as_numba import A2, C1, C2, F2, S1, S2, VIEWS, Case, call, same_as_numba, sampled, wave


def cases() -> Iterator[Case]:
    for a in VIEWS:
        yield call(np.round, a)
    yield call(np.round, A2, 1)
    yield call(np.around, C1, 1, out=wave(7))
    for condition, x, y in (
        (C2 > 0, C2, A2),
        (F2 > 0, F2, F2 + 1),
        (F2 > 0, F2, 0.0),
        (C2 > 0, C2[0], 1.0),
        (C2[:, :1] > 0, C2[0], S2),
        (C1 > 0, 0.0, C1),
        (C1 > 0, 1, C1),
        (C1 > 0, C1[:3], C1),
        (True, 1.0, 2.0),
        (True, C1, 2.0),
        (C1, C1, S1),
    ):
        yield call(np.where, condition, x, y)
    for low, high in (
        (-0.5, 0.5),
        (None, 0.5),
        (-0.5, None),
        (C2[0], 0.9),
        (-0.9, A2),
        (C2 - 1, C2 + A2),
        (None, C2[0]),
        (C2[0], None),
        (None, None),
        (0.9, -0.9),
        (nan, 1.0),
    ):
        yield call(np.clip, A2, low, high)
    yield call("clip", F2, -0.5, 0.5)
    yield call("clip", S2, -0.5, 0.5)
    yield call(np.clip, C1, -0.5, 0.5, wave(7))
    yield call(np.clip, C1, -0.5, 0.5, wave(8))
    yield call(np.nan_to_num, np.array([1.0, nan, inf, -inf]))
    yield call(np.nan_to_num, np.array([[1.0, nan], [inf, -inf]], dtype=np.float32), nan=2.0)
    yield call(np.nan_to_num, inf)
    yield call(np.sinc, np.array([0.0, 1e-9, 1e-3, 0.7, -2.3]))
    yield call(np.sinc, F2)
    yield call(np.sinc, S2)
    yield call(np.sinc, 0.3)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
