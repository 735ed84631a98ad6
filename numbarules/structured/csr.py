"""`CSR`: a sparse matrix by its rows. Elements that are stored twice are added."""

# Bodies that Numba compiles, annotated with patterns.
# mypy: ignore-errors

from __future__ import annotations

import operator

import numpy as np

from ..rules.patterns import AbstractMatrix, Number
from ..specialized import specialized
from ..structs import struct
from .common import DenseMatrix, DenseVector, StructuredArray, cast, root, structured, zeros

__all__ = ["CSR"]


@structured
@struct(category=AbstractMatrix, ndim=2)
class CSR(StructuredArray):
    """The matrix of this `shape` whose row i has the numbers `data[k]` in the columns `indices[k]`, `indptr[i]` <= k < `indptr[i + 1]`.

    >>> import numpy as np
    >>> CSR(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 1]), np.array([0, 2, 3]), (2, 3)).to_dense()
    array([[1., 0., 2.],
           [0., 3., 0.]])
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("data", "indices", "indptr"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        m, n = map(int, self.shape)
        object.__setattr__(self, "shape", (m, n))
        ends, columns = self.indptr, self.indices
        if ends.shape != (m + 1,) or ends[0] != 0 or ends[-1] != self.data.size or (np.diff(ends) < 0).any():
            raise ValueError("indptr goes from 0 to the number of elements, one more than rows, and never down")
        if columns.shape != self.data.shape or self.data.ndim != 1 or not ((columns >= 0) & (columns < n)).all():
            raise ValueError("indices has a column of the matrix for each element of data")


@specialized((CSR, "T"), attribute=True)
def transposed(A):
    m, n = A.shape
    indptr = np.zeros(n + 1, np.int64)
    for k in range(A.indices.shape[0]):
        indptr[A.indices[k] + 1] += 1
    for j in range(n):
        indptr[j + 1] += indptr[j]
    free = indptr.copy()
    data = zeros(A.data.shape[0], A.data, A.data)
    indices = np.zeros(A.data.shape[0], np.int64)
    for i in range(m):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            place = free[A.indices[k]]
            free[A.indices[k]] += 1
            data[place] = A.data[k]
            indices[place] = i
    return CSR(data, indices, indptr, (n, m))


@specialized(operator.getitem)
def element(A: CSR, index: tuple):
    i, j = index
    m, n = A.shape
    if i < 0:
        i += m
    if j < 0:
        j += n
    value = cast(0, A.data)
    for k in range(A.indptr[i], A.indptr[i + 1]):
        if A.indices[k] == j:
            value += A.data[k]
    return value


@specialized((CSR, "to_dense"))
def to_dense(A):
    out = zeros(A.shape, A.data, A.data)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            out[i, A.indices[k]] += A.data[k]
    return out


@specialized(operator.mul)
def scaled(A: CSR, c: Number):
    return CSR(A.data * c, A.indices, A.indptr, A.shape)


@specialized(operator.neg)
def negative(A: CSR):
    return CSR(-A.data, A.indices, A.indptr, A.shape)


@specialized(operator.add)
def add(A: CSR, B: CSR):
    """Each row has the columns of both, those of `A` first; `place` tells where a column of the row stands."""
    m, n = A.shape
    if B.shape[0] != m or B.shape[1] != n:
        raise ValueError("the shapes of the matrices do not match")
    most = A.data.shape[0] + B.data.shape[0]
    data = zeros(most, A.data, B.data)
    indices = np.zeros(most, np.int64)
    indptr = np.zeros(m + 1, np.int64)
    place = np.full(n, -1)
    end = 0
    for i in range(m):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            j = A.indices[k]
            if place[j] < indptr[i]:
                place[j] = end
                indices[end] = j
                end += 1
            data[place[j]] += A.data[k]
        for k in range(B.indptr[i], B.indptr[i + 1]):
            j = B.indices[k]
            if place[j] < indptr[i]:
                place[j] = end
                indices[end] = j
                end += 1
            data[place[j]] += B.data[k]
        indptr[i + 1] = end
    return CSR(data[:end].copy(), indices[:end].copy(), indptr, A.shape)


@specialized(operator.sub)
def sub(A: CSR, B: CSR):
    return A + -B


@specialized(operator.mul)
def hadamard(A: CSR, B: CSR):
    """The elements of `A`, each times that of `B` in its place, which is looked for in its row."""
    if B.shape[0] != A.shape[0] or B.shape[1] != A.shape[1]:
        raise ValueError("the shapes of the matrices do not match")
    data = zeros(A.data.shape[0], A.data, B.data)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            other = cast(0, B.data)
            for l in range(B.indptr[i], B.indptr[i + 1]):  # noqa: E741
                if B.indices[l] == A.indices[k]:
                    other += B.data[l]
            data[k] = A.data[k] * other
    return CSR(data, A.indices, A.indptr, A.shape)


@specialized(operator.matmul)
def times_vector(A: CSR, x: DenseVector):
    if A.shape[1] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.shape[0], A.data, x)
    for i in range(A.shape[0]):
        total = cast(0, out)
        for k in range(A.indptr[i], A.indptr[i + 1]):
            total += A.data[k] * x[A.indices[k]]
        out[i] = total
    return out


@specialized(operator.matmul)
def vector_times(x: DenseVector, A: CSR):
    if A.shape[0] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros(A.shape[1], A.data, x)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            out[A.indices[k]] += A.data[k] * x[i]
    return out


@specialized(operator.matmul)
def times_matrix(A: CSR, B: DenseMatrix):
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    out = zeros((A.shape[0], B.shape[1]), A.data, B)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for c in range(B.shape[1]):
                out[i, c] += A.data[k] * B[A.indices[k], c]
    return out


@specialized(operator.matmul)
def matrix_times(B: DenseMatrix, A: CSR):
    if A.shape[0] != B.shape[1]:
        raise ValueError("@: the shapes do not match")
    out = zeros((B.shape[0], A.shape[1]), A.data, B)
    for r in range(B.shape[0]):
        for i in range(A.shape[0]):
            for k in range(A.indptr[i], A.indptr[i + 1]):
                out[r, A.indices[k]] += B[r, i] * A.data[k]
    return out


@specialized(operator.matmul)
def product(A: CSR, B: CSR):
    """Gustavson's: each row of the product is the sum of the rows of `B` that the row of `A` has; `place` as in a sum."""
    m, n = A.shape[0], B.shape[1]
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    indptr = np.zeros(m + 1, np.int64)
    place = np.full(n, -1)
    end = 0
    for i in range(m):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for l in range(B.indptr[A.indices[k]], B.indptr[A.indices[k] + 1]):  # noqa: E741
                if place[B.indices[l]] < i:
                    place[B.indices[l]] = i
                    end += 1
        indptr[i + 1] = end
    data = zeros(end, A.data, B.data)
    indices = np.zeros(end, np.int64)
    place[:] = -1
    end = 0
    for i in range(m):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for l in range(B.indptr[A.indices[k]], B.indptr[A.indices[k] + 1]):  # noqa: E741
                j = B.indices[l]
                if place[j] < indptr[i]:
                    place[j] = end
                    indices[end] = j
                    end += 1
                data[place[j]] += A.data[k] * B.data[l]
    return CSR(data, indices, indptr, (m, n))


@specialized(np.sum, method="sum")
def total(A: CSR):
    return np.sum(A.data)


@specialized(np.trace, method="trace")
def trace(A: CSR):
    value = cast(0, A.data)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            if A.indices[k] == i:
                value += A.data[k]
    return value


@specialized(np.linalg.norm, method="norm")
def norm(A: CSR):
    """Each element times all that are added in its place, itself included."""
    squares = cast(0, A.data)
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for l in range(A.indptr[i], A.indptr[i + 1]):  # noqa: E741
                if A.indices[l] == A.indices[k]:
                    squares += A.data[k] * A.data[l]
    return root(squares)
