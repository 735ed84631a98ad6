"""`Tridiagonal`: a square matrix by its three diagonals."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np

from ..rules.patterns import AbstractMatrix, Number
from ..specialized import specialized
from ..structs import struct
from .common import DenseMatrix, DenseVector, StructuredArray, cast, root, structured, zeros

__all__ = ["Tridiagonal"]


@structured
@struct(category=AbstractMatrix, ndim=2)
class Tridiagonal(StructuredArray):
    """The matrix with `d` on its diagonal, `dl` below and `du` above it, which are one shorter.

    >>> import numpy as np
    >>> Tridiagonal(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]), np.array([6.0, 7.0])).to_dense()
    array([[3., 6., 0.],
           [1., 4., 7.],
           [0., 2., 5.]])
    """

    dl: np.ndarray
    d: np.ndarray
    du: np.ndarray

    def __post_init__(self) -> None:
        for name in ("dl", "d", "du"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        short = (max(self.d.size - 1, 0),)
        if self.d.ndim != 1 or self.dl.shape != short or self.du.shape != short:
            raise ValueError("the diagonals are vectors, the outer ones one shorter")


@specialized((Tridiagonal, "shape"), attribute=True)
def shape(A):
    return A.d.shape[0], A.d.shape[0]


@specialized((Tridiagonal, "T"), attribute=True)
def transposed(A):
    return Tridiagonal(A.du, A.d, A.dl)


@specialized(operator.getitem)
def element(A: Tridiagonal, index: tuple):
    i, j = index
    n = A.d.shape[0]
    if i < 0:
        i += n
    if j < 0:
        j += n
    if i == j:
        return A.d[i]
    if i == j + 1:
        return A.dl[j]
    return A.du[i] if j == i + 1 else cast(0, A.d)


@specialized((Tridiagonal, "to_dense"))
def to_dense(A):
    n = A.d.shape[0]
    out = zeros((n, n), A.d, A.d)
    for i in range(n):
        out[i, i] = A.d[i]
    for i in range(n - 1):
        out[i + 1, i] = A.dl[i]
        out[i, i + 1] = A.du[i]
    return out


def _elementwise(op):
    @specialized(op)
    def both(A: Tridiagonal, B: Tridiagonal):
        if A.d.shape[0] != B.d.shape[0]:
            raise ValueError("the shapes of the matrices do not match")
        return Tridiagonal(op(A.dl, B.dl), op(A.d, B.d), op(A.du, B.du))


for _op in (operator.add, operator.sub, operator.mul):
    _elementwise(_op)


@specialized(operator.mul)
def scaled(A: Tridiagonal, c: Number):
    return Tridiagonal(A.dl * c, A.d * c, A.du * c)


@specialized(operator.neg)
def negative(A: Tridiagonal):
    return Tridiagonal(-A.dl, -A.d, -A.du)


@specialized(operator.matmul)
def times_vector(A: Tridiagonal, x: DenseVector):
    n = A.d.shape[0]
    if n != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(n, A.d, x)
    for i in range(n):
        out[i] = A.d[i] * x[i]
    for i in range(n - 1):
        out[i] += A.du[i] * x[i + 1]
        out[i + 1] += A.dl[i] * x[i]
    return out


@specialized(operator.matmul)
def times_matrix(A: Tridiagonal, B: DenseMatrix):
    n = A.d.shape[0]
    if n != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(B.shape, A.d, B)
    for i in range(n):
        for k in range(B.shape[1]):
            out[i, k] = A.d[i] * B[i, k]
    for i in range(n - 1):
        for k in range(B.shape[1]):
            out[i, k] += A.du[i] * B[i + 1, k]
            out[i + 1, k] += A.dl[i] * B[i, k]
    return out


@specialized(np.sum, method="sum")
def total(A: Tridiagonal):
    return np.sum(A.d) + np.sum(A.dl) + np.sum(A.du)


@specialized(np.trace, method="trace")
def trace(A: Tridiagonal):
    return np.sum(A.d)


@specialized(np.linalg.norm, method="norm")
def norm(A: Tridiagonal):
    squares = cast(0, A.d)
    for i in range(A.d.shape[0]):
        squares += A.d[i] * A.d[i]
    for i in range(A.dl.shape[0]):
        squares += A.dl[i] * A.dl[i] + A.du[i] * A.du[i]
    return root(squares)


@specialized(np.linalg.det, method="det")
def det(A: Tridiagonal):
    """By the continuants: det of the leading k+1 is d[k] det of the leading k, minus dl[k-1] du[k-1] det of the leading k-1."""
    before = cast(0, A.d)
    value = cast(1, A.d)
    for k in range(A.d.shape[0]):
        following = A.d[k] * value
        if k > 0:
            following -= A.dl[k - 1] * A.du[k - 1] * before
        before = value
        value = following
    return value


@specialized(np.linalg.slogdet, method="slogdet")
def slogdet(A: Tridiagonal):
    """By the continuants, divided at each step by the larger of the last two, whose logarithms are summed."""
    before = cast(0, A.d)
    value = cast(1, A.d)
    logarithm = cast(0, A.d)
    for k in range(A.d.shape[0]):
        following = A.d[k] * value
        if k > 0:
            following -= A.dl[k - 1] * A.du[k - 1] * before
        scale = max(abs(following), abs(value))
        if scale == 0:  # two in a row: so are all that follow
            return cast(0, A.d), cast(-np.inf, A.d)
        before = value / scale
        value = following / scale
        logarithm += np.log(scale)
    return np.sign(value), logarithm + np.log(np.abs(value))


@specialized(np.linalg.solve, method="solve")
def solve(A: Tridiagonal, b: DenseVector):
    return np.linalg.solve(A, b[:, np.newaxis])[:, 0].copy()


@specialized(np.linalg.solve, method="solve")
def solve_many(A: Tridiagonal, b: DenseMatrix):
    """Elimination with exchanges of neighbouring rows, which fill a second upper diagonal, as LAPACK's gtsv."""
    n = A.d.shape[0]
    if n != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    columns = b.shape[1]
    x = zeros(b.shape, A.d, b)
    for i in range(n):
        for k in range(columns):
            x[i, k] = b[i, k]
    d = A.d.copy()
    upper = zeros(n, A.d, A.d)
    for i in range(n - 1):
        upper[i] = A.du[i]
    second = zeros(n, A.d, A.d)
    for i in range(n - 1):
        if abs(d[i]) >= abs(A.dl[i]):
            factor = A.dl[i] / d[i]
            d[i + 1] -= factor * upper[i]
            for k in range(columns):
                x[i + 1, k] -= factor * x[i, k]
        else:
            factor = d[i] / A.dl[i]
            d[i] = A.dl[i]
            under = d[i + 1]
            d[i + 1] = upper[i] - factor * under
            upper[i] = under
            second[i] = upper[i + 1]
            upper[i + 1] = -factor * upper[i + 1]
            for k in range(columns):
                below = x[i + 1, k]
                x[i + 1, k] = x[i, k] - factor * below
                x[i, k] = below
    for i in range(n - 1, -1, -1):
        for k in range(columns):
            rest = x[i, k]
            if i + 1 < n:
                rest -= upper[i] * x[i + 1, k]
            if i + 2 < n:
                rest -= second[i] * x[i + 2, k]
            x[i, k] = rest / d[i]
    return x
