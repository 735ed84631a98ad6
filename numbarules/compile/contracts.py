"""What a rule's value half does with the memory of its arguments, as far as its code shows it.

Where `analysis.alias` assumes the worst of unknown code, this assumes nothing: a rule is refused for what it is seen to do. Jitted
functions that it calls are looked into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._numba import Dispatcher, NumbaError
from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Attribute, Const, For, Function, If, Loc, Method, Named, Operand, Region, Stmt, Var, While
from ..ir.rewrite import Builder, Names
from ..ir.types import Array, Opaque
from .calls import Callee, split_call
from .methods import method_of

__all__ = ["Sharing", "sharing_of"]


@dataclass(frozen=True, slots=True)
class Sharing:
    """By leaves: `written` are the parameters that a function writes into, and where; `returned` the pairs (result, parameter) that may
    share memory."""

    written: dict[int, Loc | None]
    returned: frozenset[tuple[int, int]]


def sharing_of(function: Function, above: tuple[Callee, ...] = ()) -> Sharing:
    """What a function is seen to do with the memory of its parameters; `above` are the callers, recursion ends there."""
    walk = _Walk(above)
    walk.region(function.region)
    params = {i: walk.of(p) for i, p in enumerate(function.region.params) if holds_memory(p.type)}
    written = {i: loc for v, loc in walk.writes for i, cls in params.items() if walk.of(v) is cls}
    returned = {
        (j, i)
        for j, y in enumerate(function.region.yields or ())
        if isinstance(y, Var) and holds_memory(y.type)
        for i, cls in params.items()
        if walk.of(y) is cls
    }
    return Sharing(written, frozenset(returned))


def changes_or_shares(stmt: Stmt) -> str | None:
    """What a call is known to do that no rule can stand for, in words; None where nothing is known."""
    e = effects(stmt)
    if e.writes:
        return "writes into an argument"
    if not any(map(_shared, stmt.args)):
        return None
    code = _own_code(stmt)
    if code is None:
        views = e.aliases and not e.opaque and any(map(_shared, stmt.results))
        return "may return a view of an argument" if views else None
    walk = _Walk(())
    walk.call(stmt, code)
    if walk.writes:
        return "writes into an argument"
    if any(walk.of(r) is walk.of(a) for r in stmt.results for a in stmt.args if isinstance(a, Var) and _shared(r) and _shared(a)):
        return "may return memory of an argument"
    return None


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


def _shared(v: Operand) -> bool:
    return holds_memory(v.type) and not (isinstance(v.type, Opaque) and v.type.constant)


@dataclass(slots=True)
class _Walk:
    above: tuple[Callee, ...]
    parent: dict[Var, Var] = field(default_factory=dict)
    writes: list[tuple[Var, Loc | None]] = field(default_factory=list)

    def of(self, v: Var) -> Var:
        while v in self.parent:
            v = self.parent[v]
        return v

    def unify(self, a: Operand, b: Operand) -> None:
        if isinstance(a, Const) or isinstance(b, Const) or not (holds_memory(a.type) and holds_memory(b.type)):
            return
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
            case _:
                self.plain(stmt)

    def meet(self, targets: tuple[Var, ...], sources: tuple[Operand, ...] | None) -> None:
        for target, source in zip(targets, sources or (), strict=False):
            self.unify(target, source)

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
        self.writes += [(a, stmt.loc) for a in (stmt.args[i] for i in places if i >= 0) if isinstance(a, Var)]

    def call(self, stmt: Stmt, dispatcher: object) -> None:
        """A jitted function that is called: its own code is looked at, where it is given memory at all."""
        if not any(map(_shared, stmt.args)):
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
                self.plain(made)
        self.write(call, tuple(known.written))
        for j, i in known.returned:
            self.unify(call.results[j], call.args[i])
