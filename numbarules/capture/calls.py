"""Calls: those that make iterables, ask for lengths, convert or allocate have a form of their own; all others stay calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange, typed

from .._numba import length_of_iterator, our_type
from ..ir.nodes import UNDEFINED, Apply, Cast, Const, Load, Method, Named, Shape, Var, const
from ..ir.types import BOOL, INT64, NONE, Array, Scalar, Tuple
from ..primitives import call_value
from .allocation import ALLOCATIONS, allocation, array_call
from .called import Called
from .displays import empty
from .frame import Frame
from .iterables import iterable
from .iterators import advance, explicit_iterator, iterator_call
from .operands import apply, force, named, operand
from .permuted import PERMUTATIONS, permuted
from .values import Aggregate, Bound, EnumerateValue, GridValue, Iterator, RangeValue, SliceValue, Value, ZipValue, aggregate

__all__ = ["call"]


def call(frame: Frame, target: str, expr: Any) -> Value:
    function = frame.env[expr.func.name]
    args = [named(frame, v) for v in expr.args]
    if expr.vararg is not None:
        rest = named(frame, expr.vararg)
        if not isinstance(rest, Aggregate):
            frame.refuse("a call with `*args` is not supported", str(expr))
        args += rest.items
    keywords = tuple(k for k, _ in expr.kws)
    args += [named(frame, v) for _, v in expr.kws]
    if isinstance(function, Bound):
        special = _method(frame, target, function, args, keywords)
        return apply(frame, target, Method(function.name), [function.receiver, *args], keywords) if special is None else special
    if isinstance(function, Const) and function.value is not UNDEFINED:
        special = _function(frame, _called(frame, target, function.value, args, keywords))
        return apply(frame, target, Named(function.value), args, keywords) if special is None else special
    return apply(frame, target, Named(call_value), [function, *args], keywords)


def _called(frame: Frame, target: str, function: Any, args: list[Value], keywords: tuple[str, ...]) -> Called:
    return Called(target, function, tuple(args), keywords, frame.type_of(target), frame.typed.typemap[target])


def _method(frame: Frame, target: str, method: Bound, args: list[Value], keywords: tuple[str, ...]) -> Value | None:
    """The value of a call of a method that has a form of its own; None for all others."""
    receiver = method.receiver
    if not isinstance(receiver, Var | Const) or not isinstance(receiver.type, Array):
        return None
    if method.name == "item" and not args and receiver.type.ndim == 0:
        return frame.b.one(Load(), [receiver], receiver.type.dtype, "item")
    if method.name == "transpose":
        return permuted(frame, _called(frame, target, np.transpose, [receiver, *args], keywords))
    return None


def _function(frame: Frame, call: Called) -> Value | None:
    """The value of a call of a function that has a form of its own; None for all others."""
    for functions, form in _FORMS:
        if any(call.function is f for f in functions):
            return form(frame, call)
    if _number_class(call.function):
        return _number(frame, call)
    if isinstance(call.type, Tuple) and _constructor(call.function, call.type):
        given = call.named
        return aggregate(call.type, (*call.positional, *(given[n] for n in call.type.fields[len(call.positional) :])))
    return None


def _number_class(function: Any) -> bool:
    return function is float or (isinstance(function, type) and issubclass(function, np.floating))


def _constructor(function: Any, t: Tuple) -> bool:
    """True for what makes a named tuple or a struct from all its fields."""
    if t.struct:
        return function is t.cls.make or (function is t.cls.python_class and t.cls.from_fields)
    return t.cls is not None and function is t.cls


# ---------------------------------------------------------------------------------------------- forms


def _range(frame: Frame, call: Called) -> Value | None:
    """`range`, and `prange`: run one after the other, its iterations give what it promises."""
    given = [operand(frame, a) for a in call.args]
    start, stop = (const(0), given[0]) if len(given) == 1 else (given[0], given[1])
    step = given[2] if len(given) == 3 else const(1)
    if isinstance(step, Const) and step.value == 0:
        return None
    return RangeValue(start, stop, step, our_type(call.numba_type.dtype))


def _slice(frame: Frame, call: Called) -> Value:
    none = Const(NONE, None)
    parts = [operand(frame, a) for a in call.args]
    if len(parts) == 1:
        return SliceValue(none, parts[0], none)
    return SliceValue(parts[0], parts[1], parts[2] if len(parts) == 3 else none)


def _enumerate(frame: Frame, call: Called) -> Value | None:
    source, *start = call.args
    if not iterable(source):
        return None
    return iterator_call(frame, call.target, EnumerateValue(source, operand(frame, start[0]) if start else const(0)))


def _zip(frame: Frame, call: Called) -> Value | None:
    return iterator_call(frame, call.target, ZipValue(call.args)) if all(map(iterable, call.args)) else None


def _ndindex(frame: Frame, call: Called) -> Value | None:
    lengths = call.args[0].items if len(call.args) == 1 and isinstance(call.args[0], Aggregate) else call.args
    return iterator_call(frame, call.target, GridValue(tuple(frame.integer(operand(frame, n)) for n in lengths)))


def _ndenumerate(frame: Frame, call: Called) -> Value | None:
    match call.args:
        case ((Var(type=Array(ndim=ndim)) | Const(type=Array(ndim=ndim))) as array,):
            lengths = tuple(frame.b.one(Shape(i), [array], INT64, "n") for i in range(ndim))
            return iterator_call(frame, call.target, GridValue(lengths, array))
    return None


def _iter(frame: Frame, call: Called) -> Value | None:
    (source,) = call.args
    return source if isinstance(source, Iterator) else explicit_iterator(frame, call.target, source)


def _next(frame: Frame, call: Called) -> Value | None:
    (iterator,) = call.args
    if not isinstance(iterator, Iterator):
        return None
    pair = advance(frame, iterator)
    frame.require(pair.second, StopIteration)
    return force(frame, pair.first)


def _length_of_iterator(frame: Frame, call: Called) -> Value | None:
    """What the length of an array comprehension is computed by."""
    (iterator,) = call.args
    return iterator.count if isinstance(iterator, Iterator) else None


def _len(frame: Frame, call: Called) -> Value | None:
    match call.args:
        case (Aggregate(_, items),):
            return const(len(items))
        case ((Var(type=Array()) | Const(type=Array())) as array,):
            return frame.b.one(Shape(0), [array], INT64, "n")
    return None


def _sum(frame: Frame, call: Called) -> Value | None:
    """The sum of a tuple of numbers of the result's type, and what it starts with."""
    t, (summed, *start) = call.type, call.args
    if not isinstance(summed, Aggregate) or not summed.items or not isinstance(t, Scalar):
        return None
    items = [operand(frame, i) for i in summed.items]
    if any(i.type != t for i in items):
        return None
    total = frame.b.cast(operand(frame, start[0]), t) if start else Const(t, 0.0 if t.kind.startswith("float") else 0)
    for i in items:
        total = frame.b.one(Apply(Named(operator.add)), [total, i], t, "sum")
    return total


def _extreme(frame: Frame, call: Called) -> Value | None:
    """`min` and `max` of a tuple of numbers: of its items."""
    match call.args:
        case (Aggregate(_, [_, _, *_] as items),) if all(isinstance(i, Var | Const) and isinstance(i.type, Scalar) for i in items):
            given = [operand(frame, i) for i in items]
            return frame.b.one(Apply(Named(call.function)), given, call.type, call.function.__name__)
    return None


def _number(frame: Frame, call: Called) -> Value | None:
    """`float(x)`, `np.float32(x)`."""
    match call.args:
        case ((Var(type=Scalar() as t) | Const(type=Scalar() as t)) as x,) if not t.kind.startswith("complex"):
            if isinstance(call.type, Scalar) and call.type.kind.startswith("float"):
                return x if t == call.type else frame.b.one(Cast(), [x], call.type, "cast")
    return None


def _bool(frame: Frame, call: Called) -> Value | None:
    (x,) = call.args
    return x if isinstance(x, Var | Const) and x.type == BOOL else None


def _tuple(frame: Frame, call: Called) -> Value | None:
    return call.args[0] if len(call.args) == 1 and isinstance(call.args[0], Aggregate) else None


def _container(frame: Frame, call: Called) -> Value | None:
    return None if call.args else empty(frame, call.numba_type, call.type, call.function.__name__.lower())


_FORMS: tuple[tuple[tuple[object, ...], Callable[[Frame, Called], Value | None]], ...] = (
    ((range, prange), _range),
    ((slice,), _slice),
    ((enumerate,), _enumerate),
    ((zip,), _zip),
    ((np.ndindex,), _ndindex),
    ((np.ndenumerate,), _ndenumerate),
    ((iter,), _iter),
    ((next,), _next),
    ((length_of_iterator,), _length_of_iterator),
    ((len,), _len),
    ((sum,), _sum),
    ((min, max), _extreme),
    ((bool,), _bool),
    ((tuple,), _tuple),
    ((list, dict, set, typed.List, typed.Dict), _container),
    (PERMUTATIONS, permuted),
    ((np.array, np.asarray), array_call),
    (ALLOCATIONS, allocation),
)
