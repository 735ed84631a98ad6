"""Methods to differentiate of `np.convolve` and `np.correlate`: sliding inner products."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .expansions import Arg, Implementation, common_dtype, expansion

__all__: list[str] = []


@expansion(np.correlate)
def correlate_expansion(a: Arg, v: Arg, mode: Arg = "valid") -> Implementation | None:
    """Sliding inner products, summed in order (Numba's go through BLAS)."""
    dtype = _two_vectors(a, v)
    if dtype is None:
        return None

    def correlate_impl(a, v, mode="valid"):
        check_not_empty(a, v)
        if a.shape[0] < v.shape[0]:
            return sliding_products(v, a, mode, dtype, True)
        return sliding_products(a, v, mode, dtype, False)

    return correlate_impl


@expansion(np.convolve)
def convolve_expansion(a: Arg, v: Arg, mode: Arg = "full") -> Implementation | None:
    """Sliding inner products with the shorter vector turned round."""
    dtype = _two_vectors(a, v)
    if dtype is None:
        return None

    def convolve_impl(a, v, mode="full"):
        check_not_empty(a, v)
        if a.shape[0] < v.shape[0]:
            return sliding_products(v, a[::-1], mode, dtype, False)
        return sliding_products(a, v[::-1], mode, dtype, False)

    return convolve_impl


def _two_vectors(a: Arg, v: Arg) -> Any:
    """The common dtype of two real vectors of which one is of floats; `None` for anything else."""
    dtype = common_dtype(a, v)
    return dtype if dtype is not None and a.ndim == 1 and v.ndim == 1 else None


@njit
def check_not_empty(a, v):
    """ValueError where one of the vectors has no element, as NumPy has it."""
    if a.shape[0] == 0:
        raise ValueError("'a' cannot be empty")
    if v.shape[0] == 0:
        raise ValueError("'v' cannot be empty")


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
def sliding_products(a, v, mode, dtype, backwards):
    """The inner products of `v` with each window of the longer `a`; `backwards` fills the result from its end."""
    length, left = window(a.shape[0], v.shape[0], mode)
    out = np.zeros(length, dtype)
    for t in range(length):
        s = out[0] * 0
        for k in range(max(left - t, 0), min(v.shape[0], a.shape[0] + left - t)):
            s += a[t - left + k] * v[k]
        out[length - 1 - t if backwards else t] = s
    return out
