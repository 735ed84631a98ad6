"""Methods to differentiate of medians, percentiles and quantiles: a passive order, and the elements at one or two ranks."""



# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types

from .expansions import Arg, Implementation, expansion, float_array, real, real_dtype

__all__: list[str] = []


@expansion(np.median)
def median_expansion(a: Arg) -> Implementation | None:
    """The median of all; NaN with zero gradient for an empty array. NaNs count as largest (Numba's result is then arbitrary)."""
    if not float_array(a):
        return None

    def median_impl(a):
        flat = a.ravel()
        if flat.shape[0] == 0:
            return np.nan
        return middle(flat, np.argsort(flat), flat.shape[0])

    return median_impl


@expansion(np.nanmedian)
def nanmedian_expansion(a: Arg) -> Implementation | None:
    """The median of what is not NaN; NaN with zero gradient where there is none."""
    if not float_array(a):
        return None

    def nanmedian_impl(a):
        flat = a.ravel()
        n = flat.shape[0] - np.sum(np.isnan(flat))
        if n == 0:
            return np.nan
        return middle(flat, np.argsort(flat), n)

    return nanmedian_impl


@njit
def middle(flat, order, n):
    """The median of the n elements that come first in `order`: half to each of the two middle ones of an even number."""
    half = n >> 1
    if n & 1 == 0:
        return (flat[order[half - 1]] + flat[order[half]]) / 2
    return flat[order[half]]


@expansion(np.percentile)
def percentile_expansion(a: Arg, q: Arg) -> Implementation | None:
    """Linear interpolation between the two nearest ranks, float64; also active in `q`. With infinities, NaN where Numba has NaN."""
    return _quantile(a, q, 1.0, False, "Percentiles must be in the range [0, 100]")


@expansion(np.quantile)
def quantile_expansion(a: Arg, q: Arg) -> Implementation | None:
    """As `np.percentile` of 100 q."""
    return _quantile(a, q, 100.0, False, "Quantiles must be in the range [0, 1]")


@expansion(np.nanpercentile)
def nanpercentile_expansion(a: Arg, q: Arg) -> Implementation | None:
    """As `np.percentile` of what is not NaN."""
    return _quantile(a, q, 1.0, True, "Percentiles must be in the range [0, 100]")


@expansion(np.nanquantile)
def nanquantile_expansion(a: Arg, q: Arg) -> Implementation | None:
    """As `np.quantile` of what is not NaN."""
    return _quantile(a, q, 100.0, True, "Quantiles must be in the range [0, 1]")


def _quantile(a: Arg, q: Arg, factor: float, skip_nan: bool, out_of_range: str) -> Implementation | None:
    if not float_array(a):
        return None
    upper = 100.0 / factor

    @njit
    def one_quantile(flat, order, n, undefined, q):
        if not (q >= 0.0 and q <= upper):
            raise ValueError(out_of_range)
        if undefined:
            return np.nan
        return ranked(flat, order, n, np.float64(q) * factor)

    @njit
    def prepare(flat):
        nans = np.sum(np.isnan(flat))
        n = flat.shape[0] - nans if skip_nan else flat.shape[0]
        undefined = n == 0 if skip_nan else nans > 0
        order = np.argsort(flat)
        if n == 1 and not undefined and not np.isfinite(flat[order[0]]):
            undefined = True
        return order, n, undefined

    if real(q):

        def quantile_impl(a, q):
            flat = a.ravel()
            order, n, undefined = prepare(flat)
            return one_quantile(flat, order, n, undefined, q)

        return quantile_impl

    if not isinstance(q, types.Array) or q.ndim == 0 or real_dtype(q) is None:
        return None

    def quantiles_impl(a, q):
        flat, points = a.ravel(), q.ravel()
        order, n, undefined = prepare(flat)
        out = np.empty(points.shape[0], np.float64)
        for i in range(points.shape[0]):
            out[i] = one_quantile(flat, order, n, undefined, points[i])
        return out

    return quantiles_impl


@njit
def ranked(flat, order, n, percentile):
    """The value at a percentile of the n elements that come first in `order`, as Numba interpolates; none at all is an error, as there."""
    if n == 0:
        if percentile == 0 or percentile == 100:
            raise ValueError("zero-size array to reduction operation which has no identity")
        raise AssertionError
    if n == 1:
        return np.float64(flat[order[0]])
    if percentile == 100:
        last = np.float64(flat[order[n - 1]])
        return last if np.isfinite(last) else np.nan
    if percentile == 0:
        return np.nan if lowest_is_undefined(flat, order, n) else np.float64(flat[order[0]])
    rank = 1 + (n - 1) * (percentile / 100.0)
    k = int(np.floor(rank))
    m = rank - k
    return np.float64(flat[order[k - 1]]) * (1 - m) + np.float64(flat[order[k]]) * m


@njit
def lowest_is_undefined(flat, order, n):
    """Numba's cases in which infinities make the lowest percentile NaN."""
    high, low = 0, 0
    for i in range(n):
        v = flat[order[i]]
        high += v == np.inf
        low += v == -np.inf
    finite = n - high - low
    if high == 0 and low == 0:
        return False
    return finite == 0 or (high == 1 and n == 2) or low > 1 or (finite == 1 and high > 1 and low != 1)
