"""Triangular matrices: transposes, products, determinants and solutions by substitution."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np
from numba.extending import register_jitable

from ..rules.patterns import Number
from ..specialized import specialized
from .common import DenseMatrix, DenseVector, cast, zeros
from .packed import LowerTriangular, UnitLowerTriangular, UpperTriangular, lower, unit_lower, upper

__all__: list[str] = []


@specialized((LowerTriangular, "T"), attribute=True)
def lower_transposed(A):
    return upper(A.packed, A.n)


@specialized((UpperTriangular, "T"), attribute=True)
def upper_transposed(A):
    return lower(A.packed, A.n)


@specialized((UnitLowerTriangular, "T"), attribute=True)
def unit_lower_transposed(A):
    return filled(A).T


@register_jitable
def filled(A):
    """A unit lower triangular matrix as a lower triangular one, which stores its ones."""
    packed = zeros(A.n * (A.n + 1) // 2, A.packed, A.packed)
    for i in range(A.n):
        for j in range(i):
            packed[i * (i + 1) // 2 + j] = A.packed[i * (i - 1) // 2 + j]
        packed[i * (i + 3) // 2] = cast(1, A.packed)
    return lower(packed, A.n)


# Sums and multiples of unit triangular matrices have no ones on the diagonal.


@specialized(operator.add)
def unit_lower_add(A: UnitLowerTriangular, B: UnitLowerTriangular):
    return filled(A) + filled(B)


@specialized(operator.sub)
def unit_lower_sub(A: UnitLowerTriangular, B: UnitLowerTriangular):
    return filled(A) - filled(B)


@specialized(operator.mul)
def unit_lower_scaled(A: UnitLowerTriangular, c: Number):
    return filled(A) * c


@specialized(operator.neg)
def unit_lower_negative(A: UnitLowerTriangular):
    return -filled(A)


# Products


@specialized(operator.matmul)
def lower_times_vector(A: LowerTriangular, x: DenseVector):
    if A.n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.n, A.packed, x)
    for i in range(A.n):
        total = cast(0, out)
        for j in range(i + 1):
            total += A.packed[i * (i + 1) // 2 + j] * x[j]
        out[i] = total
    return out


@specialized(operator.matmul)
def upper_times_vector(A: UpperTriangular, x: DenseVector):
    if A.n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.n, A.packed, x)
    for j in range(A.n):
        for i in range(j + 1):
            out[i] += A.packed[j * (j + 1) // 2 + i] * x[j]
    return out


@specialized(operator.matmul)
def unit_lower_times_vector(A: UnitLowerTriangular, x: DenseVector):
    if A.n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.n, A.packed, x)
    for i in range(A.n):
        total = cast(x[i], out)
        for j in range(i):
            total += A.packed[i * (i - 1) // 2 + j] * x[j]
        out[i] = total
    return out


@specialized(operator.matmul)
def lower_times_matrix(A: LowerTriangular, B: DenseMatrix):
    if A.n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.packed, B)
    for i in range(A.n):
        for j in range(i + 1):
            for k in range(B.shape[1]):
                out[i, k] += A.packed[i * (i + 1) // 2 + j] * B[j, k]
    return out


@specialized(operator.matmul)
def upper_times_matrix(A: UpperTriangular, B: DenseMatrix):
    if A.n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.packed, B)
    for j in range(A.n):
        for i in range(j + 1):
            for k in range(B.shape[1]):
                out[i, k] += A.packed[j * (j + 1) // 2 + i] * B[j, k]
    return out


@specialized(operator.matmul)
def unit_lower_times_matrix(A: UnitLowerTriangular, B: DenseMatrix):
    if A.n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.packed, B)
    for i in range(A.n):
        for k in range(B.shape[1]):
            out[i, k] = B[i, k]
        for j in range(i):
            for k in range(B.shape[1]):
                out[i, k] += A.packed[i * (i - 1) // 2 + j] * B[j, k]
    return out


@specialized(operator.matmul)
def lower_times_lower(A: LowerTriangular, B: LowerTriangular):
    if A.n != B.n:
        raise ValueError("@: the shapes do not match")
    packed = zeros(A.packed.shape[0], A.packed, B.packed)
    for i in range(A.n):
        for k in range(i + 1):
            for j in range(k + 1):
                packed[i * (i + 1) // 2 + j] += A.packed[i * (i + 1) // 2 + k] * B.packed[k * (k + 1) // 2 + j]
    return lower(packed, A.n)


@specialized(operator.matmul)
def upper_times_upper(A: UpperTriangular, B: UpperTriangular):
    return (B.T @ A.T).T


@specialized(operator.matmul)
def unit_lower_times_unit_lower(A: UnitLowerTriangular, B: UnitLowerTriangular):
    if A.n != B.n:
        raise ValueError("@: the shapes do not match")
    packed = A.packed + B.packed
    for i in range(A.n):
        for k in range(i):
            for j in range(k):
                packed[i * (i - 1) // 2 + j] += A.packed[i * (i - 1) // 2 + k] * B.packed[k * (k - 1) // 2 + j]
    return unit_lower(packed, A.n)


# Determinants


@specialized(np.linalg.det, method="det")
def triangular_det(A: LowerTriangular | UpperTriangular):
    value = cast(1, A.packed)
    for i in range(A.n):
        value *= A.packed[i * (i + 3) // 2]
    return value


@specialized(np.linalg.slogdet, method="slogdet")
def triangular_slogdet(A: LowerTriangular | UpperTriangular):
    sign = cast(1, A.packed)
    logarithm = cast(0, A.packed)
    for i in range(A.n):
        sign *= np.sign(A.packed[i * (i + 3) // 2])
        logarithm += np.log(np.abs(A.packed[i * (i + 3) // 2]))
    return sign, logarithm


@specialized(np.linalg.det, method="det")
def unit_lower_det(A: UnitLowerTriangular):
    return cast(1, A.packed)


@specialized(np.linalg.slogdet, method="slogdet")
def unit_lower_slogdet(A: UnitLowerTriangular):
    return cast(1, A.packed), cast(0, A.packed)


# Solutions


@specialized(np.linalg.solve, method="solve")
def lower_solve(A: LowerTriangular, b: DenseVector):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(A.n, A.packed, b)
    for i in range(A.n):
        total = cast(b[i], out)
        for j in range(i):
            total -= A.packed[i * (i + 1) // 2 + j] * out[j]
        out[i] = total / A.packed[i * (i + 3) // 2]
    return out


@specialized(np.linalg.solve, method="solve")
def upper_solve(A: UpperTriangular, b: DenseVector):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(A.n, A.packed, b)
    for i in range(A.n - 1, -1, -1):
        total = cast(b[i], out)
        for j in range(i + 1, A.n):
            total -= A.packed[j * (j + 1) // 2 + i] * out[j]
        out[i] = total / A.packed[i * (i + 3) // 2]
    return out


@specialized(np.linalg.solve, method="solve")
def unit_lower_solve(A: UnitLowerTriangular, b: DenseVector):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(A.n, A.packed, b)
    for i in range(A.n):
        total = cast(b[i], out)
        for j in range(i):
            total -= A.packed[i * (i - 1) // 2 + j] * out[j]
        out[i] = total
    return out


@specialized(np.linalg.solve, method="solve")
def lower_solve_many(A: LowerTriangular, b: DenseMatrix):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(b.shape, A.packed, b)
    for i in range(A.n):
        for k in range(b.shape[1]):
            total = cast(b[i, k], out)
            for j in range(i):
                total -= A.packed[i * (i + 1) // 2 + j] * out[j, k]
            out[i, k] = total / A.packed[i * (i + 3) // 2]
    return out


@specialized(np.linalg.solve, method="solve")
def upper_solve_many(A: UpperTriangular, b: DenseMatrix):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(b.shape, A.packed, b)
    for i in range(A.n - 1, -1, -1):
        for k in range(b.shape[1]):
            total = cast(b[i, k], out)
            for j in range(i + 1, A.n):
                total -= A.packed[j * (j + 1) // 2 + i] * out[j, k]
            out[i, k] = total / A.packed[i * (i + 3) // 2]
    return out


@specialized(np.linalg.solve, method="solve")
def unit_lower_solve_many(A: UnitLowerTriangular, b: DenseMatrix):
    if A.n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    out = zeros(b.shape, A.packed, b)
    for i in range(A.n):
        for k in range(b.shape[1]):
            total = cast(b[i, k], out)
            for j in range(i):
                total -= A.packed[i * (i - 1) // 2 + j] * out[j, k]
            out[i, k] = total
    return out
