"""Memos that are attributes of the function that they are about.

What is made of a function holds it: in a dictionary outside, weak in its keys or not, both would live for ever. Here the memo,
and all that is in it, goes when the function goes.
"""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["Memo", "memo_of"]


class Memo(dict[Any, Any]):
    """A memo of `owner`. What copies attributes from function to function, or pickles them, gets an empty one."""

    def __init__(self, owner: Any = None) -> None:
        super().__init__()
        self.owner = weakref.ref(owner) if owner is not None else None

    def __reduce__(self) -> Any:
        return Memo, ()


def memo_of(owner: Any, name: str) -> Memo:
    """The memo of a Python function or dispatcher under a name; empty at first."""
    attribute = f"__numbarules_{name}__"
    found = owner.__dict__.get(attribute)
    if not isinstance(found, Memo) or found.owner is None or found.owner() is not owner:
        found = owner.__dict__[attribute] = Memo(owner)
    return found
