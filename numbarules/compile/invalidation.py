"""What a change of the rule table does to compiled code: exactly what was made with an answer that is now another one is reset.

A gradient's call path checks nothing. Instead the questions that live records depend on are asked again when an entry comes or goes that
may answer them. Where the answer has changed, the code made with it is dropped, and made anew at its next call; so is what was compiled
against that code, jitted callers included.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from types import CodeType
from typing import Any

from .._numba import compiler_lock
from ..errors import AmbiguousRuleError, NumbarulesWarning
from ..rules.table import Entry, table
from .lookups import Question, Record, live_questions, live_records, reached, when_idle
from .owned import renew

__all__ = ["invalidate", "made_from"]


def _on_change(entry: Entry | None) -> None:
    """Resets what an entry that came or went touches; None: an alias or a category changed, and any question may be concerned.

    Waits for a compilation in another thread: what that was made with is then known. In this thread it is put off until the end.
    """
    when_idle(partial(_reset_changed, entry))


def _reset_changed(entry: Entry | None) -> None:
    if entry is None:
        renew("answers")
    with compiler_lock:
        concerned = live_questions() if entry is None else _concerned(entry)
        touched = [r for q in concerned if _changed(q) or (entry is None and _asks_types(q.entry)) for r in q.records]
        touched += live_records(unknown=True)
        texts = _reset(touched)
    for text in texts:
        warnings.warn(text, NumbarulesWarning, stacklevel=2)


def _changed(q: Question) -> bool:
    """True where the table answers otherwise now, or no longer has one answer."""
    try:
        return table.lookup(q.key, q.types).entry is not q.entry
    except AmbiguousRuleError:
        return True


def _concerned(entry: Entry) -> list[Question]:
    """The questions that the entry answers or has answered, or would but for a stronger one."""
    fits: dict[tuple[int, ...], bool] = {}
    out = []
    for q in live_questions(None if entry.any_function else table.served(entry)):
        if q.codes not in fits:
            fits[q.codes] = entry.matches(q.types)
        if fits[q.codes] and table.serves(entry, q.key):
            out.append(q)
    return out


def _asks_types(entry: Entry | None) -> bool:
    """True for a rule that decides in its body by what belongs to a category."""
    code = getattr(entry.payload, "__code__", None) if entry is not None and entry.kind == "rule" else None
    return isinstance(code, CodeType) and "is_a" in {*code.co_names, *code.co_freevars}


def invalidate(records: Iterable[Record]) -> None:
    """Resets what these records are of, and what was compiled against it. What cannot be reset is named in a NumbarulesWarning."""
    with compiler_lock:
        texts = _reset(records)
    for text in texts:
        warnings.warn(text, NumbarulesWarning, stacklevel=2)


def _reset(records: Iterable[Record]) -> list[str]:
    stale = [r for r in reached(records, lambda r: list(r.users)) if not r.dropped]
    for record in stale:
        record.dropped = True
    return [text for record in stale if record.reset is not None and (text := record.reset())]


def made_from(function: Any) -> list[Record]:
    """The records of what was made from the code of a Python function."""
    return [r for r in live_records() if function in r.sources]


table.subscribe(_on_change)
