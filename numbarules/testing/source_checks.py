"""What must hold of the compiled gradients of random Python functions.

The derivative along a random direction is compared with forward mode on the captured IR, and with central differences where the function
is smooth.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, typeof

import numbarules as nr

from .._numba import Dispatcher, numba_type
from ..compile.capture import capture
from ..ir.nodes import Function, Stmt
from .interpreter import run_dual
from .writer import Source

__all__ = ["Wrong", "check_source", "compiled"]


class Wrong(AssertionError):
    """A gradient, value or argument that is not what it must be."""


# called by the programs; one dispatcher for all of them, since each is compiled once


@njit
def blend(a, b):  # type: ignore[no-untyped-def]
    if a > b:
        return a * 0.5 + math.sin(b)
    return b - a * b


@njit
def bump(v, i, c):  # type: ignore[no-untyped-def]
    v[i] += c * v[(i + 1) % v.shape[0]]
    return v[i] * c


@njit
def pair(a, b):  # type: ignore[no-untyped-def]
    return a * b, a - b


def compiled(text: str, name: str) -> Any:
    """The dispatcher `f` of a text, with its lines known to tracebacks."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"njit": njit, "np": np, "math": math, "blend": blend, "bump": bump, "pair": pair}
    scope["__name__"] = "numbarules.testing.generated"
    exec(compile(text, filename, "exec"), scope)
    return scope["f"]


def check_source(program: Source, seed: int = 0, make: Callable[[Any], Any] | None = None) -> bool:
    """Checks a program's gradient by `s`, `x` and `y`; False where its numbers are too large. Raises Wrong."""
    f = compiled(program.text, f"generated {seed}")
    primal = _primal(f, program)
    value = primal(*_copies(program.args))
    if not abs(value) < 1e6:
        return False
    rng = np.random.default_rng(seed)
    v = [rng.uniform(0.5, 1.5, np.shape(a)) * rng.choice([-1.0, 1.0], np.shape(a)) for a in program.args[:3]]
    derivative = make(f) if make is not None else nr.value_and_grad(f, argnums=(0, 1, 2))
    args = _copies(program.args)
    y, grads = derivative(*args)
    for a, b in zip(args, program.args, strict=True):
        if not np.array_equal(a, b, equal_nan=True):
            raise Wrong(f"an argument was changed: {a}")
    tolerance = program.tolerance
    if not abs(y - value) <= max(1e-12, tolerance * 0.01) * (1 + abs(value)):
        raise Wrong(f"value {y!r}, the function returns {value!r}")
    for again, once in zip(derivative(*args)[1], grads, strict=True):
        if not np.array_equal(again, once, equal_nan=True):
            raise Wrong("a second call gives another gradient")
    for g, a in zip(grads, program.args, strict=False):
        if isinstance(a, np.ndarray) and (g.dtype != a.dtype or g.shape != a.shape):
            raise Wrong(f"a gradient of {g.dtype}{g.shape} for {a.dtype}{a.shape}")
    terms = [np.asarray(g, float) * w for g, w in zip(grads, v, strict=True)]
    found, scale = sum(float(t.sum()) for t in terms), 1.0 + sum(float(np.abs(t).sum()) for t in terms)
    slope, dual_value = _forward(f, program, v)
    if not abs(dual_value - value) <= max(1e-10, tolerance) * (1 + abs(value)):
        raise Wrong(f"the captured IR gives {dual_value!r}, the function returns {value!r}")
    if not abs(found - slope) <= tolerance * scale:
        raise Wrong(f"<grad, v> = {found!r}, forward mode gives {slope!r}; {_difference(primal, program, v, 1e-5)!r} by differences")
    if program.tolerance < 1e-6:
        fine, coarse = _difference(primal, program, v, 1e-6), _difference(primal, program, v, 1e-5)
        if abs(fine - coarse) < 1e-5 * scale and abs(found - coarse) > 1e-3 * scale:
            raise Wrong(f"<grad, v> = {found!r}, {coarse!r} by differences")
    return True


def _primal(f: Any, program: Source) -> Any:
    """What says the values: plain Python in double precision, since that saves a compilation of two; else, or where Python
    raises and Numba has inf or nan, the compiled function."""
    if program.tolerance >= 1e-6:
        return f
    try:
        with np.errstate(all="ignore"):
            f.py_func(*_copies(program.args))
    except (OverflowError, ValueError):
        return f
    return f.py_func


def _copies(args: tuple[Any, ...]) -> list[Any]:
    """Copies that keep the strides, negative ones too."""
    out = []
    for a in args:
        if isinstance(a, np.ndarray):
            if a.flags.c_contiguous or a.flags.f_contiguous:
                a = a.copy(order="K")
            else:
                assert a.base is not None
                base = np.array(a.base)
                offset = (a.__array_interface__["data"][0] - a.base.__array_interface__["data"][0]) // a.itemsize
                a = np.lib.stride_tricks.as_strided(base.reshape(-1)[offset:], a.shape, a.strides)
        out.append(a)
    return out


def _wide(a: Any) -> Any:
    if not isinstance(a, np.ndarray):
        return a
    if a.flags.forc:
        return a.astype(np.float64, order="K")
    return a if a.dtype == np.float64 else a.astype(np.float64)[...]


def _forward(f: Any, program: Source, v: list[Any]) -> tuple[float, float]:
    ir = capture(f.py_func, tuple(map(typeof, program.args)), {})
    args = [_wide(a) for a in _copies(program.args)]
    varied = (np.asarray(args[0]), *args[1:3])
    tangents: list[Any] = [
        float(w) if w.ndim == 0 else np.array(w, order="F" if a.flags.f_contiguous else "C") for a, w in zip(varied, v, strict=True)
    ]
    (value,), (slope,) = run_dual(ir, args, [*tangents, None], wide=True, resolve=_callee)
    return float(slope or 0.0), float(value)


def _callee(obj: Any, stmt: Stmt) -> Function | None:
    """The captured code of a jitted helper."""
    return capture(obj.py_func, tuple(numba_type(a.type) for a in stmt.args), {}) if isinstance(obj, Dispatcher) else None


def _difference(f: Any, program: Source, v: list[Any], h: float) -> float:
    def at(sign: float) -> float:
        args = _copies(program.args)
        for i, w in enumerate(v):
            if isinstance(args[i], np.ndarray):
                args[i] += (sign * h * w).astype(args[i].dtype)
            else:
                args[i] += sign * h * float(w)
        return float(f(*args))

    return (at(1.0) - at(-1.0)) / (2 * h)
