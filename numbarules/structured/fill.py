"""`Fill`: a vector or matrix of one value."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np
from numba.extending import register_jitable

from ..rules.patterns import AbstractArray, AbstractMatrix, AbstractVector, Number, as_pattern, meet
from ..specialized import specialized
from ..structs import struct
from .common import DenseMatrix, DenseVector, StructuredArray, cast, structured, zeros

__all__ = ["Fill"]


@structured
@struct(category=AbstractArray, ndim=lambda t: len(t.items[1]))
class Fill(StructuredArray):
    """The array of this `shape`, a tuple of one or two integers, all of whose elements are `value`.

    >>> Fill(2.0, (2, 3)).to_dense()
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """

    value: float
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        if not 1 <= len(self.shape) <= 2 or min(self.shape) < 0:
            raise ValueError("the shape of a filled array has one or two numbers, none of them negative")


FillVector = meet(as_pattern(Fill), AbstractVector)
FillMatrix = meet(as_pattern(Fill), AbstractMatrix)


@register_jitable
def size(shape):
    """The number of elements."""
    n = 1
    for m in shape:
        n *= m
    return n


@specialized((Fill, "T"), attribute=True)
def transposed(A):
    return Fill(A.value, A.shape[::-1])


@specialized(operator.getitem)
def element(A: Fill, index):
    return A.value


@specialized((Fill, "to_dense"))
def to_dense(A):
    return np.full(A.shape, A.value)


def _elementwise(op, kind):
    @specialized(op)
    def both(A: kind, B: kind):
        if A.shape != B.shape:
            raise ValueError("the shapes of the arrays do not match")
        return Fill(op(A.value, B.value), A.shape)

    @specialized(op)
    def number_right(A: kind, c: Number):
        return Fill(op(A.value, c), A.shape)

    if op is not operator.mul:

        @specialized(op)
        def number_left(c: Number, A: kind):
            return Fill(op(c, A.value), A.shape)


for _op in (operator.add, operator.sub, operator.mul):
    _elementwise(_op, FillVector)
    _elementwise(_op, FillMatrix)


@specialized(operator.neg)
def negative(A: Fill):
    return Fill(-A.value, A.shape)


@specialized(operator.matmul)
def times_vector(A: FillMatrix, x: DenseVector):
    if A.shape[1] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    return np.full(A.shape[0], A.value * np.sum(x))


@specialized(operator.matmul)
def times_matrix(A: FillMatrix, B: DenseMatrix):
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros((A.shape[0], B.shape[1]), A.value, B)
    for k in range(B.shape[1]):
        total = cast(0, out)
        for j in range(B.shape[0]):
            total += B[j, k]
        for i in range(A.shape[0]):
            out[i, k] = A.value * total
    return out


@specialized(operator.matmul)
def product(A: FillMatrix, B: FillMatrix):
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    return Fill(A.value * B.value * cast(A.shape[1], A.value), (A.shape[0], B.shape[1]))


@specialized(np.sum, method="sum")
def total(A: Fill):
    return A.value * cast(size(A.shape), A.value)


@specialized(np.linalg.norm, method="norm")
def norm(A: Fill):
    return np.abs(A.value) * np.sqrt(cast(size(A.shape), A.value))


@specialized(np.trace, method="trace")
def trace(A: FillMatrix):
    return A.value * cast(min(A.shape[0], A.shape[1]), A.value)


# A square matrix of one value is singular from two rows on, whatever the value.


@specialized(np.linalg.det, method="det")
def det(A: FillMatrix):
    if A.shape[0] != A.shape[1]:
        raise ValueError("det: the matrix is not square")
    if A.shape[0] == 1:
        return A.value
    return cast(A.shape[0] == 0, A.value)


@specialized(np.linalg.slogdet, method="slogdet")
def slogdet(A: FillMatrix):
    if A.shape[0] != A.shape[1]:
        raise ValueError("slogdet: the matrix is not square")
    if A.shape[0] == 1:
        return np.sign(A.value), np.log(np.abs(A.value))
    if A.shape[0] == 0:
        return cast(1, A.value), cast(0, A.value)
    return cast(0, A.value), cast(-np.inf, A.value)


@specialized(np.linalg.solve, method="solve")
def solve(A: FillMatrix, b: DenseVector):
    if A.shape[0] != A.shape[1] or A.shape[0] != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    if A.shape[0] > 1:
        raise ValueError("solve: the matrix is singular")
    return b / A.value


@specialized(np.linalg.solve, method="solve")
def solve_many(A: FillMatrix, b: DenseMatrix):
    if A.shape[0] != A.shape[1] or A.shape[0] != b.shape[0]:
        raise ValueError("solve: the shapes do not match")
    if A.shape[0] > 1:
        raise ValueError("solve: the matrix is singular")
    return b / A.value
