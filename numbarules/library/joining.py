"""Methods to differentiate of functions that join arrays, or stack them along a new axis.

The tuple of arrays is taken apart at compile time. Elements are moved, not changed: each gets the cotangent of its copy.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import allocator, copy_into, with_extent
from .expansions import Arg, Implementation, expansion, float_array, helper, is_none, real, real_dtype

__all__: list[str] = []


@expansion(np.concatenate)
def concatenate_expansion(arrays: Arg, axis: Arg = 0) -> Implementation | None:
    """A tuple of arrays one after another; the result is F where all are, else C."""
    concatenated = _concatenation(arrays) if isinstance(axis, (int, types.Integer)) else None
    if concatenated is None:
        return None

    def concatenate_impl(arrays, axis=0):
        return concatenated(arrays, axis)

    return concatenate_impl


@expansion(np.stack)
def stack_expansion(arrays: Arg, axis: Arg = 0) -> Implementation | None:
    """A tuple of arrays side by side along a new axis."""
    stacked = _stacking(arrays) if isinstance(axis, (int, types.Integer)) else None
    if stacked is None:
        return None

    def stack_impl(arrays, axis=0):
        return stacked(arrays, axis)

    return stack_impl


@expansion(np.hstack)
def hstack_expansion(tup: Arg) -> Implementation | None:
    """Joined along axis 1, vectors along axis 0, 0-d arrays stacked."""
    joint = _joint(tup)
    if joint is None:
        return None
    join = _stacking(tup) if joint[1] == 0 else _concatenation(tup)
    axis = 1 if joint[1] > 1 else 0
    return lambda tup: join(tup, axis)


@expansion(np.vstack)
def vstack_expansion(tup: Arg) -> Implementation | None:
    """Joined along axis 0, vectors stacked as rows."""
    joint = _joint(tup)
    if joint is None or joint[1] == 0:
        return None
    join = _stacking(tup) if joint[1] == 1 else _concatenation(tup)
    return lambda tup: join(tup, 0)


if "row_stack" in vars(np):  # removed in NumPy 2.5
    expansion(vars(np)["row_stack"])(vstack_expansion)


@expansion(np.dstack)
def dstack_expansion(tup: Arg) -> Implementation | None:
    """Joined along axis 2, matrices stacked there."""
    joint = _joint(tup)
    if joint is None or joint[1] < 2:
        return None
    join = _stacking(tup) if joint[1] == 2 else _concatenation(tup)
    return lambda tup: join(tup, 2)


@expansion(np.column_stack)
def column_stack_expansion(tup: Arg) -> Implementation | None:
    """Vectors as columns, and matrices, side by side."""
    joint = _joint(tup, same_ndim=False)
    if joint is None or not all(a.ndim in (1, 2) for a in tup):
        return None
    empty = joint[0]

    def column_stack_impl(tup):
        out = empty((tup[0].shape[0], column_count(tup)))
        store_columns(out, tup, 0)
        return out

    return column_stack_impl


@expansion(np.append)
def append_expansion(arr: Arg, values: Arg, axis: Arg = None) -> Implementation | None:
    """Both flattened and joined, or joined along an axis; `values` may be a number."""
    if not any(float_array(v) or isinstance(v, types.Float) for v in (arr, values)) or not isinstance(arr, types.Array):
        return None
    if is_none(axis) and isinstance(values, types.Array):
        return lambda arr, values, axis=None: np.concatenate((arr.ravel(), values.ravel()))
    if is_none(axis) and real(values):
        dtype = np.promote_types(as_dtype(arr.dtype), real_dtype(values))  # type: ignore[arg-type]

        def append_number(arr, values, axis=None):
            flat = arr.ravel()
            out = np.empty(flat.shape[0] + 1, dtype)
            for i in range(flat.shape[0]):
                out[i] = flat[i]
            out[flat.shape[0]] = values
            return out

        return append_number
    if isinstance(axis, types.Integer) and isinstance(values, types.Array):
        return lambda arr, values, axis=None: np.concatenate((arr, values), axis)
    return None


def _joint(arrays: Arg, same_ndim: bool = True) -> tuple[Any, Any] | None:
    """The allocator of the result and the number of dimensions of a tuple of real arrays of which one is of floats, else `None`."""
    if (
        not isinstance(arrays, types.BaseTuple)
        or not len(arrays)
        or not all(isinstance(a, types.Array) and real_dtype(a) is not None for a in arrays)
    ):
        return None
    if not any(float_array(a) for a in arrays) or (same_ndim and len({a.ndim for a in arrays}) != 1):
        return None
    dtype = np.result_type(*(as_dtype(a.dtype) for a in arrays))
    return allocator(dtype, "F" if all(a.layout == "F" for a in arrays) else "C"), arrays[0].ndim


def _concatenation(arrays: Arg) -> Any:
    joint = _joint(arrays)
    if joint is None or joint[1] == 0:
        return None
    empty = joint[0]

    @njit
    def concatenated(arrays, axis):
        axis = joining_axis(axis, arrays[0].ndim)
        out = empty(with_extent(arrays[0].shape, axis, joint_extent(arrays, axis)))
        store_blocks(out, arrays, axis, 0)
        return out

    return concatenated


def _stacking(arrays: Arg) -> Any:
    joint = _joint(arrays)
    if joint is None:
        return None
    ndim, count = joint[1] + 1, len(arrays)
    empty = joint[0]

    @njit
    def stacked(arrays, axis):
        axis = joining_axis(axis, ndim)
        out = empty(inserted(arrays[0].shape, axis, count))
        store_slots(out, arrays, axis, 0)
        return out

    return stacked


@njit
def joining_axis(axis, ndim):
    """The axis counted from the front; IndexError when out of bounds, as Numba has it in joins."""
    if axis < -ndim or axis >= ndim:
        raise IndexError("axis out of bounds for dimensions of the array")
    return axis + ndim if axis < 0 else axis


@helper
def store_block(out: Arg, a: Arg, axis: Arg, start: Arg) -> Implementation:
    """Stores `a` into `out` from position `start` on along `axis`."""
    if a.ndim == 1:

        def store_elements(out, a, axis, start):
            for i in range(a.shape[0]):
                out[start + i] = a[i]

        return store_elements

    def store_rows(out, a, axis, start):
        if axis == 0:
            for i in range(a.shape[0]):
                copy_into(out[start + i], a[i])
        else:
            for i in range(a.shape[0]):
                store_block(out[i], a[i], axis - 1, start)

    return store_rows


@helper
def store_blocks(out: Arg, arrays: Arg, axis: Arg, start: Arg) -> Implementation:
    """Stores the arrays one after another along `axis`."""
    if arrays.count == 1:

        def store_last(out, arrays, axis, start):
            store_block(out, arrays[0], axis, start)

        return store_last

    def store_blocks_impl(out, arrays, axis, start):
        store_block(out, arrays[0], axis, start)
        store_blocks(out, arrays[1:], axis, start + arrays[0].shape[axis])

    return store_blocks_impl


@helper
def joint_extent(arrays: Arg, axis: Arg) -> Implementation:
    """The sum of the extents along `axis`; ValueError when the others differ."""
    if arrays.count == 1:

        def last_extent(arrays, axis):
            return arrays[0].shape[axis]

        return last_extent

    def joint_extent_impl(arrays, axis):
        for k in range(arrays[0].ndim):
            if k != axis and arrays[0].shape[k] != arrays[1].shape[k]:
                raise ValueError("np.concatenate(): input sizes over a dimension do not match")
        return arrays[0].shape[axis] + joint_extent(arrays[1:], axis)

    return joint_extent_impl


@helper
def store_slot(out: Arg, a: Arg, axis: Arg, k: Arg) -> Implementation:
    """Stores `a` into `out` at position k of the additional axis `axis`."""
    if not isinstance(a, types.Array):

        def store_number(out, a, axis, k):
            out[k] = a

        return store_number

    if a.ndim == 0:

        def store_only(out, a, axis, k):
            out[k] = a[()]

        return store_only

    def store_slot_impl(out, a, axis, k):
        if axis == 0:
            copy_into(out[k], a)
        else:
            for i in range(a.shape[0]):
                store_slot(out[i], a[i], axis - 1, k)

    return store_slot_impl


@helper
def store_slots(out: Arg, arrays: Arg, axis: Arg, k: Arg) -> Implementation:
    """Stores the arrays side by side at the additional axis; ValueError when the shapes differ."""
    if arrays.count == 1:

        def store_last_slot(out, arrays, axis, k):
            store_slot(out, arrays[0], axis, k)

        return store_last_slot

    def store_slots_impl(out, arrays, axis, k):
        if arrays[0].shape != arrays[1].shape:
            raise ValueError("np.stack(): all input arrays must have the same shape")
        store_slot(out, arrays[0], axis, k)
        store_slots(out, arrays[1:], axis, k + 1)

    return store_slots_impl


@helper
def inserted(shape: Arg, axis: Arg, n: Arg) -> Implementation:
    """The shape with an extent n put in at `axis`."""
    if shape.count == 0:

        def insert_only(shape, axis, n):
            return (n,)

        return insert_only

    def insert_impl(shape, axis, n):
        return (n,) + shape if axis == 0 else (shape[0],) + inserted(shape[1:], axis - 1, n)

    return insert_impl


@helper
def store_columns(out: Arg, arrays: Arg, start: Arg) -> Implementation:
    """Stores vectors as single columns, and matrices, one after another."""
    last = arrays.count == 1
    if arrays[0].ndim == 1:

        @njit
        def store_first(out, arrays, start):
            for i in range(arrays[0].shape[0]):
                out[i, start] = arrays[0][i]
            return start + 1
    else:

        @njit
        def store_first(out, arrays, start):
            store_block(out, arrays[0], 1, start)
            return start + arrays[0].shape[1]

    if last:

        def store_last_columns(out, arrays, start):
            store_first(out, arrays, start)

        return store_last_columns

    def store_columns_impl(out, arrays, start):
        store_columns(out, arrays[1:], store_first(out, arrays, start))

    return store_columns_impl


@helper
def column_count(arrays: Arg) -> Implementation:
    """The number of columns; ValueError when the numbers of rows differ."""
    count = njit((lambda a: 1) if arrays[0].ndim == 1 else (lambda a: a.shape[1]))
    if arrays.count == 1:

        def last_count(arrays):
            return count(arrays[0])

        return last_count

    def column_count_impl(arrays):
        if arrays[0].shape[0] != arrays[1].shape[0]:
            raise ValueError("np.concatenate(): input sizes over dimension 0 do not match")
        return count(arrays[0]) + column_count(arrays[1:])

    return column_count_impl
