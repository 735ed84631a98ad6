"""Keyword arguments of a call in their places: rules are matched by position."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np

from .._numba import our_type, types
from ..ir.nodes import Const, Operand, Var
from ..ir.types import NONE
from ..rules.patterns import python_class_of

__all__ = ["positional"]


def positional(callee: Any, given: list[Operand], keywords: Mapping[str, Operand]) -> list[Operand] | None:
    """The arguments by position, up to the last one that is given; left out ones in between have their default.

    `callee` is a function, or (Numba type class, name) for a method. None where its parameters are not known, or where the order of
    `*args` and keywords cannot be told.
    """
    try:
        bound = _signature(callee).bind(*given, **keywords)
    except (TypeError, ValueError):  # builtin functions have no signature
        return None
    parameters = list(bound.signature.parameters.values())
    last = max(i for i, p in enumerate(parameters) if p.name in bound.arguments)
    bound.apply_defaults()
    out: list[Operand] = []
    for p in parameters[: last + 1]:
        values = bound.arguments[p.name]
        if p.kind is p.VAR_KEYWORD:
            return None
        for value in values if p.kind is p.VAR_POSITIONAL else [values]:
            operand = _operand(value)
            if operand is None:
                return None
            out.append(operand)
    return out


def _signature(callee: Any) -> inspect.Signature:
    """The parameters of a function or method, the object itself first."""
    if not isinstance(callee, tuple):
        return inspect.signature(callee)
    owner, name = callee
    if issubclass(owner, types.Array):
        return inspect.signature(getattr(np, name, None))  # type: ignore[arg-type]  # the methods of NumPy's class have none
    return inspect.signature(getattr(python_class_of(owner), name, None))  # type: ignore[arg-type]


def _operand(value: Any) -> Operand | None:
    """An argument, or a default as a constant; None where a constant of its type is not modelled."""
    if isinstance(value, Var | Const):
        return value
    if value is None:
        return Const(NONE, None)
    if isinstance(value, bool | int | float | str):
        return Const(our_type(numba.typeof(value)), value)
    return None
