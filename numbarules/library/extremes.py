"""Methods to differentiate of the largest and the smallest element: a passive search and one load.

The cotangent goes to the element that was found; at a tie the first in C order wins. Comparisons with NaN go the way Numba's go.
"""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

from .elements import flat_get
from .expansions import Arg, Implementation, expansion, float_array

__all__: list[str] = []


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
