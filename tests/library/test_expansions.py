"""Each expansion gives what Numba's own function gives: value, dtype, layout, arguments left behind, and exceptions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.np import extensions

import numbarules.library.products
import numbarules.library.reductions
import numbarules.library.selection
import numbarules.library.shapes  # noqa: F401 - importing fills the table
from numbarules.library.expansions import expansions, flat_get, flat_set, lookup_expansion
from numbarules.library.selection import gather, scatter
from numbarules.testing import check_gradient

pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPerformanceWarning")

inf, nan = math.inf, math.nan
_compiled: dict[Any, Any] = {}


def wave(*shape: int, dtype: Any = np.float64) -> Any:
    """Numbers of both signs, all different and in no order, C contiguous."""
    n = math.prod(shape)
    return (np.cos(1.7 * np.arange(n) + 0.3) * (1.0 + np.arange(n) % 5)).astype(dtype).reshape(shape)


def fortran(*shape: int) -> Any:
    """As `wave`, F contiguous."""
    return np.asfortranarray(wave(*shape))


def strided(*shape: int) -> Any:
    """As `wave`, with gaps and a negative stride."""
    wide = wave(*(2 * n for n in shape))
    return wide[tuple(slice(None, None, -2) for _ in shape)]


def with_nans(*shape: int) -> Any:
    """As `wave`, with NaNs at the start and inside."""
    x = wave(*shape)
    x.flat[::3] = nan
    return x


class Literal(int):
    """A number that a call is written with."""


def is_written(a: Any) -> bool:
    """Whether an argument stands in the call itself."""
    return isinstance(a, str | bool | Literal) or a is None


C1, C2, C3 = wave(7), wave(4, 3), wave(2, 3, 4)
F2, F3 = fortran(4, 3), fortran(2, 3, 4)
A1, A2, A3 = strided(7), strided(4, 3), strided(2, 3, 4)
S1, S2 = wave(7, dtype=np.float32), wave(4, 3, dtype=np.float32)
I1 = np.array([2, 0, -1, 2])
E1, E2 = np.empty(0), np.empty((0, 3))
VIEWS = [F2, A3, S1]
ALL = [np.array(1.5), C1, C3, F2, A1, A3, S2, E2]


def cases() -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """(function or method name, arguments, keywords)."""
    table: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def add(key: Any, *args: Any, **kwargs: Any) -> None:
        table.append((key, args, kwargs))

    for a in ALL:
        add(np.sum, a)
    for a in VIEWS:
        for f in (np.prod, np.mean, np.var, np.std, np.max, np.min, np.cumsum, np.cumprod, np.round):
            add(f, a)
    for f in (np.prod, np.mean, np.cumsum, np.max, np.min, np.ptp, np.median, np.percentile):
        add(f, E1, *([50.0] if f is np.percentile else []))
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod"):
        add(name, C1)
    for axis in (0, 1, -1, 2, -3):
        add(np.sum, A2, axis)
        add(np.sum, C3, axis=axis)
        add(np.cumsum, F2, axis)
    add("sum", F3, 1)
    add(np.sum, S2, axis=0)
    add(np.sum, S2, dtype=np.dtype(np.float64))
    add(np.sum, C1, 0)
    add(np.sum, C1, 1)
    add(np.sum, E2, 0)
    add(np.sum, C3, (0, 2))
    add(np.sum, C3, (-1,))
    add(np.sum, C3, (0, 1, 2))
    add(np.sum, C3, (0, 0))
    for a in (with_nans(7), np.asfortranarray(with_nans(4, 3)), with_nans(7).astype(np.float32), np.full(7, nan)):
        for f in (
            np.nansum,
            np.nanprod,
            np.nanmean,
            np.nanvar,
            np.nanstd,
            np.nanmax,
            np.nanmin,
            np.nancumsum,
            np.nancumprod,
            np.nanmedian,
            np.max,
            np.min,
            np.ptp,
        ):
            add(f, a)
    add(np.nanvar, with_nans(7), ddof=1)
    add(np.nanstd, with_nans(7), ddof=7)
    add(np.average, C1)
    add(np.average, C2, weights=np.abs(C2))
    add(np.average, C1, weights=np.zeros(7))
    add(np.trace, A2)
    add(np.trace, C2, -1)
    add(np.trace, S2, 5)
    for n in (0, 1, 2, 9, -1):
        add(np.diff, C2, n)
    add(np.diff, C1)
    add(np.diff, C3)
    add(np.ediff1d, C2)
    add(np.ediff1d, C1, 5.0, C2)
    add(np.ediff1d, E1, 1.0)
    add(np.round, A2, 1)
    add(np.around, C1, 1, out=wave(7))

    for a in (C1, A2, F3, S2):
        add(np.ptp, a)
        add(np.sort, a)
        add(np.median, a)
    add("sort", strided(4, 3))
    add("sort", wave(6))
    add(np.median, wave(6))
    for q in (0, 0.3, 50.0, 100, 101.0, np.array([0.0, 20.0, 100.0])):
        add(np.percentile, A2, q)
        add(np.nanpercentile, with_nans(7), q)
    add(np.percentile, with_nans(7), 30.0)
    add(np.percentile, S1, 30.0)
    for low in (np.array([inf, -inf]), np.array([inf, 1.0]), np.array([inf]), np.array([-inf, -inf, 2.0]), np.array([3.0])):
        add(np.percentile, low, np.array([0.0, 100.0]))
    for q in (0.2, 1.2):
        add(np.quantile, C1, q)
        add(np.nanquantile, C1, q)
    for condition, x, y in (
        (C2 > 0, C2, A2),
        (F2 > 0, F2, F2 + 1),
        (F2 > 0, F2, 0.0),
        (C2 > 0, C2[0], 1.0),
        (C2[:, :1] > 0, C2[0], S2),
        (C1 > 0, 0.0, C1),
        (C1 > 0, 1, C1),
        (C1 > 0, C1[:3], C1),
        (True, 1.0, 2.0),
        (True, C1, 2.0),
        (C1, C1, S1),
    ):
        add(np.where, condition, x, y)
    for low, high in (
        (-0.5, 0.5),
        (None, 0.5),
        (-0.5, None),
        (C2[0], 0.9),
        (-0.9, A2),
        (C2 - 1, C2 + A2),
        (None, C2[0]),
        (C2[0], None),
        (None, None),
        (0.9, -0.9),
        (nan, 1.0),
    ):
        add(np.clip, A2, low, high)
    add("clip", F2, -0.5, 0.5)
    add("clip", S2, -0.5, 0.5)
    add(np.clip, C1, -0.5, 0.5, wave(7))
    add(np.clip, C1, -0.5, 0.5, wave(8))
    add(np.nan_to_num, np.array([1.0, nan, inf, -inf]))
    add(np.nan_to_num, np.array([[1.0, nan], [inf, -inf]], dtype=np.float32), nan=2.0)
    add(np.nan_to_num, inf)
    for index in (2, -7, 12, I1, I1.reshape(2, 2), np.array([0, 99])):
        add(np.take, A2, index)
    add("take", C1, I1)
    add(np.take, C3, I1[:3] % 2, 1)
    add(np.take, C3, I1[:2], -1)
    add(np.take, A2, 1, 0)
    add(np.take, A2, I1, 2)

    for a in (A1, F2, A3):
        add(np.flip, a)
        for axis in range(-a.ndim - 1, a.ndim + 1):
            add(np.expand_dims, a, Literal(axis))
        for axis in range(-a.ndim, a.ndim):
            add(np.swapaxes, a, Literal(axis), Literal(-1 - axis))
            add(np.swapaxes, a, Literal(axis), Literal(axis))
        add(np.atleast_1d, a)
        add(np.atleast_2d, a)
        add(np.flipud, a)
        add(np.roll, a, 2)
        add(np.roll, a, -1)
        add(np.repeat, a, 2)
    add(np.fliplr, F2)
    for a in (C2, F2, A2):
        add(np.rot90, a)
        for k in (-1, 0, 1, 2, 3, 5):
            add(np.rot90, a, Literal(k))
    add(np.fliplr, C3)
    add(np.repeat, C1, np.arange(7))
    add(np.repeat, C1, np.arange(6))
    add("repeat", C1, 0)
    add(np.repeat, C1, -1)
    for axis in (0, 1, -1, 2):
        add(np.concatenate, (C2, A2), axis)
        add(np.stack, (C2, A2, F2), axis)
        add(np.concatenate, (F3, F3, F3), axis)
    add(np.concatenate, (C1, A1, S1))
    add(np.concatenate, (C2, C2[:, :2]))
    add(np.stack, (F2, F2), 3)
    add(np.stack, (C1, A1))
    add(np.stack, (C1, C1[:3]))
    add(np.stack, (np.array(1.0), np.array(2.0)))
    for arrays in ((C1, A1), (C2, A2), (F2, F2), (C3, A3)):
        for f in (np.hstack, np.vstack, np.dstack):
            if f is not np.dstack or arrays[0].ndim > 1:
                add(f, arrays)
    add(np.column_stack, (C1, A1))
    add(np.column_stack, (A2[:, 0], C2, C1[:4]))
    add(np.column_stack, (C1, C2))
    add(np.append, C2, A1)
    add(np.append, C1, 3.0)
    add(np.append, C2, A2, 1)
    for k in (0, 1, -2):
        for a in (C1, F2, A3):
            add(np.tril, a, k)
            add(np.triu, a, k)
        add(np.diag, C1, k)
        add(np.diag, A2, k)
    add(np.diag, A2, 9)
    add(np.diagflat, A2)
    add(np.fill_diagonal, wave(6, 3), 2.5)
    add(np.fill_diagonal, wave(6, 3), 2.5, True)
    add(np.fill_diagonal, strided(3, 3, 3), C1[:2])
    add(np.fill_diagonal, wave(3, 3, 2), 1.0)
    add("fill", strided(3, 2), 1.5)
    add(np.full, 3, 1.5)
    add(np.full, (2, 3), 1.5)
    add(np.full_like, F2, 1.5)
    add(np.full_like, A2, 1.5)
    for num in (0, 1, 2, 5):
        add(np.linspace, 0.3, 2.7, num)
    add(np.linspace, 0, 2.7)
    add(np.logspace, 0.3, 0.7, 4)
    add(np.vander, C1)
    add(np.vander, S1, 3)
    add(np.vander, A1, 3, True)

    for f in (np.dot, np.vdot):
        add(f, C1, A1)
        add(f, S1, S1)
    add("dot", C1, C1)
    add(np.dot, C1, C1[:3])
    add(np.outer, C1, A2)
    add(np.outer, 2.0, C1)
    add(np.kron, C1, C1[:2])
    add(np.kron, C2, F2)
    for a, b in ((C1[:3], C1[3:6]), (C2, C1[:3]), (A2, C2[:, :2]), (C2[0], C2), (wave(2, 4, 3), C2), (C2[:, :2], C2[:, :2]), (C1, C1)):
        add(np.cross, a, b)
    for a, b in ((C1[:2], C1[2:4]), (C2[:, :2], A2[:, :2]), (C2[:, :2], C1[:2]), (C1, C1)):
        add(extensions.cross2d, a, b)
    for order in (None, 2, 1, inf, -inf, 0, 3, 0.5, -1.5):
        add(np.linalg.norm, C1, order)
    for a in (S1, np.zeros(3), E1, C2, F2, A2, E2, np.array([1e200, 1e200]), np.array([1e-200, 1e-200]), np.array([1.0, nan])):
        add(np.linalg.norm, a)
    add(np.linalg.norm, S1, 1)
    for mode in ("valid", "full", "same", "else"):
        for a, v in ((C1, C1[:3]), (C1[:2], A1)):
            add(np.correlate, a, v, mode)
            add(np.convolve, a, v, mode)
    add(np.convolve, S1, C1)
    add(np.convolve, E1, C1)
    add(np.sinc, np.array([0.0, 1e-9, 1e-3, 0.7, -2.3]))
    add(np.sinc, F2)
    add(np.sinc, S2)
    add(np.sinc, 0.3)
    xp, fp = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 4.0]), wave(6)
    for x in (np.linspace(-2, 5, 15).reshape(3, 5), xp, 0.25, 9.0, nan, F2):
        add(np.interp, x, xp, fp)
    add(np.interp, S1, xp.astype(np.float32), fp)
    add(np.interp, C1, xp[:1], fp[:1])
    add(np.interp, C1, np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0]))
    add(np.interp, C1, xp, fp[:3])
    add(np.interp, C1, E1, E1)
    if hasattr(np, "trapezoid"):
        add(np.trapezoid, C1)
        add(np.trapezoid, S1)
        add(np.trapezoid, A2, dx=0.5)
        add(np.trapezoid, C1, C1 * C1)
        add(np.trapezoid, A2, C1[:3])
    add(np.polynomial.polynomial.polyval, 0.3, C1)
    add(np.polynomial.polynomial.polyval, A2, C1)
    add(np.cov, C2)
    add(np.cov, A1)
    add(np.cov, F2, rowvar=False, ddof=2)
    add(np.cov, C2, bias=True)
    add(np.cov, C2[:1])
    add(np.corrcoef, A2)
    add(np.corrcoef, C2, rowvar=False)
    return table


CASES = cases()


def caller(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """A jitted function that makes the call as a user writes it, strings, booleans and `Literal`s as literals."""
    written = [repr(a) if is_written(a) else f"x{i}" for i, a in enumerate(args)]
    written += [f"{k}={a!r}" if is_written(a) else f"{k}={k}" for k, a in kwargs.items()]
    names = ", ".join([*(f"x{i}" for i in range(len(args))), *kwargs])
    call = f"x0.{key}({', '.join(written[1:])})" if isinstance(key, str) else f"f({', '.join(written)})"
    text = f"lambda {names}: {call}"
    if (text, key) not in _compiled:
        _compiled[text, key] = njit(eval(text, {"f": key}))
    return _compiled[text, key]


def expanded(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The jitted implementation for a call."""
    found = ("Array", key) if isinstance(key, str) else key
    arg_types = tuple(types.literal(int(a)) if isinstance(a, Literal) else typeof(a) for a in args)
    kwarg_types = {k: typeof(a) for k, a in kwargs.items()}
    if key is np.nan_to_num:
        kwarg_types.pop("copy", None)
    signature = (found, arg_types, tuple(kwarg_types.items()))
    if signature not in _compiled:
        implementation = lookup_expansion(found, arg_types, kwarg_types)
        assert implementation is not None, f"not covered: {key} {arg_types} {kwarg_types}"
        _compiled[signature] = njit(implementation)
    return _compiled[signature]


def copied(x: Any) -> Any:
    """The argument copied with its layout, strided ones included."""
    if isinstance(x, tuple):
        return tuple(copied(v) for v in x)
    if not isinstance(x, np.ndarray):
        return x
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy(order="K")
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    view = wide[tuple(slice(None, None, -2) for _ in x.shape)]
    view[...] = x
    return view


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, tuple[Any, ...]]:
    """The exception's type or the value, the inferred result type, and the arguments as left behind."""
    args = copied(args)
    try:
        value = function(*args, **kwargs)
    except (ValueError, IndexError, ZeroDivisionError, RuntimeError, TypeError, AssertionError) as error:
        return type(error), None, args
    arg_types = tuple(typeof(a) for a in (*args, *kwargs.values()))
    signatures = function.nopython_signatures
    signature = next((s for s in signatures if s.args == arg_types), signatures[0])
    return value, types.unliteral(signature.return_type), args


def label(case: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> str:
    key, args, kwargs = case
    return f"{key if isinstance(key, str) else key.__name__}-" + ",".join(str(typeof(a)) for a in (*args, *kwargs.values()))


def sampled(found: list[Any], each: int) -> list[Any]:
    """The cases as parameters: the first of each function and every `each`-th of the rest run always, the others with the slow tests."""
    seen: set[Any] = set()
    out: list[Any] = []
    for i, case in enumerate(found):
        quick = case[0] not in seen or i % each == 0
        seen.add(case[0])
        out.append(pytest.param(case, id=label(case), marks=() if quick else pytest.mark.slow))
    return out


@pytest.mark.parametrize("case", sampled(CASES, each=30))
def test_same_as_numba(case: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> None:
    key, args, kwargs = case
    expected, expected_type, expected_args = outcome(caller(key, args, kwargs), args, kwargs)
    value, value_type, left = outcome(expanded(key, args, kwargs), args, kwargs)
    if isinstance(expected, type):
        assert value is expected
        return
    assert value_type == expected_type
    single = getattr(expected_type, "dtype", expected_type) == types.float32
    tolerance = {"rtol": 1e-6 if single else 1e-14, "atol": 1e-6 if single else 1e-14}
    if expected is not None:
        np.testing.assert_allclose(value, expected, **tolerance)
        assert np.shape(value) == np.shape(expected)
    for a, b in zip(left, expected_args, strict=True):
        if not isinstance(a, str | tuple) and a is not None:
            np.testing.assert_array_equal(a, b)


VIEWS_OF = (np.flip, np.flipud, np.fliplr, np.expand_dims, np.swapaxes, np.rot90, np.atleast_1d, np.atleast_2d)


def test_views_are_views() -> None:
    for key, args, kwargs in CASES:
        if key in VIEWS_OF:
            x = copied(args[0])
            assert np.shares_memory(expanded(key, args, kwargs)(x, *args[1:]), x), label((key, args, kwargs))


EXACT = [c for c in CASES if c[0] in (np.sum, np.mean, np.var, np.prod, np.cumsum, np.nansum, "sum", "mean")]


@pytest.mark.parametrize("case", sampled(EXACT, each=30))
def test_order_of_summation_is_numbas(case: tuple[Any, tuple[Any, ...], dict[str, Any]]) -> None:
    key, args, kwargs = case
    expected, _, _ = outcome(caller(key, args, kwargs), args, kwargs)
    value, _, _ = outcome(expanded(key, args, kwargs), args, kwargs)
    if not isinstance(expected, type):
        np.testing.assert_array_equal(value, expected)


def test_every_expansion_has_a_case() -> None:
    covered = {("Array", key) if isinstance(key, str) else key for key, _, _ in CASES}
    builders = {expansions()[key] for key in covered}
    helpers = {key for key in expansions() if callable(key) and key.__module__.startswith("numbarules")}
    indexing = {operator.getitem, operator.setitem}  # in tests/test_language.py
    missing = [key for key, builder in expansions().items() if builder not in builders and key not in helpers | indexing]
    assert not missing


def test_derivatives_see_what_is_written_through_views() -> None:
    def f(x, turns):
        row = np.expand_dims(x, 0)
        row[0, 0, 1] = x[1, 2] * x[0, 0]
        flipped = np.swapaxes(x, 0, -1)
        flipped[2, 0] *= x[1, 1]
        left, computed = np.rot90(x), np.rot90(x, turns)
        left[0, 0] = computed[1, 1] * left[2, 1]
        np.atleast_2d(x[0])[0, 2] *= 3.0
        return x * x

    for turns in (0, 3):
        assert check_gradient(f, wave(2, 3), turns).error < 1e-9


def test_views_by_numbers_that_are_not_written_are_not_covered() -> None:
    for key, args in ((np.expand_dims, (C2, 0)), (np.swapaxes, (C2, 0, 1)), (np.rot90, (C2, 1))):
        assert lookup_expansion(key, tuple(map(typeof, args))) is None
    inner = (typeof(C3), types.literal(0), types.literal(1))
    assert lookup_expansion(np.swapaxes, inner) is None


def test_integers_and_unknown_forms_are_not_covered() -> None:
    ints = types.Array(types.int64, 1, "C")
    floats = types.Array(types.float64, 1, "C")
    assert lookup_expansion(np.sum, (ints,)) is None
    assert lookup_expansion(np.sum, (floats,), {"no_such": types.int64}) is None
    assert lookup_expansion(np.linalg.inv, (floats,)) is None


@pytest.mark.parametrize("x", [C1, A1, C2, A2, C3], ids=lambda x: str(typeof(x)))
@pytest.mark.parametrize(
    "index",
    [np.array([1, 0, -1, 1]), np.array([True, False] * 4), np.empty(0, np.int64), np.array([[0, 1], [1, -2]])],
    ids=["int", "mask", "none", "int2d"],
)
def test_gather_is_fancy_getitem(x: Any, index: Any) -> None:
    index = index[: x.shape[0]] if index.dtype == np.bool_ else index
    np.testing.assert_array_equal(_jitted("gather", lambda x, i: gather(x, i))(x, index), x[index])


@pytest.mark.parametrize("index", [np.array([1, 0, -1, 1]), np.array([True, False, True, False])], ids=["int", "mask"])
@pytest.mark.parametrize("form", ["number", "row", "rows"])
def test_scatter_is_fancy_setitem(index: Any, form: str) -> None:
    z, expected = wave(4, 3), wave(4, 3)
    n = expected[index].shape[0]
    v = {"number": 2.5, "row": wave(3), "rows": wave(n, 3) + 9}[form]
    expected[index] = v
    _jitted("scatter", lambda z, i, v: scatter(z, i, v))(z, index, v)
    np.testing.assert_array_equal(z, expected)


def test_flat_access_is_in_c_order() -> None:
    get = _jitted("get", lambda a, k: flat_get(a, k))
    put = _jitted("put", lambda a, k, v: flat_set(a, k, v))
    for a in (np.array(2.0), A1, F2, A3):
        a = copied(a)
        assert [get(a, k) for k in range(a.size)] == list(a.flat)
        put(a, a.size - 1, 7.0)
        assert list(a.flat)[-1] == 7.0


def test_norm_of_a_reversed_view_is_right() -> None:
    """Numba's own is wrong for negative strides."""
    reverse = np.arange(1.0, 6.0)[::-1]
    assert expanded(np.linalg.norm, (reverse,), {})(reverse) == pytest.approx(math.sqrt(55.0))


def _jitted(name: str, function: Callable[..., Any]) -> Any:
    return _compiled.setdefault(name, njit(function))
