"""One matrix of each structured type with its dense counterpart, made by NumPy alone, and the operations that all have."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from numbarules.structured import (
    CSR,
    Diagonal,
    Fill,
    LowerTriangular,
    LowRank,
    SkewSymmetric,
    Symmetric,
    Tridiagonal,
    UnitLowerTriangular,
    UpperTriangular,
)

RNG = np.random.default_rng(7)
N = 4
B, x = RNG.normal(size=(N, 3)), RNG.normal(size=N)
_M = RNG.normal(size=(N, N))
_U, _V = RNG.normal(size=(N, 5)), RNG.normal(size=(N, 5))
_VALUES, _COLUMNS, _ENDS = RNG.normal(size=8) + 2, np.array([0, 2, 2, 1, 2, 0, 3, 1]), np.array([0, 3, 4, 6, 8])  # (0, 2) is there twice
_STRICT = np.tril(_M, -1)


def _sparse() -> np.ndarray:
    out = np.zeros((N, N))
    rows = np.repeat(np.arange(N), np.diff(_ENDS))
    np.add.at(out, (rows, _COLUMNS), _VALUES)
    return out


KINDS = {
    "Diagonal": (Diagonal(x), np.diag(x)),
    "Symmetric": (Symmetric(_M), np.tril(_M) + _STRICT.T),
    "SkewSymmetric": (SkewSymmetric(_M), _STRICT - _STRICT.T),
    "LowerTriangular": (LowerTriangular(_M), np.tril(_M)),
    "UpperTriangular": (UpperTriangular(_M), np.triu(_M)),
    "UnitLowerTriangular": (UnitLowerTriangular(_M), _STRICT + np.eye(N)),
    "Tridiagonal": (
        Tridiagonal(x[1:], np.array([1e-3, 0.1, 2.0, 3.0]), B[:3, 0]),
        np.diag(x[1:], -1) + np.diag([1e-3, 0.1, 2.0, 3.0]) + np.diag(B[:3, 0], 1),
    ),
    "Fill": (Fill(2.5, (N, N)), np.full((N, N), 2.5)),
    "LowRank": (LowRank(_U, _V), np.einsum("ik,jk->ij", _U, _V)),
    "CSR": (CSR(_VALUES, _COLUMNS, _ENDS, (N, N)), _sparse()),
}


def of_dtype(value, dtype):
    """The same with its floats in this precision."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype) if value.dtype.kind == "f" else value
    if isinstance(value, float):
        return dtype(value)
    made = getattr(value, "__numbarules_struct__", None)
    return value if made is None else made.make(*(of_dtype(getattr(value, f), dtype) for f in made.fields))


def same_kind(A, B, c):
    return A + A, A - A * c, A * A, A * c, c * A, -A, A.T


def products(A, x, B):
    return A @ x, x @ A, A @ B, B.T @ A, A @ A


def numbers(A):
    return np.sum(A), A.sum(), np.trace(A), A.trace(), np.linalg.norm(A), A.norm(), A[1, 2], A[2, 1], A[-1, -1], A[0, 2]


def with_dense(A, D, c):
    return A + D, D - A, A * D, A + c, c - A, A.to_dense()


def determinants(A):
    sign, logarithm = np.linalg.slogdet(A)
    return np.linalg.det(A), A.det(), sign, logarithm, A.slogdet()[1]


def solutions(A, x, B):
    return np.linalg.solve(A, x), A.solve(x), np.linalg.solve(A, B), A.solve(B)
