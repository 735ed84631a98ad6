"""Two structs for the tests: a diagonal matrix, and u v^T, whose array is not linear in its fields."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, overload_attribute, overload_method

import numbarules as nr


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Diag:
    diag: nr.AbstractVector


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Outer:
    """u v^T: what it stands for is not linear in its fields."""

    u: nr.AbstractVector
    v: nr.AbstractVector


DiagType: Any = Diag.__numbarules_struct__.type_class  # type: ignore[attr-defined]
OuterType: Any = Outer.__numbarules_struct__.type_class  # type: ignore[attr-defined]


@overload(operator.matmul)
def _matmul(a, b):
    if isinstance(a, DiagType) and isinstance(b, types.Array) and b.ndim == 1:
        return lambda a, b: a.diag * b
    if isinstance(a, OuterType) and isinstance(b, types.Array) and b.ndim == 1:
        return lambda a, b: a.u * np.dot(a.v, b)


@overload(operator.mul)
def _mul(a, b):
    if isinstance(a, DiagType) and isinstance(b, types.Float):
        return lambda a, b: Diag(a.diag * b)


@overload(operator.getitem)
def _getitem(a, index):
    if isinstance(a, DiagType):
        return lambda a, index: a.diag[index[0]] if index[0] == index[1] else 0.0


@overload_attribute(DiagType, "shape")
def _diag_shape(a):
    return lambda a: (a.diag.shape[0], a.diag.shape[0])


@overload_attribute(OuterType, "shape")
def _outer_shape(a):
    return lambda a: (a.u.shape[0], a.v.shape[0])


@overload_method(DiagType, "to_dense")
def _diag_to_dense(a):
    def to_dense(a):
        n = a.diag.shape[0]
        out = np.zeros((n, n))
        for i in range(n):
            out[i, i] = a.diag[i]
        return out

    return to_dense


@overload_method(OuterType, "to_dense")
def _outer_to_dense(a):
    def to_dense(a):
        out = np.empty((a.u.shape[0], a.v.shape[0]))
        for i in range(a.u.shape[0]):
            for j in range(a.v.shape[0]):
                out[i, j] = a.u[i] * a.v[j]
        return out

    return to_dense


D, V = Diag(np.array([1.0, 2.0, 3.0])), np.array([0.5, 0.6, 0.7])
W = D.diag * V
