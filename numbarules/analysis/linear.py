"""Integers as linear forms: a constant plus variables times constants."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.nodes import Apply, Const, Named, Operand, Stmt, Var
from ..ir.types import INT64

__all__ = ["Linear", "linear"]


@dataclass(frozen=True, slots=True)
class Linear:
    """`offset` plus a sum of variables times integers."""

    terms: tuple[tuple[Var, int], ...]
    offset: int

    def slope(self, v: Var) -> int:
        """The factor of `v`."""
        return dict(self.terms).get(v, 0)


def linear(x: Operand, made: Mapping[Var, Stmt]) -> Linear | None:
    """`x` as a linear form in variables that `made` does not define, or not by sums and products with constants."""
    if isinstance(x, Const):
        return Linear((), x.value) if isinstance(x.value, int) else None
    s = made.get(x)
    if s is None or not isinstance(s.op, Apply) or not isinstance(s.op.callee, Named) or s.results[0].type != INT64:
        return Linear(((x, 1),), 0)
    match s.op.callee.obj:
        case fn if fn is operator.add or fn is operator.sub:
            a, b = (linear(y, made) for y in s.args)
            return None if a is None or b is None else _sum(a, b, 1 if fn is operator.add else -1)
        case fn if fn is operator.mul:
            a, b = (linear(y, made) for y in s.args)
            if a is not None and b is not None and not b.terms:
                return _sum(Linear((), 0), a, b.offset)
            if a is not None and b is not None and not a.terms:
                return _sum(Linear((), 0), b, a.offset)
    return Linear(((x, 1),), 0)


def _sum(a: Linear, b: Linear, factor: int) -> Linear:
    terms = dict(a.terms)
    for v, c in b.terms:
        terms[v] = terms.get(v, 0) + factor * c
    return Linear(tuple((v, c) for v, c in terms.items() if c), a.offset + factor * b.offset)
