"""Which accesses of a loop are told apart: one situation a case."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from numbarules.analysis.rows import rows_of
from numbarules.ir.nodes import AddTo, Apply, For, Load, Named, Operand, Store, Var, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import FLOAT64, INT64, Array

# accesses in the inner loop (over `j`) of a loop over `i`: (is a store, index on each axis, wraps); `u` and `i` stand outside
Access = tuple[bool, tuple[Operand, ...], bool]
Make = Callable[[Builder, Var, Var, Var], list[Access]]


def above_and_below(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (plus(b, i, 1), j), False), (False, (plus(b, i, -1), j), False), (False, (plus(b, i, 1), plus(b, j, 1)), False)]


def columns(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (j, const(0)), False), (False, (j, const(1)), False)]


def only_read(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(False, (plus(b, i, 1), j), False), (False, (i, j), False)]


def same_row(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (i, j), False), (False, (i, plus(b, j, 1)), False)]


def unrelated_rows(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (i, j), False), (False, (n, j), False)]


def from_the_end(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (i, j), False), (False, (plus(b, i, -1), j), True)]


def moving(b: Builder, n: Var, i: Var, j: Var) -> list[Access]:
    return [(True, (plus(b, j, 1), i), False), (False, (j, i), False)]


def plus(b: Builder, x: Var, k: int) -> Var:
    return b.one(Apply(Named(operator.add)), [x, const(k)], INT64)


CASES: list[tuple[Make, str, list[int | None]]] = [
    (above_and_below, "C", [0, 1, 0]),
    (above_and_below, "F", [0, 1, 0]),
    (above_and_below, "A", [None, None, None]),  # a stride may be zero
    (columns, "C", [0, 1]),
    (only_read, "C", [None, None]),
    (same_row, "C", [None, None]),
    (unrelated_rows, "C", [None, None]),
    (from_the_end, "C", [None, None]),
    (moving, "C", [None, None]),
]


@pytest.mark.parametrize(("make", "layout", "expected"), CASES)
def test_rows(make: Make, layout: str, expected: list[int | None]) -> None:
    names = Names()
    u, n = names.var(Array(FLOAT64, 2, layout), "u"), names.var(INT64, "n")
    i, j = names.var(INT64, "i"), names.var(INT64, "j")
    b = Builder(names, None)
    outer = b.child()
    inner = outer.child()
    found = []
    for store, index, wrap in make(inner, n, i, j):
        if store:
            inner.emit(Store(wrap), [u, *index, const(1.0)])
        else:
            inner.one(Load(wrap), [u, *index], FLOAT64)
        found.append(inner.body[-1])
    outer.emit(For(), [n], regions=(inner.region([j]),))
    loop = outer.body[-1]
    b.emit(For(), [n], regions=(outer.region([i]),))
    rows = rows_of(b.region())
    got = [rows.accesses.get(id(s)) for s in found]
    assert [None if r is None else r.index for r in got] == expected
    assert {r for r in got if r is not None} == set(rows.loops.get(id(loop), ()))
    assert len({r.group for r in got if r is not None}) <= 1


def test_rows_are_separate_only_while_the_inner_loop_runs() -> None:
    names = Names()
    u, n, i = names.var(Array(FLOAT64, 2, "C"), "u"), names.var(INT64, "n"), names.var(INT64, "i")
    b = Builder(names, None)
    body = b.child()
    body.emit(AddTo(False), [u, i, const(0), const(1.0)])
    body.emit(AddTo(False), [u, plus(body, i, 1), const(0), const(1.0)])
    inner = body.child()
    body.emit(For(), [n], regions=(inner.region([names.var(INT64, "j")]),))
    b.emit(For(), [n], regions=(body.region([i]),))
    assert rows_of(b.region()).accesses == {}
