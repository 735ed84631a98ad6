"""Simplification as golden text: one idea a case."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

import pytest

from numbarules.ir.nodes import (
    UNDEFINED,
    Alloc,
    Apply,
    Cast,
    Const,
    For,
    Function,
    If,
    Load,
    Named,
    Operand,
    Raise,
    Region,
    Shape,
    Stmt,
    Store,
    Var,
    While,
    const,
)
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.text import region_text
from numbarules.ir.types import BOOL, FLOAT64, INT64, Array
from numbarules.primitives import Failure
from numbarules.transform.simplify import simplify

VECTOR = Array(FLOAT64, 1, "C")
Case = Callable[[Builder, Var, Var, Var], Operand]


def call(b: Builder, f: object, *args: Operand, t: object = FLOAT64) -> Var:
    return b.one(Apply(Named(f)), args, t)  # type: ignore[arg-type]


def unused_work(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    call(b, operator.mul, x, x)
    return x


def a_store_stays(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    store %a.2, 0, %x.0
    yield %x.0
    """
    b.emit(Store(), [a, const(0), x])
    return x


def integers_fold(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    %v.4: f64 = load %a.2, 5
    yield %v.4
    """
    return b.one(Load(), [a, call(b, operator.add, const(2), const(3), t=INT64)], FLOAT64)


def a_known_branch(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    r = b.names.var(FLOAT64, "r")
    b.add(Stmt(If(), (const(False),), (r,), (b.child().region((), [const(1.0)]), b.child().region((), [x]))))
    return r


def one_value_on_both_sides(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    r, c = b.names.var(FLOAT64, "r"), call(b, operator.lt, x, const(0.0), t=BOOL)
    b.add(Stmt(If(), (c,), (r,), (b.child().region((), [x]), b.child().region((), [x]))))
    return r


def undefined_on_one_side(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    r, c = b.names.var(FLOAT64, "r"), call(b, operator.lt, x, const(0.0), t=BOOL)
    b.add(Stmt(If(), (c,), (r,), (b.child().region((), [x]), b.child().region((), [Const(FLOAT64, UNDEFINED)]))))
    return r


def what_follows_a_check(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    %v.4: bool = operator.lt %n.1, 0
    if %v.4:
        raise
    else:
        yield
    %v.5: f64 = operator.mul %x.0, %x.0
    yield %v.5
    """
    test = call(b, operator.lt, n, const(0), t=BOOL)
    fails, goes_on = b.child(), b.child()
    fails.add(Stmt(Raise(Failure(ValueError, "negative"))))
    y = b.names.var(FLOAT64, "y")
    b.add(Stmt(If(), (test,), (y,), (fails.region((), None), goes_on.region((), [call(goes_on, operator.mul, x, x)]))))
    return y


def an_invariant_loop_value(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    for %n.1 (%k.3: i64):
        store %a.2, %k.3, %x.0
        yield
    yield %x.0
    """
    k, p, inner = b.names.var(INT64, "k"), b.names.var(FLOAT64, "p"), b.child()
    inner.emit(Store(), [a, k, p])
    return b.emit(For(), [n, x], FLOAT64, regions=(inner.region([k, p], [p]),))[0]


def an_affine_loop_value(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    %n: i64 = max %n.1, 0
    %n: i64 = operator.mul %n, 2
    %n: i64 = operator.add 7, %n
    for %n.1 (%k.3: i64):
        %n.8: i64 = operator.mul %k.3, 2
        %n.9: i64 = operator.add 7, %n.8
        store %a.2, %n.9, %x.0
        yield
    %v: f64 = load %a.2, %n
    yield %v
    """
    k, i, inner = b.names.var(INT64, "k"), b.names.var(INT64, "i"), b.child()
    inner.emit(Store(), [a, i, x])
    following = call(inner, operator.add, i, const(2), t=INT64)
    last = b.emit(For(), [n, const(7)], INT64, regions=(inner.region([k, i], [following]),))[0]
    return b.one(Load(), [a, last], FLOAT64)


def a_loop_value_nobody_uses(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    k, p, inner = b.names.var(INT64, "k"), b.names.var(FLOAT64, "p"), b.child()
    b.emit(For(), [n, x], FLOAT64, regions=(inner.region([k, p], [call(inner, operator.mul, p, p)]),))
    return x


def a_while_that_writes_stays(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    while:
        store %a.2, 0, %x.0
        yield False
    yield %x.0
    """
    inner = b.child()
    inner.emit(Store(), [a, const(0), x])
    b.emit(While(), [], regions=(inner.region([], [const(False)]),))
    return x


def an_unused_array(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    yield %x.0
    """
    b.one(Alloc("zeros"), [n], VECTOR)
    return x


def the_shape_of_a_new_array(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    %new: f64[:]C = alloc[zeros] %n.1
    for %n.1 (%k: i64):
        store %new, %k, %x.0
        yield
    yield %x.0
    """
    new = b.one(Alloc("zeros"), [n], VECTOR, "new")
    length = b.one(Shape(0), [new], INT64)
    with_other = call(b, operator.and_, call(b, operator.ne, n, length, t=BOOL), call(b, operator.ne, n, const(1), t=BOOL), t=BOOL)
    check, on = b.child(), b.child()
    check.emit(Raise(Failure(ValueError, "shapes")), [])
    b.add(Stmt(If(), (with_other,), (), (Region((), tuple(check.body), None), on.region())))
    inner = b.child()
    k = b.names.var(INT64, "k")
    inner.emit(Store(), [new, k, x])
    b.emit(For(), [length], regions=(inner.region([k]),))
    return x


def an_index_that_is_stretched_by_nothing(b: Builder, x: Var, n: Var, a: Var) -> Operand:
    """
    for %n.1 (%k: i64):
        store %a.2, %k, %x.0
        yield
    %wide: bool = operator.ne %n.1, 1
    %factor: i64 = cast %wide
    for 7 (%k: i64):
        %i: i64 = operator.mul %k, %factor
        store %a.2, %i, %x.0
        yield
    yield %x.0
    """
    for trips in (n, const(7)):
        wide = b.one(Apply(Named(operator.ne)), [n, const(1)], BOOL, "wide")
        factor = b.one(Cast(), [wide], INT64, "factor")
        inner = b.child()
        k = b.names.var(INT64, "k")
        i = inner.one(Apply(Named(operator.mul)), [k, factor], INT64, "i")
        inner.emit(Store(), [a, i, x])
        b.emit(For(), [trips], regions=(inner.region([k]),))
    return x


CASES = [
    the_shape_of_a_new_array,
    an_index_that_is_stretched_by_nothing,
    unused_work,
    a_store_stays,
    integers_fold,
    a_known_branch,
    one_value_on_both_sides,
    undefined_on_one_side,
    what_follows_a_check,
    an_invariant_loop_value,
    an_affine_loop_value,
    a_loop_value_nobody_uses,
    a_while_that_writes_stays,
    an_unused_array,
]


def unnumbered(text: str) -> list[str]:
    """Lines with the numbers of variables left out, which passes are free to choose."""
    return [re.sub(r"(%[a-z]+)\.\d+", r"\1", line) for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_simplify(case: Case) -> None:
    b = Builder(Names())
    x, n, a = b.names.var(FLOAT64, "x"), b.names.var(INT64, "n"), b.names.var(VECTOR, "a")
    y = case(b, x, n, a)
    found = simplify(Function("f", (), b.region([x, n, a], [y]), FLOAT64), b.names)
    golden = "\n".join(line.removeprefix("    ") for line in (case.__doc__ or "").strip("\n").splitlines() if line.strip())
    assert unnumbered(region_text(found.region)) == unnumbered(golden)
