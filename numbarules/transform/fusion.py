"""Loops that only sum independent terms: forward and reverse in one pass over the data.

The reverse of an iteration can follow its forward half at once where nothing that comes later has a say in it: the
cotangents of the loop's results are known before it starts (the results are sums, whose terms share one cotangent), the
iterations hand nothing else on, and what they read is never written again. Then no record is needed, and the data is
read once instead of twice.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING

from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..ir.nodes import AddTo, Apply, Call, Const, For, If, Load, Named, Operand, Raise, Region, Rule, Stmt, Store, Var, walk
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
    moved = _early([bar for bar in bars.values() if bar is not None], b.body, _known_before(tree, node))
    if moved is None:
        return False
    node.before += moved
    b.body[:] = [s for s in b.body if s not in moved]
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
    uses = _uses(region)
    out: list[int] = []
    for j, (p, y, result) in enumerate(zip(region.params[1:], region.yields or (), loop.results, strict=True)):
        if is_float(p.type) and (sweep.active(p) or sweep.active(result)):
            if not _is_sum(region, p, y, uses):
                return None
            out.append(j)
    return out


def _uses(region: Region) -> Counter[Operand]:
    """How often each variable is read in a region, what it and its inner regions yield included."""
    count: Counter[Operand] = Counter(region.yields or ())
    for s in walk(region):
        count.update(s.args)
        for r in s.regions:
            count.update(r.yields or ())
    return count


def _is_sum(region: Region, p: Var, y: Operand, uses: Counter[Operand]) -> bool:
    """True where `y` is `p` plus and minus terms, and `p` and each partial sum is read once: by the next addition.

    Whatever else read a partial sum would depend on the order of the iterations, and send cotangents back through it.
    """
    made = {r: s for s in region.body for r in s.results}
    at = y
    while at is not p:
        s = made.get(at) if isinstance(at, Var) else None
        if s is None or uses[at] != 1:
            return False
        if s.regions:
            return _is_handed_on(s, p, s.results.index(at), uses)
        if not isinstance(s.op, Apply) or not isinstance(s.op.callee, Named) or s.op.callee.obj not in (operator.add, operator.sub):
            return False
        first, second = s.args
        at = second if s.op.callee.obj is operator.add and not _depends(first, p, made) else first
    return uses[p] == 1


def _is_handed_on(s: Stmt, p: Var, i: int, uses: Counter[Operand]) -> bool:
    """True where result `i` of a statement with regions is `p` plus terms, and `p` is read nowhere else."""
    if isinstance(s.op, For):
        (inner,) = s.regions
        if s.args[1 + i] is not p or uses[p] != 1 or inner.yields is None:
            return False
        return _is_sum(inner, inner.params[1 + i], inner.yields[i], uses)
    if isinstance(s.op, If):
        sides = [r for r in s.regions if r.yields is not None]
        counts = [_uses(r) for r in sides]
        return uses[p] == len(sides) and all(_is_sum(r, p, (r.yields or ())[i], c) for r, c in zip(sides, counts, strict=True))
    return False


def _depends(v: Operand, p: Var, made: dict[Var, Stmt]) -> bool:
    """True where `v` is computed from `p`."""
    todo, seen = [v], set()
    while todo:
        at = todo.pop()
        if at is p:
            return True
        s = made.get(at) if isinstance(at, Var) else None
        if s is not None and id(s) not in seen:
            seen.add(id(s))
            todo += [*s.args, *(free for r in s.regions for free in free_vars(r))]
    return False


def _known_before(tree: Tree, node: Node) -> set[Var]:
    """The variables that are defined in front of a node."""
    known: set[Var] = set(tree.params)
    for other in tree.nodes:
        if other is node:
            return known
        known.update(other.results)
    raise AssertionError("the loop is not in its tree")


def _early(bars: list[Operand], body: list[Stmt], known: set[Var]) -> list[Stmt] | None:
    """The statements of the reverse sweep that compute cotangents, where all they need is `known`; else None."""
    made = {r: s for s in body for r in s.results}
    needed: dict[Stmt, None] = {}

    def collect(v: Operand) -> bool:
        if isinstance(v, Const) or v in known:
            return True
        s = made.get(v)
        if s is None or s.regions or not effects(s).removable or effects(s).reads:
            return False
        if not all(map(collect, s.args)):
            return False
        needed.setdefault(s)
        return True

    return list(needed) if all(map(collect, bars)) else None
