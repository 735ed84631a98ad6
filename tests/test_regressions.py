"""Programs that once failed, one for each kind of failure."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import numbarules as nr


def test_blocks_behind_an_if_that_both_ways_raise() -> None:
    """The label of a deleted block was given out again while a later one was in use."""

    @njit
    def f(x, n):
        if n < 0:
            if x < -1.0:
                if x < -2.0:
                    raise ValueError("small")
                else:
                    raise ValueError("negative")
            else:
                raise KeyError("n")
        if x > 100.0:
            return x
        return x * x * n

    gradient = nr.grad(f)
    assert gradient(1.5, 4) == 12.0
    assert gradient(200.0, 4) == 1.0
    for x, error in ((-3.0, ValueError), (-1.5, ValueError), (1.0, KeyError)):
        with pytest.raises(error):
            gradient(x, -1)


def test_quantiles_which_raise_in_nested_branches() -> None:
    gradient = nr.grad(njit(lambda x: np.percentile(x, 25.0)))(np.array([3.0, 1.0, 2.0, 5.0]))
    np.testing.assert_allclose(gradient, [0.0, 0.25, 0.75, 0.0])


def test_a_view_of_the_whole_array_by_an_empty_index() -> None:
    """Numba compiles `a[(...,)]` and `a[()]`, but not `a[...]`, which stood in the generated code."""

    @njit
    def scaled(a):
        b = a[()]
        b[(...,)] *= 2.0
        return b * a[(...,)]

    @njit
    def rows(a):
        for index in np.ndindex(a.shape[:-1]):
            row = a[index]
            row[0] *= row[1]
        return a.sum()

    A = np.array([[1.0, 2.0], [3.0, 5.0]])
    for a in (A[0].copy(), A, np.asfortranarray(A), A[::-1, ::-1]):
        y, pullback = nr.vjp(scaled, a)
        np.testing.assert_allclose(y, 4.0 * a * a)
        np.testing.assert_allclose(pullback(np.ones(a.shape))[0], 8.0 * a)
    np.testing.assert_allclose(nr.grad(rows)(A[1]), [5.0, 4.0])
    np.testing.assert_allclose(nr.grad(rows)(A), [[2.0, 2.0], [5.0, 4.0]])
