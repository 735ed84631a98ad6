"""When a copy of an array takes the place of values written down: one situation a case, with the copies and records that it gets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, types

import numbarules as nr
from numbarules.compile.gradient import Request, gradient_function
from numbarules.ir.nodes import Put, Snapshot, walk
from numbarules.ir.types import FLOAT64


def matrix_times_vector(W, x, m):
    """Each row reads the whole vector."""
    h = x * 1.0
    for _ in range(3):
        z = np.zeros(W.shape[0])
        for r in range(W.shape[0]):
            for k in range(x.shape[0]):
                z[r] += W[r, k] * h[k]
        for k in range(x.shape[0]):
            h[k] = z[k] + 0.5
    return h[0]


def rows_counted_by_a_value(W, x, m):
    """The rows may be none, and a copy more than all that is read."""
    h = x * 1.0
    s = 0.0
    for _ in range(3):
        for r in range(m):
            for k in range(x.shape[0]):
                s += W[r, k] * h[k]
        h[0] = s
    return s


def swept_over_once(W, x, m):
    """A copy would be as large as what is written down."""
    h = x * 1.0
    s = 0.0
    for _ in range(3):
        for k in range(x.shape[0]):
            s += h[k] * h[k]
        h[0] = s
    return s


def values_that_no_array_has(W, x, m):
    """The recurrence and its sine are written down whatever becomes of the array."""
    h = x * 1.0
    s = 0.0
    for _ in range(3):
        for r in range(W.shape[0]):
            for k in range(x.shape[0]):
                s = math.sin(s) * h[k]
        h[0] = s
    return s


# (function, copies, places where a float is written down)
CASES = [
    (matrix_times_vector, 1, 0),
    (rows_counted_by_a_value, 0, 1),
    (swept_over_once, 0, 1),
    (values_that_no_array_has, 1, 2),
]
ARGS = (types.float64[:, ::1], types.float64[::1], types.int64)


@pytest.mark.parametrize(("f", "copies", "records"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_snapshots(f: Callable[..., Any], copies: int, records: int) -> None:
    gradient = gradient_function(f, ARGS, Request((0, 1), True, ()))
    stmts = list(walk(gradient.region))
    assert sum(isinstance(s.op, Snapshot) for s in stmts) == copies
    assert sum(isinstance(s.op, Put) and s.args[2].type == FLOAT64 for s in stmts) == records


def test_a_copy_gives_the_values_of_its_time() -> None:
    """Against differences along a direction."""
    f = njit(matrix_times_vector)
    rng = np.random.default_rng(3)
    W, x, dW, dx = (rng.normal(size=s) for s in ((4, 4), 4, (4, 4), 4))
    W_bar, x_bar = nr.grad(f, argnums=(0, 1))(W, x, 2)
    h = 1e-6
    slope = (f(W + h * dW, x + h * dx, 2) - f(W - h * dW, x - h * dx, 2)) / (2 * h)
    assert np.sum(W_bar * dW) + x_bar @ dx == pytest.approx(slope, rel=1e-7)
