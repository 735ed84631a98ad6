"""Numba's expressions, by their kind: what each means as statements of our IR."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._numba import INPLACE
from ..ir.nodes import Apply, Const, Named, Var
from ..ir.types import Array, Scalar, Tuple
from . import iterators
from .attributes import getattribute
from .calls import call
from .displays import build_list, build_map, build_set, build_tuple
from .frame import Frame
from .indexing import getitem, static_getitem
from .operands import apply, convert, named, operand, raw
from .values import Aggregate, Struct, Value

__all__ = ["expression"]


def expression(frame: Frame, target: str, expr: Any) -> Value:
    """The value of an expression that is assigned to `target`; one of a kind not listed below passes through as Numba has it."""
    kind = _KINDS.get(expr.op)
    return kind(frame, target, expr) if kind is not None else raw(frame, expr, frame.type_of(target), target.lstrip("$"))


def _cast(frame: Frame, target: str, expr: Any) -> Value:
    return convert(frame, named(frame, expr.value), frame.type_of(target), "cast")


def _unary(frame: Frame, target: str, expr: Any) -> Value:
    return apply(frame, target, Named(expr.fn), [frame.env[expr.value.name]])


def _binop(frame: Frame, target: str, expr: Any) -> Value:
    a, b = named(frame, expr.lhs), named(frame, expr.rhs)
    if isinstance(a, Aggregate) and isinstance(b, Aggregate) and expr.fn is operator.add:
        return _joined(frame, target, a, b)
    return apply(frame, target, Named(expr.fn), [a, b])


def _inplace_binop(frame: Frame, target: str, expr: Any) -> Value:
    lhs = named(frame, expr.lhs)
    if isinstance(lhs, Var | Const) and isinstance(lhs.type, Array):
        rhs = operand(frame, frame.env[expr.rhs.name])
        frame.b.emit(Apply(Named(expr.fn)), [lhs, rhs], frame.type_of(target), hint="self")
        return lhs
    if isinstance(lhs, Aggregate):
        more = named(frame, expr.rhs)
        assert isinstance(more, Aggregate)
        return _joined(frame, target, lhs, more)
    immutable = isinstance(lhs, Struct) or (isinstance(lhs, Var | Const) and isinstance(lhs.type, Scalar))
    return apply(frame, target, Named(INPLACE[expr.fn] if immutable else expr.fn), [lhs, frame.env[expr.rhs.name]])


def _joined(frame: Frame, target: str, a: Aggregate, b: Aggregate) -> Aggregate:
    t = frame.type_of(target)
    assert isinstance(t, Tuple)
    return Aggregate(t, a.items + b.items)


_KINDS: dict[str, Callable[[Frame, str, Any], Value]] = {
    "cast": _cast,
    "unary": _unary,
    "binop": _binop,
    "inplace_binop": _inplace_binop,
    "call": call,
    "getattr": getattribute,
    "getitem": getitem,
    "static_getitem": static_getitem,
    "build_tuple": build_tuple,
    "build_list": build_list,
    "build_set": build_set,
    "build_map": build_map,
    "getiter": iterators.getiter,
    "iternext": iterators.iternext,
    "pair_first": iterators.pair_first,
    "pair_second": iterators.pair_second,
    "exhaust_iter": iterators.exhaust_iter,
}
