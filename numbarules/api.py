"""What users call: `grad`, `value_and_grad`, `vjp` and the `njit_grad` decorator."""

from __future__ import annotations

from typing import Any

from .compile.dispatchers import gradient_dispatcher

__all__ = ["grad", "value_and_grad"]


def grad(f: Any, argnums: int | tuple[int, ...] = 0) -> Any:
    """The gradient of `f` as a Numba dispatcher."""
    return gradient_dispatcher(f, argnums, False, {})


def value_and_grad(f: Any, argnums: int | tuple[int, ...] = 0) -> Any:
    """The value and gradient of `f` as a Numba dispatcher."""
    return gradient_dispatcher(f, argnums, True, {})
