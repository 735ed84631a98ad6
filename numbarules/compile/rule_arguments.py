"""The arguments of a call as the parameters of a rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._numba import types
from ..ir.nodes import Operand
from .rules import argument_type

__all__ = ["Bound", "bound_types", "given_types"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of a call as a rule's parameters: Numba types, the operands, and the parameter of each operand."""

    types: tuple[Any, ...]
    operands: tuple[tuple[str, Operand], ...]
    slots: int  # how many parameters the rule has; 0 with `*args`, where each operand is its own

    @staticmethod
    def of(rule: Callable[..., Any], args: list[Operand]) -> Bound:
        parameters = list(inspect.signature(rule).parameters.values())
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        names = [p.name for p in parameters[: len(args)]]
        names += [parameters[-1].name] * (len(args) - len(names))
        return Bound(
            bound_types(rule, [argument_type(a) for a in args]), tuple(zip(names, args, strict=True)), 0 if variadic else len(parameters)
        )


def bound_types(rule: Callable[..., Any], given: list[Any]) -> tuple[Any, ...]:
    """The types of a rule's parameters in a call with these: omitted ones by their default, `*args` as one tuple."""
    out: list[Any] = []
    rest = list(given)
    for p in inspect.signature(rule).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            out.append(types.StarArgTuple.from_types(tuple(map(types.unliteral, rest))))
        else:
            out.append(rest.pop(0) if rest else types.Omitted(p.default))
    return tuple(out)


def given_types(parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of a call from those of a rule's parameters: `*args` one by one, omitted ones not at all."""
    out: list[Any] = []
    for t in parameters:
        if isinstance(t, types.StarArgTuple | types.StarArgUniTuple):
            out += t
        elif not isinstance(t, types.Omitted):
            out.append(t)
    return tuple(out)
