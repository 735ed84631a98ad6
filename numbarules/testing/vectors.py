"""Values as vectors of their floats: what checks of derivatives add, scale, pair and draw at random.

The floats of a value are those of its leaves: numbers, arrays, the items of tuples and the fields of structs. What is not float stays as
it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["Array", "copied", "distance", "drawn", "flat", "is_float", "leaves", "moved", "paired", "rebuilt", "same", "size", "widened"]

Array = np.ndarray[Any, Any]


def _items(value: Any) -> Sequence[Any] | None:
    """The parts of a tuple or struct; None for anything else."""
    if isinstance(value, tuple):
        return value
    made = getattr(type(value), "__numbarules_struct__", None)
    return None if made is None else [getattr(value, f) for f in made.fields]


def _again(value: Any, items: Sequence[Any]) -> Any:
    made = getattr(type(value), "__numbarules_struct__", None)
    if made is not None:
        return made.make(*items)
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def is_float(value: Any) -> bool:
    """True for a leaf that carries derivatives."""
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """The float leaves of a value, each with the path to it."""
    items = _items(value)
    if items is None:
        if is_float(value):
            yield where, value
        return
    made = getattr(type(value), "__numbarules_struct__", None)
    for i, item in enumerate(items):
        yield from leaves(item, f"{where}.{made.fields[i]}" if made is not None else f"{where}[{i}]")


def paired(value: Any, tangent: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The float leaves of a value and those of a tangent or cotangent of it, which may hold anything in the other places."""
    items = _items(value)
    if items is None:
        if is_float(value):
            yield where, value, tangent
        return
    made = getattr(type(value), "__numbarules_struct__", None)
    for i, item in enumerate(items):
        name = f".{made.fields[i]}" if made is not None else f"[{i}]"
        part = _items(tangent)[i] if tangent is not None else None  # type: ignore[index]
        yield from paired(item, part, where + name)


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with each float leaf replaced by `change` of it, in the leaf's dtype and memory order."""
    items = _items(value)
    if items is not None:
        return _again(value, [rebuilt(item, change) for item in items])
    if not is_float(value):
        return value.copy(order="K") if isinstance(value, np.ndarray) else value
    new = change(value)
    if not isinstance(value, np.ndarray):
        return type(value)(new)
    return _like(value, new)


def _like(array: Array, content: Any) -> Array:
    """An array of the same dtype, memory order and flags."""
    content = np.asarray(content)
    dtype = content.dtype if content.dtype.kind == "f" and content.dtype.itemsize > array.dtype.itemsize else array.dtype
    if array.flags.c_contiguous or array.flags.f_contiguous:
        out = np.empty(array.shape, dtype, order="C" if array.flags.c_contiguous else "F")
    else:
        out = np.zeros(tuple(2 * n for n in array.shape), dtype)[tuple(slice(None, None, 2) for _ in array.shape)]
    out[...] = content
    out.flags.writeable = array.flags.writeable
    return out


def copied(value: Any) -> Any:
    """A value of its own memory."""
    return rebuilt(value, lambda leaf: leaf)


def widened(value: Any) -> Any:
    """The value in double precision, for differences."""
    items = _items(value)
    if items is not None:
        return _again(value, [widened(item) for item in items])
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return _like(value, value.astype(np.float64))
    return float(value) if isinstance(value, float | np.floating) else value


def drawn(value: Any, rng: np.random.Generator) -> Any:
    """A random vector of the value's space."""
    return rebuilt(value, lambda leaf: rng.standard_normal(np.shape(leaf)))


def moved(value: Any, direction: Array, step: float) -> Any:
    """`value + step * direction`, where the direction holds all floats in a row."""
    at = 0

    def change(leaf: Any) -> Any:
        nonlocal at
        n = np.size(leaf)
        part = direction[at : at + n].reshape(np.shape(leaf))
        at += n
        return leaf + step * part

    return rebuilt(value, change)


def size(value: Any) -> int:
    """How many floats a value has."""
    return sum(np.size(leaf) for _, leaf in leaves(value))


def flat(value: Any, tangent: Any) -> Array:
    """The floats of a tangent or cotangent of `value` in a row, zeros where there is none."""
    parts = [np.zeros(np.size(v)) if t is None else np.asarray(t, dtype=np.float64).ravel() for _, v, t in paired(value, tangent)]
    return np.concatenate(parts) if parts else np.zeros(0)


def distance(found: Array, want: Array) -> float:
    """The largest difference of two rows of floats, over the largest of `want` or 1; NaNs and infinities are equal to themselves."""
    if found.size == 0:
        return 0.0
    equal = (found == want) | (np.isnan(found) & np.isnan(want))
    scale = max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)))
    error = np.where(equal, 0.0, np.abs(found - want) / scale)
    return float(np.max(np.where(np.isnan(error), np.inf, error)))


def same(a: Any, b: Any) -> bool:
    """True where two values have the same types, shapes and bits; NaNs are equal."""
    left, right = _items(a), _items(b)
    if left is not None or right is not None:
        return type(a) is type(b) and left is not None and right is not None and len(left) == len(right) and all(map(same, left, right))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    return type(a) is type(b) and bool(a == b or (a != a and b != b))
