"""Views with axes turned round or inserted give what Numba gives, and share memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba import typeof

from numbarules.library.expansions import lookup_expansion
from numbarules.testing import check_gradient

from .same_as_numba import A1, A2, A3, C2, C3, F2, Case, Literal, call, copied, expanded, label, same_as_numba, sampled, wave


def cases() -> Iterator[Case]:
    for a in (A1, F2, A3):
        yield call(np.flip, a)
        for axis in range(-a.ndim - 1, a.ndim + 1):
            yield call(np.expand_dims, a, Literal(axis))
        yield call(np.atleast_1d, a)
        yield call(np.atleast_2d, a)
        yield call(np.flipud, a)
    yield call(np.fliplr, F2)
    for a in (C2, F2, A2):
        yield call(np.rot90, a)
        for k in (-1, 0, 1, 2, 3, 5):
            yield call(np.rot90, a, Literal(k))
    yield call(np.fliplr, C3)


CASES = list(cases())


@pytest.mark.parametrize("case", sampled(CASES))
def test_same_as_numba(case: Case) -> None:
    same_as_numba(case)


def test_views_are_views() -> None:
    for case in CASES:
        x = copied(case.args[0])
        assert np.shares_memory(expanded(case)(x, *case.args[1:]), x), label(case)


def test_derivatives_see_what_is_written_through_views() -> None:
    def f(x, turns):
        row = np.expand_dims(x, 0)
        row[0, 0, 1] = x[1, 2] * x[0, 0]
        flipped = x.T
        flipped[2, 0] *= x[1, 1]
        left, computed = np.rot90(x), np.rot90(x, turns)
        left[0, 0] = computed[1, 1] * left[2, 1]
        np.atleast_2d(x[0])[0, 2] *= 3.0
        return x * x

    for turns in (0, 3):
        assert check_gradient(f, wave(2, 3), turns).error < 1e-9


def test_views_by_numbers_that_are_not_written_are_not_covered() -> None:
    for key, args in ((np.expand_dims, (C2, 0)), (np.rot90, (C2, 1))):
        assert lookup_expansion(key, tuple(map(typeof, args))) is None
