"""Methods to differentiate of arrays that are made of numbers: filled ones, and ranges between two ends."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from .elements import allocator, copy_into
from .expansions import Arg, Implementation, expansion, float_array, is_none, real

__all__: list[str] = []


@expansion(np.full)
def full_expansion(shape: Arg, fill_value: Arg, dtype: Arg = None) -> Implementation | None:
    """An array full of an active number: the reverse sums the cotangent."""
    result = _fill_dtype(fill_value, fill_value, dtype)
    if result is None:
        return None

    def full_impl(shape, fill_value, dtype=None):
        out = np.empty(shape, result)
        copy_into(out, fill_value)
        return out

    return full_impl


@expansion(np.full_like)
def full_like_expansion(a: Arg, fill_value: Arg, dtype: Arg = None) -> Implementation | None:
    """As `np.full`, of the shape, layout and dtype of an array."""
    if not isinstance(a, types.Array):
        return None
    result = _fill_dtype(fill_value, a.dtype, dtype)
    if result is None:
        return None
    empty = allocator(result, a.layout)

    def full_like_impl(a, fill_value, dtype=None):
        out = empty(a.shape)
        copy_into(out, fill_value)
        return out

    return full_like_impl


def _fill_dtype(fill_value: Arg, default: Arg, dtype: Arg) -> Any:
    if not isinstance(fill_value, types.Float):
        return None
    result = default if is_none(dtype) else getattr(dtype, "dtype", None)
    return as_dtype(result) if isinstance(result, types.Float) else None


@expansion(method="fill")
def fill_expansion(arr: Arg, val: Arg) -> Implementation | None:
    """Stores a number in every element, in place."""
    if not float_array(arr) or not real(val):
        return None

    def fill_impl(arr, val):
        copy_into(arr, val)

    return fill_impl


@expansion(np.linspace)
def linspace_expansion(start: Arg, stop: Arg, num: Arg = 50) -> Implementation | None:
    """`num` float64 numbers from start to stop, both active; the last is `stop` itself."""
    if not (real(start) and real(stop)) or not isinstance(num, (int, types.Integer)):
        return None

    def linspace_impl(start, stop, num=50):
        out = np.empty(num, np.float64)
        first, last = start * 1.0, stop * 1.0
        if num == 1:
            out[0] = first
        if num > 1:
            step = (last - first) / (num - 1)
            for i in range(num - 1):
                out[i] = first + i * step
            out[num - 1] = last
        return out

    return linspace_impl


@expansion(np.logspace)
def logspace_expansion(start: Arg, stop: Arg, num: Arg = 50) -> Implementation | None:
    """10 to the power of `np.linspace`."""
    if linspace_expansion(start, stop, num) is None:
        return None
    return lambda start, stop, num=50: np.power(10.0, np.linspace(start, stop, num))
