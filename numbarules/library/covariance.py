"""Methods to differentiate of `np.cov` and `np.corrcoef`."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types

from .expansions import Arg, Implementation, expansion, float_array, is_none

__all__: list[str] = []


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
