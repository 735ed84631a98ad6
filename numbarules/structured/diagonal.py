"""`Diagonal`: a square matrix by its diagonal."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np

from ..rules.patterns import AbstractMatrix, Number
from ..specialized import specialized
from ..structs import struct
from .common import DenseMatrix, DenseVector, StructuredArray, cast, root, structured, zeros

__all__ = ["Diagonal"]


@structured
@struct(category=AbstractMatrix, ndim=2)
class Diagonal(StructuredArray):
    """The matrix with `diag` on its diagonal and zeros elsewhere.

    >>> import numpy as np
    >>> Diagonal(np.array([1.0, 2.0])).to_dense()
    array([[1., 0.],
           [0., 2.]])
    """

    diag: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "diag", np.asarray(self.diag))
        if self.diag.ndim != 1:
            raise ValueError("the diagonal is a vector")


@specialized((Diagonal, "shape"), attribute=True)
def shape(A):
    return A.diag.shape[0], A.diag.shape[0]


@specialized((Diagonal, "T"), attribute=True)
def transposed(A):
    return A


@specialized(operator.getitem)
def element(A: Diagonal, index: tuple):
    i, j = index
    n = A.diag.shape[0]
    if i < 0:
        i += n
    if j < 0:
        j += n
    return A.diag[i] if i == j else cast(0, A.diag)


@specialized((Diagonal, "to_dense"))
def to_dense(A):
    n = A.diag.shape[0]
    out = zeros((n, n), A.diag, A.diag)
    for i in range(n):
        out[i, i] = A.diag[i]
    return out


@specialized(operator.matmul)
def times_vector(A: Diagonal, x: DenseVector):
    if A.diag.shape[0] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    return A.diag * x


@specialized(operator.matmul)
def times_matrix(A: Diagonal, B: DenseMatrix):
    if A.diag.shape[0] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    return A.diag[:, np.newaxis] * B


@specialized(operator.matmul)
def matrix_times(B: DenseMatrix, A: Diagonal):
    if A.diag.shape[0] != B.shape[1]:
        raise ValueError("@: the shapes do not match")
    return B * A.diag


def _elementwise(op):
    @specialized(op)
    def both(A: Diagonal, B: Diagonal):
        if A.diag.shape[0] != B.diag.shape[0]:
            raise ValueError("the shapes of the matrices do not match")
        return Diagonal(op(A.diag, B.diag))

    return both


for _op in (operator.add, operator.sub, operator.mul):
    _elementwise(_op)


@specialized(operator.matmul)
def product(A: Diagonal, B: Diagonal):
    return A * B


@specialized(operator.mul)
def scaled(A: Diagonal, c: Number):
    return Diagonal(A.diag * c)


@specialized(operator.neg)
def negative(A: Diagonal):
    return Diagonal(-A.diag)


@specialized(np.sum, method="sum")
def total(A: Diagonal):
    return np.sum(A.diag)


@specialized(np.trace, method="trace")
def trace(A: Diagonal):
    return np.sum(A.diag)


@specialized(np.linalg.norm, method="norm")
def norm(A: Diagonal):
    squares = cast(0, A.diag)
    for i in range(A.diag.shape[0]):
        squares += A.diag[i] * A.diag[i]
    return root(squares)


@specialized(np.linalg.det, method="det")
def det(A: Diagonal):
    value = cast(1, A.diag)
    for i in range(A.diag.shape[0]):
        value *= A.diag[i]
    return value


@specialized(np.linalg.slogdet, method="slogdet")
def slogdet(A: Diagonal):
    sign = cast(1, A.diag)
    logarithm = cast(0, A.diag)
    for i in range(A.diag.shape[0]):
        sign *= np.sign(A.diag[i])
        logarithm += np.log(np.abs(A.diag[i]))
    return sign, logarithm


@specialized(np.linalg.solve, method="solve")
def solve(A: Diagonal, b: DenseVector):
    if A.diag.shape[0] != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    return b / A.diag


@specialized(np.linalg.solve, method="solve")
def solve_many(A: Diagonal, b: DenseMatrix):
    if A.diag.shape[0] != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    return b / A.diag[:, np.newaxis]
