"""Derivatives as dispatchers: stubs with the primal's parameters, whose code is made per signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..emit.emit import Generated, emit
from ..emit.stubs import stub_dispatcher
from .capture import options_of, python_function
from .gradient import Request, gradient_function

__all__ = ["gradient_dispatcher"]


def gradient_dispatcher(f: Any, argnums: int | tuple[int, ...], value: bool, options: dict[str, Any]) -> Any:
    """The dispatcher of the gradient (or value and gradient) of `f`."""
    function = python_function(f)
    request = Request(argnums, value, tuple(sorted(options_of(f).items())))

    def generate(func_id: Any, args: tuple[Any, ...]) -> Generated:
        return emit(gradient_function(function, args, request), func_id)

    kind = "value_and_grad" if value else "grad"
    doc = f"The {'value and gradient' if value else 'gradient'} of `{function.__qualname__}`."
    name = f"{_identifier(function.__name__)}_{kind}"
    return stub_dispatcher(name, _parameters(function), generate, {**options_of(f), **options}, function.__module__, doc)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "function"


