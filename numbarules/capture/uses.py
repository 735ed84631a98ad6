"""Where a name is read: what decides whether a value may have a form of its own, or must be what Numba makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._numba import TypedIR, nir

__all__ = ["called_function", "used_at_once", "uses"]


def uses(typed: TypedIR, name: str) -> Iterator[Any]:
    """The statements that read `name`, once each."""
    for block in typed.ir.blocks.values():
        for stmt in block.body:
            if not isinstance(stmt, nir.Del) and any(v.name == name for v in _read(stmt)):
                yield stmt


def _read(stmt: Any) -> list[Any]:
    if not isinstance(stmt, nir.Assign):
        return stmt.list_vars()  # type: ignore[no-any-return]
    return [stmt.value] if isinstance(stmt.value, nir.Var) else stmt.value.list_vars() if isinstance(stmt.value, nir.Expr) else []


def used_at_once(typed: TypedIR, name: str) -> Any | None:
    """The statement that alone reads `name`, in the block that assigns it; None where there is another one, or it stands elsewhere."""
    found = list(uses(typed, name))
    for block in typed.ir.blocks.values():
        if len(found) == 1 and found[0] in block.body and any(isinstance(s, nir.Assign) and s.target.name == name for s in block.body):
            return found[0]
    return None


def called_function(typed: TypedIR, expr: Any) -> Any:
    """The Python function that a call expression calls, where its type tells."""
    return getattr(typed.typemap[expr.func.name], "typing_key", None)
