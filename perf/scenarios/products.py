"""Products of a structured matrix with a vector or a matrix: the generic pullback makes a dense cotangent of the structured factor."""

import operator
from typing import Any

import numpy as np
from numba import njit

import numbarules as nr
from numbarules.structured import CSR, Diagonal, LowRank
from numbarules.structured.common import Matrix
from perf.scenarios.scenario import Scenario, matrix_squares, rng, vector_squares

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["CSR_MATRIX", "DIAGONAL_MATRIX", "DIAGONAL_VECTOR", "LOW_RANK_VECTOR"]


def vector_product(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, x: nr.AbstractVector):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if x.shape[0] > 0:
                return None
        y = A @ x

        def product_pullback(ybar):
            return np.outer(ybar, x), A.T @ ybar

        return y, product_pullback

    return product_rule


@njit
def diagonal_vector(A, x):
    return vector_squares(A @ x)


@njit
def diagonal_vector_pasted(A, x):
    if A.diag.shape[0] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    return vector_squares(A.diag * x)


@njit
def diagonal_vector_by_hand(A, x):
    n = x.shape[0]
    diag_bar, x_bar = np.empty(n), np.empty(n)
    total = 0.0
    for i in range(n):
        y = A.diag[i] * x[i]
        total += y * y
        diag_bar[i] = 2.0 * y * x[i]
        x_bar[i] = 2.0 * y * A.diag[i]
    return total, (Diagonal(diag_bar), x_bar)


def diagonal_vector_arguments(n: int) -> tuple[Any, ...]:
    return Diagonal(rng().normal(size=n)), rng().normal(size=n)


DIAGONAL_VECTOR = Scenario(
    name="Diagonal @ v",
    function=operator.matmul,
    patterns=(Diagonal, nr.AbstractVector),
    abstract=Matrix,
    rule=vector_product,
    program=diagonal_vector,
    pasted=diagonal_vector_pasted,
    hand=diagonal_vector_by_hand,
    arguments=diagonal_vector_arguments,
    argnums=(0, 1),
)


@njit
def low_rank_vector_pasted(A, x):
    return vector_squares(A.U @ (A.V.T @ x))


@njit
def low_rank_vector_by_hand(A, x):
    m, r = A.U.shape
    n = A.V.shape[0]
    inner, inner_bar = np.zeros(r), np.zeros(r)
    for j in range(n):
        for k in range(r):
            inner[k] += A.V[j, k] * x[j]
    U_bar, V_bar, x_bar = np.empty((m, r)), np.empty((n, r)), np.empty(n)
    total = 0.0
    for i in range(m):
        y = 0.0
        for k in range(r):
            y += A.U[i, k] * inner[k]
        total += y * y
        for k in range(r):
            U_bar[i, k] = 2.0 * y * inner[k]
            inner_bar[k] += 2.0 * y * A.U[i, k]
    for j in range(n):
        s = 0.0
        for k in range(r):
            V_bar[j, k] = inner_bar[k] * x[j]
            s += inner_bar[k] * A.V[j, k]
        x_bar[j] = s
    return total, (LowRank(U_bar, V_bar), x_bar)


def low_rank_vector_arguments(n: int) -> tuple[Any, ...]:
    """Rank 4."""
    return LowRank(rng().normal(size=(n, 4)), rng().normal(size=(n, 4))), rng().normal(size=n)


LOW_RANK_VECTOR = Scenario(
    name="LowRank @ v",
    function=operator.matmul,
    patterns=(LowRank, nr.AbstractVector),
    abstract=Matrix,
    rule=vector_product,
    program=diagonal_vector,
    pasted=low_rank_vector_pasted,
    hand=low_rank_vector_by_hand,
    arguments=low_rank_vector_arguments,
    argnums=(0, 1),
)


def matrix_product(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, B: nr.AbstractMatrix):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if B.shape[0] > 0:
                return None
        Y = A @ B

        def product_pullback(Ybar):
            return np.dot(np.ascontiguousarray(Ybar), B.T), A.T @ Ybar

        return Y, product_pullback

    return product_rule


@njit
def matrix_program(A, B):
    return matrix_squares(A @ B)


@njit
def diagonal_matrix_pasted(A, B):
    if A.diag.shape[0] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    return matrix_squares(A.diag[:, np.newaxis] * B)


@njit
def diagonal_matrix_by_hand(A, B):
    m, n = B.shape
    diag_bar, B_bar = np.empty(m), np.empty((m, n))
    total = 0.0
    for i in range(m):
        d = A.diag[i]
        s = 0.0
        for j in range(n):
            y = d * B[i, j]
            total += y * y
            s += 2.0 * y * B[i, j]
            B_bar[i, j] = 2.0 * y * d
        diag_bar[i] = s
    return total, (Diagonal(diag_bar), B_bar)


def diagonal_matrix_arguments(n: int) -> tuple[Any, ...]:
    return Diagonal(rng().normal(size=n)), rng().normal(size=(n, n))


DIAGONAL_MATRIX = Scenario(
    name="Diagonal @ M",
    function=operator.matmul,
    patterns=(Diagonal, nr.AbstractMatrix),
    abstract=Matrix,
    rule=matrix_product,
    program=matrix_program,
    pasted=diagonal_matrix_pasted,
    hand=diagonal_matrix_by_hand,
    arguments=diagonal_matrix_arguments,
    argnums=(0, 1),
)


@njit
def csr_matrix_pasted(A, B):
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for j in range(B.shape[1]):
                Y[i, j] += A.data[k] * B[A.indices[k], j]
    return matrix_squares(Y)


@njit
def csr_matrix_by_hand(A, B):
    data_bar, B_bar = np.empty_like(A.data), np.zeros_like(B)
    n = B.shape[1]
    row = np.empty(n)
    total = 0.0
    for i in range(A.shape[0]):
        row[:] = 0.0
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for j in range(n):
                row[j] += A.data[k] * B[A.indices[k], j]
        for j in range(n):
            total += row[j] * row[j]
        for k in range(A.indptr[i], A.indptr[i + 1]):
            s = 0.0
            for j in range(n):
                s += 2.0 * row[j] * B[A.indices[k], j]
                B_bar[A.indices[k], j] += 2.0 * row[j] * A.data[k]
            data_bar[k] = s
    return total, (CSR(data_bar, A.indices.copy(), A.indptr.copy(), A.shape), B_bar)


def csr_matrix_arguments(n: int) -> tuple[Any, ...]:
    """Four elements a row; 32 columns of the dense factor."""
    indices = np.sort(rng().integers(0, n, size=(n, 4)), axis=1)
    return CSR(rng().normal(size=4 * n), indices.ravel(), np.arange(0, 4 * n + 1, 4), (n, n)), rng().normal(size=(n, 32))


CSR_MATRIX = Scenario(
    name="CSR @ M",
    function=operator.matmul,
    patterns=(CSR, nr.AbstractMatrix),
    abstract=Matrix,
    rule=matrix_product,
    program=matrix_program,
    pasted=csr_matrix_pasted,
    hand=csr_matrix_by_hand,
    arguments=csr_matrix_arguments,
    argnums=(0, 1),
)
