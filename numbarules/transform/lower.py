"""Calls replaced by what they do, where a derivative passes through: inlined functions, and array arithmetic as loops.

Array expressions become one loop over the elements, as Numba's own fusion would make of them: an operand that is used
once, in the same run of pure statements, is computed inside the loop and never becomes an array.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.effects import effects
from ..ir.nodes import Apply, Const, Function, Item, Loc, MakeTuple, Method, Operand, Region, Rule, Stmt, Var, called
from ..ir.rewrite import Builder, Names, substitute
from ..ir.types import Array, Scalar, Tuple, Type, has_parameters
from ..primitives import assign
from .elementwise import Expression, Kernel, expand_assign, expand_new, is_elementwise, scalar_function
from .shaping import reshape_moves

__all__ = ["Given", "Lowering", "inline_call", "lower"]


Given = Operand | tuple[Operand, ...] | None
"""An argument of a call: a value, those of `*args`, or None for one that is left to its default."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """What `lower` asks: whether a derivative passes through a statement, and for a call the function to put in its place.

    `kernel(stmt)` gives the scalar function of a `@vectorize`d one that a statement calls.
    `inline(stmt, b)` gives a function and, for each of its arguments, the operand to pass; or True where it has written
    the replacement into `b` itself; None leaves the call.
    """

    active: Callable[[Stmt], bool]
    may_alias: Callable[[Operand, Operand], bool]
    kernel: Callable[[Stmt], Kernel | None]
    inline: Callable[[Stmt, Builder], tuple[Function, tuple[Given, ...]] | bool | None]


def lower(region: Region, names: Names, asks: Lowering) -> tuple[Region, bool]:
    """The region with its active calls lowered one level, and whether anything changed."""
    worker = _Lower(names, asks)
    out = worker.region(region)
    return out, worker.changed


class _Lower:
    def __init__(self, names: Names, asks: Lowering) -> None:
        self.names = names
        self.asks = asks
        self.changed = False

    def region(self, region: Region) -> Region:
        b = Builder(self.names)
        uses = _uses(region)
        pending: dict[Var, tuple[Stmt, Expression]] = {}
        ended = False
        for stmt in region.body:
            b.loc = stmt.loc
            kernel = self.asks.kernel(stmt)
            if is_elementwise(stmt, kernel) and self.fusible(stmt, pending):
                pending[stmt.result] = (stmt, self.expression(stmt, pending, uses, kernel))
                continue
            e = effects(stmt)
            if stmt.regions or e.writes or e.opaque or (e.may_raise and stmt.regions):
                keep = self.consumed(stmt, pending)
                self.flush(pending, b, keep)
            else:
                for a in _reads(stmt):
                    self.materialise(a, pending, b)
            if self.statement(stmt, b, pending, uses):
                ended = True
                break
        if not ended:
            self.flush(pending, b, set())
        return b.region(region.params, None if ended or region.yields is None else region.yields)

    # ------------------------------------------------------------------------------------------ fusion

    def fusible(self, stmt: Stmt, pending: dict[Var, tuple[Stmt, Expression]]) -> bool:
        return self.asks.active(stmt) or any(isinstance(a, Var) and a in pending for a in stmt.args)

    def expression(self, stmt: Stmt, pending: dict[Var, tuple[Stmt, Expression]], uses: Counter[Var], kernel: Kernel | None) -> Expression:
        """The expression tree of an elementwise call; operands that are pending and used nowhere else become subtrees."""
        args: list[Expression | Operand] = []
        for a in stmt.args:
            if isinstance(a, Var) and a in pending and uses[a] == 1:
                args.append(pending.pop(a)[1])
            else:
                args.append(a)
        return Expression(kernel.function if kernel is not None else scalar_function(stmt), tuple(args), stmt.result.type, stmt.loc, kernel)  # type: ignore[arg-type]

    def materialise(self, v: Operand, pending: dict[Var, tuple[Stmt, Expression]], b: Builder) -> None:
        if isinstance(v, Var) and v in pending:
            stmt, expression = pending.pop(v)
            for leaf in expression.leaves():
                self.materialise(leaf, pending, b)
            if not self.asks.active(stmt) and all(not isinstance(a, Expression) for a in expression.args):
                b.add(stmt)
                return
            self.changed = True
            expand_new(expression, stmt.result, b)

    def flush(self, pending: dict[Var, tuple[Stmt, Expression]], b: Builder, keep: set[Var]) -> None:
        for v in list(pending):
            if v in pending and v not in keep:
                self.materialise(v, pending, b)

    def consumed(self, stmt: Stmt, pending: dict[Var, tuple[Stmt, Expression]]) -> set[Var]:
        """The pending operand that an assignment takes in without an array of its own."""
        if self.is_assignment(stmt) and isinstance(stmt.args[1], Var) and stmt.args[1] in pending and self.asks.active(stmt):
            _, expression = pending[stmt.args[1]]
            if not any(self.may_alias(leaf, stmt.args[0]) for leaf in expression.leaves()):
                return {stmt.args[1]}
        return set()

    def may_alias(self, leaf: Operand, target: Operand) -> bool:
        return isinstance(leaf.type, Array) and self.asks.may_alias(leaf, target)

    def is_assignment(self, stmt: Stmt) -> bool:
        obj = called(stmt)
        return (obj is assign or obj in _INPLACE) and isinstance(stmt.args[0].type, Array)

    # ------------------------------------------------------------------------------------------ statements

    def statement(self, stmt: Stmt, b: Builder, pending: dict[Var, tuple[Stmt, Expression]], uses: Counter[Var]) -> bool:
        """Emits a statement, lowered; True where control cannot get past it."""
        if isinstance(stmt.op, Rule):
            b.add(stmt)
            return False
        if stmt.regions:
            b.add(Stmt(stmt.op, stmt.args, stmt.results, tuple(map(self.region, stmt.regions)), stmt.loc))
            return False
        if not isinstance(stmt.op, Apply):
            b.add(stmt)
            return False
        if self.is_assignment(stmt) and self.asks.active(stmt) and isinstance(stmt.args[1].type, Array | Scalar):
            target, value = stmt.args[:2]
            source: Expression | Operand = value
            if isinstance(value, Var) and value in pending:
                source = pending.pop(value)[1]
            elif called(stmt) is assign and isinstance(value.type, Array) and value is not target and self.asks.may_alias(value, target):
                source = b.one(Apply(Method("copy")), [value], _owned(value.type), "copy")
            self.changed = True
            expand_assign(stmt, source, b)
            if stmt.results:
                b.emit_alias(stmt.result, stmt.args[0])
            return False
        if self.asks.active(stmt) and reshape_moves(stmt, b):
            self.changed = True
            return False
        found = self.asks.inline(stmt, b)
        if found is None or found is False:
            b.add(stmt)
            return False
        self.changed = True
        if found is True:
            return False
        return inline_call(stmt, *found, b)


_INPLACE = {getattr(operator, "i" + n) for n in "add sub mul truediv floordiv mod pow".split()}


def _owned(t: Type) -> Array:
    assert isinstance(t, Array)
    return Array(t.dtype, t.ndim, "F" if t.layout == "F" else "C")


def _uses(region: Region) -> Counter[Var]:
    count: Counter[Var] = Counter()

    def visit(r: Region) -> None:
        for s in r.body:
            count.update(a for a in s.args if isinstance(a, Var))
            for inner in s.regions:
                visit(inner)
        count.update(y for y in r.yields or () if isinstance(y, Var))

    visit(region)
    return count


def _reads(stmt: Stmt) -> list[Operand]:
    return list(stmt.args)


def inline_call(stmt: Stmt, function: Function, args: tuple[Given, ...], b: Builder) -> bool:
    """Splices a function's body in place of a call; True where the function never returns."""
    env: dict[Var, Operand] = {}
    params = iter(function.region.params)

    def spread(operand: Operand, t: Type) -> None:
        if isinstance(t, Tuple):
            for i, item in enumerate(t.items):
                if has_parameters(item):
                    spread(b.one(Item(i), [operand], item, "item"), item)
        elif has_parameters(t):
            param = next(params)
            env[param] = operand if operand.type == param.type else b.cast(operand, param.type)

    for (_, t), given in zip(function.args, args, strict=True):
        if isinstance(given, tuple):
            assert isinstance(t, Tuple)
            for operand, item in zip(given, t.items, strict=True):
                spread(operand, item)
        elif given is not None:
            spread(given, t)
    body = substitute(Region((), function.region.body, function.region.yields), env, b.names)
    b.body.extend(_inlined(body, stmt.loc, {}).body)
    if body.yields is None:
        return True
    if stmt.results:
        leaves = iter(body.yields)

        def build(t: Type) -> Operand:
            if isinstance(t, Tuple):
                return b.one(MakeTuple(), [build(i) for i in t.items], t, "tuple")
            return next(leaves, Const(t, None))

        b.emit_alias(stmt.result, build(function.result))
    return False


def _inlined(region: Region, at: Loc | None, moved: dict[int, Loc]) -> Region:
    """The region with the call that it was inlined for in its locations; each location stays one object."""

    def loc(old: Loc | None) -> Loc | None:
        return None if old is None else moved.setdefault(id(old), Loc(old.filename, old.line, at))

    body = tuple(Stmt(s.op, s.args, s.results, tuple(_inlined(r, at, moved) for r in s.regions), loc(s.loc)) for s in region.body)
    return Region(region.params, body, region.yields)
