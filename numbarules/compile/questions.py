"""What users ask of the rules: whether a call has one, and what is opted out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from .._numba import types
from ..capture.closures import OptedOut
from ..errors import RuleError, message
from ..rules.patterns import Literal as LiteralPattern
from ..rules.patterns import as_pattern, show
from ..rules.table import Entry, Origin, show_key, table
from .lookups import kept
from .owned import existing_memo
from .rule_arguments import bound_types, given_types
from .rule_calls import answer

__all__ = ["OptOut", "no_rrule", "opted_out"]


@dataclass(frozen=True, slots=True)
class OptOut:
    """Calls that are opted out: of `function` (a callable, or the pair of a Numba type class and a name for a method, or `Any`) with
    arguments that match `patterns`, one each; the last may be a `Tail`.

    `by` tells whether an entry says so for all such calls, or a rule said so when it was asked at these types. `origin` is where.
    """

    function: Any
    patterns: tuple[Any, ...]
    by: Literal["entry", "rule"]
    origin: Origin

    def __str__(self) -> str:
        return f"{show_key(self.function)}({', '.join(map(show, self.patterns))}), by the {self.by} {self.origin}"


def no_rrule(function: Any, *argument_types: Any) -> bool:
    """True where a call at these Numba types would be differentiated through: without an entry, or opted out, by entry or by its rule.

    What stands for one Numba type may be given in its place: `np.float64`, None, a jitclass. A rule that opts out by value, registered with
    `on_unstable="branch"`, is a rule. Raises RuleError where the rule is wrong at these types or one of them is no Numba type,
    AmbiguousRuleError where two rules match.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> from numba import types
    >>> nr.no_rrule(np.linalg.det, types.float64[:, ::1])
    False
    """
    argument_types = tuple(map(_one_type, argument_types))
    entry = table.lookup(function, argument_types).entry
    if entry is None or entry.kind == "opt_out":
        return True
    if entry.kind != "rule":
        return False
    return isinstance(answer(entry, bound_types(entry.payload, list(argument_types)), {}), OptedOut)


def _one_type(written: Any) -> Any:
    """The Numba type that is meant."""
    if isinstance(written, types.Type):
        return written
    found = as_pattern(written) if written is None or isinstance(written, (type, LiteralPattern)) else written
    if isinstance(found, LiteralPattern):
        return types.none if found.value is None else types.literal(found.value)
    if isinstance(found, types.Type):
        return found
    name = getattr(written, "__name__", repr(written))
    raise RuleError(
        message(
            f"{written!r} is not one Numba type",
            contract="a call has one Numba type for each argument, `types.float64[::1]` for example",
            found=f"{name}, which stands for all types of the class {found.__name__}" if isinstance(found, type) else name,
            instead="pass `numba.typeof(value)` of a value",
        )
    )


def opted_out() -> tuple[OptOut, ...]:
    """Everything that is opted out now, in the order of registration, so that other systems can honour it.

    Entries come with their patterns. A rule that returns None is listed with the types at which it was asked so far: by a gradient that was
    compiled, or by `no_rrule`.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> with nr.rule_scope():
    ...     _ = nr.opt_out(np.dot, nr.AbstractVector, nr.AbstractVector)
    ...     [str(o).partition(", by")[0] for o in nr.opted_out() if o.function is np.dot]
    ['numpy.dot(AbstractVector, AbstractVector)']
    """
    out: list[OptOut] = []
    for entry in table.entries():
        if entry.kind == "opt_out":
            out.append(OptOut(entry.function, entry.patterns, "entry", entry.origin))
        elif entry.kind == "rule":
            out += _by_rule(entry)
    return tuple(dict.fromkeys(out))


def _by_rule(entry: Entry) -> list[OptOut]:
    out = []
    for (args, _, _), said in kept(existing_memo(entry.payload, "answers")):
        if isinstance(said, OptedOut):
            given = given_types(args)
            if entry.matches(given):
                out.append(OptOut(entry.function, given, "rule", replace(entry.origin, line=said.line)))
    return out
