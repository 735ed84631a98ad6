"""A rule with a pullback, run as plain Python at one point, and compared with what compiled code gives."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numba import typeof

from ..api import vjp
from ..compile.projection import dense_form
from ..compile.projectors import project_to
from ..errors import CheckError, DifferentiationError, message
from ..rules.table import Entry
from .vectors import Array, copied, distance, drawn, flat, is_float, rebuilt, same, size

__all__ = ["PlainRule", "fail"]


def fail(what: str, entry: Entry | None, contract: str, found: str, instead: str = "") -> NoReturn:
    """Raises the CheckError, with the line of the rule where there is one."""
    where = {"filename": entry.origin.filename, "line": entry.origin.line} if entry is not None else {}
    raise CheckError(message(what, contract=contract, found=found, instead=instead, **where))  # type: ignore[arg-type]


class PlainRule:
    """A rule and its arguments. `expected`: the cotangents that compiled code gives, which were checked."""

    def __init__(self, entry: Entry, args: tuple[Any, ...], call: Any, rtol: float, rng: np.random.Generator) -> None:
        self.entry = entry
        self.args = args
        self.rtol = rtol
        self.rng = rng
        self.y, pullback = vjp(call, *args)
        self.ybar = drawn(self.y, rng)
        self.expected = pullback(self.ybar)

    def fail(self, what: str, contract: str, found: str, instead: str = "") -> NoReturn:
        fail(f"{what}, by the rule `{self.entry.origin.name}` for {self.entry.signature}", self.entry, contract, found, instead)

    def check(self) -> None:
        """Compares the value, and the cotangents with all arguments wanted and, where shadows are handed over, with each alone."""
        before = copied(self.args)
        answer = self.called(self.entry.payload, *self.args)
        if answer is None:
            self.fail("no answer in Python", "called without Numba a rule says what it says to type inference", "None")
        y, pullback = answer
        if not self.agrees(y):
            self.fail("another value in Python", "a rule gives the same value with and without Numba", f"{y!r}, and compiled {self.y!r}")
        takes = len(inspect.signature(pullback).parameters)
        for wanted in self.choices() if takes > 1 else [tuple(True for _ in self.args)]:
            self.compare(wanted, self.run(pullback, takes, wanted))
        if not same(before, self.args):
            self.fail("changed arguments", "a rule does not write into its arguments", "other values than before")

    def called(self, code: Any, *args: Any) -> Any:
        """What the rule or its pullback returns."""
        try:
            return code(*args)
        except Exception as error:
            what = f"`{getattr(code, '__name__', 'a pullback')}` does not run in Python"
            contract = "a rule is plain Python, so that it can be tested and stepped through"
            instead = "what jitted code knows of a type by `overload`, register by `nr.specialized`: it serves Python too"
            try:
                self.fail(what, contract, f"{type(error).__name__}: {error}", instead)
            except CheckError as failed:
                raise failed from error

    def agrees(self, y: Any) -> bool:
        """True where the value is that of compiled code, and of its shape."""
        try:
            found = flat(self.y, y)
        except (TypeError, ValueError, AttributeError, IndexError):  # of another kind
            return False
        want = flat(self.y, self.y)
        return found.shape == want.shape and distance(found, want) <= self.rtol

    def choices(self) -> Iterator[tuple[bool, ...]]:
        """All arguments wanted, and each alone."""
        n = len(self.args)
        yield (True,) * n
        if n > 1:
            yield from (tuple(i == j for j in range(n)) for i in range(n) if size(self.args[i]))

    def run(self, pullback: Any, takes: int, wanted: tuple[bool, ...]) -> list[Array]:
        """The floats of the cotangent of each argument, as its tangent."""
        ybar = _given(copied(self.ybar))
        if takes == 1:
            found = self.called(pullback, ybar)
            returned = [found] if len(self.args) == 1 and not isinstance(found, tuple) else list(found)
            return [self.projected(i, bar) for i, bar in enumerate(returned[: len(self.args)])]
        shadows = [self.shadow(x) if w else None for x, w in zip(self.args, wanted, strict=True)]
        before = copied(tuple(shadows))
        by_value = self.by_value(self.called(pullback, ybar, *shadows, *[None] * (takes - 1 - len(shadows))))
        added = [None if s is None else s - b for s, b in zip(shadows, before, strict=True)]
        return [self.projected(i, a) + self.projected(i, r) for i, (a, r) in enumerate(zip(added, by_value, strict=True))]

    def by_value(self, returned: Any) -> Sequence[Any]:
        """What a pullback returns beside what it adds into shadows, by argument: one an argument, or those of the scalars alone."""
        items = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
        if len(items) == len(self.args):
            return items
        scalars = iter(items)
        return [next(scalars, None) if is_float(x) and not isinstance(x, np.ndarray) else None for x in self.args]

    def shadow(self, x: Any) -> Array | None:
        """The shadow of an array, or the dense one of a struct; something has been added into it already."""
        if isinstance(x, np.ndarray):
            return rebuilt(x, lambda leaf: self.rng.standard_normal(leaf.shape)) if is_float(x) else None
        if not hasattr(x, "__numbarules_struct__") or not size(x) or (form := dense_form(typeof(x))) is None:
            return None
        made: Array = form.zeros(x)
        made += self.rng.standard_normal(made.shape)
        return made

    def projected(self, i: int, bar: Any) -> Array:
        """The floats of a cotangent of an argument, projected as compiled code does."""
        x = self.args[i]
        if not size(x) or bar is None:
            return flat(x, None)
        try:
            return flat(x, project_to(x)(bar))
        except (DifferentiationError, ValueError) as error:
            what = f"a cotangent of argument {i} that is none of its tangents in Python"
            self.fail(what, "it has the kind and shape of its argument", str(error))

    def compare(self, wanted: tuple[bool, ...], found: list[Array]) -> None:
        for i, (x, w, want, got) in enumerate(zip(self.args, wanted, self.expected, found, strict=True)):
            if not w or not size(x):
                continue
            error = distance(got, flat(x, want))
            if error > max(self.rtol, 1e-9):
                alone = "" if all(wanted) else ", wanted alone,"
                contract = "a pullback adds to the shadow of an array, whatever is in it, and returns the rest"
                self.fail(f"a wrong cotangent of argument {i}{alone} in Python", contract, f"an error of {error:.2g}")


def _given(ybar: Any) -> Any:
    """The cotangent of a value as a pullback gets it: None in the places of a tuple that have no derivative."""
    if isinstance(ybar, tuple):
        items = [_given(item) for item in ybar]
        return type(ybar)(*items) if hasattr(ybar, "_fields") else tuple(items)
    return ybar if is_float(ybar) or hasattr(ybar, "__numbarules_struct__") else None
