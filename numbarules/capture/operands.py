"""Values as operands of statements: constants, fetched items, aggregates packed and taken apart, conversions, and calls that stay calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._numba import our_type, types
from ..ir.nodes import UNDEFINED, Apply, Attribute, Cast, Const, Item, MakeTuple, Method, Named, Operand, Raw, Var, View
from ..ir.types import NONE, Array, NoneType, Opaque, Scalar, Tuple, Type
from ..primitives import GlobalArray
from .frame import Frame
from .iterables import item
from .values import Aggregate, Bound, ListLiteral, Pending, RangeValue, SliceValue, Struct, Value, aggregate

__all__ = ["apply", "constant", "constant_type", "convert", "force", "named", "operand", "raw"]


def constant(frame: Frame, value: Any, t: Type) -> Value:
    """A constant of the program."""
    if isinstance(t, Tuple) and isinstance(value, tuple):
        return Aggregate(t, tuple(constant(frame, v, x) for v, x in zip(value, t.items, strict=True)))
    if isinstance(t, Tuple) and t.struct:
        return Struct(t, tuple(constant(frame, getattr(value, f), x) for f, x in zip(t.fields, t.items, strict=True)))
    if isinstance(t, Array):
        table = frame.b.one(Apply(Named(GlobalArray(value))), [], replace(t, mutable=False), "table")
        return frame.b.one(View("cast"), [table], t, "table") if t.mutable else table  # in a struct nothing says that it is read-only
    if isinstance(t, Scalar) and isinstance(value, np.generic):
        value = value.item()
    return Const(t, value)


def constant_type(t: Type) -> Const | None:
    """The only value of a type that has one: a function, a module, a class."""
    if isinstance(t, NoneType):
        return Const(t, None)
    if isinstance(t, Opaque):
        payload = t.payload
        if isinstance(payload, types.Dispatcher):
            return Const(t, payload.dispatcher)
        if isinstance(payload, types.Function) and payload.typing_key is not None and callable(payload.typing_key):
            return Const(t, payload.typing_key)
    return None


def force(frame: Frame, value: Value) -> Value:
    """Fetches a pending item."""
    return item(frame, value.source, value.position) if isinstance(value, Pending) else value


def named(frame: Frame, var: Any) -> Value:
    """What one of Numba's variables stands for, fetched if it is pending."""
    return force(frame, frame.env[var.name])


def operand(frame: Frame, value: Value) -> Operand:
    """`value` as one operand; aggregates become values of the IR here."""
    value = force(frame, value)
    match value:
        case Var() | Const():
            return value
        case Aggregate(t, items) | Struct(t, items):
            parts = [operand(frame, i) for i in items]
            if any(p.type != x for p, x in zip(parts, t.items, strict=True)):  # an index with slices
                t = Tuple(tuple(p.type for p in parts), t.cls)
            return frame.b.one(MakeTuple(), parts, t, "tuple")
        case SliceValue(start, stop, step):
            given = [start, stop] if isinstance(step, Const) and step.value is None else [start, stop, step]
            name = "slice2_type" if len(given) == 2 else "slice3_type"
            return frame.b.one(Apply(Named(slice)), given, our_type(getattr(types, name)), "slice")
        case RangeValue(start, stop, step, t):
            return frame.b.one(Apply(Named(range)), [start, stop, step], t, "range")
        case Bound(receiver, name):
            return frame.b.one(Apply(Attribute(name)), [operand(frame, receiver)], Opaque("method"), name)
        case ListLiteral():
            if value.made is None:
                value.made = _as_it_is(frame, value.expression, value.type, "list")
            return value.made
    frame.refuse("this use of an iterator is not supported", type(value).__name__)


def _spread(frame: Frame, whole: Operand) -> Value:
    """A tuple or struct operand by its items."""
    if isinstance(whole.type, Tuple):
        t = whole.type
        return aggregate(t, [_spread(frame, frame.b.one(Item(i), [whole], x, "item")) for i, x in enumerate(t.items)])
    return constant_type(whole.type) or whole


def raw(frame: Frame, payload: Any, t: Type | None, hint: str = "raw") -> Value:
    """Numba's own expression, or statement (`t` is None), passed through."""
    if t is not None:
        return _spread(frame, _as_it_is(frame, payload, t, hint))
    names = _variables(payload)
    frame.b.emit(Raw(payload, names), [operand(frame, frame.env[n]) for n in names])
    return Const(NONE, None)


def _as_it_is(frame: Frame, expr: Any, t: Type, hint: str) -> Var:
    names = _variables(expr)
    return frame.b.one(Raw(expr, names), [operand(frame, frame.env[n]) for n in names], t, hint)


def _variables(payload: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.name for v in payload.list_vars()))


def apply(frame: Frame, target: str, callee: Named | Method | Attribute, args: list[Value], keywords: tuple[str, ...] = ()) -> Value:
    """A call that stays a call; a tuple that it returns is spread."""
    t = frame.type_of(target)
    given = [operand(frame, a) for a in args]
    fixed = constant_type(t)
    if fixed is not None and not isinstance(t, NoneType):
        return fixed
    return _spread(frame, frame.b.one(Apply(callee, keywords), given, t, target.lstrip("$")))


def convert(frame: Frame, value: Value, t: Type, hint: str) -> Value:
    """`value` as a `t`."""
    if isinstance(value, Aggregate | Struct) and isinstance(t, Tuple):
        return aggregate(t, [convert(frame, v, x, hint) for v, x in zip(value.items, t.items, strict=True)])
    if isinstance(t, Opaque) and isinstance(t.payload, types.NumpyFlatType):
        if isinstance(value, Var) and isinstance(value.type, Array):
            return value  # a flat view stands for itself
    if isinstance(value, Var | Const) and value.type != t and t != NONE:
        if constant_type(t) is not None or (isinstance(value, Const) and value.value is UNDEFINED):
            return value
        return frame.b.one(Cast(), [value], t, hint)
    return value
