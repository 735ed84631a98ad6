"""Twenty compiled gradients over a few functions, rules for those whose answers tell them apart, and what the table should say.

The model of the table knows three patterns for a float argument, each within the next, a scope, and nothing else of numbarules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit, types

import numbarules as nr
from numbarules.rules.table import table

f4, f8 = types.float32, types.float64
X = 1.5
CHAIN: dict[str, Any] = {"f8": f8, "Real": nr.Real, "Any": nr.Any}  # each within the next; a float32 is no f8
PRIMES = (2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0)


@njit
def b0(x):
    return 0.5 * x * x


@njit
def b1(x):
    return 1.5 * x * x


@njit
def b2(x):
    return 2.5 * x * x


@njit
def b3(x):
    return 3.5 * x * x


@njit
def b4(x):
    return 4.5 * x * x


@njit
def b5(x):
    return 5.5 * x * x


@njit
def b6(x):
    return 6.5 * x * x


@njit
def b7(x):
    return 7.5 * x * x


@njit
def above(x):
    return 3.0 * b0(x)


@njit
def two(x, y):
    return x * y * y


@njit
def recursive(x, n):
    if n == 0:
        return b1(x)
    return 2.0 * recursive(x, n - 1)


BASES: dict[str, Any] = {f.__name__: f for f in (b0, b1, b2, b3, b4, b5, b6, b7, above, two)}


def doubled(f: Any) -> Any:
    @njit
    def double(x):
        return 2.0 * f(x)

    return double


@njit
def of_two(x):
    return two(x, 3.0)


@nr.njit_grad
def decorated(x):
    return b3(x) + b4(x)


@nr.njit_grad("float64(float64)")
def fixed(x):
    return 10.0 * b5(x)


def recursion(x):
    return recursive(x, 2)


@njit
def caller(x):
    return 100.0 * decorated.grad(x)


@njit
def far_caller(x):
    return caller(x) + 1.0


@dataclass(frozen=True)
class Member:
    """One compiled gradient: a call of it, the dispatcher that holds its code if one does, and its value by the derivatives of bases."""

    name: str
    call: Callable[[], Any]
    code: Any
    bases: tuple[str, ...]
    expected: Callable[[Callable[..., float]], Any]
    single: bool = False  # called with a float32


def population() -> list[Member]:
    """The gradients, all of them alive as long as the list."""
    made = [doubled(BASES[f"b{i}"]) for i in range(8)]
    grads = [nr.grad(f) for f in made]
    nested, second, deep = nr.grad(doubled(above)), nr.grad(of_two), nr.grad(recursion)
    valued = nr.value_and_grad(made[2])
    of_six, of_seven = made[6], made[7]

    @njit
    def pulled(x):
        return nr.vjp(of_seven, x)[1](1.0)[0]

    def plain(i: int) -> Member:
        return Member(f"grad of b{i}", lambda: grads[i](X), grads[i], (f"b{i}",), lambda d: 2 * d(f"b{i}"))

    def both(d: Callable[..., float]) -> float:
        return d("b3") + d("b4")

    return [
        *map(plain, range(8)),
        Member("value_and_grad", lambda: valued(X)[1], valued, ("b2",), lambda d: 2 * d("b2")),
        Member("decorated.grad", lambda: decorated.grad(X), decorated.grad, ("b3", "b4"), both),
        Member("decorated.value_and_grad", lambda: decorated.value_and_grad(X)[1], decorated.value_and_grad, ("b3", "b4"), both),
        Member("explicit signature", lambda: fixed.grad(X), fixed.grad, ("b5",), lambda d: 10 * d("b5")),
        Member("a rule within a rule", lambda: nested(X), nested, ("above", "b0"), lambda d: 2 * d("above")),
        Member("two arguments", lambda: second(X), second, ("two",), lambda d: d("two")),
        Member("recursion", lambda: deep(X), deep, ("b1",), lambda d: 4 * d("b1")),
        Member("caller", lambda: caller(X), caller, ("b3", "b4"), lambda d: 100 * both(d)),
        Member("caller's caller", lambda: far_caller(X), far_caller, ("b3", "b4"), lambda d: 100 * both(d) + 1),
        Member("vjp", lambda: nr.vjp(of_six, X)[1](1.0)[0], None, ("b6",), lambda d: 2 * d("b6")),
        Member("vjp in jitted code", lambda: pulled(X), pulled, ("b7",), lambda d: 2 * d("b7")),
        Member("float32", lambda: grads[0](np.float32(X)), None, ("b0",), lambda d: 2 * d("b0", single=True), single=True),
    ]


# ---------------------------------------------------------------------------------------------- entries and their model

Slot = tuple[str, str]  # a base and a pattern
OPT_OUT = None


def register(slot: Slot, answer: float | None) -> Any:
    """Puts an entry into the table: a rule that gives `answer` times the cotangent, or an opt-out."""
    base, pattern = slot
    f, annotation = BASES[base], CHAIN[pattern]
    patterns = (annotation,) * (2 if base == "two" else 1)
    if answer is OPT_OUT:
        return nr.opt_out(f, *patterns, replace=True)
    rule = rule_of_two(answer) if base == "two" else rule_of_one(answer)
    rule.__annotations__ = dict(zip("xy", patterns, strict=False))
    nr.rrule(f, replace=True)(rule)
    return next(e for e in table.entries(f) if e.payload is rule)


def rule_of_one(k: float) -> Any:
    def rule(x):
        return x, lambda ybar: k * ybar

    return rule


def rule_of_two(k: float) -> Any:
    def rule(x, y):
        return x, lambda ybar: (k * ybar, None)

    return rule


@dataclass
class Model:
    """What the table holds: by slot the answer outside of the scope, and inside; with a number for each registration."""

    outside: dict[Slot, tuple[int, float | None]] = field(default_factory=dict)
    inside: dict[Slot, tuple[int, float | None]] = field(default_factory=dict)

    def winner(self, base: str, single: bool = False) -> tuple[int, float | None] | None:
        """The answer for a call of a base with float64s, or with float32s."""
        now = {**self.outside, **self.inside}
        matching = [p for p in CHAIN if not (single and p == "f8") and (base, p) in now]
        return now[base, matching[0]] if matching else None

    def derivative(self, base: str, single: bool = False) -> float:
        """The derivative of a base by its first argument at X, as the rules have it."""
        found = self.winner(base, single)
        if found is not None and found[1] is not OPT_OUT:
            return found[1]
        if base == "above":
            return 3.0 * self.derivative("b0", single)
        return 9.0 if base == "two" else (2 * int(base[1]) + 1) * X

    def asked(self, member: Member) -> tuple[Any, ...]:
        """What a member's code is made with: the answers that it has got."""
        answers = [self.winner(b, member.single) for b in member.bases]
        if member.bases[0] == "above" and answers[0] is not None and answers[0][1] is not OPT_OUT:
            answers = answers[:1]  # the call inside is not looked at
        return tuple(answers)


def values(members: Iterable[Member]) -> list[float]:
    """What the gradients give."""
    return [float(m.call()) for m in members]


def expected(members: Iterable[Member], model: Model) -> list[float]:
    """What they should give."""
    return [float(m.expected(model.derivative)) for m in members]
