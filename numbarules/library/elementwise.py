"""Methods to differentiate of functions element by element: choices between operands, replacements, rounding, `np.sinc`.

Which operand is chosen is passive: the cotangent goes there alone, whole and undivided. Comparisons with NaN go the way Numba's go.
"""

# Implementations are bodies for Numba, which compares their signatures, annotations included, with those of their builders.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.np.numpy_support import as_dtype

from .elements import allocator, spread
from .expansions import Arg, Implementation, expansion, float_array, is_none, literal, real, real_dtype

__all__: list[str] = []


@njit
def chosen(c, x, y):
    return x if c else y


@njit
def clipped(v, low, high):
    m = low if low > v else v
    return high if high < m else m


@njit
def clipped_below(v, low, unused):
    return low if low > v else v


@njit
def clipped_above(v, high, unused):
    return high if high < v else v


where_into = spread(chosen, "where_into")
clip_into = spread(clipped, "clip_into")
clip_below_into = spread(clipped_below, "clip_below_into")
clip_above_into = spread(clipped_above, "clip_above_into")


def _shape_of(x: Arg) -> Any:
    """A jitted function that gives the shape of an array, `()` of a number."""
    return njit(lambda x: x.shape) if isinstance(x, types.Array) else njit(lambda x: ())


@expansion(np.where)
def where_expansion(condition: Arg, x: Arg, y: Arg) -> Implementation | None:
    """The cotangent goes where the value came from; the other operand gets exactly zero there, whatever it holds."""
    dtypes = [real_dtype(v) for v in (condition, x, y)]
    if any(d is None for d in dtypes) or not any(d.kind == "f" for d in dtypes[1:]):  # type: ignore[union-attr]
        return None
    dtype = np.promote_types(dtypes[1], dtypes[2])  # type: ignore[arg-type]
    of_condition, of_x, of_y = _shape_of(condition), _shape_of(x), _shape_of(y)
    arrays = [v for v in (x, y) if isinstance(v, types.Array)]
    layout = getattr(condition, "layout", "C")
    if len(arrays) == 2 and any(v.layout != layout for v in arrays):
        layout = "C"
    empty = allocator(dtype, layout)

    def where_impl(condition, x, y):
        out = empty(np.broadcast_shapes(of_condition(condition), of_x(x), of_y(y)))
        where_into(out, condition, x, y)
        return out

    return where_impl


@expansion(np.clip, method="clip")
def clip_expansion(a: Arg, a_min: Arg = None, a_max: Arg = None, out: Arg = None) -> Implementation | None:
    """At a bound the derivative goes to `a`; beyond it, to the bound. Bounds are numbers, arrays that broadcast, or `None`."""
    if not isinstance(a, types.Array) or real_dtype(a) is None or not (is_none(out) or float_array(out)):
        return None
    if not any(float_array(v) for v in (a, out)) or any(not is_none(v) and real_dtype(v) is None for v in (a_min, a_max)):
        return None
    no_low, no_high = is_none(a_min), is_none(a_max)
    if no_low and no_high:

        def clip_nothing(a, a_min=None, a_max=None, out=None):
            raise ValueError("array_clip: must set either max or min")

        return clip_nothing

    ndim = max(getattr(v, "ndim", 0) for v in (a, a_min, a_max))
    if is_none(out) and ndim > a.ndim:
        return None
    of_low, of_high = _shape_of(a_min), _shape_of(a_max)

    if is_none(out):

        @njit
        def prepared(a, shape, out):
            if a.shape != shape:
                raise ValueError("clip: the bounds have a larger shape than the array")
            return np.empty_like(a)
    else:

        @njit
        def prepared(a, shape, out):
            if out.shape != shape:
                raise ValueError("clip: the shape of the 'out' array does not match the shape of the result")
            return out

    if no_high:

        def clip_below(a, a_min=None, a_max=None, out=None):
            result = prepared(a, np.broadcast_shapes(a.shape, of_low(a_min)), out)
            clip_below_into(result, a, a_min, 0)
            return result

        return clip_below

    if no_low:

        def clip_above(a, a_min=None, a_max=None, out=None):
            result = prepared(a, np.broadcast_shapes(a.shape, of_high(a_max)), out)
            clip_above_into(result, a, a_max, 0)
            return result

        return clip_above

    def clip_impl(a, a_min=None, a_max=None, out=None):
        result = prepared(a, np.broadcast_shapes(a.shape, of_low(a_min), of_high(a_max)), out)
        clip_into(result, a, a_min, a_max)
        return result

    return clip_impl


@njit
def replaced(v, nan, limits):
    if np.isnan(v):
        return nan
    elif v == -np.inf:
        return limits[0]
    elif v == np.inf:
        return limits[1]
    return v


replace_into = spread(replaced, "replace_into")


@expansion(np.nan_to_num)
def nan_to_num_expansion(x: Arg, copy: Arg = True, nan: Arg = 0.0, posinf: Arg = None, neginf: Arg = None) -> Implementation | None:
    """What is replaced has zero derivative; the replacement is passive in `x`."""
    dtype = x.dtype if isinstance(x, types.Array) else x
    if not isinstance(dtype, types.Float) or not real(nan) or not all(is_none(v) or real(v) for v in (posinf, neginf)):
        return None
    limits = np.finfo(as_dtype(dtype))
    highest, lowest = limits.max, limits.min
    of_high = njit(lambda v: highest) if is_none(posinf) else njit(lambda v: v)
    of_low = njit(lambda v: lowest) if is_none(neginf) else njit(lambda v: v)

    if not isinstance(x, types.Array):

        def number_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
            if np.isnan(x):
                return nan
            elif x == -np.inf:
                return of_low(neginf)
            elif x == np.inf:
                return of_high(posinf)
            return x

        return number_to_num

    if literal(copy) is not True:
        return None

    def nan_to_num_impl(x, copy=True, nan=0.0, posinf=None, neginf=None):
        out = np.empty_like(x)
        replace_into(out, x, nan, (of_low(neginf), of_high(posinf)))
        return out

    return nan_to_num_impl


@njit
def rounded(v, decimals, unused):
    return np.round(v, decimals)


round_into = spread(rounded, "round_into")


@expansion(np.round, np.around)
def round_expansion(a: Arg, decimals: Arg = 0, out: Arg = None) -> Implementation | None:
    """Element by element `np.round` of a scalar, whose derivative is zero everywhere (the scalar rule); scalars have no expansion."""
    if not float_array(a):
        return None
    if is_none(out):

        def round_impl(a, decimals=0, out=None):
            result = np.empty_like(a)
            round_into(result, a, decimals, 0)
            return result

        return round_impl

    if not float_array(out) or out.ndim != a.ndim:
        return None

    def round_out(a, decimals=0, out=None):
        if a.shape != out.shape:
            raise ValueError("invalid output shape")
        round_into(out, a, decimals, 0)
        return out

    return round_out


@njit
def sinc_of(x, unused, unused_too):
    y = x * np.pi
    if abs(y) < 1e-2:
        # sin(y)/y by its series: the derivative of the quotient loses all digits near 0.
        q = y * y
        return 1.0 - q / 6.0 * (1.0 - q / 20.0 * (1.0 - q / 42.0))
    return np.sin(y) / y


sinc_into = spread(sinc_of, "sinc_into")


@expansion(np.sinc)
def sinc_expansion(x: Arg) -> Implementation | None:
    """sin(pi x)/(pi x), smooth at 0: value 1, derivative 0."""
    if isinstance(x, types.Float):
        return lambda x: sinc_of(x, 0, 0)
    if not float_array(x):
        return None

    def sinc_impl(x):
        out = np.empty_like(x)
        sinc_into(out, x, 0, 0)
        return out

    return sinc_impl
