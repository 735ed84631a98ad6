"""Methods to differentiate of views with axes turned round or inserted. They share memory with the argument, as NumPy's do."""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from .expansions import Arg, Implementation, expansion, float_array, literal

__all__: list[str] = []


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


# A step in a slice, even 1, makes the type that of an array in any order: the type that Numba has there.
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


@expansion(np.rot90)
def rot90_expansion(m: Arg, k: Arg = 1) -> Implementation | None:
    """A view of a matrix."""
    turns = literal(k)
    return _QUARTER_TURNS[turns % 4] if float_array(m) and m.ndim == 2 and isinstance(turns, int) else None
