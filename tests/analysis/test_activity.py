"""What is active: one way for a derivative to pass, or not to, a case."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import pytest

from numbarules.analysis.activity import activity_of
from numbarules.analysis.alias import aliases_of
from numbarules.ir.nodes import AddTo, Apply, Cast, For, If, Load, Named, Operand, Stmt, Store, Var, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, INT64, Array

VECTOR = Array(FLOAT64, 1, "C")
Case = Callable[[Builder, Var, Var, Var], tuple[Operand, dict[str, Operand]]]


def call(b: Builder, f: object, *args: Operand) -> Var:
    return b.one(Apply(Named(f)), args, FLOAT64)


def a_chain(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    y = call(b, math.sin, x)
    return call(b, operator.mul, y, c), {"active": y, "inactive": c}


def not_used(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    y = call(b, math.sin, x)
    return x, {"active": x, "inactive": y}


def not_varied(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    y = call(b, math.sin, c)
    return call(b, operator.mul, x, y), {"active": x, "inactive": y}


def through_memory(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    b.emit(Store(), [a, const(0), x])
    y = b.one(Load(), [a, const(1)], FLOAT64)
    return y, {"active": y, "inactive": c}


def added_to_memory(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    b.emit(AddTo(), [a, const(0), x])
    return b.one(Load(), [a, const(1)], FLOAT64), {"active": a, "inactive": c}


def stored_and_never_read(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    b.emit(Store(), [a, const(0), x])
    return x, {"active": x, "inactive": a}


def through_an_integer(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    i = b.one(Cast(), [x], INT64)
    y = b.one(Cast(), [i], FLOAT64)
    return call(b, operator.add, x, y), {"active": x, "inactive": y}


def through_one_side_of_a_branch(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    r = b.names.var(FLOAT64, "r")
    test = b.one(Apply(Named(operator.lt)), [c, const(0.0)], BOOL)
    b.add(Stmt(If(), (test,), (r,), (b.child().region((), [x]), b.child().region((), [c]))))
    return r, {"active": r, "inactive": c}


def around_a_loop(b: Builder, x: Var, c: Var, a: Var) -> tuple[Operand, dict[str, Operand]]:
    """p and q are swapped: what starts in q comes out in p."""
    p, q = (b.names.var(FLOAT64, n) for n in "pq")
    inner = b.child()
    first, _ = b.emit(For(), [const(3), c, x], FLOAT64, FLOAT64, regions=(inner.region([b.names.var(INT64, "k"), p, q], [q, p]),))
    return first, {"active": q, "inactive": c}


CASES = [
    a_chain,
    not_used,
    not_varied,
    through_memory,
    added_to_memory,
    stored_and_never_read,
    through_an_integer,
    through_one_side_of_a_branch,
    around_a_loop,
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_activity(case: Case) -> None:
    b = Builder(Names())
    x, c, a = b.names.var(FLOAT64, "x"), b.names.var(FLOAT64, "c"), b.names.var(VECTOR, "a")
    y, asked = case(b, x, c, a)
    region = b.region([x, c, a], [y])
    active = activity_of(region, aliases_of(region), [x], [y], lambda stmt: True)
    assert active(asked["active"])
    assert not active(asked["inactive"])
