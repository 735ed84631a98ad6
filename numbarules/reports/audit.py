"""`capture_audit`: which rules catch the operations of a type that they were not written for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from numba import types

from ..rules.order import compare
from ..rules.patterns import Category, Tail, Union, as_pattern, covers, matches, overlap, show
from ..rules.table import Entry, table

__all__ = ["Audit", "Capture", "capture_audit", "describes"]


@dataclass(frozen=True, slots=True)
class Capture:
    """An entry whose pattern for some arguments describes the type without naming it; `positions` are those arguments.

    `opted_out`: entries that opt the type out of it, for all these calls or some of them. `open`: for some calls none of them does.
    """

    entry: Entry
    positions: tuple[int, ...]
    opted_out: tuple[Entry, ...]
    open: bool

    def __str__(self) -> str:
        where = ", ".join(str(i) for i in self.positions)
        away = "".join(f"\n      but {'for some calls ' * self.open}{e}" for e in self.opted_out)
        origin = self.entry.origin
        return f"{self.entry.signature}, argument {where}: {origin.name.rpartition('.')[2]} ({origin.filename}:{origin.line}){away}"


@dataclass(frozen=True, slots=True)
class Audit:
    """The answer of `capture_audit`: the type as text, and the entries that catch it."""

    type: str
    captures: tuple[Capture, ...]

    @property
    def open(self) -> tuple[Capture, ...]:
        """Those that win for some calls with the type: that nothing opts out of, or not for all signatures that they match."""
        return tuple(c for c in self.captures if c.open)

    def __str__(self) -> str:
        if not self.captures:
            return f"No rule catches {self.type} that does not name it."
        return "\n".join([f"{len(self.captures)} rules catch {self.type} without naming it:", *(f"  {c}" for c in self.captures)])


def capture_audit(some_type: Any) -> Audit:
    """The rules whose abstract pattern (`Any`, a category, a type class) catches a type that they do not name.

    `some_type`: a Numba type, a Numba type class, or a Python class that stands for one. Such a rule was written without this type in
    mind: whether its formula is right for it, and the best, is for the type's author to decide, who opts out where not. An entry that
    names the type, a class of it, or a union with it among others does not count, nor does an opt-out. Entries that give a zero
    derivative are left out too.

    Raises RuleError where `some_type` is none of these.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> from numba import types
    >>> audit = nr.capture_audit(types.float64[:, ::1])
    >>> any(c.entry.function is np.linalg.det for c in audit.captures)
    True
    """
    pattern = as_pattern(some_type)
    found = []
    for entry in table.entries():
        positions = _caught(entry, pattern) if entry.kind in ("rule", "scalar") else ()
        if positions:
            found.append(_capture(entry, positions, pattern))
    return Audit(show(pattern), tuple(found))


def _caught(entry: Entry, pattern: Any) -> tuple[int, ...]:
    """The arguments whose pattern describes the type without naming it; none where another one names it."""
    written = [p.pattern if isinstance(p, Tail) else p for p in entry.patterns]
    if any(_names(p, pattern) for p in written):
        return ()
    flags = range(entry.required, len(written))  # what may be left out and is not typed is a flag
    return tuple(i for i, p in enumerate(written) if describes(p, pattern) and not (p is Any and i in flags))


def describes(written: Any, pattern: Any) -> bool:
    """True where a pattern describes a type, or some types of a class."""
    if isinstance(pattern, types.Type):
        return matches(written, pattern)
    ndim = getattr(pattern, "ndim", None)
    if isinstance(ndim, int) and getattr(written, "_ndim", None) not in (None, ndim):
        return False
    return overlap(written, pattern)


def _names(written: Any, pattern: Any) -> bool:
    """True where a pattern, or an alternative of it, is the type or one class of types that it belongs to by itself."""
    if isinstance(written, Union):
        return any(_names(m, pattern) for m in written.members)
    if written is Any or (isinstance(written, type) and issubclass(written, Category)):
        return False
    own = type(pattern) if isinstance(pattern, types.Type) else pattern
    return bool(written == pattern or written is own)


def _capture(entry: Entry, positions: tuple[int, ...], pattern: Any) -> Capture:
    told = [o for o in (*table.entries(entry.function), *table.entries(Any)) if o.kind == "opt_out"]
    calls = list(_calls(entry, positions, pattern))
    concerned = [o for o in told if any(_opts_out(o, entry, call, pattern, describes) for call in calls)]
    rest = [call for call in calls if not any(_opts_out(o, entry, call, pattern, covers) for o in concerned)]
    return Capture(entry, positions, tuple(concerned), bool(rest))


def _calls(entry: Entry, positions: tuple[int, ...], pattern: Any) -> Iterator[tuple[Any, ...]]:
    """The signatures by which an entry catches the type, at one of the positions each."""
    for n in range(entry.required, len(entry.patterns) + 1):
        at = entry.at_arity(n) or ()
        for i in positions:
            if i < len(at):
                yield *at[:i], pattern, *at[i + 1 :]


def _opts_out(opt_out: Entry, entry: Entry, call: tuple[Any, ...], pattern: Any, relation: Callable[[Any, Any], bool]) -> bool:
    """True where an opt-out that comes before the entry covers (or describes, by the relation) a signature that the entry catches."""
    if opt_out.any_function:
        return relation(opt_out.patterns[0], pattern)
    at = opt_out.at_arity(len(call))
    if at is None or not all(map(relation, at, call)):
        return False
    return any(_names(p, pattern) for p in at) or compare(opt_out, entry, len(call)) == -1
