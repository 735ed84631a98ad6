"""Which integers are known not to be negative: their use as an index needs no wraparound."""

from __future__ import annotations

import operator
from dataclasses import replace

from ..ir.nodes import AddTo, Apply, Cast, Const, For, Load, Named, Operand, Region, Shape, Stmt, Store, Var
from ..ir.types import BOOL

__all__ = ["unwrap"]


def unwrap(region: Region) -> Region:
    """`region` with the wraparound taken off indices that cannot be negative."""
    return _Unwrap().region(region)


class _Unwrap:
    def __init__(self) -> None:
        self.made: dict[Var, Stmt] = {}
        self.counters: dict[Var, Operand] = {}  # of counted loops, with the trip count
        self.known: dict[Var, bool] = {}

    def region(self, region: Region) -> Region:
        body: list[Stmt] = []
        for s in region.body:
            for r in s.results:
                self.made[r] = s
            if isinstance(s.op, For):
                self.counters[s.regions[0].params[0]] = s.args[0]
            if s.regions:
                s = Stmt(s.op, s.args, s.results, tuple(map(self.region, s.regions)), s.loc)
            match s.op:
                case Load(wrap=True) if all(map(self.natural, s.args[1:])):
                    s = Stmt(Load(wrap=False), s.args, s.results, (), s.loc)
                case (Store(wrap=True) | AddTo(wrap=True)) as op if all(map(self.natural, s.args[1:-1])):
                    s = Stmt(replace(op, wrap=False), s.args, s.results, (), s.loc)
            body.append(s)
        return Region(region.params, tuple(body), region.yields)

    def natural(self, x: Operand) -> bool:
        """True where `x` cannot be negative."""
        if isinstance(x, Const):
            return isinstance(x.value, int) and x.value >= 0
        if x in self.counters:
            return True
        if x not in self.known:
            self.known[x] = False  # while it is being found out
            self.known[x] = self.find(x)
        return self.known[x]

    def find(self, x: Var) -> bool:
        s = self.made.get(x)
        if s is None:
            return False
        match s.op:
            case Shape():
                return True
            case Cast():
                return s.args[0].type == BOOL
            case Apply(Named(fn)) if fn in (operator.add, operator.mul):
                return all(map(self.natural, s.args))
            case Apply(Named(fn)) if fn is operator.sub:
                return self.difference(*s.args)
        return False

    def difference(self, a: Operand, b: Operand) -> bool:
        """True for (n - 1) - r with a counter r < n, and for (c + natural) - d with constants c >= d."""
        last = self.made.get(a) if isinstance(a, Var) else None
        if isinstance(b, Var) and b in self.counters:
            n = self.counters[b]
            if isinstance(a, Const) and isinstance(n, Const):
                return a.value >= n.value - 1  # type: ignore[operator]
            return last is not None and _is(last, operator.sub) and last.args[0] is n and _value(last.args[1]) == 1
        d = _value(b)
        if d is None or last is None:
            return False
        if _is(last, operator.add):
            for x, c in (last.args, last.args[::-1]):
                value = _value(c)
                if value is not None and value >= d and self.natural(x):
                    return True
        return False


def _is(s: Stmt, fn: object) -> bool:
    return isinstance(s.op, Apply) and isinstance(s.op.callee, Named) and s.op.callee.obj is fn


def _value(x: Operand) -> int | None:
    return x.value if isinstance(x, Const) and isinstance(x.value, int) else None
