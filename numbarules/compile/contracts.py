"""What a rule's value half does with the memory of its arguments, as far as its code shows it.

Where `analysis.alias` assumes the worst of unknown code, this assumes nothing: a rule is refused for what it is seen to do. Jitted
functions that it calls are looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from .._numba import Dispatcher, NumbaError
from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Attribute, Const, For, Function, If, Item, Loc, MakeTuple, Method, Named, Operand, Region, Stmt, Var, While
from ..ir.rewrite import Builder, Names
from ..ir.types import Array, Opaque, Tuple, leaves
from .calls import Callee, split_call
from .methods import method_of

__all__ = ["Sharing", "sharing_of"]


@dataclass(frozen=True, slots=True)
class Sharing:
    """By leaves: `written` are the parameters that a function writes into, and where; `returned` the pairs (result, parameter) that may
    share memory; `twice` the pairs of results that may."""

    written: dict[int, Loc | None]
    returned: frozenset[tuple[int, int]]
    twice: frozenset[tuple[int, int]]


def sharing_of(function: Function, above: tuple[Callee, ...] = ()) -> Sharing:
    """What a function is seen to do with the memory of its parameters; `above` are the callers, recursion ends there."""
    walk = _Walk(above)
    walk.region(function.region)
    params = {i: walk.of(p) for i, p in enumerate(function.region.params) if holds_memory(p.type)}
    written = {i: loc for v, loc in walk.writes for i, cls in params.items() if walk.of(v) is cls}
    results = {j: walk.of(y) for j, y in enumerate(function.region.yields or ()) if isinstance(y, Var) and _shared(y)}
    returned = {(j, i) for j, of_result in results.items() for i, cls in params.items() if of_result is cls}
    twice = {(j, k) for j, k in combinations(results, 2) if results[j] is results[k]}
    return Sharing(written, frozenset(returned), frozenset(twice))


def changes_or_shares(stmt: Stmt) -> str | None:
    """What a call is known to do that no rule can stand for, in words; None where nothing is known."""
    e, code = effects(stmt), _own_code(stmt)
    if e.writes and code is None:
        return "writes into an argument"
    if not _concerns_memory(stmt):
        return None
    if code is None:
        views = e.aliases and not e.opaque and any(map(_shared, stmt.results))
        return "may return a view of an argument" if views else None
    walk = _Walk(())
    walk.call(stmt, code)
    if walk.writes:
        return "writes into an argument"
    given = {walk.of(m) for a in stmt.args if _shared(a) for m in walk.memory(a)}
    if any(walk.of(m) in given for r in stmt.results for m in walk.memory(r)):
        return "may return memory of an argument"
    return "may return the same memory twice" if walk.twice else None


def _own_code(stmt: Stmt) -> Any:
    """The jitted function, or the implementation of an overloaded one, that a call runs; None for NumPy's, whose effects are known."""
    match stmt.op:
        case Apply(Named(obj)) if isinstance(obj, Dispatcher):
            return obj
        case Apply(Named(obj)) if effects(stmt).opaque and callable(obj):
            return method_of(stmt)
        case Apply(Attribute() | Method()) if not isinstance(stmt.args[0].type, Array):
            return method_of(stmt)
    return None


def _concerns_memory(stmt: Stmt) -> bool:
    """False for a call that is handed no memory and returns at most one array: there is nothing that it could change or share."""
    several = any(sum(map(holds_memory, leaves(r.type))) > 1 for r in stmt.results)
    return several or any(map(_shared, stmt.args))


def _shared(v: Operand) -> bool:
    return holds_memory(v.type) and not (isinstance(v.type, Opaque) and v.type.constant)


@dataclass(slots=True)
class _Walk:
    above: tuple[Callee, ...]
    parent: dict[Var, Var] = field(default_factory=dict)
    writes: list[tuple[Var, Loc | None]] = field(default_factory=list)
    parts: dict[Var, Sequence[Operand]] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names(3_000_000))
    twice: bool = False  # a function that was looked into returns the same memory twice

    def of(self, v: Var) -> Var:
        while v in self.parent:
            v = self.parent[v]
        return v

    def memory(self, v: Operand) -> list[Var]:
        """The parts of a value that hold memory: those of a tuple one by one."""
        if isinstance(v, Const) or not holds_memory(v.type):
            return []
        return [part for item in self.items(v) for part in self.memory(item)] if isinstance(v.type, Tuple) else [v]

    def items(self, v: Var) -> Sequence[Operand]:
        assert isinstance(v.type, Tuple)
        return self.parts.setdefault(v, [self.names.var(t, "item") for t in v.type.items])

    def unify(self, a: Operand, b: Operand) -> None:
        """All parts of one value may be memory of all parts of the other."""
        for x, y in product(self.memory(a), self.memory(b)):
            self.join(x, y)

    def join(self, a: Var, b: Var) -> None:
        x, y = self.of(a), self.of(b)
        if x is not y:
            self.parent[x] = y

    def region(self, region: Region) -> None:
        for stmt in region.body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        for inner in stmt.regions:
            self.region(inner)
        match stmt.op:
            case If():
                for inner in stmt.regions:
                    self.meet(stmt.results, inner.yields)
            case For() | While():
                skip = 1 if isinstance(stmt.op, For) else 0
                params, yields = stmt.regions[0].params[skip:], (stmt.regions[0].yields or ())[1 - skip :]
                self.meet(params, stmt.args[skip:])
                self.meet(params, yields)
                self.meet(stmt.results, params)
            case Apply(Named(obj)) if isinstance(obj, Dispatcher):
                self.call(stmt, obj)
            case MakeTuple():
                self.parts[stmt.result] = stmt.args
            case Item(index) if isinstance(stmt.args[0], Var):
                self.meet(stmt.results, (self.items(stmt.args[0])[index],))
            case _:
                self.plain(stmt)

    def meet(self, targets: tuple[Var, ...], sources: tuple[Operand, ...] | None) -> None:
        for target, source in zip(targets, sources or (), strict=False):
            for x, y in zip(self.memory(target), self.memory(source), strict=False):
                self.join(x, y)

    def plain(self, stmt: Stmt) -> None:
        e = effects(stmt)
        if e.opaque:
            return
        if e.aliases:
            for result in stmt.results:
                for a in [stmt.args[i] for i in e.writes] or stmt.args:
                    self.unify(result, a)
        self.write(stmt, e.writes)

    def write(self, stmt: Stmt, places: tuple[int, ...]) -> None:
        self.writes += [(a, stmt.loc) for i in places if i >= 0 for a in self.memory(stmt.args[i])]

    def call(self, stmt: Stmt, dispatcher: object) -> None:
        """A jitted function that is called: its own code is looked at, where it is given memory or gives some in several parts."""
        if not _concerns_memory(stmt):
            return
        b = Builder(Names(2_000_000), stmt.loc)
        try:
            call = split_call(stmt, dispatcher, b)
        except (UnsupportedError, NumbaError):
            call = None
        if call is None:
            return
        callee: Callee = call.op.unit  # type: ignore[union-attr, assignment]
        if callee in self.above:
            return
        known = sharing_of(callee.function, (*self.above, callee))
        for made in b.body:
            if made is not call:
                self.statement(made)
        self.write(call, tuple(known.written))
        for j, i in known.returned:
            self.unify(call.results[j], call.args[i])
        for j, k in known.twice:
            self.twice = True
            self.unify(call.results[j], call.results[k])
