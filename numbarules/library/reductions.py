"""Methods to differentiate of sums, products, means and variances: Numba's own order of summation, accumulator and result type."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import around_axis, fold, without_axis
from .expansions import Arg, Implementation, expansion, float_array, is_none

__all__: list[str] = []

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


accumulate = fold(plus, "accumulate")
accumulate_squares = fold(plus_square, "accumulate_squares")
accumulate_product = fold(times, "accumulate_product")


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
            parts = around_axis(a, axis)
            before, n, after = parts.shape
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
