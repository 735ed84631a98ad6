"""The order of entries: which of two is more specific, which of many win a call, and which tie.

Argument patterns are compared first, then the function, by the `rank` of the key that an entry is for, then what it requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types

from numbarules.errors import AmbiguousRuleError, message
from numbarules.rules import patterns as pt
from numbarules.rules.entries import Entry, show_key
from numbarules.rules.patterns import Tail, covers, matches, meet, show

__all__ = ["ambiguous", "arities", "compare", "first_of_any", "meet_at", "reason", "settle", "show_call", "tie", "unbeaten"]


def arities(a: Entry, b: Entry) -> list[int]:
    """The numbers of arguments of calls that both describe; one more than any pattern stands for all longer ones."""
    longest = max(len(a.patterns), len(b.patterns)) + 1
    return [n for n in range(longest + 1) if a.at_arity(n) is not None and b.at_arity(n) is not None]


def compare(a: Entry, b: Entry, n: int) -> int | None:
    """-1 where a is more specific for calls with n arguments, 1 where b is, 0 where they say the same, None where neither."""
    pa, pb = a.at_arity(n), b.at_arity(n)
    if pa is None or pb is None:
        return None
    a_in_b, b_in_a = all(map(covers, pb, pa)), all(map(covers, pa, pb))
    if a_in_b != b_in_a:
        return -1 if a_in_b else 1
    if not a_in_b:
        return None
    few_a, few_b = _arity_range(a), _arity_range(b)
    if few_a == few_b:
        return 0
    if few_b[0] <= few_a[0] and few_a[1] <= few_b[1]:
        return -1
    return 1 if few_a[0] <= few_b[0] and few_b[1] <= few_a[1] else None


def _arity_range(e: Entry) -> tuple[int, float]:
    return e.required, float("inf") if e.patterns and isinstance(e.patterns[-1], Tail) else len(e.patterns)


def _beats(a: Entry, b: Entry, rank: dict[Entry, int], n: int) -> bool:
    if a.any_function or b.any_function:
        if a.any_function and b.any_function:
            return False
        return not _names(b, a.patterns[0]) if a.any_function else _names(a, b.patterns[0])
    order = compare(a, b, n)
    return order == -1 or (order == 0 and (rank[a] < rank[b] or (rank[a] == rank[b] and a.requires > b.requires)))


def _names(entry: Entry, pattern: Any) -> bool:
    """True where an entry names a type: some argument's pattern, or one alternative of it, is that type or narrower."""
    written = [p.pattern if isinstance(p, Tail) else p for p in entry.patterns]
    return any(covers(pattern, alternative) for p in written for alternative in (p.members if isinstance(p, pt.Union) else (p,)))


def unbeaten(candidates: list[Entry], rank: dict[Entry, int], n: int) -> list[Entry]:
    """Those of the entries that match a call with n arguments which no other one beats."""
    if len(candidates) <= 16:
        return [e for e in candidates if not any(o is not e and _beats(o, e, rank, n) for o in candidates)]
    strongest = candidates[:1]  # many: one pass drops what the strongest so far beat, so that the full comparison is of few
    for e in candidates[1:]:
        if not any(_beats(o, e, rank, n) for o in strongest):
            strongest = [o for o in strongest if not _beats(e, o, rank, n)] + [e]
    return [e for e in strongest if not any(o is not e and _beats(o, e, rank, n) for o in candidates)]


def first_of_any(entries: list[Entry], argument_types: tuple[types.Type, ...]) -> Entry:
    """Of entries for `Any` function: the narrowest type, then the leftmost argument, then the oldest entry. They never tie."""
    narrowest = [e for e in entries if not any(pt.more_specific(o.patterns[0], e.patterns[0]) for o in entries)]
    return min(narrowest, key=lambda e: next(i for i, t in enumerate(argument_types) if matches(e.patterns[0], t)))


def meet_at(a: Entry, b: Entry, n: int) -> tuple[Any, ...] | None:
    """The patterns of calls with n arguments that both match; None where there are none."""
    met = []
    for p, q in zip(a.at_arity(n) or (), b.at_arity(n) or (), strict=True):
        if (m := meet(p, q)) is pt._NOTHING:
            return None
        met.append(m)
    return tuple(met)


def tie(a: Entry, b: Entry, others: list[Entry], *, same_function: bool) -> tuple[Any, ...] | None:
    """The signature that would settle a tie of two entries, None where there is none to settle."""
    if any(map(pt.apart, a.patterns[: a.required], b.patterns[: b.required])):
        return None
    for n in arities(a, b):
        if (met := meet_at(a, b, n)) is None:
            continue
        order = compare(a, b, n)
        if order in (-1, 1) or (order == 0 and (not same_function or a.requires < b.requires or b.requires < a.requires)):
            continue
        settled = (
            c is not a
            and c is not b
            and (at := c.at_arity(n)) is not None
            and all(map(covers, at, met))
            and compare(c, a, n) == -1
            and compare(c, b, n) == -1
            for c in others
        )
        if not any(settled):
            return met
    return None


def ambiguous(key: Any, argument_types: tuple[types.Type, ...], a: Entry, b: Entry) -> AmbiguousRuleError:
    """The error of a call that two entries tie for."""
    n = len(argument_types)
    met = meet_at(a, b, n) if compare(a, b, n) is None else None
    return AmbiguousRuleError(
        message(
            f"{show_call(key, argument_types)} matches two rules, and neither is more specific",
            filename=a.origin.filename,
            line=a.origin.line,
            contract="the most specific entry wins, by its argument patterns and then by its function",
            found=f"{a}; {b}",
            instead=f"register an entry for {settle(key, argument_types if met is None else met)}",
        )
    )


def settle(key: Any, signature: Sequence[Any]) -> str:
    """A signature with patterns, as text."""
    return f"{show_key(key)}({', '.join(map(show, signature))})"


def show_call(key: Any, argument_types: Sequence[types.Type]) -> str:
    """A call at Numba types, as text."""
    return f"{show_key(key)}({', '.join(map(str, argument_types))})"


def reason(winner: Entry, runner_up: Entry | None) -> str:
    """Why an entry has won."""
    if runner_up is None:
        return f"{winner.signature} is the only entry that matches"
    if winner.any_function:
        if runner_up.any_function:
            return f"entries for any function never tie: {winner.signature} comes first"
        return f"{winner.signature} beats {runner_up.signature}, which does not name {show(winner.patterns[0])}"
    if runner_up.any_function:
        return f"{winner.signature} names {show(runner_up.patterns[0])}, so that it beats {runner_up.signature}"
    if winner.requires > runner_up.requires and winner.patterns == runner_up.patterns:
        return f"{winner.signature} requires {' and '.join(sorted(winner.requires - runner_up.requires))}, which there is"
    return f"{winner.signature} is more specific than {runner_up.signature}"
