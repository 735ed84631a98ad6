"""Faults to plant into the engine, each a context in which one analysis, pass or reverse row is wrong.

The generators must catch every one of them: it is what shows that they look everywhere.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from numbarules.analysis import activity, alias, effects, signs
from numbarules.compile.body import Body
from numbarules.ir.nodes import AddTo, Const, Extend, For, Get, If, Load, Region, ShadowLike, Stmt, Store, View, While, const
from numbarules.ir.rewrite import Builder
from numbarules.transform import (
    adjoints,
    arithmetic,
    elementwise,
    fusion,
    lower,
    optimise,
    residuals,
    reverse,
    simplify,
    snapshots,
    windows,
)
from numbarules.transform.adjoints import Adjoints
from numbarules.transform.forward import Forward
from numbarules.transform.reverse import Reverse

__all__ = ["FAULTS"]

Fault = Callable[[], AbstractContextManager[Any]]


def instead(owner: Any, name: str, wrong: Callable[..., Any]) -> Fault:
    """`owner.name` replaced by `wrong`, whose first argument is the right one."""
    right = vars(owner)[name]
    return lambda: mock.patch.object(owner, name, lambda *args, **kw: wrong(right, *args, **kw))


def row(f: object, wrong: Callable[..., Any]) -> Fault:
    """The reverse row of an arithmetic operator."""
    right = arithmetic.ARITHMETIC[f]
    return lambda: mock.patch.dict(arithmetic.ARITHMETIC, {f: lambda *args: wrong(right, *args)})


def built(wrong: Callable[[Any, list[Any], str], list[Any]]) -> Fault:
    """`Builder.one` with other arguments: `wrong(op, args, hint)`."""

    def one(right: Any, self: Builder, op: Any, args: Any, type: Any, hint: str = "v") -> Any:
        return right(self, op, wrong(op, list(args), hint), type, hint)

    return instead(Builder, "one", one)


def without(op: type, then: Callable[[Any], Any] = lambda stmt: None) -> Callable[..., Any]:
    """A reverse row that forgets to emit statements of `op`, or emits another one in their place."""

    def wrong(right: Any, self: Any, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        inner = b.child()
        right(self, stmt, adj, inner)
        for s in inner.body:
            if not isinstance(s.op, op):
                b.add(s)
            elif (other := then(s)) is not None:
                b.add(other)

    return wrong


def _no_flow(*ops: type) -> Fault:
    return instead(activity._Flow, "flow", lambda right, self, stmt: ([], []) if isinstance(stmt.op, ops) else right(self, stmt))


def _edges(*ops: type) -> Fault:
    return instead(activity, "_edges", lambda right, stmt: [] if isinstance(stmt.op, ops) else right(stmt))


def _first_edges_only(right: Any, stmt: Stmt) -> list[Any]:
    """A loop whose yields do not come back as parameters."""
    if not isinstance(stmt.op, For | While):
        return list(right(stmt))
    params = set(stmt.regions[0].params)
    inits = set(map(id, stmt.args))
    return [(a, b) for a, b in right(stmt) if b not in params or id(a) in inits]


def _only_later(right: Any, self: Any, v: Any, stmt: Stmt) -> bool:
    """Writes of the next iteration are forgotten."""
    return any(w.order > self.order[id(stmt)] for w in self.writes.get(self.of(v), ()))


def _only_around(right: Any, self: Any, v: Any, stmt: Stmt) -> bool:
    """Writes behind the loops of a load are forgotten."""
    return any(s in self.loops[id(stmt)] for w in self.writes.get(self.of(v), ()) for s in w.loops)


def _no_alias(op: type) -> Fault:
    def wrong(right: Any, stmt: Stmt) -> Any:
        found = right(stmt)
        return replace(found, aliases=False) if isinstance(stmt.op, op) else found

    return instead(alias, "effects", wrong)


def _overwrite(right: Any, self: Adjoints, v: Any, value: Any, b: Builder) -> None:
    self.take(v)
    right(self, v, value, b)


def _half(right: Any, self: Reverse, node: Any, i: int, inner: Builder, yields: Any = ()) -> Region:
    """The cotangents of the second side of a branch are lost."""
    zeros = tuple(adjoints.zero(y.type) for y in yields) if i else yields
    return right(self, node, i, inner, zeros)


def _stores_zero(right: Any, self: Reverse, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
    """A store is reversed as if it had stored a constant."""
    right(self, Stmt(stmt.op, (*stmt.args[:-1], adjoints.zero(stmt.args[-1].type))), adj, b)


def _square_for_identity(right: Any, stmt: Stmt, ybar: Any, b: Builder) -> Any:
    """A square is reversed as if it were its argument."""
    exponent = stmt.args[1]
    return [ybar, None] if isinstance(exponent, Const) and exponent.value == 2 else right(stmt, ybar, b)


def _no_shadow_view(right: Any, self: Forward, stmt: Stmt, nodes: list[Any]) -> None:
    """The shadow of a view is an array of its own."""
    start = len(nodes)
    right(self, stmt, nodes)
    if isinstance(stmt.op, View):
        for node in nodes[start:]:
            if isinstance(node.op, View) and node.primal is None:
                node.op, node.args = ShadowLike(), [self.record, stmt.result]


def _no_swap(right: Any, self: Forward, stmt: Stmt, nodes: list[Any]) -> None:
    """The shadows of buffers are not swapped with them."""
    right(self, stmt, nodes)
    (tree,), skip = nodes[-1].trees, 1 if isinstance(stmt.op, For) else 0
    n = len(stmt.regions[0].params)
    if tree.yields is not None:
        tree.yields[n - skip + (1 - skip) :] = tree.params[n:]


def _lost_sums(right: Any, *args: Any) -> Any:
    inner, _, moved = right(*args)
    return inner, [], moved


def _lost_carried(right: Any, *args: Any) -> Any:
    inner, sums, moved = right(*args)
    return inner, sums, [(j, bar, adjoints.zero(bar.type)) for j, bar, _ in moved]


def _wrong_side(right: Any, self: Any, stmt: Stmt, args: Any, env: Any, b: Any) -> Any:
    """A branch on a known condition takes the other side."""
    if isinstance(args[0], Const) and isinstance(args[0].value, bool):
        args = (const(not args[0].value),)
    return right(self, stmt, args, env, b)


def _unguarded_kill(right: Any, *args: Any) -> None:
    return None


def _swap_results(right: Any, self: Any, stmt: Stmt, ybar: Any, b: Builder) -> Any:
    return list(reversed(right(self, stmt, ybar, b)))


@contextmanager
def _removable_stores() -> Iterator[None]:
    """Dead code elimination takes a store for dead."""

    def wrong(stmt: Stmt) -> Any:
        found = effects.effects(stmt)
        return replace(found, writes=()) if isinstance(stmt.op, Store) else found

    with mock.patch.object(simplify, "effects", wrong):
        yield


@contextmanager
def _delayed_past_stores() -> Iterator[None]:
    """Lowering takes a store for something that changes no operand of a pending expression."""

    def wrong(stmt: Stmt) -> Any:
        found = effects.effects(stmt)
        return replace(found, writes=()) if isinstance(stmt.op, Store) else found

    with mock.patch.object(lower, "effects", wrong):
        yield


def _read_once(right: Any, region: Region) -> Any:
    """Every partial sum of a loop is read once."""
    return defaultdict(lambda: 1)


def _unguarded(right: Any, self: Reverse, stmt: Stmt, ybar: Any, partial: Any, b: Builder) -> Any:
    return arithmetic.mul(ybar, self.inline(partial.function, [stmt.result, *stmt.args], b), stmt.result.type, b)


class _Mixed(dict[Any, Any]):
    """Tuples whose items are in the wrong order, where the types allow it."""

    def __getitem__(self, key: Any) -> Any:
        items = super().__getitem__(key)
        types = [v.type for v in items]
        return items[::-1] if types == types[::-1] else items


def _stretched(right: Any, self: Any, stmt: Any, args: Any) -> None:
    """Whatever is compared with 1 is taken for the length of the first loop."""
    right(self, stmt, args)
    for x in self.wide.keys() & set(stmt.results):
        self.wide[x] = next(iter(self.trips.values()), self.wide[x])


class _Turned(dict[Any, Any]):
    def __setitem__(self, array: Any, shape: tuple[Any, ...]) -> None:
        super().__setitem__(array, shape[::-1])


def _turned(right: Any, self: Any, names: Any) -> None:
    right(self, names)
    self.shapes = _Turned()


def _mixed_up(right: Any, self: Any, names: Any) -> None:
    right(self, names)
    self.tuples = _Mixed()


def _once(right: Any, self: Reverse, node: Any, adj: Any, b: Any, n: Any, *rest: Any) -> None:
    """A loop without a counter is reversed by one iteration."""
    right(self, node, adj, b, const(1) if isinstance(node.op, While) else n, *rest)


def _too_early(right: Any, self: Any, array: Any, loads: Any, start: Any) -> None:
    """A copy of an array is made in front of the outermost loop, which writes into the array."""
    right(self, array, loads, self.loops[0] if self.loops else start)


def _mirrored(right: Any, self: Any, region: Region) -> Any:
    """The parts of a window are on the wrong side of its middle."""
    return [[(-offset, stmt) for offset, stmt in group] for group in right(self, region)]


def _rising(right: Any, *args: Any) -> Any:
    """A loop value that falls is taken to rise."""
    step = right(*args)
    return abs(step) if step is not None else None


def _copied_late(right: Any, self: Any, tree: Any, slab: Any, k: Any, v: Any) -> None:
    right(self, tree, slab, const(0), v)


def _one_more(right: Any, b: Any, init: Any, k: Any, step: int) -> Any:
    return right(b, right(b, init, const(1), step), k, step) if isinstance(init, Const) else right(b, init, k, step + 1)


FAULTS: dict[str, Fault] = {
    # memory
    "a load is executed again past a store": instead(Reverse, "stable", lambda right, self, load: True),
    "a store in the next iteration is forgotten": instead(alias.Aliases, "clobbered", _only_later),
    "a store behind the loop is forgotten": instead(alias.Aliases, "clobbered", _only_around),
    "a view is no alias": _no_alias(View),
    "arrays that meet in a branch or a loop are no aliases": instead(alias._Walk, "meet", lambda right, self, a, b: None),
    "the private copy of a written argument is omitted": instead(alias.Aliases, "written", lambda right, self, v: False),
    "an assignment reads what it has overwritten": instead(Body, "may_alias", lambda right, self, x, y: False),
    "an elementwise operation is delayed past a store": _delayed_past_stores,
    "a snapshot is made too early": instead(snapshots.Snapshots, "_copy", _too_early),
    # reverse rows
    "a store's cotangent is not zeroed": instead(Reverse, "store", without(Store)),
    "a store's cotangent is not handed on": instead(Reverse, "store", _stores_zero),
    "a load's cotangent overwrites": instead(Reverse, "load", without(AddTo, lambda s: Stmt(Store(s.op.wrap), s.args))),
    "an addition is taken for a store": instead(Reverse, "add_to", lambda right, self, stmt, adj, b: self.store(stmt, adj, b)),
    "an addition's cotangent is lost": instead(Reverse, "add_to", lambda right, self, stmt, adj, b: None),
    "a cast's contribution is dropped": instead(Reverse, "cast", lambda right, self, stmt, adj, b: None),
    "cotangents overwrite each other": instead(Adjoints, "add", _overwrite),
    "a cotangent is not cast to its value's precision": instead(adjoints, "cast", lambda right, value, t, b: value),
    "a difference has the sign of a sum": row(operator.sub, lambda right, stmt, ybar, wanted, b: [ybar, ybar]),
    "one factor of a product gets nothing": row(operator.mul, lambda right, *args: [right(*args)[0], None]),
    "a quotient's denominator gets nothing": row(operator.truediv, lambda right, *args: [right(*args)[0], None]),
    "a negation is taken for a copy": row(operator.neg, lambda right, stmt, ybar, wanted, b: [ybar]),
    "an integer power misses its factor": instead(reverse, "integer_power", _square_for_identity),
    "partial derivatives are in the wrong order": instead(Reverse, "partials", _swap_results),
    "the guard of an infinite partial is omitted": instead(Reverse, "guarded", _unguarded),
    "a broadcast axis is taken for a long one": instead(elementwise, "_factor", lambda right, n, b: const(1)),
    # control
    "a side of a branch loses its cotangents": instead(Reverse, "close_side", _half),
    "a value of a branch leaves it by the other side": instead(
        Reverse, "export", lambda right, self, node, i, v: right(self, node, 1 - i, v)
    ),
    "the reverse loop runs forward": built(lambda op, args, hint: [args[1], const(0)] if hint == "back" else args),
    "the reverse loop is one iteration off": built(lambda op, args, hint: [args[0], const(2)] if hint == "last" else args),
    "a sum over the iterations is lost": instead(Reverse, "loop_body", _lost_sums),
    "cotangents are not carried from iteration to iteration": instead(Reverse, "loop_body", _lost_carried),
    "a loop without a counter is reversed once": instead(Reverse, "finish_loop", _once),
    "every counted loop is reversed forwards": instead(reverse, "iterations_commute", lambda right, *args: True),
    # both sweeps in one loop
    "a partial sum that something else reads is summed in one pass": instead(fusion, "_uses", _read_once),
    "a loop that writes what it reads does both sweeps at once": instead(fusion, "_independent", lambda right, *args: True),
    # shadows
    "a view's shadow is an array of its own": instead(Forward, "beside", _no_shadow_view),
    "shadows are not swapped with their buffers": instead(Forward, "loop", _no_swap),
    # the record
    "a residual is recorded at the wrong index": instead(Reverse, "write_down", _copied_late),
    "a growing slab is not copied": built(lambda op, args, hint: [*args[:2], const(0), args[3]] if isinstance(op, Extend) else args),
    "a residual is read at the wrong index": built(lambda op, args, hint: [args[0], const(0)] if isinstance(op, Get) else args),
    "the cut chooses a value that cannot be had": instead(residuals, "minimum_cut", lambda right, *args: right(*args)[:-1]),
    # activity
    "a store does not make its array vary": _no_flow(Store),
    "an addition does not make its array vary": _no_flow(AddTo),
    "a load does not vary with its array": _no_flow(Load),
    "branches hand nothing on": _edges(If),
    "a value that comes back in a loop is not useful": instead(activity, "_edges", _first_edges_only),
    # clearing up
    "an affine loop value is off by one": instead(simplify, "_scaled", _one_more),
    "a known branch takes the other side": instead(simplify._Propagate, "branch", _wrong_side),
    "a store is removed as dead": _removable_stores,
    "a tuple's items are mixed up": instead(simplify._Propagate, "__init__", _mixed_up),
    "the axes of a new array are taken in reverse": instead(simplify._Propagate, "__init__", _turned),
    "a stretched axis is taken for one that is not": instead(simplify._Propagate, "note_wide", _stretched),
    "a loop value that falls is taken to rise": instead(simplify, "_increment", _rising),
    "a load moves in front of a loop that stores": instead(
        optimise._Hoist, "movable", lambda right, self, s, written: right(self, s, set())
    ),
    "what branches and loops write is forgotten": instead(optimise, "_written", lambda right, *args: set()),
    "an index is taken for natural": instead(signs._Unwrap, "natural", lambda right, self, x: True),
    "a carried index that falls is taken to grow": instead(signs._Unwrap, "grows", lambda right, self, y, x: True),
    "a window is never completed": instead(windows._Gather, "flush", lambda right, *args: []),
    "the parts of a window are mirrored": instead(windows._Gather, "groups", _mirrored),
    "a load is shared past a store": instead(optimise, "_killed", lambda right, key, written: False),
}

