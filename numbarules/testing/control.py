"""Branches, loops and errors for the random programs, as the front end makes them of Python."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ..ir.nodes import UNDEFINED, Apply, Const, For, If, Named, Operand, Raise, Region, Stmt, Var, While, const
from ..ir.rewrite import Builder
from ..ir.types import BOOL, FLOAT64, INT64, Array, is_float
from ..primitives import Failure
from .scope import Guarded, Known

if TYPE_CHECKING:
    from .programs import Generator

__all__ = ["branch", "for_loop", "raising", "while_loop"]

_MISFIT = Failure(ValueError, "never raised")


def branch(g: Generator) -> None:
    """An `If`; some of what one side defines is undefined behind the other."""
    condition = g.condition()
    sides = []
    for side in (True, False):
        extra = [made.known for made in g.guarded if made.condition is condition and made.side == side]
        sides.append(g.inside(g.rng.randint(0, 5), extra))
    results: list[Var] = []
    yields: tuple[list[Operand], list[Operand]] = ([], [])
    fresh: list[Known] = []
    for model in _wanted(g, g.rng.randint(0, 3)):
        r = g.names.var(model.operand.type, "r")
        for out, (_, end) in zip(yields, sides, strict=True):
            out.append(_pick(g, end, model))
        results.append(r)
        fresh.append(Known(r, model.shape))
    only = g.rng.random() < 0.4
    if only:
        side = g.rng.random() < 0.5
        end = sides[0 if side else 1][1][len(g.scope) :]
        defined = [k for k in end if isinstance(k.operand, Var)]
        if defined:
            k = g.recent(defined)
            r = g.names.var(k.operand.type, "only")
            yields[0 if side else 1].append(k.operand)
            yields[1 if side else 0].append(Const(r.type, UNDEFINED))
            results.append(r)
            g.guarded.append(Guarded(condition, side, Known(r, k.shape)))
    regions = tuple(b.region((), out) for (b, _), out in zip(sides, yields, strict=True))
    g.b.add(Stmt(If(), (condition,), tuple(results), regions))
    g.scope += fresh
    if only and g.guarded and g.rng.random() < 0.7 and g.left > 0:
        _again(g, g.guarded[-1])


def _again(g: Generator, made: Guarded) -> None:
    """Another branch on the same condition, which uses what the first one made."""
    if not any(k.operand is made.condition for k in g.scope) and isinstance(made.condition, Var):
        return
    builder, end = g.inside(g.rng.randint(1, 3), [made.known])
    value = _pick(g, end, Known(Const(FLOAT64, 0.0)))
    if is_float(made.known.operand.type):
        value = builder.one(Apply(Named(operator.mul)), [value, builder.cast(made.known.operand, FLOAT64)], FLOAT64)
    r = g.names.var(FLOAT64, "r")
    other = (g.b.child().region((), [_float_known(g)]), builder.region((), [value]))
    g.b.add(Stmt(If(), (made.condition,), (r,), other[::-1] if made.side else other))
    g.add(r)


def _float_known(g: Generator) -> Operand:
    """A float in scope, without a new statement."""
    return g.recent(g.known(FLOAT64)).operand  # type: ignore[no-any-return]


def for_loop(g: Generator) -> None:
    """A counted loop that carries values, some of them handed on to another parameter."""
    rng = g.rng
    n: Operand = const(rng.randint(0, 4)) if rng.random() < 0.6 else g.call(operator.sub, [g.below(5), const(1)], INT64)
    inits, params = _carried(g)
    k = g.names.var(INT64, "k")
    counter = rng.random() < 0.4  # an integer that moves by a constant, or by another rule
    if counter:
        inits.append(g.int())
        params.append(Known(g.names.var(INT64, "i")))
    builder, end = g.inside(rng.randint(1, 7), [*params, Known(k)])
    yields = _passed_on(g, end, params)
    if counter:
        step: list[Operand] = [params[-1].operand, const(rng.choice([1, 2, -1]))]
        moved: Operand = builder.one(Apply(Named(operator.add)), step, INT64, "i")
        if rng.random() < 0.3:
            moved = builder.one(Apply(Named(operator.mod)), [moved, const(5)], INT64, "i")
        yields[-1] = moved
    if isinstance(n, Const) and isinstance(n.value, int) and n.value > 0:
        _late(g, builder, end, inits, params, yields)
    results = [g.names.var(p.operand.type, "q") for p in params]
    g.b.add(Stmt(For(), (n, *inits), tuple(results), (builder.region([k, *(p.operand for p in params)], yields),)))  # type: ignore[list-item]
    g.scope += [Known(r, p.shape) for r, p in zip(results, params, strict=True)]


def while_loop(g: Generator) -> None:
    """A loop with one or two exits: it carries a count, and the number of the exit it left by."""
    rng = g.rng
    inits, params = _carried(g)
    count, door = g.names.var(INT64, "count"), g.names.var(INT64, "exit")
    limit = rng.choice([1, 2, 3, 4, 19, 35] if g.depth == 0 else [1, 2, 3])
    state = [*params, Known(count)]
    builder, end = g.inside(rng.randint(0, 3), state)
    following = builder.one(Apply(Named(operator.add)), [count, const(1)], INT64, "count")
    again, chosen = g.names.var(BOOL, "again"), g.names.var(INT64, "exit")
    # the first exit, in the middle of the iteration
    outer, g.b, saved, guarded = g.b, builder, g.scope, list(g.guarded)
    g.scope, g.depth = list(end), g.depth + 1
    leave = g.condition()
    builder2, end2 = g.inside(rng.randint(1, 5))
    middle, rest = _passed_on(g, end, params), _passed_on(g, end2, params)
    more = builder2.one(Apply(Named(operator.lt)), [following, const(limit)], BOOL, "more")
    stay, go = ([more, const(1), *rest], [const(False), const(0), *middle])
    results = [again, chosen, *(g.names.var(p.operand.type, "p") for p in params)]
    early = rng.random() < 0.8
    test: Operand = leave if early else g.call(operator.lt, [count, const(0)], BOOL)
    g.b.add(Stmt(If(), (test,), tuple(results), (g.b.child().region((), go), builder2.region((), stay))))
    builder, g.b, g.scope, g.depth, g.guarded = g.b, outer, saved, g.depth - 1, guarded
    yields: list[Operand] = [*results[2:]]
    _late(g, builder, end, inits, params, yields)
    region = builder.region([*(p.operand for p in params), count, door], [again, *yields, following, chosen])  # type: ignore[list-item]
    out = [g.names.var(p.operand.type, "q") for p in params]
    trips, left_by = g.names.var(INT64, "trips"), g.names.var(INT64, "exit")
    g.b.add(Stmt(While(), (*inits, const(0), const(7)), (*out, trips, left_by), (region,)))
    g.scope += [Known(r, p.shape) for r, p in zip(out, params, strict=True)]
    g.add(trips)
    c = g.call(operator.eq, [left_by, const(1)], BOOL)
    g.add(c)


def raising(g: Generator) -> None:
    """An error that is never raised: in one side of a branch, or in a loop without iterations."""
    c = g.call(operator.gt, [g.int(), const(10**6)], BOOL)
    fail = g.b.child()
    fail.add(Stmt(Raise(_MISFIT)))
    quiet, end = g.inside(g.rng.randint(0, 4))
    models = _wanted(g, g.rng.randint(0, 2))
    results = [g.names.var(m.operand.type, "r") for m in models]
    alive = quiet.region((), [_pick(g, end, m) for m in models])
    if g.rng.random() < 0.3:  # a loop that would raise in its first iteration
        k, n = g.names.var(INT64, "k"), g.call(operator.mod, [g.int(), const(1)], INT64)
        params = [g.names.var(m.operand.type, "p") for m in models]
        g.b.add(Stmt(For(), (n, *(m.operand for m in models)), tuple(results), (Region((k, *params), tuple(fail.body), None),)))
    else:
        g.b.add(Stmt(If(), (c,), tuple(results), (fail.region((), None), alive)))
    g.scope += [Known(r, m.shape) for r, m in zip(results, models, strict=True)]


def _carried(g: Generator) -> tuple[list[Operand], list[Known]]:
    """Initial values and parameters of a loop; arrays often come in pairs, to be swapped."""
    models = _wanted(g, g.rng.randint(0, 3))
    if g.rng.random() < 0.25:
        k = g.recent(g.arrays())
        models += [k, Known(_pick(g, g.scope, k), k.shape)]
    return [m.operand for m in models], [Known(g.names.var(m.operand.type, "p"), m.shape) for m in models]


def _passed_on(g: Generator, end: list[Known], params: list[Known]) -> list[Operand]:
    """What an iteration hands to the next: something new, the same, or another parameter of the type."""
    out: list[Operand] = []
    for p in params:
        same = [q for q in params if q is not p and q.operand.type == p.operand.type and q.shape == p.shape]
        if same and g.rng.random() < 0.6:
            out.append(g.rng.choice(same).operand)
        else:
            out.append(_pick(g, end, p))
    return out


def _late(g: Generator, builder: Builder, end: list[Known], inits: list[Operand], params: list[Known], yields: list[Operand]) -> None:
    """A value that only the loop defines: undefined before its first iteration."""
    k = g.recent(end)
    if isinstance(k.operand, Var) and g.rng.random() < 0.3:
        inits.append(Const(k.operand.type, UNDEFINED))
        params.append(Known(g.names.var(k.operand.type, "late"), k.shape))
        yields.append(k.operand)


def _wanted(g: Generator, count: int) -> list[Known]:
    """Values of the scope whose types become results of a region."""
    out = []
    for _ in range(count):
        kind = g.rng.random()
        if kind < 0.35:
            found = g.arrays()
        elif kind < 0.5:
            found = g.known(INT64)
        else:
            found = [k for k in g.scope if is_float(k.operand.type)]
        out.append(g.recent(found))
    return out


def _pick(g: Generator, scope: list[Known], model: Known) -> Operand:
    """A value of the model's type and shape."""
    found = [k for k in scope if k.operand.type == model.operand.type and k.shape == model.shape]
    if not found:
        return model.operand
    if isinstance(model.operand.type, Array):
        return g.rng.choice(found).operand
    return g.recent(found).operand  # type: ignore[no-any-return]
