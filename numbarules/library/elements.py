"""Elements, rows and whole arrays of any number of dimensions: what the methods to differentiate are made of.

Functions of integers alone (axes and shapes) are passive. Loops take the elements in Numba's order.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from ..analysis.effects import Effects
from .expansions import Arg, Implementation, helper, is_none, real_dtype

__all__ = [
    "allocator",
    "around_axis",
    "as_vector",
    "checked_axis",
    "copy_into",
    "flat_get",
    "flat_set",
    "fold",
    "row",
    "spread",
    "with_extent",
    "without_axis",
]


@njit
def checked_axis(axis, ndim):
    """The axis counted from the front; ValueError when out of bounds."""
    if axis < -ndim or axis >= ndim:
        raise ValueError("axis is out of bounds for array")
    return axis + ndim if axis < 0 else axis


@njit
def around_axis(a, axis):
    """`a` in C order with three axes: those before `axis` as one, `axis`, and those after it as one. A view where `a` is in C order."""
    before, after = 1, 1
    for k in range(len(a.shape)):
        if k < axis:
            before *= a.shape[k]
        elif k > axis:
            after *= a.shape[k]
    return a.ravel().reshape((before, a.shape[axis], after))


@helper
def without_axis(shape: Arg, axis: Arg) -> Implementation:
    """The shape without the extent at `axis` (counted from the front)."""
    if shape.count == 1:

        def without_last(shape, axis):
            return ()

        return without_last

    if shape.count == 2:

        def without_of_two(shape, axis):
            return (shape[1] if axis == 0 else shape[0],)

        return without_of_two

    def without_impl(shape, axis):
        return (shape[1] if axis == 0 else shape[0],) + without_axis(shape[1:], axis - 1 if axis > 0 else 0)

    return without_impl


@helper
def with_extent(shape: Arg, axis: Arg, n: Arg) -> Implementation:
    """The shape with extent `n` at `axis` (counted from the front)."""
    if shape.count == 1:

        def with_last(shape, axis, n):
            return (n if axis == 0 else shape[0],)

        return with_last

    def with_extent_impl(shape, axis, n):
        return (n if axis == 0 else shape[0],) + with_extent(shape[1:], axis - 1, n)

    return with_extent_impl


def allocator(dtype: Any, layout: str) -> Any:
    """A jitted function from a shape to an uninitialised array of that dtype and layout ("F", else C)."""
    if layout == "F":

        @njit
        def empty_f(shape):
            return np.empty(shape[::-1], dtype).T

        return empty_f

    @njit
    def empty_c(shape):
        return np.empty(shape, dtype)

    return empty_c


@helper
def row(x: Arg, i: Arg, out: Arg) -> Implementation:
    """The part of operand `x` that is broadcast against `out[i]`: its row i, its only row, or all of a lower-dimensional one."""
    if not isinstance(x, types.Array) or 0 < x.ndim < out.ndim:

        def whole(x, i, out):
            return x

        return whole

    if x.ndim == 0:

        def only_element(x, i, out):
            return x[()]

        return only_element

    def row_impl(x, i, out):
        return x[i if x.shape[0] != 1 else 0]

    return row_impl


@helper
def flat_get(a: Arg, k: Arg) -> Implementation:
    """Element k >= 0 in C order, whatever the layout: one load."""
    if a.ndim == 0:

        def get_only(a, k):
            return a[()]

        return get_only

    if a.ndim == 1:

        def get_element(a, k):
            return a[k]

        return get_element

    def get_in_row(a, k):
        inner = a.size // a.shape[0]
        return flat_get(a[k // inner], k % inner)

    return get_in_row


@helper
def flat_set(a: Arg, k: Arg, v: Arg) -> Implementation:
    """Stores element k >= 0 in C order, whatever the layout."""
    if a.ndim == 0:

        def set_only(a, k, v):
            a[()] = v

        return set_only

    if a.ndim == 1:

        def set_element(a, k, v):
            a[k] = v

        return set_element

    def set_in_row(a, k, v):
        inner = a.size // a.shape[0]
        flat_set(a[k // inner], k % inner, v)

    return set_in_row


@helper
def copy_into(out: Arg, a: Arg) -> Implementation:
    """Stores an array (or scalar) of out's number of dimensions or fewer into all of `out`."""
    if out.ndim == 0:

        def copy_element(out, a):
            out[()] = row(a, 0, out)

        return copy_element

    if out.ndim == 1:

        def copy_elements(out, a):
            for i in range(out.shape[0]):
                out[i] = row(a, i, out)

        return copy_elements

    def copy_rows(out, a):
        for i in range(out.shape[0]):
            copy_into(out[i], row(a, i, out))

    return copy_rows


def fold(step: Any, name: str) -> Callable[..., Any]:
    """A helper folded(s, a, p) that does s = step(s, v, p) for every element v, in Numba's order: C, or F for an F array."""

    def builder(s: Arg, a: Arg, p: Arg) -> Implementation:
        if a.ndim == 0:

            def fold_only(s, a, p):
                return step(s, a[()], p)

            return fold_only

        if a.ndim == 1:

            def fold_elements(s, a, p):
                for i in range(a.shape[0]):
                    s = step(s, a[i], p)
                return s

            return fold_elements

        if a.layout == "C":

            def fold_flat(s, a, p):
                return folded(s, a.reshape(a.size), p)

            return fold_flat

        if a.layout == "F":

            def fold_transposed(s, a, p):
                return folded(s, a.T, p)

            return fold_transposed

        def fold_rows(s, a, p):
            for i in range(a.shape[0]):
                s = folded(s, a[i], p)
            return s

        return fold_rows

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = f"Folds {step.__name__} over the elements of an array."
    folded = helper(builder)
    folded.__numbarules_effects__ = Effects(reads=True, may_raise=True)  # type: ignore[attr-defined]
    return folded


def spread(step: Any, name: str) -> Callable[..., Any]:
    """A helper mapped(out, a, b, c) that does out[...] = step(a, b, c) element by element, with the operands broadcast against `out`."""

    def builder(out: Arg, a: Arg, b: Arg, c: Arg) -> Implementation:
        if out.ndim == 0:

            def map_only(out, a, b, c):
                out[()] = step(row(a, 0, out), row(b, 0, out), row(c, 0, out))

            return map_only

        if out.ndim == 1:

            def map_elements(out, a, b, c):
                for i in range(out.shape[0]):
                    out[i] = step(row(a, i, out), row(b, i, out), row(c, i, out))

            return map_elements

        def map_rows(out, a, b, c):
            for i in range(out.shape[0]):
                mapped(out[i], row(a, i, out), row(b, i, out), row(c, i, out))

        return map_rows

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = f"Maps {step.__name__} over broadcast operands."
    mapped = helper(builder)
    mapped.__numbarules_effects__ = Effects(writes=(0,), reads=True, may_raise=True)  # type: ignore[attr-defined]
    return mapped


@helper
def as_vector(x: Arg) -> Implementation:
    """An array flattened, a number as one element, `None` as no element."""
    if isinstance(x, types.Array):
        return lambda x: x.ravel()
    if is_none(x):
        return lambda x: np.empty(0, np.float64)
    dtype = real_dtype(x)

    def one_element(x):
        out = np.empty(1, dtype)
        out[0] = x
        return out

    return one_element
