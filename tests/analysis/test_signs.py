"""Which indices lose their wraparound: one situation a case."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from numbarules.analysis.signs import LARGEST_STEP, unwrap
from numbarules.ir.nodes import Apply, Const, For, Get, If, Load, Named, Operand, Put, Shape, Slab, Stmt, Var, While, const, walk
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, INT64, POINTER, Array

# given a builder, an array's length, an integer of any sign and a condition: an index into the array
Make = Callable[[Builder, Operand, Operand, Operand], Operand]


def plus(b: Builder, x: Operand, y: Operand) -> Var:
    return b.one(Apply(Named(operator.add)), [x, y], INT64, "sum")


def carried(b: Builder, n: Operand, start: Operand, step: Callable[[Builder, Var, Var], Operand]) -> Var:
    """What `for k in range(n): i = step(i, k)` leaves in `i`."""
    k, i, result = (b.names.var(INT64, name) for name in ("k", "i", "last"))
    inner = b.child()
    inner_yield = step(inner, i, k)
    b.add(Stmt(For(), (n, start), (result,), (inner.region((k, i), (inner_yield,)),)))
    return result


def chosen(b: Builder, condition: Operand, one: Operand, other: Operand) -> Var:
    result = b.names.var(INT64, "chosen")
    b.add(Stmt(If(), (condition,), (result,), (b.child().region((), (one,)), b.child().region((), (other,)))))
    return result


def written_down(b: Builder, n: Operand, values: list[Operand]) -> Var:
    """What is read back after `values` were written into a slab, which itself was written into another one."""
    record, slab, outer, back = (b.names.var(POINTER, name) for name in ("record", "slab", "outer", "back"))
    b.add(Stmt(Slab(INT64), (record, n), (slab,)))
    b.add(Stmt(Slab(POINTER), (record, const(1)), (outer,)))
    for j, value in enumerate(values):
        b.add(Stmt(Put(), (slab, const(j), value)))
    b.add(Stmt(Put(("slab", slab)), (outer, const(0), slab)))
    b.add(Stmt(Get(("slab", slab)), (outer, const(0)), (back,)))
    return b.one(Get(), [back, const(0)], INT64, "value")


NATURAL: dict[str, Make] = {
    "counts up": lambda b, n, i, c: carried(b, n, const(0), lambda b, x, k: plus(b, x, const(1))),
    "grows by a counter": lambda b, n, i, c: carried(b, n, n, lambda b, x, k: plus(b, k, x)),
    "grows in an inner loop": lambda b, n, i, c: carried(
        b, n, n, lambda b, x, k: carried(b, k, x, lambda b, y, _: plus(b, y, const(1)))
    ),
    "grows sometimes": lambda b, n, i, c: carried(b, n, n, lambda b, x, k: chosen(b, c, x, plus(b, x, const(1)))),
    "at least 0": lambda b, n, i, c: b.one(Apply(Named(max)), [i, const(0)], INT64, "n"),
    "either of two": lambda b, n, i, c: chosen(b, c, n, const(0)),
    "written down": lambda b, n, i, c: written_down(b, n, [n, const(0)]),
}

OTHERS: dict[str, Make] = {
    "any": lambda b, n, i, c: i,
    "counts down": lambda b, n, i, c: carried(b, n, n, lambda b, x, k: plus(b, x, const(-1))),
    "starts below": lambda b, n, i, c: carried(b, n, i, lambda b, x, k: plus(b, x, const(1))),
    "grows by any": lambda b, n, i, c: carried(b, n, n, lambda b, x, k: plus(b, x, i)),
    "falls sometimes": lambda b, n, i, c: carried(b, n, n, lambda b, x, k: chosen(b, c, plus(b, x, i), plus(b, x, const(1)))),
    "multiplies itself": lambda b, n, i, c: carried(
        b, n, const(1), lambda b, x, k: b.one(Apply(Named(operator.mul)), [x, const(31)], INT64, "hash")
    ),
    "doubles": lambda b, n, i, c: carried(b, n, const(1), lambda b, x, k: plus(b, x, x)),
    "grows by itself in an inner loop": lambda b, n, i, c: carried(
        b, n, n, lambda b, x, k: carried(b, k, x, lambda b, y, _: plus(b, y, x))
    ),
    "grows by too much": lambda b, n, i, c: carried(b, n, const(0), lambda b, x, k: plus(b, x, const(LARGEST_STEP + 1))),
    "one of two": lambda b, n, i, c: chosen(b, c, n, i),
    "at most n": lambda b, n, i, c: b.one(Apply(Named(min)), [i, n], INT64, "n"),
    "one of two written down": lambda b, n, i, c: written_down(b, n, [n, i]),
    "never written down": lambda b, n, i, c: b.one(Get(), [b.names.var(POINTER, "slab"), const(0)], INT64, "value"),
}


@pytest.mark.parametrize("case", [*NATURAL, *OTHERS])
def test_wraparound_is_taken_off_what_cannot_be_negative(case: str) -> None:
    assert unwrapped((NATURAL | OTHERS)[case]) == (case in NATURAL)


def test_what_a_while_loop_carries_is_an_index_inside_it() -> None:
    for step, natural in ((const(1), True), (const(-1), False)):
        names = Names()
        b = Builder(names, None)
        a, c = names.var(Array(FLOAT64, 1, "C"), "a"), names.var(BOOL, "again")
        i, last = names.var(INT64, "i"), names.var(INT64, "last")
        inner = b.child()
        inner.one(Load(), [a, i], FLOAT64, "x")
        following = plus(inner, i, step)
        b.add(Stmt(While(), (const(0),), (last,), (inner.region((i,), (c, following)),)))
        (load,) = (s for s in walk(unwrap(b.region((a, c), ()))) if isinstance(s.op, Load))
        assert load.op == Load(wrap=not natural)


def unwrapped(make: Make) -> bool:
    """Whether the index that `make` makes loses its wraparound."""
    names = Names()
    b = Builder(names, None)
    a = names.var(Array(FLOAT64, 1, "C"), "a")
    i, c = names.var(INT64, "i"), names.var(BOOL, "c")
    n = b.one(Shape(0), [a], INT64, "n")
    b.one(Load(), [a, make(b, n, i, c)], FLOAT64, "x")
    (load,) = (s for s in walk(unwrap(b.region((a, i, c), ()))) if isinstance(s.op, Load))
    assert isinstance(load.op, Load)
    return not load.op.wrap


def test_a_negative_constant_is_no_index_from_the_start() -> None:
    assert not unwrapped(lambda b, n, i, c: Const(INT64, -1))
