"""Methods to differentiate of finite differences and of their inverse, the trapezoidal rule."""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from .elements import around_axis, as_vector
from .expansions import Arg, Implementation, expansion, float_array, is_none, real

__all__: list[str] = []


@expansion(np.diff)
def diff_expansion(a: Arg, n: Arg = 1) -> Implementation | None:
    """The n-th differences along the last axis."""
    if not float_array(a) or a.ndim == 0:
        return None
    result = as_dtype(a.dtype)

    def diff_impl(a, n=1):
        if n == 0:
            return a.copy()
        if n < 0:
            raise ValueError("diff(): order must be non-negative")
        parts = around_axis(a, a.ndim - 1)
        before, size = parts.shape[0], parts.shape[1]
        out = np.empty((before, max(size - n, 0)), result)
        work = np.empty(size, result)
        for i in range(before):
            for k in range(size):
                work[k] = parts[i, k, 0]
            for order in range(1, n + 1):
                for k in range(size - order):
                    work[k] = work[k + 1] - work[k]
            for k in range(size - n):
                out[i, k] = work[k]
        return out.reshape(a.shape[:-1] + (max(size - n, 0),))

    return diff_impl


@expansion(np.ediff1d)
def ediff1d_expansion(ary: Arg, to_end: Arg = None, to_begin: Arg = None) -> Implementation | None:
    """First differences of the flattened array, with what is put before and after; the dtype is the array's."""
    if not float_array(ary) or not all(
        is_none(x) or real(x) or (isinstance(x, types.Array) and not isinstance(x.dtype, types.Complex)) for x in (to_end, to_begin)
    ):
        return None
    result = as_dtype(ary.dtype)

    def ediff1d_impl(ary, to_end=None, to_begin=None):
        middle = ary.ravel()
        head, tail = as_vector(to_begin), as_vector(to_end)
        out = np.empty(head.shape[0] + max(middle.shape[0] - 1, 0) + tail.shape[0], result)
        for i in range(head.shape[0]):
            out[i] = head[i]
        for i in range(middle.shape[0] - 1):
            out[head.shape[0] + i] = middle[i + 1] - middle[i]
        for i in range(tail.shape[0]):
            out[out.shape[0] - tail.shape[0] + i] = tail[i]
        return out

    return ediff1d_impl


def trapezoid_expansion(y: Arg, x: Arg = None, dx: Arg = 1.0) -> Implementation | None:
    """Trapezoids along the last axis of a vector or matrix; active in y, x and dx."""
    if not float_array(y) or y.ndim not in (1, 2):
        return None
    if is_none(x) and real(dx):
        if y.ndim == 1:
            return lambda y, x=None, dx=1.0: np.sum(dx * ((y[1:] + y[:-1]) / 2.0))
        return lambda y, x=None, dx=1.0: np.sum(dx * ((y[:, 1:] + y[:, :-1]) / 2.0), -1)
    if float_array(x) and x.ndim == 1:
        if y.ndim == 1:
            return lambda y, x=None, dx=1.0: np.sum(np.diff(x) * ((y[1:] + y[:-1]) / 2.0))
        return lambda y, x=None, dx=1.0: np.sum(np.diff(x) * ((y[:, 1:] + y[:, :-1]) / 2.0), -1)
    return None


for _name in ("trapezoid", "trapz"):
    if hasattr(np, _name):
        expansion(getattr(np, _name))(trapezoid_expansion)
