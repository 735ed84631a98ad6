"""Alias classes, and rows of arrays in a loop, as LLVM scopes: what each access of a generated function can be told apart from."""

from __future__ import annotations

from collections import Counter

from ..analysis.alias import aliases_of
from ..analysis.rows import Row, Rows, rows_of
from ..ir.nodes import AddTo, Const, Function, Get, Load, Put, Stmt, Store, Var, walk
from ..runtime.scopes import Access

__all__ = ["Scopes"]

MOST = 16
"""The classes with the most accesses get scopes; the metadata of an access is as long as the list."""


class Scopes:
    """The scopes of a function; none where its parameters may share memory in unknown ways, or where bounds are checked."""

    def __init__(self, function: Function) -> None:
        self._scopes: dict[Var, int] = {}
        self._rows = Rows({}, {})
        if function.sharing is None or dict(function.flags).get("boundscheck"):
            return
        self._aliases = aliases_of(function.region, function.sharing)
        count: Counter[Var] = Counter()
        for stmt in walk(function.region):
            if isinstance(stmt.op, Load | Store | AddTo | Put | Get):
                cls = self._aliases.of(stmt.args[0])
                if cls is not None:
                    count[cls] += 1
        self._scopes = {cls: i for i, (cls, _) in enumerate(count.most_common(MOST))}
        self._rows = rows_of(function.region)

    def access(self, stmt: Stmt, wrap: bool = False) -> Access | None:
        """How a statement accesses its first argument; None where nothing can be said."""
        memory = stmt.args[0]
        if not self._scopes or isinstance(memory, Const):
            return None
        cls = self._aliases.of(memory)
        if cls not in self._scopes:
            return None
        return Access(self._scopes[cls], len(self._scopes), wrap, self._rows.accesses.get(id(stmt)))

    def starting(self, loop: Stmt) -> tuple[Row, ...]:
        """The rows that are separate for as long as `loop` runs."""
        return self._rows.loops.get(id(loop), ())
