"""Methods to differentiate of sorting: a passive order, then a gather. Among equals the cotangents follow that order."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba.np.numpy_support import as_dtype

from .expansions import Arg, Implementation, expansion, float_array, helper

__all__: list[str] = []


@helper
def sort_rows(a: Arg) -> Implementation:
    """Sorts along the last axis, in place. NaNs go last."""
    if a.ndim == 1:
        dtype = as_dtype(a.dtype)

        def sort_row(a):
            order = np.argsort(a)
            old = np.empty(a.shape[0], dtype)
            for i in range(a.shape[0]):
                old[i] = a[i]
            for i in range(a.shape[0]):
                a[i] = old[order[i]]

        return sort_row

    def sort_each_row(a):
        for i in range(a.shape[0]):
            sort_rows(a[i])

    return sort_each_row


@expansion(np.sort)
def sort_expansion(a: Arg) -> Implementation | None:
    """A copy sorted along the last axis: a permutation of the cotangent."""
    if not float_array(a) or a.ndim == 0:
        return None

    def sort_impl(a):
        out = a.copy()
        sort_rows(out)
        return out

    return sort_impl


@expansion(method="sort")
def sort_method_expansion(a: Arg, kind: Arg = "quicksort") -> Implementation | None:
    """Sorts in place along the last axis; the order among equals is quicksort's whatever the kind, which no value shows."""
    if not float_array(a) or a.ndim == 0:
        return None

    def sort_method_impl(a, kind="quicksort"):
        sort_rows(a)

    return sort_method_impl
