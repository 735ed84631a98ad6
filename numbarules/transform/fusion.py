"""Loops that only sum independent terms: forward and reverse in one pass over the data.

The reverse of an iteration can follow its forward half at once where nothing that comes later has a say in it: the
cotangents of the loop's results are known before it starts (the results are sums, whose terms share one cotangent), the
iterations hand nothing else on, and what they read is never written again. Then no record is needed, and the data is
read once instead of twice.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..ir.nodes import AddTo, Apply, Call, Const, For, Load, Named, Operand, Raise, Region, Rule, Stmt, Store, Var, walk
from ..ir.rewrite import Builder, free_vars
from ..ir.types import is_float
from .adjoints import Adjoints, zero
from .tree import Node, Tree

if TYPE_CHECKING:
    from .reverse import Reverse

__all__ = ["fuse"]


def fuse(sweep: Reverse, tree: Tree, node: Node, adj: Adjoints, b: Builder) -> bool:
    """Puts the reverse of a counted loop into its forward loop and returns True, where that is allowed."""
    stmt = node.primal
    assert stmt is not None
    (region,) = stmt.regions
    if region.yields is None or not _independent(sweep, stmt):
        return False
    sums = _sums(sweep, stmt)
    if sums is None:
        return False
    bars = {j: adj.get(stmt.results[j]) for j in sums}
    if not any(bars.values()):
        return False
    known = _known_before(tree, node)
    head = _Hoist(b.body, known)
    if not all(head.can(bar) for bar in bars.values() if bar is not None):
        return False
    node.before += head.moved
    for j in sums:
        adj.take(stmt.results[j])
    _both_ways(sweep, node, region, bars, adj, b)
    for j in sums:  # a sum hands its cotangent on to what it starts from
        if sweep.active(stmt.args[1 + j]):
            adj.add(stmt.args[1 + j], bars[j], b)
    return True


def _both_ways(sweep: Reverse, node: Node, region: Region, bars: dict[int, Operand | None], adj: Adjoints, b: Builder) -> None:
    """Adds the reverse of an iteration at the end of it; cotangents of outer values are carried along as sums."""
    (body,) = node.trees
    inner, env = b.child(), Adjoints()
    outer = [v for v in free_vars(region) if is_float(v.type) and sweep.active(v)]
    totals = {v: sweep.names.var(v.type, f"d_{v.name}") for v in outer}
    for v, total in totals.items():
        env.set(v, total)
    env.summed = set(totals)
    for j, bar in bars.items():
        y = (region.yields or ())[j]
        if sweep.active(y):
            env.add(y, bar, inner)
    sweep.region(body, env, inner, joint=True)
    body.tail += inner.body
    assert body.yields is not None
    for v, total in totals.items():
        value = env.get(v)
        if value is None or value is total:
            continue
        final = sweep.names.var(v.type, f"d_{v.name}")
        node.args.append(zero(v.type))
        body.params.append(total)
        body.yields.append(value)
        node.results.append(final)
        adj.add(v, final, b)


def _independent(sweep: Reverse, loop: Stmt) -> bool:
    """True where iterations touch no memory that another one, or anything later, writes."""
    aliases = sweep.active.aliases
    for s in walk(loop.regions[0]):
        match s.op:
            case Load():
                if sweep.forward.has_shadow(s.args[0]) and not _local(sweep, s.args[0], loop) and aliases.clobbered(s.args[0], s):
                    return False
            case Store() | AddTo():
                if sweep.active(s.args[0]) and not _local(sweep, s.args[0], loop):
                    return False
            case Call() | Rule() | Raise():
                if not isinstance(s.op, Raise) and any(map(sweep.active, (*s.args, *s.results))):
                    return False
            case For():
                if s.regions[0].yields is None:
                    return False
            case _ if not s.regions:
                e = effects(s)
                if (e.writes or e.opaque) and any(sweep.active(a) for a in s.args if holds_memory(a.type)):
                    return False
    return all(not (holds_memory(p.type) and sweep.active(p)) for p in loop.regions[0].params)


def _local(sweep: Reverse, array: Operand, loop: Stmt) -> bool:
    """True for memory that each iteration allocates for itself."""
    aliases = sweep.active.aliases
    cls = aliases.of(array)
    if cls is None or cls in aliases.merged:
        return False
    made = aliases.allocations.get(cls, [])
    return len(made) == 1 and loop in aliases.loops[id(made[0])]


def _sums(sweep: Reverse, loop: Stmt) -> list[int] | None:
    """The carried values that are sums of terms; None where an active one is anything else."""
    (region,) = loop.regions
    uses: dict[Var, int] = {}
    for s in walk(region):
        for a in s.args:
            if isinstance(a, Var):
                uses[a] = uses.get(a, 0) + 1
        for r in s.regions:
            for y in r.yields or ():
                if isinstance(y, Var):
                    uses[y] = uses.get(y, 0) + 1
    out: list[int] = []
    for j, (p, y, result) in enumerate(zip(region.params[1:], region.yields or (), loop.results, strict=True)):
        if not is_float(p.type) or not (sweep.active(p) or sweep.active(result)):
            continue
        if not _is_sum(region, p, y, uses):
            return None
        out.append(j)
    return out


def _is_sum(region: Region, p: Var, y: Operand, uses: dict[Var, int]) -> bool:
    """True where `y` is `p` plus terms that do not depend on `p`, and nobody else reads `p` or a partial sum."""
    made = {s.results[0]: s for s in region.body if len(s.results) == 1}
    at: Operand = y
    while at is not p:
        s = made.get(at) if isinstance(at, Var) else None
        if s is None:
            return _handed_through(region, p, at, uses)
        if not isinstance(s.op, Apply) or not isinstance(s.op.callee, Named) or s.op.callee.obj not in (operator.add, operator.sub):
            return _handed_through(region, p, at, uses)
        if at is not y and uses.get(at, 0) != 1:  # type: ignore[arg-type]
            return False
        left = s.args[0]
        if s.op.callee.obj is operator.add and not _leads_to(made, left, p, region):
            left = s.args[1]
        at = left
    return uses.get(p, 0) == 1


def _leads_to(made: dict[Var, Stmt], at: Operand, p: Var, region: Region) -> bool:
    """True where `p` goes into `at` through additions, or through statements that hold regions."""
    while at is not p:
        s = made.get(at) if isinstance(at, Var) else None
        if s is None:
            return any(at in s.results for s in region.body if s.regions) and any(p in free_vars(r) or p in s.args for s in region.body if at in s.results for r in s.regions)
        if s.regions:
            return any(p in free_vars(r) for r in s.regions) or p in s.args
        if not isinstance(s.op, Apply) or not isinstance(s.op.callee, Named) or s.op.callee.obj not in (operator.add, operator.sub):
            return False
        at = s.args[0]
    return True


def _handed_through(region: Region, p: Var, at: Operand, uses: dict[Var, int]) -> bool:
    """True where `at` is the result of an inner statement that itself only adds terms to `p`."""
    for s in region.body:
        if at in s.results and s.regions:
            i = s.results.index(at)  # type: ignore[arg-type]
            if isinstance(s.op, For):
                (inner,) = s.regions
                q = inner.params[1 + i]
                return s.args[1 + i] is p and uses.get(p, 0) == 1 and inner.yields is not None and _is_sum(inner, q, inner.yields[i], uses)
            if not isinstance(s.op, For) and s.args and len(s.regions) == 2:
                return all(_branch_sum(r, p, i) for r in s.regions)
    return False


def _branch_sum(region: Region, p: Var, i: int) -> bool:
    if region.yields is None:
        return True
    y = region.yields[i]
    inner: dict[Var, int] = {}
    for s in walk(region):
        for a in s.args:
            if isinstance(a, Var):
                inner[a] = inner.get(a, 0) + 1
    others = sum(1 for k, z in enumerate(region.yields) if k != i and z is p)
    if others:
        return False
    return (y is p and p not in inner) or _is_sum(Region((p,), region.body, (y,)), p, y, inner)


def _known_before(tree: Tree, node: Node) -> set[Var]:
    """The variables that are defined in front of a node."""
    known: set[Var] = set(tree.params)
    for other in tree.nodes:
        if other is node:
            return known
        known.update(other.results)
    raise AssertionError("the loop is not in its tree")


class _Hoist:
    """Moves the computation of cotangents from the reverse sweep to the front of the loop, where they depend on nothing behind."""

    def __init__(self, body: list[Stmt], known: set[Var]) -> None:
        self.made = {r: s for s in body for r in s.results}
        self.body = body
        self.known = known
        self.moved: list[Stmt] = []

    def can(self, bar: Operand) -> bool:
        needed: list[Stmt] = []
        if not self._collect(bar, needed):
            return False
        for s in needed:
            if s not in self.moved:
                self.moved.append(s)
        for s in needed:
            if s in self.body:
                self.body.remove(s)
        return True

    def _collect(self, v: Operand, needed: list[Stmt]) -> bool:
        if isinstance(v, Const) or v in self.known:
            return True
        s = self.made.get(v)
        if s is None or s.regions or not effects(s).removable or effects(s).reads:
            return False
        if all(self._collect(a, needed) for a in s.args):
            if s not in needed:
                needed.append(s)
            return True
        return False
