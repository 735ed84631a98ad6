"""`check_opt_out`: is a call that opts out differentiated right, and does opting out pay?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types

from ..api import vjp
from ..errors import CheckError
from ..reports.explain import explain
from ..reports.report import CallSite
from ..rules.register import rule_scope
from ..rules.table import Entry, table
from .gradients import checked, tolerance
from .rules import caller, function_name, site_of, subject, with_floats
from .vectors import distance, drawn, flat

__all__ = ["OptOutCheck", "OptOutLosesWarning", "check_opt_out"]


class OptOutLosesWarning(UserWarning):
    """Differentiating the method takes longer than the rule that was opted out of."""


@dataclass(frozen=True, slots=True)
class OptOutCheck:
    """What `check_opt_out` found. Times are of value and cotangents together, in seconds, the best of several.

    `entry` opts out, `generic` is the rule that would answer else; `error` is the largest relative error against differences.
    """

    call: str
    entry: Entry
    generic: Entry
    error: float
    opted_out_seconds: float
    generic_seconds: float

    @property
    def factor(self) -> float:
        """How many times longer the opted-out derivative takes than the generic rule; above 1 opting out loses."""
        return self.opted_out_seconds / self.generic_seconds

    @property
    def loses(self) -> bool:
        """True where opting out costs time, by more than measurements scatter."""
        return self.factor > 1.1

    def __str__(self) -> str:
        a, b = self.opted_out_seconds * 1e6, self.generic_seconds * 1e6
        verdict = (
            f"opting out loses: {self.factor:.2f} times the time of the rule"
            if self.loses
            else f"opting out wins: {1 / self.factor:.2f} times as fast as the rule"
            if self.factor < 0.9
            else "both take the same time"
        )
        return f"{self.call}: {verdict} ({a:.3g} us opted out by {self.entry.origin}, {b:.3g} us by {self.generic.signature})"


def check_opt_out(
    f: Any, *args: Any, rtol: float | None = None, value_rtol: float | None = None, seed: int = 0, repeat: int = 7
) -> OptOutCheck:
    """Checks a call of `f` that opts out at the types of `args`: both ways to differentiate it agree, and which one is faster.

    `f`, `args`, `rtol`, `value_rtol`, `seed`: as for `check_rule`. The derivative of the method that is differentiated instead is checked
    as by `check_gradient`; the generic rule, the most specific one that has a pullback for these types, is run too, and has to give the
    same cotangents. Times are the best of `repeat` runs, of value and cotangents together, called from Python.

    Where opting out takes longer, the answer says by which factor, and an OptOutLosesWarning is given.

    Raises CheckError, an AssertionError, where the call does not opt out, where no other rule answers it, or where a check fails.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> from numba import types
    >>> from numbarules.testing import check_opt_out
    >>> with nr.rule_scope():
    ...     entry = nr.opt_out(np.vdot, types.float64[::1], types.float64[::1])
    ...     found = check_opt_out(np.vdot, np.ones(3), np.ones(3))
    >>> found.generic.origin.name
    'vdot_rule'
    """
    call = caller(f, len(args))
    site = site_of(explain(call, *args, argnums=with_floats(args)), f)
    if not site.opted_out or site.entry is None:
        raise CheckError(f"{function_name(f)}({', '.join(site.types)}) does not opt out: {site.how}, {site.entry or 'no entry'}")
    generic = _generic(f, args, site)
    limit = tolerance(args) if rtol is None else rtol
    found_error = checked(call, args, limit, value_rtol, seed, subject(site.entry, "what is differentiated by the opt-out")).error
    fast = _timed(call, args, seed, repeat)
    with _answering(generic, site, f, args) as other:
        slow = _timed(other, args, seed, repeat)
    error = distance(fast.cotangents, slow.cotangents)
    if error > limit:
        raise CheckError(
            f"{function_name(f)}({', '.join(site.types)}): the method that is differentiated and the generic rule disagree by {error:.2g}\n"
            f"Found: {fast.cotangents} opted out, {slow.cotangents} by {generic}"
        )
    found = OptOutCheck(f"{function_name(f)}({', '.join(site.types)})", site.entry, generic, found_error, fast.seconds, slow.seconds)
    if found.loses:
        warnings.warn(str(found), OptOutLosesWarning, stacklevel=2)
    return found


def _generic(f: Any, args: tuple[Any, ...], site: CallSite) -> Entry:
    """The most specific rule that does not opt out: one that would answer if nothing did."""
    for entry in table.ranked(f, _written(args)):
        if entry is site.entry or entry.kind not in ("rule", "scalar"):
            continue
        with _answering(entry, site, f, args) as call:
            if site_of(explain(call, *args, argnums=with_floats(args)), f).how in ("rule", "scalar rule"):
                return entry
    raise CheckError(f"{function_name(f)}({', '.join(site.types)}): no rule to compare with answers these types; {site.reason}")


@contextmanager
def _answering(generic: Entry, site: CallSite, f: Any, args: tuple[Any, ...]) -> Iterator[Callable[..., Any]]:
    """Lets a rule answer these very types; gives a new function that makes the call."""
    winner = site.entry
    assert winner is not None
    function = generic.function if winner.any_function else winner.function
    with rule_scope():
        table.add(Entry(function, _written(args), generic.kind, generic.payload, winner.origin, len(args)), replace=True)
        yield caller(f, len(args))


def _written(args: tuple[Any, ...]) -> tuple[types.Type, ...]:
    return tuple(types.unliteral(typeof(a)) for a in args)


@dataclass(frozen=True, slots=True)
class _Timed:
    cotangents: Any
    seconds: float


def _timed(call: Callable[..., Any], args: tuple[Any, ...], seed: int, repeat: int) -> _Timed:
    y, pullback = vjp(call, *args)
    ybar = drawn(y, np.random.default_rng(seed))
    return _Timed(flat(args, pullback(ybar)), best_time(lambda: vjp(call, *args)[1](ybar), repeat))


def best_time(run: Callable[[], Any], repeat: int) -> float:
    """The seconds that something takes: the least of several averages."""

    def once() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    inner = max(1, min(1000, int(2e-3 / max(min(once(), once()), 1e-7))))
    return min(sum(once() for _ in range(inner)) / inner for _ in range(repeat))
