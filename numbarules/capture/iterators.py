"""Iterators: a modelled one is a source, a count and a position; others pass through as Numba has them."""

from __future__ import annotations

import operator
from typing import Any

from ..ir.nodes import Apply, Const, Named, Var, const
from ..ir.types import BOOL
from .frame import Frame
from .graph import modelled_iterator
from .iterables import count
from .operands import named, raw
from .values import Aggregate, Iterator, Pair, Pending, Value

__all__ = ["exhaust_iter", "getiter", "iternext", "pair_first", "pair_second"]


def getiter(frame: Frame, target: str, expr: Any) -> Value:
    source = named(frame, expr.value)
    if not modelled_iterator(frame.typed.typemap[target]):
        return raw(frame, expr, frame.type_of(target), "iter")
    if isinstance(source, Iterator):
        return source
    slot = f"#slot:{target}"
    frame.env[slot] = const(0)
    return Iterator(source, frame.integer(count(frame, source)), slot)


def iternext(frame: Frame, target: str, expr: Any) -> Value:
    iterator = frame.env[expr.value.name]
    if not isinstance(iterator, Iterator):
        return raw(frame, expr, frame.type_of(target), "next")
    k = frame.env[iterator.slot]
    assert isinstance(k, Var | Const)
    valid = frame.b.one(Apply(Named(operator.lt)), [k, iterator.count], BOOL, "valid")
    frame.env[iterator.slot] = frame.arithmetic(operator.add, k, const(1))
    return Pair(Pending(iterator.source, k), valid)


def pair_first(frame: Frame, target: str, expr: Any) -> Value:
    pair = frame.env[expr.value.name]
    return pair.first if isinstance(pair, Pair) else raw(frame, expr, frame.type_of(target), "item")


def pair_second(frame: Frame, target: str, expr: Any) -> Value:
    pair = frame.env[expr.value.name]
    return pair.second if isinstance(pair, Pair) else raw(frame, expr, BOOL, "valid")


def exhaust_iter(frame: Frame, target: str, expr: Any) -> Value:
    value = named(frame, expr.value)
    return value if isinstance(value, Aggregate) else raw(frame, expr, frame.type_of(target))
