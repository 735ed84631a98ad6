"""The method to differentiate of `np.linalg.norm`: vector norms, and the Frobenius norm of a matrix."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numba.np.numpy_support import as_dtype

from .elements import fold
from .expansions import Arg, Implementation, expansion, float_array, is_none, real

__all__: list[str] = []


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


@njit
def scaling_exponent(x):
    """The power of two (an integer, so passive) by which squares neither overflow nor vanish; 0 for ordinary sizes."""
    size = float(largest_size(0.0, x, 0))
    if not np.isfinite(size) or size == 0.0 or 1e-15 < size < 1e15:
        return 0
    return -math.frexp(size)[1]


@njit
def plus_scaled_square(s, v, scale):
    w = v * scale
    return s + w * w


@njit
def larger(s, v, p):
    return max(s, abs(v))


accumulate_scaled_squares = fold(plus_scaled_square, "accumulate_scaled_squares")
largest_size = fold(larger, "largest_size")
