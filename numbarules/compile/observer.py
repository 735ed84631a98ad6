"""What is decided while a gradient is made, told to whoever asks: a report listens, nobody else does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ir.nodes import Function, Stmt, Var
from ..transform.residuals import Plan

if TYPE_CHECKING:
    from .body import Body
    from .rules import TableRules
    from .units import Unit

__all__ = ["SILENT", "Observer"]


class Observer:
    """Does not listen. None of these may change anything."""

    def ruled(self, rules: TableRules, stmt: Stmt, branches: bool) -> None:
        """A rule's halves stand in for a call; `branches`: where it does not opt out at run time."""

    def inlined(self, rules: TableRules, stmt: Stmt, function: Function) -> None:
        """The code of `function` stands in for a call, to be differentiated."""

    def lowered(self, body: Body) -> None:
        """Nothing more is replaced: each call that is left has a rule of one line, sweeps of its own, or no derivative."""

    def paired(self, units: Iterable[Unit]) -> None:
        """These functions, called from here, get sweeps of their own."""

    def repeated(self, plan: Plan, values: Iterable[Var]) -> None:
        """The reverse sweep computes or loads these values once more."""


SILENT = Observer()
