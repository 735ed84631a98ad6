"""Methods to differentiate: implementations in plain loops of NumPy functions whose own source in Numba no derivative can pass.

An expansion is written like an `@overload`: a builder gets the Numba types of the arguments of a call, or the default value of an omitted
one, and returns an implementation with the same parameters, or `None` where it does not cover the signature. The engine captures the
implementation, inlines it in place of the call and differentiates it. Implementations keep the value, the dtype and the layout of Numba's
own; nothing is ever overloaded on a function of NumPy's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

__all__ = [
    "Arg",
    "Implementation",
    "common_dtype",
    "expansion",
    "expansions",
    "float_array",
    "helper",
    "is_none",
    "literal",
    "lookup_expansion",
    "real",
    "real_dtype",
]

Arg = Any
"""The Numba type of an argument in the call, or the Python default of one that was omitted."""

Implementation = Callable[..., Any]
Builder = Callable[..., "Implementation | None"]

_table: dict[object, Builder] = {}


def expansion(*functions: Callable[..., Any], method: str | None = None) -> Callable[[Builder], Builder]:
    """Registers a builder for NumPy `functions` and, with `method`, for the array method of that name."""

    def register(builder: Builder) -> Builder:
        for function in functions:
            _table[function] = builder
        if method is not None:
            _table["Array", method] = builder
        return builder

    return register


def lookup_expansion(key: object, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> Implementation | None:
    """The implementation of the call of `key` at these Numba types, or `None`.

    `key` is a Python callable, or `("Array", method)` with the array as first argument.
    """
    builder = _table.get(key)
    if builder is None:
        return None
    try:
        bound = inspect.signature(builder).bind(*args, **dict(kwargs or {}))
    except TypeError:
        return None
    return builder(*(_plain(a) for a in bound.args), **{k: _plain(a) for k, a in bound.kwargs.items()})


def expansions() -> dict[object, Builder]:
    """A copy of the table of builders."""
    return dict(_table)


def helper(builder: Builder) -> Callable[..., Any]:
    """A function of our own that exists by its builder alone: an `@overload` for jitted code, an expansion for the engine."""

    def stub(*args: Any) -> Any:
        raise NotImplementedError(f"{builder.__name__} works in jitted code only")

    functools.update_wrapper(stub, builder)
    plain = FunctionType(builder.__code__, builder.__globals__, builder.__name__, builder.__defaults__, builder.__closure__)
    overload(stub)(plain)  # Numba compares signatures with those of implementations, annotations included
    expansion(stub)(builder)
    return stub


def _plain(arg: Any) -> Any:
    return arg.value if isinstance(arg, types.Omitted) else arg


# What builders ask of types


def is_none(arg: Arg) -> bool:
    """Whether an argument is `None`, given or by default."""
    return arg is None or isinstance(arg, types.NoneType)


def float_array(arg: Arg) -> bool:
    """Whether an argument is an array of floats: only these carry a derivative."""
    return isinstance(arg, types.Array) and isinstance(arg.dtype, types.Float)


def real(arg: Arg) -> bool:
    """Whether an argument is a real number or boolean, as a type or as a Python default."""
    return isinstance(arg, (int, float, types.Integer, types.Float, types.Boolean))


def real_dtype(arg: Arg) -> np.dtype[Any] | None:
    """The NumPy dtype of a real array or real number; `None` for anything else."""
    dtype = arg.dtype if isinstance(arg, types.Array) else arg
    return as_dtype(types.unliteral(dtype)) if isinstance(dtype, (types.Integer, types.Float, types.Boolean)) else None


def literal(arg: Arg, default: Any = None) -> Any:
    """The value of a literal type or of a Python default, else `default`."""
    return arg.literal_value if isinstance(arg, types.Literal) else default if isinstance(arg, types.Type) else arg


def common_dtype(a: Arg, b: Arg) -> Any:
    """The common dtype of two real arrays of which one is of floats; `None` for anything else."""
    if not (float_array(a) or float_array(b)) or not all(
        isinstance(v, types.Array) and v.ndim > 0 and real_dtype(v) is not None for v in (a, b)
    ):
        return None
    return np.promote_types(as_dtype(a.dtype), as_dtype(b.dtype))
