"""Methods to differentiate of products of vectors, norms, convolutions, interpolation and covariances.

Products of matrices go through BLAS and have rules elsewhere.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.np import extensions
from numba.np.numpy_support import as_dtype

from .expansions import Arg, Implementation, expansion, float_array, fold, helper, is_none, real, real_dtype, row, spread

__all__: list[str] = []


# Products of vectors


@expansion(np.dot, np.vdot, method="dot")
def dot_expansion(a: Arg, b: Arg) -> Implementation | None:
    """The inner product of two vectors, summed in order (BLAS differs in the last bits)."""
    if not (float_array(a) and float_array(b)) or a.ndim != 1 or b.ndim != 1 or a.dtype != b.dtype:
        return None
    zero = as_dtype(a.dtype).type(0)

    def dot_impl(a, b):
        if a.shape[0] != b.shape[0]:
            raise ValueError("incompatible array sizes for np.dot(a, b) (vector * vector)")
        s = zero
        for i in range(a.shape[0]):
            s += a[i] * b[i]
        return s

    return dot_impl


@helper
def as_vector(x: Arg) -> Implementation:
    """An array flattened, or a number as one element."""
    if isinstance(x, types.Array):
        return lambda x: x.ravel()
    dtype = real_dtype(x)

    def one_element(x):
        out = np.empty(1, dtype)
        out[0] = x
        return out

    return one_element


@expansion(np.outer)
def outer_expansion(a: Arg, b: Arg, out: Arg = None) -> Implementation | None:
    """All products of the elements of two flattened arrays or numbers."""
    if not is_none(out) or not (float_array(a) or float_array(b)) or real_dtype(a) is None or real_dtype(b) is None:
        return None
    if any(isinstance(v, types.Array) and v.ndim > 2 for v in (a, b)):
        return None
    dtype = np.promote_types(real_dtype(a), real_dtype(b))  # type: ignore[arg-type]

    def outer_impl(a, b, out=None):
        x, y = as_vector(a), as_vector(b)
        result = np.empty((x.shape[0], y.shape[0]), dtype)
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                result[i, j] = x[i] * y[j]
        return result

    return outer_impl


@expansion(np.kron)
def kron_expansion(a: Arg, b: Arg) -> Implementation | None:
    """All products of the elements of two vectors, or of two matrices block by block."""
    if (
        not (float_array(a) and float_array(b))
        or a.dtype != b.dtype
        or a.ndim != b.ndim
        or a.ndim not in (1, 2)
        or "A" in (a.layout, b.layout)
    ):
        return None
    dtype = as_dtype(a.dtype)

    if a.ndim == 1:

        def kron_of_vectors(a, b):
            out = np.empty(a.shape[0] * b.shape[0], dtype)
            for i in range(a.shape[0]):
                for j in range(b.shape[0]):
                    out[i * b.shape[0] + j] = a[i] * b[j]
            return out

        return kron_of_vectors

    def kron_impl(a, b):
        out = np.empty((a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]), dtype)
        for i in range(a.shape[0]):
            for k in range(b.shape[0]):
                for j in range(a.shape[1]):
                    for n in range(b.shape[1]):
                        out[i * b.shape[0] + k, j * b.shape[1] + n] = a[i, j] * b[k, n]
        return out

    return kron_impl


@helper
def cross_into(out: Arg, a: Arg, b: Arg) -> Implementation:
    """Stores the cross products of vectors of three components, or of two and an implied zero."""
    if out.ndim == 1:
        x_zero, y_zero = as_dtype(a.dtype).type(0), as_dtype(b.dtype).type(0)

        def cross_vectors(out, a, b):
            a2 = a[2] if a.shape[0] == 3 else x_zero
            b2 = b[2] if b.shape[0] == 3 else y_zero
            out[0] = a[1] * b2 - a2 * b[1]
            out[1] = a2 * b[0] - a[0] * b2
            out[2] = a[0] * b[1] - a[1] * b[0]

        return cross_vectors

    def cross_rows(out, a, b):
        for i in range(out.shape[0]):
            cross_into(out[i], row(a, i, out), row(b, i, out))

    return cross_rows


@helper
def cross2d_into(out: Arg, a: Arg, b: Arg) -> Implementation | None:
    """Stores the single component of the cross products of vectors of two."""
    if out.ndim == 0:

        def cross2d_only(out, a, b):
            out[()] = a[0] * b[1] - a[1] * b[0]

        return cross2d_only

    if out.ndim == 1:
        whole_a, whole_b = a.ndim == 1, b.ndim == 1
        of_a = njit((lambda a, i: a) if whole_a else (lambda a, i: a[i if a.shape[0] != 1 else 0]))
        of_b = njit((lambda b, i: b) if whole_b else (lambda b, i: b[i if b.shape[0] != 1 else 0]))

        def cross2d_vectors(out, a, b):
            for i in range(out.shape[0]):
                u, v = of_a(a, i), of_b(b, i)
                out[i] = u[0] * v[1] - u[1] * v[0]

        return cross2d_vectors

    return None


@expansion(np.cross)
def cross_expansion(a: Arg, b: Arg) -> Implementation | None:
    """Cross products along the last axis, the others broadcast; a third component left out is zero."""
    dtype = _two_arrays(a, b)
    if dtype is None:
        return None

    def cross_impl(a, b):
        n, m = a.shape[a.ndim - 1], b.shape[b.ndim - 1]
        if n not in (2, 3) or m not in (2, 3):
            raise ValueError("Incompatible dimensions for cross product\n(dimension must be 2 or 3)")
        if n == 2 and m == 2:
            raise ValueError(
                "Dimensions for both inputs is 2.\nPlease replace your numpy.cross(a, b) call with "
                "a call to `cross2d(a, b)` from `numba.np.extensions`."
            )
        out = np.empty(np.broadcast_shapes(a.shape[:-1], b.shape[:-1]) + (3,), dtype)
        cross_into(out, a, b)
        return out

    return cross_impl


def cross2d_expansion(a: Arg, b: Arg) -> Implementation | None:
    """The cross products of vectors of two, as an array; up to one more axis, broadcast."""
    dtype = _two_arrays(a, b)
    if dtype is None or max(a.ndim, b.ndim) > 2:
        return None

    def cross2d_impl(a, b):
        if a.shape[a.ndim - 1] != 2 or b.shape[b.ndim - 1] != 2:
            raise ValueError("Incompatible dimensions for 2D cross product\n(dimension must be 2 for both inputs)")
        out = np.empty(np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), dtype)
        cross2d_into(out, a, b)
        return out

    return cross2d_impl


if hasattr(extensions, "cross2d"):
    expansion(extensions.cross2d)(cross2d_expansion)


def _two_arrays(a: Arg, b: Arg) -> Any:
    """The common dtype of two real arrays of which one is of floats, else `None`."""
    if not (float_array(a) or float_array(b)) or not all(
        isinstance(v, types.Array) and v.ndim > 0 and real_dtype(v) is not None for v in (a, b)
    ):
        return None
    return np.promote_types(as_dtype(a.dtype), as_dtype(b.dtype))


# Norms


@njit
def plus_scaled_square(s, v, scale):
    w = v * scale
    return s + w * w


@njit
def larger(s, v, p):
    return max(s, abs(v))


accumulate_scaled_squares = fold(plus_scaled_square, "accumulate_scaled_squares")
largest_size = fold(larger, "largest_size")


@njit
def scaling_exponent(x):
    """The power of two (an integer, so passive) by which squares neither overflow nor vanish; 0 for ordinary sizes."""
    size = float(largest_size(0.0, x, 0))
    if not np.isfinite(size) or size == 0.0 or 1e-15 < size < 1e15:
        return 0
    return -math.frexp(size)[1]


@expansion(np.linalg.norm)
def norm_expansion(x: Arg, ord: Arg = None) -> Implementation | None:
    """Vector norms of order 2 (default), 1, inf, -inf, 0 and p, and the Frobenius norm of a matrix.

    At zero, where a norm has a kink, the gradient is zero. Ties of the orders inf and -inf: the first wins.
    """
    if not float_array(x) or x.ndim not in (1, 2):
        return None
    scalar = as_dtype(x.dtype).type
    zero = scalar(0)

    @njit
    def euclidean(x):
        exponent = scaling_exponent(x)
        scale = scalar(math.ldexp(1.0, exponent))
        s = accumulate_scaled_squares(zero, x, scale)
        if s == zero:
            return zero
        return scalar(math.sqrt(s) / scale)

    if is_none(ord):

        def norm_impl(x, ord=None):
            return euclidean(x)

        if x.ndim == 1:
            return norm_impl

        def frobenius(x, ord=None):
            if x.size == 0:
                return 0.0
            return euclidean(x)

        return frobenius

    if x.ndim == 2 or not real(ord):
        return None

    def norm_of_order(x, ord=None):
        n = x.shape[0]
        if n == 0:
            return 0.0
        if ord == 2:
            return euclidean(x)
        elif ord == np.inf:
            k = 0
            for i in range(1, n):
                if abs(x[i]) > abs(x[k]):
                    k = i
            return abs(x[k])
        elif ord == -np.inf:
            k = 0
            for i in range(1, n):
                if abs(x[i]) < abs(x[k]):
                    k = i
            return abs(x[k])
        elif ord == 0:
            count = 0
            for i in range(n):
                count += x[i] != 0.0
            return float(count)
        elif ord == 1:
            total = 0.0
            for i in range(n):
                total += abs(x[i])
            return total
        powers = 0.0
        for i in range(n):
            powers += abs(x[i]) ** ord
        if powers == 0.0 and ord > 0:
            return 0.0
        return powers ** (1.0 / ord)

    return norm_of_order


# Convolution


@njit
def window(n, m, mode):
    """The length of the result and the number of positions at which the shorter one hangs over on the left."""
    if mode == "valid":
        return n - m + 1, 0
    elif mode == "full":
        return n + m - 1, m - 1
    elif mode == "same":
        return n, m // 2
    raise ValueError("Invalid 'mode', valid are 'full', 'same', 'valid'")


@njit
def slide(out, a, v, left, backwards):
    """Inner products of `v` with each window of the longer `a`; `backwards` fills the result from its end."""
    length = out.shape[0]
    for t in range(length):
        s = out[0] * 0
        for k in range(max(left - t, 0), min(v.shape[0], a.shape[0] + left - t)):
            s += a[t - left + k] * v[k]
        out[length - 1 - t if backwards else t] = s


@expansion(np.correlate)
def correlate_expansion(a: Arg, v: Arg, mode: Arg = "valid") -> Implementation | None:
    """Sliding inner products, summed in order (Numba's go through BLAS)."""
    dtype = _two_vectors(a, v)
    if dtype is None:
        return None

    def correlate_impl(a, v, mode="valid"):
        if a.shape[0] == 0:
            raise ValueError("'a' cannot be empty")
        if v.shape[0] == 0:
            raise ValueError("'v' cannot be empty")
        if a.shape[0] < v.shape[0]:
            length, left = window(v.shape[0], a.shape[0], mode)
            out = np.zeros(length, dtype)
            slide(out, v, a, left, True)
            return out
        length, left = window(a.shape[0], v.shape[0], mode)
        out = np.zeros(length, dtype)
        slide(out, a, v, left, False)
        return out

    return correlate_impl


@expansion(np.convolve)
def convolve_expansion(a: Arg, v: Arg, mode: Arg = "full") -> Implementation | None:
    """Sliding inner products with the shorter vector turned round."""
    dtype = _two_vectors(a, v)
    if dtype is None:
        return None

    def convolve_impl(a, v, mode="full"):
        if a.shape[0] == 0:
            raise ValueError("'a' cannot be empty")
        if v.shape[0] == 0:
            raise ValueError("'v' cannot be empty")
        if a.shape[0] < v.shape[0]:
            length, left = window(v.shape[0], a.shape[0], mode)
            out = np.zeros(length, dtype)
            slide(out, v, a[::-1], left, False)
            return out
        length, left = window(a.shape[0], v.shape[0], mode)
        out = np.zeros(length, dtype)
        slide(out, a, v[::-1], left, False)
        return out

    return convolve_impl


def _two_vectors(a: Arg, v: Arg) -> Any:
    dtype = _two_arrays(a, v)
    return dtype if dtype is not None and a.ndim == 1 and v.ndim == 1 else None


# Functions of samples


@njit
def sinc_of(x, unused, unused_too):
    y = x * np.pi
    if abs(y) < 1e-2:
        # sin(y)/y by its series: the derivative of the quotient loses all digits near 0.
        q = y * y
        return 1.0 - q / 6.0 * (1.0 - q / 20.0 * (1.0 - q / 42.0))
    return np.sin(y) / y


sinc_into = spread(sinc_of, "sinc_into")


@expansion(np.sinc)
def sinc_expansion(x: Arg) -> Implementation | None:
    """sin(pi x)/(pi x), smooth at 0: value 1, derivative 0."""
    if isinstance(x, types.Float):
        return lambda x: sinc_of(x, 0, 0)
    if not float_array(x):
        return None

    def sinc_impl(x):
        out = np.empty_like(x)
        sinc_into(out, x, 0, 0)
        return out

    return sinc_impl


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


@njit
def interpolate_into(out, x, xp, fp):
    for i in range(x.shape[0]):
        out[i] = interpolated(x[i], xp, fp)


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


@expansion(np.polynomial.polynomial.polyval)
def polyval_expansion(x: Arg, c: Arg, tensor: Arg = True) -> Implementation | None:
    """Horner's scheme for a vector of coefficients, lowest first."""
    if not isinstance(c, types.Array) or c.ndim != 1 or real_dtype(c) is None or real_dtype(x) is None:
        return None
    if not any(float_array(v) or isinstance(v, types.Float) for v in (x, c)):
        return None
    scalar = np.result_type(real_dtype(c), real_dtype(x)).type

    @njit
    def horner(x, c, unused):
        n = c.shape[0]
        y = scalar(c[n - 1])
        for i in range(n - 2, -1, -1):
            y = scalar(c[i]) + y * scalar(x)
        return y

    if not isinstance(x, types.Array):
        return lambda x, c, tensor=True: horner(x, c, 0)

    def polyval_impl(x, c, tensor=True):
        flat = x.ravel()
        out = np.empty(flat.shape[0], scalar)
        for i in range(flat.shape[0]):
            out[i] = horner(flat[i], c, 0)
        return out.reshape(x.shape)

    return polyval_impl


# Covariance


@expansion(np.cov)
def cov_expansion(m: Arg, y: Arg = None, rowvar: Arg = True, bias: Arg = False, ddof: Arg = None) -> Implementation | None:
    """Covariances of the rows of a matrix (its columns if not `rowvar`), or the variance of a vector as a 0-d array; float64."""
    if (
        not float_array(m)
        or m.ndim not in (1, 2)
        or not is_none(y)
        or not (is_none(ddof) or isinstance(ddof, (types.Integer, types.Boolean)))
    ):
        return None
    lost = njit(lambda bias, ddof: 0 if bias else 1) if is_none(ddof) else njit(lambda bias, ddof: ddof)

    if m.ndim == 1:

        def cov_of_vector(m, y=None, rowvar=True, bias=False, ddof=None):
            out = np.empty((1, 1), np.float64)
            covariance_into(out, m.ravel().reshape((1, m.shape[0])), lost(bias, ddof))
            return out.reshape(())

        return cov_of_vector

    def cov_impl(m, y=None, rowvar=True, bias=False, ddof=None):
        if m.shape[0] == 1:
            raise RuntimeError(
                "2D array containing a single row is unsupported due to ambiguity in type inference. "
                "To use numpy.cov in this case simply pass the row as a 1D array, i.e. m[0]."
            )
        n = m.shape[0] if rowvar else m.shape[1]
        out = np.empty((n, n), np.float64)
        if rowvar:
            covariance_into(out, m, lost(bias, ddof))
        else:
            covariance_into(out, m.T, lost(bias, ddof))
        return out

    return cov_impl


@njit
def covariance_into(out, rows, ddof):
    """Stores the covariances of the rows; NaN where there are no observations."""
    n, size = rows.shape
    centred = np.empty((n, size), np.float64)
    for i in range(n):
        total = 0.0
        for k in range(size):
            total += rows[i, k]
        for k in range(size):
            centred[i, k] = rows[i, k] - total / size
    factor = float(max(size - ddof, 0))
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(size):
                s += centred[i, k] * centred[j, k]
            out[i, j] = np.nan if size == 0 else np.divide(s, factor)


@expansion(np.corrcoef)
def corrcoef_expansion(x: Arg, y: Arg = None, rowvar: Arg = True) -> Implementation | None:
    """Covariances over the product of standard deviations, cut to [-1, 1]; NaN for a constant row, as NumPy."""
    if not float_array(x) or x.ndim != 2 or not is_none(y):
        return None

    def corrcoef_impl(x, y=None, rowvar=True):
        c = np.cov(x, None, rowvar)
        n = c.shape[0]
        out = np.empty((n, n), np.float64)
        for i in range(n):
            for j in range(n):
                r = np.divide(np.divide(c[i, j], np.sqrt(c[j, j])), np.sqrt(c[i, i]))
                out[i, j] = 1.0 if r > 1.0 else -1.0 if r < -1.0 else r
        return out

    return corrcoef_impl
