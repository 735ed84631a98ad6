"""What generated code writes down for its reverse sweep, read off the code itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.nodes import For, Function, Invoke, Loc, Operand, PrivateCopy, Put, Region, Slab, Snapshot, Stmt, Var, While
from ..ir.types import Array, Pointer
from ..transform.residuals import size_of
from .names import value_name
from .report import Kept, Place

__all__ = ["kept_by"]


def kept_by(function: Function, name: str) -> Iterator[Kept]:
    """What a generated function writes down; `name` is the user's function that it is made of."""
    yield from _Reader(name).region(function.region, function.loc, None)


class _Reader:
    def __init__(self, function: str) -> None:
        self.function = function
        self.made: dict[Operand, Stmt] = {}

    def region(self, region: Region, around: Loc | None, loop: Loc | None) -> Iterator[Kept]:
        for stmt in region.body:
            self.made.update(dict.fromkeys(stmt.results, stmt))
            match stmt.op:
                case Put():
                    yield self.value(stmt.args[2], around, loop)
                case Snapshot():
                    yield self.copy(stmt.args[1], stmt.loc or around, loop)
                case PrivateCopy():
                    yield self.copy(stmt.args[0], stmt.loc or around, loop)
            repeats = isinstance(stmt.op, For | While)
            for inner in stmt.regions:
                if repeats:
                    self.made.update(dict.fromkeys(inner.params, stmt))
                yield from self.region(inner, stmt.loc or around, (stmt.loc or around) if repeats else loop)

    def value(self, v: Operand, around: Loc | None, loop: Loc | None) -> Kept:
        made = self.made.get(v)
        at = made.loc if made is not None and made.loc is not None else around
        if isinstance(v.type, Pointer):
            called = made.op.name.removesuffix("_forward") if made is not None and isinstance(made.op, Invoke) else ""
            name = f"what `{called}` has recorded" if called else "what an inner loop has recorded"
            if made is not None and not called and not isinstance(made.op, Slab):
                name = "what was recorded further in"
            return Kept(_place(at), name, "address", "address", 8, _loop(loop), self.function)
        name = value_name(v, made, around) if isinstance(v, Var) else repr(v)
        what = "array header" if isinstance(v.type, Array) else "value"
        return Kept(_place(at), name, str(v.type), what, size_of(v.type), _loop(loop), self.function)  # type: ignore[arg-type]

    def copy(self, v: Operand, at: Loc | None, loop: Loc | None) -> Kept:
        name = value_name(v, self.made.get(v), at) if isinstance(v, Var) else repr(v)
        return Kept(_place(at), name, str(v.type), "copy", None, _loop(loop), self.function)


def _place(loc: Loc | None) -> Place:
    return Place(loc.filename, loc.line) if loc is not None else Place("", 0)


def _loop(loc: Loc | None) -> Place | None:
    return _place(loc) if loc is not None else None
