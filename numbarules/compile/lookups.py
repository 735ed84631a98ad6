"""The record of look-ups: what compiled code was made with, every question to the rule table and its answer, fruitless ones too.

A record belongs to one compiled thing: a gradient at one signature, the two sweeps of a callee, the halves of a `vjp`, or a jitted
function that calls such code. Records nest as the things do: `uses` are the records of what a thing was compiled against.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..ir.nodes import Loc
from ..rules.table import Found, question
from .owned import memo_of

__all__ = ["Lookup", "Record", "current", "note", "record_at", "recording", "use"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """One question and its answer: the key of what is called, as the table has it, and the types of the arguments by position.

    `loc` is where the call stands, and `within` the function in whose derivative it was met. A call that a library function or a
    method makes has the place of the user's call of that.
    """

    key: Any
    types: tuple[Any, ...]
    found: Found
    loc: Loc | None
    within: str

    @property
    def question(self) -> Any:
        """What the answer depends on, as a dictionary's key; equal for equal questions as long as the function lives."""
        return question(self.key, self.types)


class Record:
    """The look-ups of one compiled thing. `reset` lets it be compiled again; it must hold the thing weakly."""

    def __init__(self, name: str, reset: Callable[[], None] | None = None) -> None:
        self.name = name
        self.reset = reset
        self.users: weakref.WeakSet[Record] = weakref.WeakSet()
        self._lookups: dict[Any, Lookup] = {}
        self._uses: dict[int, Record] = {}

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Its own look-ups, one for each question and place, in the order in which they were first made."""
        return tuple(self._lookups.values())

    @property
    def uses(self) -> tuple[Record, ...]:
        """The records of what it was compiled against."""
        return tuple(self._uses.values())

    def add(self, lookup: Lookup) -> None:
        """Takes a look-up in."""
        self._lookups.setdefault((lookup.question, lookup.loc), lookup)

    def add_use(self, other: Record) -> None:
        """Takes in that it is compiled against what `other` is the record of."""
        if other is not self:
            self._uses[id(other)] = other
            other.users.add(self)

    def everything(self) -> Iterator[tuple[Record, Lookup]]:
        """All look-ups that the code depends on: its own, and those of what it uses, with the record that each is in."""
        for record in reached([self], lambda r: r.uses):
            for lookup in record.lookups:
                yield record, lookup

    def __repr__(self) -> str:
        return f"<record of {self.name}: {len(self._lookups)} look-ups, uses {len(self._uses)}>"


def reached(start: list[Record], following: Callable[[Record], Any]) -> list[Record]:
    """The records that are reached from some, those included, each once."""
    found = {id(r): r for r in start}
    todo = list(start)
    while todo:
        for r in following(todo.pop()):
            if id(r) not in found:
                found[id(r)] = r
                todo.append(r)
    return list(found.values())


class _Open(threading.local):
    """The records that are being made in this thread, the innermost last."""

    def __init__(self) -> None:
        self.records: list[Record] = []


_open = _Open()


@contextmanager
def recording(record: Record) -> Iterator[Record]:
    """What is looked up and used inside belongs to the record."""
    _open.records.append(record)
    try:
        yield record
    finally:
        _open.records.pop()


def current() -> Record | None:
    """The record that is being made, if there is one."""
    return _open.records[-1] if _open.records else None


def note(lookup: Lookup) -> None:
    """Enters a look-up into the record that is being made."""
    if (record := current()) is not None:
        record.add(lookup)


def use(other: Record) -> None:
    """Enters into the record that is being made what it is compiled against."""
    if (record := current()) is not None:
        record.add_use(other)


def record_at(f: Any, args: tuple[Any, ...]) -> Record | None:
    """The record of a gradient, or of a jitted function that calls gradients, as compiled for these Numba argument types."""
    found: Record | None = memo_of(f, "records").get(args)
    return found
