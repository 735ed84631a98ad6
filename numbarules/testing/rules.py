"""`check_rule`: a rule, by the derivative of a call that it answers, and by itself, as plain Python."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from ..api import vjp
from ..errors import CheckError, UnstableRuleError, message
from ..reports.explain import explain
from ..reports.report import CallSite, Report
from ..rules.table import Entry, show_key
from .gradients import GradientCheck, check_gradient, tolerance
from .stable import check_stable
from .vectors import copied, distance, drawn, flat, is_float, leaves, rebuilt, size

__all__ = ["RuleCheck", "caller", "check_rule", "function_name", "site_of", "with_floats"]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What `check_rule` found: the entry that answers, and how near the derivative is to differences."""

    entry: Entry
    gradient: GradientCheck

    def __str__(self) -> str:
        return f"{self.entry.signature}: {self.gradient.entries} partial derivatives within {self.gradient.error:.1e} of differences"


def check_rule(f: Any, *args: Any, rtol: float | None = None, seed: int = 0) -> RuleCheck:
    """Checks the rule that answers a call of `f` with `args`, and returns the entry and the error that was found.

    `f`: what the rule is for: a function, an operator, a jitted function, or a method as (class, name). `args` are positional. `rtol` and
    `seed`: as for `check_gradient`.

    What is checked: a rule answers the call, and type inference says so (no value decides); everything that `check_gradient` checks, of
    a function that only makes this call; and for a rule with a pullback, run as plain Python: its value, its cotangents with each
    argument wanted alone and with all, and that it adds into the shadows that it is handed and leaves its own arguments alone.

    Raises CheckError, an AssertionError, where one of these does not hold.

    >>> import numpy as np
    >>> from numbarules.testing import check_rule
    >>> check_rule(np.linalg.det, np.array([[2.0, 1.0], [0.5, 3.0]])).entry.origin.name
    'det_rule'
    """
    call = caller(f, len(args))
    try:
        site = site_of(explain(call, *args, argnums=with_floats(args)), f)
    except UnstableRuleError as error:
        raise CheckError(f"a rule of {function_name(f)} is not stable\n{error}") from error
    if site.how not in ("rule", "scalar rule") or site.entry is None:
        _fail(
            f"no rule answers {function_name(f)}({', '.join(site.types)})",
            site.entry,
            contract="`check_rule` checks a rule that is used at these types",
            found=f"opted out {site.opted_out}" if site.opted_out else "no entry" if site.entry is None else f"{site.entry}",
        )
    check_stable(call, *args, argnums=with_floats(args))
    gradient = check_gradient(call, *args, rtol=rtol, seed=seed)
    if site.entry.kind == "rule" and all(is_float(x) or not _holds_floats(x) for x in args):
        _Plain(site.entry, args, call, tolerance(args) if rtol is None else rtol, np.random.default_rng(seed)).check()
    return RuleCheck(site.entry, gradient)


def caller(f: Any, n: int) -> Callable[..., Any]:
    """A new function of `n` parameters that only calls `f`."""
    names = [f"x{i}" for i in range(n)]
    method = f[1] if isinstance(f, tuple) else f.rpartition(".")[2] if isinstance(f, str) else None
    called = f"{names[0]}.{method}({', '.join(names[1:])})" if method else f"f({', '.join(names)})"
    name = f"call_of_{method or getattr(f, '__name__', 'f')}"
    namespace: dict[str, Any] = {"f": f}
    exec(f"def {name}({', '.join(names)}):\n    return {called}\n", namespace)
    made: FunctionType = namespace[name]
    return made


def site_of(report: Report, f: Any) -> CallSite:
    """The call itself, in the report of a function that only makes this call."""
    if report.refusal:
        raise CheckError(f"a call of {function_name(f)} has no derivative\n{report.refusal}")
    sites = [s for s in report.sites if s.how != "passive"]
    if not sites:
        raise CheckError(f"no derivative passes through a call of {function_name(f)}: no float result depends on its arguments")
    return sites[0]


def with_floats(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments with floats."""
    found = tuple(i for i, a in enumerate(args) if size(a))
    if not found:
        raise CheckError("no argument holds a float: there is nothing to differentiate by")
    return found


def _holds_floats(value: Any) -> bool:
    return any(True for _ in leaves(value))


def function_name(f: Any) -> str:
    """What is called, as a message names it."""
    return f if isinstance(f, str) else show_key(f) if not isinstance(f, tuple) else f"{f[0].__name__}.{f[1]}"


def _fail(what: str, entry: Entry | None, contract: str, found: str) -> NoReturn:
    where = {"filename": entry.origin.filename, "line": entry.origin.line} if entry is not None else {}
    raise CheckError(message(what, contract=contract, found=found, **where))  # type: ignore[arg-type]


class _Plain:
    """A rule at one point, run as plain Python. `expected`: the cotangents that compiled code gives, which were checked."""

    def __init__(self, entry: Entry, args: tuple[Any, ...], call: Any, rtol: float, rng: np.random.Generator) -> None:
        self.entry = entry
        self.args = args
        self.rtol = rtol
        self.rng = rng
        self.y, pullback = vjp(call, *args)
        self.ybar = drawn(self.y, rng)
        self.expected = pullback(self.ybar)

    def fail(self, what: str, contract: str, found: str) -> NoReturn:
        _fail(f"{what}, by the rule `{self.entry.origin.name}` for {self.entry.signature}", self.entry, contract, found)

    def check(self) -> None:
        before = copied(self.args)
        answer = self.entry.payload(*self.args)
        if answer is None:
            self.fail("no answer in Python", "called without Numba a rule says what it says to type inference", "None")
        y, pullback = answer
        if distance(flat(self.y, y), flat(self.y, self.y)) > self.rtol:
            self.fail("another value in Python", "a rule gives the same value with and without Numba", f"{y!r}, and compiled {self.y!r}")
        takes = len(inspect.signature(pullback).parameters)
        for wanted in self.choices() if takes > 1 else [tuple(True for _ in self.args)]:
            self.compare(wanted, self.run(pullback, takes, wanted))
        if distance(flat(self.args, self.args), flat(before, before)) > 0:
            self.fail("changed arguments", "a rule does not write into its arguments", "other values than before")

    def choices(self) -> Iterator[tuple[bool, ...]]:
        """All arguments wanted, and each alone."""
        n = len(self.args)
        yield (True,) * n
        if n > 1:
            yield from (tuple(i == j for j in range(n)) for i in range(n) if size(self.args[i]))

    def run(self, pullback: Any, takes: int, wanted: tuple[bool, ...]) -> list[Any]:
        """The cotangents of the wanted arguments, those of arrays by what was added into their shadows."""
        if takes == 1:
            found = pullback(copied(self.ybar))
            return [found] if len(self.args) == 1 and not isinstance(found, tuple) else list(found)
        shadows: list[Any] = [self.shadow(x) if w else None for x, w in itertools.zip_longest(self.args, wanted)]
        shadows += [None] * (takes - 1 - len(shadows))
        full = copied(tuple(shadows))
        returned = pullback(copied(self.ybar), *shadows)
        scalars = iter(returned if isinstance(returned, tuple) else () if returned is None else (returned,))
        by_place = isinstance(returned, tuple) and len(returned) == len(self.args)
        out: list[Any] = []
        for i, x in enumerate(self.args):
            value = next(scalars, None) if by_place or (is_float(x) and not isinstance(x, np.ndarray)) else None
            out.append(shadows[i] - full[i] if isinstance(x, np.ndarray) and shadows[i] is not None else value)
        return out

    def shadow(self, x: Any) -> Any:
        """A shadow that something has been added into already."""
        return rebuilt(x, lambda leaf: self.rng.standard_normal(leaf.shape)) if isinstance(x, np.ndarray) and is_float(x) else None

    def compare(self, wanted: tuple[bool, ...], found: list[Any]) -> None:
        for i, (x, w, want, got) in enumerate(zip(self.args, wanted, self.expected, found, strict=False)):
            if not w or not size(x):
                continue
            a, b = flat(x, got), flat(x, want)
            error = distance(a, b) if a.shape == b.shape else np.inf
            if error > max(self.rtol, 1e-9):
                alone = "" if all(wanted) else ", wanted alone,"
                contract = "a pullback adds to the shadow of an array, whatever is in it, and returns the rest"
                self.fail(f"a wrong cotangent of argument {i}{alone} in Python", contract, f"an error of {error:.2g}")

