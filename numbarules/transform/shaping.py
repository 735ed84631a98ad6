"""Copies, reshapes and other calls that move elements without computing, in terms of views, allocations and loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..ir.nodes import Alloc, Apply, Attribute, Const, Item, Method, Named, Operand, Shape, Stmt, View, const
from ..ir.rewrite import Builder
from ..ir.types import INT64, Array, Scalar, Tuple, is_float
from ..primitives import assign

__all__ = ["reshape_moves"]


def reshape_moves(stmt: Stmt, b: Builder) -> bool:
    """Emits such a call and returns True; False for any other statement."""
    if not isinstance(stmt.op, Apply) or not stmt.args or len(stmt.results) != 1 or stmt.op.keywords:
        return False
    source, result = stmt.args[0], stmt.results[0]
    if not isinstance(source.type, Array) or not isinstance(result.type, Array):
        return False
    row = _ROWS.get(_name(stmt.op))
    return row is not None and row(stmt, source, b)


def _name(op: Apply) -> str:
    match op.callee:
        case Method(name) | Attribute(name):
            return name
        case Named(obj) if getattr(obj, "__module__", "") and str(obj.__module__).startswith("numpy"):
            return getattr(obj, "__name__", "")
    return ""


def _copy(stmt: Stmt, source: Operand, b: Builder) -> bool:
    """A new array with the same elements, in the dtype and layout of the result."""
    t = stmt.result.type
    assert isinstance(t, Array) and isinstance(source.type, Array)
    if not is_float(t.dtype) or t.layout == "A":
        return False
    shape = [b.one(Shape(i), [source], INT64, "n") for i in range(source.type.ndim)]
    array = b.one(Alloc("empty"), shape, t, "copy")
    b.emit(Apply(Named(assign)), [array, source])
    b.emit_alias(stmt.result, array)
    return True


def _reshape(stmt: Stmt, source: Operand, b: Builder) -> bool:
    t = stmt.result.type
    assert isinstance(t, Array) and isinstance(source.type, Array)
    if source.type.layout != "C":
        return False
    shape = list(stmt.args[1:])
    if len(shape) == 1 and isinstance(shape[0].type, Tuple):
        shape = [b.one(Item(i), [shape[0]], x, "n") for i, x in enumerate(shape[0].type.items)]
    if len(shape) != t.ndim or not all(isinstance(n.type, Scalar) for n in shape):
        return False
    b.emit_alias(stmt.result, b.one(View("reshape"), [source, *shape], t, "reshaped"))
    return True


def _ravel(stmt: Stmt, source: Operand, b: Builder) -> bool:
    """A view of a contiguous array, a copy of any other."""
    assert isinstance(source.type, Array)
    if source.type.layout == "C":
        view = b.one(View("reshape"), [source, _size(source, b)], stmt.result.type, "flat")
        b.emit_alias(stmt.result, view)
        return True
    return _flatten(stmt, source, b)


def _flatten(stmt: Stmt, source: Operand, b: Builder) -> bool:
    """A one-dimensional copy in C order."""
    t = stmt.result.type
    assert isinstance(t, Array) and isinstance(source.type, Array)
    if not is_float(t.dtype):
        return False
    flat = b.one(Alloc("empty"), [_size(source, b)], t, "flat")
    shaped = Array(t.dtype, source.type.ndim, "C")
    dims = [b.one(Shape(i), [source], INT64, "n") for i in range(source.type.ndim)]
    view = b.one(View("reshape"), [flat, *dims], shaped, "shaped")
    b.emit(Apply(Named(assign)), [view, source])
    b.emit_alias(stmt.result, flat)
    return True


def _size(source: Operand, b: Builder) -> Operand:
    assert isinstance(source.type, Array)
    n: Operand = const(1)
    for i in range(source.type.ndim):
        m = b.one(Shape(i), [source], INT64, "n")
        n = m if isinstance(n, Const) else b.one(Apply(Named(operator.mul)), [n, m], INT64, "n")
    return n


def _transpose(stmt: Stmt, source: Operand, b: Builder) -> bool:
    if len(stmt.args) > 1:
        return False
    b.emit_alias(stmt.result, b.one(View("transpose"), [source], stmt.result.type, "T"))
    return True


def _as_array(stmt: Stmt, source: Operand, b: Builder) -> bool:
    """The array itself where it is one of the wanted type, else a copy."""
    if len(stmt.args) > 1:
        return False
    if source.type == stmt.result.type:
        b.emit_alias(stmt.result, source)
        return True
    t = stmt.result.type
    assert isinstance(t, Array) and isinstance(source.type, Array)
    if source.type.layout == t.layout and source.type.dtype == t.dtype:
        b.emit_alias(stmt.result, b.one(View("cast"), [source], t, "array"))
        return True
    return _copy(stmt, source, b)


def _astype(stmt: Stmt, source: Operand, b: Builder) -> bool:
    return _copy(stmt, source, b)


_ROWS: dict[str, Callable[[Stmt, Any, Builder], bool]] = {
    "copy": _copy,
    "astype": _astype,
    "reshape": _reshape,
    "ravel": _ravel,
    "flatten": _flatten,
    "transpose": _transpose,
    "T": _transpose,
    "asarray": _as_array,
    "ascontiguousarray": _as_array,
    "asfortranarray": _as_array,
}
