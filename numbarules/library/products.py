"""Methods to differentiate of products of vectors: inner, outer, Kronecker and cross products.

Products of matrices go through BLAS and have rules elsewhere.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.np import extensions
from numba.np.numpy_support import as_dtype

from .elements import as_vector, row
from .expansions import Arg, Implementation, common_dtype, expansion, float_array, helper, is_none, real_dtype

__all__: list[str] = []


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
    dtype = common_dtype(a, b)
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
    dtype = common_dtype(a, b)
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
