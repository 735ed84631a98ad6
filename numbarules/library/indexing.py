"""Indexing by integer arrays and boolean masks, as plain loops: `x[key]` copies elements, `z[key] = v` stores them, the last one winning.

Keys are what the front end leaves of an index: integers, whole axes (`slice(None)`) and at least one array. Slices with
bounds, new axes and the ellipsis have been taken by a view before.
"""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .expansions import Arg, Implementation, expansion, float_array

__all__: list[str] = []


@njit
def common_length(a, b):
    """The length of an axis that two index arrays share."""
    if a != b and a != 1 and b != 1:
        raise ValueError("indexing arrays could not be broadcast together")
    return b if a == 1 else a


@expansion(operator.getitem)
def getitem_expansion(x: Arg, key: Arg) -> Implementation | None:
    """`x[key]`: the reverse adds up over repeated indices."""
    items = _items(x, key)
    return _make(x.ndim, items, isinstance(key, types.BaseTuple), -1, as_dtype(x.dtype)) if items is not None else None


@expansion(operator.setitem)
def setitem_expansion(z: Arg, key: Arg, v: Arg) -> Implementation | None:
    """`z[key] = v` for a number or an array that broadcasts."""
    items = _items(z, key)
    if items is None or not isinstance(v, types.Array | types.Number | types.Boolean):
        return None
    return _make(z.ndim, items, isinstance(key, types.BaseTuple), v.ndim if isinstance(v, types.Array) else 0, as_dtype(z.dtype))


def _items(x: Arg, key: Arg) -> tuple[str, ...] | None:
    """What each axis of `x` is indexed by: `i` an integer, `s` nothing, `m` a mask, a digit the dimensions of an integer array."""
    if not float_array(x):
        return None
    found = []
    for t in key.types if isinstance(key, types.BaseTuple) else (key,):
        if isinstance(t, types.Integer):
            found.append("i")
        elif isinstance(t, types.SliceType):
            found.append("s")
        elif isinstance(t, types.Array) and isinstance(t.dtype, types.Boolean) and t.ndim == 1:
            found.append("m")
        elif isinstance(t, types.Array) and isinstance(t.dtype, types.Integer) and t.ndim > 0:
            found.append(str(t.ndim))
        else:
            return None
    if all(k in "is" for k in found):
        return None
    return (*found, *("s" * (x.ndim - len(found))))


@functools.cache
def _make(ndim: int, items: tuple[str, ...], many: bool, v_ndim: int, dtype: Any) -> Implementation:
    """The loops of one kind of key; `v_ndim` is -1 for `x[key]`, else that of the value stored."""
    lines: list[str] = []
    arrays = [(axis, 1 if k == "m" else int(k)) for axis, k in enumerate(items) if k not in "is"]
    block = max(d for _, d in arrays)
    for axis, kind in enumerate(items):
        item = f"key[{axis}]" if many else "key"
        if kind == "m":
            lines.append(f"k{axis} = np.nonzero({item})[0]")
        elif kind != "s":
            lines.append(f"k{axis} = {item}")
    for j in range(block):  # the lengths of the axes that the arrays index together
        terms = [f"k{axis}.shape[{j - (block - d)}]" for axis, d in arrays if j >= block - d]
        lines.append(f"b{j} = {functools.reduce(lambda a, c: f'common_length({a}, {c})', terms)}")
    # those axes stand where the arrays and integers do, or in front if a whole axis is between them
    advanced = [axis for axis, k in enumerate(items) if k != "s"]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    front = sum(1 for k in items[: advanced[0]] if k == "s") if together else 0
    whole = [axis for axis, k in enumerate(items) if k == "s"]
    lengths = [f"x.shape[{axis}]" for axis in whole]
    lengths[front:front] = [f"b{j}" for j in range(block)]
    loop = [f"s{axis}" for axis in whole]
    loop[front:front] = [f"t{j}" for j in range(block)]

    def place(axis: int, kind: str) -> str:
        if kind == "s":
            return f"s{axis}"
        if kind == "i":
            return f"k{axis}"
        d = 1 if kind == "m" else int(kind)
        own = [f"t{j + block - d}" for j in range(d)]
        if len(arrays) > 1:
            own = [f"({t} if k{axis}.shape[{j}] != 1 else 0)" for j, t in enumerate(own)]
        return f"k{axis}[{', '.join(own)}]"

    shape = "(" + ", ".join(lengths) + ",)"
    element = "x[" + ", ".join(place(a, k) for a, k in enumerate(items)) + "]"
    if v_ndim < 0:
        lines.append(f"out = np.empty({shape}, dtype)")
        statement = f"out[{', '.join(loop)}] = {element}"
    elif v_ndim == 0:
        statement = f"{element} = v"
    else:
        lines.append("w = v.copy()")  # `v` may share memory with `x`
        positions = []
        for q in range(v_ndim):
            j = q + len(loop) - v_ndim
            wanted = f"w.shape[{q}] != 1" + (f" and w.shape[{q}] != {lengths[j]}" if j >= 0 else "")
            lines += [f"if {wanted}:", "    raise ValueError('cannot assign slice: the shapes do not match')"]
            positions.append(f"({loop[j]} if w.shape[{q}] != 1 else 0)" if j >= 0 else "0")
        statement = f"{element} = w[{', '.join(positions)}]"
    for depth, (name, n) in enumerate(zip(loop, lengths, strict=True)):
        lines.append("    " * depth + f"for {name} in range({n}):")
    lines.append("    " * len(loop) + statement)
    if v_ndim < 0:
        lines.append("return out")
    head = "def getitem(x, key):" if v_ndim < 0 else "def setitem(x, key, v):"
    namespace: dict[str, Any] = {"np": np, "dtype": dtype, "common_length": common_length}
    exec(compile("\n    ".join([head, *lines]), "<numbarules indexing>", "exec"), namespace)
    made: Implementation = namespace["getitem" if v_ndim < 0 else "setitem"]
    return made
