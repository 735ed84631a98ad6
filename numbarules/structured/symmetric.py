"""Symmetric and skew-symmetric matrices: transposes, products, and what the sign takes away."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np

from ..specialized import specialized
from .common import DenseMatrix, DenseVector, cast, zeros
from .packed import SkewSymmetric, Symmetric, symmetric

__all__: list[str] = []


@specialized((Symmetric, "T"), attribute=True)
def symmetric_transposed(A):
    return A


@specialized((SkewSymmetric, "T"), attribute=True)
def skew_transposed(A):
    return -A


@specialized(operator.mul)
def skew_hadamard(A: SkewSymmetric, B: SkewSymmetric):
    """The signs cancel: the elementwise product is symmetric, with zeros on the diagonal."""
    if A.n != B.n:
        raise ValueError("the shapes of the matrices do not match")
    packed = zeros(A.n * (A.n + 1) // 2, A.packed, B.packed)
    for i in range(A.n):
        for j in range(i):
            packed[i * (i + 1) // 2 + j] = A.packed[i * (i - 1) // 2 + j] * B.packed[i * (i - 1) // 2 + j]
    return symmetric(packed, A.n)


@specialized(operator.matmul)
def symmetric_times_vector(A: Symmetric, x: DenseVector):
    if A.n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.n, A.packed, x)
    for i in range(A.n):
        for j in range(i):
            out[i] += A.packed[i * (i + 1) // 2 + j] * x[j]
            out[j] += A.packed[i * (i + 1) // 2 + j] * x[i]
        out[i] += A.packed[i * (i + 3) // 2] * x[i]
    return out


@specialized(operator.matmul)
def symmetric_times_matrix(A: Symmetric, B: DenseMatrix):
    if A.n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.packed, B)
    for i in range(A.n):
        for j in range(i):
            for k in range(B.shape[1]):
                out[i, k] += A.packed[i * (i + 1) // 2 + j] * B[j, k]
                out[j, k] += A.packed[i * (i + 1) // 2 + j] * B[i, k]
        for k in range(B.shape[1]):
            out[i, k] += A.packed[i * (i + 3) // 2] * B[i, k]
    return out


@specialized(operator.matmul)
def skew_times_vector(A: SkewSymmetric, x: DenseVector):
    if A.n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.n, A.packed, x)
    for i in range(A.n):
        for j in range(i):
            out[i] += A.packed[i * (i - 1) // 2 + j] * x[j]
            out[j] -= A.packed[i * (i - 1) // 2 + j] * x[i]
    return out


@specialized(operator.matmul)
def skew_times_matrix(A: SkewSymmetric, B: DenseMatrix):
    if A.n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.packed, B)
    for i in range(A.n):
        for j in range(i):
            for k in range(B.shape[1]):
                out[i, k] += A.packed[i * (i - 1) // 2 + j] * B[j, k]
                out[j, k] -= A.packed[i * (i - 1) // 2 + j] * B[i, k]
    return out


# det A = det Aᵀ = det(-A) = (-1)ⁿ det A: zero, and with it the derivative, where n is odd.


@specialized(np.linalg.det, method="det")
def skew_det(A: SkewSymmetric):
    if A.n % 2 == 1:
        return cast(0, A.packed)
    return cast(np.linalg.det(A.to_dense()), A.packed)


@specialized(np.linalg.slogdet, method="slogdet")
def skew_slogdet(A: SkewSymmetric):
    if A.n % 2 == 1:
        return cast(0, A.packed), cast(-np.inf, A.packed)
    sign, logarithm = np.linalg.slogdet(A.to_dense())
    return cast(sign, A.packed), cast(logarithm, A.packed)
