"""`vjp`: the value and a pullback that can be called later, again, and from jitted code."""

from __future__ import annotations

import math
import resource

import numpy as np
import pytest
from numba import njit

import numbarules as nr


@njit
def waves(x, b, n):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = math.sin(x[i]) * b * n
    return y, b * b


@njit
def weighted(x, b, n, rounds):
    total = 0.0
    for k in range(rounds):
        (y, _), pullback = nr.vjp(waves, x, b, n)
        first = pullback((y, 1.0))
        second = pullback((2.0 * y, 0.0))
        total += first[1] + second[1]
    return first[0], second[0], total


X = np.array([0.1, 0.2, 0.7])


def test_in_jitted_code_a_pullback_is_called_twice():
    first, second, total = weighted(X, 2.0, 3, 3)
    y = 6.0 * np.sin(X)
    np.testing.assert_allclose(first, y * np.cos(X) * 6.0, rtol=1e-14)
    np.testing.assert_allclose(second, 2.0 * first, rtol=1e-14)
    np.testing.assert_allclose(total, 3 * (3.0 * np.sum(y * np.sin(X) * 3.0) + 4.0), rtol=1e-14)


def test_in_jitted_code_the_record_goes_with_the_pullback():
    weighted(X, 2.0, 3, 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    weighted(np.linspace(0.0, 1.0, 100), 2.0, 3, 200_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10


def test_from_python_the_arguments_may_change_meanwhile():
    x = X.copy()
    (y, _), pullback = nr.vjp(waves, x, 2.0, 3)
    x[:] = 0.0
    for _ in range(2):
        xbar, bbar, nbar = pullback((np.ones(3), 0.0))
        np.testing.assert_allclose(xbar, 6.0 * np.cos(X), rtol=1e-14)
        np.testing.assert_allclose(bbar, 3.0 * np.sum(np.sin(X)), rtol=1e-14)
        assert nbar is None
    np.testing.assert_allclose(y, 6.0 * np.sin(X), rtol=1e-15)


def test_a_result_that_is_the_argument_itself():
    @njit
    def same(x):
        return x, x[::2]

    (whole, _), pullback = nr.vjp(same, X)
    assert not np.shares_memory(whole, X)
    for _ in range(2):
        (xbar,) = pullback((np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])))
        np.testing.assert_array_equal(xbar, [11.0, 2.0, 23.0])


def test_a_function_that_draws_is_differentiated_at_the_draw_of_its_value():
    @njit
    def noisy(x):
        return x * np.random.random()

    y, pullback = nr.vjp(noisy, 2.0)
    assert pullback(1.0) == pullback(1.0) == (y / 2.0,)


@njit
def fall(x, n, trace):
    trace[0] += x * n
    if n < 2:
        return x
    return fall(x, n - 1, trace) * 0.5 + math.sin(fall(x, n - 2, trace))


def test_recursion_is_restored_for_the_second_call():
    @njit
    def top(x):
        trace = np.zeros(1)
        y = fall(x, 6, trace)
        return y + trace[0] * trace[0]

    _, pullback = nr.vjp(top, 0.7)
    h = 1e-6
    expected = (top(0.7 + h) - top(0.7 - h)) / (2 * h)
    assert pullback(1.0) == pullback(1.0)
    assert pullback(1.0)[0] == pytest.approx(expected, rel=1e-8)


def test_of_a_lambda():
    y, pullback = nr.vjp(lambda x: x * x, 3.0)
    assert (y, pullback(1.0)) == (9.0, (6.0,))
