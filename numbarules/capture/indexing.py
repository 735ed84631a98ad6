"""Items read and written: elements, views, items of tuples, and indexing by arrays."""

from __future__ import annotations

import operator
from typing import Any

from .._numba import index_result, our_type, types
from ..ir.nodes import Apply, Cast, Const, Load, Named, Operand, Store, Var, View, const
from ..ir.types import BOOL, INT64, NONE, Array, NoneType, Scalar, Tuple, is_integer
from ..primitives import assign
from .frame import Frame
from .iterables import tuple_item
from .operands import apply, constant, force, named, operand, raw
from .values import Aggregate, SliceValue, Value

__all__ = ["getitem", "set_item", "static_getitem"]


def getitem(frame: Frame, target: str, expr: Any) -> Value:
    return _item_of(frame, target, expr, named(frame, expr.index))


def static_getitem(frame: Frame, target: str, expr: Any) -> Value:
    if isinstance(frame.typed.typemap[expr.value.name], types.LiteralStrKeyDict | types.LiteralList):
        return raw(frame, expr, frame.type_of(target), "item")  # its type depends on the index
    if expr.index_var is not None and expr.index_var.name in frame.env:
        return _item_of(frame, target, expr, named(frame, expr.index_var))
    if isinstance(expr.index, int):
        return _item_of(frame, target, expr, const(expr.index))
    t = our_type(types.unliteral(types.literal(expr.index)))
    return _item_of(frame, target, expr, constant(frame, expr.index, t))


def _item_of(frame: Frame, target: str, expr: Any, index: Value) -> Value:
    value = named(frame, expr.value)
    if isinstance(value, Aggregate):
        return _item_of_tuple(frame, target, value, index)
    if isinstance(value, Var | Const) and isinstance(value.type, Array):
        known = _basic_index(frame, value.type, index)
        if known is not None:
            letters, operands = known
            t, hint = frame.type_of(target), target.lstrip("$")
            if letters == "i" * value.type.ndim and not isinstance(t, Array):
                return frame.b.one(Load(), [value, *operands], t, hint)
            return frame.b.one(View("index", letters), [value, *operands], t, hint)
        value, index = _advanced_index(frame, value, index)
    return apply(frame, target, Named(operator.getitem), [value, index])


def _item_of_tuple(frame: Frame, target: str, value: Aggregate, index: Value) -> Value:
    if isinstance(index, Const):
        return value.items[int(index.value)]  # type: ignore[call-overload]
    if isinstance(index, SliceValue):
        parts: list[Any] = [p.value if isinstance(p, Const) else None for p in (index.start, index.stop, index.step)]
        t = frame.type_of(target)
        assert isinstance(t, Tuple)
        return Aggregate(t, value.items[slice(*parts)])
    return tuple_item(frame, value, operand(frame, index))


def set_item(frame: Frame, target: Value, index: Value, value: Value) -> None:
    """`target[index] = value`."""
    target, index, value = force(frame, target), force(frame, index), force(frame, value)
    if isinstance(target, Var | Const) and isinstance(target.type, Array):
        known = _basic_index(frame, target.type, index)
        if known is not None:
            _store(frame, target, *known, operand(frame, value))
            return
        target, index = _advanced_index(frame, target, index)
    frame.b.emit(Apply(Named(operator.setitem)), [operand(frame, target), operand(frame, index), operand(frame, value)])


def _store(frame: Frame, target: Operand, letters: str, operands: list[Operand], source: Operand) -> None:
    """A store at a basic index: into one element, or into a view."""
    t = target.type
    assert isinstance(t, Array)
    if letters == "i" * t.ndim and isinstance(source.type, Scalar):
        if source.type != t.dtype:
            source = frame.b.one(Cast(), [source], t.dtype, "v")
        frame.b.emit(Store(), [target, *operands, source])
        return
    if set(letters) == {"i"}:  # an array of no dimensions stored into an element
        frame.b.emit(Store(), [target, *operands, frame.b.one(Load(), [source], t.dtype, "v")])
        return
    view = target
    if set(letters) - {"f"}:
        part = index_result(t, _index_spec(letters, operands))
        view = frame.b.one(View("index", letters), [target, *operands], part, "part")
    if not _same_view(frame, view, source):
        frame.b.emit(Apply(Named(assign)), [view, source])


def _same_view(frame: Frame, view: Operand, source: Operand) -> bool:
    """True for `a[i] = a[i]`, which is what is left of `a[i] += v` once the addition was made in place."""
    if view is source:
        return True
    made = {s.results[0]: s for s in frame.b.body if s.results}
    a, b = made.get(view), made.get(source)  # type: ignore[arg-type]
    if a is None or b is None or not isinstance(a.op, View) or a.op != b.op:
        return False
    pairs = zip(a.args, b.args, strict=True)
    return all(x is y or (isinstance(x, Const) and isinstance(y, Const) and x.value == y.value) for x, y in pairs)


# ---------------------------------------------------------------------------------------------- kinds of index


def _basic_index(frame: Frame, array: Array, index: Value) -> tuple[str, list[Operand]] | None:
    """The index as letters (one an axis of the result of normalising) and operands; None where it is not basic."""
    items = list(index.items) if isinstance(index, Aggregate) else [index]
    letters, used = "", sum(1 for i in items if not _is_none(i) and not _is_ellipsis(i))
    operands: list[Operand] = []
    for item in items:
        item = force(frame, item)
        if _is_ellipsis(item):
            letters += "f" * (array.ndim - used)
        elif _is_none(item):
            letters += "n"
        elif isinstance(item, SliceValue):
            letters += "s"
            operands += [item.start, item.stop, item.step]
        elif isinstance(item, Var | Const) and is_integer(item.type) and item.type != BOOL:
            letters += "i"
            operands.append(item)
        else:
            return None
    letters += "f" * (array.ndim - sum(1 for c in letters if c in "isf"))
    return letters, operands


def _index_spec(letters: str, operands: list[Operand]) -> str:
    """The letters as `index_result` wants them: a slice without a step is `t`."""
    spec, rest = "", iter(operands)
    for c in letters:
        if c == "s":
            step = [next(rest) for _ in range(3)][2]
            c = "t" if isinstance(step, Const) and step.value is None else "s"
        elif c == "i":
            next(rest)
        spec += "t" if c == "f" else c
    return spec


def _advanced_index(frame: Frame, array: Operand, index: Value) -> tuple[Operand, Value]:
    """An array and a key of integers, whole axes and arrays in place of an index that has slices, new axes or an ellipsis too."""
    assert isinstance(array.type, Array)
    items = [force(frame, i) for i in index.items] if isinstance(index, Aggregate) else [index]
    mixed = any(isinstance(i, SliceValue) or _is_none(i) or _is_ellipsis(i) for i in items)
    if not isinstance(index, Aggregate) or not mixed:
        return array, index
    none = Const(NONE, None)
    whole = SliceValue(none, none, none)
    used = sum(1 for i in items if not _is_none(i) and not _is_ellipsis(i))
    basic: list[Value] = []
    key: list[Value] = []
    for item in items:
        if _is_ellipsis(item):
            basic += [whole] * (array.type.ndim - used)
            key += [whole] * (array.type.ndim - used)
        elif _is_none(item) or isinstance(item, SliceValue):
            basic.append(item)
            key.append(whole)
        else:
            basic.append(whole)
            key.append(item)
    if not all(map(_is_whole, basic)):
        found = _basic_index(frame, array.type, Aggregate(Tuple(()), tuple(basic)))
        assert found is not None
        letters, operands = found
        part = index_result(array.type, _index_spec(letters, operands))
        array = frame.b.one(View("index", letters), [array, *operands], part, "part")
    return array, Aggregate(Tuple(tuple(INT64 for _ in key)), tuple(key))


def _is_whole(value: Value) -> bool:
    if not isinstance(value, SliceValue):
        return False
    return all(isinstance(p, Const) and p.value is None for p in (value.start, value.stop, value.step))


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.type, NoneType)


def _is_ellipsis(value: Value) -> bool:
    return isinstance(value, Const) and value.value is Ellipsis
