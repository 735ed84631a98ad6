"""Displays of tuples, lists, sets and dictionaries, and arrays made of them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._numba import nir, our_type, types
from ..ir.nodes import Alloc, Apply, Cast, Const, Method, Named, Operand, Store, Var, const
from ..ir.types import Array, Scalar, Tuple, Type
from ..primitives import Empty
from .frame import Frame
from .operands import convert, named, operand, raw
from .uses import called_function, uses
from .values import Aggregate, ListLiteral, Value

__all__ = ["array_of", "build_list", "build_map", "build_set", "build_tuple", "empty", "is_display"]


def build_tuple(frame: Frame, target: str, expr: Any) -> Value:
    t = frame.type_of(target)
    assert isinstance(t, Tuple)
    return Aggregate(t, tuple(named(frame, v) for v in expr.items))


def build_list(frame: Frame, target: str, expr: Any) -> Value:
    numba_type = frame.typed.typemap[target]
    if not expr.items:  # the type of its items is found later than the list: it is made by it
        return empty(frame, numba_type, frame.type_of(target), "list")
    constants = getattr(numba_type, "initial_value", None) is not None  # they are part of the type of a display
    only_display = _display_only(frame, target)
    if constants and not only_display:
        made = empty(frame, numba_type, frame.type_of(target), "list")
        for v in expr.items:
            frame.b.emit(Apply(Method("append")), [made, frame.b.cast(operand(frame, frame.env[v.name]), our_type(numba_type.dtype))])
        return made
    value = ListLiteral(tuple(named(frame, v) for v in expr.items), expr, frame.type_of(target))
    return value if only_display else operand(frame, value)


def build_set(frame: Frame, target: str, expr: Any) -> Value:
    t = frame.type_of(target)
    return raw(frame, expr, t, "set") if expr.items else empty(frame, frame.typed.typemap[target], t, "set")


def build_map(frame: Frame, target: str, expr: Any) -> Value:
    numba_type = types.unliteral(frame.typed.typemap[target])
    if not isinstance(numba_type, types.DictType):
        return raw(frame, expr, frame.type_of(target), "map")
    made = empty(frame, numba_type, frame.type_of(target), "map")
    for key, value in expr.items:
        typed = ((key, our_type(numba_type.key_type)), (value, our_type(numba_type.value_type)))
        pair = [operand(frame, convert(frame, named(frame, v), t, "item")) for v, t in typed]
        frame.b.emit(Apply(Named(operator.setitem)), [made, *pair])
    return made


def empty(frame: Frame, numba_type: Any, t: Type, hint: str) -> Var:
    """A new empty container of the type that its later use gave it."""
    return frame.b.one(Apply(Named(Empty(types.unliteral(numba_type)))), [], t, hint)


def _display_only(frame: Frame, name: str) -> bool:
    """True for a list that is only ever an argument of `np.array` or an item of such a list: it need not be made."""

    def fine(stmt: Any) -> bool:
        match stmt:
            case nir.Assign(target=target, value=nir.Var() | nir.Expr(op="build_list" | "build_tuple")):
                return _display_only(frame, target.name)
            case nir.Assign(value=nir.Expr(op="call") as call):
                return called_function(frame.typed, call) in (np.array, np.asarray)
        return False

    return all(map(fine, uses(frame.typed, name)))


# ---------------------------------------------------------------------------------------------- arrays of displays


def is_display(value: Value) -> bool:
    """True for what `array_of` may know: a number, a tuple, or a list that was never made."""
    if isinstance(value, Var | Const):
        return isinstance(value.type, Scalar)
    return isinstance(value, Aggregate) or (isinstance(value, ListLiteral) and value.made is None)


def array_of(frame: Frame, value: Value, t: Array) -> Var | None:
    """`np.array` of nested displays of scalars; None where they are ragged or of something else."""
    dims = _shape(value)
    if -1 in dims or len(dims) != t.ndim:
        return None
    array = frame.b.one(Alloc("empty"), [const(d) for d in dims], t, "array")

    def store(v: Value, index: list[Operand]) -> None:
        if isinstance(v, ListLiteral | Aggregate):
            for i, inner in enumerate(v.items):
                store(inner, [*index, const(i)])
            return
        x = operand(frame, v)
        if x.type != t.dtype:
            x = frame.b.one(Cast(), [x], t.dtype, "v")
        frame.b.emit(Store(wrap=False), [array, *index, x])

    store(value, [])
    return array


def _shape(value: Value) -> tuple[int, ...]:
    """The shape of nested displays; -1 in it where they have none."""
    if isinstance(value, ListLiteral | Aggregate):
        inner = {_shape(i) for i in value.items}
        return (len(value.items), *inner.pop()) if len(inner) == 1 else (-1,)
    return () if isinstance(value, Var | Const) and isinstance(value.type, Scalar) else (-1,)
