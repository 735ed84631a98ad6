"""Indexing by integer arrays and boolean masks, as plain loops: `x[key]` copies elements, `z[key] = v` stores them, the last one winning.

Keys are what the front end leaves of an index: integers, whole axes (`slice(None)`) and at least one array. Slices with
bounds, new axes and the ellipsis have been taken by a view before.
"""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from functools import cached_property
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
    kind = _kind(x, key)
    return _getitem(kind, as_dtype(x.dtype)) if kind is not None else None


@expansion(operator.setitem)
def setitem_expansion(z: Arg, key: Arg, v: Arg) -> Implementation | None:
    """`z[key] = v` for a number or an array that broadcasts."""
    kind = _kind(z, key)
    if kind is None or not isinstance(v, types.Array | types.Number | types.Boolean):
        return None
    return _setitem(kind, v.ndim if isinstance(v, types.Array) else 0)


def _kind(x: Arg, key: Arg) -> _Key | None:
    """The kind of a key of an array of floats; None where it is not one of those that stand here."""
    if not float_array(x):
        return None
    many = isinstance(key, types.BaseTuple)
    letters = [_letter(t) for t in (key.types if many else (key,))]
    if None in letters or all(k in ("i", "s") for k in letters):
        return None
    return _Key((*(k for k in letters if k is not None), *("s" * (x.ndim - len(letters)))), many)


def _letter(t: Arg) -> str | None:
    """What an axis is indexed by: `i` an integer, `s` nothing (all of it), `m` a mask, a digit an integer array of so many dimensions."""
    if isinstance(t, types.Integer):
        return "i"
    if isinstance(t, types.SliceType):
        return "s"
    if isinstance(t, types.Array) and isinstance(t.dtype, types.Boolean) and t.ndim == 1:
        return "m"
    if isinstance(t, types.Array) and isinstance(t.dtype, types.Integer) and t.ndim > 0:
        return str(t.ndim)
    return None


@dataclass(frozen=True)
class _Key:
    """A kind of key: what each axis is indexed by (see `_letter`); `many`: the key is a tuple."""

    items: tuple[str, ...]
    many: bool

    @cached_property
    def arrays(self) -> dict[int, int]:
        """The number of dimensions of the index array at each axis that has one; a mask stands for its positions."""
        return {axis: 1 if k == "m" else int(k) for axis, k in enumerate(self.items) if k not in "is"}

    @cached_property
    def block(self) -> int:
        """How many axes the arrays index together, broadcast against each other."""
        return max(self.arrays.values())

    def preparation(self) -> list[str]:
        """The statements that give the parts of the key, and the lengths of the axes that the arrays index together, names."""
        lines = []
        for axis, kind in enumerate(self.items):
            item = f"key[{axis}]" if self.many else "key"
            if kind == "m":
                lines.append(f"k{axis} = np.nonzero({item})[0]")
            elif kind != "s":
                lines.append(f"k{axis} = {item}")
        for j in range(self.block):
            terms = [f"k{axis}.shape[{j - (self.block - d)}]" for axis, d in self.arrays.items() if j >= self.block - d]
            lines.append(f"b{j} = {functools.reduce(lambda a, c: f'common_length({a}, {c})', terms)}")
        return lines

    def loops(self) -> list[tuple[str, str]]:
        """The variable and the length of each axis of the result: a loop each, from the outermost.

        The axes of the arrays stand where the arrays and integers do, or in front if a whole axis is between them.
        """
        whole = [axis for axis, k in enumerate(self.items) if k == "s"]
        advanced = [axis for axis, k in enumerate(self.items) if k != "s"]
        together = advanced == list(range(advanced[0], advanced[-1] + 1))
        front = advanced[0] if together else 0
        out = [(f"s{axis}", f"x.shape[{axis}]") for axis in whole]
        out[front:front] = [(f"t{j}", f"b{j}") for j in range(self.block)]
        return out

    def element(self) -> str:
        """The element of `x` in the innermost loop."""
        return f"x[{', '.join(map(self._place, range(len(self.items))))}]"

    def _place(self, axis: int) -> str:
        if axis not in self.arrays:
            return f"s{axis}" if self.items[axis] == "s" else f"k{axis}"
        d = self.arrays[axis]
        own = [f"t{j + self.block - d}" for j in range(d)]
        if len(self.arrays) > 1:
            own = [f"({t} if k{axis}.shape[{j}] != 1 else 0)" for j, t in enumerate(own)]
        return f"k{axis}[{', '.join(own)}]"


@functools.cache
def _getitem(key: _Key, dtype: Any) -> Implementation:
    """The implementation of `x[key]`, an array of the dtype."""
    loops = key.loops()
    out = f"out = np.empty(({', '.join(n for _, n in loops)},), dtype)"
    statement = f"out[{', '.join(i for i, _ in loops)}] = {key.element()}"
    return _function("getitem", ("x", "key"), [*key.preparation(), out, *_nest(loops, statement), "return out"], dtype)


@functools.cache
def _setitem(key: _Key, ndim: int) -> Implementation:
    """The implementation of `x[key] = v` for a value of `ndim` dimensions, which is broadcast."""
    loops = key.loops()
    if ndim == 0:
        lines, value = [], "v"
    else:
        lines, positions = ["w = v.copy()"], []  # `v` may share memory with `x`
        for q in range(ndim):
            j = q + len(loops) - ndim
            wanted = f"w.shape[{q}] != 1" + (f" and w.shape[{q}] != {loops[j][1]}" if j >= 0 else "")
            lines += [f"if {wanted}:", "    raise ValueError('cannot assign slice: the shapes do not match')"]
            positions.append(f"({loops[j][0]} if w.shape[{q}] != 1 else 0)" if j >= 0 else "0")
        value = f"w[{', '.join(positions)}]"
    return _function("setitem", ("x", "key", "v"), [*key.preparation(), *lines, *_nest(loops, f"{key.element()} = {value}")])


def _nest(loops: list[tuple[str, str]], statement: str) -> list[str]:
    """The statement in its loops."""
    lines = ["    " * depth + f"for {i} in range({n}):" for depth, (i, n) in enumerate(loops)]
    return [*lines, "    " * len(loops) + statement]


def _function(name: str, parameters: tuple[str, ...], lines: list[str], dtype: Any = None) -> Implementation:
    """The function of these lines."""
    namespace: dict[str, Any] = {"np": np, "dtype": dtype, "common_length": common_length}
    text = "\n    ".join([f"def {name}({', '.join(parameters)}):", *lines])
    exec(compile(text, "<numbarules indexing>", "exec"), namespace)
    made: Implementation = namespace[name]
    return made
