"""What a struct lacks for rules of its category is said in one short error."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numba import njit, typeof, types

import numbarules as nr
from numbarules.testing import check_opt_out


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Householder:
    v: nr.AbstractVector


@nr.specialized(operator.matmul)
def reflect(H: Householder, x: nr.AbstractVector):
    return x - 2.0 * H.v * np.dot(H.v, x)


@nr.struct(category=nr.AbstractVector, ndim=1)
class Steps:
    n: int
    d: float


@nr.specialized((Steps, "shape"), attribute=True)
def steps_shape(s: Steps):
    return (s.n,)


@nr.specialized((Steps, "to_dense"))
def steps_to_dense(s: Steps):
    return s.d * np.arange(s.n)


H, X = Householder(np.array([0.6, 0.8])), np.array([1.0, 2.0])
T, V = typeof(H), types.float64[::1]


def check(error, *wanted):
    text = str(error.value)
    assert len(text.splitlines()) <= 7
    for part in wanted:
        assert part in text


def test_a_struct_without_a_dense_form_is_named_and_what_to_write():
    lacks = "Found: Householder has no `shape` and no `to_dense`"
    with pytest.raises(nr.RuleError) as error:
        nr.no_rrule(operator.matmul, V, T)
    check(error, "the rule operator.matmul(AbstractVector, AbstractMatrix) cannot serve", lacks)
    check(error, '@numbarules.specialized((Householder, "shape"), attribute=True)', '@numbarules.specialized((Householder, "to_dense"))')
    check(error, "numbarules.opt_out(operator.matmul, AbstractVector, Householder)")
    with pytest.raises(nr.RuleError) as error:
        check_opt_out(operator.matmul, H, X)
    check(error, lacks)


@njit
def dotted(x, s):
    return np.sum(x * s.to_dense())


def test_a_struct_that_a_pullback_reads_by_element():
    with nr.rule_scope():

        @nr.rrule(dotted)
        def dotted_rule(x: nr.AbstractVector, s: nr.AbstractVector):
            def dotted_pullback(ybar):
                return np.array([ybar * s[i] for i in range(s.shape[0])]), None

            return np.sum(x * s.to_dense()), dotted_pullback

        def f(x, s):
            return dotted(x, s)

        with pytest.raises(nr.RuleError) as error:
            nr.grad(f)(X, Steps(2, 1.0))
    check(error, "the pullback `dotted_pullback` of the rule", "dotted(AbstractVector, AbstractVector) cannot serve", "getitem(Steps(")


def test_a_dense_form_that_comes_later_serves():
    @nr.struct(category=nr.AbstractVector, ndim=1)
    class Late:
        c: float

    late = typeof(Late(2.0))
    with pytest.raises(nr.RuleError, match="Late has no `shape` and no `to_dense`"):
        nr.no_rrule(np.dot, V, late)

    @nr.specialized((Late, "shape"), attribute=True)
    def shape(s: Late):
        return (2,)

    with pytest.raises(nr.RuleError, match="Late has no `to_dense`"):
        nr.no_rrule(np.dot, V, late)

    @nr.specialized((Late, "to_dense"))
    def to_dense(s: Late):
        return np.full(2, s.c)

    assert not nr.no_rrule(np.dot, V, late)


@pytest.mark.parametrize("asked", [Householder, float, np.ndarray, "float64", 1.0, object()])
def test_no_rrule_refuses_what_is_not_one_type(asked):
    with pytest.raises(nr.RuleError, match=r"is not one Numba type[^@]*numba\.typeof\(value\)"):
        nr.no_rrule(operator.matmul, asked, V)


def test_no_rrule_takes_what_stands_for_one_type():
    assert not nr.no_rrule(abs, np.float64)
    assert not nr.no_rrule(abs, np.float32)
    with nr.rule_scope():

        @nr.rrule(dotted)
        def dotted_rule(x: nr.AbstractVector, s):
            return np.sum(x), lambda ybar: (None, None)

        nr.opt_out(dotted, nr.AbstractVector, None)
        nr.opt_out(dotted, nr.AbstractVector, nr.literal(0))
        assert nr.no_rrule(dotted, V, None)
        assert nr.no_rrule(dotted, V, nr.literal(0))
        assert not nr.no_rrule(dotted, V, nr.literal(1))
