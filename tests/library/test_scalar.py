"""The partials of every scalar row, against mpmath at the sample points, and the conventions at kinks, ties and edges."""

from __future__ import annotations

import builtins
import math
import operator
import sys

import mpmath as mp
import numba
import numpy as np
import pytest
from numba import types

from numbarules.library import scalar
from numbarules.library.gamma import digamma, polygamma
from numbarules.rules import lookup, table
from numbarules.rules.table import show_key

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")

ROWS = [e for e in table.entries() if e.kind == "scalar" and e.origin.filename == scalar.__file__]
f8, f4, i8 = types.float64, types.float32, types.int64
inf, nan = math.inf, math.nan


def log_base(base):
    return lambda x: mp.log(x) / mp.log(base)


MPMATH = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.truediv: operator.truediv,
    operator.neg: operator.neg,
    operator.pos: operator.pos,
    operator.pow: mp.power,
    operator.mod: lambda a, b: a - b * mp.floor(a / b),
    np.fmod: lambda a, b: a - b * (mp.floor(a / b) if a / b > 0 else mp.ceil(a / b)),
    np.reciprocal: lambda x: 1 / x,
    builtins.float: lambda x: x,
    np.square: lambda x: x * x,
    math.sqrt: mp.sqrt,
    np.cbrt: lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    math.hypot: mp.hypot,
    math.exp: mp.exp,
    np.exp2: lambda x: mp.power(2, x),
    math.expm1: mp.expm1,
    math.log: mp.log,
    math.log2: log_base(2),
    math.log10: log_base(10),
    math.log1p: mp.log1p,
    np.logaddexp: lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
    np.logaddexp2: lambda a, b: mp.log(mp.power(2, a) + mp.power(2, b)) / mp.log(2),
    math.sin: mp.sin,
    math.cos: mp.cos,
    math.tan: mp.tan,
    math.asin: mp.asin,
    math.acos: mp.acos,
    math.atan: mp.atan,
    math.atan2: mp.atan2,
    math.radians: mp.radians,
    math.degrees: mp.degrees,
    np.sinc: lambda x: mp.sincpi(x),
    math.sinh: mp.sinh,
    math.cosh: mp.cosh,
    math.tanh: mp.tanh,
    math.asinh: mp.asinh,
    math.acosh: mp.acosh,
    math.atanh: mp.atanh,
    math.erf: mp.erf,
    math.erfc: mp.erfc,
    math.gamma: mp.gamma,
    math.lgamma: lambda x: mp.log(abs(mp.gamma(x))),
    digamma: mp.digamma,
    polygamma: lambda n, x: mp.polygamma(int(n), x),
    builtins.abs: abs,
    builtins.max: max,
    builtins.min: min,
    np.maximum: max,
    np.minimum: min,
    np.fmax: max,
    np.fmin: min,
    math.copysign: lambda x, s: abs(x) * mp.sign(s),
    math.ldexp: lambda x, n: x * mp.power(2, n),
}


def partial_of(f, types_, i):
    entry = lookup(f, *types_).entry
    assert entry is not None
    assert entry.kind == "scalar"
    return entry.payload.partials[i]


def compiled(f, types_, i):
    """The partial as generated code divides: by IEEE rules."""
    return numba.njit(error_model="numpy")(partial_of(f, types_, i))


@pytest.mark.parametrize("row", ROWS, ids=lambda e: e.signature)
def test_partials_at_the_sample_points(row):
    assert row.payload.at, "a row without sample points is not checked"
    reference = MPMATH[row.function]
    for point in row.payload.at:
        y = row.function(*point)
        assert float(reference(*map(mp.mpf, point))) == pytest.approx(float(y), rel=1e-13, abs=1e-300)
        for i, partial in enumerate(row.payload.partials):
            if partial is None:
                continue
            with mp.workdps(40):
                exact = [mp.mpf(v) for v in point]
                want = mp.diff(lambda v: reference(*exact[:i], v, *exact[i + 1 :]), exact[i], h=mp.mpf(10) ** -12)  # noqa: B023 - called before the loop goes on
            assert float(partial(y, *point)) == pytest.approx(float(want.real), rel=2e-12, abs=1e-12 if abs(want) > 1e-9 else 1e-15), (
                point,
                i,
            )


def test_no_row_lacks_sample_points_and_the_table_has_no_problem():
    assert len(ROWS) > 60
    assert [str(p) for p in table.check() if any(e.origin.package == "numbarules" for e in p.entries)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda e: e.signature)
def test_every_partial_compiles(row):
    arguments = tuple(i8 if isinstance(v, int) else f8 for v in row.payload.at[0])
    for i, partial in enumerate(row.payload.partials):
        if partial is None:
            continue
        jitted = numba.njit(error_model="numpy")(partial)
        jitted.compile((f8, *arguments))
        point = row.payload.at[0]
        y = row.function(*point)
        assert jitted(y, *point) == pytest.approx(float(partial(y, *point)), rel=1e-14), i


def functions_called(code, names):
    """The callables of math, NumPy and the module that a code object refers to by name."""
    for namespace in (vars(math), vars(np), names, vars(builtins)):
        yield from ((n, namespace[n]) for n in code.co_names if callable(namespace.get(n)))


@pytest.mark.parametrize("row", ROWS, ids=lambda e: e.signature)
def test_partials_are_made_of_functions_that_have_rows_themselves(row):
    for partial in filter(None, row.payload.partials):
        for name, function in functions_called(partial.__code__, partial.__globals__):
            assert lookup(function, f8).entry or lookup(function, f8, f8).entry or lookup(function, i8, f8).entry, name


# (function, arguments, index, derivative): what is written in the docstring of the module and at the rows
CONVENTIONS = [
    (operator.pow, (0.0, 0.0), 0, 0.0),
    (operator.pow, (0.0, 1.0), 0, 1.0),
    (operator.pow, (0.0, 2.5), 0, 0.0),
    (operator.pow, (0.0, 0.5), 0, inf),
    (operator.pow, (0.0, 2.5), 1, 0.0),
    (operator.pow, (0.0, 0.5), 1, 0.0),
    (operator.pow, (0.0, 0.0), 1, -inf),
    (operator.pow, (-2.0, 2.0), 0, -4.0),
    (operator.pow, (-2.0, -1.0), 0, -0.25),
    (operator.pow, (-2.0, 2.0), 1, nan),
    (operator.pow, (2.0, 0.0), 0, 0.0),
    (operator.pow, (nan, 2.0), 0, nan),
    (operator.truediv, (1.0, 0.0), 0, inf),
    (operator.truediv, (0.0, 2.0), 1, 0.0),
    (math.sqrt, (0.0,), 0, inf),
    (np.cbrt, (0.0,), 0, inf),
    (math.log, (0.0,), 0, inf),
    (math.log1p, (-1.0,), 0, inf),
    (math.asin, (1.0,), 0, inf),
    (math.acos, (-1.0,), 0, -inf),
    (math.acosh, (1.0,), 0, inf),
    (math.acosh, (nan,), 0, nan),
    (math.atanh, (1.0,), 0, inf),
    (math.hypot, (0.0, 0.0), 0, 0.0),
    (math.hypot, (0.0, 0.0), 1, 0.0),
    (math.hypot, (nan, 1.0), 1, nan),
    (math.atan2, (0.0, 0.0), 0, nan),
    (np.sinc, (0.0,), 0, 0.0),
    (builtins.abs, (0.0,), 0, 0.0),
    (builtins.abs, (nan,), 0, nan),
    (math.copysign, (0.0, -1.0), 0, 0.0),
    (math.copysign, (2.0, -0.0), 0, -1.0),
    (math.copysign, (2.0, -0.0), 1, 0.0),
    (np.logaddexp, (-inf, -inf), 0, 0.5),
    (np.logaddexp, (-inf, 1.0), 0, 0.0),
    (np.logaddexp, (-inf, 1.0), 1, 1.0),
    (np.logaddexp, (inf, 1.0), 0, 1.0),
    (np.logaddexp, (nan, 1.0), 0, nan),
    (np.logaddexp2, (-inf, -inf), 1, 0.5),
    (operator.mod, (1.0, 0.1), 1, -9.0),
    (operator.mod, (-19.5, 3.0), 1, 7.0),
    (np.fmod, (-19.5, 3.0), 1, 6.0),
    (math.gamma, (-1.0,), 0, nan),
    (math.lgamma, (0.0,), 0, nan),
    (math.tanh, (inf,), 0, 0.0),
    (math.atan, (-inf,), 0, 0.0),
]


@pytest.mark.parametrize(("f", "args", "i", "want"), CONVENTIONS, ids=lambda v: show_key(v) if callable(v) else str(v))
def test_conventions(f, args, i, want):
    try:
        y = float(f(*args))
    except (ArithmeticError, ValueError):  # Python raises where Numba, NumPy and IEEE give inf or NaN
        y = {operator.truediv: inf, math.log: -inf, math.log1p: -inf, math.atanh: inf, math.gamma: nan, math.lgamma: inf}[f]
    got = compiled(f, (f8,) * len(args), i)(y, *args)
    assert got == want or (math.isnan(got) and math.isnan(want))
    if not math.isfinite(want) and all(map(math.isfinite, args)):
        assert lookup(f, *(f8,) * len(args)).entry.payload.guard[i]


PAIRS = [(1.0, 1.0), (0.0, -0.0), (1.0, 2.0), (inf, inf), (nan, 1.0), (1.0, nan), (nan, nan)]


@pytest.mark.parametrize("f", [max, min, np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize("args", PAIRS)
def test_two_weights_sum_to_one(f, args):
    y = float(f(*args))
    weights = [partial_of(f, (f8, f8), i)(y, *args) for i in (0, 1)]
    assert sum(weights) == 1.0
    if args[0] == args[1]:
        assert weights == [0.5, 0.5]
    else:  # the weight is where the value comes from
        assert y == args[weights.index(1.0)] or (math.isnan(y) and math.isnan(args[weights.index(1.0)]))


@pytest.mark.parametrize("f", [max, min])
@pytest.mark.parametrize("args", [(1.0, 1.0, 1.0), (1.0, 2.0, 2.0), (1.0, 1.0, 2.0, 2.0), (3.0, 3.0, 3.0, 3.0)])
def test_several_weights_sum_to_one(f, args):
    partials = lookup(f, *(f8,) * len(args)).entry.payload.partials
    weights = [p(f(*args), *args) for p in partials]
    assert sum(weights) == pytest.approx(1.0)
    assert {w for w, a in zip(weights, args, strict=True) if a == f(*args)} == {1 / sum(a == f(*args) for a in args)}


def test_one_row_serves_all_names_of_a_function():
    assert lookup(np.sin, f8).entry is lookup(math.sin, f8).entry
    assert lookup(np.power, f4, f4).entry is lookup(operator.ipow, f8, f8).entry is lookup(pow, f8, f8).entry
    assert lookup(operator.iadd, f8, i8).entry is lookup(operator.add, f8, f8).entry
    assert lookup(operator.mul, f8, types.boolean).entry.kind == "scalar"
    if sys.version_info >= (3, 11):
        assert lookup(math.exp2, f8).entry is lookup(np.exp2, f8).entry


def test_integer_exponents_have_rows_of_their_own():
    square = lookup(operator.pow, f8, types.literal(2)).entry
    assert square is not lookup(operator.pow, f8, i8).entry
    assert square.payload.partials[0](9.0, 3.0, 2) == 6.0
    assert compiled(operator.pow, (f8, i8), 0)(-8.0, -2.0, 3) == 12.0


@pytest.mark.parametrize(
    "f", [np.floor, math.floor, round, np.round, np.around, np.sign, np.trunc, np.rint, operator.floordiv, operator.lt, int]
)
def test_steps_have_derivative_zero(f):
    assert lookup(f, *(f8,) * (2 if f in (operator.floordiv, operator.lt) else 1)).entry.kind == "non_differentiable"


@pytest.mark.parametrize(
    ("f", "types_"), [(np.nextafter, (f8, f8)), (math.nextafter, (f8, f8)), (math.sin, (types.complex128,)), (max, (f8,) * 5)]
)
def test_no_row_where_there_is_no_derivative_to_give(f, types_):
    assert lookup(f, *types_).entry is None


@pytest.mark.parametrize("x", [(7.3, 2.0), (-7.3, 2.0), (1.0, 0.1)])
def test_divmod(x):
    (q, r), pullback = scalar.divmod_rule(*x)
    assert (q, r) == divmod(*x)
    assert pullback((5.0, 2.0)) == (2.0, -2.0 * q)


def test_frexp():
    (m, e), pullback = scalar.frexp_rule(5.0)
    assert (m, e) == math.frexp(5.0)
    assert pullback((1.0, None)) == 0.125


def test_every_scalar_function_of_numba_has_an_entry():
    """Numba's own list of ufuncs, but for those of integers, dates and representation."""
    from numba.np import ufunc_db

    left_out = {"nextafter", "isnat", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "gcd", "lcm"}
    missing = [u.__name__ for u in ufunc_db.get_ufuncs() if u.__name__ not in left_out and lookup(u, *(f8,) * u.nin).entry is None]
    assert missing == []
