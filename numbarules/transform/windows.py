"""Scattered sums gathered: additions to neighbouring elements, iteration after iteration, as one addition each.

A reverse sweep turns `u[j-1] + u[j] + u[j+1]` into three additions an iteration, to elements that the next iterations
add to again: a chain through memory that cannot be vectorised. Each element gets its parts in consecutive iterations,
so they are summed in registers that move along (a window), and the element is written once, when it is complete.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ..analysis.alias import Aliases, aliases_of, holds_memory
from ..analysis.effects import effects
from ..analysis.linear import linear
from ..ir.nodes import AddTo, Apply, Const, For, If, Named, Operand, Region, Stmt, Var, const, walk
from ..ir.rewrite import Builder, Names
from ..ir.types import BOOL, INT64, Array
from .adjoints import zero

__all__ = ["gather_sums"]

WIDEST = 4
"""Elements further apart than this are left alone: the window is held in registers."""


def gather_sums(region: Region, names: Names, groups: Iterable[tuple[Var, Var]] = ()) -> Region:
    """`region` with neighbouring additions of each innermost counted loop gathered; `groups` are parameters that may share memory."""
    return _Gather(aliases_of(region, groups), names).region(region)


class _Gather:
    def __init__(self, aliases: Aliases, names: Names) -> None:
        self.aliases = aliases
        self.names = names

    def region(self, region: Region) -> Region:
        body: list[Stmt] = []
        for stmt in region.body:
            if stmt.regions:
                stmt = Stmt(stmt.op, stmt.args, stmt.results, tuple(map(self.region, stmt.regions)), stmt.loc)
            body += self.loop(stmt) if isinstance(stmt.op, For) else [stmt]
        return Region(region.params, tuple(body), region.yields)

    def loop(self, stmt: Stmt) -> list[Stmt]:
        """The loop, and what completes its windows."""
        (region,) = stmt.regions
        nested = (t for s in region.body for r in s.regions for t in walk(r))
        if region.yields is None or any(isinstance(t.op, AddTo) for t in nested):
            return [stmt]
        groups = self.groups(region)
        after: list[Stmt] = []
        for group in groups:
            stmt, flush = self.window(stmt, group)
            after += flush
        return [stmt, *after]

    def groups(self, region: Region) -> list[list[tuple[int, Stmt]]]:
        """Additions to one row of one array whose places differ by small constants: (offset, statement) by offset."""
        made = {s.results[0]: s for s in region.body if len(s.results) == 1 and not s.regions}
        inside = {*region.params, *(r for s in region.body for r in s.results)}
        counter = region.params[0]
        touched = self.touched(region)
        found: dict[object, list[tuple[int, Stmt]]] = {}
        for s in region.body:
            if not isinstance(s.op, AddTo) or not s.op.cotangent:
                continue
            array, *index, _ = s.args
            if not isinstance(array, Var) or array in inside or self.aliases.of(array) in touched:
                continue
            moving = [i for i, x in enumerate(index) if isinstance(x, Var) and x in inside]
            if len(moving) != 1:
                continue
            place = linear(index[moving[0]], made)
            if place is None or dict(place.terms).get(counter) not in (1, -1):
                continue
            if any(v in inside and v is not counter for v, _ in place.terms):
                continue
            fixed = tuple((type(x.value), x.value) if isinstance(x, Const) else id(x) for i, x in enumerate(index) if i != moving[0])
            key = (id(array), s.op.wrap, moving[0], fixed, frozenset(place.terms))
            found.setdefault(key, []).append((place.offset * dict(place.terms)[counter], s))
        return [g for g in found.values() if 0 < max(o for o, _ in g) - min(o for o, _ in g) <= WIDEST]

    def touched(self, region: Region) -> set[object]:
        """The classes that the loop reads, or writes other than by additions."""
        out: set[object] = set()
        for s in walk(region):
            if s.regions or isinstance(s.op, AddTo):
                continue
            e = effects(s)
            if e.reads or e.writes or e.opaque:
                out |= {self.aliases.of(a) for a in s.args if isinstance(a, Var) and holds_memory(a.type)}
        return out

    def window(self, loop: Stmt, group: list[tuple[int, Stmt]]) -> tuple[Stmt, list[Stmt]]:
        """Replaces a group by one addition of the element that is complete; `p[d]` waits for d more iterations.

        Offsets are measured along the direction in which the loop moves: at each iteration the element at the least
        offset gets its last part.
        """
        (region,) = loop.regions
        least = min(o for o, _ in group)
        width = max(o for o, _ in group) - least
        t = group[0][1].args[0].type
        assert isinstance(t, Array) and region.yields is not None
        parts: dict[int, list[Operand]] = {}
        complete = next(s for o, s in group if o == least)
        for o, s in group:
            parts.setdefault(o - least, []).append(s.args[-1])
        waiting = [self.names.var(t.dtype, "window") for _ in range(width)]
        members = {id(s) for _, s in group}
        b = Builder(self.names, complete.loc)
        sums: list[Operand] = []
        for d in range(width + 1):
            total: Operand | None = waiting[d] if d < width else None
            for v in parts.get(d, ()):
                total = v if total is None else b.one(Apply(Named(operator.add)), [total, v], t.dtype, "window")
            sums.append(total if total is not None else zero(t.dtype))
        b.add(Stmt(complete.op, (*complete.args[:-1], sums[0]), (), (), complete.loc))
        body = [s for s in region.body if id(s) not in members]
        final = [self.names.var(t.dtype, "window") for _ in range(width)]
        new = Region((*region.params, *waiting), (*body, *b.body), (*region.yields, *sums[1:]))
        inits = [zero(t.dtype)] * width
        out = Stmt(loop.op, (*loop.args, *inits), (*loop.results, *final), (new,), loop.loc)
        return out, self.flush(loop, complete, final, region)

    def flush(self, loop: Stmt, complete: Stmt, final: list[Var], region: Region) -> list[Stmt]:
        """Adds what is still waiting when the loop ends: the places that the next iterations would have completed."""
        n = loop.args[0]
        made = {s.results[0]: s for s in region.body if len(s.results) == 1 and not s.regions}
        inner = Builder(self.names, complete.loc)
        for d, v in enumerate(final):
            k = inner.one(Apply(Named(operator.add)), [n, const(d)], INT64, "k")
            args = [self.at(a, region.params[0], k, made, inner) for a in complete.args[:-1]]
            inner.emit(complete.op, [*args, v])
        b = Builder(self.names, complete.loc)
        runs = b.one(Apply(Named(operator.gt)), [n, const(0)], BOOL, "runs")
        b.add(Stmt(If(), (runs,), (), (inner.region(), b.child().region()), complete.loc))
        return b.body

    def at(self, x: Operand, counter: Var, k: Operand, made: dict[Var, Stmt], b: Builder) -> Operand:
        """An index as it would be at iteration `k`."""
        if x is counter:
            return k
        if isinstance(x, Const) or x not in made:
            return x
        s = made[x]
        return b.one(s.op, [self.at(a, counter, k, made, b) for a in s.args], s.result.type, x.name)
