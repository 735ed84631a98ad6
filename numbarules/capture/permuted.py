"""Axes exchanged: `np.transpose`, `np.swapaxes` and `np.moveaxis` with axes that are known, as views."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.nodes import Const, Var, View
from ..ir.types import Array, is_integer
from .called import Called
from .frame import Frame
from .values import Aggregate, Value

__all__ = ["PERMUTATIONS", "permuted"]

PERMUTATIONS = (np.transpose, np.swapaxes, np.moveaxis)


def permuted(frame: Frame, call: Called) -> Value | None:
    """A call of a function that exchanges axes as a view; None where the axes are not all known."""
    positional, named, t = list(call.positional), dict(call.named), call.type
    source = positional.pop(0) if positional else named.pop("a", None)
    given, named = [_axes(v) for v in positional], {k: _axes(v) for k, v in named.items()}
    axes = [*given, *named.values()]
    if not axes or None in axes or not isinstance(source, Var) or not isinstance(source.type, Array):
        return None
    if call.function is np.transpose and len(given) > 1:
        given = [tuple(given)]
    try:  # on an empty array whose lengths name its axes
        shape = call.function(np.empty(tuple(range(source.type.ndim)), np.bool_), *given, **named).shape
    except (TypeError, ValueError):
        return None
    if not isinstance(t, Array) or t.layout != "A":
        return None
    return frame.b.one(View("permute", "".join(map(str, shape))), [source], t, "turned")


def _axes(value: Value) -> Any:
    """The axis or the axes that a value is known to name, else None."""
    if isinstance(value, Aggregate):
        axes = [_axes(v) for v in value.items]
        return None if None in axes else tuple(axes)
    return value.value if isinstance(value, Const) and is_integer(value.type) and isinstance(value.value, int) else None
