"""Convolutions and correlations are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A1, C1, E1, S1, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    for mode in ("valid", "full", "same", "else"):
        for a, v in ((C1, C1[:3]), (C1[:2], A1)):
            yield call(np.correlate, a, v, mode)
            yield call(np.convolve, a, v, mode)
    yield call(np.convolve, S1, C1)
    yield call(np.convolve, E1, C1)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
