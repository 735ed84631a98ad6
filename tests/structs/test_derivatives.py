"""Derivatives of structs: arguments, results, made in loops, under rules for arrays (whose cotangents are projected) and their own."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.extending import overload
from small_structs import D, Diag, Outer, V, W

import numbarules as nr


@nr.struct()
class Sparse:
    data: nr.AbstractVector
    places: nr.AbstractVector
    n: int
    scale: float


def diag_times(d: Any, scale: float) -> Any:
    return Diag(d * scale)


@overload(diag_times)
def _diag_times(d, scale):
    return lambda d, scale: Diag(d * scale)


@njit
def energy(A, x):
    w = A @ x
    return (w * w).sum()


def check_energy() -> None:
    """A gradient made anew has the right value and derivatives."""
    fresh = njit(energy.py_func)
    value, (diag, x) = nr.value_and_grad(fresh, argnums=(0, 1))(D, V)
    assert type(diag) is Diag
    assert value == pytest.approx(W @ W)
    np.testing.assert_allclose(diag.diag, 2 * W * V)
    np.testing.assert_allclose(x, 2 * W * D.diag)


def test_a_rule_for_arrays_is_projected() -> None:
    check_energy()  # the library's rule for a matrix times a vector adds into a dense shadow


def test_an_opted_out_method_is_differentiated() -> None:
    with nr.rule_scope():
        nr.opt_out(operator.matmul, Diag, nr.AbstractVector)
        check_energy()


def test_dense_and_structured_cotangents_of_a_rule() -> None:
    with nr.rule_scope():

        @nr.rrule(operator.matmul)
        def dense_rule(A: Diag, x: nr.AbstractVector):
            y = A.diag * x

            def dense_pullback(ybar):
                return np.outer(ybar, x), A.diag * ybar

            return y, dense_pullback

        check_energy()
    with nr.rule_scope():

        @nr.rrule(operator.matmul)
        def structured_rule(A: Diag, x: nr.AbstractVector):
            y = A.diag * x

            def structured_pullback(ybar):
                return Diag(ybar * x), A.diag * ybar

            return y, structured_pullback

        check_energy()


def test_the_projection_is_the_adjoint_of_what_a_struct_stands_for() -> None:
    rng = np.random.default_rng(0)
    u, v, x = rng.normal(size=3), rng.normal(size=4), rng.normal(size=4)
    found = nr.grad(njit(energy.py_func))(Outer(u, v), x)
    w = u * (v @ x)  # the rule's dense cotangent is 2 w x^T: G v and G^T u of it
    np.testing.assert_allclose(found.u, 2 * w * (x @ v))
    np.testing.assert_allclose(found.v, 2 * x * (w @ u))


def test_fields_without_derivative_are_kept() -> None:
    @njit
    def f(S, v):
        T = Sparse(S.data * S.scale, S.places, S.n, S.scale)
        total = 0.0
        for i in range(T.n):
            total += T.data[T.places[i]] ** 2
        return total * v

    S = Sparse(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2]), 3, 2.0)
    expected, scale = [2 * 4 * 1.5, 0.0, 2 * 3 * 2 * 4 * 1.5], 2 * 2 * 1.5 * (1 + 18)
    _, pullback = nr.vjp(f, S, 1.5)

    @njit
    def inside(S):
        _, pullback = nr.vjp(f, S, 1.5)
        return pullback(1.0)[0]

    for found in (nr.grad(f)(S, 1.5), pullback(1.0)[0], inside(S)):
        assert type(found) is Sparse
        np.testing.assert_allclose(found.data, expected)
        np.testing.assert_array_equal(found.places, S.places)
        assert not np.shares_memory(found.places, S.places)
        assert (found.n, found.scale) == (3, pytest.approx(scale))


def test_structs_in_loops_indexed_and_returned() -> None:
    @njit
    def f(A, s):
        B = A
        for i in range(3):
            B = Diag(B.diag * s)
            if s > 10.0:
                B = A
        return B[0, 0] * B[1, 1] + B[0, 1] + B.shape[0]

    value, (diag, s) = nr.value_and_grad(f, argnums=(0, 1))(D, 0.5)
    assert value == pytest.approx(2.0 / 64 + 3)
    np.testing.assert_allclose(diag.diag, [2.0 / 64, 1.0 / 64, 0.0])
    assert s == pytest.approx(2.0 * 6 * 0.5**5)

    @njit
    def pair(d, s):
        return Diag(d * s), s

    (y, _), pullback = nr.vjp(pair, V, 2.0)
    np.testing.assert_allclose(y.diag, 2 * V)
    d, s = pullback((Diag(np.ones(3)), 0.5))
    np.testing.assert_allclose(d, [2.0, 2.0, 2.0])
    assert s == pytest.approx(V.sum() + 0.5)
    with pytest.raises(nr.DifferentiationError, match="a `Diag`, as the value is"):
        pullback((V, 0.5))


def test_a_rule_of_a_constructor_gets_a_struct() -> None:
    with nr.rule_scope():

        @nr.rrule(diag_times)
        def diag_times_rule(d: nr.AbstractVector, s: nr.Real):
            y = Diag(d * s)

            def diag_times_pullback(ybar):
                return ybar.diag * s, np.sum(ybar.diag * d)

            return y, diag_times_pullback

        @njit
        def f(d, s):
            total = 0.0
            for _ in range(2):
                total += energy(diag_times(d, s), V)
            return total

        value, (d, s) = nr.value_and_grad(f, argnums=(0, 1))(D.diag, 2.0)
    assert value == pytest.approx(8 * W @ W)
    np.testing.assert_allclose(d, 16 * W * V)
    assert s == pytest.approx(8 * W @ W)


def test_a_rule_for_arrays_with_a_structured_value_is_refused() -> None:
    with nr.rule_scope():

        @nr.rrule(operator.mul)
        def scaled_rule(A: nr.AbstractMatrix, c: nr.Number):
            y = A * c

            def scaled_pullback(ybar):
                return ybar * c, np.sum(ybar * A)

            return y, scaled_pullback

        @njit
        def f(A):
            return energy(A * 2.0, V)

        with pytest.raises(nr.RuleError, match="is used for Diag, and the call returns a struct too"):
            nr.grad(f)(D)
        nr.opt_out(operator.mul, Diag, nr.Number)
        np.testing.assert_allclose(nr.grad(njit(f.py_func))(D).diag, 8 * W * V)


KNOWN = Diag(V + 0.5)


@njit
def of_a_global(x, own):
    d = Diag(x) if own else KNOWN
    return np.sum(KNOWN.diag * d.diag * x)


def test_a_struct_may_be_a_global() -> None:
    for own, power in ((True, 2.0), (False, 1.0)):
        value, gradient = nr.value_and_grad(of_a_global)(V, own)
        assert np.isclose(value, of_a_global(V, own))
        base = V if own else KNOWN.diag
        np.testing.assert_allclose(gradient, power * KNOWN.diag * base, rtol=1e-14)
