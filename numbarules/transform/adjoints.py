"""Cotangents while the reverse sweep is built: an operand per scalar, None standing for an exact zero."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ..ir.nodes import Apply, Cast, Const, Named, Operand, Var, const
from ..ir.rewrite import Builder
from ..ir.types import Type, is_float
from ..primitives import accumulate

__all__ = ["Adjoints", "zero"]


def zero(t: Type) -> Const:
    """0.0 of a float type."""
    return Const(t, 0.0)


class Adjoints:
    """The cotangent of each scalar, as far as the sweep has come.

    `summed` are variables from outside a loop, whose cotangents the loop sums: the order of such a sum is nobody's business.
    """

    def __init__(self, start: dict[Var, Operand] | None = None, summed: Iterable[Var] = ()) -> None:
        self._of: dict[Var, Operand] = dict(start or {})
        self.summed = set(summed)

    def get(self, v: Operand) -> Operand | None:
        return self._of.get(v) if isinstance(v, Var) else None

    def take(self, v: Var) -> Operand | None:
        """The cotangent of a variable whose definition has been reached."""
        return self._of.pop(v, None)

    def set(self, v: Var, value: Operand) -> None:
        self._of[v] = value

    def add(self, v: Operand, value: Operand | None, b: Builder) -> None:
        """Adds to the cotangent of `v`, in the precision of `v`."""
        if value is None or not isinstance(v, Var) or not is_float(v.type):
            return
        value = cast(value, v.type, b)
        old = self._of.get(v)
        add = accumulate if v in self.summed else operator.add
        self._of[v] = value if old is None else b.one(Apply(Named(add)), [old, value], v.type, f"d_{v.name}")

    def items(self) -> list[tuple[Var, Operand]]:
        return list(self._of.items())


def cast(value: Operand, t: Type, b: Builder) -> Operand:
    """`value` as a `t`."""
    if value.type == t:
        return value
    if isinstance(value, Const) and isinstance(value.value, int | float):
        return Const(t, float(value.value)) if is_float(t) else const(value.value, t)
    return b.one(Cast(), [value], t, "cast")
