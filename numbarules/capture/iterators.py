"""Iterators: a modelled one is a source, a count and a position; others pass through as Numba has them."""

from __future__ import annotations

import operator
from typing import Any

from .._numba import nir
from ..ir.nodes import Apply, Const, Named, Var, const
from ..ir.types import BOOL, Tuple
from .frame import Frame
from .graph import modelled_iterator
from .iterables import count, item, iterable
from .operands import named, raw
from .uses import called_function, used_at_once, uses
from .values import Aggregate, Iterator, Pair, Pending, Value

__all__ = ["advance", "exhaust_iter", "explicit_iterator", "getiter", "iterator_call", "iternext", "pair_first", "pair_second"]


def getiter(frame: Frame, target: str, expr: Any) -> Value:
    source = named(frame, expr.value)
    if not modelled_iterator(frame.typed.typemap[target]):
        return raw(frame, expr, frame.type_of(target), "iter")
    return _iterator_of(frame, target, source)


def _iterator_of(frame: Frame, target: str, source: Value) -> Iterator:
    """The iterator of a loop; that of an iterator is itself."""
    if isinstance(source, Iterator):
        return source
    return _made(frame, f"#slot:{target}", source)


def iterator_call(frame: Frame, target: str, source: Value) -> Value | None:
    """What `enumerate`, `zip`, `np.ndindex` or `np.ndenumerate` makes: an iterator.

    If one loop takes it up at once, it needs no position of its own.
    """
    match used_at_once(frame.typed, target):
        case nir.Assign(value=nir.Expr(op="getiter" | "exhaust_iter")):
            return source
        case nir.Assign(value=nir.Expr(op="call") as call) if called_function(frame.typed, call) in (enumerate, zip):
            return source
    return explicit_iterator(frame, target, source)


def explicit_iterator(frame: Frame, target: str, source: Value) -> Iterator | None:
    """What `iter` makes of an iterable; None where it has uses besides loops, `next` and unpacking, or stands for several."""
    return _made(frame, f"#iter:{target}", source) if iterable(source) and _only_advanced(frame, target) else None


def _made(frame: Frame, slot: str, source: Value) -> Iterator:
    frame.env[slot] = const(0)
    return Iterator(source, frame.integer(count(frame, source)), slot)


def _only_advanced(frame: Frame, name: str) -> bool:
    def fine(stmt: Any) -> bool:
        match stmt:
            case nir.Assign(target=target, value=nir.Var() | nir.Expr(op="cast" | "getiter")):
                return _only_advanced(frame, target.name)
            case nir.Assign(value=nir.Expr(op="call") as call):
                return called_function(frame.typed, call) is next
        return isinstance(stmt, nir.Assign) and isinstance(stmt.value, nir.Expr) and stmt.value.op in ("iternext", "exhaust_iter")

    return all(map(fine, uses(frame.typed, name)))


def iternext(frame: Frame, target: str, expr: Any) -> Value:
    iterator = frame.env[expr.value.name]
    return advance(frame, iterator) if isinstance(iterator, Iterator) else raw(frame, expr, frame.type_of(target), "next")


def advance(frame: Frame, iterator: Iterator) -> Pair:
    """The next item, and whether there is one."""
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
    """What an assignment to several names takes apart: all that there is to run over."""
    value = named(frame, expr.value)
    if isinstance(value, Aggregate):
        return value
    source: Value = value
    first: Value = const(0)
    if isinstance(value, Iterator):
        source, first = value.source, frame.env[value.slot]
        frame.env[value.slot] = value.count
    assert isinstance(first, Var | Const)
    t = frame.type_of(target)
    if not iterable(source) or not isinstance(t, Tuple):
        return raw(frame, expr, t)
    left = frame.arithmetic(operator.sub, frame.integer(count(frame, source)), first)
    frame.require(frame.equal(left, const(expr.count)), ValueError)
    return Aggregate(t, tuple(item(frame, source, frame.arithmetic(operator.add, first, const(k))) for k in range(expr.count)))
