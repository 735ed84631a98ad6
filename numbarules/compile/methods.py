"""The method that is differentiated where there is no rule: the Python implementation that Numba's `@overload`s choose for a call."""

from __future__ import annotations

from typing import Any

from .._numba import overload_implementation
from ..ir.nodes import Apply, Attribute, Method, Named, Stmt
from .rules import argument_type

__all__ = ["method_of"]


def method_of(stmt: Stmt) -> Any:
    """The dispatcher of the implementation that runs for a call, a method or an attribute; None where Numba has no Python source for it."""
    assert isinstance(stmt.op, Apply)
    try:
        given = [argument_type(a) for a in stmt.args]
    except (NotImplementedError, AttributeError):
        return None
    split = len(given) - len(stmt.op.keywords)
    keywords = dict(zip(stmt.op.keywords, given[split:], strict=True))
    match stmt.op.callee:
        case Named(obj):
            return overload_implementation(obj, tuple(given[:split]), keywords) if callable(obj) else None
        case Method(name) | Attribute(name):
            return overload_implementation(name, tuple(given[:split]), keywords)
