"""A captured function made ready for its sweeps: everything that a derivative passes through brought down to what has a reverse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .._numba import Dispatcher
from ..analysis.activity import Activity, activity_of
from ..analysis.alias import aliases_of, holds_memory
from ..analysis.effects import effects
from ..analysis.signs import unwrap
from ..ir.nodes import Apply, Function, Named, Operand, Region, Stmt, Var
from ..ir.rewrite import Builder, Names
from ..ir.types import NONE, is_float, is_float_array
from ..transform.fence import fence
from ..transform.lower import Lowering, lower
from ..transform.optimise import optimise
from ..transform.simplify import simplify
from ..transform.windows import gather_sums
from .calls import split_call
from .inline import Inliner
from .kernels import kernel_of
from .observer import SILENT, Observer
from .rule_calls import RuleCalls
from .rules import TableRules, is_derivative
from .summaries import summarised

__all__ = ["Body", "finished"]


class Body:
    """The region of a function, lowered, and its activity.

    `inputs` tells for each leaf parameter whether derivatives are wanted by it; `outputs` for each leaf of the result
    whether it will have a cotangent. Arrays that come in with a shadow are outputs too: what is written into them counts.
    """

    def __init__(
        self,
        primal: Function,
        options: dict[str, Any],
        name: str,
        inputs: tuple[bool, ...],
        outputs: tuple[bool, ...],
        arrays_out: bool,
        sharing: tuple[tuple[int, int], ...] = (),
        observer: Observer = SILENT,
    ) -> None:
        self.primal = primal
        self.options = options
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.arrays_out = arrays_out
        self.names = Names(1_000_000)
        self.rules = TableRules(name, observer)
        self.inliner = Inliner(options)
        self.inside: dict[Var, Var] = {}  # the private copies that the sweeps work on, by parameter
        self.region: Region = simplify(primal, self.names).region
        self.groups = [(primal.region.params[i], primal.region.params[j]) for i, j in sharing]
        self.activity: Activity
        self.lower()
        observer.lowered(self)
        fence(self.region, self.activity, self.rules)
        self.replace(optimised(self.region, self.names, options, self.groups))

    @property
    def fast(self) -> bool:
        """Whether the code is compiled with fastmath."""
        return bool(self.options.get("fastmath"))

    def replace(self, region: Region, inside: dict[Var, Var] | None = None) -> None:
        """Takes a new region, with parameters replaced by `inside`, and analyses it again."""
        self.inside = inside or self.inside
        self.region = region
        self.analyse()

    def analyse(self) -> None:
        aliases = aliases_of(self.region, self.groups)
        asked = [p for p, w in zip(self.region.params, self.inputs, strict=True) if w]
        wanted = [self.inside.get(p, p) for p in asked if is_float(p.type) or is_float_array(p.type)]
        results: list[Operand] = [y for y, w in zip(self.region.yields or (), self.outputs, strict=False) if w]
        if self.arrays_out:
            results += [p for p in wanted if is_float_array(p.type)]
        self.activity = activity_of(self.region, aliases, wanted, results, self.rules.differentiable)

    def lower(self) -> None:
        for _ in range(100):
            self.region = summarised(self.region)
            self.analyse()
            asks = Lowering(active=self.is_active, may_alias=self.may_alias, kernel=kernel_of, inline=self.inline)
            calls = RuleCalls(self.rules, self.options, self.names, self.is_active)
            region = calls.region(self.region)
            changed = calls.changed
            if not changed:
                region, changed = lower(region, self.names, asks)
            if not changed:
                return
            self.region = simplify(Function("", (), region, NONE), self.names).region
        raise AssertionError("lowering does not end")

    # ------------------------------------------------------------------------------------------ what lowering asks

    def touched(self, stmt: Stmt) -> list[Operand]:
        """What a statement defines or may write into."""
        e = effects(stmt)
        found: list[Operand] = [*stmt.results, *(stmt.args[i] for i in e.writes)]
        if e.opaque:
            found += [a for a in stmt.args if holds_memory(a.type)]
        return found

    def is_active(self, stmt: Stmt) -> bool:
        return any(map(self.activity, self.touched(stmt)))

    def may_alias(self, x: Operand, y: Operand) -> bool:
        cls = self.activity.aliases.of(x)
        return cls is not None and cls is self.activity.aliases.of(y)

    def inline(self, stmt: Stmt, b: Builder) -> Any:
        """What stands in for an active call."""
        if _is_second_derivative(stmt) or not self.is_active(stmt) or (effects(stmt).fresh and not any(map(self.activity, stmt.args))):
            return None
        entry = self.rules.entry(stmt)
        if entry is not None and entry.kind in ("scalar", "non_differentiable"):
            return None
        found = self.inliner(stmt)
        if found is not None:
            self.rules.inlined(stmt)
            self.rules.observer.inlined(self.rules, stmt, found[0])
            return found
        assert isinstance(stmt.op, Apply)
        if isinstance(stmt.op.callee, Named) and isinstance(stmt.op.callee.obj, Dispatcher):
            return split_call(stmt, stmt.op.callee.obj, b) is not None
        return None


def _is_second_derivative(stmt: Stmt) -> bool:
    return isinstance(stmt.op, Apply) and isinstance(stmt.op.callee, Named) and is_derivative(stmt.op.callee.obj)


def optimised(region: Region, names: Names, options: dict[str, Any], groups: Iterable[tuple[Var, Var]] = ()) -> Region:
    """The region without repeated work, dead code gone. Where bounds are checked, loads stay in place: they may raise."""
    region = optimise(region, names, hoist_loads=not options.get("boundscheck"), groups=groups)
    region = gather_sums(region, names, groups)
    return simplify(Function("", (), region, NONE), names).region


def finished(function: Function, body: Body, groups: Iterable[tuple[Var, Var]] = ()) -> Function:
    """A generated function, cleared up."""
    function = simplify(function, body.names)
    groups = tuple(groups)
    region = optimised(function.region, body.names, body.options, groups)
    if not body.options.get("boundscheck"):
        region = unwrap(region)
    return replace(function, region=region, sharing=groups)
