"""Loops that do both sweeps at once, and those that must not."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import numbarules as nr


@njit
def partial_sums_read_by_another_sum(x):
    s = 0.0
    z = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        z += s * x[i]
    return s + z


@njit
def inner_sum_read_by_the_outer_loop(x):
    s = 0.0
    z = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            s += x[i] * x[j]
        z += s
    return z


@njit
def difference_the_other_way_round(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = x[i] * x[i] - s
    return s


@njit
def sum_in_one_branch(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            s -= x[i] * x[i]
    return s * 2.0


@njit
def read_again_after_a_store(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    for i in range(x.shape[0]):
        x[i] = s * x[i]
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@njit
def one_cotangent_known_before_and_one_only_behind(x):
    s = 0.0
    z = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        z += x[i] * x[i]
    return s * 2.0 + s * 3.0 + np.sin(z)


PROGRAMS = [
    one_cotangent_known_before_and_one_only_behind,
    partial_sums_read_by_another_sum,
    inner_sum_read_by_the_outer_loop,
    difference_the_other_way_round,
    sum_in_one_branch,
    read_again_after_a_store,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_against_differences(f):
    x = np.array([0.3, 0.5, -0.2])
    expected = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(nr.grad(f)(x), expected, rtol=1e-8)


@njit(fastmath=True)
def decided_by_floats(x):
    s = 0.0
    y = 1.0
    for i in range(x.shape[0]):
        y = y * x[i] * 3.0 + 0.1
        if y * 0.7 > 0.2:
            y = y * 0.5
            s += y * y
    return s


def test_with_fastmath_a_branch_decided_by_floats_is_written_down():
    x = np.linspace(0.1, 0.9, 40)
    expected = [(decided_by_floats(x + h) - decided_by_floats(x - h)) / 2e-6 for h in 1e-6 * np.eye(40)]
    np.testing.assert_allclose(nr.grad(decided_by_floats)(x), expected, rtol=1e-5, atol=1e-7)
