"""Calls that are not inlined hand over leaves: tuples taken apart and put together, defaults, further arguments, None."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import njit

import numbarules as nr

Pair = namedtuple("Pair", "a b")


@njit(error_model="numpy")  # an option of its own: not inlined
def parts(f, t, x, *more):
    return (f(x) * t[0], None, more[0]), more[1] * t[1][0]


@njit(error_model="numpy")
def scaled(p, n=None, w=2.0):
    return Pair(p.a * w, p.b + (0.0 if n is None else n))


@njit(error_model="numpy")
def store(a, x):
    a[0] = x * a[0]


@njit
def square(x):
    return x * x


def calls(x):
    a = np.ones(2) * x
    store(a, x)
    t, u = parts(square, (x, (x * x, 3)), x, np.float32(x), 2)
    p, q = scaled(Pair(x, 2.0 * x)), scaled(Pair(x, 2 * x), x, 3)
    return t[0] + t[2] + u + a[0] * p.a + p.b * q.a * q.b


def test_arguments_and_results_are_leaves() -> None:
    """x^3 + x + 2x^2 + x^2 2x + 2x 3x 3x"""
    assert nr.grad(calls)(1.25) == pytest.approx(63 * 1.25**2 + 4 * 1.25 + 1.0, rel=1e-12)
