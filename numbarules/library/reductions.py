"""Methods to differentiate of sums, products, moments and running totals: Numba's own order of summation, accumulator and result type."""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .expansions import Arg, Implementation, blocks, checked_axis, expansion, float_array, fold, is_none, real, spread, without_axis

__all__ = ["accumulate"]

_AxisError = np.exceptions.AxisError


@njit
def plus(s, v, p):
    return s + v


@njit
def plus_square(s, v, m):
    d = v - m
    return s + d * d


@njit
def times(s, v, p):
    return s * v


@njit
def plus_number(s, v, p):
    return s if np.isnan(v) else s + v


@njit
def times_number(s, v, p):
    return s if np.isnan(v) else s * v


@njit
def plus_square_number(s, v, m):
    d = v - m
    return s if np.isnan(v) else s + d * d


@njit
def one_more_number(n, v, p):
    return n if np.isnan(v) else n + 1


accumulate = fold(plus, "accumulate")
accumulate_squares = fold(plus_square, "accumulate_squares")
accumulate_product = fold(times, "accumulate_product")
accumulate_numbers = fold(plus_number, "accumulate_numbers")
accumulate_number_product = fold(times_number, "accumulate_number_product")
accumulate_number_squares = fold(plus_square_number, "accumulate_number_squares")
count_numbers = fold(one_more_number, "count_numbers")


@njit
def spliced_position(k, shape, kept):
    """The C-order position, among the kept axes, of the element at C-order position k of the whole."""
    position, stride = 0, 1
    for d in range(len(shape) - 1, -1, -1):
        if kept[d]:
            position += (k % shape[d]) * stride
            stride *= shape[d]
        k //= shape[d]
    return position


@njit
def kept_axes(axes, ndim):
    """For each axis whether it stays; AxisError when one is out of bounds, ValueError when one comes twice."""
    kept = np.ones(ndim, np.bool_)
    for axis in axes:
        if axis < -ndim or axis >= ndim:
            raise _AxisError("axis is out of bounds for array")
        if not kept[axis]:
            raise ValueError("duplicate value in 'axis'")
        kept[axis] = False
    return kept


@njit
def kept_extent(shape, kept, j):
    """The extent of the j-th axis that is kept."""
    for d in range(len(shape)):
        if kept[d]:
            if j == 0:
                return shape[d]
            j -= 1
    return 0


@expansion(np.sum, method="sum")
def sum_expansion(a: Arg, axis: Arg = None, dtype: Arg = None) -> Implementation | None:
    """Sum of all, along one axis, or along a tuple of axes; the gradient is `ybar` broadcast."""
    if not float_array(a) or not (is_none(dtype) or isinstance(getattr(dtype, "dtype", None), types.Float)):
        return None
    result = as_dtype(a.dtype if is_none(dtype) else dtype.dtype)
    zero = result.type(0)

    if is_none(axis):

        def sum_impl(a, axis=None, dtype=None):
            return accumulate(zero, a, 0)

        return sum_impl

    if isinstance(axis, types.Integer) and a.ndim == 1:

        def sum_of_vector(a, axis=None, dtype=None):
            if axis < -1 or axis >= 1:
                raise _AxisError("axis is out of bounds for array")
            return accumulate(zero, a, 0)

        return sum_of_vector

    if isinstance(axis, types.Integer) and a.ndim > 1:

        def sum_along_axis(a, axis=None, dtype=None):
            if axis < -a.ndim or axis >= a.ndim:
                raise _AxisError("axis is out of bounds for array")
            axis = axis + a.ndim if axis < 0 else axis
            before, n, after = blocks(a.shape, axis)
            parts = a.ravel().reshape((before, n, after))
            out = np.zeros((before, after), result)
            for i in range(before):
                for k in range(n):
                    for j in range(after):
                        out[i, j] += parts[i, k, j]
            return out.reshape(without_axis(a.shape, axis))

        return sum_along_axis

    if isinstance(axis, types.UniTuple) and isinstance(axis.dtype, types.Integer) and a.ndim == axis.count:

        def sum_of_all_axes(a, axis=None, dtype=None):
            kept_axes(axis, a.ndim)
            return accumulate(zero, a, 0)

        return sum_of_all_axes

    if isinstance(axis, types.UniTuple) and isinstance(axis.dtype, types.Integer) and a.ndim - axis.count in (1, 2):
        two = a.ndim - axis.count == 2
        kept_shape = njit(
            (lambda shape, kept: (kept_extent(shape, kept, 0), kept_extent(shape, kept, 1)))
            if two
            else (lambda shape, kept: (kept_extent(shape, kept, 0),))
        )

        def sum_along_axes(a, axis=None, dtype=None):
            kept = kept_axes(axis, a.ndim)
            shape = kept_shape(a.shape, kept)
            out = np.zeros(shape, result)
            parts = out.reshape(out.size)
            flat = a.ravel()
            for k in range(flat.shape[0]):
                parts[spliced_position(k, a.shape, kept)] += flat[k]
            return out

        return sum_along_axes

    return None


@expansion(np.prod, method="prod")
def prod_expansion(a: Arg) -> Implementation | None:
    """Running product: its reverse never divides, so zeros are right."""
    if not float_array(a):
        return None
    one = as_dtype(a.dtype).type(1)

    def prod_impl(a):
        return accumulate_product(one, a, 0)

    return prod_impl


@expansion(np.mean, method="mean")
def mean_expansion(a: Arg) -> Implementation | None:
    """Mean of all; NaN with zero gradient for an empty array. Float32 sums in float32, as Numba does."""
    if not float_array(a):
        return None
    scalar = as_dtype(a.dtype).type
    zero, nan = scalar(0), scalar(np.nan)

    def mean_impl(a):
        if a.size == 0:
            return nan
        return scalar(accumulate(zero, a, 0) / a.size)

    return mean_impl


@expansion(np.var, method="var")
def var_expansion(a: Arg) -> Implementation | None:
    """Variance in two passes, float64 also for float32 (as Numba); the gradient at constant input is zero."""
    if not float_array(a):
        return None

    def var_impl(a):
        return accumulate_squares(0.0, a, np.mean(a)) / a.size

    return var_impl


@expansion(np.std, method="std")
def std_expansion(a: Arg) -> Implementation | None:
    """Standard deviation; its gradient at constant input, where it has a kink, is zero."""
    if not float_array(a):
        return None

    def std_impl(a):
        v = np.var(a)
        if v == 0.0:
            return 0.0
        return v**0.5

    return std_impl


@expansion(np.average)
def average_expansion(a: Arg, axis: Arg = None, weights: Arg = None) -> Implementation | None:
    """Weighted mean, active in the weights too."""
    if not float_array(a) or not is_none(axis):
        return None
    if is_none(weights):

        def average_impl(a, axis=None, weights=None):
            return np.mean(a)

        return average_impl

    if not float_array(weights) or weights.ndim != a.ndim or weights.layout != a.layout:
        return None

    def weighted_average(a, axis=None, weights=None):
        if a.shape != weights.shape:
            raise TypeError("1D weights expected when shapes of a and weights differ.")
        scale = np.sum(weights)
        if scale == 0.0:
            raise ZeroDivisionError("Weights sum to zero, can't be normalized.")
        return np.sum(a * weights) / scale

    return weighted_average


# Reductions that leave NaNs out: what is left out has zero gradient


@expansion(np.nansum)
def nansum_expansion(a: Arg) -> Implementation | None:
    """Sum of what is not NaN."""
    if not float_array(a):
        return None
    zero = as_dtype(a.dtype).type(0)

    def nansum_impl(a):
        return accumulate_numbers(zero, a, 0)

    return nansum_impl


@expansion(np.nanprod)
def nanprod_expansion(a: Arg) -> Implementation | None:
    """Running product of what is not NaN."""
    if not float_array(a):
        return None
    one = as_dtype(a.dtype).type(1)

    def nanprod_impl(a):
        return accumulate_number_product(one, a, 0)

    return nanprod_impl


@expansion(np.nanmean)
def nanmean_expansion(a: Arg) -> Implementation | None:
    """Mean of what is not NaN, float64 also for float32 (as Numba); NaN with zero gradient when there is none."""
    if not float_array(a):
        return None

    def nanmean_impl(a):
        n = count_numbers(0, a, 0)
        if n == 0:
            return np.nan
        return accumulate_numbers(0.0, a, 0) / n

    return nanmean_impl


@expansion(np.nanvar)
def nanvar_expansion(a: Arg, axis: Arg = None, dtype: Arg = None, out: Arg = None, ddof: Arg = 0) -> Implementation | None:
    """Variance of what is not NaN; NaN with zero gradient when there are not more than `ddof`."""
    if not float_array(a) or not (is_none(axis) and is_none(dtype) and is_none(out)) or not isinstance(ddof, (int, types.Integer)):
        return None

    def nanvar_impl(a, axis=None, dtype=None, out=None, ddof=0):
        n = count_numbers(0, a, 0)
        if n <= ddof:
            return np.nan
        return accumulate_number_squares(0.0, a, np.nanmean(a)) / (n - ddof)

    return nanvar_impl


@expansion(np.nanstd)
def nanstd_expansion(a: Arg, axis: Arg = None, dtype: Arg = None, out: Arg = None, ddof: Arg = 0) -> Implementation | None:
    """Standard deviation of what is not NaN; zero gradient where it is zero."""
    if nanvar_expansion(a, axis, dtype, out, ddof) is None:
        return None

    def nanstd_impl(a, axis=None, dtype=None, out=None, ddof=0):
        v = np.nanvar(a, ddof=ddof)
        if v == 0.0:
            return 0.0
        return v**0.5

    return nanstd_impl


# Running totals


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
        before, n, after = blocks(a.shape, axis)
        parts = a.ravel().reshape((before, n, after))
        out = np.empty((before, n, after), result)
        for i in range(before):
            for j in range(after):
                s = zero
                for k in range(n):
                    s = s + parts[i, k, j]
                    out[i, k, j] = s
        return out.reshape(a.shape)

    return cumsum_along_axis


@njit
def running(flat, start, dtype, step):
    """The totals of `step` after each element."""
    out = np.empty(flat.shape[0], dtype)
    s = start
    for i in range(flat.shape[0]):
        s = step(s, flat[i], 0)
        out[i] = s
    return out


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
        before, size, _ = blocks(a.shape, a.ndim - 1)
        out = np.empty((before, max(size - n, 0)), result)
        rows = a.ravel().reshape((before, size))
        work = np.empty(size, result)
        for i in range(before):
            for k in range(size):
                work[k] = rows[i, k]
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
    first = _part(to_begin)
    last = _part(to_end)

    def ediff1d_impl(ary, to_end=None, to_begin=None):
        middle = ary.ravel()
        head, tail = first(to_begin), last(to_end)
        out = np.empty(head.shape[0] + max(middle.shape[0] - 1, 0) + tail.shape[0], result)
        for i in range(head.shape[0]):
            out[i] = head[i]
        for i in range(middle.shape[0] - 1):
            out[head.shape[0] + i] = middle[i + 1] - middle[i]
        for i in range(tail.shape[0]):
            out[out.shape[0] - tail.shape[0] + i] = tail[i]
        return out

    return ediff1d_impl


def _part(x: Arg) -> Any:
    """A jitted function that makes a 1-d array of an array, a number or `None`."""
    if is_none(x):
        return njit(lambda x: np.empty(0, np.float64))
    if isinstance(x, types.Array):
        return njit(lambda x: x.ravel())
    dtype = as_dtype(types.unliteral(x))

    @njit
    def one_element(x):
        out = np.empty(1, dtype)
        out[0] = x
        return out

    return one_element


@njit
def rounded(v, decimals, unused):
    return np.round(v, decimals)


round_into = spread(rounded, "round_into")


@expansion(np.round, np.around)
def round_expansion(a: Arg, decimals: Arg = 0, out: Arg = None) -> Implementation | None:
    """Element by element `np.round` of a scalar, whose derivative is zero everywhere (the scalar rule); scalars have no expansion."""
    if not float_array(a):
        return None
    if is_none(out):

        def round_impl(a, decimals=0, out=None):
            result = np.empty_like(a)
            round_into(result, a, decimals, 0)
            return result

        return round_impl

    if not float_array(out) or out.ndim != a.ndim:
        return None

    def round_out(a, decimals=0, out=None):
        if a.shape != out.shape:
            raise ValueError("invalid output shape")
        round_into(out, a, decimals, 0)
        return out

    return round_out


@expansion(np.trace)
def trace_expansion(a: Arg, offset: Arg = 0) -> Implementation | None:
    """Sum of a diagonal; float64 also for float32 (as Numba)."""
    if not float_array(a) or a.ndim != 2 or not isinstance(offset, (int, types.Integer)):
        return None

    def trace_impl(a, offset=0):
        i = max(-offset, 0)
        j = max(offset, 0)
        s = 0.0
        for k in range(min(a.shape[0] - i, a.shape[1] - j)):
            s += a[i + k, j + k]
        return s

    return trace_impl
