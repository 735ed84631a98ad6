"""Calls of NumPy functions, and the check that an expansion gives what Numba's own function gives.

Compared are value, dtype, layout, arguments left behind, and exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, typeof, types

import numbarules.library  # noqa: F401 - importing fills the table
from numbarules.library.expansions import lookup_expansion

_compiled: dict[Any, Any] = {}


def wave(*shape: int, dtype: Any = np.float64) -> Any:
    """Numbers of both signs, all different and in no order, C contiguous."""
    n = math.prod(shape)
    return (np.cos(1.7 * np.arange(n) + 0.3) * (1.0 + np.arange(n) % 5)).astype(dtype).reshape(shape)


def fortran(*shape: int) -> Any:
    """As `wave`, F contiguous."""
    return np.asfortranarray(wave(*shape))


def strided(*shape: int) -> Any:
    """As `wave`, with gaps and a negative stride."""
    wide = wave(*(2 * n for n in shape))
    return wide[tuple(slice(None, None, -2) for _ in shape)]


def with_nans(*shape: int) -> Any:
    """As `wave`, with NaNs at the start and inside."""
    x = wave(*shape)
    x.flat[::3] = math.nan
    return x


class Literal(int):
    """A number that a call is written with."""


def is_written(a: Any) -> bool:
    """Whether an argument stands in the call itself."""
    return isinstance(a, str | bool | Literal) or a is None


C1, C2, C3 = wave(7), wave(4, 3), wave(2, 3, 4)
F2, F3 = fortran(4, 3), fortran(2, 3, 4)
A1, A2, A3 = strided(7), strided(4, 3), strided(2, 3, 4)
S1, S2 = wave(7, dtype=np.float32), wave(4, 3, dtype=np.float32)
I1 = np.array([2, 0, -1, 2])
E1, E2 = np.empty(0), np.empty((0, 3))
VIEWS = [F2, A3, S1]
ALL = [np.array(1.5), C1, C3, F2, A1, A3, S2, E2]


class Case(NamedTuple):
    """A call of a NumPy function, or of the array method of a name."""

    key: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(key: Any, *args: Any, **kwargs: Any) -> Case:
    """The case of the call that is written so."""
    return Case(key, args, kwargs)


def caller(case: Case) -> Callable[..., Any]:
    """A jitted function that makes the call as a user writes it, strings, booleans and `Literal`s as literals."""
    key, args, kwargs = case
    written = [repr(a) if is_written(a) else f"x{i}" for i, a in enumerate(args)]
    written += [f"{k}={a!r}" if is_written(a) else f"{k}={k}" for k, a in kwargs.items()]
    names = ", ".join([*(f"x{i}" for i in range(len(args))), *kwargs])
    call = f"x0.{key}({', '.join(written[1:])})" if isinstance(key, str) else f"f({', '.join(written)})"
    text = f"lambda {names}: {call}"
    if (text, key) not in _compiled:
        _compiled[text, key] = njit(eval(text, {"f": key}))
    return _compiled[text, key]


def expanded(case: Case) -> Callable[..., Any]:
    """The jitted implementation for a call."""
    key, args, kwargs = case
    found = ("Array", key) if isinstance(key, str) else key
    arg_types = tuple(types.literal(int(a)) if isinstance(a, Literal) else typeof(a) for a in args)
    kwarg_types = {k: typeof(a) for k, a in kwargs.items()}
    if key is np.nan_to_num:
        kwarg_types.pop("copy", None)
    signature = (found, arg_types, tuple(kwarg_types.items()))
    if signature not in _compiled:
        implementation = lookup_expansion(found, arg_types, kwarg_types)
        assert implementation is not None, f"not covered: {key} {arg_types} {kwarg_types}"
        _compiled[signature] = njit(implementation)
    return _compiled[signature]


def copied(x: Any) -> Any:
    """The argument copied with its layout, strided ones included."""
    if isinstance(x, tuple):
        return tuple(copied(v) for v in x)
    if not isinstance(x, np.ndarray):
        return x
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy(order="K")
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    view = wide[tuple(slice(None, None, -2) for _ in x.shape)]
    view[...] = x
    return view


def outcome(function: Any, case: Case) -> tuple[Any, Any, tuple[Any, ...]]:
    """The exception's type or the value, the inferred result type, and the arguments as left behind."""
    args, kwargs = copied(case.args), case.kwargs
    try:
        value = function(*args, **kwargs)
    except (ValueError, IndexError, ZeroDivisionError, RuntimeError, TypeError, AssertionError) as error:
        return type(error), None, args
    arg_types = tuple(typeof(a) for a in (*args, *kwargs.values()))
    signatures = function.nopython_signatures
    signature = next((s for s in signatures if s.args == arg_types), signatures[0])
    return value, types.unliteral(signature.return_type), args


def label(case: Case) -> str:
    key, args, kwargs = case
    return f"{key if isinstance(key, str) else key.__name__}-" + ",".join(str(typeof(a)) for a in (*args, *kwargs.values()))


def sampled(found: Iterable[Case], each: int = 30) -> list[Any]:
    """The cases as parameters: the first of each function and every `each`-th of the rest run always, the others with the slow tests."""
    seen: set[Any] = set()
    out: list[Any] = []
    for i, case in enumerate(found):
        quick = case.key not in seen or i % each == 0
        seen.add(case.key)
        out.append(pytest.param(case, id=label(case), marks=() if quick else pytest.mark.slow))
    return out


def jitted(name: str, function: Callable[..., Any]) -> Any:
    """The function, compiled once for a name."""
    return _compiled.setdefault(name, njit(function))


def same_as_numba(case: Case, exact: bool = False) -> None:
    """Checks one case; `exact`: to the last bit, as where the order of summation is Numba's."""
    expected, expected_type, expected_args = outcome(caller(case), case)
    value, value_type, left = outcome(expanded(case), case)
    if isinstance(expected, type):
        assert value is expected
        return
    assert value_type == expected_type
    single = getattr(expected_type, "dtype", expected_type) == types.float32
    tolerance = 0.0 if exact else 1e-6 if single else 1e-14
    if expected is not None:
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
        assert np.shape(value) == np.shape(expected)
    for a, b in zip(left, expected_args, strict=True):
        if not isinstance(a, str | tuple) and a is not None:
            np.testing.assert_array_equal(a, b)
