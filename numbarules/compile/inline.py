"""What stands in for a call: the code of a jitted function, or the library's implementation of a NumPy function."""

from __future__ import annotations

from typing import Any

from .._numba import Dispatcher, numba_type, types
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Function, Method, Named, Operand, Stmt, walk
from ..ir.types import Array, NoneType
from ..library.expansions import lookup_expansion
from .capture import bind, capture, options_of, python_function, recursive
from .rules import argument_type

__all__ = ["Inliner", "size"]

Found = tuple[Function, tuple[Operand | None, ...]]


def size(function: Function) -> int:
    """How many statements a function has."""
    return sum(1 for _ in walk(function.region))


class Inliner:
    """Finds the function to put in place of a call. `options` are those of the caller: code under others is not mixed in."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def __call__(self, stmt: Stmt) -> Found | None:
        assert isinstance(stmt.op, Apply)
        callee = stmt.op.callee
        if isinstance(callee, Named) and isinstance(callee.obj, Dispatcher):
            return self.dispatcher(stmt, callee.obj)
        return self.expansion(stmt)

    def dispatcher(self, stmt: Stmt, f: Any) -> Found | None:
        """The code of a jitted function."""
        if options_of(f) != self.options or recursive(f):
            return None
        try:
            return self.bound(stmt, python_function(f))
        except UnsupportedError:
            return None

    def expansion(self, stmt: Stmt) -> Found | None:
        """The library's implementation of a NumPy function or array method."""
        assert isinstance(stmt.op, Apply)
        key: Any = None
        match stmt.op.callee:
            case Named(obj):
                key = obj
            case Method(name) if stmt.args and isinstance(stmt.args[0].type, Array):
                key = ("Array", name)
        if key is None:
            return None
        split = len(stmt.args) - len(stmt.op.keywords)
        given = [argument_type(a) for a in stmt.args]
        try:
            implementation = lookup_expansion(key, tuple(given[:split]), dict(zip(stmt.op.keywords, given[split:], strict=True)))
        except TypeError:
            return None
        if implementation is None:
            return None
        return self.bound(stmt, python_function(implementation), literals=True)

    def bound(self, stmt: Stmt, function: Any, literals: bool = False) -> Found | None:
        assert isinstance(stmt.op, Apply)
        split = len(stmt.args) - len(stmt.op.keywords)
        try:
            args = bind(function, list(stmt.args[:split]), dict(zip(stmt.op.keywords, stmt.args[split:], strict=True)))
        except TypeError:
            return None
        numba_types: list[Any] = []
        operands: list[Operand | None] = []
        for _, value, given in args:
            if given:
                t = argument_type(value) if literals else types.unliteral(numba_type(value.type))
                numba_types.append(types.none if isinstance(value.type, NoneType) else t)
                operands.append(value)
            else:
                numba_types.append(types.Omitted(value))
                operands.append(None)
        return capture(function, tuple(numba_types), self.options), tuple(operands)


