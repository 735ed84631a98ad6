"""Sorting gives what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A2, C1, F3, S2, Case, call, same_as_numba, sampled, strided, wave


def cases() -> Iterator[Case]:
    for a in (C1, A2, F3, S2):
        yield call(np.sort, a)
    yield call("sort", strided(4, 3))
    yield call("sort", wave(6))


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
