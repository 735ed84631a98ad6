"""Polynomials and their powers are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A1, A2, C1, S1, Case, call, same_as_numba, sampled


def cases() -> Iterator[Case]:
    yield call(np.vander, C1)
    yield call(np.vander, S1, 3)
    yield call(np.vander, A1, 3, True)
    yield call(np.polynomial.polynomial.polyval, 0.3, C1)
    yield call(np.polynomial.polynomial.polyval, A2, C1)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
