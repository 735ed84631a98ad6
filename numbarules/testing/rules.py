"""`check_rule`: a rule, by the derivative of a call that it answers, and by itself, as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import CheckError, UnstableRuleError
from ..reports.explain import explain
from ..reports.report import CallSite, Report
from ..rules.table import Entry, show_key
from .gradients import GradientCheck, Subject, checked, tolerance
from .plain import PlainRule, fail
from .stable import check_stable
from .vectors import size

__all__ = ["RuleCheck", "caller", "check_rule", "function_name", "site_of", "subject", "with_floats"]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What `check_rule` found: the entry that answers, and how near the derivative is to differences."""

    entry: Entry
    gradient: GradientCheck

    def __str__(self) -> str:
        return f"{self.entry.signature}: {self.gradient.entries} partial derivatives within {self.gradient.error:.1e} of differences"


def check_rule(f: Any, *args: Any, rtol: float | None = None, value_rtol: float | None = None, seed: int = 0) -> RuleCheck:
    """Checks the rule that answers a call of `f` with `args`, and returns the entry and the error that was found.

    `f`: what the rule is for: a function, an operator, a jitted function, or a method as (class, name). `args` are positional. `rtol`,
    `value_rtol` and `seed`: as for `check_gradient`.

    What is checked: a rule answers the call, and type inference says so (no value decides); everything that `check_gradient` checks, of
    a function that only makes this call; and for a rule with a pullback, run as plain Python: its value, its cotangents with each
    argument wanted alone and with all, as tangents of the arguments, and that it adds into the shadows that it is handed and leaves its own
    arguments alone.

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
        fail(
            f"no rule answers {function_name(f)}({', '.join(site.types)})",
            site.entry,
            contract="`check_rule` checks a rule that is used at these types",
            found=f"opted out {site.opted_out}" if site.opted_out else "no entry" if site.entry is None else f"{site.entry}",
        )
    check_stable(call, *args, argnums=with_floats(args))
    gradient = checked(call, args, rtol, value_rtol, seed, subject(site.entry, "the rule"))
    if site.entry.kind == "rule":
        PlainRule(site.entry, args, call, tolerance(args) if rtol is None else rtol, np.random.default_rng(seed)).check()
    return RuleCheck(site.entry, gradient)


def subject(entry: Entry, what: str) -> Subject:
    """An entry, as what is checked; `what` it is."""
    return Subject(f"{what} `{entry.origin.name}` for {entry.signature}", entry.origin.filename, entry.origin.line)


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


def function_name(f: Any) -> str:
    """What is called, as a message names it."""
    return f if isinstance(f, str) else show_key(f) if not isinstance(f, tuple) else f"{f[0].__name__}.{f[1]}"
