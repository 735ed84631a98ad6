"""The arithmetic operators, whose reverse is a few statements each; every other scalar function has a rule in the table."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ..ir.nodes import Apply, Const, If, Named, Operand, Stmt, const
from ..ir.rewrite import Builder
from ..ir.types import BOOL, INT64, Type, is_float
from ..primitives import accumulate, ieee_divide
from .adjoints import cast, zero

__all__ = ["ARITHMETIC"]

Contributions = list[Operand | None]
Row = Callable[[Stmt, Operand, tuple[bool, ...], Builder], Contributions]
"""The contributions to the arguments, made for those that are wanted: what one needs would be recorded for nothing."""


def mul(a: Operand, c: Operand, t: Type, b: Builder) -> Operand:
    """`a * c` in the precision of `t`."""
    if isinstance(c, Const) and c.value == 1:
        return cast(a, t, b)
    if isinstance(a, Const) and a.value == 1:
        return cast(c, t, b)
    return b.one(Apply(Named(operator.mul)), [cast(a, t, b), cast(c, t, b)], t, "d")


def neg(a: Operand, b: Builder) -> Operand:
    return b.one(Apply(Named(operator.neg)), [a], a.type, "d")


def div(a: Operand, c: Operand, t: Type, b: Builder) -> Operand:
    return b.one(Apply(Named(ieee_divide)), [cast(a, t, b), cast(c, t, b)], t, "d")


def _add(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    return [ybar, ybar]


def _sub(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    return [ybar, neg(ybar, b) if wanted[1] else None]


def _mul(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    x, y = stmt.args
    t = stmt.result.type
    return [mul(ybar, y, t, b) if wanted[0] else None, mul(ybar, x, t, b) if wanted[1] else None]


def _truediv(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    """y = u / v:  ubar = ybar / v,  vbar = -ubar * y; an exactly zero cotangent gives zeros, also where v is 0 or y infinite."""
    _, v = stmt.args
    t = stmt.result.type
    if isinstance(v, Const) and v.value:
        return [div(ybar, v, t, b), None]
    inner = b.child()
    ubar = div(ybar, v, t, inner)
    values: list[Operand] = [ubar]
    if wanted[1]:
        values.append(neg(mul(ubar, stmt.result, t, inner), inner))
    test = b.one(Apply(Named(operator.ne)), [ybar, zero(t)], BOOL, "nonzero")
    results = tuple(b.names.var(t, "d") for _ in values)
    b.add(Stmt(If(), (test,), results, (inner.region((), values), b.child().region((), [zero(t) for _ in values])), b.loc))
    return [results[0], results[1] if len(results) > 1 else None]


def _neg(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    return [neg(ybar, b)]


def _pos(stmt: Stmt, ybar: Operand, wanted: tuple[bool, ...], b: Builder) -> Contributions:
    return [ybar]


def integer_power(stmt: Stmt, ybar: Operand, b: Builder) -> Contributions | None:
    """y = x ** n with a literal integer n:  xbar = n x**(n-1) ybar, which is exact zero for n = 0. None for other exponents."""
    x, n = stmt.args
    if not isinstance(n, Const) or not isinstance(n.value, int) or isinstance(n.value, bool) or not is_float(x.type):
        return None
    t = stmt.result.type
    match n.value:
        case 0:
            return [None, None]
        case 1:
            return [ybar, None]
        case 2:
            double = b.one(Apply(Named(operator.add)), [cast(x, t, b), cast(x, t, b)], t, "d")
            return [mul(ybar, double, t, b), None]
    power = b.one(Apply(Named(operator.pow)), [x, const(n.value - 1, INT64)], t, "d")
    return [mul(mul(ybar, Const(t, float(n.value)), t, b), power, t, b), None]


ARITHMETIC: dict[object, Row] = {
    operator.add: _add,
    accumulate: _add,
    operator.sub: _sub,
    operator.mul: _mul,
    operator.truediv: _truediv,
    ieee_divide: _truediv,
    operator.neg: _neg,
    operator.pos: _pos,
}
