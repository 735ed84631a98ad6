"""Methods to differentiate of polynomials: their values and the powers that they are made of."""



# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types

from .expansions import Arg, Implementation, expansion, float_array, is_none, real_dtype

__all__: list[str] = []


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


@expansion(np.vander)
def vander_expansion(x: Arg, N: Arg = None, increasing: Arg = False) -> Implementation | None:
    """Powers of x by repeated multiplication, float64 also for float32 (as Numba)."""
    if not float_array(x) or x.ndim != 1 or not (is_none(N) or isinstance(N, types.Integer)):
        return None
    columns = njit(lambda x, N: x.shape[0]) if is_none(N) else njit(lambda x, N: N)

    def vander_impl(x, N=None, increasing=False):
        n = columns(x, N)
        if n < 0:
            raise ValueError("Negative dimensions are not allowed")
        out = np.empty((x.shape[0], n), np.float64)
        for i in range(x.shape[0]):
            power = 1.0
            for k in range(n):
                out[i, k if increasing else n - 1 - k] = power
                power = x[i] * power
        return out

    return vander_impl
