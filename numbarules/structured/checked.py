"""What `numbarules check numbarules.structured` looks at: what the types have a cheap way for is differentiated, decided by types alone."""

# Constructors of structs are made by `struct`, which mypy does not see.
# mypy: disable-error-code="call-arg"

from __future__ import annotations

from typing import Any

import numpy as np

from .csr import CSR
from .diagonal import Diagonal
from .fill import Fill
from .lowrank import LowRank
from .packed import LowerTriangular, SkewSymmetric, Symmetric, UnitLowerTriangular, UpperTriangular
from .tridiagonal import Tridiagonal

__all__: list[str] = []


def weighted_sum(A: Any, v: Any) -> Any:
    """The sum of A v."""
    return np.sum(A @ v)


def solved(A: Any, v: Any) -> Any:
    """The sum of A^-1 v."""
    return np.sum(np.linalg.solve(A, v))


def total(A: Any, v: Any) -> Any:
    """The sum of the elements, and the trace."""
    return (np.sum(A) + np.trace(A)) * v[0]


def __numbarules_check__() -> list[tuple[Any, ...]]:
    dense, v = np.array([[2.0, 0.5, 0.1], [0.3, 3.0, 0.2], [0.4, 0.6, 4.0]]), np.array([1.0, 2.0, 3.0])
    band, numbers, pointers = np.array([0.1, 0.2]), np.array([0, 2, 1]), np.array([0, 1, 2, 3])
    triangular = [UpperTriangular(dense), LowerTriangular(dense), UnitLowerTriangular(dense)]
    others = [Diagonal(v), Symmetric(dense), SkewSymmetric(dense), Tridiagonal(band, v, band)]
    rest = [Fill(2.0, (3, 3)), LowRank(dense[:, :2].copy(), dense[:, 1:].copy()), CSR(v, numbers, pointers, (3, 3))]
    products = [(f, (A, v)) for f in (weighted_sum, total) for A in (*triangular, *others, *rest)]
    return [*products, *((solved, (A, v)) for A in (*triangular, Diagonal(v), Tridiagonal(band, v, band)))]
