"""Memory traffic: equal computations once, invariant ones outside their loop, sums into one place in a register.

LLVM does the like for scalars. For memory it needs to know what may alias, and only our analysis knows that.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ..analysis.alias import Aliases, aliases_of, holds_memory
from ..analysis.effects import effects
from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Apply,
    Cast,
    Const,
    For,
    Get,
    If,
    Item,
    Load,
    Named,
    Offset,
    Operand,
    Raise,
    Region,
    Shape,
    Stmt,
    Store,
    Var,
    View,
    While,
    called,
    const,
    walk,
)
from ..ir.rewrite import Builder, Names, free_vars
from ..ir.types import BOOL, Array, Scalar, is_float
from ..primitives import accumulate
from .adjoints import zero

__all__ = ["optimise"]


def optimise(region: Region, names: Names, hoist_loads: bool = True, groups: Iterable[tuple[Var, Var]] = ()) -> Region:
    """`region` with common subexpressions shared, `a[i] = a[i] + v` as one addition, and invariant work out of loops."""
    aliases = aliases_of(region, groups)
    region = _Share(aliases).region(region, {}, {})
    region = _Additions(aliases).region(region)
    return _Hoist(aliases, names, hoist_loads).region(region)


# ---------------------------------------------------------------------------------------------- common subexpressions


class _Share:
    """Numbers values: a pure operation or a load that was done before, with nothing written in between, is not done again."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases

    def region(self, region: Region, known: dict[Any, Var], env: dict[Var, Operand]) -> Region:
        body: list[Stmt] = []
        for stmt in region.body:
            args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in stmt.args)
            if stmt.regions:
                written = _written(stmt.regions, self.aliases)
                inner = {k: v for k, v in known.items() if not _killed(k, written)} if not isinstance(stmt.op, If) else dict(known)
                regions = tuple(self.region(r, dict(inner), dict(env)) for r in stmt.regions)
                body.append(Stmt(stmt.op, args, stmt.results, regions, stmt.loc))
                self.kill(known, written)
                continue
            key = self.key(stmt, args)
            if key is not None and key in known:
                env[stmt.result] = known[key]
                continue
            body.append(Stmt(stmt.op, args, stmt.results, (), stmt.loc))
            self.kill(known, _written_by(stmt, self.aliases))
            if key is not None:
                known[key] = stmt.result
            if isinstance(stmt.op, Store) and args[-1].type == getattr(args[0].type, "dtype", None) and isinstance(args[-1], Var):
                known[self.load_key(Load(stmt.op.wrap), args[:-1])] = args[-1]
        yields = None if region.yields is None else tuple(env.get(y, y) if isinstance(y, Var) else y for y in region.yields)
        return Region(region.params, tuple(body), yields)

    def key(self, stmt: Stmt, args: tuple[Operand, ...]) -> Any:
        if len(stmt.results) != 1 or not effects(stmt).removable:
            return None
        match stmt.op:
            case Load():
                return self.load_key(stmt.op, args)
            case Cast() if holds_memory(stmt.result.type):
                return None
            case Cast() | Shape() | Offset() | Item() | View():
                return ("pure", stmt.op, stmt.result.type, *map(_identity, args))
            case Apply(Named()) if all(isinstance(a.type, Scalar) for a in args) and isinstance(stmt.result.type, Scalar):
                return ("pure", stmt.op, stmt.result.type, *map(_identity, args))
        return None

    def load_key(self, op: Load, args: tuple[Operand, ...]) -> Any:
        return ("load", self.aliases.of(args[0]), op, *map(_identity, args))

    def kill(self, known: dict[Any, Var], written: Any) -> None:
        if not written:
            return
        for k in [k for k in known if _killed(k, written)]:
            del known[k]


_EVERYTHING = object()


def _loads(stmt: Stmt) -> bool:
    return isinstance(stmt.op, Load | Get) or any(isinstance(s.op, Load | Get) for r in stmt.regions for s in walk(r))


def _raises(stmt: Stmt) -> bool:
    return isinstance(stmt.op, Raise) or any(isinstance(s.op, Raise) for r in stmt.regions for s in walk(r))


def _uses(stmt: Stmt) -> list[Var]:
    """The variables that a statement reads, inner regions included."""
    return [a for a in stmt.args if isinstance(a, Var)] + [v for r in stmt.regions for v in free_vars(r)]


def _killed(key: Any, written: Any) -> bool:
    return key[0] == "load" and (written is _EVERYTHING or key[1] in written)


def _written_by(stmt: Stmt, aliases: Aliases) -> Any:
    e = effects(stmt)
    if e.opaque:
        return _EVERYTHING
    return {aliases.of(stmt.args[i]) for i in e.writes if i >= 0}


def _written(regions: tuple[Region, ...], aliases: Aliases) -> Any:
    out: set[Any] = set()
    for r in regions:
        for s in walk(r):
            if s.regions:
                continue
            w = _written_by(s, aliases)
            if w is _EVERYTHING:
                return w
            out |= w
    return out


def _identity(a: Operand) -> Any:
    """What tells an operand from others."""
    if not isinstance(a, Const):
        return a
    if isinstance(a.value, int | float | str | None):
        return (a.type, type(a.value), repr(a.value))
    return id(a.value)


# ---------------------------------------------------------------------------------------------- additions


class _Additions:
    """`t = a[i]; ...; a[i] = t + v` with nothing done to `a` in between is `a[i] += v`."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases

    def region(self, region: Region) -> Region:
        body = [Stmt(s.op, s.args, s.results, tuple(map(self.region, s.regions)), s.loc) if s.regions else s for s in region.body]
        made = {r: i for i, s in enumerate(body) for r in s.results}
        for i, stmt in enumerate(body):
            if isinstance(stmt.op, Store):
                body[i] = self.addition(stmt, i, body, made) or stmt
        return Region(region.params, tuple(body), region.yields)

    def addition(self, store: Stmt, at: int, body: list[Stmt], made: dict[Var, int]) -> Stmt | None:
        array, *index, value = store.args
        where = made.get(value) if isinstance(value, Var) else None
        if where is None:
            return None
        total = body[where]
        if called(total) is not operator.add or not is_float(total.result.type):
            return None
        for old, new in (total.args, total.args[::-1]):
            start = made.get(old) if isinstance(old, Var) else None
            if start is None or new.type != total.result.type or (isinstance(new, Var) and new is old):
                continue
            load = body[start]
            if not isinstance(load.op, Load) or load.op.wrap != store.op.wrap:  # type: ignore[union-attr]
                continue
            if list(map(_identity, load.args)) != list(map(_identity, [array, *index])):
                continue
            cls = self.aliases.of(array)
            between = body[start + 1 : at]
            written = _written((Region((), tuple(between), ()),), self.aliases)
            if written is not _EVERYTHING and cls not in written:
                return Stmt(AddTo(store.op.wrap), (array, *index, new), (), (), store.loc)  # type: ignore[union-attr]
        return None


# ---------------------------------------------------------------------------------------------- loops


class _Hoist:
    """Moves invariant work in front of its loop, and sums into an invariant place behind it, innermost loops first."""

    def __init__(self, aliases: Aliases, names: Names, loads: bool) -> None:
        self.aliases = aliases
        self.names = names
        self.loads = loads

    def region(self, region: Region) -> Region:
        body: list[Stmt] = []
        for stmt in region.body:
            if stmt.regions:
                stmt = Stmt(stmt.op, stmt.args, stmt.results, tuple(map(self.region, stmt.regions)), stmt.loc)
            if isinstance(stmt.op, For | While) and stmt.regions[0].yields is not None:
                body += self.loop(stmt)
            else:
                body.append(stmt)
        return Region(region.params, tuple(body), region.yields)

    def loop(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt.op, For) and isinstance(stmt.args[0], Const) and stmt.args[0].value <= 0:  # type: ignore[operator]
            return [stmt]
        (region,) = stmt.regions
        inside = set(region.params)
        for s in walk(region):
            inside.update(s.results, *(r.params for r in s.regions))
        written = _written(stmt.regions, self.aliases)
        before: list[Stmt] = []
        kept: list[Stmt] = []
        checked = False  # whether a test that raises stands in front: it may be what makes a load safe
        for s in region.body:
            if any(v in inside for v in _uses(s)) or not self.movable(s, written) or (checked and _loads(s)):
                kept.append(s)
                checked = checked or _raises(s)
                continue
            inside -= set(s.results)
            before += self.guarded(stmt, s) if isinstance(s.op, Load | Get) else [s]
        loop = Stmt(stmt.op, stmt.args, stmt.results, (Region(region.params, tuple(kept), region.yields),), stmt.loc)
        loop, after = self.sums(loop, inside)
        return [*before, loop, *after]

    def movable(self, s: Stmt, written: Any) -> bool:
        if s.regions:
            return isinstance(s.op, If) and self.guard(s, written)
        if not effects(s).removable or len(s.results) != 1:
            return False
        match s.op:
            case Load():
                return self.loads and written is not _EVERYTHING and self.aliases.of(s.args[0]) not in written
            case Get():
                return written is not _EVERYTHING and self.aliases.of(s.args[0]) not in written and None not in written
            case Shape() | Offset() | Item():
                return True
            case Cast():
                return not holds_memory(s.result.type)
            case View():
                return True
            case Apply(Named()):
                return isinstance(s.result.type, Scalar) and all(isinstance(a.type, Scalar) for a in s.args)
        return False

    def guard(self, s: Stmt, written: Any) -> bool:
        """True for the guarded load of an inner loop."""
        then, orelse = s.regions
        if len(then.body) != 1 or orelse.body or len(s.results) != 1:
            return False
        (load,) = then.body
        return isinstance(load.op, Load | Get) and self.movable(load, written)

    def guarded(self, loop: Stmt, s: Stmt) -> list[Stmt]:
        """A load in front of a loop that may not run at all: done only if it runs."""
        if isinstance(loop.op, While):
            return [s]
        n = loop.args[0]
        if isinstance(n, Const):
            return [s]
        runs = self.names.var(BOOL, "runs")
        value = self.names.var(s.result.type, s.result.name)
        load = Stmt(s.op, s.args, (value,), (), s.loc)
        t = s.result.type
        nothing: Operand = zero(t) if is_float(t) else Const(t, 0 if isinstance(t, Scalar) else UNDEFINED)
        test = Stmt(Apply(Named(operator.gt)), (n, const(0)), (runs,), (), s.loc)
        return [test, Stmt(If(), (runs,), (s.result,), (Region((), (load,), (value,)), Region((), (), (nothing,))), s.loc)]

    def sums(self, loop: Stmt, inside: set[Var]) -> tuple[Stmt, list[Stmt]]:
        """The loop with additions into an invariant element carried as a sum, and the additions that follow it."""
        if not isinstance(loop.op, For):
            return loop, []
        (region,) = loop.regions
        assert region.yields is not None
        touched: dict[Any, int] = {}
        for s in walk(region):
            if not s.regions and not isinstance(s.op, AddTo):
                e = effects(s)
                if e.opaque:
                    return loop, []
                if e.reads or e.writes:
                    for a in s.args:
                        if isinstance(a, Var) and holds_memory(a.type):
                            touched[self.aliases.of(a)] = 1
        body: list[Stmt] = []
        after: list[Stmt] = []
        params, inits, yields, results = [], [], [], []
        for s in region.body:
            moves = any(isinstance(a, Var) and a in inside for a in s.args[:-1])
            fixed = isinstance(s.op, AddTo) and s.op.cotangent and not moves and self.aliases.of(s.args[0]) not in touched
            if not fixed:
                body.append(s)
                continue
            t = s.args[0].type
            assert isinstance(t, Array)
            param, total, result = (self.names.var(t.dtype, "sum") for _ in range(3))
            body.append(Stmt(Apply(Named(accumulate)), (param, s.args[-1]), (total,), (), s.loc))
            params.append(param)
            inits.append(zero(t.dtype))
            yields.append(total)
            results.append(result)
            after.append(Stmt(s.op, (*s.args[:-1], result), (), (), s.loc))
        if not after:
            return loop, []
        new = Region((*region.params, *params), tuple(body), (*region.yields, *yields))
        loop = Stmt(loop.op, (*loop.args, *inits), (*loop.results, *results), (new,), loop.loc)
        n = loop.args[0]
        if isinstance(n, Const):
            return loop, after
        b = Builder(self.names, loop.loc)
        runs = b.one(Apply(Named(operator.gt)), [n, const(0)], BOOL, "runs")
        b.add(Stmt(If(), (runs,), (), (Region((), tuple(after), ()), Region((), (), ())), loop.loc))
        return loop, b.body
