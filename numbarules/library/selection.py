"""Methods to differentiate of functions that select elements: extremes, sorting, quantiles, `where`, `clip`, gathers and scatters.

Which element is selected is an integer and passive; the derivative goes to the selected element alone, whole and undivided. At a tie the
first in C order wins. Comparisons with NaN go the way Numba's go.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .expansions import (
    Arg,
    Implementation,
    allocator,
    blocks,
    checked_axis,
    expansion,
    flat_get,
    float_array,
    helper,
    is_none,
    literal,
    real,
    real_dtype,
    spread,
    with_extent,
    without_axis,
)

__all__ = ["gather", "scatter"]


# Extremes: a passive search and one load


@expansion(np.max, np.amax, method="max")
def max_expansion(a: Arg) -> Implementation | None:
    """The largest element, or the first NaN."""
    return _extreme(a, np.argmax, "zero-size array to reduction operation maximum which has no identity")


@expansion(np.min, np.amin, method="min")
def min_expansion(a: Arg) -> Implementation | None:
    """The smallest element, or the first NaN."""
    return _extreme(a, np.argmin, "zero-size array to reduction operation minimum which has no identity")


@expansion(np.nanmax)
def nanmax_expansion(a: Arg) -> Implementation | None:
    """The largest element that is not NaN; NaN where there is none."""
    return _extreme(a, nanargmax, "zero-size array to reduction operation not possible")


@expansion(np.nanmin)
def nanmin_expansion(a: Arg) -> Implementation | None:
    """The smallest element that is not NaN; NaN where there is none."""
    return _extreme(a, nanargmin, "zero-size array to reduction operation not possible")


def _extreme(a: Arg, search: Implementation, empty: str) -> Implementation | None:
    if not float_array(a):
        return None

    def extreme_impl(a):
        if a.size == 0:
            raise ValueError(empty)
        return flat_get(a, search(a))

    return extreme_impl


@njit
def nanargmax(a):
    """The C-order position of the first largest element that is not NaN; 0 where there is none."""
    best = 0
    for k in range(1, a.size):
        if flat_get(a, k) > flat_get(a, best) or (np.isnan(flat_get(a, best)) and not np.isnan(flat_get(a, k))):
            best = k
    return best


@njit
def nanargmin(a):
    """The C-order position of the first smallest element that is not NaN; 0 where there is none."""
    best = 0
    for k in range(1, a.size):
        if flat_get(a, k) < flat_get(a, best) or (np.isnan(flat_get(a, best)) and not np.isnan(flat_get(a, k))):
            best = k
    return best


@expansion(np.ptp)
def ptp_expansion(a: Arg) -> Implementation | None:
    """Largest less smallest: +1 to the first largest, -1 to the first smallest; NaN with zero gradient when there is a NaN."""
    if not float_array(a) or a.ndim == 0:
        return None

    def ptp_impl(a):
        if a.size == 0:
            raise ValueError("zero-size array reduction not possible")
        high = flat_get(a, np.argmax(a))
        if np.isnan(high):
            return np.nan
        return high - flat_get(a, np.argmin(a))

    return ptp_impl


# Sorting: a passive order, then a gather


@helper
def sort_rows(a: Arg) -> Implementation:
    """Sorts along the last axis, in place. NaNs go last."""
    if a.ndim == 1:
        dtype = as_dtype(a.dtype)

        def sort_row(a):
            order = np.argsort(a)
            old = np.empty(a.shape[0], dtype)
            for i in range(a.shape[0]):
                old[i] = a[i]
            for i in range(a.shape[0]):
                a[i] = old[order[i]]

        return sort_row

    def sort_each_row(a):
        for i in range(a.shape[0]):
            sort_rows(a[i])

    return sort_each_row


@expansion(np.sort)
def sort_expansion(a: Arg) -> Implementation | None:
    """A copy sorted along the last axis: a permutation of the cotangent."""
    if not float_array(a) or a.ndim == 0:
        return None

    def sort_impl(a):
        out = a.copy()
        sort_rows(out)
        return out

    return sort_impl


@expansion(method="sort")
def sort_method_expansion(a: Arg, kind: Arg = "quicksort") -> Implementation | None:
    """Sorts in place along the last axis; the order among equals is quicksort's whatever the kind, which no value shows."""
    if not float_array(a) or a.ndim == 0:
        return None

    def sort_method_impl(a, kind="quicksort"):
        sort_rows(a)

    return sort_method_impl


@njit
def middle(flat, order, n):
    """The median of the n elements that come first in `order`: half to each of the two middle ones of an even number."""
    half = n >> 1
    if n & 1 == 0:
        return (flat[order[half - 1]] + flat[order[half]]) / 2
    return flat[order[half]]


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


# Choice between operands


@njit
def chosen(c, x, y):
    return x if c else y


@njit
def clipped(v, low, high):
    m = low if low > v else v
    return high if high < m else m


@njit
def clipped_below(v, low, unused):
    return low if low > v else v


@njit
def clipped_above(v, high, unused):
    return high if high < v else v


where_into = spread(chosen, "where_into")
clip_into = spread(clipped, "clip_into")
clip_below_into = spread(clipped_below, "clip_below_into")
clip_above_into = spread(clipped_above, "clip_above_into")


def _shape_of(x: Arg) -> Any:
    """A jitted function that gives the shape of an array, `()` of a number."""
    return njit(lambda x: x.shape) if isinstance(x, types.Array) else njit(lambda x: ())


@expansion(np.where)
def where_expansion(condition: Arg, x: Arg, y: Arg) -> Implementation | None:
    """The cotangent goes where the value came from; the other operand gets exactly zero there, whatever it holds."""
    dtypes = [real_dtype(v) for v in (condition, x, y)]
    if any(d is None for d in dtypes) or not any(d.kind == "f" for d in dtypes[1:]):  # type: ignore[union-attr]
        return None
    dtype = np.promote_types(dtypes[1], dtypes[2])  # type: ignore[arg-type]
    of_condition, of_x, of_y = _shape_of(condition), _shape_of(x), _shape_of(y)
    arrays = [v for v in (x, y) if isinstance(v, types.Array)]
    layout = getattr(condition, "layout", "C")
    if len(arrays) == 2 and any(v.layout != layout for v in arrays):
        layout = "C"
    empty = allocator(dtype, layout)

    def where_impl(condition, x, y):
        out = empty(np.broadcast_shapes(of_condition(condition), of_x(x), of_y(y)))
        where_into(out, condition, x, y)
        return out

    return where_impl


@expansion(np.clip, method="clip")
def clip_expansion(a: Arg, a_min: Arg = None, a_max: Arg = None, out: Arg = None) -> Implementation | None:
    """At a bound the derivative goes to `a`; beyond it, to the bound. Bounds are numbers, arrays that broadcast, or `None`."""
    if not isinstance(a, types.Array) or real_dtype(a) is None or not (is_none(out) or float_array(out)):
        return None
    if not any(float_array(v) for v in (a, out)) or any(not is_none(v) and real_dtype(v) is None for v in (a_min, a_max)):
        return None
    no_low, no_high = is_none(a_min), is_none(a_max)
    if no_low and no_high:

        def clip_nothing(a, a_min=None, a_max=None, out=None):
            raise ValueError("array_clip: must set either max or min")

        return clip_nothing

    ndim = max(getattr(v, "ndim", 0) for v in (a, a_min, a_max))
    if is_none(out) and ndim > a.ndim:
        return None
    of_low, of_high = _shape_of(a_min), _shape_of(a_max)

    if is_none(out):

        @njit
        def prepared(a, shape, out):
            if a.shape != shape:
                raise ValueError("clip: the bounds have a larger shape than the array")
            return np.empty_like(a)
    else:

        @njit
        def prepared(a, shape, out):
            if out.shape != shape:
                raise ValueError("clip: the shape of the 'out' array does not match the shape of the result")
            return out

    if no_high:

        def clip_below(a, a_min=None, a_max=None, out=None):
            result = prepared(a, np.broadcast_shapes(a.shape, of_low(a_min)), out)
            clip_below_into(result, a, a_min, 0)
            return result

        return clip_below

    if no_low:

        def clip_above(a, a_min=None, a_max=None, out=None):
            result = prepared(a, np.broadcast_shapes(a.shape, of_high(a_max)), out)
            clip_above_into(result, a, a_max, 0)
            return result

        return clip_above

    def clip_impl(a, a_min=None, a_max=None, out=None):
        result = prepared(a, np.broadcast_shapes(a.shape, of_low(a_min), of_high(a_max)), out)
        clip_into(result, a, a_min, a_max)
        return result

    return clip_impl


@expansion(np.nan_to_num)
def nan_to_num_expansion(x: Arg, copy: Arg = True, nan: Arg = 0.0, posinf: Arg = None, neginf: Arg = None) -> Implementation | None:
    """What is replaced has zero derivative; the replacement is passive in `x`."""
    dtype = x.dtype if isinstance(x, types.Array) else x
    if not isinstance(dtype, types.Float) or not real(nan) or not all(is_none(v) or real(v) for v in (posinf, neginf)):
        return None
    limits = np.finfo(as_dtype(dtype))
    highest, lowest = limits.max, limits.min
    of_high = njit(lambda v: highest) if is_none(posinf) else njit(lambda v: v)
    of_low = njit(lambda v: lowest) if is_none(neginf) else njit(lambda v: v)

    if not isinstance(x, types.Array):

        def number_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
            if np.isnan(x):
                return nan
            elif x == -np.inf:
                return of_low(neginf)
            elif x == np.inf:
                return of_high(posinf)
            return x

        return number_to_num

    if literal(copy) is not True:
        return None

    def nan_to_num_impl(x, copy=True, nan=0.0, posinf=None, neginf=None):
        out = np.empty_like(x)
        replace_into(out, x, nan, (of_low(neginf), of_high(posinf)))
        return out

    return nan_to_num_impl


@njit
def replaced(v, nan, limits):
    if np.isnan(v):
        return nan
    elif v == -np.inf:
        return limits[0]
    elif v == np.inf:
        return limits[1]
    return v


replace_into = spread(replaced, "replace_into")


# Integer-array and mask indices


@helper
def gather(x: Arg, index: Arg) -> Implementation:
    """x[index] on axis 0 for an integer array of any dimension or a 1-d boolean mask; the reverse adds up repeated indices."""
    dtype = as_dtype(x.dtype)
    if isinstance(index.dtype, types.Boolean):

        def gather_mask(x, index):
            return gather(x, np.nonzero(index)[0])

        return gather_mask

    if index.ndim != 1:

        def gather_nd(x, index):
            return gather(x, index.ravel()).reshape(index.shape + x.shape[1:])

        return gather_nd

    if x.ndim == 1:

        def gather_elements(x, index):
            out = np.empty(index.shape[0], dtype)
            for i in range(index.shape[0]):
                out[i] = x[index[i]]
            return out

        return gather_elements

    def gather_rows(x, index):
        out = np.empty((index.shape[0],) + x.shape[1:], dtype)
        for i in range(index.shape[0]):
            out[i] = x[index[i]]
        return out

    return gather_rows


@helper
def scatter(z: Arg, index: Arg, v: Arg) -> Implementation:
    """z[index] = v on axis 0 for a 1-d integer array or mask; v is a number, a row, or rows. The last of repeated indices wins."""
    if isinstance(index.dtype, types.Boolean):

        def scatter_mask(z, index, v):
            scatter(z, np.nonzero(index)[0], v)

        return scatter_mask

    if not isinstance(v, types.Array) or v.ndim < z.ndim:

        def scatter_same(z, index, v):
            for i in range(index.shape[0]):
                z[index[i]] = v

        return scatter_same

    def scatter_impl(z, index, v):
        if v.shape[0] != 1 and v.shape[0] != index.shape[0]:
            raise ValueError("cannot assign slice from input of different size")
        for i in range(index.shape[0]):
            z[index[i]] = v[i if v.shape[0] != 1 else 0]

    return scatter_impl


@expansion(np.take, method="take")
def take_expansion(a: Arg, indices: Arg, axis: Arg = None) -> Implementation | None:
    """Elements of the flattened array, or along one axis; the reverse adds up repeated indices."""
    if not float_array(a):
        return None
    dtype = as_dtype(a.dtype)
    one = isinstance(indices, types.Integer)
    many = isinstance(indices, types.Array) and isinstance(indices.dtype, types.Integer) and indices.ndim > 0

    if is_none(axis) and one:

        def take_element(a, indices, axis=None):
            if indices > a.size - 1 or indices < -a.size:
                raise IndexError("Index out of bounds")
            return flat_get(a, indices + a.size if indices < 0 else indices)

        return take_element

    if is_none(axis) and many:

        def take_elements(a, indices, axis=None):
            positions = indices.ravel()
            out = np.empty(positions.shape[0], dtype)
            for i in range(positions.shape[0]):
                k = positions[i]
                if k > a.size - 1 or k < -a.size:
                    raise IndexError("Index out of bounds")
                out[i] = flat_get(a, k + a.size if k < 0 else k)
            return out.reshape(indices.shape)

        return take_elements

    if not isinstance(axis, types.Integer) or a.ndim == 0:
        return None

    if many and indices.ndim == 1:

        def take_along(a, indices, axis=None):
            axis = checked_axis(axis, a.ndim)
            before, n, after = blocks(a.shape, axis)
            parts = a.ravel().reshape((before, n, after))
            out = np.empty((before, indices.shape[0], after), dtype)
            for i in range(before):
                for k in range(indices.shape[0]):
                    for j in range(after):
                        out[i, k, j] = parts[i, indices[k], j]
            return out.reshape(with_extent(a.shape, axis, indices.shape[0]))

        return take_along

    if one and a.ndim > 1:

        def take_slice(a, indices, axis=None):
            axis = checked_axis(axis, a.ndim)
            before, n, after = blocks(a.shape, axis)
            parts = a.ravel().reshape((before, n, after))
            out = np.empty((before, after), dtype)
            for i in range(before):
                for j in range(after):
                    out[i, j] = parts[i, indices, j]
            return out.reshape(without_axis(a.shape, axis))

        return take_slice

    return None
