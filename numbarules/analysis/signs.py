"""Which integers are known not to be negative: their use as an index needs no wraparound.

A value that a loop carries counts if it starts so and only grows, by steps that do not come from itself: what multiplies
itself, as random number generators do, wraps around sooner or later. What is read back from the record counts if
everything written there does.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from ..ir.nodes import AddTo, Apply, Cast, Const, For, Get, If, Load, Named, Operand, Put, Region, Shape, Stmt, Store, Var, While, walk
from ..ir.types import BOOL

__all__ = ["unwrap"]


def unwrap(region: Region) -> Region:
    """`region` with the wraparound taken off indices that cannot be negative."""
    return _Unwrap(region).region(region)


LARGEST_STEP = 1 << 32
"""A constant step of a carried value that counts: 2^31 of them are far from wrapping around."""


class _Unwrap:
    def __init__(self, region: Region) -> None:
        self.made: dict[Var, Stmt] = {}
        self.counters: dict[Var, Operand] = {}  # of counted loops, with the trip count
        self.carried: dict[Var, tuple[Operand, Operand]] = {}  # loop parameters: what they start from, what the next iteration gets
        self.written: dict[Operand, list[Operand]] = {}  # the values put down in each slab
        self.known: dict[Var, bool] = {}
        for s in walk(region):
            self.note(s)

    def note(self, s: Stmt) -> None:
        for r in s.results:
            self.made[r] = s
        match s.op:
            case For():
                self.counters[s.regions[0].params[0]] = s.args[0]
                self.note_carried(s.regions[0].params[1:], s.args[1:], s.regions[0].yields)
            case While():
                self.note_carried(s.regions[0].params, s.args, (s.regions[0].yields or ())[1:])
            case Put():
                self.written.setdefault(s.args[0], []).append(s.args[-1])

    def note_carried(self, params: tuple[Var, ...], inits: tuple[Operand, ...], yields: tuple[Operand, ...] | None) -> None:
        if yields:
            self.carried |= zip(params, zip(inits, yields, strict=True), strict=True)

    def region(self, region: Region) -> Region:
        body: list[Stmt] = []
        for s in region.body:
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
        if x in self.carried:
            start, following = self.carried[x]
            return self.natural(start) and self.grows(following, x)
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
            case Apply(Named(fn)) if fn is max:
                return any(map(self.natural, s.args))
            case If():
                return all(map(self.natural, self.ways(s, x)))
            case For():
                return self.natural(self.parameter(s, x))
            case Get():
                written = self.written.get(self.slab(s.args[0]))
                return written is not None and all(map(self.natural, written))
        return False

    def grows(self, y: Operand, x: Var) -> bool:
        """True where `y` is `x` plus what cannot be negative."""
        if y is x:
            return True
        s = self.made.get(y) if isinstance(y, Var) else None
        if s is None:
            return False
        match s.op:
            case Apply(Named(operator.add)):
                return any(self.grows(a, x) and self.step(b) for a, b in (s.args, s.args[::-1]))
            case If():
                return all(self.grows(way, x) for way in self.ways(s, y))
            case For():
                inner = self.parameter(s, y)
                start, following = self.carried.get(inner, (inner, inner))
                return self.grows(start, x) and self.grows(following, inner)
        return False

    def step(self, x: Operand) -> bool:
        return self.natural(x) and (_value(x) or 0) <= LARGEST_STEP

    def ways(self, s: Stmt, x: Operand) -> list[Operand]:
        """What a result of a branch may be."""
        j = s.results.index(x)
        return [r.yields[j] for r in s.regions if r.yields is not None]

    def parameter(self, s: Stmt, x: Operand) -> Var:
        """The parameter that hands the result of a counted loop on."""
        return s.regions[0].params[1 + s.results.index(x)]

    def slab(self, x: Operand) -> Operand:
        """The slab itself, where it was read back from another one."""
        s = self.made.get(x) if isinstance(x, Var) else None
        if s is not None and isinstance(s.op, Get) and isinstance(s.op.memory, tuple) and s.op.memory[0] == "slab":
            return s.op.memory[1]  # type: ignore[no-any-return]
        return x

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
