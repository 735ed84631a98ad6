"""A rule's pullback in place of the reverse of a call: cotangents in, cotangents out, and nothing computed that nobody wants."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..analysis.alias import Aliases, aliases_of, holds_memory
from ..analysis.effects import effects
from ..errors import RuleError, message
from ..ir.nodes import (
    Apply,
    Attribute,
    Const,
    For,
    Function,
    If,
    Named,
    Operand,
    Raise,
    Region,
    Rule,
    ShadowLike,
    Shape,
    Stmt,
    Var,
    View,
    While,
)
from ..ir.rewrite import Builder, substitute
from ..ir.types import BOOL, FLOAT64, INT64, Array, Scalar, is_float, is_float_array
from ..primitives import Failure
from .adjoints import Adjoints, zero
from .elementwise import expand_assign
from .forward import shadow_type
from .residuals import forgiving

if TYPE_CHECKING:
    from .reverse import Reverse

__all__ = ["Half", "PullbackHalf", "prune", "splice"]


class Half(Protocol):
    """A pullback at the types of one call.

    The parameters of `function` are the cotangents of the results in `takes`, the shadows of the arguments in `shadowed`,
    and what the value half kept. `targets` tells for each yielded cotangent the argument that it belongs to, or None.
    """

    function: Function
    takes: tuple[int, ...]
    shadowed: tuple[int, ...]
    targets: tuple[int | None, ...]


class PullbackHalf(Protocol):
    """What `Rule.pullback` is: `half(given, wanted)`, by leaves of the results and of the arguments."""

    name: str

    def half(self, given: tuple[bool, ...], wanted: tuple[bool, ...]) -> Half: ...


def splice(reverse: Reverse, stmt: Stmt, residuals: Sequence[Operand], adj: Adjoints, b: Builder) -> None:
    """Emits the pullback of a `Rule` statement and hands its cotangents on."""
    assert isinstance(stmt.op, Rule)
    forward, rule = reverse.forward, stmt.op
    ybars: list[Operand | None] = [
        adj.take(r) if is_float(r.type) else forward.shadow(r) if is_float_array(r.type) and forward.has_shadow(r) else None
        for r in stmt.results
    ]
    wanted = tuple(map(reverse.active, stmt.args))
    if not any(wanted) or all(y is None for y in ybars):
        return
    if any(w and not (is_float(a.type) or is_float_array(a.type)) for a, w in zip(stmt.args, wanted, strict=True)):
        reverse.rules.refuse(stmt)
    half = rule.pullback.half(tuple(y is not None for y in ybars), wanted)  # type: ignore[attr-defined]
    given: list[Operand] = []
    for i in half.takes:
        ybar, t = ybars[i], stmt.results[i].type
        if ybar is None:
            ybar = b.one(ShadowLike(), [reverse.record, stmt.results[i]], shadow_type(t), "zeros") if isinstance(t, Array) else zero(t)
        given.append(ybar)
    params = half.function.region.params
    behind = len(given) + len(half.shadowed)
    given += [forward.shadow(stmt.args[i]) for i in half.shadowed]
    env = {p: _as(p, v, b) for p, v in zip(params, [*given, *residuals], strict=True)}
    targets = [t if t is not None and wanted[t] else None for t in half.targets]
    region = prune(half.function.region, [t is not None for t in targets], params[len(half.takes) : behind])
    body = substitute(Region((), region.body, region.yields), env, b.names)
    for s in body.body:
        b.add(forgiving(s))
    for target, value in zip([t for t in targets if t is not None], body.yields or (), strict=True):
        _contribute(reverse, rule.name, stmt, target, value, adj, b)


def _as(param: Var, value: Operand, b: Builder) -> Operand:
    """An operand under the type that the pullback was typed at."""
    if value.type == param.type:
        return value
    return b.one(View("cast"), [value], param.type, "ybar") if isinstance(param.type, Array) else b.cast(value, param.type)


def _contribute(reverse: Reverse, name: str, stmt: Stmt, i: int, value: Operand, adj: Adjoints, b: Builder) -> None:
    """Adds a cotangent to that of argument `i`, projected to its type."""
    arg = stmt.args[i]
    if not isinstance(arg.type, Array):
        if isinstance(value.type, Scalar) and value.type.kind.startswith("complex"):
            value = b.one(Apply(Attribute("real")), [value], FLOAT64 if value.type.kind == "complex128" else Scalar("float32"), "re")
        adj.add(arg, value, b)
        return
    assert isinstance(value.type, Array)
    shadow = reverse.forward.shadow(arg)
    if value.type.dtype.kind.startswith("complex"):
        dtype = FLOAT64 if value.type.dtype.kind == "complex128" else Scalar("float32")
        value = b.one(Apply(Attribute("real")), [value], Array(dtype, value.type.ndim, "A"), "re")
    for axis in range(arg.type.ndim):
        n, m = (b.one(Shape(axis), [v], INT64, "n") for v in (value, shadow))
        differ = b.one(Apply(Named(operator.ne)), [n, m], BOOL, "differ")
        fail = b.child()
        text = message(
            f"the pullback of {name} returned a cotangent of the wrong shape",
            contract="a cotangent has the shape of its argument",
            found=f"argument {i}, axis {axis}",
        )
        fail.add(Stmt(Raise(Failure(RuleError, text)), (), (), (), b.loc))
        b.add(Stmt(If(), (differ,), (), (fail.region((), None), b.child().region()), b.loc))
    expand_assign(Stmt(Apply(Named(operator.iadd)), (shadow, value), (), (), b.loc), value, b)


# ---------------------------------------------------------------------------------------------- what is not wanted


def prune(region: Region, keep: Sequence[bool], shadows: Sequence[Var]) -> Region:
    """The region without what only unwanted yields need; what is written into `shadows` is wanted.

    Goes further than the removal of dead code elsewhere: a pullback is there for its cotangents alone, so a call that may
    raise and an array that is filled and never read go too.
    """
    yields = tuple(y for y, k in zip(region.yields or (), keep, strict=False) if k)
    live = _Live(aliases_of(region), shadows)
    for v in yields:
        live.mark(v)
    while live.changed:
        live.changed = False
        live.region(region)
    return Region(region.params, live.kept_body(region.body), None if region.yields is None else yields)


class _Live:
    def __init__(self, aliases: Aliases, shadows: Sequence[Var]) -> None:
        self.aliases = aliases
        self.values: set[Var] = set()
        self.classes: set[Var | None] = {aliases.of(s) for s in shadows}
        self.kept: set[int] = set()
        self.changed = True

    def mark(self, v: Operand) -> None:
        if isinstance(v, Const) or v in self.values:
            return
        self.values.add(v)
        self.changed = True
        if holds_memory(v.type):
            self.classes.add(self.aliases.of(v))

    def any_of(self, operands: Iterable[Operand]) -> bool:
        return any(v in self.values for v in operands)

    def writes_live(self, operands: Iterable[Operand]) -> bool:
        return any(isinstance(v, Var) and holds_memory(v.type) and self.aliases.of(v) in self.classes for v in operands)

    def region(self, region: Region) -> bool:
        found = [self.statement(s) for s in reversed(region.body)]  # each is visited
        return any(found)

    def statement(self, stmt: Stmt) -> bool:
        if isinstance(stmt.op, If | For | While):
            live = self.structured(stmt)
        else:
            e = effects(stmt)
            live = (
                isinstance(stmt.op, Raise)
                or self.any_of(stmt.results)
                or self.writes_live(stmt.args[i] for i in e.writes)
                or (e.opaque and (not stmt.results or self.writes_live(stmt.args)))
                or (e.outside and not stmt.results)
            )
            if live:
                for a in stmt.args:
                    self.mark(a)
        if live:
            self.kept.add(id(stmt))
        return live

    def structured(self, stmt: Stmt) -> bool:
        inner = [self.region(r) for r in stmt.regions]
        if not any(inner) and not self.any_of(stmt.results) and all(r.yields is not None for r in stmt.regions):
            return False
        skip = 0 if isinstance(stmt.op, While) else 1
        for a in stmt.args[:skip]:
            self.mark(a)
        if isinstance(stmt.op, If):
            for region in stmt.regions:
                self.follow(zip(stmt.results, region.yields or (), strict=False))
            return True
        (region,) = stmt.regions
        yields = region.yields or ()
        if isinstance(stmt.op, While):
            for y in yields[:1]:
                self.mark(y)
            yields = yields[1:]
        params = region.params[skip:]
        self.follow(zip(stmt.results, params, strict=True))
        self.follow(zip(params, yields, strict=False))
        self.follow(zip(params, stmt.args[skip:], strict=True))
        return True

    def follow(self, pairs: Iterable[tuple[Var, Operand]]) -> None:
        for target, source in pairs:
            if target in self.values:
                self.mark(source)

    def kept_body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.cut(s) if isinstance(s.op, If | For | While) else s for s in body if id(s) in self.kept)

    def cut(self, stmt: Stmt) -> Stmt:
        """A branch or loop without the values that are not wanted."""
        if isinstance(stmt.op, If):
            keep = [r in self.values for r in stmt.results]
            head = front = 0
        else:
            keep = [p in self.values for p in stmt.regions[0].params[0 if isinstance(stmt.op, While) else 1 :]]
            head, front = (1, 0) if isinstance(stmt.op, For) else (0, 1)

        def some(values: tuple[Any, ...], first: int) -> tuple[Any, ...]:
            return (*values[:first], *(v for v, k in zip(values[first:], keep, strict=True) if k))

        regions = []
        for r in stmt.regions:
            params = r.params if isinstance(stmt.op, If) else some(r.params, head)
            regions.append(Region(params, self.kept_body(r.body), None if r.yields is None else some(r.yields, front)))
        args = stmt.args if isinstance(stmt.op, If) else some(stmt.args, head)
        return Stmt(stmt.op, args, some(stmt.results, 0), tuple(regions), stmt.loc)
