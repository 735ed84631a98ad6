"""Matrices of which one triangle is stored: `Symmetric`, `SkewSymmetric` and the triangular ones; what they have in common.

The triangle is packed into a vector: the lower one by rows, the upper one by columns, so that element (i, j), i >= j, of the lower and
element (j, i) of the upper one stand at i(i+1)/2 + j. A transpose then has the same vector. Without the diagonal it is i(i-1)/2 + j.
"""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..rules.patterns import AbstractMatrix, Number
from ..specialized import apply, specialized
from ..structs import maker, struct
from .common import DenseMatrix, StructuredArray, cast, root, structured, zeros

__all__ = ["LowerTriangular", "SkewSymmetric", "Symmetric", "UnitLowerTriangular", "UpperTriangular"]


class PackedMatrix(StructuredArray):
    """The Python side of the packed ones: made from a dense matrix, and shown as one."""

    def __new__(cls, A: Any) -> Any:
        """Reads the triangle of a square matrix that is stored."""
        return apply(cls, np.asarray(A))

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.n > 12:
            return f"{name}(<{self.n} x {self.n}, {self.packed.dtype}>)"
        return f"{name}({np.array2string(self.to_dense(), prefix=name + '(', separator=', ')})"


def _packed(cls: type) -> Any:
    return structured(struct(category=AbstractMatrix, ndim=2)(cls))


@_packed
class LowerTriangular(PackedMatrix):
    """A lower triangular matrix: the lower triangle of `A`, zeros above. `packed` holds the triangle by rows."""

    packed: np.ndarray
    n: int


@_packed
class UpperTriangular(PackedMatrix):
    """An upper triangular matrix: the upper triangle of `A`, zeros below. `packed` holds the triangle by columns."""

    packed: np.ndarray
    n: int


@_packed
class Symmetric(PackedMatrix):
    """A symmetric matrix: the lower triangle of `A`, and its mirror image above. `packed` holds the triangle by rows."""

    packed: np.ndarray
    n: int


@_packed
class UnitLowerTriangular(PackedMatrix):
    """A lower triangular matrix with ones on the diagonal. `packed` holds what is below the diagonal of `A`, by rows."""

    packed: np.ndarray
    n: int


@_packed
class SkewSymmetric(PackedMatrix):
    """A skew-symmetric matrix, Aᵀ = -A: what is below the diagonal of `A`, and its negative above. `packed` holds the former, by rows."""

    packed: np.ndarray
    n: int


lower, upper, symmetric, unit_lower, skew = map(maker, (LowerTriangular, UpperTriangular, Symmetric, UnitLowerTriangular, SkewSymmetric))

_KINDS = (
    (LowerTriangular, lower, 1),
    (UpperTriangular, upper, 1),
    (Symmetric, symmetric, 1),
    (UnitLowerTriangular, unit_lower, 0),
    (SkewSymmetric, skew, 0),
)


def _shape(cls):
    @specialized((cls, "shape"), attribute=True)
    def shape(A):
        return A.n, A.n


def _constructor(cls, make, with_diagonal):
    @specialized(cls)
    def from_dense(A: DenseMatrix):
        n = A.shape[0]
        if A.shape[1] != n:
            raise ValueError("a matrix with one triangle stored is square")
        packed = zeros(n * (n - 1) // 2 + with_diagonal * n, A, A)
        for i in range(n):
            start = i * (i - 1) // 2 + with_diagonal * i
            for j in range(i + with_diagonal):
                packed[start + j] = A[i, j]
        return make(packed, n)


@specialized(UpperTriangular)
def upper_from_dense(A: DenseMatrix):
    return LowerTriangular(A.T).T


def _elementwise(cls, make, op):
    @specialized(op)
    def both(A: cls, B: cls):
        if A.n != B.n:
            raise ValueError("the shapes of the matrices do not match")
        return make(op(A.packed, B.packed), A.n)


def _scaled(cls, make):
    @specialized(operator.mul)
    def scaled(A: cls, c: Number):
        return make(A.packed * c, A.n)

    @specialized(operator.neg)
    def negative(A: cls):
        return make(-A.packed, A.n)


for _cls, _make, _with_diagonal in _KINDS:
    _shape(_cls)
    if _cls is not UpperTriangular:
        _constructor(_cls, _make, _with_diagonal)
    if _cls is not UnitLowerTriangular:
        _elementwise(_cls, _make, operator.add)
        _elementwise(_cls, _make, operator.sub)
        _scaled(_cls, _make)
    if _cls is not SkewSymmetric:
        _elementwise(_cls, _make, operator.mul)


# Elements and dense matrices


@specialized(operator.getitem)
def lower_element(A: LowerTriangular, index: tuple):
    i, j = index
    if i < 0:
        i += A.n
    if j < 0:
        j += A.n
    return A.packed[i * (i + 1) // 2 + j] if i >= j else cast(0, A.packed)


@specialized(operator.getitem)
def upper_element(A: UpperTriangular, index: tuple):
    i, j = index
    if i < 0:
        i += A.n
    if j < 0:
        j += A.n
    return A.packed[j * (j + 1) // 2 + i] if i <= j else cast(0, A.packed)


@specialized(operator.getitem)
def symmetric_element(A: Symmetric, index: tuple):
    i, j = index
    if i < 0:
        i += A.n
    if j < 0:
        j += A.n
    return A.packed[i * (i + 1) // 2 + j] if i >= j else A.packed[j * (j + 1) // 2 + i]


@specialized(operator.getitem)
def unit_lower_element(A: UnitLowerTriangular, index: tuple):
    i, j = index
    if i < 0:
        i += A.n
    if j < 0:
        j += A.n
    return A.packed[i * (i - 1) // 2 + j] if i > j else cast(i == j, A.packed)


@specialized(operator.getitem)
def skew_element(A: SkewSymmetric, index: tuple):
    i, j = index
    if i < 0:
        i += A.n
    if j < 0:
        j += A.n
    if i > j:
        return A.packed[i * (i - 1) // 2 + j]
    return -A.packed[j * (j - 1) // 2 + i] if i < j else cast(0, A.packed)


@specialized((LowerTriangular, "to_dense"))
def lower_to_dense(A):
    out = zeros((A.n, A.n), A.packed, A.packed)
    for i in range(A.n):
        for j in range(i + 1):
            out[i, j] = A.packed[i * (i + 1) // 2 + j]
    return out


@specialized((UpperTriangular, "to_dense"))
def upper_to_dense(A):
    out = zeros((A.n, A.n), A.packed, A.packed)
    for i in range(A.n):
        for j in range(i + 1):
            out[j, i] = A.packed[i * (i + 1) // 2 + j]
    return out


@specialized((Symmetric, "to_dense"))
def symmetric_to_dense(A):
    out = zeros((A.n, A.n), A.packed, A.packed)
    for i in range(A.n):
        for j in range(i + 1):
            out[i, j] = A.packed[i * (i + 1) // 2 + j]
            out[j, i] = A.packed[i * (i + 1) // 2 + j]
    return out


@specialized((UnitLowerTriangular, "to_dense"))
def unit_lower_to_dense(A):
    out = zeros((A.n, A.n), A.packed, A.packed)
    for i in range(A.n):
        for j in range(i):
            out[i, j] = A.packed[i * (i - 1) // 2 + j]
        out[i, i] = cast(1, A.packed)
    return out


@specialized((SkewSymmetric, "to_dense"))
def skew_to_dense(A):
    out = zeros((A.n, A.n), A.packed, A.packed)
    for i in range(A.n):
        for j in range(i):
            out[i, j] = A.packed[i * (i - 1) // 2 + j]
            out[j, i] = -A.packed[i * (i - 1) // 2 + j]
    return out


# Sums, traces, norms. Off the diagonal, symmetric ones have each number twice.


@specialized(np.sum, method="sum")
def lower_sum(A: LowerTriangular | UpperTriangular):
    return np.sum(A.packed)


@specialized(np.sum, method="sum")
def symmetric_sum(A: Symmetric):
    total = cast(0, A.packed)
    for i in range(A.n):
        for j in range(i):
            total += A.packed[i * (i + 1) // 2 + j] + A.packed[i * (i + 1) // 2 + j]
        total += A.packed[i * (i + 3) // 2]
    return total


@specialized(np.sum, method="sum")
def unit_lower_sum(A: UnitLowerTriangular):
    return np.sum(A.packed) + cast(A.n, A.packed)


@specialized(np.sum, method="sum")
def skew_sum(A: SkewSymmetric):
    return cast(0, A.packed)


@specialized(np.trace, method="trace")
def packed_trace(A: LowerTriangular | UpperTriangular | Symmetric):
    total = cast(0, A.packed)
    for i in range(A.n):
        total += A.packed[i * (i + 3) // 2]
    return total


@specialized(np.trace, method="trace")
def unit_lower_trace(A: UnitLowerTriangular):
    return cast(A.n, A.packed)


@specialized(np.trace, method="trace")
def skew_trace(A: SkewSymmetric):
    return cast(0, A.packed)


@specialized(np.linalg.norm, method="norm")
def triangular_norm(A: LowerTriangular | UpperTriangular):
    squares = cast(0, A.packed)
    for i in range(A.packed.shape[0]):
        squares += A.packed[i] * A.packed[i]
    return root(squares)


@specialized(np.linalg.norm, method="norm")
def symmetric_norm(A: Symmetric):
    squares = cast(0, A.packed)
    for i in range(A.n):
        for j in range(i):
            x = A.packed[i * (i + 1) // 2 + j]
            squares += x * x + x * x
        d = A.packed[i * (i + 3) // 2]
        squares += d * d
    return root(squares)


@specialized(np.linalg.norm, method="norm")
def unit_lower_norm(A: UnitLowerTriangular):
    squares = cast(A.n, A.packed)
    for i in range(A.packed.shape[0]):
        squares += A.packed[i] * A.packed[i]
    return root(squares)


@specialized(np.linalg.norm, method="norm")
def skew_norm(A: SkewSymmetric):
    squares = cast(0, A.packed)
    for i in range(A.packed.shape[0]):
        squares += A.packed[i] * A.packed[i] + A.packed[i] * A.packed[i]
    return root(squares)
