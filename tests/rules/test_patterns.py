"""Patterns over Numba types: what they match, and their order."""

from __future__ import annotations

import itertools
import typing

import numba
import numpy as np
import pytest
from numba import types

from numbarules.errors import RuleError
from numbarules.rules.patterns import (
    _NOTHING,
    AbstractArray,
    AbstractMatrix,
    AbstractVector,
    Any,
    Category,
    Literal,
    Number,
    Real,
    Tail,
    Union,
    as_pattern,
    covers,
    literal,
    matches,
    meet,
    more_specific,
    register_category,
    register_type,
    show,
)

f8, f4, i8, c16, flag = types.float64, types.float32, types.int64, types.complex128, types.boolean
vector, matrix = f8[::1], f8[:, ::1]
one = types.literal(1)


class DiagonalType(types.Type):
    """A structured matrix without `ndim`."""

    def __init__(self):
        super().__init__(name="Diagonal")


class SpecialDiagonalType(DiagonalType):
    """A narrower type class."""


class LineType(types.Type):
    """A structured array that knows its number of dimensions."""

    ndim = 1

    def __init__(self):
        super().__init__(name="Line")


class Diagonal:
    """The Python class of DiagonalType."""


class Empty(Category):
    """A category that nobody has joined."""


register_category(AbstractMatrix, DiagonalType)
register_category(AbstractArray, LineType)
register_type(Diagonal, DiagonalType)
D, S, L = DiagonalType(), SpecialDiagonalType(), LineType()


@pytest.mark.parametrize(
    ("written", "yes", "no"),
    [
        (Any, [f8, one, matrix, D, types.none], []),
        (f8, [f8, types.Omitted(0.5)], [f4, i8, vector]),
        (i8, [i8, one, types.Omitted(3)], [f8, types.int32]),
        (vector, [vector], [f8[:], f4[::1], matrix]),
        (types.Float, [f8, f4], [i8, one, vector, c16]),
        (types.Array, [vector, matrix, f8[:, :, :], f8[::1, :]], [f8, D]),
        (Number, [f8, f4, i8, one, c16, flag], [vector, D, types.none]),
        (Real, [f8, f4, i8, one, flag, types.literal(True)], [c16, vector, types.Optional(f8)]),
        (AbstractArray, [vector, matrix, f8[:, :, :], f8[:], c16[:], D, S, L, types.Array(f8, 0, "C")], [f8, types.UniTuple(f8, 2)]),
        (AbstractVector, [vector, f8[:], L, types.Array(f8, 1, "C", readonly=True)], [matrix, D, f8]),
        (AbstractMatrix, [matrix, f8[:, :], f8[::1, :], D, S], [vector, L, f8]),
        (1, [one, types.Omitted(1)], [i8, types.literal(2), types.literal(True)]),
        (True, [types.literal(True), types.Omitted(True)], [one, flag]),
        ("full", [types.literal("full")], [types.literal("same"), types.unicode_type]),
        (None, [types.none, types.Omitted(None)], [i8, types.Optional(i8)]),
        ((types.Integer, None), [i8, one, types.none], [f8]),
        (Diagonal | types.Float, [D, S, f8], [i8]),
        (typing.Optional[int], [i8, types.none], [f8]),  # noqa: UP045 - the old spelling is tested too
        (typing.Literal["L", "U"], [types.literal("L"), types.literal("U")], [types.literal("X")]),
        (Diagonal, [D, S], [matrix]),
        (float, [f8, f4], [i8]),
        (np.float32, [f4], [f8]),
        (np.ndarray, [vector, matrix], [D]),
        (Empty, [], [f8, D]),
    ],
    ids=str,
)
def test_matching(written, yes, no):
    pattern = as_pattern(written)
    assert [t for t in yes if not matches(pattern, t)] == []
    assert [t for t in no if matches(pattern, t)] == []
    assert as_pattern(pattern) == pattern


CHAINS = [
    (literal(1), i8, types.Integer, Real, Number, Any),
    (f8, types.Float, Real, Number, Any),
    (vector, AbstractVector, AbstractArray, Any),
    (matrix, AbstractMatrix, AbstractArray, Any),
    (vector, types.Array, AbstractArray, Any),
    (S, SpecialDiagonalType, DiagonalType, AbstractMatrix, AbstractArray, Any),
    (L, LineType, AbstractArray, Any),
    (f8, as_pattern((f8, i8)), as_pattern((types.Float, types.Integer)), Real),
    (literal(None), as_pattern((None, types.Integer)), as_pattern((None, Real)), Any),
]
INCOMPARABLE = [
    (f8, i8),
    (AbstractVector, AbstractMatrix),
    (types.Array, AbstractMatrix),
    (types.Float, types.Integer),
    (Number, AbstractArray),
    (literal(1), literal(True)),
]
EVERY = sorted({p for chain in CHAINS for p in chain}, key=show)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: " < ".join(map(show, c)))
def test_more_specific(chain):
    for p, q in itertools.combinations(chain, 2):
        assert (more_specific(p, q), more_specific(q, p)) == (True, False), (show(p), show(q))
        assert meet(p, q) == meet(q, p) == p


@pytest.mark.parametrize(("p", "q"), INCOMPARABLE, ids=show)
def test_incomparable(p, q):
    assert not covers(p, q)
    assert not covers(q, p)


def test_the_order_is_a_partial_order_and_agrees_with_matching():
    known = [f8, f4, i8, one, c16, flag, vector, matrix, D, S, L, types.none]
    for p, q in itertools.product(EVERY, repeat=2):
        assert covers(p, p)
        assert p == q or not (covers(p, q) and covers(q, p)), (show(p), show(q))
        if covers(p, q):
            assert all(matches(p, t) for t in known if matches(q, t)), (show(p), show(q))
        m = meet(p, q)
        both = [t for t in known if matches(p, t) and matches(q, t)]
        assert [t for t in known if m is not _NOTHING and matches(m, t)] == both, (show(p), show(q))
    for p, q, r in itertools.product(EVERY, repeat=3):
        assert not (covers(p, q) and covers(q, r)) or covers(p, r), (show(p), show(q), show(r))


def test_meets_that_no_single_pattern_says():
    assert show(meet(types.Array, AbstractMatrix)) == "AbstractMatrix & Array"
    assert matches(meet(types.Array, AbstractMatrix), matrix)
    assert not matches(meet(types.Array, AbstractMatrix), D)
    assert meet(AbstractVector, AbstractMatrix) is _NOTHING
    assert meet(AbstractVector, DiagonalType) is _NOTHING  # known to be a matrix
    assert meet(AbstractVector, LineType) is not _NOTHING
    assert meet(as_pattern((types.Float, types.Integer)), as_pattern((types.Integer, None))) is types.Integer


def test_unions_are_sets_without_what_others_cover():
    assert as_pattern((f8, types.Float)) is types.Float
    assert as_pattern((f8, i8)) == as_pattern((i8, f8))
    assert isinstance(as_pattern((f8, i8)), Union)
    assert show(as_pattern((i8, f8, None))) == "None | float64 | int64"


def test_literals_keep_their_kind():
    assert literal(1) != literal(True)
    assert as_pattern(types.literal(2)) == literal(2) == Literal(2, int)
    assert as_pattern(types.none) == literal(None)
    with pytest.raises(RuleError, match="cannot be a literal"):
        literal(0.5)


def test_categories_are_open_and_refined():
    class Banded(AbstractMatrix):
        pass

    class TridiagonalType(types.Type):
        pass

    assert more_specific(Banded, AbstractMatrix)
    register_category(Banded, TridiagonalType)
    t = TridiagonalType("tri")
    assert matches(Banded, t)
    assert matches(AbstractMatrix, t)
    assert matches(AbstractArray, t)
    assert not matches(AbstractVector, t)
    assert not matches(Banded, matrix)
    assert more_specific(TridiagonalType, Banded)
    register_category(Banded, matrix)
    assert matches(Banded, matrix)
    assert not matches(Banded, f8[:, :])
    assert meet(Banded, AbstractVector) is _NOTHING


@pytest.mark.parametrize("bad", [0.5, object(), set, (), Tail(Real)], ids=["number", "object", "class", "empty", "tail alone"])
def test_what_is_no_pattern_is_refused(bad):
    with pytest.raises(RuleError):
        as_pattern(bad)


def test_a_class_that_numba_does_not_know_is_refused_with_a_way_out():
    class Unknown:
        pass

    with pytest.raises(RuleError, match=r"register_type\(Unknown, ItsNumbaType\)"):
        as_pattern(Unknown)
    with pytest.raises(RuleError, match="registered with a Numba type"):
        register_type(Unknown, Unknown)
    with pytest.raises(RuleError, match="cannot be a member"):
        register_category(AbstractArray, AbstractVector)


def test_a_jitclass_is_its_instance_type():
    @numba.experimental.jitclass([("x", f8)])
    class Box:
        def __init__(self, x):
            self.x = x

    assert matches(as_pattern(Box), Box.class_type.instance_type)
