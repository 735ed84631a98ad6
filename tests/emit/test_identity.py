"""`emit(capture(g))` behaves like `g`: values, exceptions, changes of arguments and the type of the result.

The programs are the cases, the benchmark kernels, small functions that each show one construct, and the Python
implementations that Numba has for NumPy functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof

from cases import judge
from numbarules._numba import overload_implementation, typed_ir
from numbarules.capture.translate import translate
from numbarules.compile.capture import options_of, python_function
from numbarules.emit.emit import emit
from numbarules.emit.stubs import stub_dispatcher
from numbarules.ir.rewrite import Names
from numbarules.transform.simplify import simplify
from perf import run_kernels

pytestmark = [pytest.mark.filterwarnings("ignore")]

CASES = sorted(judge.CASES.glob("*.py"))


def identity(f: Any, *, options: dict[str, Any] | None = None) -> Any:
    """A dispatcher of `f` as the front end and the back end see it, with nothing in between but clearing up."""
    function = python_function(f)
    kept = options_of(f) if options is None else options

    def generate(func_id: Any, args: tuple[Any, ...]) -> Any:
        captured = translate(typed_ir(function, args, kept), tuple(sorted(kept.items())))
        return emit(simplify(captured, Names(10**5)), func_id)

    return stub_dispatcher("identity", list(inspect.signature(function).parameters.values()), generate, kept, function.__module__)


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], Any]:
    """(value or None, the arguments as they are afterwards, the exception's type and arguments or None)."""
    args = tuple(judge.clone(a) if isinstance(a, np.ndarray | tuple) else a for a in args)
    try:
        return f(*args), args, None
    except Exception as error:
        return None, args, (type(error), error.args)


def same(a: Any, b: Any) -> bool:
    """The same structure, types and values, to rounding (the fused loops of one may round otherwise than the other's)."""
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic | int | float | complex):
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype != y.dtype or x.shape != y.shape or isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
            return False
        if x.dtype.kind not in "fc":
            return bool(np.array_equal(x, y))
        rtol = 64 * np.finfo(x.dtype).eps
        largest = float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
        return bool(np.allclose(x, y, rtol=rtol, atol=rtol * max(1.0, largest), equal_nan=True))
    return type(a) is type(b)


def check(f: Any, *calls: tuple[Any, ...], options: dict[str, Any] | None = None) -> None:
    """Compares `f` with its identity at each of the calls."""
    mine = identity(f, options=options)
    for args in calls:
        expected, result = outcome(f, args), outcome(mine, args)
        assert expected[2] == result[2]
        assert same(expected[0], result[0]), (expected[0], result[0])
        for a, b in zip(expected[1], result[1], strict=True):
            assert judge.equal_tree(a, b) or same(a, b), (a, b)
    theirs = {tuple(s.args): s.return_type for s in f.nopython_signatures}
    for s in mine.nopython_signatures:
        if tuple(s.args) in theirs:
            assert s.return_type == theirs[tuple(s.args)]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: Any) -> None:
    case = judge.load(path)
    check(case.f, case.args())


@pytest.mark.parametrize("name", list(run_kernels.ALL))
def test_kernel(name: str) -> None:
    check(run_kernels.ALL[name]["primal"], run_kernels.small_arguments(name))


# ---------------------------------------------------------------------------------------------- NumPy's functions in Numba

V = np.array([0.3, -1.2, 2.5, 0.7, 0.7])
W = np.array([1.5, 0.2, -0.4, 3.0, 0.1])
POSITIVE = np.array([0.5, 1.25, 2.0, 4.0])
SORTED = np.array([0.0, 0.5, 1.0, 2.0])
HOLES = np.array([1.0, np.nan, 3.0, 2.0])
M = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.5]])
R = np.arange(6.0).reshape(2, 3) - 2.5
INDEX = np.array([2, 0, 2])
FLAGS = np.array([True, False, True, False, True])
COUNTS = np.array([1, 3, 0, 1])

NUMPY: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (np.sum, (R,)),
    "prod": (np.prod, (V,)),
    "mean": (np.mean, (V,)),
    "var": (np.var, (V,)),
    "std": (np.std, (R,)),
    "cumsum": (np.cumsum, (V,)),
    "cumprod": (np.cumprod, (V,)),
    "min": (np.min, (V,)),
    "max": (np.max, (R,)),
    "argmin": (np.argmin, (V,)),
    "argmax": (np.argmax, (V,)),
    "all": (np.all, (FLAGS,)),
    "any": (np.any, (FLAGS,)),
    "ptp": (np.ptp, (V,)),
    "median": (np.median, (V,)),
    "percentile": (np.percentile, (V, 30.0)),
    "quantile": (np.quantile, (V, 0.3)),
    "nanmin": (np.nanmin, (HOLES,)),
    "nanmax": (np.nanmax, (HOLES,)),
    "nansum": (np.nansum, (HOLES,)),
    "nanprod": (np.nanprod, (HOLES,)),
    "nanmean": (np.nanmean, (HOLES,)),
    "nanvar": (np.nanvar, (HOLES,)),
    "nanstd": (np.nanstd, (HOLES,)),
    "nanmedian": (np.nanmedian, (HOLES,)),
    "nanpercentile": (np.nanpercentile, (HOLES, 40.0)),
    "nancumsum": (np.nancumsum, (HOLES,)),
    "diff": (np.diff, (V,)),
    "ediff1d": (np.ediff1d, (V,)),
    "trapezoid": (getattr(np, "trapezoid", None) or np.trapz, (V, W)),  # noqa: NPY201 - its name before NumPy 2
    "interp": (np.interp, (np.array([0.1, 0.7, 3.0, -1.0]), SORTED, POSITIVE)),
    "searchsorted": (np.searchsorted, (SORTED, 0.75)),
    "digitize": (np.digitize, (V, SORTED)),
    "histogram": (np.histogram, (V, 4)),
    "bincount": (np.bincount, (COUNTS,)),
    "bincount_weights": (np.bincount, (COUNTS, POSITIVE)),
    "unique": (np.unique, (V,)),
    "sort": (np.sort, (V,)),
    "partition": (np.partition, (W, 2)),
    "convolve": (np.convolve, (V, SORTED)),
    "correlate": (np.correlate, (V, SORTED)),
    "cov": (np.cov, (M,)),
    "corrcoef": (np.corrcoef, (M,)),
    "tri": (np.tri, (3, 4, 1)),
    "tril": (np.tril, (M,)),
    "triu": (np.triu, (M, 1)),
    "tril_indices": (np.tril_indices, (3,)),
    "vander": (np.vander, (V, 3)),
    "roll": (np.roll, (V, 2)),
    "rot90": (np.rot90, (R,)),
    "flip": (np.flip, (R,)),
    "fliplr": (np.fliplr, (R,)),
    "flipud": (np.flipud, (R,)),
    "repeat": (np.repeat, (V, 2)),
    "append": (np.append, (V, W)),
    "delete": (np.delete, (V, 1)),
    "concatenate": (np.concatenate, ((V, W),)),
    "hstack": (np.hstack, ((V, W),)),
    "vstack": (np.vstack, ((V, W),)),
    "stack": (np.stack, ((V, W),)),
    "column_stack": (np.column_stack, ((V, W),)),
    "split": (np.array_split, (V, 2)),
    "expand_dims": (np.expand_dims, (V, 0)),
    "reshape": (np.reshape, (R, (3, 2))),
    "diag": (np.diag, (V,)),
    "diagflat": (np.diagflat, (V,)),
    "trace": (np.trace, (M,)),
    "outer": (np.outer, (V, W)),
    "kron": (np.kron, (M, R)),
    "cross": (np.cross, (M, M + 1.0)),
    "clip": (np.clip, (V, -0.5, 0.6)),
    "where": (np.where, (FLAGS, V, W)),
    "take": (np.take, (V, INDEX)),
    "nan_to_num": (np.nan_to_num, (HOLES,)),
    "angle": (np.angle, (2.0 + 1.0j,)),
    "sinc": (np.sinc, (V,)),
    "hanning": (np.hanning, (5,)),
    "hamming": (np.hamming, (5,)),
    "blackman": (np.blackman, (5,)),
    "bartlett": (np.bartlett, (5,)),
    "linspace": (np.linspace, (0.0, 1.0, 5)),
    "array_equal": (np.array_equal, (V, W)),
    "allclose": (np.allclose, (V, W)),
    "isclose": (np.isclose, (V, W)),
    "count_nonzero": (np.count_nonzero, (FLAGS,)),
    "flatnonzero": (np.flatnonzero, (FLAGS,)),
    "argwhere": (np.argwhere, (FLAGS,)),
    "extract": (np.extract, (FLAGS, V)),
    "select": (np.select, ([FLAGS, ~FLAGS], [V, W], 0.0)),
    "union1d": (np.union1d, (V, W)),
    "intersect1d": (np.intersect1d, (V, W)),
    "setdiff1d": (np.setdiff1d, (V, W)),
    "isin": (np.isin, (V, W)),
    "full": (np.full, ((2, 3), 1.5)),
    "full_like": (np.full_like, (V, 1.5)),
    "ones_like": (np.ones_like, (V,)),
    "identity": (np.identity, (3,)),
    "average": (np.average, (V,)),
    "fill_diagonal": (np.fill_diagonal, (M, 2.0)),
    "swapaxes": (np.swapaxes, (R, 0, 1)),
    "det": (np.linalg.det, (M,)),
    "inv": (np.linalg.inv, (M,)),
    "solve": (np.linalg.solve, (M, POSITIVE[:3])),
    "cholesky": (np.linalg.cholesky, (M,)),
    "norm": (np.linalg.norm, (V,)),
    "cond": (np.linalg.cond, (M,)),
    "matrix_rank": (np.linalg.matrix_rank, (M,)),
    "matrix_power": (np.linalg.matrix_power, (M, 3)),
    "eigvalsh": (np.linalg.eigvalsh, (M,)),
    "slogdet": (np.linalg.slogdet, (M,)),
    "pinv": (np.linalg.pinv, (M,)),
    "svd": (np.linalg.svd, (M,)),
    "qr": (np.linalg.qr, (M,)),
    "lstsq": (np.linalg.lstsq, (M, POSITIVE[:3])),
}


# These compile for seconds each.
HEAVY = frozenset(
    "median percentile quantile nanmedian nanpercentile histogram convolve correlate cov corrcoef unique union1d intersect1d setdiff1d isin"
    " cross kron select partition sort cond matrix_rank matrix_power eigvalsh slogdet pinv svd qr lstsq norm"
    " column_stack delete interp".split()
)


def test_there_are_enough() -> None:
    assert len(NUMPY.keys() - HEAVY) >= 60


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in HEAVY else []) for n in NUMPY])
def test_implementation_of_numpy_function(name: str) -> None:
    function, args = NUMPY[name]
    found = overload_implementation(function, tuple(map(typeof, args)), {})
    assert found is not None
    check(njit(found.py_func), args)
