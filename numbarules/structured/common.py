"""What the structured types share: their category, patterns, a base for the Python classes, and helpers in jitted code."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from ..rules.patterns import AbstractArray, AbstractMatrix, AbstractVector, meet, register_category
from ..specialized import apply, specialized

__all__ = ["DenseMatrix", "DenseVector", "Matrix", "Structured", "StructuredArray", "cast", "root", "structured", "zeros"]


class Structured(AbstractArray):
    """The structured types of numbarules."""


DenseVector: Any = meet(types.Array, AbstractVector)
DenseMatrix: Any = meet(types.Array, AbstractMatrix)
Matrix: Any = meet(Structured, AbstractMatrix)


class StructuredArray:
    """The Python side of a structured type; operators and methods are installed with their implementations."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    def __getitem__(self, index: int | tuple[int, int]) -> Any:
        """One element."""
        where = index if isinstance(index, tuple) else (index,)
        shape: tuple[int, ...] = self.shape
        if len(where) != len(shape):
            raise IndexError(f"one element has {len(shape)} indices")
        if not all(-n <= operator.index(i) < n for i, n in zip(where, shape, strict=True)):
            raise IndexError(f"the index {index} is outside of the shape {shape}")
        return apply(operator.getitem, self, index)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The dense array, for `np.asarray`."""
        return np.asarray(self.to_dense(), dtype)


def structured(cls: Any) -> Any:
    """Makes a struct class one of the structured types: its type is in the category, and it has `ndim`."""
    register_category(Structured, cls)

    @specialized((cls, "ndim"), attribute=True)
    def ndim(A: Any) -> int:
        return len(A.shape)

    return cls


def cast(x: Any, like: Any) -> Any:
    """The number `x` in the dtype of `like`, an array or a number."""
    return np.result_type(like).type(x)


def zeros(shape: Any, a: Any, b: Any) -> Any:
    """An array of zeros in the dtype of what comes of the dtypes of `a` and `b`, arrays or numbers."""
    return np.zeros(shape, np.result_type(a, b))


def root(total: Any) -> Any:
    """The square root of a sum of squares; where that is zero the derivative is zero too, as for the norm."""
    return np.sqrt(total) if total > 0 else total - total


def _dtype(t: Any) -> np.dtype[Any]:
    return as_dtype(types.unliteral(t.dtype if isinstance(t, types.Array) else t))


@overload(cast, strict=False)
def _cast(x: Any, like: Any) -> Any:
    kind = _dtype(like).type
    return lambda x, like: kind(x)


@overload(zeros, strict=False)
def _zeros(shape: Any, a: Any, b: Any) -> Any:
    dtype = np.promote_types(_dtype(a), _dtype(b))
    return lambda shape, a, b: np.zeros(shape, dtype)


@overload(root, strict=False)
def _root(total: Any) -> Any:
    def implementation(total):  # type: ignore[no-untyped-def]
        if total > 0:
            return np.sqrt(total)
        return total - total

    return implementation
