"""Extremes give what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import numpy as np
import pytest

from .same_as_numba import A2, C1, E1, F3, S2, VIEWS, Case, call, same_as_numba, sampled, with_nans


def cases() -> Iterator[Case]:
    for f in (np.max, np.min):
        for a in (*VIEWS, E1):
            yield call(f, a)
    yield call("max", C1)
    yield call("min", C1)
    for a in (with_nans(7), np.asfortranarray(with_nans(4, 3)), with_nans(7).astype(np.float32), np.full(7, nan)):
        for f in (np.nanmax, np.nanmin, np.max, np.min, np.ptp):
            yield call(f, a)
    for a in (C1, A2, F3, S2, E1):
        yield call(np.ptp, a)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
