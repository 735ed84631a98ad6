"""Implementations for one's own types: found by Python, by jitted code and by the table of rules, most specific first."""

# mypy: ignore-errors

from __future__ import annotations

import doctest
import operator

import numba
import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core.errors import TypingError

import numbarules as nr
from numbarules.rules.table import table


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Scaling:
    d: np.ndarray


@nr.specialized(operator.matmul)
def scale(A: Scaling, v: nr.AbstractVector):
    return A.d * v


@nr.specialized(operator.matmul)
def scale_left(v: nr.AbstractVector, A: Scaling):
    return v * A.d


@nr.specialized(operator.mul)
def scaled(A: Scaling, c: nr.Number):
    return Scaling(A.d * c)


@nr.specialized(operator.mul)
def scaled_left(c: nr.Number, A: Scaling):
    return Scaling(c * A.d)


@nr.specialized(operator.neg)
def negative(A: Scaling):
    return Scaling(-A.d)


@nr.specialized(operator.getitem)
def element(A: Scaling, index: tuple):
    i, j = index
    return A.d[i] if i == j else 0 * A.d[i]


@nr.specialized(np.linalg.solve, method="solve")
def solve(A: Scaling, b: nr.AbstractVector):
    return b / A.d


@nr.specialized((Scaling, "T"), attribute=True)
def transposed(A):
    return A


@nr.specialized((Scaling, "doubled"))
def doubled(A):
    return Scaling(A.d + A.d)


A, x = Scaling(np.array([1.0, 2.0, 4.0])), np.array([3.0, 4.0, 5.0])


def everything(A, x):
    B = A
    B *= 2.0
    return A @ x, x @ A, A.T.d, (2.0 * A).d, B.d, (-A).d, np.linalg.solve(A, x), A.solve(x), A.doubled().d, A[1, 1], A[0, 1]


def test_python_and_jitted_code_find_the_implementations() -> None:
    d = A.d
    expected = (d * x, d * x, d, 2 * d, 2 * d, -d, x / d, x / d, 2 * d, 2.0, 0.0)
    for f in (everything, njit(everything)):
        for found, wanted in zip(f(A, x), expected, strict=True):
            assert np.array_equal(found, wanted)


def test_methods_take_keywords_in_jitted_code() -> None:
    assert njit(lambda A, x: A.solve(b=x))(A, x).tolist() == (x / A.d).tolist()


def test_numpy_scalars_and_arrays_on_the_left_give_way() -> None:
    assert np.float64(2.0) * A == Scaling(2 * A.d)
    assert np.matmul(x, A).tolist() == (x * A.d).tolist()


def test_what_has_no_implementation_stays_without() -> None:
    for attempt in (lambda: np.trace(A), lambda: A @ "text", lambda: A + A, lambda: np.sum(A, axis=0), lambda: np.add.reduce(A)):
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(TypingError, match="No implementation of function"):
        njit(lambda A: np.linalg.det(A))(A)
    assert njit(lambda A: np.linalg.det(A))(np.eye(2)) == 1.0, "others' types are as they were"


def test_each_implementation_is_one_opt_out() -> None:
    mine = [e for e in table.entries() if e.payload in (scale, scale_left, solve, transposed, doubled)]
    assert [e.kind for e in mine] == ["opt_out"] * 5
    t, v = typeof(A), types.float64[::1]
    assert nr.no_rrule(operator.matmul, t, v) and nr.no_rrule(np.linalg.solve, t, v)
    assert table.lookup(np.linalg.solve, (types.float64[:, ::1], v)).entry.kind == "rule", "others' types keep their rules"
    assert not any(e in p.entries for p in nr.check_table() for e in mine)


def test_a_later_implementation_serves_what_is_compiled_later() -> None:
    @nr.struct()
    class Late:
        x: np.ndarray

    value = Late(x)
    with pytest.raises(TypingError):
        njit(lambda a: np.sum(a))(value)

    @nr.specialized(np.sum, method="sum")
    def general(a: Late):
        return np.sum(a.x)

    assert njit(lambda a: np.sum(a))(value) == njit(lambda a: a.sum())(value) == value.sum() == 12.0

    @nr.specialized(np.sum, method="sum")
    def special(a: typeof(value)):
        return 2.0 * np.sum(a.x)

    assert njit(lambda a: np.sum(a))(value) == njit(lambda a: a.sum())(value) == np.sum(value) == 24.0
    assert njit(lambda a: np.sum(a))(Late(x[::2])) == np.sum(Late(x[::2])) == 8.0


def test_ties_and_wrong_registrations_are_errors() -> None:
    before = len(table.entries())
    with pytest.raises(nr.AmbiguousRuleError):

        @nr.specialized(operator.matmul)
        def tie(A: nr.AbstractArray, v: (Scaling, types.Array)):
            return v

    with pytest.raises(nr.AmbiguousRuleError):

        @nr.specialized(operator.matmul)
        def again(A: Scaling, v: nr.AbstractVector):
            return v

    with pytest.raises(nr.RuleError, match="a jitted function has its own code"):
        nr.specialized(njit(lambda x: x))

    with pytest.raises(nr.RuleError, match="parameters of the same names"):

        @nr.specialized(np.linalg.solve, method="solve")
        def other_names(A: Scaling, right: nr.AbstractMatrix):
            return right

    assert len(table.entries()) == before


def test_the_docstring_example_runs() -> None:
    (example,) = doctest.DocTestFinder().find(nr.specialized, "specialized", globs={"numba": numba})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("pattern", [nr.Any, nr.AbstractArray, types.float64[::1], types.Array, nr.Real, (types.int64, nr.AbstractVector)])
def test_an_implementation_for_other_peoples_types_alone_is_refused(pattern):
    def total(x):
        return 0.0

    total.__annotations__ = {"x": pattern}
    before = len(table.entries())
    for function in (np.sum, np.exp, abs):
        with pytest.raises(nr.RuleError, match=r"no argument is of a type of your own\n  File .*test_specialized.py"):
            nr.specialized(function)(total)
    with pytest.raises(nr.RuleError, match="no argument is of a type of your own"):
        nr.specialized((np.ndarray, "total"))(total)
    assert len(table.entries()) == before


def test_an_implementation_of_ones_own_function_may_be_for_any_type():
    def halved(x):
        raise NotImplementedError

    with nr.rule_scope():

        @nr.specialized(halved)
        def halved_reals(x: nr.Real):
            return 0.5 * x

        assert njit(lambda x: halved(x))(3.0) == 1.5
