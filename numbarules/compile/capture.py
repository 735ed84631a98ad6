"""Captured functions, each once: a memo from (function, argument types, options) to IR."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from .._numba import Dispatcher, typed_ir
from ..capture.translate import translate
from ..ir.nodes import Function

__all__ = ["bind", "capture", "options_of", "python_function", "recursive"]

_MEANING = ("fastmath", "error_model", "boundscheck")
_memo: weakref.WeakKeyDictionary[Any, dict[Any, Function]] = weakref.WeakKeyDictionary()


def python_function(f: Any) -> Callable[..., Any]:
    """The Python function behind a dispatcher, or the function itself."""
    return f.py_func if isinstance(f, Dispatcher) else f


def options_of(f: Any) -> dict[str, Any]:
    """The `njit` options of a dispatcher that change what its code means."""
    given: Mapping[str, Any] = f.targetoptions if isinstance(f, Dispatcher) else {}
    return {k: given[k] for k in _MEANING if k in given}


def capture(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Function:
    """The IR of a Python function at Numba argument types, under `njit` options."""
    key = (args, tuple(sorted((k, repr(v)) for k, v in options.items())))
    found = _memo.setdefault(function, {})
    if key not in found:
        found[key] = translate(typed_ir(function, args, options), tuple(sorted(options.items(), key=lambda item: item[0])))
    return found[key]


def bind(function: Callable[..., Any], args: list[Any], keywords: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """The arguments of a call in the order of the parameters: (name, value, given); an omitted one has its default."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **keywords)
    out: list[tuple[str, Any, bool]] = []
    for name, p in signature.parameters.items():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError("*args")
        given = name in bound.arguments
        out.append((name, bound.arguments[name] if given else p.default, given))
    return out


def recursive(f: Any) -> bool:
    """True for a dispatcher whose own code names it."""
    function = python_function(f)
    names = set(function.__code__.co_names) | set(function.__code__.co_freevars)
    closure = inspect.getclosurevars(function)
    return any(value is f for name, value in {**closure.globals, **closure.nonlocals}.items() if name in names)


