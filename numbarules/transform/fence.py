"""The fence: what a derivative passes through and has no reverse is refused, in program order, before the sweeps are built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..ir.nodes import (
    AddTo,
    Alloc,
    Apply,
    Attribute,
    Call,
    Cast,
    For,
    If,
    Load,
    Method,
    Operand,
    Raise,
    Region,
    Rule,
    Shape,
    Stmt,
    Store,
    View,
    While,
)
from ..ir.types import is_float, is_float_array

__all__ = ["fence"]


class Refusals(Protocol):
    """Raises the error for a statement."""

    def refuse(self, stmt: Stmt) -> None: ...


def fence(region: Region, active: Callable[[Operand], bool], rules: Refusals) -> None:
    """Raises UnsupportedError for the first statement of `region` that has no reverse and needs one."""
    for stmt in region.body:
        if not allowed(stmt, active):
            rules.refuse(stmt)
        if isinstance(stmt.op, If | For | While):
            for inner in stmt.regions:
                fence(inner, active, rules)


def allowed(stmt: Stmt, active: Callable[[Operand], bool]) -> bool:
    """True for statements that have a reverse, or that no derivative passes through."""
    match stmt.op:
        case If() | For() | While() | Rule() | Raise() | Shape() | Alloc():
            return True
        case Load() | Store() | AddTo() | View() | Cast() | Call():
            return of_floats(stmt, active)
        case Apply(callee) if _is_scalar(stmt):
            return not any(map(active, stmt.args)) or (of_floats(stmt, active) and not isinstance(callee, Method | Attribute))
    e = effects(stmt)
    if e.fresh and not any(map(active, stmt.args)):
        return True
    touched = [*stmt.results, *(stmt.args[i] for i in e.writes)]
    if e.opaque:
        touched += [a for a in stmt.args if holds_memory(a.type)]
    return not any(map(active, touched))


def _is_scalar(stmt: Stmt) -> bool:
    """True for a call that gives one float and is handed no memory."""
    return len(stmt.results) == 1 and is_float(stmt.results[0].type) and all(not holds_memory(a.type) for a in stmt.args)


def of_floats(stmt: Stmt, active: Callable[[Operand], bool]) -> bool:
    """False where a derivative passes in a value that has no cotangent: a complex number, an optional one."""
    return all(is_float(v.type) or is_float_array(v.type) for v in (*stmt.args, *stmt.results) if active(v))
