"""Arrays made of numbers are what Numba gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from .same_as_numba import A2, F2, Case, call, same_as_numba, sampled, strided


def cases() -> Iterator[Case]:
    yield call("fill", strided(3, 2), 1.5)
    yield call(np.full, 3, 1.5)
    yield call(np.full, (2, 3), 1.5)
    yield call(np.full_like, F2, 1.5)
    yield call(np.full_like, A2, 1.5)
    for num in (0, 1, 2, 5):
        yield call(np.linspace, 0.3, 2.7, num)
    yield call(np.linspace, 0, 2.7)
    yield call(np.logspace, 0.3, 0.7, 4)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)
