"""Matrices with structure, in Python and in jitted code: each stores what it needs and computes by the cheapest way it has.

All have `shape`, `ndim`, elements `A[i, j]`, `A.to_dense()`, `A.T`, `A @ B` with vectors and matrices, `+`, `-` and `*` (elementwise) with
numbers and with each other, and, as methods and as the NumPy functions, `sum`, `trace`, `det`, `slogdet`, `solve` and `norm` (Frobenius).
What keeps the kind is of the kind; other sums and products are dense arrays. float32 stays float32. A derivative by one is one of its kind,
with the derivatives by the numbers that it stores.

Importing this module teaches Numba these types for the functions of NumPy; nothing changes for arrays.

>>> import numpy as np
>>> from numbarules.structured import Diagonal
>>> D = Diagonal(np.array([1.0, 2.0]))
>>> D @ np.ones(2), float(np.trace(D)), (2.0 * D).T
(array([1., 2.]), 3.0, Diagonal(diag=array([2., 4.])))
"""

from . import generic as generic
from . import symmetric as symmetric
from . import triangular as triangular
from .csr import CSR
from .diagonal import Diagonal
from .fill import Fill
from .lowrank import LowRank
from .packed import LowerTriangular, SkewSymmetric, Symmetric, UnitLowerTriangular, UpperTriangular
from .tridiagonal import Tridiagonal

__all__ = [
    "CSR",
    "Diagonal",
    "Fill",
    "LowRank",
    "LowerTriangular",
    "SkewSymmetric",
    "Symmetric",
    "Tridiagonal",
    "UnitLowerTriangular",
    "UpperTriangular",
]
