"""What moves out of a loop, and what stays where it is."""

from __future__ import annotations

import operator

import pytest

from numbarules.ir.nodes import Apply, For, Function, If, Load, Named, Operand, Raise, Stmt, const, walk
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, INT64, Array
from numbarules.primitives import Failure
from numbarules.transform.optimise import optimise


def summing(checked: bool) -> Function:
    """for k in range(n): (if i >= m: raise); total += x[i]"""
    b = Builder(Names())
    x, i, m, n = b.names.var(Array(FLOAT64, 1, "C"), "x"), *(b.names.var(INT64, v) for v in "imn")
    k, total = b.names.var(INT64, "k"), b.names.var(FLOAT64, "total")
    inner = b.child()
    if checked:
        test = inner.one(Apply(Named(operator.ge)), [i, m], BOOL)
        fails = inner.child()
        fails.add(Stmt(Raise(Failure(IndexError, "outside"))))
        inner.add(Stmt(If(), (test,), (), (fails.region((), None), inner.child().region((), ()))))
    following: Operand = inner.one(Apply(Named(operator.add)), [total, inner.one(Load(), [x, i], FLOAT64)], FLOAT64)
    (y,) = b.emit(For(), [n, const(0.0)], FLOAT64, regions=(inner.region([k, total], [following]),))
    return Function("f", (), b.region([x, i, m, n], [y]), FLOAT64)


@pytest.mark.parametrize("checked", [False, True])
def test_a_load_stays_behind_the_check_that_makes_it_safe(checked: bool) -> None:
    region = optimise(summing(checked).region, Names(1000))
    (loop,) = (s for s in region.body if isinstance(s.op, For))
    assert any(isinstance(s.op, Load) for s in walk(loop.regions[0])) == checked
