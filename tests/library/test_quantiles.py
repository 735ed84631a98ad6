"""Medians and quantiles give what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import numpy as np
import pytest

from .same_as_numba import A2, C1, E1, F3, S1, S2, Case, call, same_as_numba, sampled, wave, with_nans


def cases() -> Iterator[Case]:
    for a in (C1, A2, F3, S2, E1, wave(6)):
        yield call(np.median, a)
    for a in (with_nans(7), np.asfortranarray(with_nans(4, 3)), with_nans(7).astype(np.float32), np.full(7, nan)):
        yield call(np.nanmedian, a)
    for q in (0, 0.3, 50.0, 100, 101.0, np.array([0.0, 20.0, 100.0])):
        yield call(np.percentile, A2, q)
        yield call(np.nanpercentile, with_nans(7), q)
    yield call(np.percentile, with_nans(7), 30.0)
    yield call(np.percentile, S1, 30.0)
    yield call(np.percentile, E1, 50.0)
    for low in (np.array([inf, -inf]), np.array([inf, 1.0]), np.array([inf]), np.array([-inf, -inf, 2.0]), np.array([3.0])):
        yield call(np.percentile, low, np.array([0.0, 100.0]))
    for q in (0.2, 1.2):
        yield call(np.quantile, C1, q)
        yield call(np.nanquantile, C1, q)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
