"""What a translation has at hand: the typed IR it reads, what each name stands for so far, and the statements made so far."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .._numba import TypedIR, nir, our_type
from ..errors import UnsupportedError, message
from ..ir.nodes import Apply, Cast, Const, If, Loc, Named, Operand, Raise, Stmt
from ..ir.rewrite import Builder, Names
from ..ir.types import BOOL, INT64, Type
from .values import Value

__all__ = ["STATE", "Frame"]

STATE = ("#slot:", "#iter:")
"""How the names of what changes unseen begin: the position of a loop's iterator, and of one that `iter` made."""


class Frame:
    """The state of one translation: `env` maps names to values, `b` collects the statements of the current region."""

    def __init__(self, typed: TypedIR) -> None:
        self.typed = typed
        self.b = Builder(Names())
        self.env: dict[str, Value] = {}
        self.filename: str = typed.ir.loc.filename

    def at(self, line: int) -> None:
        """Says where the statements to come stand in the user's source."""
        self.b.loc = Loc(self.filename, line)

    @contextmanager
    def nested(self) -> Iterator[Builder]:
        """Collects what is made meanwhile in a builder of its own, for a region."""
        outer, self.b = self.b, self.b.child()
        try:
            yield self.b
        finally:
            self.b = outer

    def refuse(self, what: str, found: str) -> NoReturn:
        """Raises UnsupportedError at the current line."""
        raise UnsupportedError(
            message(
                f"{what}, in `{self.typed.ir.func_id.func_name}`",
                filename=self.filename,
                line=self.b.loc.line if self.b.loc else None,
                found=found,
                instead="write it with loops over `range` and array elements, or move it into a function that no derivative passes through",
            )
        )

    def type_of(self, name: str) -> Type:
        """The type that inference gave a name."""
        return our_type(self.typed.typemap[name])

    def require(self, condition: Operand, error: type[Exception], *args: str) -> None:
        """Raises `error(*args)` where the condition does not hold."""
        bad = self.b.child()
        bad.add(self.raising(error, *args))
        self.b.add(Stmt(If(), (condition,), (), (self.b.child().region(), bad.region((), None)), self.b.loc))

    # ------------------------------------------------------------------------------------------ integers and errors

    def arithmetic(self, fn: Any, a: Operand, b: Operand) -> Operand:
        """Integer arithmetic, folded where both operands are known."""
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(INT64, fn(a.value, b.value))
        if fn is operator.add and isinstance(a, Const) and a.value == 0:
            return b
        if fn in (operator.add, operator.sub) and isinstance(b, Const) and b.value == 0:
            return a
        if fn is operator.mul and isinstance(b, Const) and b.value == 1:
            return a
        return self.b.one(Apply(Named(fn)), [a, b], INT64, "n")

    def equal(self, a: Operand, b: Operand) -> Operand:
        """`a == b`."""
        return self.b.one(Apply(Named(operator.eq)), [a, b], BOOL, "is")

    def integer(self, value: Operand) -> Operand:
        """`value` as an int64."""
        if isinstance(value, Const):
            return Const(INT64, int(value.value))  # type: ignore[call-overload]
        return value if value.type == INT64 else self.b.one(Cast(), [value], INT64, "n")

    def raising(self, error: type[Exception], *args: str) -> Stmt:
        """The statement that raises `error(*args)`."""
        where = nir.Loc(self.filename, self.b.loc.line if self.b.loc else 0)
        return Stmt(Raise(nir.StaticRaise(error, args, where)), (), (), (), self.b.loc)
