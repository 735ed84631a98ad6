"""What a loop can run over: how many items an iterable has, and which one is item `k`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from .._numba import index_result
from ..ir.nodes import Apply, Cast, Const, If, Load, Named, Operand, Shape, Stmt, Var, View, const
from ..ir.types import BOOL, INT64, Array, Tuple
from .frame import Frame
from .values import Aggregate, EnumerateValue, GridValue, RangeValue, Value, ZipValue, leaves_of, rebuild

__all__ = ["count", "grid_item", "item", "iterable", "tuple_item"]


def iterable(value: Value) -> bool:
    """True for what `count` and `item` know."""
    if isinstance(value, Var | Const):
        return isinstance(value.type, Array)
    return isinstance(value, Aggregate | RangeValue | EnumerateValue | ZipValue | GridValue)


def count(frame: Frame, source: Value) -> Operand:
    """How many items an iterable has."""
    match source:
        case Var(type=Array()) | Const(type=Array()):
            return frame.b.one(Shape(0), [source], INT64, "n")
        case Aggregate(_, items):
            return const(len(items))
        case EnumerateValue(inner, _):
            return count(frame, inner)
        case ZipValue(sources):
            return _least(frame, [count(frame, s) for s in sources])
        case GridValue(lengths):
            n: Operand = const(1)
            for length in lengths:
                n = frame.arithmetic(operator.mul, n, length)
            return n
        case RangeValue(start, stop, step, _):
            return _range_count(frame, frame.integer(start), frame.integer(stop), frame.integer(step))
    frame.refuse("a loop over this is not supported", str(source))


def _least(frame: Frame, counts: list[Operand]) -> Operand:
    least = counts[0] if counts else const(0)
    for c in counts[1:]:
        if isinstance(least, Const) and isinstance(c, Const):
            least = const(min(least.value, c.value))  # type: ignore[call-overload]
        else:
            least = frame.b.one(Apply(Named(min)), [least, c], INT64, "n")
    return least


def _range_count(frame: Frame, start: Operand, stop: Operand, step: Operand) -> Operand:
    if not isinstance(step, Const):
        return _dynamic_count(frame, start, stop, step)
    s = step.value
    assert isinstance(s, int)
    span = frame.arithmetic(operator.sub, stop, start) if s > 0 else frame.arithmetic(operator.sub, start, stop)
    if abs(s) == 1:
        return span
    return frame.arithmetic(operator.floordiv, frame.arithmetic(operator.add, span, const(abs(s) - 1)), const(abs(s)))


def _dynamic_count(frame: Frame, start: Operand, stop: Operand, step: Operand) -> Operand:
    """The length of a range whose step is known at run time only."""
    zero = frame.equal(step, const(0))
    bad = frame.b.child()
    bad.add(frame.raising(ValueError, "range() arg 3 must not be zero"))
    frame.b.add(Stmt(If(), (zero,), (), (bad.region((), None), frame.b.child().region()), frame.b.loc))
    up = frame.b.one(Apply(Named(operator.gt)), [step, const(0)], BOOL, "up")
    sides = []
    for sign in (1, -1):
        with frame.nested() as side:
            span = frame.arithmetic(operator.sub, stop, start) if sign > 0 else frame.arithmetic(operator.sub, start, stop)
            size = step if sign > 0 else side.one(Apply(Named(operator.neg)), [step], INT64, "n")
            whole = frame.arithmetic(operator.add, span, frame.arithmetic(operator.sub, size, const(1)))
            sides.append(side.region((), (frame.arithmetic(operator.floordiv, whole, size),)))
    result = frame.b.names.var(INT64, "n")
    frame.b.add(Stmt(If(), (up,), (result,), tuple(sides), frame.b.loc))
    return result


def item(frame: Frame, source: Value, k: Operand) -> Value:
    """Item `k` of an iterable."""
    match source:
        case Var(type=Array(ndim=1) as t) | Const(type=Array(ndim=1) as t):
            return frame.b.one(Load(wrap=False), [source, k], t.dtype, "item")
        case Var(type=Array() as t) | Const(type=Array() as t):
            return frame.b.one(View("index", "i" + "f" * (t.ndim - 1)), [source, k], index_result(t, "i"), "row")
        case Aggregate():
            return tuple_item(frame, source, k)
        case EnumerateValue(inner, start):
            index = frame.arithmetic(operator.add, frame.integer(start), k)
            return Aggregate(Tuple((INT64, INT64)), (index, item(frame, inner, k)))
        case ZipValue(sources):
            items = tuple(item(frame, s, k) for s in sources)
            return Aggregate(Tuple(tuple(INT64 for _ in items)), items)
        case GridValue(lengths):
            return grid_item(frame, source, _unravelled(frame, lengths, k))
        case RangeValue(start, _, step, t):
            value = frame.arithmetic(operator.add, frame.integer(start), frame.arithmetic(operator.mul, k, frame.integer(step)))
            return value if value.type == t else frame.b.one(Cast(), [value], t, "i")
    frame.refuse("a loop over this is not supported", str(source))


def grid_item(frame: Frame, grid: GridValue, indices: Sequence[Operand]) -> Aggregate:
    """What a grid gives at these indices, one an axis."""
    where = Aggregate(Tuple(tuple(INT64 for _ in indices), homogeneous=True), tuple(indices))
    if grid.array is None:
        return where
    assert isinstance(grid.array.type, Array)
    dtype = grid.array.type.dtype
    return Aggregate(Tuple((where.type, dtype)), (where, frame.b.one(Load(wrap=False), [grid.array, *indices], dtype, "item")))


def _unravelled(frame: Frame, lengths: Sequence[Operand], k: Operand) -> list[Operand]:
    """The indices of cell `k` of a grid, counted in C order."""
    indices: list[Operand] = []
    for length in reversed(lengths[1:]):
        indices.insert(0, frame.arithmetic(operator.mod, k, length))
        k = frame.arithmetic(operator.floordiv, k, length)
    return [k, *indices] if lengths else []


def tuple_item(frame: Frame, source: Aggregate, k: Operand) -> Value:
    """An item of a homogeneous tuple at an index known at run time: a chain of tests."""
    if isinstance(k, Const):
        return source.items[int(k.value)]  # type: ignore[call-overload]
    n = len(source.items)
    negative = frame.b.one(Apply(Named(operator.lt)), [k, const(0)], BOOL, "neg")
    shifted = frame.arithmetic(operator.add, frame.integer(k), const(n))
    wrapped = frame.b.names.var(INT64, "k")
    sides = (frame.b.child().region((), (shifted,)), frame.b.child().region((), (frame.integer(k),)))
    frame.b.add(Stmt(If(), (negative,), (wrapped,), sides, frame.b.loc))
    types = [leaf.type for leaf in leaves_of(source.items[0])]

    def chain(i: int) -> list[Operand]:
        test = frame.equal(wrapped, const(i))
        results = tuple(frame.b.names.var(t, "item") for t in types)
        then = frame.b.child().region((), leaves_of(source.items[i]))
        with frame.nested() as side:
            if i + 1 < n:
                found = chain(i + 1)
                rest = side.region((), found)
            else:
                side.add(frame.raising(IndexError, "tuple index out of range"))
                rest = side.region((), None)
        frame.b.add(Stmt(If(), (test,), results, (then, rest), frame.b.loc))
        return list(results)

    found = iter(chain(0))
    return rebuild(source.items[0], lambda: next(found))
