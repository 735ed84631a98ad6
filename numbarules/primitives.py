"""Functions that stand for operations Python has no name for; the engine maps calls of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Failure", "assign", "ieee_divide"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that generated code raises: what a `Raise` of our own holds."""

    kind: type[Exception]
    text: str


def assign(target: Any, value: Any) -> None:
    """`target[...] = value`."""
    target[...] = value


def ieee_divide(a: float, b: float) -> float:
    """`a / b` by IEEE 754: a division by zero gives an infinity or NaN and never raises."""
    if b == 0.0:
        return a * math.copysign(math.inf, b) if a else math.nan
    return a / b


ieee_divide.__numbarules_pure__ = ieee_divide.__numbarules_cheap__ = True  # type: ignore[attr-defined]
