"""What generated code tells LLVM about memory, seen in the code that LLVM makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import numbarules as nr


@njit
def smoothed(u, w, steps):
    n, m = u.shape
    v = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = u[i - 1, j] * u[i + 1, j] + w * u[i, j - 1] - u[i, j + 1]
        for i in range(1, n - 1):
            for j in range(m):
                u[i, j] = v[i, j] + 0.5 * v[i - 1, j] * v[i + 1, j]
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j] * (1 + i + j)
    return s


@njit
def sweeping(u, w, steps):
    """Each row is written from the one that the iteration before wrote: rows that are separate only within an iteration."""
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(m):
                u[i, j] = 0.3 * u[i + 1, j] + w * u[i - 1, j]
                u[i + 1, j] = u[i + 1, j] * u[i, j]
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j] * (1 + i + j)
    return s


gradients = {f: nr.value_and_grad(f, argnums=(0, 1)) for f in (smoothed, sweeping)}


@pytest.mark.parametrize("f", gradients)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (7, 19), (5, 64)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_scattered_rows(f, shape, order) -> None:
    """Against differences along a direction; widths below, at and above that of a vector."""
    rng = np.random.default_rng(7)
    u = np.array(rng.uniform(0.2, 0.8, shape), order=order)
    du = rng.normal(size=shape)
    value, (u_bar, w_bar) = gradients[f](u, 0.4, 3)
    assert value == f(u.copy(order="K"), 0.4, 3)
    h = 1e-6
    ahead, back = (f(np.array(u + s * h * du, order=order), 0.4 + s * h, 3) for s in (1, -1))
    assert np.sum(u_bar * du) + w_bar == pytest.approx((ahead - back) / (2 * h), rel=1e-6)


def test_no_check_at_run_time_stands_before_loops_over_rows() -> None:
    """LLVM's own check of the rows compares all iterations of the outer loop at once, and never lets the vectors run."""
    gradients[smoothed](np.ones((4, 4)), 0.4, 1)
    gradient = gradients[smoothed]
    (code,) = (gradient.inspect_llvm(s) for s in gradient.signatures if s[0].layout == "C")
    assert "vector.body" in code
    assert "vector.memcheck" not in code


@njit(error_model="numpy")  # an option of its own: called, not inlined before LLVM does it
def scaled(a, b, x):
    a[0] = x * b[0]


def once(x):
    a = np.empty(2)
    a[0] = x
    scaled(a, a, x)
    return a[0]


def test_scopes_of_a_function_that_llvm_inlines_are_not_those_of_its_caller() -> None:
    """By number they are the same, and what the callee stored was not seen by the caller's load."""
    assert nr.grad(once)(1.3) == pytest.approx(2.6, rel=1e-14)
