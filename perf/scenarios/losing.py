"""Where opting out loses: a product by loops, whose rule calls BLAS, and an iteration, whose rule knows the implicit derivative."""

from typing import Any

import numpy as np
from numba import njit, types

import numbarules as nr
from perf.scenarios.scenario import Scenario, matrix_squares, rng, vector_cubes

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["LOOPS_PRODUCT", "ROOTS"]


@njit
def loops_product(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    return Y


def by_blas(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, B: nr.AbstractMatrix):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        Y = np.dot(A, B)

        def product_pullback(Ybar, Abar, Bbar):
            if Abar is not None:
                Abar += np.dot(np.ascontiguousarray(Ybar), B.T)
            if Bbar is not None:
                Bbar += np.dot(A.T, np.ascontiguousarray(Ybar))

        return Y, product_pullback

    return product_rule


@njit
def blas(A, B):
    return matrix_squares(loops_product(A, B))


@njit
def blas_pasted(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    return matrix_squares(Y)


@njit
def blas_by_hand(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    total = 0.0
    A_bar, B_bar = np.zeros_like(A), np.zeros_like(B)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total += Y[i, j] * Y[i, j]
        for k in range(A.shape[1]):
            s = 0.0
            for j in range(B.shape[1]):
                s += 2.0 * Y[i, j] * B[k, j]
                B_bar[k, j] += 2.0 * Y[i, j] * A[i, k]
            A_bar[i, k] = s
    return total, (A_bar, B_bar)


def blas_arguments(n: int) -> tuple[Any, ...]:
    return rng().normal(size=(n, n)), rng().normal(size=(n, n))


LOOPS_PRODUCT = Scenario(
    name="product by loops",
    function=loops_product,
    patterns=(types.float64[:, ::1], types.float64[:, ::1]),
    abstract=nr.AbstractMatrix,
    rule=by_blas,
    program=blas,
    pasted=blas_pasted,
    hand=blas_by_hand,
    arguments=blas_arguments,
    argnums=(0, 1),
    largest=256,
    pays=False,
)


@njit
def newton_roots(x):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z = 1.0
        for _ in range(12):
            z = 0.5 * (z + x[i] / z)
        y[i] = z
    return y


def implicit(kind: Any, special: Any, at_run_time: bool) -> Any:
    def root_rule(x: kind):
        if nr.is_a(x, special):
            return None
        if at_run_time:
            if x.shape[0] > 0:
                return None
        y = newton_roots(x)

        def root_pullback(ybar):
            return 0.5 * ybar / y

        return y, root_pullback

    return root_rule


@njit
def roots(x):
    return vector_cubes(newton_roots(x))


@njit
def roots_pasted(x):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z = 1.0
        for _ in range(12):
            z = 0.5 * (z + x[i] / z)
        y[i] = z
    return vector_cubes(y)


@njit
def roots_by_hand(x):
    x_bar = np.empty(x.shape[0])
    steps = np.empty(13)
    total = 0.0
    for i in range(x.shape[0]):
        steps[0] = 1.0
        for k in range(12):
            steps[k + 1] = 0.5 * (steps[k] + x[i] / steps[k])
        z = steps[12]
        total += z * z * z
        z_bar = 3.0 * z * z
        s = 0.0
        for k in range(11, -1, -1):
            s += 0.5 * z_bar / steps[k]
            z_bar = 0.5 * z_bar * (1.0 - x[i] / (steps[k] * steps[k]))
        x_bar[i] = s
    return total, x_bar


def roots_arguments(n: int) -> tuple[Any, ...]:
    return (rng().uniform(0.5, 3.0, size=16 * n),)


ROOTS = Scenario(
    name="roots by iteration",
    function=newton_roots,
    patterns=(types.float64[::1],),
    abstract=nr.AbstractVector,
    rule=implicit,
    program=roots,
    pasted=roots_pasted,
    hand=roots_by_hand,
    arguments=roots_arguments,
    pays=False,
)
