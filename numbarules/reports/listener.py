"""The observer that writes down what becomes of each call while a gradient is made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .._numba import Dispatcher
from ..compile.body import Body
from ..compile.observer import Observer
from ..compile.rules import TableRules, argument_type
from ..compile.units import Unit
from ..ir.nodes import Apply, Call, Function, Load, Loc, Named, Region, Rule, Shape, Stmt, Var
from ..ir.nodes import Method as MethodCallee
from ..rules.table import Found, show_key, table
from ..transform.residuals import Plan
from .names import value_name
from .report import CallSite, Method, Place, Repeated

__all__ = ["Listener", "call_name"]

NO_ENTRY = Found(None, None, "")


@dataclass(slots=True, eq=False)
class Draft:
    """A call on the way to becoming a `CallSite`; `unit` is the callee that gets sweeps of its own."""

    loc: Loc | None
    site: CallSite
    callee: Any = None


@dataclass(eq=False)
class Listener(Observer):
    """Listens to the making of one gradient. `inner` are the listeners to the functions with sweeps of their own, by callee."""

    drafts: list[Draft] = field(default_factory=list)
    units: dict[int, Unit] = field(default_factory=dict)
    again: dict[tuple[Place, str], Repeated] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------ what it is told

    def ruled(self, rules: TableRules, stmt: Stmt, branches: bool) -> None:
        self.note(rules, stmt, "rule")
        if branches:
            self.drafts[-1].site = replace(self.drafts[-1].site, branches=True)

    def inlined(self, rules: TableRules, stmt: Stmt, function: Function) -> None:
        self.note(rules, stmt, "none", method_of(function, separate=False))

    def lowered(self, body: Body) -> None:
        self.survey(body, body.region)

    def paired(self, units: Iterable[Unit]) -> None:
        self.units.update((id(u), u) for u in units)

    def repeated(self, plan: Plan, values: Iterable[Var]) -> None:
        for v in values:
            node = plan.defined.get(v)
            if node is not None and node.primal is not None and node.primal.loc is not None and not isinstance(node.op, Shape):
                loc = node.primal.loc
                place, name = Place(loc.filename, loc.line), value_name(v, node.primal)
                what: Literal["computed", "loaded"] = "loaded" if isinstance(node.op, Load) else "computed"
                self.again[place, name] = Repeated(place, name, what)

    # ------------------------------------------------------------------------------------------ calls

    def survey(self, body: Body, region: Region) -> None:
        """Notes the calls that nothing has replaced."""
        for stmt in region.body:
            if isinstance(stmt.op, Call):
                self.call(stmt)
            elif isinstance(stmt.op, Apply):
                self.left(body, stmt)
            if not isinstance(stmt.op, Rule):
                for inner in stmt.regions:
                    self.survey(body, inner)

    def call(self, stmt: Stmt) -> None:
        callee: Any = stmt.op.unit  # type: ignore[union-attr]
        found = table.lookup(callee.dispatcher, callee.types)
        site = _site(stmt, callee.dispatcher.py_func.__name__, callee.types, "none", found, method_of(callee.function, separate=True))
        self.drafts.append(Draft(stmt.loc, site, callee))

    def left(self, body: Body, stmt: Stmt) -> None:
        entry = body.rules.entry(stmt)
        if entry is not None and entry.kind == "non_differentiable":
            if any(map(body.activity, stmt.args)):
                self.note(body.rules, stmt, "zero")
        elif body.is_active(stmt):
            if entry is not None and entry.kind == "scalar":
                self.note(body.rules, stmt, "scalar rule")
        elif _is_worth_telling(stmt):
            self.note(body.rules, stmt, "passive")

    def note(
        self,
        rules: TableRules,
        stmt: Stmt,
        how: Literal["rule", "scalar rule", "none", "zero", "passive"],
        method: Method | None = None,
    ) -> None:
        call = rules.call(stmt)
        types = tuple(map(argument_type, call.args if call is not None else stmt.args)) if _has_types(stmt) else ()
        found = rules.found(stmt) or NO_ENTRY
        self.drafts.append(Draft(stmt.loc, _site(stmt, call_name(stmt), types, how, found, method)))


def _site(stmt: Stmt, name: str, types: Iterable[Any], how: Any, found: Found, method: Method | None) -> CallSite:
    place = Place(stmt.loc.filename, stmt.loc.line) if stmt.loc is not None else Place("", 0)
    shown = tuple(map(str, types))
    if how == "passive":
        return CallSite(place, name, shown, how)
    entry = found.entry
    said: Any = ""
    if how == "none" and entry is not None:
        said = "by an entry" if entry.kind == "opt_out" else "by its rule" if entry.kind == "rule" else ""
    return CallSite(place, name, shown, how, entry, said, method, found.runner_up, found.reason)


def method_of(function: Function, separate: bool) -> Method:
    """The function that is differentiated, as a report names it."""
    place = Place(function.loc.filename, function.loc.line) if function.loc is not None else Place("", 0)
    return Method(function.name, place, place.origin, separate)


def call_name(stmt: Stmt) -> str:
    """What is called, as the user writes it."""
    match stmt.op:
        case Apply(Named(Dispatcher() as f)):
            return str(f.py_func.__name__)
        case Apply(Named(obj)):
            return re.sub(r"^numpy\.", "np.", show_key(obj))
        case Apply(callee):
            return str(callee).removesuffix("()")
    return type(stmt.op).__name__.lower()


def _has_types(stmt: Stmt) -> bool:
    try:
        for a in stmt.args:
            argument_type(a)
    except NotImplementedError:
        return False
    return True


def _is_worth_telling(stmt: Stmt) -> bool:
    """True for a passive call of a function or method that the user wrote: no operator, and nothing inside a library's code."""
    at = stmt.loc
    while at is not None and at.inlined_at is not None:
        if at.inlined_at == at:
            return False
        at = at.inlined_at
    callee = stmt.op.callee if isinstance(stmt.op, Apply) else None
    if isinstance(callee, MethodCallee):
        return True
    module = getattr(callee.obj, "__module__", "") if isinstance(callee, Named) else "operator"
    return module not in ("operator", "_operator", "numbarules.primitives")
