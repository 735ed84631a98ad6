"""The derivatives of the logarithm of the gamma function, which neither Python nor Numba has.

Identities are from the NIST Digital Library of Mathematical Functions (DLMF, https://dlmf.nist.gov), chapter 5.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["digamma", "polygamma"]


@njit(error_model="numpy")
def digamma(x):  # type: ignore[no-untyped-def]
    """psi(x), the derivative of log |gamma(x)|; NaN at 0, -1, -2, ...

    Reflection (DLMF 5.5.4) below 1/2, recurrence (5.5.2) up to 10, there the asymptotic series (5.11.2).
    """
    if x <= 0.0 and np.floor(x) == x:
        return math.nan
    shift = 0.0
    if x < 0.5:
        fraction = x - np.rint(x)  # tan has period pi: without this, pi x would lose the digits of a large x
        shift = -math.pi / math.tan(math.pi * fraction)
        x = 1.0 - x
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (
        1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32760.0 - r / 12.0)))))
    )
    return shift + math.log(x) - 0.5 / x - series


@njit(error_model="numpy")
def polygamma(n, x):  # type: ignore[no-untyped-def]
    """The n-th derivative of `digamma` at x, n = 1, 2, ...; NaN at 0, -1, -2, ... and below -10^4, which the recurrence does not walk.

    Recurrence (DLMF 5.15.5) up to 12 + n, there the asymptotic series (5.15.8 and its derivatives): with the sign (-1)^(n+1),
    (n-1)!/x^n + n!/(2 x^(n+1)) + sum over k of B_2k (2k+n-1)!/((2k)! x^(2k+n)).
    """
    if n < 1 or x < -1e4 or x != x or (x <= 0.0 and np.floor(x) == x):
        return math.nan
    factorial = 1.0  # (n-1)!
    for i in range(2, n):
        factorial *= i
    total = 0.0
    while x < 12.0 + n:
        total += factorial * n / x ** (n + 1)
        x += 1.0
    total += factorial / x**n + 0.5 * factorial * n / x ** (n + 1)
    term = 0.5 * factorial * n * (n + 1) / x ** (n + 2)  # (2k+n-1)!/((2k)! x^(2k+n)) at k = 1
    k = 1
    for b in (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510):
        total += b * term
        term *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2) * x * x)
        k += 1
    return total if n % 2 == 1 else -total
