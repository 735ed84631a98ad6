"""A cotangent that a rule does not give, said in its place: who needs it gets an error when the gradient is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba import types
from numba.extending import type_callable

__all__ = ["Missing", "MissingType", "not_implemented"]


@dataclass(frozen=True, slots=True)
class Missing:
    """What `not_implemented` returns in plain Python."""

    reason: str


class MissingType(types.Type):
    """The type of a missing cotangent; values of it are never made."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(name=f"not_implemented({reason!r})")


def not_implemented(reason: str) -> Missing:
    """A mark that a pullback returns in place of a cotangent that its rule does not give, with the reason, a literal string.

    A gradient that needs this cotangent is refused when it is compiled, with an UnsupportedError that names the rule, the argument, the
    reason and the line of the call; others are not affected. A pullback that adds into shadows calls it where it would add.

    >>> import numbarules as nr
    >>> from numba import njit
    >>> @njit
    ... def scaled(x, order):
    ...     return x * order
    >>> with nr.rule_scope():
    ...     @nr.rrule(scaled)
    ...     def scaled_rule(x, order):
    ...         def scaled_pullback(ybar):
    ...             return ybar * order, nr.not_implemented("the derivative by the order has no closed form")
    ...         return x * order, scaled_pullback
    ...     nr.grad(scaled)(2.0, 3.0)
    3.0
    """
    return Missing(reason)


def _type_of_missing(context: Any) -> Any:
    def typer(reason: Any) -> Any:
        return MissingType(reason.literal_value) if isinstance(reason, types.StringLiteral) else None

    return typer


type_callable(not_implemented)(_type_of_missing)
