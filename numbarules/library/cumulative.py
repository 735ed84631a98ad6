"""Methods to differentiate of running sums and products, in C order or along one axis."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import around_axis, checked_axis
from .expansions import Arg, Implementation, expansion, float_array, is_none
from .nan_reductions import plus_number, times_number
from .reductions import plus, times

__all__: list[str] = []


@expansion(np.cumsum, method="cumsum")
def cumsum_expansion(a: Arg, axis: Arg = None, dtype: Arg = None) -> Implementation | None:
    """Running sums in C order, or along one axis."""
    if not float_array(a) or not (is_none(axis) or isinstance(axis, types.Integer)):
        return None
    if not (is_none(dtype) or isinstance(getattr(dtype, "dtype", None), types.Float)):
        return None
    result = as_dtype(a.dtype if is_none(dtype) else dtype.dtype)
    zero = result.type(0)

    if is_none(axis):

        def cumsum_impl(a, axis=None, dtype=None):
            return running(a.ravel(), zero, result, plus)

        return cumsum_impl

    if a.ndim == 0:
        return None

    def cumsum_along_axis(a, axis=None, dtype=None):
        axis = checked_axis(axis, a.ndim)
        parts = around_axis(a, axis)
        before, n, after = parts.shape
        out = np.empty((before, n, after), result)
        for i in range(before):
            for j in range(after):
                s = zero
                for k in range(n):
                    s = s + parts[i, k, j]
                    out[i, k, j] = s
        return out.reshape(a.shape)

    return cumsum_along_axis


@expansion(np.cumprod, method="cumprod")
def cumprod_expansion(a: Arg) -> Implementation | None:
    """Running products in C order; the reverse never divides."""
    return _running_expansion(a, 1, times)


@expansion(np.nancumsum)
def nancumsum_expansion(a: Arg) -> Implementation | None:
    """Running sums in C order, NaN counted as zero."""
    return _running_expansion(a, 0, plus_number)


@expansion(np.nancumprod)
def nancumprod_expansion(a: Arg) -> Implementation | None:
    """Running products in C order, NaN counted as one."""
    return _running_expansion(a, 1, times_number)


def _running_expansion(a: Arg, start: int, step: Implementation) -> Implementation | None:
    if not float_array(a):
        return None
    result = as_dtype(a.dtype)
    first = result.type(start)

    def running_impl(a):
        return running(a.ravel(), first, result, step)

    return running_impl


@njit
def running(flat, start, dtype, step):
    """The totals of `step` after each element."""
    out = np.empty(flat.shape[0], dtype)
    s = start
    for i in range(flat.shape[0]):
        s = step(s, flat[i], 0)
        out[i] = s
    return out
