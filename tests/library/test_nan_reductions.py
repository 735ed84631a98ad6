"""Reductions without NaNs give what Numba gives; sums to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import numpy as np
import pytest

from .same_as_numba import Case, call, same_as_numba, sampled, with_nans


def cases() -> Iterator[Case]:
    for a in (with_nans(7), np.asfortranarray(with_nans(4, 3)), with_nans(7).astype(np.float32), np.full(7, nan)):
        for f in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd):
            yield call(f, a)
    yield call(np.nanvar, with_nans(7), ddof=1)
    yield call(np.nanstd, with_nans(7), ddof=7)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case, exact=case.key is np.nansum)
