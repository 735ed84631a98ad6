"""Captured functions, each once: a memo from (function, argument types, options) to IR."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .._numba import Dispatcher, typed_ir, types
from ..capture.translate import translate
from ..errors import UnsupportedError, message
from ..ir.nodes import Function, Operand
from .lookups import current, remembered
from .owned import memo_of, renew

__all__ = ["bind", "bound_type", "capture", "forget", "options_of", "python_function", "recursive"]

_MEANING = ("fastmath", "error_model", "boundscheck")


def python_function(f: Any) -> Callable[..., Any]:
    """The Python function behind a dispatcher, or the function itself."""
    function: Callable[..., Any] = f.py_func if isinstance(f, Dispatcher) else f
    return function


def options_of(f: Any) -> dict[str, Any]:
    """The `njit` options of a dispatcher that change what its code means."""
    if not isinstance(f, Dispatcher):
        return {}
    given: Mapping[str, Any] = f.targetoptions
    pinned = {"locals": tuple(sorted(f.locals.items()))} if f.locals else {}
    return {k: given[k] for k in _MEANING if given.get(k) is not None} | pinned


def forget() -> None:
    """Lets functions be captured again: what they refer to may have changed."""
    renew("captures")


def capture(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Function:
    """The IR of a Python function at Numba argument types, under `njit` options."""
    if "locals" in options:
        raise UnsupportedError(
            message(
                f"`{function.__name__}` is compiled with the option `locals`, which derivatives do not follow",
                filename=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
                found=", ".join(f"`{name}`: {t}" for name, t in options["locals"]),
                instead="convert in the code, as in `t = numpy.float32(x * y)`",
            )
        )
    key = (args, tuple(sorted((k, repr(v)) for k, v in options.items())))
    if (record := current()) is not None:
        record.sources.add(function)

    def make() -> Function:
        itself = _own_dispatcher(function)
        if itself is not None:  # only a compiled function tells Numba the type of its own result
            itself.compile(tuple(t for t in args if not isinstance(t, types.Omitted)))
        return translate(typed_ir(function, args, options), tuple(sorted(options.items(), key=lambda item: item[0])))

    captured: Function = remembered(memo_of(function, "captures"), key, make, function.__name__)
    return captured


def bind(function: Callable[..., Any], args: list[Any], keywords: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """The arguments of a call in the order of the parameters: (name, value, given).

    An omitted one has its default; that of a parameter `*args` is a tuple of values.
    """
    signature = inspect.signature(function)
    bound = signature.bind(*args, **keywords)
    out: list[tuple[str, Any, bool]] = []
    for name, p in signature.parameters.items():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            out.append((name, tuple(bound.arguments.get(name, ())), True))
            continue
        given = name in bound.arguments
        out.append((name, bound.arguments[name] if given else p.default, given))
    return out


def bound_type(value: Operand | tuple[Operand, ...], of: Callable[[Operand], Any]) -> Any:
    """The Numba type of an argument that `bind` gives, where `of` gives that of an operand; those of `*args` are one of Numba's tuples."""
    return types.StarArgTuple.from_types(tuple(map(of, value))) if isinstance(value, tuple) else of(value)


def recursive(f: Any) -> bool:
    """True for a dispatcher that calls itself, through others or not."""
    return _own_dispatcher(python_function(f)) is not None


def _own_dispatcher(function: Callable[..., Any]) -> Any:
    """The dispatcher by which a function calls itself, through others or not; None for a function that does not."""
    seen: set[int] = set()
    todo = [function]
    while todo:
        for called in _called(todo.pop()):
            if called.py_func is function:
                return called
            if id(called) not in seen:
                seen.add(id(called))
                todo.append(called.py_func)
    return None


def _called(function: Callable[..., Any]) -> list[Any]:
    """The dispatchers that the code of a function names."""
    closure = inspect.getclosurevars(function)
    return [v for v in (*closure.globals.values(), *closure.nonlocals.values()) if isinstance(v, Dispatcher)]
