"""The record of look-ups: what compiled code was made with, every question to the rule table and its answer, fruitless ones too.

A record belongs to one compiled thing: a gradient at one signature, the two sweeps of a callee, the halves of a `vjp`, or a jitted
function that calls such code. Records nest as the things do: `uses` are the records of what a thing was compiled against.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..ir.nodes import Loc
from ..rules.table import Entry, Found, question
from .owned import Memo, memo_of

__all__ = [
    "Lookup",
    "Question",
    "Record",
    "begin",
    "current",
    "end",
    "kept",
    "live_questions",
    "live_records",
    "note",
    "reached",
    "record_at",
    "recording",
    "remembered",
    "use",
    "when_idle",
]


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


class Question:
    """A question that records have the same answer to. It lives as long as one of them. `codes` are the types as small numbers."""

    __slots__ = ("__weakref__", "codes", "entry", "group", "key", "records", "types")

    def __init__(self, key: Any, types: tuple[Any, ...], entry: Entry | None, group: _Group) -> None:
        self.key = key
        self.types = types
        self.codes = tuple(t._code for t in types)
        self.entry = entry
        self.records: weakref.WeakSet[Record] = weakref.WeakSet()
        self.group = group
        group.questions.add(self)


class _Group:
    """The questions about one function, or about all methods of one name."""

    __slots__ = ("__weakref__", "questions")

    def __init__(self) -> None:
        self.questions: weakref.WeakSet[Question] = weakref.WeakSet()


def _name(key: Any) -> Any:
    return key[1] if isinstance(key, tuple) else id(key)


class Record:
    """The look-ups of one compiled thing.

    `reset` lets it be compiled again, or returns the text of a warning where that cannot be; it holds the thing weakly. `anything`: the
    look-ups are not known, as of code from the disk cache. `function` is the Python function that a dispatcher compiles, `sources` are
    those from whose code the thing was made.
    """

    def __init__(self, name: str, reset: Callable[[], str | None] | None = None, anything: bool = False) -> None:
        self.name = name
        self.reset = reset
        self.anything = anything
        self.dropped = False
        self.function: weakref.ref[Any] | None = None
        self.sources: weakref.WeakSet[Any] = weakref.WeakSet()
        self.users: weakref.WeakSet[Record] = weakref.WeakSet()
        self._uses: dict[int, Record] = {}
        self._lookups: dict[Any, Lookup] = {}
        self._questions: dict[Any, Question] = {}
        with _guard:
            _live.add(self)
            if anything:
                _unknown.add(self)

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
        asked = lookup.question
        if (asked, lookup.loc) in self._lookups:
            return
        self._lookups[asked, lookup.loc] = lookup
        key = asked, id(lookup.found.entry)
        if key in self._questions:
            return
        with _guard:
            shared = _questions.get(key)
            if shared is None:
                group = _groups.setdefault(_name(lookup.key), _Group())
                shared = _questions[key] = Question(lookup.key, lookup.types, lookup.found.entry, group)
            shared.records.add(self)
        self._questions[key] = shared

    def add_use(self, other: Record) -> None:
        """Takes in that it is compiled against what `other` is the record of."""
        if other is not self:
            self._uses[id(other)] = other
            with _guard:
                other.users.add(self)

    def everything(self) -> Iterator[tuple[Record, Lookup]]:
        """All look-ups that the code depends on: its own, and those of what it uses, with the record that each is in."""
        for record in reached([self], lambda r: r.uses):
            for lookup in record.lookups:
                yield record, lookup

    def __repr__(self) -> str:
        return f"<record of {self.name}: {len(self._lookups)} look-ups, uses {len(self._uses)}>"


_guard = threading.RLock()  # no iteration while another thread adds
_live: weakref.WeakSet[Record] = weakref.WeakSet()
_questions: weakref.WeakValueDictionary[Any, Question] = weakref.WeakValueDictionary()


_groups: weakref.WeakValueDictionary[Any, _Group] = weakref.WeakValueDictionary()
_unknown: weakref.WeakSet[Record] = weakref.WeakSet()


def live_records(unknown: bool = False) -> list[Record]:
    """The records of things that exist; with `unknown` those whose look-ups are not known."""
    with _guard:
        return list(_unknown if unknown else _live)


def live_questions(keys: Iterable[Any] | None = None) -> list[Question]:
    """The questions of the records of things that exist: all, or those about some functions, a method standing for all of its name."""
    with _guard:
        if keys is None:
            return list(_questions.values())
        groups = [_groups.get(name) for name in {_name(k) for k in keys}]
        return [q for group in groups if group is not None for q in group.questions]


def reached(start: Iterable[Record], following: Callable[[Record], Iterable[Record]]) -> list[Record]:
    """The records that are reached from some, those included, each once."""
    found = {id(r): r for r in start}
    todo = list(found.values())
    while todo:
        for r in following(todo.pop()):
            if id(r) not in found:
                found[id(r)] = r
                todo.append(r)
    return list(found.values())


def record_at(f: Any, args: tuple[Any, ...]) -> Record | None:
    """The record of a gradient, or of a jitted function that calls gradients, as compiled for these Numba argument types."""
    found: Record | None = memo_of(f, "records").get(args)
    return found


# ---------------------------------------------------------------------------------------------- what is being made


class _Making(threading.local):
    """The records that are being made in this thread, the innermost last, and what waits until they are complete."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.waiting: list[Callable[[], None]] = []


_making = _Making()


def begin(record: Record) -> None:
    """What is looked up and used from here to `end` belongs to the record."""
    _making.records.append(record)


def end() -> Record:
    """The record that was begun last, now complete."""
    record = _making.records.pop()
    while not _making.records and _making.waiting:
        _making.waiting.pop(0)()
    return record


@contextmanager
def recording(record: Record) -> Iterator[Record]:
    """What is looked up and used inside belongs to the record."""
    begin(record)
    try:
        yield record
    finally:
        end()


def remembered(memo: Memo, key: Any, make: Callable[[], Any], name: str) -> Any:
    """What is in a memo under a key, made once, until something changes that it was made with; that is in the records of its users."""
    if key not in memo:
        record = Record(name, partial(_forget, weakref.ref(memo), key))
        try:
            with recording(record):
                made = make()
        except BaseException:
            use(record)  # what failed is tried again when that changes
            raise
        memo[key] = made, record if record.lookups or record.uses else None
    value, record = memo[key]
    if record is not None:
        use(record)
    return value


def kept(memo: Memo | None) -> list[tuple[Any, Any]]:
    """The keys and values of a memo that `remembered` fills."""
    return [(key, value) for key, (value, _) in list((memo or {}).items())]


def _forget(memo: weakref.ref[Memo], key: Any) -> None:
    if (found := memo()) is not None:
        found.pop(key, None)


def current() -> Record | None:
    """The record that is being made in this thread, if there is one."""
    return _making.records[-1] if _making.records else None


def when_idle(act: Callable[[], None]) -> None:
    """Acts at once, or where this thread is compiling, when that is done."""
    if _making.records:
        _making.waiting.append(act)
    else:
        act()


def note(lookup: Lookup) -> None:
    """Enters a look-up into the record that is being made."""
    if (record := current()) is not None:
        record.add(lookup)


def use(other: Record) -> None:
    """Enters into the record that is being made what it is compiled against."""
    if (record := current()) is not None:
        record.add_use(other)
