"""`project_to`, in Python and in jitted code, against the tangent spaces written out by hand."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.extending import overload_attribute, overload_method
from small_structs import D, Diag, Outer, V, W

import numbarules as nr

Pair = namedtuple("Pair", "a b")
G23, G33 = np.arange(6.0).reshape(2, 3), np.arange(9.0).reshape(3, 3)


@njit
def jitted(x, dx):
    return nr.project_to(x)(dx)


def python(x: Any, dx: Any) -> Any:
    return nr.project_to(x)(dx)


def same(a: Any, b: Any) -> bool:
    if isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.flags.f_contiguous == b.flags.f_contiguous and np.array_equal(a, b)
    if isinstance(b, tuple):
        return type(a) is type(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


CASES = {
    "the imaginary part is dropped": (1.0, 2.0 + 3.0j, 2.0),
    "but not for a complex primal": (1j, 2.0, 2.0 + 0j),
    "precision": (np.ones(2, np.float32), np.array([1.0 + 2j, 3.0]), np.array([1.0, 3.0], np.float32)),
    "order": (np.ones((3, 2)).T, G23, np.asfortranarray(G23)),
    "strided arrays": (np.ones(4)[::2], np.arange(4.0)[::2], np.array([0.0, 2.0])),
    "tuples": ((1.0, np.ones(2)), (2, np.ones(2)), (2.0, np.ones(2))),
    "named tuples, and integers have no tangent": (Pair(1.0, 2), Pair(3.0, 4), Pair(3.0, None)),
    "nothing stays nothing": (np.ones(2), None, None),
    "a dense cotangent of a diagonal": (D, G33, Diag(np.array([0.0, 4.0, 8.0]))),
    "one of its kind": (D, Diag(V), Diag(V)),
    "what is not linear in its fields": (
        Outer(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])),
        G23,
        Outer(G23 @ np.array([3.0, 4.0, 5.0]), G23.T @ np.array([1.0, 2.0])),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_projections(case: str) -> None:
    x, dx, expected = CASES[case]
    assert same(python(x, dx), expected)
    assert same(jitted(x, dx), expected)


@pytest.mark.parametrize("project", [python, jitted])
def test_what_is_no_cotangent(project: Any) -> None:
    with pytest.raises(ValueError, match="has the shape of its primal"):
        project(np.ones(2), np.ones(3))
    for x, dx in ((1.0, np.ones(2)), (D, np.ones(3)), ((1.0, 2.0), (1.0,))):
        with pytest.raises(nr.DifferentiationError, match="belongs to no value of this type"):
            project(x, dx)


def test_a_projector_keeps_what_it_needs() -> None:
    assert nr.project_to(np.ones((2, 3))).kept == (2, 3)
    assert nr.project_to(1.0).kept == ()
    assert nr.project_to((1.0, np.ones(4))).kept == ((), (4,))


def times(A: Any, x: Any) -> Any:
    return A @ x


def test_projectors_in_a_rule_in_a_loop() -> None:
    jitted_times = njit(times)
    with nr.rule_scope():

        @nr.rrule(jitted_times)
        def times_rule(A: Diag, x: nr.AbstractVector):
            project_A, project_x = nr.project_to(A), nr.project_to(x)

            def times_pullback(ybar):
                return project_A(np.outer(ybar, x)), project_x(A.diag * ybar)

            return A.diag * x, times_pullback

        @njit
        def f(A, x):
            total = 0.0
            for _ in range(3):
                w = jitted_times(A, x)
                total += (w * w).sum()
            return total

        diag, x = nr.grad(f, argnums=(0, 1))(D, V)
    np.testing.assert_allclose(diag.diag, 6 * W * V)
    np.testing.assert_allclose(x, 6 * W * D.diag)


@njit
def stored(x):
    return x * x


@nr.struct(category=nr.AbstractVector, ndim=1)
class Squares:
    """A vector whose elements are the squares of what is stored, by a function that may get a rule."""

    roots: nr.AbstractVector


SquaresType: Any = Squares.__numbarules_struct__.type_class  # type: ignore[attr-defined]
overload_attribute(SquaresType, "shape")(lambda a: lambda a: a.roots.shape)


@overload_method(SquaresType, "to_dense")
def _to_dense(a):
    def to_dense(a):
        out = np.empty(a.roots.shape[0])
        for i in range(out.shape[0]):
            out[i] = stored(a.roots[i])
        return out

    return to_dense


def test_jitted_code_that_projects_follows_the_rules() -> None:
    """Without a warning that it cannot: every caller is compiled again, those that came when Numba had the code already too."""
    x, dx = Squares(np.array([1.0, 2.0])), np.array([3.0, 4.0])

    @njit
    def one(x, dx):
        return nr.project_to(x)(dx).roots

    @njit
    def another(x, dx):
        return 10.0 * nr.project_to(x)(dx).roots

    def found() -> list[list[float]]:
        return [f(x, dx).tolist() for f in (one, another)] + [nr.project_to(x)(dx).roots.tolist()]

    right = [[6.0, 16.0], [60.0, 160.0], [6.0, 16.0]]
    assert found() == right
    with nr.rule_scope():

        @nr.rrule(stored)
        def seven(x: nr.Real):
            def seven_pullback(ybar):
                return 7.0 * ybar

            return x * x, seven_pullback

        assert found() == [[21.0, 28.0], [210.0, 280.0], [21.0, 28.0]]
    assert found() == right
