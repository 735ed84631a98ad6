"""`vjp` from Python: the value, and the pullback as an object that owns the record of the forward sweep."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import typeof

from .._numba import FULL_TRACEBACKS
from ..errors import DifferentiationError, NumbarulesError, message
from ..ir.types import Array, Scalar, Tuple, Type
from ..runtime import arena
from ..tangents import has_tangent, has_tangents, parts
from .capture import options_of, python_function
from .dispatchers import check_compiles, check_function
from .vjp import Halves, halves_of

__all__ = ["Pullback", "value_and_pullback"]


def value_and_pullback(f: Any, args: tuple[Any, ...]) -> tuple[Any, Pullback]:
    """The value of `f` at `args`, and its pullback there."""
    check_function(f, "vjp")
    args = _with_defaults(python_function(f), args)
    try:
        halves = _halves(f, args)
        if not halves.cotangent_types:
            raise DifferentiationError(
                message(
                    f"`{halves.name}` has no pullback: its result holds no float",
                    filename=halves.function.__code__.co_filename,
                    line=halves.function.__code__.co_firstlineno,
                    contract="`vjp` needs a function that returns a float, a float array, or a tuple with such",
                    found=f"a result of type {halves.primal.result}",
                    instead="return what depends on the arguments, as a float",
                )
            )
        value, record, frame = halves.forward(*args)
        return value, Pullback(halves, value, record, frame)
    except NumbarulesError as error:
        if FULL_TRACEBACKS:
            raise
        raise error.with_traceback(None) from None


def _with_defaults(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """All arguments of a call; a default is one like any other."""
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    return bound.args


def _halves(f: Any, args: tuple[Any, ...]) -> Halves:
    function = python_function(f)
    signature = tuple(map(typeof, args))
    check_compiles(function, signature, options_of(f))
    return halves_of(f, signature)


class Pullback:
    """The pullback of a function at one point: takes a cotangent of the value, returns one cotangent per argument."""

    def __init__(self, halves: Halves, value: Any, record: int, frame: int) -> None:
        self._halves = halves
        self._frame = np.uint64(frame)
        self._shapes = [np.shape(y) for y, t in _flat(halves.primal.result, value, "") if has_tangent(t)]
        self._lock = threading.Lock()
        weakref.finalize(self, arena.closer(), record).atexit = False

    def __call__(self, ybar: Any) -> tuple[Any, ...]:
        """One cotangent per argument, None for an argument that holds no float."""
        cotangents = self._cotangents(ybar)
        with self._lock:
            found = iter(self._halves.compiled_reverse(self._frame, *cotangents))
        return tuple(_grouped(t, found) for _, t in self._halves.primal.args)

    def __repr__(self) -> str:
        return f"<pullback of {self._halves.name}>"

    def _cotangents(self, ybar: Any) -> list[Any]:
        """The leaves of a cotangent, in the types that the reverse half takes; an error where it is none of the value."""
        found: list[Any] = []
        shapes = iter(self._shapes)
        wanted = iter(self._halves.cotangent_types)
        for part, t in _flat(self._halves.primal.result, ybar, self._halves.name):
            if not (has_tangent(t)):
                continue
            expected = next(wanted)
            assert isinstance(expected, Array | Scalar)
            found.append(_converted(part, expected, next(shapes), self._halves.name))
        return found


def _flat(t: Type, value: Any, name: str) -> Iterator[tuple[Any, Type]]:
    """The leaves of a value of type `t`, or of a cotangent of one."""
    if not isinstance(t, Tuple):
        yield value, t
        return
    if t.struct:
        if type(value) is not t.cls.python_class:
            raise _wrong(name, f"a `{t.cls.name}`, as the value is", f"a value of type `{type(value).__name__}`")
        value = tuple(getattr(value, f) for f in t.fields)
    if not isinstance(value, tuple | list) or len(value) != len(t.items):
        count = f" of length {len(value)}" if isinstance(value, tuple | list) else ""
        raise _wrong(name, f"a tuple of {len(t.items)}, as the value is", f"a value of type `{type(value).__name__}`{count}")
    for item, part in zip(t.items, value, strict=True):
        yield from _flat(item, part, name)


def _converted(part: Any, t: Array | Scalar, shape: tuple[int, ...], name: str) -> Any:
    dtype = np.dtype((t.dtype if isinstance(t, Array) else t).kind)
    try:
        array = np.asarray(part)
    except ValueError:
        array = np.asarray(part, dtype=object)
    what = f"an array of shape {shape} and type {dtype}" if isinstance(t, Array) else f"a {dtype}"
    if array.dtype.kind not in "biuf":
        raise _wrong(name, f"{what}, as the value is", f"`{type(part).__name__}`" + (f" of {array.dtype}" if array.dtype != object else ""))
    if array.shape != shape:
        raise _wrong(name, f"{what}, as the value is", f"shape {array.shape}")
    if isinstance(t, Scalar):
        return dtype.type(array)
    return np.asarray(array, dtype=dtype, order="F" if t.layout == "F" else "C")


def _wrong(name: str, expected: str, found: str) -> DifferentiationError:
    return DifferentiationError(
        message(
            f"the pullback of `{name}` cannot take this cotangent",
            contract=f"a cotangent has the structure and shapes of the value: here {expected}",
            found=found,
            instead="pass a cotangent like `numpy.ones_like` of the value",
        )
    )


def _grouped(t: Type, found: Iterator[Any]) -> Any:
    """The cotangent of an argument of type `t`, from its leaves."""

    def part(t: Type, kept: bool) -> Any:
        if isinstance(t, Tuple):
            items = [part(item, kept or t.struct) for item in t.items]
            return tuple(items) if t.cls is None else t.cls.make(*items) if t.struct else t.cls(*items)
        return next(found) if next(iter(parts(t, kept)), "absent") != "absent" else None

    return part(t, False) if has_tangents(t) else None
