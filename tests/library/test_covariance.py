"""Covariances and correlation coefficients are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A1, A2, C2, F2, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    yield call(np.cov, C2)
    yield call(np.cov, A1)
    yield call(np.cov, F2, rowvar=False, ddof=2)
    yield call(np.cov, C2, bias=True)
    yield call(np.cov, C2[:1])
    yield call(np.corrcoef, A2)
    yield call(np.corrcoef, C2, rowvar=False)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
