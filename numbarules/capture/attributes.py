"""Attributes: fields, shapes, transposes, methods about to be called; others stay as they are."""

from __future__ import annotations

import operator
from typing import Any

from .._numba import our_type, types
from ..ir.nodes import UNDEFINED, Attribute, Const, Operand, Shape, Var, View, const
from ..ir.types import INT64, Array, Opaque, Scalar, Tuple, Type
from .frame import Frame
from .operands import apply, constant, named
from .values import Aggregate, Bound, Struct, Value

__all__ = ["getattribute"]


def getattribute(frame: Frame, target: str, expr: Any) -> Value:
    value = named(frame, expr.value)
    numba_type = frame.typed.typemap[target]
    if isinstance(numba_type, types.BoundFunction):
        return Bound(value, expr.attr)
    if isinstance(value, Const) and isinstance(value.type, Opaque) and value.value is not UNDEFINED and hasattr(value.value, expr.attr):
        return constant(frame, getattr(value.value, expr.attr), our_type(numba_type))
    if isinstance(value, Aggregate | Struct) and expr.attr in value.type.fields:
        return value.items[value.type.fields.index(expr.attr)]
    found = None
    if isinstance(value, Var | Const) and isinstance(value.type, Array):
        found = _of_array(frame, value, value.type, expr.attr, our_type(numba_type))
    elif isinstance(value, Var | Const) and isinstance(value.type, Scalar) and expr.attr == "real":
        found = None if value.type.kind.startswith("complex") else value
    return apply(frame, target, Attribute(expr.attr), [value]) if found is None else found


def _of_array(frame: Frame, array: Operand, t: Array, name: str, result: Type) -> Value | None:
    match name:
        case "shape":
            assert isinstance(result, Tuple)
            return Aggregate(result, tuple(frame.b.one(Shape(i), [array], INT64, "n") for i in range(t.ndim)))
        case "ndim":
            return const(t.ndim)
        case "T":
            return array if t.ndim < 2 else frame.b.one(View("transpose"), [array], result, "T")
        case "flat" if t.layout == "C":
            n: Operand = const(1)
            for i in range(t.ndim):
                n = frame.arithmetic(operator.mul, frame.b.one(Shape(i), [array], INT64, "n"), n)
            return frame.b.one(View("reshape"), [array, n], Array(t.dtype, 1, "C", t.mutable, t.aligned), "flat")
        case "real" if t.dtype.kind.startswith("float"):
            return array
    return None
