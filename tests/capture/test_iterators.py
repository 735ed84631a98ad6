"""Iterators that stand on their own, and the builtins that run through iterables: against differences, and against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from test_language import check

import numbarules as nr

pytestmark = pytest.mark.filterwarnings("ignore")

V = np.array([0.4, 1.3, -0.7, 2.1, 0.9])
M = np.array([[0.3, 1.2, 2.0], [0.7, 0.1, 1.5]])


@njit
def positions(x, n):
    it = iter(x)
    s = 2.0 * next(it)
    for _ in range(2):  # the second time nothing is left
        for v in it:
            s += v * v
            if n > 0:
                s *= next(it)
    pairs = enumerate(x * x)
    for k, v in pairs:
        s += v * (k + 1)
        if k == 1:
            break
    for k, v in pairs:  # goes on behind the break
        s += v * v * (10 + k)
    both, t = zip(x, x[1:]), 0.0  # noqa: RUF007 - Numba has no `pairwise`
    while t < 1.0:
        a, b = next(both)
        t += 0.6 + 0.0 * a
        s += a * b
    return s


@njit
def plain_positions(x, n):
    s, k = 2.0 * x[0], 1
    while k < x.shape[0]:
        s += x[k] * x[k]
        k += 1
        if n > 0:
            s *= x[k]
            k += 1
    for k in range(2):
        s += x[k] * x[k] * (k + 1)
    for k in range(2, x.shape[0]):
        s += x[k] ** 4 * (10 + k)
    return s + x[0] * x[1] + x[1] * x[2]


@pytest.mark.parametrize("n", [0, 1])
def test_an_iterator_keeps_its_position(n: int) -> None:
    check(positions, V, n)
    value, gradient = nr.value_and_grad(plain_positions)(V, n)
    assert abs(positions(V, n) - value) < 1e-12
    np.testing.assert_allclose(nr.grad(positions)(V, n), gradient, rtol=1e-12)


def test_an_iterator_that_is_used_up_raises() -> None:
    @njit
    def three(x):
        it = iter(x)
        return next(it) * next(it) * next(it)

    check(three, V[:3])
    for f in (three, nr.grad(three)):
        with pytest.raises(StopIteration):
            f(V[:2])


@njit
def grids(M, T, x, n):
    s = 0.0
    for i, v in np.ndenumerate(M):
        s += v * v * (i[0] + 1) * M[1, i[1]]
    for (i, j), v in np.ndenumerate(M.T):
        if i == j:
            continue
        s += np.sin(v) * x[i]
    for i in np.ndindex(T.shape):
        s += T[i] ** 2 * M[i[0], i[2]]
    grid = np.ndindex(2, 3)
    for i, j in grid:
        if i * 3 + j == n:
            break
        s *= 1.0 + 0.1 * M[i, j]
    for i, j in grid:  # goes on behind the break
        s += M[i, j] ** 3
    for k, (i, v) in enumerate(np.ndenumerate(M)):
        s += (k + 1) * v * M[i] * M[0, 0]
    for (i,), v in np.ndenumerate(x):
        s += v * x[-1 - i]
    for _, v in np.ndenumerate(T[0, 0, :0]):
        s += v
    W = np.zeros_like(M)
    for i in np.ndindex(M.shape):
        W[i] = s * M[i]
        s += 0.01 * W[i] * W[0, 0]
    return s


@njit
def plain_grids(M, T, x, n):
    s = 0.0
    for i in range(2):
        for j in range(3):
            s += M[i, j] ** 2 * (i + 1) * M[1, j]
    for i in range(3):
        for j in range(2):
            if i != j:
                s += np.sin(M[j, i]) * x[i]
    for i in range(2):
        for j in range(4):
            for k in range(3):
                s += T[i, j, k] ** 2 * M[i, k]
    for k in range(min(n, 6)):
        s *= 1.0 + 0.1 * M[k // 3, k % 3]
    for k in range(n + 1, 6):
        s += M[k // 3, k % 3] ** 3
    for k in range(6):
        s += (k + 1) * M[k // 3, k % 3] ** 2 * M[0, 0]
    for i in range(x.shape[0]):
        s += x[i] * x[x.shape[0] - 1 - i]
    W = np.zeros((2, 3))
    for i in range(2):
        for j in range(3):
            W[i, j] = s * M[i, j]
            s += 0.01 * W[i, j] * W[0, 0]
    return s


def test_grids() -> None:
    T = np.linspace(0.2, 1.4, 24).reshape(2, 4, 3)
    check(grids, M, T, V, 4)
    plain = nr.grad(plain_grids, argnums=(0, 1, 2))
    for n in (0, 4, 9):
        assert abs(grids(M, T, V, n) - plain_grids(M, T, V, n)) < 1e-9
        for got, wanted in zip(nr.grad(grids, argnums=(0, 1, 2))(M, T, V, n), plain(M, T, V, n), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10)


@njit
def builtins(x, M, a, t):
    s = sum(x * x) + sum(x, a) * max(x) + min(x) * min(M[0] * M[1]) + max((a * a, t[0], t[1])) * min(t)
    s += sum(t, a) + sum((a, a * t[0]), 2) + sum(t) * sum(x, start=3)
    return s + np.sum(np.array([v * v for v in x]) * x) + np.sum(np.array([np.sum(r) ** 2 for r in M]) * M[:, 0])


def plain_builtins(x: Any, M: Any, a: Any, t: Any) -> Any:
    s = np.sum(x * x) + (np.sum(x) + a) * np.max(x) + np.min(x) * np.min(M[0] * M[1]) + max(a * a, t[0], t[1]) * min(t[0], t[1])
    s += t[0] + t[1] + a + a + a * t[0] + 2 + (t[0] + t[1]) * (np.sum(x) + 3.0)
    return s + np.sum(x**3) + np.sum(np.sum(M, axis=1) ** 2 * M[:, 0])


def test_builtins_of_iterables() -> None:
    args = (V, M, 1.7, (0.6, 2.2))
    check(builtins, *args)
    value, gradients = nr.value_and_grad(plain_builtins, argnums=(0, 1, 2))(*args)
    assert abs(builtins(*args) - value) < 1e-12
    for got, wanted in zip(nr.grad(builtins, argnums=(0, 1, 2))(*args), gradients, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@njit
def unpacked(p, M, T, n):
    a, b, c = p
    row, other = M
    (d, _), (e, f) = zip(p[:2], M[0, 1:])
    (i, g), (j, h) = enumerate(p[1:])
    (plane,) = T[:1]
    u, v = plane[:, 0]
    rest = iter(p)
    s = next(rest) ** 2
    y, z = rest
    s += a * b / c + np.sum(row * other) * d * e * f + g * (i + 1) + h * h * (j + 5) + u * v + y * z
    p[0] = 7.0  # the names have been bound
    for _ in range(n):
        a, b, c = np.array([b, c * a, a])
    k, m = range(2)
    return s * a + b * c + (k + m) * p[0]


@njit
def plain_unpacked(p, M, T, n):
    a, b, c = p[0], p[1], p[2]
    s = a**2 + a * b / c + np.sum(M[0] * M[1]) * a * b * M[0, 2] + b + c * c * 6 + T[0, 0, 0] * T[0, 1, 0] + b * c
    for _ in range(n):
        a, b, c = b, c * a, a
    return s * a + b * c + 7.0


@njit
def too_few_or_many(p):
    a, b = p
    return a * b


def test_unpacking_what_is_no_tuple() -> None:
    T = np.linspace(0.2, 1.4, 8).reshape(2, 2, 2)
    p = V[:3].copy()
    for n in (0, 3):
        value, gradients = nr.value_and_grad(unpacked, argnums=(0, 1, 2))(p, M, T, n)
        assert max(abs(value - unpacked(p.copy(), M, T, n)), abs(value - plain_unpacked(p, M, T, n))) < 1e-12
        for got, wanted in zip(gradients, nr.grad(plain_unpacked, argnums=(0, 1, 2))(p, M, T, n), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    check(too_few_or_many, V[:2].copy())
    for size in (0, 1, 3):
        with pytest.raises(ValueError, match=r"^$"):
            nr.grad(too_few_or_many)(V[:size])
