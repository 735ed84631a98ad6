"""A call of a function that is known, as the modules that give some calls a form of their own see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.types import Type
from .values import Value

__all__ = ["Called"]


@dataclass(frozen=True, slots=True)
class Called:
    """`target = function(*args)`, the last `len(keywords)` of them passed by these names.

    `type` is what it returns, `numba_type` the same as Numba has it.
    """

    target: str
    function: Any
    args: tuple[Value, ...]
    keywords: tuple[str, ...]
    type: Type
    numba_type: Any

    @property
    def positional(self) -> tuple[Value, ...]:
        """The arguments that are passed by position."""
        return self.args[: len(self.args) - len(self.keywords)]

    @property
    def named(self) -> Mapping[str, Value]:
        """The arguments that are passed by name."""
        return dict(zip(self.keywords, self.args[len(self.args) - len(self.keywords) :], strict=True))
