"""Which values may share memory, and which memory is written when.

Values that hold memory are put into classes by unification (Steensgaard, 1996): two values are in one class if one
may be a view of the other, if they meet in a branch or a loop, or if unknown code could have made one from the other.
Shadows and activity go by class. Whether a write may reach a value is told more finely, by their origins: see `analysis.origins`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, product

from ..ir.nodes import Apply, Call, Const, Extend, For, Get, If, Offset, Operand, Put, Region, Stmt, Summary, Var, While, walk
from ..ir.types import NoneType, Opaque, Pointer, Scalar, Tuple, Type
from .effects import Effects, effects
from .origins import Origins

__all__ = ["Aliases", "Write", "aliases_of", "holds_memory"]


def holds_memory(t: Type) -> bool:
    """True for types whose values refer to memory that can be shared."""
    return not isinstance(t, Scalar | NoneType | Pointer)


def _is_container(t: Type) -> bool:
    """True for what may be made to refer to other memory later on, as a list may."""
    match t:
        case Tuple(items):
            return any(map(_is_container, items))
        case Opaque(constant=constant):
            return not constant
    return False


def _is_number(v: Operand) -> bool:
    return isinstance(v.type, Scalar | NoneType)


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that writes into `target`: its place in program order and the loops around it."""

    target: Var
    order: int
    loops: tuple[Stmt, ...]


@dataclass(slots=True)
class Aliases:
    """The classes of a function; a class is named by one of its members."""

    parent: dict[Var, Var] = field(default_factory=dict)
    order: dict[int, int] = field(default_factory=dict)
    loops: dict[int, tuple[Stmt, ...]] = field(default_factory=dict)
    writes: dict[Var, list[Write]] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    allocations: dict[Var, list[Stmt]] = field(default_factory=dict)
    merged: set[Var] = field(default_factory=set)

    def of(self, v: Operand) -> Var | None:
        """The class of a value; None for constants, which nobody writes."""
        if isinstance(v, Const):
            return None
        while self.parent.get(v, v) is not v:
            self.parent[v] = self.parent.get(self.parent[v], self.parent[v])
            v = self.parent[v]
        return v

    def unify(self, a: Operand, b: Operand) -> None:
        x, y = self.of(a), self.of(b)
        if x is not None and y is not None and x is not y:
            self.parent[x] = y

    def writes_to(self, v: Operand) -> list[Write]:
        """What may write into the memory of `v`."""
        cls = self.of(v)
        if cls is None:
            return []
        assert isinstance(v, Var)
        return [w for w in self.writes.get(cls, ()) if self.origins.meet(v, w.target)]

    def written(self, v: Operand) -> bool:
        """True where anything may write into the memory of `v`."""
        return bool(self.writes_to(v))

    def summary(self, region: Region) -> Summary:
        """What a function with this region does with the memory of its parameters and results."""
        ends = [*region.params, *(region.yields or ())]
        memory = [(i, v) for i, v in enumerate(ends) if isinstance(v, Var) and holds_memory(v.type)]
        n = len(region.params)
        writes = tuple(i for i, v in memory if i < n and self.written(v))
        shares = tuple((i, j) for (i, v), (j, w) in combinations(memory, 2) if self.origins.meet(v, w))
        return Summary(writes, shares, any(e.opaque or e.outside for e in map(effects, walk(region))))

    def clobbered(self, v: Operand, stmt: Stmt) -> bool:
        """True where the memory of `v`, as `stmt` sees it, may have changed by the end of the function.

        A write counts if it stands behind `stmt`, or in a loop around it. A loop does not count when the memory is
        allocated inside it and never leaves the iteration: each iteration has its own.
        """
        cls = self.of(v)
        if cls is None:
            return False
        order, loops = self.order[id(stmt)], self.loops[id(stmt)]
        made = self.allocations.get(cls, [])
        fresh: set[int] = set()
        if len(made) == 1 and cls not in self.merged:
            fresh = {id(s) for s in self.loops[id(made[0])]}
        return any(
            write.order > order or any(id(s) not in fresh for s in write.loops if s in loops) for write in self.writes_to(v)
        )


def aliases_of(region: Region, groups: Iterable[tuple[Var, Var]] = ()) -> Aliases:
    """The alias classes of a function's region; `groups` are pairs of parameters that may share memory."""
    out = Aliases()
    for a, b in groups:
        out.unify(a, b)
        out.origins.mix([a, b])
    _Walk(out).region(region, ())
    out.writes = _by_class(out, out.writes)
    merged = out.merged
    out.merged = {c for c in map(out.of, merged) if c is not None}
    allocations: dict[Var, list[Stmt]] = {}
    for v, stmts in out.allocations.items():
        cls = out.of(v)
        assert cls is not None
        allocations.setdefault(cls, []).extend(stmts)
    out.allocations = allocations
    return out


def _by_class(aliases: Aliases, writes: dict[Var, list[Write]]) -> dict[Var, list[Write]]:
    out: dict[Var, list[Write]] = {}
    for v, found in writes.items():
        cls = aliases.of(v)
        assert cls is not None
        out.setdefault(cls, []).extend(found)
    return out


class _Walk:
    def __init__(self, out: Aliases) -> None:
        self.out = out
        self.recorded: dict[object, Var] = {}

    def region(self, region: Region, loops: tuple[Stmt, ...]) -> None:
        for stmt in region.body:
            self.statement(stmt, loops)

    def statement(self, stmt: Stmt, loops: tuple[Stmt, ...]) -> None:
        out = self.out
        out.order[id(stmt)] = len(out.order)
        out.loops[id(stmt)] = loops
        match stmt.op:
            case If():
                for region in stmt.regions:
                    self.region(region, loops)
                    for result, value in zip(stmt.results, region.yields or (), strict=False):
                        self.meet(result, value)
            case For() | While():
                (region,) = stmt.regions
                skip = 1 if isinstance(stmt.op, For) else 0
                params = region.params[skip:]
                for param, init in zip(params, stmt.args[skip:], strict=True):
                    self.meet(param, init)
                self.region(region, (*loops, stmt))
                yields = (region.yields or ())[0 if isinstance(stmt.op, For) else 1 :]
                for param, value in zip(params, yields, strict=False):
                    self.meet(param, value)
                for result, param in zip(stmt.results, params, strict=True):
                    self.meet(result, param)
            case _:
                self.plain(stmt, loops)

    def plain(self, stmt: Stmt, loops: tuple[Stmt, ...]) -> None:
        if all(map(_is_number, stmt.args)) and all(map(_is_number, stmt.results)):
            return
        out, e = self.out, effects(stmt)
        if isinstance(stmt.op, Put | Get) and stmt.op.memory is not None:
            self.same_memory(stmt.op.memory, stmt.args[2] if isinstance(stmt.op, Put) else stmt.result)
        if isinstance(stmt.op, Offset | Extend):
            self.share(stmt.result, stmt.args[1] if isinstance(stmt.op, Extend) else stmt.args[0])
        memory = [a for a in stmt.args if isinstance(a, Var) and holds_memory(a.type)]
        results = [r for r in stmt.results if holds_memory(r.type)]
        if not e.aliases:
            for r in results:
                out.allocations.setdefault(r, []).append(stmt)
        self.hand_on(stmt, e, memory, results)
        if e.opaque or e.aliases:
            if len(memory) > 1:  # one class for several arrays: none of them is known to be new
                out.merged.add(memory[0])
            for r in results:  # what unknown code returns may be new, too
                out.origins.root(r)
        if e.opaque and len(memory) > 1:
            for a in memory[1:]:
                out.unify(memory[0], a)
            if any(_is_container(a.type) for a in memory):
                out.origins.mix(memory)
        for target in memory if e.opaque else [stmt.args[i] for i in e.writes]:
            if isinstance(target, Var):
                out.writes.setdefault(target, []).append(Write(target, out.order[id(stmt)], loops))

    def hand_on(self, stmt: Stmt, e: Effects, memory: list[Var], results: list[Var]) -> None:
        """What the results of a plain statement may be memory of."""
        match stmt.op:
            case Apply(summary=Summary(shares=shares)) | Call(summary=Summary(shares=shares)):
                ends, n = (*stmt.args, *stmt.results), len(stmt.args)
                for i, j in shares:
                    self.share(ends[j], ends[i])
                    if j < n:
                        self.out.origins.mix(v for v in (ends[i], ends[j]) if isinstance(v, Var))
            case _ if e.aliases:
                sources = memory if e.opaque or not e.writes else [stmt.args[i] for i in e.writes]  # `a += b` is `a`
                for r, source in product(results, sources):
                    self.share(r, source)

    def share(self, a: Operand, b: Operand) -> None:
        """`a` may be memory of `b`."""
        self.out.unify(a, b)
        if isinstance(a, Var) and isinstance(b, Var):
            self.out.origins.flow(b, a)

    def same_memory(self, name: object, value: Operand) -> None:
        """Values that went through the record under one name may share memory."""
        if isinstance(value, Var):
            self.out.origins.mix([value, self.recorded.setdefault(name, value)])
            self.out.unify(value, self.recorded[name])
            self.out.merged.add(value)

    def meet(self, a: Var, b: Operand) -> None:
        if isinstance(b, Var) and (holds_memory(a.type) or isinstance(a.type, Pointer)):
            self.share(a, b)
            self.out.merged.add(a)
