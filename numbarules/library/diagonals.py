"""Methods to differentiate of diagonals and triangles of matrices: `np.diag`, `np.trace`, `np.tril` and their like."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import flat_set
from .expansions import Arg, Implementation, expansion, float_array, helper, real, real_dtype

__all__: list[str] = []


@expansion(np.diag)
def diag_expansion(v: Arg, k: Arg = 0) -> Implementation | None:
    """A matrix with the vector on its k-th diagonal, or a copy of the k-th diagonal of a matrix."""
    if not float_array(v) or v.ndim not in (1, 2) or not isinstance(k, (int, types.Integer)):
        return None
    dtype = as_dtype(v.dtype)

    if v.ndim == 1:

        def diag_of_vector(v, k=0):
            i, j = max(-k, 0), max(k, 0)
            n = v.shape[0] + i + j
            out = np.zeros((n, n), dtype)
            for t in range(v.shape[0]):
                out[i + t, j + t] = v[t]
            return out

        return diag_of_vector

    def diagonal_copy(v, k=0):
        i, j = max(-k, 0), max(k, 0)
        out = np.empty(max(min(v.shape[0] - i, v.shape[1] - j), 0), dtype)
        for t in range(out.shape[0]):
            out[t] = v[i + t, j + t]
        return out

    return diagonal_copy


@expansion(np.diagflat)
def diagflat_expansion(v: Arg, k: Arg = 0) -> Implementation | None:
    """A matrix with the flattened array on its k-th diagonal."""
    if not float_array(v) or not isinstance(k, (int, types.Integer)):
        return None
    return lambda v, k=0: np.diag(v.ravel(), k)


@expansion(np.tril)
def tril_expansion(m: Arg, k: Arg = 0) -> Implementation | None:
    """The lower triangle."""
    return _triangle(m, k, False)


@expansion(np.triu)
def triu_expansion(m: Arg, k: Arg = 0) -> Implementation | None:
    """The upper triangle."""
    return _triangle(m, k, True)


def _triangle(m: Arg, k: Arg, upper: bool) -> Implementation | None:
    if not float_array(m) or m.ndim == 0 or not isinstance(k, (int, types.Integer)):
        return None
    dtype = as_dtype(m.dtype)
    if m.ndim == 1:

        @njit
        def empty(m):
            return np.empty((m.shape[0], m.shape[0]), dtype)
    elif m.ndim == 2:

        @njit
        def empty(m):
            return np.empty(m.shape, dtype)
    else:

        @njit
        def empty(m):
            return np.empty_like(m)

    def triangle_impl(m, k=0):
        out = empty(m)
        triangle_into(out, m, k, upper)
        return out

    return triangle_impl


@helper
def triangle_into(out: Arg, m: Arg, k: Arg, upper: Arg) -> Implementation:
    """Stores one triangle of each matrix (of the square whose rows are a vector), zero elsewhere."""
    zero = as_dtype(m.dtype).type(0)
    if m.ndim == 1:

        def triangle_of_vector(out, m, k, upper):
            for i in range(m.shape[0]):
                for j in range(m.shape[0]):
                    out[i, j] = m[j] if (j - i >= k if upper else j - i <= k) else zero

        return triangle_of_vector

    if m.ndim == 2:

        def triangle_of_matrix(out, m, k, upper):
            for i in range(m.shape[0]):
                for j in range(m.shape[1]):
                    out[i, j] = m[i, j] if (j - i >= k if upper else j - i <= k) else zero

        return triangle_of_matrix

    def triangles(out, m, k, upper):
        for i in range(m.shape[0]):
            triangle_into(out[i], m[i], k, upper)

    return triangles


@expansion(np.fill_diagonal)
def fill_diagonal_expansion(a: Arg, val: Arg, wrap: Arg = False) -> Implementation | None:
    """Stores a number, or an array's elements in turn, on the main diagonal, in place."""
    if not float_array(a) or a.ndim < 2:
        return None
    if isinstance(val, types.Array) and real_dtype(val) is not None and val.ndim > 0:

        def fill_diagonal_array(a, val, wrap=False):
            values = val.ravel()
            end, step = diagonal_range(a.shape, wrap)
            for t in range((end + step - 1) // step):
                flat_set(a, t * step, values[t % values.shape[0]])

        return fill_diagonal_array

    if not real(val):
        return None

    def fill_diagonal_number(a, val, wrap=False):
        end, step = diagonal_range(a.shape, wrap)
        for t in range((end + step - 1) // step):
            flat_set(a, t * step, val)

    return fill_diagonal_number


@njit
def diagonal_range(shape, wrap):
    """The end and the step of the C-order positions of the main diagonal."""
    if len(shape) == 2:
        return shape[1] * (shape[0] if wrap else min(shape[0], shape[1])), 1 + shape[1]
    step, stride = 1, 1
    for k in range(len(shape) - 1):
        if shape[k] != shape[k + 1]:
            raise ValueError("All dimensions of input must be of equal length")
        stride *= shape[k]
        step += stride
    return stride * shape[len(shape) - 1], step


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
