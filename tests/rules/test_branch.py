"""Rules that decide by value and are registered with `on_unstable="branch"`: both ways compiled, chosen at run time."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload

import numbarules as nr

SMALL, LARGE = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])


@njit
def cube(x):
    return x * x * x


def cube_rule(x):
    if x > 0.5:
        return None
    y = x * x * x

    def cube_pullback(ybar):
        return 300.0 * ybar * x * x  # a hundred times too much: it shows which way was taken

    return y, cube_pullback


@njit
def use_cube(x):
    return cube(x) + x


@njit
def iterate(x):
    for _ in range(3):
        x = 0.9 * cube(x)
    return x


def test_the_choice_is_made_at_run_time():
    with nr.rule_scope():
        nr.rrule(cube, on_unstable="branch")(cube_rule)
        assert not nr.no_rrule(cube, types.float64)
        gradient = nr.grad(use_cube)
        assert gradient(1.0) == pytest.approx(4.0)
        assert gradient(0.2) == pytest.approx(13.0)
        assert len(gradient.signatures) == 1
        factors, x = 1.0, 0.9
        for _ in range(3):  # two steps by the method, then one by the rule
            factors *= 2.7 * x * x * (100.0 if x <= 0.5 else 1.0)
            x = 0.9 * x**3
        value, slope = nr.value_and_grad(iterate)(0.9)
        assert value == pytest.approx(x)
        assert slope == pytest.approx(factors)


def test_it_is_an_error_by_default():
    with nr.rule_scope():
        nr.rrule(cube)(cube_rule)
        with pytest.raises(nr.UnstableRuleError, match=r"line .* returns None, line .* returns the pullback `cube_pullback`"):
            nr.grad(use_cube)(1.0)


@njit
def square(x):
    return x * x


@njit
def overwritten(x):
    y = square(x)
    y[0] = y[1] * y[0]
    return np.sum(y * x)


def square_rule(x: nr.AbstractVector):
    if np.sum(x) > 5.0:
        return None
    y = x * x
    view = x[:]

    def square_pullback(ybar):
        return ybar * (2.0 * view + 0.0 * y)

    return y, square_pullback


def test_arrays_that_share_memory_and_are_overwritten_later():
    with nr.rule_scope():
        nr.rrule(square, on_unstable="branch")(square_rule)
        gradient = nr.grad(overwritten)
        for v in (SMALL, LARGE, SMALL):
            h = 1e-6
            differences = [(overwritten(v + h * e) - overwritten(v - h * e)) / (2 * h) for e in np.eye(3)]
            np.testing.assert_allclose(gradient(v), differences, rtol=1e-6)
            _, pullback = nr.vjp(overwritten, v)
            np.testing.assert_allclose(pullback(1.0)[0], differences, rtol=1e-6)
            np.testing.assert_allclose(pullback(2.0)[0], 2.0 * np.array(differences), rtol=1e-6)


@njit
def parts(x, k):
    return x * x, k * x


@njit
def use_parts(x, k):
    a, b = parts(x, k)
    return a + b * k


def test_several_results_several_ways_out_and_an_early_return():
    with nr.rule_scope():

        @nr.rrule(parts, on_unstable="branch")
        def _(x, k):
            for i in range(3):
                if x < i - 1.0:
                    return None
            if k > 10.0:
                return None

            def parts_pullback(ybar):
                return 70.0 * x * ybar[0] + k * ybar[1], x * ybar[1]

            return (x * x, k * x), parts_pullback

        gradient = nr.grad(use_parts, argnums=(0, 1))
        assert gradient(2.0, 3.0) == (149.0, 12.0)
        assert gradient(0.5, 3.0) == (10.0, 3.0)  # x < 1: by the method
        assert gradient(2.0, 20.0) == (404.0, 80.0)


def test_where_the_types_decide_no_branch_is_left():
    with nr.rule_scope():

        @nr.rrule(square, on_unstable="branch")
        def _(x: nr.AbstractVector):
            if nr.is_a(x, types.float64[::1]):
                return None
            return x * x, lambda ybar: ybar

        assert nr.no_rrule(square, types.float64[::1])
        np.testing.assert_allclose(nr.grad(overwritten)(SMALL), [0.0012, 0.1204, 0.27])


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Widened:
    factors: np.ndarray


def squared(A):
    raise NotImplementedError


@overload(squared)
def _squared(A):
    return lambda A: Widened(A.factors * A.factors)


@njit
def use_squared(x):
    return np.sum(squared(Widened(1.0 * x)).factors * x)


def test_structs_on_both_sides():
    with nr.rule_scope():

        @nr.rrule(squared, on_unstable="branch")
        def _(A: Widened):
            if A.factors[0] > 0.5:
                return None

            def squared_pullback(ybar):
                return Widened(20.0 * ybar.factors * A.factors)  # ten times too much: it shows which way was taken

            return Widened(A.factors * A.factors), squared_pullback

        gradient = nr.grad(use_squared)
        np.testing.assert_allclose(gradient(LARGE), 3.0 * LARGE**2)
        np.testing.assert_allclose(gradient(SMALL), 21.0 * SMALL**2)


@njit
def scan(x):
    y = np.zeros(3)
    for k in range(3):
        for i in range(3):
            y[i] += cube(x[i] * (k + 1)) * y[i - 1] + x[i]
            x = x * 1.01
    return np.sum(y)


def test_what_is_kept_is_recorded_in_nested_loops():
    with nr.rule_scope():

        @nr.rrule(cube, on_unstable="branch")
        def _(x):
            z = np.full(2, x)
            if x > 0.5:
                return None

            def cube_pullback(ybar):
                return 1.5 * ybar * (z[0] * z[0] + z[1] * z[1])

            return x * x * x, cube_pullback

        _, pullback = nr.vjp(scan, SMALL)
        h = 1e-6
        differences = [(scan(SMALL + h * e) - scan(SMALL - h * e)) / (2 * h) for e in np.eye(3)]
        for scale in (1.0, 2.0):
            np.testing.assert_allclose(pullback(scale)[0], scale * np.array(differences), rtol=1e-6)
