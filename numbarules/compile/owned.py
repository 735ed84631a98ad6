"""Memos that are attributes of the function that they are about.

What is made of a function holds it: in a dictionary outside, weak in its keys or not, both would live for ever. Here the memo,
and all that is in it, goes when the function goes.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

__all__ = ["Memo", "existing_memo", "memo_of", "renew"]

_generations: Counter[str] = Counter()  # of each name, how often all memos of it were emptied


class Memo(dict[Any, Any]):
    """A memo of `owner`. What copies attributes from function to function, or pickles them, gets an empty one."""

    def __init__(self, owner: Any = None, generation: int = 0) -> None:
        super().__init__()
        self.owner = weakref.ref(owner) if owner is not None else None
        self.generation = generation

    def __reduce__(self) -> Any:
        return Memo, ()


def existing_memo(owner: Any, name: str) -> Memo | None:
    """The memo of a Python function or dispatcher under a name, if it has one."""
    found = owner.__dict__.get(f"__numbarules_{name}__")
    if isinstance(found, Memo) and found.owner is not None and found.owner() is owner and found.generation == _generations[name]:
        return found
    return None


def memo_of(owner: Any, name: str) -> Memo:
    """The memo of a Python function or dispatcher under a name; empty at first."""
    found = existing_memo(owner, name)
    if found is None:
        found = owner.__dict__[f"__numbarules_{name}__"] = Memo(owner, _generations[name])
    return found


def renew(name: str) -> None:
    """Empties the memos of this name, of all functions."""
    _generations[name] += 1
