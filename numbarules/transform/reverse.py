"""The reverse sweep: one function per kind of statement, each the adjoint of what the statement does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Protocol

from ..analysis.alias import holds_memory
from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Apply,
    Cast,
    Const,
    Extend,
    For,
    Function,
    Get,
    If,
    Invoke,
    Load,
    Named,
    Operand,
    Put,
    Region,
    Retain,
    Rule,
    ShadowLike,
    Slab,
    Stmt,
    Store,
    Var,
    While,
    const,
)
from ..ir.rewrite import Builder, free_vars, substitute
from ..ir.types import BOOL, INT64, POINTER, Array, Pointer, is_float
from ..primitives import assign
from .adjoints import Adjoints, cast, zero
from .arithmetic import ARITHMETIC, integer_power, mul
from .forward import Forward
from .fusion import fuse
from .order import iterations_commute
from .residuals import Plan, forgiving, plan_residuals, recompute
from .snapshots import Snapshots
from .splice import splice
from .tree import Node, Tree

__all__ = ["Partial", "Reverse", "Rules", "replaced"]


class Partial(Protocol):
    """A partial derivative."""

    @property
    def function(self) -> Function:
        """A function of (value, *arguments)."""

    @property
    def guarded(self) -> bool:
        """True where it may be infinite, and an exactly zero cotangent then gives zero."""


class Rules(Protocol):
    """What the transform asks of the rule table."""

    def partials(self, stmt: Stmt) -> tuple[Partial | None, ...] | None:
        """The partial derivatives of a scalar call, one an argument; None where there is no rule."""

    def repeated(self, plan: Plan, values: Iterable[Var]) -> None:
        """Is told which values the reverse sweep computes or loads once more."""

    def refuse(self, stmt: Stmt) -> None:
        """Raises the error for a construct that a derivative passes through and that has no reverse."""


class Reverse:
    """Builds the reverse sweep of a forward tree, and adds to that tree what the reverse sweep needs written down.

    With `restore` the sweep leaves each shadow that the forward sweep made as it found it, all zeros, so that it can run again.
    `fast`: the code is compiled with fastmath, so that a comparison of floats may come out otherwise the second time.
    """

    def __init__(self, forward: Forward, rules: Rules, restore: bool = False, fast: bool = False) -> None:
        self.fast = fast
        self.restore = restore
        self.snapshots = Snapshots(forward)
        self.forward = forward
        self.active = forward.active
        self.rules = rules
        self.names = forward.names
        self.record = forward.record

    # ------------------------------------------------------------------------------------------ dispatch

    def region(self, tree: Tree, adj: Adjoints, b: Builder, joint: bool = False) -> None:
        """Emits the reverse of a tree's statements, last first.

        `joint`: the reverse stands in the same region as the forward statements, so that a loop may do both at once.
        """
        for node in reversed(tree.nodes):
            stmt = node.primal
            if stmt is None:
                if self.restore and isinstance(node.op, ShadowLike):
                    b.emit(Apply(Named(assign)), [node.results[0], zero(node.results[0].type.dtype)])  # type: ignore[union-attr]
                continue
            b.loc = stmt.loc
            match node.op:
                case If():
                    self.branch(node, adj, b)
                case For():
                    if not (joint and fuse(self, tree, node, adj, b)):
                        self.for_loop(node, adj, b)
                case While():
                    self.while_loop(node, adj, b)
                case Load():
                    self.load(stmt, adj, b)
                case Store():
                    self.store(stmt, adj, b)
                case AddTo():
                    self.add_to(stmt, adj, b)
                case Cast():
                    self.cast(stmt, adj, b)
                case Rule():
                    self.rule(stmt, adj, b)
                case Invoke():
                    self.call(node, stmt, adj, b)
                case _:
                    self.plain(stmt, adj, b)

    # ------------------------------------------------------------------------------------------ scalars

    def plain(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """A scalar function: each argument gets the cotangent times its partial derivative."""
        if len(stmt.results) != 1 or not is_float(stmt.results[0].type) or not self.active(stmt.results[0]):
            return
        y = stmt.result
        ybar = adj.take(y)
        if ybar is None or not any(self.active(a) for a in stmt.args):
            return
        assert isinstance(stmt.op, Apply) and isinstance(stmt.op.callee, Named), stmt
        fn = stmt.op.callee.obj
        if fn is operator.pow and (power := integer_power(stmt, ybar, b)) is not None:
            contributions = power
        elif fn in ARITHMETIC:
            contributions = ARITHMETIC[fn](stmt, ybar, tuple(map(self.active, stmt.args)), b)
        else:
            contributions = self.partials(stmt, ybar, b)
        for arg, value in zip(stmt.args, contributions, strict=True):
            if self.active(arg):
                adj.add(arg, value, b)

    def partials(self, stmt: Stmt, ybar: Operand, b: Builder) -> list[Operand | None]:
        found = self.rules.partials(stmt)
        if found is None:
            self.rules.refuse(stmt)
            raise AssertionError("refuse returned")
        out: list[Operand | None] = []
        for arg, partial in zip(stmt.args, found, strict=True):
            if partial is None or not self.active(arg):
                out.append(None)
            elif partial.guarded:
                out.append(self.guarded(stmt, ybar, partial, b))
            else:
                out.append(mul(ybar, self.inline(partial.function, [stmt.result, *stmt.args], b), stmt.result.type, b))
        return out

    def guarded(self, stmt: Stmt, ybar: Operand, partial: Partial, b: Builder) -> Operand:
        """The product, and exactly zero where the cotangent is: the partial may be infinite there."""
        t = stmt.result.type
        inner = b.child()
        value = mul(ybar, self.inline(partial.function, [stmt.result, *stmt.args], inner), t, inner)
        test = b.one(Apply(Named(operator.ne)), [ybar, zero(t)], BOOL, "nonzero")
        result = self.names.var(t, "d")
        b.add(Stmt(If(), (test,), (result,), (inner.region((), (value,)), b.child().region((), (zero(t),))), b.loc))
        return result

    def inline(self, function: Function, args: Iterable[Operand], b: Builder) -> Operand:
        """The value of a captured function of scalars at operands."""
        params = function.region.params
        env = {p: cast(a, p.type, b) for p, a in zip(params, args, strict=True)}
        body = substitute(Region((), function.region.body, function.region.yields), env, self.names)
        for stmt in body.body:
            b.add(forgiving(stmt))
        assert body.yields is not None
        return body.yields[0]

    def cast(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        if is_float(stmt.result.type):
            ybar = adj.take(stmt.result)
            if self.active(stmt.args[0]):
                adj.add(stmt.args[0], ybar, b)

    # ------------------------------------------------------------------------------------------ memory

    def load(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """v = a[i]:  abar[i] += vbar."""
        array, *index = stmt.args
        vbar = adj.take(stmt.result)
        if vbar is not None and self.forward.has_shadow(array):
            b.emit(AddTo(stmt.op.wrap, cotangent=True), [self.forward.shadow(array), *index, cast(vbar, array.type.dtype, b)])  # type: ignore[union-attr]

    def store(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """a[i] = v:  vbar += abar[i];  abar[i] = 0."""
        array, *index, value = stmt.args
        if not self.forward.has_shadow(array):
            return
        assert isinstance(array.type, Array)
        shadow, t = self.forward.shadow(array), array.type.dtype
        wrap = stmt.op.wrap  # type: ignore[union-attr]
        if self.active(value):
            adj.add(value, b.one(Load(wrap), [shadow, *index], t, "d"), b)
        b.emit(Store(wrap), [shadow, *index, zero(t)])

    def add_to(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """a[i] += v:  vbar += abar[i]."""
        array, *index, value = stmt.args
        if self.forward.has_shadow(array) and self.active(value):
            assert isinstance(array.type, Array)
            adj.add(value, b.one(Load(stmt.op.wrap), [self.forward.shadow(array), *index], array.type.dtype, "d"), b)  # type: ignore[union-attr]

    # ------------------------------------------------------------------------------------------ calls

    def call(self, node: Node, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """A call of a function with sweeps of its own: its reverse half, on the frame that its forward half wrote."""
        pair = self.forward.pairs[id(stmt)]
        ybars = [adj.take(stmt.results[i]) for i in pair.cotangents]
        if not pair.shadowed and not pair.shadows_out and not any(ybars):
            return
        if not pair.scalars and not pair.shadowed:
            return
        frame = node.results[-1]
        given = [ybar or zero(stmt.results[i].type) for i, ybar in zip(pair.cotangents, ybars, strict=True)]
        args = [stmt.args[i] for i in pair.scalars]
        found = b.emit(Invoke(f"{stmt.op.name}_reverse", pair.reverse), [frame, *given], *(a.type for a in args), hint="d")  # type: ignore[union-attr]
        for arg, value in zip(args, found, strict=True):
            adj.add(arg, value, b)

    # ------------------------------------------------------------------------------------------ rules

    def rule(self, stmt: Stmt, adj: Adjoints, b: Builder) -> None:
        """A rule's pullback in place of the call's reverse."""
        splice(self, stmt, self.forward.residuals[id(stmt)], adj, b)

    # ------------------------------------------------------------------------------------------ branches

    def branch(self, node: Node, adj: Adjoints, b: Builder) -> None:
        stmt = node.primal
        assert stmt is not None
        ybars = [adj.take(r) if is_float(r.type) else None for r in stmt.results]
        alive = [i for i, t in enumerate(node.trees) if t.yields is not None]
        sides: dict[int, tuple[Builder, Adjoints]] = {}
        start = dict(adj.items())
        for i in alive:
            inner, env = b.child(), Adjoints(start, adj.summed)
            for value, ybar in zip(stmt.regions[i].yields or (), ybars, strict=True):
                if self.active(value):
                    env.add(value, ybar, inner)
            self.region(node.trees[i], env, inner)
            sides[i] = (inner, env)
        changed: dict[Var, None] = {}
        for i, (_, env) in sides.items():
            local = node.trees[i].defined()
            changed.update(dict.fromkeys(v for v, value in env.items() if v not in local and start.get(v) is not value))
        if not changed and not any(inner.body for inner, _ in sides.values()):
            return
        if len(alive) == 1:  # the other side raises: whoever comes back came through this one
            inner, env = sides[alive[0]]
            body = self.close_side(node, alive[0], inner, tuple(env.get(v) or zero(v.type) for v in changed))
            b.body.extend(body.body)
            for v, vbar in zip(changed, body.yields or (), strict=True):
                adj.set(v, vbar)
            return
        results = [self.names.var(v.type, f"d_{v.name}") for v in changed]
        regions = []
        for i in alive:
            inner, env = sides[i]
            body = self.close_side(node, i, inner, tuple(env.get(v) or zero(v.type) for v in changed))
            regions.append(body)
        b.add(Stmt(If(), (stmt.args[0],), tuple(results), tuple(regions), stmt.loc))
        for v, r in zip(changed, results, strict=True):
            adj.set(v, r)

    def close_side(self, node: Node, i: int, inner: Builder, yields: tuple[Operand, ...] = ()) -> Region:
        """The reverse of one side of a branch, with what it needs from the forward side handed out as results of the branch."""
        tree = node.trees[i]
        region = inner.region((), yields)
        needed = [v for v in free_vars(region) if v in tree.defined()]
        plan = plan_residuals(needed, tree, set(), self.stable, self.fast)
        given: dict[Var, Operand] = {}
        for v in plan.recorded:
            given[v] = self.export(node, i, v)
        head = inner.child()
        env = recompute(plan, needed, given, head)
        self.rules.repeated(plan, (v for v in env if v not in given))
        return replaced(region, head.body, env)

    def export(self, node: Node, i: int, v: Var) -> Var:
        """`v`, defined inside side `i` of a forward branch, as a result of the branch."""
        out = self.names.var(v.type, v.name)
        node.results.append(out)
        for j, tree in enumerate(node.trees):
            if tree.yields is not None:
                tree.yields.append(v if j == i else Const(v.type, UNDEFINED))
        return out

    # ------------------------------------------------------------------------------------------ loops

    def loop_body(
        self, node: Node, b: Builder
    ) -> tuple[Builder, list[tuple[Var, Var, Operand]], list[tuple[int, Var, Operand]]]:
        """The reverse of one iteration: its builder, the accumulators of outer values and the cotangents of carried ones."""
        stmt = node.primal
        assert stmt is not None
        (region,) = stmt.regions
        (tree,) = node.trees
        skip = 1 if isinstance(stmt.op, For) else 0
        inner, env = b.child(), Adjoints()
        carried: list[tuple[int, Var]] = []
        for j, p in enumerate(region.params[skip:]):
            if is_float(p.type) and (self.active(p) or self.active(stmt.results[j])):
                bar = self.names.var(p.type, f"d_{p.name}")
                carried.append((j, bar))
        outer = [v for v in free_vars(region) if is_float(v.type) and self.active(v)]
        sums = {v: self.names.var(v.type, f"d_{v.name}") for v in outer}
        for v, acc in sums.items():
            env.set(v, acc)
        env.summed = set(sums)
        yields = (region.yields or ())[0 if skip else 1 :]
        for j, bar in carried:
            if self.active(yields[j]):
                env.add(yields[j], bar, inner)
        with self.snapshots.inside(node):
            self.region(tree, env, inner)
        accumulators = [(v, acc, value) for v, acc in sums.items() if (value := env.get(v)) is not None and value is not acc]
        moved = [(j, bar, env.get(region.params[skip + j]) or zero(bar.type)) for j, bar in carried]
        return inner, accumulators, moved

    def for_loop(self, node: Node, adj: Adjoints, b: Builder) -> None:
        stmt = node.primal
        assert stmt is not None
        if stmt.regions[0].yields is None:  # whoever comes back never entered the loop
            for result, init in zip(stmt.results, stmt.args[1:], strict=True):
                if self.active(init):
                    adj.add(init, adj.take(result), b)
            return
        inner, sums, moved = self.loop_body(node, b)
        result_bars = [adj.take(r) if is_float(r.type) else None for r in stmt.results]
        if not inner.body and not sums and not any(result_bars):
            return
        n, r = node.args[0], self.names.var(INT64, "r")
        tree = node.trees[0]
        k = tree.params[0]
        head = inner.child()
        back: Operand = r
        if moved or not iterations_commute(self.forward, stmt):
            last = head.one(Apply(Named(operator.sub)), [n, const(1)], INT64, "last")
            back = head.one(Apply(Named(operator.sub)), [last, r], INT64, "back")

        def write(plan: Plan) -> dict[Var, Operand]:
            given: dict[Var, Operand] = {k: back}
            for v in plan.recorded:
                slab = self.names.var(Pointer(), "slab")
                node.before.append(Stmt(Slab(v.type), (self.record, n), (slab,), (), stmt.loc))
                self.write_down(tree, slab, k, v)
                given[v] = head.one(Get(self.memory(v)), [slab, back], v.type, v.name)
            return given

        self.finish_loop(node, adj, b, n, r, inner, head, sums, moved, result_bars, {k}, write)

    def while_loop(self, node: Node, adj: Adjoints, b: Builder) -> None:
        stmt = node.primal
        assert stmt is not None
        if stmt.regions[0].yields is None:
            return
        inner, sums, moved = self.loop_body(node, b)
        result_bars = [adj.take(r) if is_float(r.type) else None for r in stmt.results]
        if not inner.body and not sums and not any(result_bars):
            return
        tree = node.trees[0]
        assert tree.yields is not None
        # the forward sweep counts its iterations
        count, trips = self.names.var(INT64, "count"), self.names.var(INT64, "trips")
        following = self.names.var(INT64, "count")
        node.args.append(const(0))
        tree.params.append(count)
        tree.yields.append(following)
        node.results.append(trips)
        r = self.names.var(INT64, "r")
        head = inner.child()
        last = head.one(Apply(Named(operator.sub)), [trips, const(1)], INT64, "last")
        back = head.one(Apply(Named(operator.sub)), [last, r], INT64, "back")

        def write(plan: Plan) -> dict[Var, Operand]:
            given: dict[Var, Operand] = {count: back}
            slabs = self.growing(node, tree, count, plan.recorded)
            for v, (inside, outside) in zip(plan.recorded, slabs, strict=True):
                self.write_down(tree, inside, count, v)
                given[v] = head.one(Get(self.memory(v)), [outside, back], v.type, v.name)
            tree.tail.append(Stmt(Apply(Named(operator.add)), (count, const(1)), (following,), (), stmt.loc))
            return given

        self.finish_loop(node, adj, b, trips, r, inner, head, sums, moved, result_bars, {count}, write)

    def growing(self, node: Node, tree: Tree, count: Var, recorded: list[Var]) -> list[tuple[Var, Var]]:
        """Slabs of a loop whose length nobody knows: they double when they are full. Pairs (inside the loop, behind it)."""
        if not recorded:
            return []
        assert tree.yields is not None
        capacity, more = self.names.var(INT64, "capacity"), self.names.var(INT64, "capacity")
        first = 16
        grow, keep = Builder(self.names), Builder(self.names)
        double = grow.one(Apply(Named(operator.mul)), [capacity, const(2)], INT64, "double")
        grown: list[Operand] = [double]
        kept: list[Operand] = [capacity]
        results = [more]
        pairs: list[tuple[Var, Var]] = []
        for v in recorded:
            start, param, inside, outside = (self.names.var(POINTER, "slab") for _ in range(4))
            node.before.append(Stmt(Slab(v.type), (self.record, const(first)), (start,)))
            node.args.append(start)
            tree.params.append(param)
            grown.append(grow.one(Extend(v.type), [self.record, param, capacity, double], POINTER, "slab"))
            kept.append(param)
            results.append(inside)
            tree.yields.append(inside)
            node.results.append(outside)
            pairs.append((inside, outside))
        node.args.append(const(first))
        tree.params.append(capacity)
        tree.yields.append(more)
        node.results.append(self.names.var(INT64, "capacity"))
        full = self.names.var(BOOL, "full")
        tree.tail.append(Stmt(Apply(Named(operator.eq)), (count, capacity), (full,)))
        tree.tail.append(Stmt(If(), (full,), tuple(results), (grow.region((), grown), keep.region((), kept))))
        return pairs

    def write_down(self, tree: Tree, slab: Var, k: Var, v: Var) -> None:
        if self.retained(v):
            tree.tail.append(Stmt(Retain(), (self.record, v)))
        tree.tail.append(Stmt(Put(self.memory(v)), (slab, k, v)))

    def finish_loop(
        self,
        node: Node,
        adj: Adjoints,
        b: Builder,
        n: Operand,
        r: Var,
        inner: Builder,
        head: Builder,
        sums: list[tuple[Var, Var, Operand]],
        moved: list[tuple[int, Var, Operand]],
        result_bars: list[Operand | None],
        given: set[Var],
        write: Callable[[Plan], dict[Var, Operand]],
    ) -> None:
        """The reversed loop: written and recomputed values in front of the reverse of the body, cotangents carried along."""
        stmt = node.primal
        assert stmt is not None
        skip = 1 if isinstance(stmt.op, For) else 0
        params = [acc for _, acc, _ in sums] + [bar for _, bar, _ in moved]
        body = inner.region((r, *params), [v for _, _, v in sums] + [v for _, _, v in moved])
        tree = node.trees[0]
        defined = tree.defined()
        needed = [v for v in free_vars(body) if v in defined]
        plan = plan_residuals(needed, tree, given, self.stable, self.fast)
        if self.snapshots.take(node, plan):
            plan = plan_residuals(needed, tree, given, self.stable, self.fast)
        known = write(plan)
        env = recompute(plan, needed, known, head)
        self.rules.repeated(plan, (v for v in env if v not in known))
        body = replaced(body, head.body, env)
        inits: list[Operand] = [adj.get(v) or zero(v.type) for v, _, _ in sums] + [result_bars[j] or zero(bar.type) for j, bar, _ in moved]
        results = tuple(self.names.var(p.type, p.name) for p in params)
        b.add(Stmt(For(), (n, *inits), results, (body,), stmt.loc))
        for (v, _, _), result in zip(sums, results, strict=False):
            adj.set(v, result)
        for (j, _, _), result in zip(moved, results[len(sums) :], strict=True):
            init = stmt.args[skip + j]
            if self.active(init):
                adj.add(init, result, b)

    # ------------------------------------------------------------------------------------------ facts

    def stable(self, load: Stmt) -> bool:
        """True where the loaded memory still holds the same value in the reverse sweep."""
        return load.args[0] in self.snapshots.made or not self.active.aliases.clobbered(load.args[0], load)

    def memory(self, v: Var) -> object:
        """The name of what `v` may share memory with, for the record."""
        if isinstance(v.type, Pointer):
            return ("slab", v)
        if not holds_memory(v.type):
            return None
        owner = self.forward.owners.get(v)
        return ("shadow", self.active.aliases.of(owner)) if owner is not None else ("primal", self.active.aliases.of(v))

    def retained(self, v: Var) -> bool:
        """True for values whose memory must be kept alive when they are written down; shadows live in the record."""
        return holds_memory(v.type) and v not in self.forward.owners and v not in self.snapshots.made


def replaced(region: Region, head: list[Stmt], env: dict[Var, Operand]) -> Region:
    """`region` with `head` in front and its free variables replaced by `env`."""

    def get(x: Operand) -> Operand:
        return env.get(x, x) if isinstance(x, Var) else x

    def fix(r: Region) -> Region:
        body = tuple(Stmt(s.op, tuple(map(get, s.args)), s.results, tuple(map(fix, s.regions)), s.loc) for s in r.body)
        return Region(r.params, body, None if r.yields is None else tuple(map(get, r.yields)))

    fixed = fix(region)
    return Region(fixed.params, (*head, *fixed.body), fixed.yields)
