"""New arrays: `np.zeros`, `np.empty`, `np.ones`, `np.full`, their `_like` forms, and `np.array` of a display."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.np.unsafe.ndarray import empty_inferred  # what an array comprehension fills

from ..ir.nodes import Alloc, Apply, Cast, Const, Named, Operand, Shape, Var, const
from ..ir.types import INT64, Array, Scalar
from ..primitives import assign
from .called import Called
from .displays import array_of, is_display
from .frame import Frame
from .operands import operand
from .values import Aggregate, Value

__all__ = ["ALLOCATIONS", "allocation", "array_call"]

_LIKE = (np.zeros_like, np.empty_like, np.ones_like, np.full_like)
_ZERO = (np.zeros, np.zeros_like)
_ONE = (np.ones, np.ones_like)
_FULL = (np.full, np.full_like)
ALLOCATIONS = (np.empty, np.empty_like, empty_inferred, *_ZERO, *_ONE, *_FULL)


def array_call(frame: Frame, call: Called) -> Value | None:
    """`np.array` or `np.asarray` of a display."""
    return array_of(frame, call.args[0], call.type) if isinstance(call.type, Array) and is_display(call.args[0]) else None


def allocation(frame: Frame, call: Called) -> Value | None:
    """A call of one of `ALLOCATIONS`; None where its shape or value is given in another way than by position."""
    function, t = call.function, call.type
    if not isinstance(t, Array):
        return None
    shape = _shape(frame, function, call.args[0])
    if shape is None or (function in _FULL and len(call.positional) < 2):
        return None
    array = frame.b.one(Alloc("zeros" if function in _ZERO else "empty"), shape, t, "array")
    if function in _ONE or function in _FULL:
        value: Operand = const(1) if function in _ONE else operand(frame, call.args[1])
        frame.b.emit(Apply(Named(assign)), [array, _as_element(frame, value, t.dtype)])
    return array


def _shape(frame: Frame, function: Any, first: Value) -> list[Operand] | None:
    if function not in _LIKE:
        return [frame.integer(operand(frame, i)) for i in (first.items if isinstance(first, Aggregate) else (first,))]
    if not isinstance(first, Var | Const) or not isinstance(first.type, Array):
        return None
    return [frame.b.one(Shape(i), [first], INT64, "n") for i in range(first.type.ndim)]


def _as_element(frame: Frame, value: Operand, dtype: Scalar) -> Operand:
    if value.type == dtype:
        return value
    if isinstance(value, Var):
        return frame.b.one(Cast(), [value], dtype, "v")
    return Const(dtype, np.dtype(dtype.kind).type(value.value).item())
