"""Functions that stand for operations Python has no name for; the engine maps calls of them."""

from __future__ import annotations

from typing import Any

__all__ = ["assign"]


def assign(target: Any, value: Any) -> None:
    """`target[...] = value`."""
    target[...] = value
