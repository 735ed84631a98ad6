"""Entries that no call reaches: of functions that Numba inlines, and of what the engine models itself."""

from __future__ import annotations

import builtins
import inspect
import operator
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from numbarules.rules import patterns as pt
from numbarules.rules.patterns import Tail, covers, meet

if TYPE_CHECKING:
    from numbarules.rules.entries import Entry

__all__ = ["unreachable", "unused"]

_ALLOCATIONS = (np.zeros, np.empty, np.ones, np.full, np.zeros_like, np.empty_like, np.ones_like, np.full_like)
_SYNTAX = (builtins.range, builtins.slice, builtins.enumerate, builtins.zip, builtins.len, builtins.bool)
_ARRAY_ATTRIBUTES = ("shape", "ndim", "T", "real")


def unreachable(entry: Entry) -> Iterator[str]:
    """Why no call that the entry describes asks the table; nothing where one may."""
    if getattr(entry.function, "targetoptions", {}).get("inline") == "always":
        yield "Numba inlines the function before typing, so that no call of it is seen"
    for p in _plain(entry):
        if isinstance(p, type) and issubclass(p, pt.Category) and not p._members and p._ndim is None:
            yield f"the category {p.__name__} has no member"
    if (count := _impossible(entry)) is not None:
        yield count
    if _modelled(entry) and _arrays(entry, covers):
        yield "it is a primitive of the engine, differentiated as it is, so that the table is not asked"


def _impossible(entry: Entry) -> str | None:
    """The number of arguments that the entry is for, where the function is never called with so many."""
    function = getattr(entry.function, "py_func", entry.function)
    if not isinstance(function, FunctionType):
        return None
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    least = sum(p.default is p.empty for p in parameters)
    most = float("inf") if entry.patterns and isinstance(entry.patterns[-1], Tail) else len(entry.patterns)
    if entry.required <= len(parameters) and most >= least:
        return None
    return f"it takes {entry.required if most == entry.required else f'at least {entry.required}'} arguments, and the function {least}" + (
        f" to {len(parameters)}" if len(parameters) > least else ""
    )


def unused(entry: Entry) -> Iterator[str]:
    """What an author should hear at once: that the entry is never used, or not for NumPy arrays."""
    if getattr(entry.function, "targetoptions", {}).get("inline") == "always":
        yield "Numba inlines the function before typing, so that this entry is never used"
    elif (count := _impossible(entry)) is not None:
        yield f"{count}, so that this entry is never used"
    elif _modelled(entry) and _arrays(entry, lambda array, p: meet(array, p) is not pt._NOTHING):
        whom = "it" if _arrays(entry, covers) else "for NumPy arrays it"
        yield f"{whom} is a primitive of the engine, differentiated as it is, so that this entry is never used there"


def _plain(entry: Entry) -> list[Any]:
    return [p.pattern if isinstance(p, Tail) else p for p in entry.patterns]


def _modelled(entry: Entry) -> bool:
    """True for what capture turns into operations of the IR where its operands are arrays and numbers."""
    key = entry.function
    if entry.kind != "rule":
        return False
    if isinstance(key, tuple):
        struct = getattr(key[0], "struct", None)
        return (issubclass(key[0], types.Array) and key[1] in _ARRAY_ATTRIBUTES) or (struct is not None and key[1] in struct.fields)
    if key is operator.getitem or key is operator.setitem:
        index = _plain(entry)[1:2]
        return bool(index) and any(covers(t, index[0]) for t in (types.Integer, types.SliceType, types.SliceLiteral))
    of_fields = isinstance(key, type) and (issubclass(key, tuple) or getattr(vars(key).get("__numbarules_struct__"), "from_fields", False))
    return of_fields or any(key is f for f in (*_ALLOCATIONS, *_SYNTAX))


def _arrays(entry: Entry, relation: Any) -> bool:
    """Whether the first argument is an array by this relation; of what is modelled for any argument, True."""
    if entry.function is operator.getitem or entry.function is operator.setitem:
        return bool(relation(types.Array, _plain(entry)[0]))
    return True
