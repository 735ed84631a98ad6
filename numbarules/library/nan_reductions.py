"""Methods to differentiate of reductions that leave NaNs out: what is left out has zero gradient."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import fold
from .expansions import Arg, Implementation, expansion, float_array, is_none

__all__: list[str] = []


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


accumulate_numbers = fold(plus_number, "accumulate_numbers")
accumulate_number_product = fold(times_number, "accumulate_number_product")
accumulate_number_squares = fold(plus_square_number, "accumulate_number_squares")
count_numbers = fold(one_more_number, "count_numbers")


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
