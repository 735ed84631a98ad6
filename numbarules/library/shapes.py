"""Methods to differentiate of functions that rearrange, join, repeat, fill or build arrays.

Elements are moved, not changed, so every reverse is an addition.
"""

# ruff: noqa: RUF005 - jitted code joins tuples by +

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .expansions import (
    Arg,
    Implementation,
    allocator,
    copy_into,
    expansion,
    flat_set,
    float_array,
    helper,
    is_none,
    literal,
    real,
    real_dtype,
    with_extent,
)

__all__: list[str] = []


# Views with an axis turned round: they share memory with the argument, as NumPy's do


@expansion(np.flip)
def flip_expansion(m: Arg) -> Implementation | None:
    """A view with all axes turned round (up to three)."""
    if not float_array(m):
        return None
    views = {1: lambda m: m[::-1], 2: lambda m: m[::-1, ::-1], 3: lambda m: m[::-1, ::-1, ::-1]}
    return views.get(m.ndim)


@expansion(np.flipud)
def flipud_expansion(m: Arg) -> Implementation | None:
    """A view with the first axis turned round."""
    return (lambda m: m[::-1, ...]) if float_array(m) and m.ndim >= 1 else None


@expansion(np.fliplr)
def fliplr_expansion(m: Arg) -> Implementation | None:
    """A view with the second axis turned round."""
    return (lambda m: m[:, ::-1, ...]) if float_array(m) and m.ndim >= 2 else None


# Views with axes inserted or exchanged. A step in a slice, even 1, makes the type that of an array in any order, which Numba has there


_WITH_AXIS: dict[tuple[int, int], Implementation] = {
    (1, 0): lambda a, axis: a[None, :],
    (1, 1): lambda a, axis: a[:, None],
    (2, 0): lambda a, axis: a[None, ::1],
    (2, 1): lambda a, axis: a[::1, None],
    (2, 2): lambda a, axis: a[::1, :, None],
    (3, 0): lambda a, axis: a[None, ::1],
    (3, 1): lambda a, axis: a[::1, None],
    (3, 2): lambda a, axis: a[::1, :, None],
    (3, 3): lambda a, axis: a[::1, :, :, None],
}
_QUARTER_TURNS: dict[int, Implementation] = {
    0: lambda m, k=1: m[::1],
    1: lambda m, k=1: m[:, ::-1].T,
    2: lambda m, k=1: m[::-1, ::-1],
    3: lambda m, k=1: m[::1].T[:, ::-1],
}


def _literal_axis(axis: Arg, ndim: int) -> int | None:
    """The axis that a literal names, counted from the front, else `None`."""
    value = literal(axis)
    return value % ndim if isinstance(value, int) and -ndim <= value < ndim else None


@expansion(np.expand_dims)
def expand_dims_expansion(a: Arg, axis: Arg) -> Implementation | None:
    """A view of an array of up to three axes with one more, at a literal position."""
    if not float_array(a) or (at := _literal_axis(axis, a.ndim + 1)) is None:
        return None
    return _WITH_AXIS.get((a.ndim, at))


@expansion(np.atleast_1d)
def atleast_1d_expansion(a: Arg) -> Implementation | None:
    """The array itself."""
    return (lambda a: a) if float_array(a) and a.ndim >= 1 else None


@expansion(np.atleast_2d)
def atleast_2d_expansion(a: Arg) -> Implementation | None:
    """The array itself, or a vector as a view with one row."""
    if not float_array(a) or a.ndim == 0:
        return None
    return (lambda a: a[None, :]) if a.ndim == 1 else lambda a: a


@expansion(np.swapaxes)
def swapaxes_expansion(a: Arg, axis1: Arg, axis2: Arg) -> Implementation | None:
    """A view; literal axes, the two of a matrix or the outer ones of three."""
    if not float_array(a) or not 1 <= a.ndim <= 3:
        return None
    first, second = _literal_axis(axis1, a.ndim), _literal_axis(axis2, a.ndim)
    if first is None or second is None:
        return None
    if first == second:
        return lambda a, axis1, axis2: a[::1]
    return (lambda a, axis1, axis2: a[::1].T) if first + second == a.ndim - 1 else None


@expansion(np.rot90)
def rot90_expansion(m: Arg, k: Arg = 1) -> Implementation | None:
    """A view of a matrix."""
    turns = literal(k)
    return _QUARTER_TURNS[turns % 4] if float_array(m) and m.ndim == 2 and isinstance(turns, int) else None


# Moves


@expansion(np.roll)
def roll_expansion(a: Arg, shift: Arg) -> Implementation | None:
    """The flattened array turned by `shift`, in the shape of the argument."""
    if not float_array(a) or not isinstance(shift, (types.Integer, types.Boolean)):
        return None
    dtype = as_dtype(a.dtype)

    def roll_impl(a, shift):
        flat = a.ravel()
        n = flat.shape[0]
        out = np.empty(n, dtype)
        for i in range(n):
            out[(i + shift) % n] = flat[i]
        return out.reshape(a.shape)

    return roll_impl


@expansion(np.repeat, method="repeat")
def repeat_expansion(a: Arg, repeats: Arg) -> Implementation | None:
    """Each element of the flattened array several times: the reverse adds up the copies."""
    if not float_array(a):
        return None
    dtype = as_dtype(a.dtype)

    if isinstance(repeats, types.Integer):

        def repeat_impl(a, repeats):
            if repeats < 0:
                raise ValueError("negative dimensions are not allowed")
            flat = a.ravel()
            out = np.empty(flat.shape[0] * repeats, dtype)
            for i in range(flat.shape[0]):
                for k in range(repeats):
                    out[i * repeats + k] = flat[i]
            return out

        return repeat_impl

    if isinstance(repeats, types.Array) and isinstance(repeats.dtype, types.Integer) and repeats.ndim == 1:

        def repeat_each(a, repeats):
            flat = a.ravel()
            if repeats.shape[0] != 1 and repeats.shape[0] != flat.shape[0]:
                raise ValueError("operands could not be broadcast together")
            total = 0
            for i in range(flat.shape[0]):
                n = repeats[i if repeats.shape[0] != 1 else 0]
                if n < 0:
                    raise ValueError("negative dimensions are not allowed")
                total += n
            out = np.empty(total, dtype)
            start = 0
            for i in range(flat.shape[0]):
                n = repeats[i if repeats.shape[0] != 1 else 0]
                for k in range(n):
                    out[start + k] = flat[i]
                start += n
            return out

        return repeat_each

    return None


# Joins: the tuple of arrays is taken apart at compile time


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


# Diagonals and triangles


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


# Arrays made of numbers


@expansion(np.full)
def full_expansion(shape: Arg, fill_value: Arg, dtype: Arg = None) -> Implementation | None:
    """An array full of an active number: the reverse sums the cotangent."""
    result = _fill_dtype(fill_value, fill_value, dtype)
    if result is None:
        return None

    def full_impl(shape, fill_value, dtype=None):
        out = np.empty(shape, result)
        copy_into(out, fill_value)
        return out

    return full_impl


@expansion(np.full_like)
def full_like_expansion(a: Arg, fill_value: Arg, dtype: Arg = None) -> Implementation | None:
    """As `np.full`, of the shape, layout and dtype of an array."""
    if not isinstance(a, types.Array):
        return None
    result = _fill_dtype(fill_value, a.dtype, dtype)
    if result is None:
        return None
    empty = allocator(result, a.layout)

    def full_like_impl(a, fill_value, dtype=None):
        out = empty(a.shape)
        copy_into(out, fill_value)
        return out

    return full_like_impl


def _fill_dtype(fill_value: Arg, default: Arg, dtype: Arg) -> Any:
    if not isinstance(fill_value, types.Float):
        return None
    result = default if is_none(dtype) else getattr(dtype, "dtype", None)
    return as_dtype(result) if isinstance(result, types.Float) else None


@expansion(method="fill")
def fill_expansion(arr: Arg, val: Arg) -> Implementation | None:
    """Stores a number in every element, in place."""
    if not float_array(arr) or not real(val):
        return None

    def fill_impl(arr, val):
        copy_into(arr, val)

    return fill_impl


@expansion(np.linspace)
def linspace_expansion(start: Arg, stop: Arg, num: Arg = 50) -> Implementation | None:
    """`num` float64 numbers from start to stop, both active; the last is `stop` itself."""
    if not (real(start) and real(stop)) or not isinstance(num, (int, types.Integer)):
        return None

    def linspace_impl(start, stop, num=50):
        out = np.empty(num, np.float64)
        first, last = start * 1.0, stop * 1.0
        if num == 1:
            out[0] = first
        if num > 1:
            step = (last - first) / (num - 1)
            for i in range(num - 1):
                out[i] = first + i * step
            out[num - 1] = last
        return out

    return linspace_impl


@expansion(np.logspace)
def logspace_expansion(start: Arg, stop: Arg, num: Arg = 50) -> Implementation | None:
    """10 to the power of `np.linspace`."""
    if linspace_expansion(start, stop, num) is None:
        return None
    return lambda start, stop, num=50: np.power(10.0, np.linspace(start, stop, num))


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
