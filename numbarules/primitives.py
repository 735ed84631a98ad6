"""Functions that stand for operations Python has no name for; the engine maps calls of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Empty", "Failure", "GlobalArray", "Whole", "accumulate", "assign", "call_value", "ieee_divide"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that generated code raises: what a `Raise` of our own holds."""

    kind: type[Exception]
    text: str


@dataclass(frozen=True, slots=True)
class Empty:
    """Makes an empty list, set or dictionary of the type `type`, one of the back end's."""

    type: Any


@dataclass(frozen=True, slots=True, eq=False)
class GlobalArray:
    """Gives an array that the program knows as a constant; nobody writes into it."""

    array: Any


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A jitted function that is called as it is, because it has a `construct` (at `line` of its source) that the IR has no form for."""

    function: Any
    construct: str
    instead: str
    filename: str
    line: int


def assign(target: Any, value: Any) -> None:
    """`target[...] = value`."""
    target[...] = value


def call_value(f: Any, *args: Any, **keywords: Any) -> Any:
    """Calls its first argument: a function that is known only at run time, or a pullback."""
    return f(*args, **keywords)


def ieee_divide(a: float, b: float) -> float:
    """`a / b` by IEEE 754: a division by zero gives an infinity or NaN and never raises."""
    if b == 0.0:
        return a * math.copysign(math.inf, b) if a else math.nan
    return a / b


ieee_divide.__numbarules_pure__ = ieee_divide.__numbarules_cheap__ = True  # type: ignore[attr-defined]


def accumulate(total: float, term: float) -> float:
    """`total + term`, a step of a sum whose order nobody has fixed: the compiler may add in any order."""
    return total + term


accumulate.__numbarules_pure__ = accumulate.__numbarules_cheap__ = True  # type: ignore[attr-defined]
