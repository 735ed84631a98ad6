"""What a name stands for while a function is translated: an operand, or a compile-time aggregate of operands.

Tuples, slices, ranges, iterators and bound methods never become values of the IR unless code that is not modelled
needs one; they are kept apart here, so that later passes see scalars and arrays only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..ir.nodes import UNDEFINED, Const, Operand, Var
from ..ir.types import Tuple, Type

__all__ = [
    "Aggregate",
    "Bound",
    "EnumerateValue",
    "GridValue",
    "Iterator",
    "ListLiteral",
    "Pair",
    "Pending",
    "RangeValue",
    "SliceValue",
    "Struct",
    "Value",
    "ZipValue",
    "aggregate",
    "leaves_of",
    "rebuild",
]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A tuple, by its items."""

    type: Tuple
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, by its fields."""

    type: Tuple
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SliceValue:
    """`slice(start, stop, step)`; None where left out."""

    start: Operand
    stop: Operand
    step: Operand


@dataclass(frozen=True, slots=True)
class RangeValue:
    start: Operand
    stop: Operand
    step: Operand
    type: Type


@dataclass(frozen=True, slots=True)
class EnumerateValue:
    source: Value
    start: Operand


@dataclass(frozen=True, slots=True)
class ZipValue:
    sources: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class GridValue:
    """`np.ndindex` of these lengths; with an array `np.ndenumerate` of it, whose lengths they are."""

    lengths: tuple[Operand, ...]
    array: Operand | None = None


@dataclass(frozen=True, slots=True)
class Iterator:
    """An iterator over a modelled iterable; `slot` names its position, a variable of its own."""

    source: Value
    count: Operand
    slot: str


@dataclass(frozen=True, slots=True)
class Pair:
    """What `iternext` gives."""

    first: Value
    second: Operand


@dataclass(frozen=True, slots=True)
class Pending:
    """The next item, fetched where it is first used: only there is it known to exist."""

    source: Value
    position: Operand


@dataclass(frozen=True, slots=True)
class Bound:
    """A method that is about to be called."""

    receiver: Value
    name: str


@dataclass(slots=True, eq=False)
class ListLiteral:
    """A list display. It becomes a list (`made`) only where it is used as one."""

    items: tuple[Value, ...]
    expression: Any
    type: Type
    made: Var | None = field(default=None)


_Iterable = RangeValue | EnumerateValue | ZipValue | GridValue
Value = Operand | Aggregate | Struct | SliceValue | _Iterable | Iterator | Pair | Pending | Bound | ListLiteral


def aggregate(t: Tuple, items: Iterable[Value]) -> Aggregate | Struct:
    """The value of a tuple or struct type."""
    return (Struct if t.struct else Aggregate)(t, tuple(items))


def leaves_of(value: Value) -> list[Operand]:
    """The operands that `value` is made of, in order."""
    match value:
        case Var() | Const():
            return [value]
        case Aggregate(_, items) | Struct(_, items):
            return [leaf for item in items for leaf in leaves_of(item)]
        case SliceValue(start, stop, step) | RangeValue(start, stop, step, _):
            return [start, stop, step]
        case EnumerateValue(source, start):
            return [*leaves_of(source), start]
        case ZipValue(sources):
            return [leaf for s in sources for leaf in leaves_of(s)]
        case GridValue(lengths, array):
            return [*lengths, *([] if array is None else [array])]
        case Iterator(source, count, _):
            return [*leaves_of(source), count]
        case Pair(first, second):
            return [*leaves_of(first), second]
        case Pending(source, position):
            return [*leaves_of(source), position]
        case Bound(receiver, _):
            return leaves_of(receiver)
    return []


def rebuild(value: Value, leaf: Callable[[], Operand]) -> Value:
    """`value` with its operands replaced, in the order of `leaves_of`, by what `leaf` gives."""
    match value:
        case Var() | Const():
            return leaf()
        case Aggregate(t, items) | Struct(t, items):
            return aggregate(t, [rebuild(i, leaf) for i in items])
        case SliceValue():
            return SliceValue(leaf(), leaf(), leaf())
        case RangeValue(type=t):
            return RangeValue(leaf(), leaf(), leaf(), t)
        case EnumerateValue(source, _):
            return EnumerateValue(rebuild(source, leaf), leaf())
        case ZipValue(sources):
            return ZipValue(tuple(rebuild(s, leaf) for s in sources))
        case GridValue(lengths, array):
            return GridValue(tuple(leaf() for _ in lengths), None if array is None else leaf())
        case Iterator(source, _, slot):
            return Iterator(rebuild(source, leaf), leaf(), slot)
        case Pair(first, _):
            return Pair(rebuild(first, leaf), leaf())
        case Pending(source, _):
            return Pending(rebuild(source, leaf), leaf())
        case Bound(receiver, name):
            return Bound(rebuild(receiver, leaf), name)
    return value


def undefined(t: Type) -> Value:
    """A value of type `t` that nobody reads."""
    if isinstance(t, Tuple):
        return aggregate(t, map(undefined, t.items))
    return Const(t, UNDEFINED)


def same_shape(a: Value, b: Value) -> bool:
    """True where the two differ at most in their operands."""
    if isinstance(a, Var | Const) and isinstance(b, Var | Const):
        return True
    if type(a) is not type(b):
        return False
    match a, b:
        case (Aggregate(_, xs), Aggregate(_, ys)) | (Struct(_, xs), Struct(_, ys)):
            return len(xs) == len(ys) and all(map(same_shape, xs, ys))
        case ZipValue(xs), ZipValue(ys):
            return len(xs) == len(ys) and all(map(same_shape, xs, ys))
        case EnumerateValue(x, _), EnumerateValue(y, _):
            return same_shape(x, y)
        case GridValue(xs, x), GridValue(ys, y):
            return len(xs) == len(ys) and (x is None) == (y is None)
        case Iterator(x, _, s), Iterator(y, _, t):
            return s == t and same_shape(x, y)
        case Pair(x, _), Pair(y, _):
            return same_shape(x, y)
        case Pending(x, _), Pending(y, _):
            return same_shape(x, y)
        case Bound(x, m), Bound(y, n):
            return m == n and same_shape(x, y)
        case ListLiteral(), ListLiteral():
            return a is b
    return True
