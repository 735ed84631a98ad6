"""What a scenario is, and what the table of rules can say about its call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import njit, types

import numbarules as nr
from numbarules.rules.table import table

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["OPTED_OUT", "WAYS", "Scenario", "matrix_squares", "registered", "rng", "vector_cubes", "vector_squares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A program and what it is compared with.

    `patterns` is the signature to opt out, `abstract` what a generic rule has in place of the first of them. `call` gives the arguments of
    the call from those of the program. `pays` tells whether opting out is expected to be faster than the generic rule.
    """

    name: str
    function: Any
    patterns: tuple[Any, ...]
    abstract: Any
    rule: Callable[[Any, Any, bool], Any]
    program: Any
    pasted: Any
    hand: Any
    arguments: Callable[[int], tuple[Any, ...]]
    argnums: int | tuple[int, ...] = 0
    call: Callable[..., tuple[Any, ...]] = lambda *args: args
    largest: int = 1024
    pays: bool = True

    @property
    def special(self) -> Any:
        """The pattern for which a rule's body opts out."""
        return self.patterns[0]


def rng() -> np.random.Generator:
    """The generator of all arguments, the same at each call."""
    return np.random.default_rng(1)


# ---------------------------------------------------------------------------------------------- what makes a number of a result


@njit
def vector_squares(y):
    total = 0.0
    for i in range(y.shape[0]):
        total += y[i] * y[i]
    return total


@njit
def vector_cubes(y):
    total = 0.0
    for i in range(y.shape[0]):
        total += y[i] * y[i] * y[i]
    return total


@njit
def matrix_squares(Y):
    total = 0.0
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            total += Y[i, j] * Y[i, j]
    return total


# ---------------------------------------------------------------------------------------------- what the table says

OPTED_OUT = ("opt_out", "return None", "by type")
WAYS = ("generic", *OPTED_OUT, "branch", "no rule")
NEVER = types.NoneType


@contextmanager
def registered(scenario: Scenario, way: str) -> Iterator[None]:
    """Lets the table say about a scenario's call what `way` names; afterwards it is as before."""
    s = scenario
    argument_types = tuple(map(numba.typeof, s.call(*s.arguments(16))))
    mine = [e for e in table.entries(s.function) if e.matches(argument_types) and (way == "no rule" or e.kind == "opt_out")]
    for e in mine:
        table.remove(e)
    try:
        with nr.rule_scope():
            if way == "branch":
                nr.rrule(s.function, on_unstable="branch")(s.rule(s.abstract, NEVER, True))
            elif way != "no rule":
                nr.rrule(s.function)(s.rule(s.abstract, s.special if way == "by type" else NEVER, False))
            if way == "opt_out":
                nr.opt_out(s.function, *s.patterns)
            if way == "return None":
                nr.rrule(s.function)(_says_none(*s.patterns))
            yield
    finally:
        for e in mine:
            table.add(e)


def _says_none(first: Any, second: Any = None) -> Any:
    def for_one(a: first):
        return None

    def for_two(a: first, b: second):
        return None

    return for_one if second is None else for_two
