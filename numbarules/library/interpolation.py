"""The method to differentiate of `np.interp`: piecewise linear interpolation."""



# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types

from .expansions import Arg, Implementation, expansion, float_array, real_dtype

__all__: list[str] = []


@expansion(np.interp)
def interp_expansion(x: Arg, xp: Arg, fp: Arg) -> Implementation | None:
    """Piecewise linear, clamped outside; active in all three.

    At an inner sample point the derivative is that of the segment to the right, at the two ends that of the segment inside.
    """
    if not all(isinstance(v, types.Array) and v.ndim == 1 and real_dtype(v) is not None for v in (xp, fp)) or real_dtype(x) is None:
        return None
    if not any(float_array(v) or isinstance(v, types.Float) for v in (x, xp, fp)):
        return None

    @njit
    def check(xp, fp):
        if xp.shape[0] == 0:
            raise ValueError("array of sample points is empty")
        if xp.shape[0] != fp.shape[0]:
            raise ValueError("fp and xp are not of the same size.")

    if not isinstance(x, types.Array):

        def interp_number(x, xp, fp):
            check(xp, fp)
            return interpolated(x, xp, fp)

        return interp_number

    def interp_impl(x, xp, fp):
        check(xp, fp)
        flat = x.ravel()
        out = np.empty(flat.shape[0], np.float64)
        interpolate_into(out, flat, xp, fp)
        return out.reshape(x.shape)

    return interp_impl


@njit
def interpolate_into(out, x, xp, fp):
    for i in range(x.shape[0]):
        out[i] = interpolated(x[i], xp, fp)


@njit
def interpolated(x, xp, fp):
    """One interpolated value, float64."""
    n = xp.shape[0]
    x = np.float64(x)
    if np.isnan(x):
        return x
    first, last = np.float64(xp[0]), np.float64(xp[n - 1])
    if n == 1 or x < first:
        return np.float64(fp[0])
    if x > last:
        return np.float64(fp[n - 1])
    j = min(np.searchsorted(xp, x, side="right") - 1, n - 2)
    if j < 0:
        return np.nan
    left, right = np.float64(xp[j]), np.float64(xp[j + 1])
    low, high = np.float64(fp[j]), np.float64(fp[j + 1])
    slope = (high - low) / (right - left) if right != left else np.nan
    if x == right:
        return slope * (x - right) + high if np.isfinite(slope) else high
    value = slope * (x - left) + low
    if np.isfinite(value):
        return value
    if x == left:
        return low
    if np.isnan(value):
        value = slope * (x - right) + high
        if np.isnan(value) and low == high:
            return low
    return value
