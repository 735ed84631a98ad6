"""What the interpreter does with memory: arrays, their views and elements, tuples, and the record of the reverse sweep.

Each function does a statement of one kind of operation and returns its results; `MEANING` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Alloc,
    CloseRecord,
    Extend,
    Get,
    Item,
    Load,
    MakeTuple,
    OpenRecord,
    Operand,
    PrivateCopy,
    Put,
    Retain,
    ShadowLike,
    Shape,
    Slab,
    Snapshot,
    Stmt,
    Store,
    View,
)
from ..ir.types import Array, is_float
from .machine import Dual, IllFormed, Machine

__all__ = ["MEANING", "Memory", "Record"]


# ---------------------------------------------------------------------------------------------- arrays and tuples


def _element(m: Machine, stmt: Stmt, indices: Iterable[Operand]) -> tuple[Any, tuple[int, ...]]:
    """The array and the index of an access to one element."""
    array = m.defined(stmt.args[0])
    plain = array.value if isinstance(array, Dual) else array
    index = tuple([m.defined(i) for i in indices])
    if len(index) != plain.ndim:
        raise IllFormed(f"index {index} of {stmt}")
    wrap = stmt.op.wrap  # type: ignore[union-attr]
    for i, n in zip(index, plain.shape):  # noqa: B905 - their number was just compared
        if type(i) is not int:
            raise IllFormed(f"index {index} of {stmt}")
        if not wrap and not 0 <= i < n:
            raise IllFormed(f"index {index} is out of bounds {plain.shape}: {stmt}")
    return array, index


def load(m: Machine, stmt: Stmt) -> list[Any]:
    array, index = _element(m, stmt, stmt.args[1:])
    if isinstance(array, Dual):
        return [m.scalar(Dual(array.value[index], array.tangent[index]), stmt.result.type)]
    return [m.scalar(array[index], stmt.result.type)]


def store(m: Machine, stmt: Stmt) -> list[Any]:
    array, index = _element(m, stmt, stmt.args[1:-1])
    value = m.defined(stmt.args[-1])
    adds = isinstance(stmt.op, AddTo)
    plain, dv = (value.value, value.tangent) if isinstance(value, Dual) else (value, 0.0)
    target = array.value if isinstance(array, Dual) else array
    if m.classes.get(target.dtype.name) is not type(plain) and target.dtype.type is not np.asarray(plain).dtype.type:
        raise IllFormed(f"a {type(plain).__name__} is stored into {target.dtype}: {stmt}")
    target[index] = target[index] + plain if adds else plain
    if isinstance(array, Dual):
        array.tangent[index] = array.tangent[index] + dv if adds else dv
    return []


def view(m: Machine, stmt: Stmt) -> list[Any]:
    source = m.get(stmt.args[0])
    if source is UNDEFINED:
        return [UNDEFINED]
    numbers = [m.defined(a) for a in stmt.args[1:]]
    if isinstance(source, Dual):
        return [Dual(_view(source.value, stmt, numbers), _view(source.tangent, stmt, numbers))]
    return [_view(source, stmt, numbers)]


def alloc(m: Machine, stmt: Stmt) -> list[Any]:
    t = stmt.result.type
    assert isinstance(t, Array) and isinstance(stmt.op, Alloc)
    shape = tuple(m.defined(a) for a in stmt.args)
    blank = 0 if stmt.op.fill == "zeros" else math.nan if is_float(t.dtype) else -(10**9)
    order: Any = "F" if t.layout == "F" else "C"
    array = np.full(shape, blank, m.dtype(t.dtype), order=order)
    return [Dual(array, np.full(shape, float(blank), order=order)) if m.dual and is_float(t.dtype) else array]


def copy(m: Machine, stmt: Stmt) -> list[Any]:
    """A new array, with the argument's elements or zeros."""
    source = m.get(stmt.args[-1])
    if source is UNDEFINED:
        raise IllFormed(f"a shadow of an array that does not exist: {stmt}")
    t = stmt.result.type
    assert isinstance(t, Array)
    make: Any = np.array if isinstance(stmt.op, PrivateCopy | Snapshot) else np.zeros_like
    order: Any = "F" if t.layout == "F" else "C"
    if isinstance(source, Dual):
        return [Dual(make(source.value, order=order), make(source.tangent, order=order))]
    if isinstance(stmt.op, ShadowLike) and m.dual:
        return [Dual(np.zeros_like(source, order=order), np.zeros(source.shape, order=order))]
    return [make(source, order=order)]


def shape(m: Machine, stmt: Stmt) -> list[Any]:
    assert isinstance(stmt.op, Shape)
    array = m.defined(stmt.args[0])
    return [int((array.value if isinstance(array, Dual) else array).shape[stmt.op.axis])]


def make_tuple(m: Machine, stmt: Stmt) -> list[Any]:
    return [tuple(m.defined(a) for a in stmt.args)]


def item(m: Machine, stmt: Stmt) -> list[Any]:
    assert isinstance(stmt.op, Item)
    return [m.defined(stmt.args[0])[stmt.op.index]]


def _view(a: Any, stmt: Stmt, numbers: list[Any]) -> Any:
    """The view of an array that a statement makes, with the numbers that it takes."""
    assert isinstance(stmt.op, View)
    match stmt.op.kind:
        case "transpose":
            return a.T
        case "permute":
            return a.transpose([int(axis) for axis in stmt.op.spec])
        case "cast":
            return a
        case "reshape":
            out = a.reshape(tuple(numbers))
            if a.size and not np.shares_memory(a, out):
                raise IllFormed(f"a reshape that copies: {stmt}")
            return out
    rest = iter(numbers)
    index = tuple(_key(c, rest) for c in stmt.op.spec)
    return a[(*index, ...)]  # with an ellipsis NumPy gives a view always, also of no dimensions


def _key(letter: str, rest: Iterator[Any]) -> Any:
    """What a letter of a view's index says, with the numbers that it takes."""
    match letter:
        case "i":
            return next(rest)
        case "s":
            return slice(next(rest), next(rest), next(rest))
        case "n":
            return None
    return slice(None)


# ---------------------------------------------------------------------------------------------- the record


@dataclass(slots=True)
class Memory:
    """A slab of the record."""

    entries: list[Any]


@dataclass(slots=True)
class Record:
    """The record; `retained` holds what it keeps alive."""

    retained: list[Any] = field(default_factory=list)
    closed: bool = False


_UNWRITTEN = object()


def _record(m: Machine, x: Operand) -> Record:
    """The record that an operand holds; IllFormed where it was closed."""
    record = m.defined(x)
    if not isinstance(record, Record) or record.closed:
        raise IllFormed(f"{x} is no open record")
    return record


def open_record(m: Machine, stmt: Stmt) -> list[Any]:
    return [Record()]


def close_record(m: Machine, stmt: Stmt) -> list[Any]:
    _record(m, stmt.args[0]).closed = True
    return []


def retain(m: Machine, stmt: Stmt) -> list[Any]:
    _record(m, stmt.args[0]).retained.append(m.get(stmt.args[1]))
    return []


def slab(m: Machine, stmt: Stmt) -> list[Any]:
    _record(m, stmt.args[0])
    return [Memory([_UNWRITTEN] * max(m.defined(stmt.args[1]), 0))]


def extend(m: Machine, stmt: Stmt) -> list[Any]:
    _record(m, stmt.args[0])
    slab, old, new = map(m.defined, stmt.args[1:])
    if len(slab.entries) < old or new < old:
        raise IllFormed(f"{stmt} of {len(slab.entries)} entries")
    return [Memory(slab.entries[:old] + [_UNWRITTEN] * (new - old))]


def _entry(m: Machine, stmt: Stmt) -> tuple[Memory, int]:
    """The slab and the position of an access to one entry."""
    slab, k = m.defined(stmt.args[0]), m.defined(stmt.args[1])
    if not isinstance(slab, Memory) or not 0 <= k < len(slab.entries):
        raise IllFormed(f"entry {k} of {slab}: {stmt}")
    return slab, k


def put(m: Machine, stmt: Stmt) -> list[Any]:
    slab, k = _entry(m, stmt)
    slab.entries[k] = m.get(stmt.args[2])
    return []


def read_back(m: Machine, stmt: Stmt) -> list[Any]:
    slab, k = _entry(m, stmt)
    if slab.entries[k] is _UNWRITTEN:
        raise IllFormed(f"entry {k} was never written: {stmt}")
    return [slab.entries[k]]


MEANING: dict[type, Callable[[Machine, Stmt], list[Any]]] = {
    Load: load,
    Store: store,
    AddTo: store,
    View: view,
    Alloc: alloc,
    ShadowLike: copy,
    PrivateCopy: copy,
    Snapshot: copy,
    Shape: shape,
    MakeTuple: make_tuple,
    Item: item,
    OpenRecord: open_record,
    CloseRecord: close_record,
    Retain: retain,
    Slab: slab,
    Extend: extend,
    Put: put,
    Get: read_back,
}
