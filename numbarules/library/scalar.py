"""The rules of functions of real scalars: `math`, the operators, the builtins, and the scalar ufuncs that Numba supports.

A partial is `(y, *args) -> dy/darg`, plain code that Numba compiles and that is made of functions with rows here, so that it can be
differentiated again. It divides by IEEE rules. Reused where cheaper: the result y. Conventions, each with a test:

- a bounded derivative, subgradient or limit is taken where there is one: abs, hypot, sinc, copysign at 0: 0; max, min at a tie: 1/2 each;
- `guard=True`: the partial is truly infinite or NaN somewhere (sqrt, log, / at 0), and a zero cotangent then contributes zero;
- piecewise constant functions have derivative 0 everywhere, jumps included;
- NaN in gives NaN out, except through an argument that a function ignores (fmax).

Identities are from the NIST Digital Library of Mathematical Functions (DLMF, https://dlmf.nist.gov), chapters 4, 5 and 7.
"""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from numbarules.rules.patterns import Real
from numbarules.rules.register import alias, non_differentiable, rrule, scalar_rule

from .gamma import digamma, polygamma

__all__: list[str] = []

LN2 = math.log(2.0)
LN10 = math.log(10.0)
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
DEGREE = math.pi / 180.0


def _also(row: Any, *names: Any) -> None:
    for name in names:
        alias(name, row)


# Arithmetic -----------------------------------------------------------------------------------------------------------

scalar_rule(operator.add, lambda y, a, b: 1.0, lambda y, a, b: 1.0, at=((1.3, -0.4),))
_also(operator.add, operator.iadd, np.add)

scalar_rule(operator.sub, lambda y, a, b: 1.0, lambda y, a, b: -1.0, at=((1.3, -0.4),))
_also(operator.sub, operator.isub, np.subtract)

scalar_rule(operator.mul, lambda y, a, b: b, lambda y, a, b: a, at=((1.3, -0.4), (0.0, 2.0)))
_also(operator.mul, operator.imul, np.multiply)

# d(a/b)/db = -(a/b)/b, with the 1/b of the other partial. Infinite or NaN at b = 0.
scalar_rule(operator.truediv, lambda y, a, b: 1.0 / b, lambda y, a, b: -y * (1.0 / b), at=((1.3, -0.4), (0.0, 2.0)), guard=True)
_also(operator.truediv, operator.itruediv, np.true_divide)

scalar_rule(np.reciprocal, lambda y, x: -y * y, at=(1.3, -0.4), guard=True)

scalar_rule(operator.neg, lambda y, x: -1.0, at=(1.3,))
_also(operator.neg, np.negative)

scalar_rule(operator.pos, lambda y, x: 1.0, at=(1.3,))
_also(operator.pos, np.positive, np.conjugate)

# Conversions between floats are the identity.
scalar_rule(builtins.float, lambda y, x: 1.0, at=(1.3,))
_also(builtins.float, np.float64, np.float32)

scalar_rule(np.square, lambda y, x: 2.0 * x, at=(1.3, -0.4, 0.0))


# Powers ---------------------------------------------------------------------------------------------------------------


# p x^(p-1), DLMF 4.2.26 and for negative x and integer p. At x = 0: 0 for p = 0 (x^0 is constant), 1 for p = 1, 0 for p > 1, infinite
# for other p.
def power_base(y, x, p):  # type: ignore[no-untyped-def]
    return p * x ** (p - 1) if x != 0 or p != 0 else 0.0


# y log x. At x = 0: 0 for p > 0, where x^p is 0 for all exponents near p; -inf for p <= 0. NaN for x < 0, where only isolated exponents
# give reals.
def power_exponent(y, x, p):  # type: ignore[no-untyped-def]
    if x > 0:
        return y * math.log(x)
    if x == 0:
        return 0.0 if p > 0 else -math.inf
    return math.nan


scalar_rule(
    operator.pow,
    power_base,
    power_exponent,
    at=((1.3, 2.7), (0.4, -1.2), (2.0, 0.5), (2.5, 0.0)),
    guard=True,
    doc="d/dx at x = 0: 0 for p = 0 and p > 1, 1 for p = 1, else inf. d/dp at x = 0: 0 for p > 0. No logarithm in d/dx.",
)
scalar_rule(operator.pow, lambda y, x, p: 2.0 * x, None, patterns=(Real, 2), at=((1.3, 2), (-0.4, 2)))
scalar_rule(operator.pow, lambda y, x, p: 3.0 * x * x, None, patterns=(Real, 3), at=((1.3, 3), (-0.4, 3)))
scalar_rule(operator.pow, lambda y, x, p: 4.0 * x * x * x, None, patterns=(Real, 4), at=((1.3, 4), (-0.4, 4)))
_also(operator.pow, operator.ipow, builtins.pow, math.pow, np.power, np.float_power)

# 1/(2y): infinite at 0.
scalar_rule(math.sqrt, lambda y, x: 0.5 / y, at=(1.3, 0.02), guard=True)
_also(math.sqrt, np.sqrt)

# 1/(3y^2): infinite at 0.
scalar_rule(np.cbrt, lambda y, x: 1.0 / (3.0 * y * y), at=(1.3, -0.4), guard=True)

# (a, b)/y, and (0, 0) at the origin: of the subgradients, which fill the unit disc, the shortest.
scalar_rule(
    math.hypot,
    lambda y, a, b: a / y if y != 0 else 0.0,
    lambda y, a, b: b / y if y != 0 else 0.0,
    at=((3.0, -4.0), (0.0, 2.0)),
    doc="0 at the origin",
)
_also(math.hypot, np.hypot)


# Exponentials and logarithms ------------------------------------------------------------------------------------------

scalar_rule(math.exp, lambda y, x: y, at=(1.3, -0.4))
_also(math.exp, np.exp)

scalar_rule(np.exp2, lambda y, x: y * LN2, at=(1.3, -0.4))
if hasattr(math, "exp2"):  # from Python 3.11
    _also(np.exp2, math.exp2)

# exp(x), not y + 1, which has no correct digit for x < -37.
scalar_rule(math.expm1, lambda y, x: math.exp(x), at=(1.3, -0.4, -40.0))
_also(math.expm1, np.expm1)

# 1/x, DLMF 4.2.10 (log): infinite at 0.
scalar_rule(math.log, lambda y, x: 1.0 / x, at=(1.3, 0.04), guard=True)
_also(math.log, np.log)

scalar_rule(math.log2, lambda y, x: 1.0 / (x * LN2), at=(1.3, 0.04), guard=True)
_also(math.log2, np.log2)

scalar_rule(math.log10, lambda y, x: 1.0 / (x * LN10), at=(1.3, 0.04), guard=True)
_also(math.log10, np.log10)

scalar_rule(math.log1p, lambda y, x: 1.0 / (1.0 + x), at=(1.3, -0.4), guard=True)
_also(math.log1p, np.log1p)


# exp(a - y): the weight of a in exp(a) + exp(b). Where y is infinite, the limit: all weight on the larger, 1/2 each where both are -inf
# (or inf).
def logaddexp_first(y, a, b):  # type: ignore[no-untyped-def]
    if math.isinf(y):
        return 1.0 if a > b else (0.5 if a == b else 0.0)
    return math.exp(a - y)


def logaddexp_second(y, a, b):  # type: ignore[no-untyped-def]
    if math.isinf(y):
        return 1.0 if b > a else (0.5 if a == b else 0.0)
    return math.exp(b - y)


def logaddexp2_first(y, a, b):  # type: ignore[no-untyped-def]
    if math.isinf(y):
        return 1.0 if a > b else (0.5 if a == b else 0.0)
    return np.exp2(a - y)


def logaddexp2_second(y, a, b):  # type: ignore[no-untyped-def]
    if math.isinf(y):
        return 1.0 if b > a else (0.5 if a == b else 0.0)
    return np.exp2(b - y)


scalar_rule(
    np.logaddexp,
    logaddexp_first,
    logaddexp_second,
    at=((1.3, -0.4), (0.2, 0.2)),
    doc="weights 1 and 0 where one is inf, 1/2 each where both are -inf or inf",
)
scalar_rule(np.logaddexp2, logaddexp2_first, logaddexp2_second, at=((1.3, -0.4), (0.2, 0.2)), doc="as logaddexp")


# Circular functions (DLMF 4.20, 4.24) ---------------------------------------------------------------------------------

scalar_rule(math.sin, lambda y, x: math.cos(x), at=(1.3, -0.4))
_also(math.sin, np.sin)

scalar_rule(math.cos, lambda y, x: -math.sin(x), at=(1.3, -0.4))
_also(math.cos, np.cos)

scalar_rule(math.tan, lambda y, x: 1.0 + y * y, at=(1.3, -0.4))
_also(math.tan, np.tan)

# 1/sqrt(1 - x^2), factored so that nothing cancels near 1: infinite at 1 and -1.
scalar_rule(math.asin, lambda y, x: 1.0 / math.sqrt((1.0 - x) * (1.0 + x)), at=(0.3, -0.95), guard=True)
_also(math.asin, np.arcsin)

scalar_rule(math.acos, lambda y, x: -1.0 / math.sqrt((1.0 - x) * (1.0 + x)), at=(0.3, -0.95), guard=True)
_also(math.acos, np.arccos)

scalar_rule(math.atan, lambda y, x: 1.0 / (1.0 + x * x), at=(1.3, -0.4))
_also(math.atan, np.arctan)

# (b, -a)/(a^2 + b^2): unbounded at the origin.
scalar_rule(
    math.atan2,
    lambda y, a, b: b / (a * a + b * b),
    lambda y, a, b: -a / (a * a + b * b),
    at=((1.3, -0.4), (-0.2, 0.7), (0.5, 0.0)),
    guard=True,
)
_also(math.atan2, np.arctan2)

scalar_rule(math.radians, lambda y, x: DEGREE, at=(40.0,))
_also(math.radians, np.radians, np.deg2rad)

scalar_rule(math.degrees, lambda y, x: 1.0 / DEGREE, at=(0.7,))
_also(math.degrees, np.degrees, np.rad2deg)


# sin(t)/t with t = pi x has the derivative (cos t - y)/x, which cancels near 0: there its series, sum over k of (-1)^k 2k
# t^(2k-1)/(2k+1)! times pi.
def sinc_partial(y, x):  # type: ignore[no-untyped-def]
    t = math.pi * x
    if abs(t) > 0.5:
        return (math.cos(t) - y) / x
    s = t * t
    return -math.pi * t * (1.0 / 3.0 - s * (1.0 / 30.0 - s * (1.0 / 840.0 - s * (1.0 / 45360.0 - s * (1.0 / 3991680.0 - s / 518918400.0)))))


scalar_rule(np.sinc, sinc_partial, at=(1.3, -0.4, 0.1, 1e-5), doc="0 at 0")


# Hyperbolic functions (DLMF 4.34, 4.38) -------------------------------------------------------------------------------

scalar_rule(math.sinh, lambda y, x: math.cosh(x), at=(1.3, -0.4))
_also(math.sinh, np.sinh)

scalar_rule(math.cosh, lambda y, x: math.sinh(x), at=(1.3, -0.4))
_also(math.cosh, np.cosh)

scalar_rule(math.tanh, lambda y, x: 1.0 - y * y, at=(1.3, -0.4))
_also(math.tanh, np.tanh)

scalar_rule(math.asinh, lambda y, x: 1.0 / math.sqrt(1.0 + x * x), at=(1.3, -0.4))
_also(math.asinh, np.arcsinh)

# 1/sqrt(x^2 - 1), factored; the square roots apart, so that an x outside the domain gives NaN. Infinite at 1.
scalar_rule(math.acosh, lambda y, x: 1.0 / (math.sqrt(x - 1.0) * math.sqrt(x + 1.0)), at=(1.3, 1.001), guard=True)
_also(math.acosh, np.arccosh)

scalar_rule(math.atanh, lambda y, x: 1.0 / ((1.0 - x) * (1.0 + x)), at=(0.3, -0.95), guard=True)
_also(math.atanh, np.arctanh)


# Error and gamma functions --------------------------------------------------------------------------------------------

# DLMF 7.2.1, 7.2.2
scalar_rule(math.erf, lambda y, x: TWO_OVER_SQRT_PI * math.exp(-x * x), at=(0.7, -0.4))
scalar_rule(math.erfc, lambda y, x: -TWO_OVER_SQRT_PI * math.exp(-x * x), at=(0.7, -0.4))

scalar_rule(digamma, lambda y, x: polygamma(1, x), at=(1.3, 7.5, 0.2, -0.4, -3.3), guard=True)
scalar_rule(polygamma, None, lambda y, n, x: polygamma(n + 1, x), at=((1, 1.3), (2, 0.4), (3, 20.5), (1, -0.4)), guard=(False, True))

# gamma' = gamma psi (DLMF 5.2.2); (log |gamma|)' = psi, NaN at the poles.
scalar_rule(math.gamma, lambda y, x: y * digamma(x), at=(1.3, 4.7, -0.4), guard=True)
scalar_rule(math.lgamma, lambda y, x: digamma(x), at=(1.3, 40.7, 0.02, -0.4, -3.3), guard=True)


# Kinks: absolute value, sign, maximum and minimum ---------------------------------------------------------------------

# sign(x), which is 0 at 0 and NaN for NaN.
scalar_rule(builtins.abs, lambda y, x: np.sign(x), at=(1.3, -0.4), doc="0 at 0")
_also(builtins.abs, math.fabs, np.absolute, np.fabs)

# |x| with the sign of s: 0 at x = 0, where |x| has its kink. Constant in s wherever it is continuous.
scalar_rule(
    math.copysign,
    lambda y, x, s: np.sign(x) * math.copysign(1.0, s),
    lambda y, x, s: 0.0,
    at=((1.3, -0.4), (-1.3, -0.4), (-1.3, 0.4)),
    doc="0 at x = 0",
)
_also(math.copysign, np.copysign)

# max, min: all weight on the value taken, equal weights at a tie, so that max(x, x) has the derivative 1. Comparisons with NaN are
# false: as in Numba and Python, the first argument is the result then.
scalar_rule(
    builtins.max,
    lambda y, a, b: 0.0 if b > a else (0.5 if a == b else 1.0),
    lambda y, a, b: 1.0 if b > a else (0.5 if a == b else 0.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)
scalar_rule(
    builtins.min,
    lambda y, a, b: 0.0 if b < a else (0.5 if a == b else 1.0),
    lambda y, a, b: 1.0 if b < a else (0.5 if a == b else 0.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)


# Three and four arguments: an equal share for each that equals the result. Where the result is NaN, so are the shares.
for _extremum in (builtins.max, builtins.min):
    scalar_rule(
        _extremum,
        lambda y, a, b, c: (a == y) / ((a == y) + (b == y) + (c == y)),
        lambda y, a, b, c: (b == y) / ((a == y) + (b == y) + (c == y)),
        lambda y, a, b, c: (c == y) / ((a == y) + (b == y) + (c == y)),
        at=((1.3, -0.4, 2.0), (-0.4, 1.3, 0.2), (1.3, 0.4, 0.1)),
        doc="equal weights at a tie",
    )
    scalar_rule(
        _extremum,
        lambda y, a, b, c, d: (a == y) / ((a == y) + (b == y) + (c == y) + (d == y)),
        lambda y, a, b, c, d: (b == y) / ((a == y) + (b == y) + (c == y) + (d == y)),
        lambda y, a, b, c, d: (c == y) / ((a == y) + (b == y) + (c == y) + (d == y)),
        lambda y, a, b, c, d: (d == y) / ((a == y) + (b == y) + (c == y) + (d == y)),
        at=((1.3, -0.4, 2.0, 0.7), (-0.4, 1.3, 0.2, 0.1), (1.3, 0.4, 0.1, 0.2), (0.1, 0.2, 0.3, 0.4)),
        doc="equal weights at a tie",
    )

# np.maximum and np.minimum give a NaN argument, the first of two: all weight on it.
scalar_rule(
    np.maximum,
    lambda y, a, b: 1.0 if a > b or a != a else (0.5 if a == b else 0.0),
    lambda y, a, b: 0.0 if a > b or a != a else (0.5 if a == b else 1.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)
scalar_rule(
    np.minimum,
    lambda y, a, b: 1.0 if a < b or a != a else (0.5 if a == b else 0.0),
    lambda y, a, b: 0.0 if a < b or a != a else (0.5 if a == b else 1.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)

# np.fmax and np.fmin ignore a NaN where the other argument is a number: all weight on that one.
scalar_rule(
    np.fmax,
    lambda y, a, b: 1.0 if a > b or b != b else (0.5 if a == b else 0.0),
    lambda y, a, b: 0.0 if a > b or b != b else (0.5 if a == b else 1.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)
scalar_rule(
    np.fmin,
    lambda y, a, b: 1.0 if a < b or b != b else (0.5 if a == b else 0.0),
    lambda y, a, b: 0.0 if a < b or b != b else (0.5 if a == b else 1.0),
    at=((1.3, -0.4), (-0.4, 1.3)),
    doc="1/2 each at a tie",
)


# Remainders and floating point representation -------------------------------------------------------------------------

# y = a - b q with q piecewise constant: dy/db = -q, that is -floor(a/b) for mod and -trunc(a/b) for fmod. Taken from y, q agrees with
# the y that was computed: 1.0 % 0.1 is 0.0999..., so q is 9, while floor(1.0 / 0.1) is 10. At a jump: the side on which y is.
scalar_rule(
    operator.mod,
    lambda y, a, b: 1.0,
    lambda y, a, b: -np.rint((a - y) / b),
    at=((1.3, 0.4), (-19.5, 3.0), (-0.4, -0.3)),
    guard=(False, True),
)
_also(operator.mod, operator.imod, np.remainder)
scalar_rule(
    np.fmod, lambda y, a, b: 1.0, lambda y, a, b: -np.rint((a - y) / b), at=((1.3, 0.4), (-19.5, 3.0), (-0.4, 0.3)), guard=(False, True)
)


# (q, r) = divmod(a, b): only r has a derivative, that of mod.
@rrule(builtins.divmod, at=[(7.3, 2.1), (-7.3, 2.1)])
def divmod_rule(a: Real, b: Real):  # type: ignore[no-untyped-def]
    q, r = divmod(a, b)  # type: ignore[operator]

    def divmod_pullback(ybar):  # type: ignore[no-untyped-def]
        return ybar[1], -ybar[1] * q

    return (q, r), divmod_pullback


alias(np.divmod, builtins.divmod)

# y = x 2^n with an integer n.
scalar_rule(math.ldexp, lambda y, x, n: math.ldexp(1.0, n), None, at=((1.3, 3), (-0.4, -2)))
_also(math.ldexp, np.ldexp)


# x = m 2^e: m moves with x, by 2^-e; e is an integer.
@rrule(math.frexp, at=[3.3, -0.2])
def frexp_rule(x: Real):  # type: ignore[no-untyped-def]
    m, e = math.frexp(x)  # type: ignore[arg-type]

    def frexp_pullback(ybar):  # type: ignore[no-untyped-def]
        return ybar[0] * math.ldexp(1.0, -e)

    return (m, e), frexp_pullback


# Derivative 0 everywhere ----------------------------------------------------------------------------------------------

_STEPS: tuple[Any, ...] = (
    *(np.sign, np.floor, np.ceil, np.trunc, np.rint, np.round, np.spacing, np.floor_divide),
    *(math.floor, math.ceil, math.trunc, builtins.round, builtins.int, operator.floordiv, operator.ifloordiv),
)
_PREDICATES: tuple[Any, ...] = (
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.is_, operator.is_not, operator.not_, operator.truth, builtins.bool),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
    *(np.logical_and, np.logical_or, np.logical_xor, np.logical_not),
    *(math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf, np.isfinite, np.signbit),
)
for _step in (*_STEPS, *_PREDICATES):
    non_differentiable(_step)
if np.around is not np.round:  # the same object or not, by NumPy version
    non_differentiable(np.around)
