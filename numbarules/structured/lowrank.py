"""`LowRank`: a matrix U Vᵀ by its two factors of r columns."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np
from numba.extending import register_jitable

from ..rules.patterns import AbstractMatrix, Number
from ..specialized import specialized
from ..structs import struct
from .common import DenseMatrix, DenseVector, Matrix, StructuredArray, cast, root, structured, zeros

__all__ = ["LowRank"]


@structured
@struct(category=AbstractMatrix, ndim=2)
class LowRank(StructuredArray):
    """The matrix U Vᵀ.

    >>> import numpy as np
    >>> LowRank(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])).to_dense()
    array([[3., 4.],
           [6., 8.]])
    """

    U: np.ndarray
    V: np.ndarray

    def __post_init__(self) -> None:
        for name in ("U", "V"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        if self.U.ndim != 2 or self.V.ndim != 2 or self.U.shape[1] != self.V.shape[1]:
            raise ValueError("the factors are matrices with equally many columns")


@specialized((LowRank, "shape"), attribute=True)
def shape(A):
    return A.U.shape[0], A.V.shape[0]


@specialized((LowRank, "T"), attribute=True)
def transposed(A):
    return LowRank(A.V, A.U)


@specialized(operator.getitem)
def element(A: LowRank, index: tuple):
    i, j = index
    value = cast(0, A.U)
    for k in range(A.U.shape[1]):
        value += A.U[i, k] * A.V[j, k]
    return value


@specialized((LowRank, "to_dense"))
def to_dense(A):
    return A.U @ A.V.T


# U Vᵀ + X Yᵀ = [U X] [V Y]ᵀ


@register_jitable
def beside(A, B):
    """The columns of both."""
    r = A.shape[1]
    out = zeros((A.shape[0], r + B.shape[1]), A, B)
    for i in range(A.shape[0]):
        for k in range(r):
            out[i, k] = A[i, k]
        for k in range(B.shape[1]):
            out[i, r + k] = B[i, k]
    return out


@specialized(operator.add)
def add(A: LowRank, B: LowRank):
    if B.U.shape[0] != A.U.shape[0] or B.V.shape[0] != A.V.shape[0]:
        raise ValueError("the shapes of the matrices do not match")
    return LowRank(beside(A.U, B.U), beside(A.V, B.V))


@specialized(operator.sub)
def sub(A: LowRank, B: LowRank):
    return A + -B


# (U Vᵀ) ∘ (X Yᵀ) = Z Wᵀ, where the columns of Z are the elementwise products of each of U with each of X, those of W of V and Y


@specialized(operator.mul)
def hadamard(A: LowRank, B: LowRank):
    if B.U.shape[0] != A.U.shape[0] or B.V.shape[0] != A.V.shape[0]:
        raise ValueError("the shapes of the matrices do not match")
    r, s = A.U.shape[1], B.U.shape[1]
    Z = zeros((A.U.shape[0], r * s), A.U, B.U)
    W = zeros((A.V.shape[0], r * s), A.V, B.V)
    for k in range(r):
        for l in range(s):  # noqa: E741
            for i in range(Z.shape[0]):
                Z[i, k * s + l] = A.U[i, k] * B.U[i, l]
            for j in range(W.shape[0]):
                W[j, k * s + l] = A.V[j, k] * B.V[j, l]
    return LowRank(Z, W)


@specialized(operator.mul)
def scaled(A: LowRank, c: Number):
    return LowRank(A.U * c, A.V)


@specialized(operator.neg)
def negative(A: LowRank):
    return LowRank(-A.U, A.V)


@specialized(operator.matmul)
def times_vector(A: LowRank, x: DenseVector):
    return A.U @ (A.V.T @ x)


@specialized(operator.matmul)
def times_dense(A: LowRank, B: DenseMatrix):
    return A.U @ (A.V.T @ B)


# With another structured matrix the product is of low rank again.


@specialized(operator.matmul)
def product(A: LowRank, B: LowRank):
    return LowRank(A.U, B.V @ (B.U.T @ A.V))


@specialized(operator.matmul)
def times_structured(A: LowRank, B: Matrix):
    return LowRank(A.U, B.T @ A.V)


@specialized(operator.matmul)
def structured_times(A: Matrix, B: LowRank):
    return LowRank(A @ B.U, B.V)


@specialized(np.sum, method="sum")
def total(A: LowRank):
    value = cast(0, A.U)
    for k in range(A.U.shape[1]):
        u = cast(0, A.U)
        for i in range(A.U.shape[0]):
            u += A.U[i, k]
        v = cast(0, A.V)
        for j in range(A.V.shape[0]):
            v += A.V[j, k]
        value += u * v
    return value


@specialized(np.trace, method="trace")
def trace(A: LowRank):
    value = cast(0, A.U)
    for i in range(min(A.U.shape[0], A.V.shape[0])):
        for k in range(A.U.shape[1]):
            value += A.U[i, k] * A.V[i, k]
    return value


@specialized(np.linalg.norm, method="norm")
def norm(A: LowRank):
    """From the Gram matrices of the factors: ‖U Vᵀ‖² = Σ (UᵀU) ∘ (VᵀV)."""
    return root(np.sum((A.U.T @ A.U) * (A.V.T @ A.V)))


# A matrix of lower rank than rows is singular, whatever its factors.


@specialized(np.linalg.det, method="det")
def det(A: LowRank):
    if A.U.shape[0] != A.V.shape[0]:
        raise ValueError("det: the matrix is not square")
    if A.U.shape[1] < A.U.shape[0]:
        return cast(0, A.U)
    return cast(np.linalg.det(A.to_dense()), A.U)


@specialized(np.linalg.slogdet, method="slogdet")
def slogdet(A: LowRank):
    if A.U.shape[0] != A.V.shape[0]:
        raise ValueError("slogdet: the matrix is not square")
    if A.U.shape[1] < A.U.shape[0]:
        return cast(0, A.U), cast(-np.inf, A.U)
    sign, logarithm = np.linalg.slogdet(A.to_dense())
    return cast(sign, A.U), cast(logarithm, A.U)


@specialized(np.linalg.solve, method="solve")
def solve(A: LowRank, b: DenseVector):
    if A.U.shape[1] < A.U.shape[0]:
        raise ValueError("solve: the matrix is singular")
    return np.linalg.solve(A.to_dense(), b)


@specialized(np.linalg.solve, method="solve")
def solve_many(A: LowRank, b: DenseMatrix):
    if A.U.shape[1] < A.U.shape[0]:
        raise ValueError("solve: the matrix is singular")
    return np.linalg.solve(A.to_dense(), b)
