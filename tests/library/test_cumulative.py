"""Running sums and products give what Numba gives; sums to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import numpy as np
import pytest

from .same_as_numba import C1, E1, F2, VIEWS, Case, call, same_as_numba, sampled, with_nans


def cases() -> Iterator[Case]:
    for f in (np.cumsum, np.cumprod):
        for a in (*VIEWS, E1):
            yield call(f, a)
    for name in ("cumsum", "cumprod"):
        yield call(name, C1)
    for axis in (0, 1, -1, 2, -3):
        yield call(np.cumsum, F2, axis)
    for a in (with_nans(7), np.asfortranarray(with_nans(4, 3)), with_nans(7).astype(np.float32), np.full(7, nan)):
        for f in (np.nancumsum, np.nancumprod):
            yield call(f, a)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case, exact=case.key is np.cumsum)
