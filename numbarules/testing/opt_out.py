"""`check_opt_out`: is a call that opts out differentiated right, and does opting out pay?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
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
from .gradients import check_gradient, tolerance
from .rules import caller, function_name, site_of, with_floats
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


def check_opt_out(f: Any, *args: Any, rtol: float | None = None, seed: int = 0, repeat: int = 7) -> OptOutCheck:
    """Checks a call of `f` that opts out at the types of `args`: both ways to differentiate it agree, and which one is faster.

    `f`, `args`, `rtol`, `seed`: as for `check_rule`. The derivative of the method that is differentiated instead is checked as by
    `check_gradient`; the generic rule, the one that answers these types without the opt-out, is run too, and has to give the same
    cotangents. Times are the best of `repeat` runs, of value and cotangents together, called from Python.

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
    checked = check_gradient(call, *args, rtol=limit, seed=seed)
    fast = _timed(call, args, seed, repeat)
    with rule_scope():
        _use(generic, site.entry, f, args)
        other = caller(f, len(args))
        slow = _timed(other, args, seed, repeat)
    error = distance(fast.cotangents, slow.cotangents)
    if error > limit:
        raise CheckError(
            f"{function_name(f)}({', '.join(site.types)}): the method that is differentiated and the generic rule disagree by {error:.2g}\n"
            f"Found: {fast.cotangents} opted out, {slow.cotangents} by {generic}"
        )
    found = OptOutCheck(f"{function_name(f)}({', '.join(site.types)})", site.entry, generic, checked.error, fast.seconds, slow.seconds)
    if found.loses:
        warnings.warn(str(found), OptOutLosesWarning, stacklevel=2)
    return found


def _generic(f: Any, args: tuple[Any, ...], site: CallSite) -> Entry:
    """The rule that answers where nothing opts out."""
    if site.runner_up is not None and site.runner_up.kind in ("rule", "scalar"):
        return site.runner_up
    raise CheckError(f"{function_name(f)}({', '.join(site.types)}): no rule to compare with answers these types; {site.reason}")


def _use(generic: Entry, winner: Entry, f: Any, args: tuple[Any, ...]) -> None:
    """Lets the generic rule answer these very types."""
    written = tuple(types.unliteral(typeof(a)) for a in args)
    function = generic.function if winner.any_function else winner.function
    table.add(Entry(function, written, generic.kind, generic.payload, winner.origin, len(args)), replace=True)


@dataclass(frozen=True, slots=True)
class _Timed:
    cotangents: Any
    seconds: float


def _timed(call: Callable[..., Any], args: tuple[Any, ...], seed: int, repeat: int) -> _Timed:
    y, pullback = vjp(call, *args)
    ybar = drawn(y, np.random.default_rng(seed))
    cotangents = flat(args, pullback(ybar))

    def once() -> float:
        start = time.perf_counter()
        vjp(call, *args)[1](ybar)
        return time.perf_counter() - start

    inner = max(1, min(1000, int(2e-3 / max(min(once(), once()), 1e-7))))
    best = min(sum(once() for _ in range(inner)) / inner for _ in range(repeat))
    return _Timed(cotangents, best)
