"""What holds for all structured matrices: ways through the dense array, and through other operations of the same matrix."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np

from ..rules.patterns import Number
from ..specialized import specialized
from .common import DenseMatrix, DenseVector, Matrix, Structured, cast

__all__: list[str] = []


# Sums and elementwise products of different kinds are dense.


def _elementwise(op):
    @specialized(op)
    def both(A: Matrix, B: Matrix):
        return op(A.to_dense(), B.to_dense())

    @specialized(op)
    def left(A: Matrix, B: DenseMatrix):
        return op(A.to_dense(), B)

    @specialized(op)
    def right(A: DenseMatrix, B: Matrix):
        return op(A, B.to_dense())


for _op in (operator.add, operator.sub, operator.mul):
    _elementwise(_op)


def _shift(op):
    @specialized(op)
    def number_right(A: Matrix, c: Number):
        return op(A.to_dense(), c)

    @specialized(op)
    def number_left(c: Number, A: Matrix):
        return op(c, A.to_dense())


for _op in (operator.add, operator.sub):
    _shift(_op)


@specialized(operator.mul)
def number_times(c: Number, A: Structured):
    return A * c


# Products: the structure on the left is used, or that of the transpose.


@specialized(operator.matmul)
def vector_times_matrix(x: DenseVector, A: Matrix):
    return A.T @ x


@specialized(operator.matmul)
def dense_times_matrix(B: DenseMatrix, A: Matrix):
    return (A.T @ B.T).T


@specialized(operator.matmul)
def matrix_times_matrix(A: Matrix, B: Matrix):
    return A @ B.to_dense()


# Determinants and solutions of those that have no cheaper way, through LAPACK. Numba's determinants of float32 are float64.


@specialized(np.linalg.det, method="det")
def dense_det(A: Matrix):
    M = A.to_dense()
    return cast(np.linalg.det(M), M)


@specialized(np.linalg.slogdet, method="slogdet")
def dense_slogdet(A: Matrix):
    M = A.to_dense()
    sign, logarithm = np.linalg.slogdet(M)
    return cast(sign, M), cast(logarithm, M)


@specialized(np.linalg.solve, method="solve")
def dense_solve(A: Matrix, b: DenseVector):
    return np.linalg.solve(A.to_dense(), b)


@specialized(np.linalg.solve, method="solve")
def dense_solve_many(A: Matrix, b: DenseMatrix):
    return np.linalg.solve(A.to_dense(), b)
