"""Methods to differentiate of `np.roll`, `np.repeat` and `np.take`: copies of elements at other positions; the reverse adds them up."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from .elements import around_axis, checked_axis, flat_get, with_extent, without_axis
from .expansions import Arg, Implementation, expansion, float_array, is_none

__all__: list[str] = []


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


@expansion(np.take, method="take")
def take_expansion(a: Arg, indices: Arg, axis: Arg = None) -> Implementation | None:
    """Elements of the flattened array, or along one axis; the reverse adds up repeated indices."""
    if not float_array(a):
        return None
    dtype = as_dtype(a.dtype)
    one = isinstance(indices, types.Integer)
    many = isinstance(indices, types.Array) and isinstance(indices.dtype, types.Integer) and indices.ndim > 0

    if is_none(axis) and one:

        def take_element(a, indices, axis=None):
            if indices > a.size - 1 or indices < -a.size:
                raise IndexError("Index out of bounds")
            return flat_get(a, indices + a.size if indices < 0 else indices)

        return take_element

    if is_none(axis) and many:

        def take_elements(a, indices, axis=None):
            positions = indices.ravel()
            out = np.empty(positions.shape[0], dtype)
            for i in range(positions.shape[0]):
                k = positions[i]
                if k > a.size - 1 or k < -a.size:
                    raise IndexError("Index out of bounds")
                out[i] = flat_get(a, k + a.size if k < 0 else k)
            return out.reshape(indices.shape)

        return take_elements

    if not isinstance(axis, types.Integer) or a.ndim == 0:
        return None

    if many and indices.ndim == 1:

        def take_along(a, indices, axis=None):
            axis = checked_axis(axis, a.ndim)
            parts = around_axis(a, axis)
            before, after = parts.shape[0], parts.shape[2]
            out = np.empty((before, indices.shape[0], after), dtype)
            for i in range(before):
                for k in range(indices.shape[0]):
                    for j in range(after):
                        out[i, k, j] = parts[i, indices[k], j]
            return out.reshape(with_extent(a.shape, axis, indices.shape[0]))

        return take_along

    if one and a.ndim > 1:

        def take_slice(a, indices, axis=None):
            axis = checked_axis(axis, a.ndim)
            parts = around_axis(a, axis)
            before, after = parts.shape[0], parts.shape[2]
            out = np.empty((before, after), dtype)
            for i in range(before):
                for j in range(after):
                    out[i, j] = parts[i, indices, j]
            return out.reshape(without_axis(a.shape, axis))

        return take_slice

    return None
