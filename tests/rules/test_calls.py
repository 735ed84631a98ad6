"""What a rule may be for: keywords, defaults, methods, attributes, constructors; and which entries are never used."""

from __future__ import annotations

import operator
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, typeof, types, vectorize
from numba.extending import overload, overload_attribute, overload_method

import numbarules as nr
from numbarules.compile.keywords import positional
from numbarules.ir.nodes import Var, const
from numbarules.ir.types import FLOAT64, Array

V = np.array([1.0, 2.0, 3.0])
M = np.array([[1.0, 2.0], [3.0, 4.0]])


def scaled(x, y=2.0, *, z=3.0):
    return x * y * z


@overload(scaled)
def _scaled(x, y=2.0, z=3.0):
    return lambda x, y=2.0, z=3.0: x * y * z


@njit
def by_default(x, y):
    return scaled(x)


@njit
def by_position(x, y):
    return scaled(x, y)


@njit
def over_one(x, y):
    return scaled(x, z=y)


@njit
def out_of_order(x, y):
    return scaled(z=y, y=1.5, x=x)


@pytest.mark.parametrize(
    ("f", "expected"), [(by_default, (60.0, 0.0)), (by_position, (90.0, 6.0)), (over_one, (60.0, 4.0)), (out_of_order, (45.0, 3.0))]
)
def test_keywords_stand_in_their_places_and_defaults_are_constants(f, expected):
    with nr.rule_scope():

        @nr.rrule(scaled)
        def _(x, y=2.0, z=3.0):
            def scaled_pullback(ybar):
                return 10.0 * ybar * y * z, ybar * x * z, ybar * x * y  # ten times the first: it shows that the rule was used

            return x * y * z, scaled_pullback

        assert nr.grad(f, argnums=(0, 1))(2.0, 3.0) == expected


def reduced(x, axis=None):
    raise NotImplementedError


@overload(reduced)
def _reduced(x, axis=None):
    return lambda x, axis=None: x[0, 0]


@njit
def first(x):
    return reduced(x, axis=0)


@njit
def second(x):
    return reduced(x, 1)


@njit
def by_none(x):
    return reduced(x, axis=None)


@njit
def omitted(x):
    return reduced(x)


def test_literal_patterns_choose_by_axis():
    with nr.rule_scope():

        @nr.rrule(reduced)
        def _(x: nr.AbstractMatrix, axis: nr.literal(0)):
            return x[0, 0], lambda ybar: (np.full(x.shape, 7.0), None)

        @nr.rrule(reduced)
        def _(x: nr.AbstractMatrix, axis: nr.literal(None) = None):
            return x[0, 0], lambda ybar: (np.full(x.shape, 9.0), None)

        assert [nr.grad(f)(M)[1, 1] for f in (first, second, by_none, omitted)] == [7.0, 0.0, 9.0, 9.0]


def test_keywords_of_methods_and_numpy_functions_have_places():
    x, zero = Var("x", Array(FLOAT64, 2)), const(0)
    assert positional(np.sum, [x], {"axis": zero}) == [x, zero]
    assert positional((types.Array, "sum"), [x], {"axis": zero}) == [x, zero]
    filled = positional((types.Array, "std"), [x], {"ddof": zero})
    assert filled is not None
    assert [filled[0], filled[-1]] == [x, zero]
    assert [a.value for a in filled[1:-1]] == [None, None, None]  # axis, dtype, out
    assert positional(len, [], {"obj": x}) is None
    assert positional((types.Array, "no_such_method"), [x], {"axis": zero}) is None


@pytest.mark.parametrize("spelling", ["Array.sum", np.ndarray.sum, (np.ndarray, "sum"), (types.Array, "sum")])
def test_spellings_of_a_method(spelling):
    with nr.rule_scope():

        @nr.rrule(spelling)
        def sum_rule(x: nr.AbstractMatrix, axis: nr.literal(0)):
            return np.sum(x, axis=0), lambda ybar: (np.full(x.shape, 7.0), None)

        assert not nr.no_rrule("Array.sum", types.float64[:, ::1], types.literal(0))
    y, pullback = sum_rule(M, 0)  # plain Python
    np.testing.assert_allclose(y, [4.0, 6.0])
    np.testing.assert_allclose(pullback(y)[0], 7.0)


class Doubled:
    """Its constructor makes an array, in jitted code."""


@overload(Doubled)
def _doubled(x):
    return lambda x: 2.0 * x


@vectorize
def cubed(x):
    return x * x * x


@njit
def of_operator(x):
    return np.sum(x + x)


@njit
def of_ufunc(x):
    return np.sum(np.sin(x))


@njit
def of_own_ufunc(x):
    return np.sum(cubed(x))


@njit
def of_constructor(x):
    return np.sum(Doubled(x))


@pytest.mark.parametrize(
    ("key", "arity", "f"), [(operator.add, 2, of_operator), (np.sin, 1, of_ufunc), (cubed, 1, of_own_ufunc), (Doubled, 1, of_constructor)]
)
def test_operators_ufuncs_and_constructors(key, arity, f):
    with nr.rule_scope():
        if arity == 1:

            @nr.rrule(key)
            def _(x: nr.AbstractVector):
                return 2.0 * x, lambda ybar: 7.0 * ybar

        else:

            @nr.rrule(key)
            def _(x: nr.AbstractVector, y: nr.AbstractVector):
                return x + y, lambda ybar: (3.0 * ybar, 4.0 * ybar)

        np.testing.assert_allclose(nr.grad(f)(V), 7.0)


@njit
def swap(x):
    return x * 2.0, x * 3.0


@njit
def use_both(x):
    a, b = swap(x)
    return np.sum(a) + np.sum(b)


@njit
def use_first(x):
    a, _ = swap(x)
    return np.sum(a)


def test_several_results_and_those_without_a_cotangent():
    with nr.rule_scope():

        @nr.rrule(swap)
        def _(x: nr.AbstractVector):
            def swap_pullback(ybar):
                abar, bbar = ybar
                xbar = np.zeros(x.shape)
                if abar is not None:
                    xbar += 7.0 * abar
                if bbar is not None:
                    xbar += 50.0 * bbar
                return xbar

            return (2.0 * x, 3.0 * x), swap_pullback

        np.testing.assert_allclose(nr.grad(use_both)(V), 57.0)
        np.testing.assert_allclose(nr.grad(use_first)(V), 7.0)


# Structs


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Stretch:
    factors: np.ndarray

    def trace(self):
        return np.sum(self.factors)

    @property
    def inverses(self):
        return 1.0 / self.factors

    def __new__(cls, factors):
        made = object.__new__(cls)
        object.__setattr__(made, "factors", factors)
        return made


StretchType = type(typeof(Stretch(V)))


@overload(Stretch)
def _stretch(factors):
    make = Stretch.__numbarules_struct__.make
    return lambda factors: make(1.0 * factors)


@overload_method(StretchType, "trace")
def _trace(self):
    return lambda self: np.sum(self.factors)


@overload_attribute(StretchType, "inverses")
def _inverses(self):
    return lambda self: 1.0 / self.factors


@overload(operator.matmul)
def _stretched(A, v):
    if isinstance(A, StretchType):
        return lambda A, v: A.factors * v


@njit
def of_method(x):
    return Stretch(x).trace()


@njit
def of_attribute(x):
    return np.sum(Stretch(x).inverses)


@njit
def of_operator_on_struct(x):
    return np.sum(Stretch(x) @ x)


@pytest.mark.parametrize("spelling", ["Stretch.trace", Stretch.trace])
def test_a_method_of_a_struct(spelling):
    with nr.rule_scope():

        @nr.rrule(spelling)
        def trace_rule(A):
            return np.sum(A.factors), lambda ybar: Stretch(np.full(A.factors.shape, 7.0 * ybar))

        np.testing.assert_allclose(nr.grad(of_method)(V), 7.0)
    assert trace_rule(Stretch(V))[0] == 6.0  # plain Python


@pytest.mark.parametrize("spelling", [(Stretch, "inverses"), Stretch.inverses])
def test_an_attribute_of_a_struct(spelling):
    with nr.rule_scope():

        @nr.rrule(spelling)
        def _(A: Stretch):
            return 1.0 / A.factors, lambda ybar: Stretch(7.0 * ybar)

        np.testing.assert_allclose(nr.grad(of_attribute)(V), 7.0)
    np.testing.assert_allclose(nr.grad(of_attribute)(V), -1.0 / V**2)


def test_a_constructor_with_code_of_its_own_may_have_a_rule():
    with nr.rule_scope():

        @nr.rrule(Stretch)
        def _(factors: nr.AbstractVector):
            return Stretch(1.0 * factors), lambda ybar: 7.0 * ybar.factors

        np.testing.assert_allclose(nr.grad(of_method)(V), 7.0)


def test_a_whole_type_is_opted_out_without_ambiguities():
    with nr.rule_scope():

        @nr.rrule(operator.matmul, replace=True)
        def _(A: nr.AbstractMatrix, v: nr.AbstractVector):
            return np.zeros(v.shape), lambda ybar: (None, None)

        before = [p for p in nr.check_table() if p.kind == "ambiguous"]
        nr.opt_out(nr.Any, Stretch)
        np.testing.assert_allclose(nr.grad(of_operator_on_struct)(V), 2.0 * V)  # sum(x * x)
        assert [p for p in nr.check_table() if p.kind == "ambiguous"] == before
        assert [str(o).partition(",")[0] for o in nr.opted_out() if o.function is nr.Any] == ["Any(StretchType)"]


# Calls that no rule can stand for


@njit
def clear(x):
    x[0] = 10.0
    return x[1]


@njit
def part(x):
    return x[1:]


def tail(x):
    raise NotImplementedError


@overload(tail)
def _tail(x):
    return lambda x: x[1:]


@njit
def of_tail(x):
    return np.sum(tail(x))


@njit
def of_clear(x):
    z = x.copy()
    return clear(z)


@njit
def of_part(x):
    return np.sum(part(x))


@njit
def of_ravel(x):
    return np.sum(np.ravel(x))


@njit
def of_in_place(x):
    z = np.zeros(3)
    z += x
    return np.sum(z)


@pytest.mark.parametrize(
    ("key", "arity", "f", "text"),
    [
        (clear, 1, of_clear, "writes into an argument"),
        (part, 1, of_part, "may return memory of an argument"),
        (tail, 1, of_tail, "may return memory of an argument"),
        (np.ravel, 1, of_ravel, "may return a view"),
        (operator.iadd, 2, of_in_place, "writes into an argument"),
    ],
)
def test_stores_and_views_have_no_rules(key, arity, f, text):
    with nr.rule_scope():
        if arity == 1:

            @nr.rrule(key)
            def _(x: nr.AbstractArray):
                return x[1], lambda ybar: np.full_like(x, ybar)

        else:

            @nr.rrule(key)
            def _(x, y):
                return x + y, lambda ybar: (ybar, ybar)

        with pytest.raises(nr.RuleError, match=text):
            nr.grad(f)(V)


# Entries that are never used


@pytest.mark.parametrize("key", ["Array.T", np.ndarray.T])
def test_a_rule_for_a_primitive_of_the_engine_is_reported(key):
    with nr.rule_scope():
        with pytest.warns(UserWarning, match="primitive of the engine"):

            @nr.rrule(key)
            def _(x: nr.AbstractMatrix):
                return x.T.copy(), lambda ybar: ybar.T

        (problem,) = [p for p in nr.check_table() if p.kind == "unreachable"]
        assert "primitive of the engine" in problem.text


@nr.struct()
class Pair:
    left: float
    right: float


class Named(NamedTuple):
    left: float


@pytest.mark.parametrize("key", ["Pair.left", Pair, Named, np.zeros, range])
def test_fields_plain_constructors_and_allocations_are_primitives_too(key):
    with nr.rule_scope(), pytest.warns(UserWarning, match="primitive of the engine"):

        @nr.rrule(key)
        def _(*args):
            return args[0], lambda ybar: (ybar,)


def test_indexing_by_integers_is_a_primitive_for_arrays_only():
    with nr.rule_scope():
        with pytest.warns(UserWarning, match="for NumPy arrays"):

            @nr.rrule(operator.getitem)
            def _(x: nr.AbstractVector, i: types.Integer):
                return x[i], lambda ybar: (None, None)

        assert not [p for p in nr.check_table() if p.kind == "unreachable"]  # a struct may be indexed


def test_a_rule_for_what_numba_inlines_is_reported():
    @njit(inline="always")
    def inlined(x):
        return 2.0 * x

    with nr.rule_scope():
        with pytest.warns(UserWarning, match="Numba inlines"):

            @nr.rrule(inlined)
            def _(x):
                return x, lambda ybar: ybar

        assert [p.kind for p in nr.check_table() if "inlined" in p.text and p.kind != "no sample points"] == ["unreachable"]


# Cotangents that a rule does not give


@njit
def powered(x, p):
    return x**p


@njit
def use_powered(x, p):
    return np.sum(powered(x, p))


def test_what_is_not_implemented_is_refused_only_where_it_is_needed():
    with nr.rule_scope():

        @nr.rrule(powered)
        def powered_rule(x: nr.AbstractVector, p):
            def powered_pullback(ybar):
                return ybar * p * x ** (p - 1.0), nr.not_implemented("needs a logarithm")

            return x**p, powered_pullback

        np.testing.assert_allclose(nr.grad(use_powered)(V, 3.0), 3.0 * V**2)
        with pytest.raises(nr.UnsupportedError, match="needs a logarithm") as caught:
            nr.grad(use_powered, argnums=1)(V, 3.0)
        assert "powered_rule" in str(caught.value)
        assert "`p`" in str(caught.value)
        assert f'File "{__file__}", line {use_powered.py_func.__code__.co_firstlineno + 2}' in str(caught.value)
        _, missing = powered_rule(V, 3.0)[1](V)  # plain Python
        assert missing == nr.not_implemented("needs a logarithm")


def test_a_pullback_that_adds_into_shadows_says_it_where_it_would_add():
    with nr.rule_scope():

        @nr.rrule(operator.mul)
        def _(x: nr.AbstractVector, y: nr.AbstractVector):
            def mul_pullback(ybar, xbar, sbar):
                if xbar is not None:
                    xbar += ybar * y
                if sbar is not None:
                    nr.not_implemented("one-sided")

            return x * y, mul_pullback

        @njit
        def f(x, y):
            return np.sum(x * y)

        np.testing.assert_allclose(nr.grad(f)(V, 2.0 * V), 2.0 * V)
        with pytest.raises(nr.UnsupportedError, match="one-sided"):
            nr.grad(f, argnums=1)(V, V)


class WithConstructor:
    def __new__(cls, x):
        raise NotImplementedError


@nr.struct()
class Inheriting(WithConstructor):
    x: np.ndarray


def test_a_constructor_may_be_inherited():
    with nr.rule_scope(), warnings.catch_warnings():
        warnings.simplefilter("error")  # it is called as it is, so that its rules are asked
        nr.rrule(Inheriting)(lambda x: None)
