"""A rule that decides by value, both ways compiled: its value half runs first and says which way.

    flag, y, kept = <the value half>                    a `Rule` without a pullback: no derivative passes through it
    result = If flag:  Rule(args, y, kept) -> y         with the pullback
             else:     the call, whose method is differentiated

Where the rule opts out, `y` and `kept` are undefined and nobody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..analysis.alias import aliases_of, holds_memory
from ..ir.nodes import UNDEFINED, Apply, Const, If, Operand, PrivateCopy, Region, Rule, Stmt, Var, View, walk
from ..ir.rewrite import Builder, substitute
from ..ir.types import BOOL, Array, Opaque, Type, writable
from .rule_pullbacks import Half, refuse

__all__ = ["Branching"]


@dataclass(frozen=True, slots=True)
class Branching:
    """One call of such a rule. `region` is the value half with the leaves `args` of the arguments; it yields `flag`, and where that is
    true `values` and `kept` are defined."""

    stmt: Stmt
    half: Half
    region: Region
    flag: Operand
    values: Sequence[Operand]
    kept: Sequence[Operand]
    args: Sequence[Operand]

    def emit(self, results: Sequence[Var], spread: Callable[[Operand, Builder], Sequence[Operand]], b: Builder) -> None:
        """Emits what gives `results`, the leaves of the call's result; `spread` takes a result apart."""
        merged = _merged(self.region)
        params: dict[Operand, Operand] = dict(zip(self.region.params, self.args, strict=True))
        source: dict[Operand, Operand] = {}  # by what a yielded leaf is: the yield that brings it out
        for y in (*self.values, *self.kept):
            if isinstance(y, Var) and (origin := _origin(y, merged)) not in params and not isinstance(origin, Const):
                source.setdefault(origin, y)
        inner = substitute(Region(self.region.params, self.region.body, (self.flag, *source.values())), {}, b.names)
        flag = b.names.var(BOOL, "ruled")
        outs = {origin: b.names.var(y.type, "half") for origin, y in source.items()}
        b.add(Stmt(Rule(self.half.name, None), tuple(self.args), (flag, *outs.values()), (inner,), self.stmt.loc))
        then, orelse = b.child(), b.child()
        known: dict[Operand, Operand] = {**params, **outs}
        copies = self.copies(merged, outs, then)

        def found(y: Operand, kept: bool) -> Operand:
            origin = _origin(y, merged)
            if isinstance(origin, Const):
                return origin
            return copies.get(origin, known[origin]) if kept else known[origin]

        values = [found(y, False) for y in self.values]
        kept = [found(y, True) for y in self.kept]
        self.rule(values, kept, results, then)
        call = self.stmt.op
        assert isinstance(call, Apply)
        whole = orelse.one(replace(call, method=True), self.stmt.args, self.stmt.result.type, "result")
        regions = (then.region((), then.body[-1].results), orelse.region((), list(spread(whole, orelse))))
        b.add(Stmt(If(), (flag,), tuple(results), regions, self.stmt.loc))

    def rule(self, values: list[Operand], kept: list[Operand], results: Sequence[Var], b: Builder) -> None:
        """The `Rule` on the side where there is one: its value half is what the one in front has computed."""
        given = [*self.args, *dict.fromkeys(v for v in (*values, *kept) if isinstance(v, Var) and v not in self.args)]
        params = tuple(b.names.var(a.type, "given") for a in given)
        seen = {a: p for a, p in zip(given, params, strict=True) if isinstance(a, Var)}
        yields = tuple(seen[v] if isinstance(v, Var) else v for v in (*values, *kept))
        leaves = tuple(b.names.var(r.type, r.name) for r in results)
        b.add(Stmt(Rule(self.half.name, self.half), tuple(given), leaves, (Region(params, (), yields),), self.stmt.loc))

    def copies(self, merged: dict[Var, tuple[Operand, ...]], outs: dict[Operand, Var], b: Builder) -> dict[Operand, Operand]:
        """Copies of what is kept and may share memory with something else that is known outside, which may be written into."""
        aliases = aliases_of(self.region)
        taken = {aliases.of(p) for p in self.region.params if holds_memory(p.type)}
        own = {_origin(y, merged) for y in self.values}
        taken |= {aliases.of(y) for y in self.values if isinstance(y, Var) and holds_memory(y.type)}
        out: dict[Operand, Operand] = {}
        for y in self.kept:
            origin = _origin(y, merged)
            if not isinstance(y, Var) or origin not in outs or origin in own or not holds_memory(y.type):
                continue
            if aliases.of(y) in taken and not (isinstance(y.type, Opaque) and getattr(y.type.payload, "private", False)):
                out[origin] = self.copy(outs[origin], b)
            taken.add(aliases.of(y))
        return out

    def copy(self, v: Var, b: Builder) -> Operand:
        if not isinstance(v.type, Array):
            refuse(
                self.half.entry,
                f"keeps a value of type {v.type} that may share memory with an argument",
                'with on_unstable="branch", what a rule keeps for its pullback is numbers and arrays',
                stmt=self.stmt,
                instead="copy in the rule what its pullback needs",
            )
        t: Type = writable(v.type)
        copy = b.one(PrivateCopy(), [v], t, "kept")
        return copy if t == v.type else b.one(View("cast"), [copy], v.type, "kept")


def _merged(region: Region) -> dict[Var, tuple[Operand, ...]]:
    """What each result of an `If` stands for, without what is undefined."""
    out: dict[Var, tuple[Operand, ...]] = {}
    for stmt in walk(region):
        if isinstance(stmt.op, If):
            for i, r in enumerate(stmt.results):
                sides = [inner.yields[i] for inner in stmt.regions if inner.yields is not None]
                out[r] = tuple(y for y in sides if not (isinstance(y, Const) and y.value is UNDEFINED))
    return out


def _origin(y: Operand, merged: dict[Var, tuple[Operand, ...]]) -> Operand:
    """What a yielded value is wherever it is defined."""
    while isinstance(y, Var) and len(merged.get(y, ())) == 1:
        y = merged[y][0]
    return y
