"""What a random program may use at a place."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.nodes import Operand
from ..ir.types import Array

__all__ = ["Guarded", "Known"]


@dataclass(frozen=True, slots=True)
class Known:
    """An operand in scope; `shape` is the shape of an array, which the generator always knows."""

    operand: Operand
    shape: tuple[int, ...] | None = None

    @property
    def array(self) -> Array:
        """The type of an array."""
        assert isinstance(self.operand.type, Array)
        return self.operand.type

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape; that of a scalar has no axes."""
        return self.shape or ()


@dataclass(frozen=True, slots=True)
class Guarded:
    """A value that exists only where `condition` is `side`."""

    condition: Operand
    side: bool
    known: Known
