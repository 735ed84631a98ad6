"""Rules of linear algebra: products through BLAS, inverses, solves, determinants and factorisations through LAPACK.

Formulas are those of M. B. Giles, *An extended collection of matrix derivative results for forward and reverse mode AD* (2008,
NA-08/01), unless another source stands at the rule. `Abar` is the cotangent of `A`; `tr(Abar^T dA)` pairs it with a tangent.

A function that reads one triangle of its argument (`cholesky`, `eigh`, `eigvalsh`: the lower one) has a gradient that is zero in the other:
an element below the diagonal stands for both places. For a symmetric `A = M M^T` made inside the program nothing changes.

BLAS wants contiguous arrays: strided ones are copied first, so that Numba has nothing to warn of.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ..analysis.effects import Effects
from ..rules.patterns import AbstractMatrix, AbstractVector
from ..rules.register import alias, rrule
from ..structs import StructType

__all__: list[str] = []

# Bodies that Numba compiles, annotated with patterns: nothing in them is for mypy.
# mypy: ignore-errors


# Sample points: a general, a symmetric and a tall matrix, and vectors, all regular and with values apart from each other.
SQUARE = np.array([[2.0, 1.0, 0.3], [0.5, 3.0, 0.1], [0.2, 0.7, 1.5]])
SYMMETRIC = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
TALL = np.array([[1.0, 0.2], [-0.4, 2.0], [0.7, 0.3]])
WIDE = np.array([[1.0, -0.4, 0.7], [0.2, 2.0, 0.3]])
X, Y = np.array([0.3, -1.2, 0.7]), np.array([1.0, 2.0, -0.5])


def contiguous(a: Any) -> Any:
    """The array itself, or a copy in C order where it is strided."""
    return np.ascontiguousarray(a)


contiguous.__numbarules_effects__ = Effects(reads=True, aliases=True)


@overload(contiguous)
def _contiguous(a):
    if isinstance(a, StructType):
        return lambda a: a.to_dense()
    if isinstance(a, types.Array) and a.layout == "A":
        return lambda a: np.ascontiguousarray(a)
    return lambda a: a


def transposed(a: Any) -> Any:
    """The transpose in the memory order of the array itself, so that LAPACK's wrapper is compiled once for both."""
    return np.ascontiguousarray(a.T)


transposed.__numbarules_effects__ = Effects(reads=True)


@overload(transposed)
def _transposed(a):
    if isinstance(a, types.Array) and a.layout == "F":
        return lambda a: np.asfortranarray(a.T)
    return lambda a: np.ascontiguousarray(a.T)


# Products. In each case Ybar = dY paired; the loops add outer products without making them.


def _products(product: Callable[..., Any]) -> None:
    """The rules of `np.dot` and `@`, whose errors name the one that was called."""

    # y = a . b:  abar = ybar b,  bbar = ybar a                                                     (Giles 2.2.1, 1 x n times n x 1)
    @rrule(product, at=[(X, Y)])
    def inner_rule(a: AbstractVector, b: AbstractVector):
        y = product(contiguous(a), contiguous(b))

        def inner_pullback(ybar, abar, bbar):
            if abar is not None:
                for i in range(abar.shape[0]):
                    abar[i] += ybar * b[i]
            if bbar is not None:
                for i in range(bbar.shape[0]):
                    bbar[i] += ybar * a[i]

        return y, inner_pullback

    # y = A x:  Abar = ybar x^T,  xbar = A^T ybar                                                    (Giles 2.2.1)
    @rrule(product, at=[(WIDE, X)])
    def matrix_vector_rule(A: AbstractMatrix, x: AbstractVector):
        M = contiguous(A)
        y = product(M, contiguous(x))

        def matrix_vector_pullback(ybar, Abar, xbar):
            if Abar is not None:
                for i in range(Abar.shape[0]):
                    for j in range(Abar.shape[1]):
                        Abar[i, j] += ybar[i] * x[j]
            if xbar is not None:
                xbar += np.dot(M.T, contiguous(ybar))

        return y, matrix_vector_pullback

    # y = A^T x, as x @ A:  xbar = A ybar,  Abar = x ybar^T                                          (Giles 2.2.1)
    @rrule(product, at=[(X, TALL)])
    def vector_matrix_rule(x: AbstractVector, A: AbstractMatrix):
        M = contiguous(A)
        y = product(contiguous(x), M)

        def vector_matrix_pullback(ybar, xbar, Abar):
            if xbar is not None:
                xbar += np.dot(M, contiguous(ybar))
            if Abar is not None:
                for i in range(Abar.shape[0]):
                    for j in range(Abar.shape[1]):
                        Abar[i, j] += x[i] * ybar[j]

        return y, vector_matrix_pullback

    # Y = A B:  Abar = Ybar B^T,  Bbar = A^T Ybar                                                    (Giles 2.2.1)
    @rrule(product, at=[(SQUARE, TALL)])
    def matrix_matrix_rule(A: AbstractMatrix, B: AbstractMatrix):
        M = contiguous(A)
        N = contiguous(B)
        Y = product(M, N)

        def matrix_matrix_pullback(Ybar, Abar, Bbar):
            if Abar is not None:
                Abar += np.dot(contiguous(Ybar), N.T)
            if Bbar is not None:
                Bbar += np.dot(M.T, contiguous(Ybar))

        return Y, matrix_matrix_pullback


_products(np.dot)
_products(operator.matmul)
alias((types.Array, "dot"), np.dot)


# y = conj(a) . b, for real vectors the inner product
@rrule(np.vdot, at=[(X, Y)])
def vdot_rule(a: AbstractVector, b: AbstractVector):
    y = np.vdot(contiguous(a), contiguous(b))

    def vdot_pullback(ybar, abar, bbar):
        if abar is not None:
            for i in range(abar.shape[0]):
                abar[i] += ybar * b[i]
        if bbar is not None:
            for i in range(bbar.shape[0]):
                bbar[i] += ybar * a[i]

    return y, vdot_pullback


# Inverse, solve, determinant


# Y = A^-1:  Abar = -Y^T Ybar Y^T                                                                    (Giles 2.2.3)
@rrule(np.linalg.inv, at=[SQUARE])
def inv_rule(A: AbstractMatrix):
    Y = np.linalg.inv(A)

    def inv_pullback(Ybar):
        return -np.dot(np.dot(Y.T, contiguous(Ybar)), Y.T)

    return Y, inv_pullback


# x = A^-1 b:  bbar = A^-T xbar,  Abar = -bbar x^T                                                   (Giles 2.3.1)
@rrule(np.linalg.solve, at=[(SQUARE, X)])
def solve_rule(A: AbstractMatrix, b: AbstractVector):
    x = np.linalg.solve(A, b)

    def solve_pullback(xbar, Abar, bbar):
        z = np.linalg.solve(transposed(A), xbar)
        if bbar is not None:
            bbar += z
        if Abar is not None:
            for i in range(z.shape[0]):
                for j in range(z.shape[0]):
                    Abar[i, j] -= z[i] * x[j]

    return x, solve_pullback


# X = A^-1 B:  Bbar = A^-T Xbar,  Abar = -Bbar X^T                                                   (Giles 2.3.1)
@rrule(np.linalg.solve, at=[(SQUARE, TALL)])
def solve_many_rule(A: AbstractMatrix, B: AbstractMatrix):
    X = np.linalg.solve(A, B)

    def solve_many_pullback(Xbar, Abar, Bbar):
        Z = np.linalg.solve(transposed(A), np.ascontiguousarray(Xbar))
        if Bbar is not None:
            Bbar += Z
        if Abar is not None:
            Abar -= np.dot(Z, X.T)

    return X, solve_many_pullback


# y = det A:  Abar = ybar cof(A), the matrix of cofactors; y A^-T where A is regular (Giles 2.2.4). With A = U S V^T
# cof(A) = det(U) det(V) U diag(prod_{j != i} s_j) V^T, which is finite and right at singular A too. The inverse is five times as fast, and
# right to about eps times the condition number of A: it serves up to 10^6, by the 1-norm.
@rrule(np.linalg.det, at=[SQUARE])
def det_rule(A: AbstractMatrix):
    y = np.linalg.det(A)

    def det_pullback(ybar, Abar):
        if Abar is not None:
            regular = False
            if y != 0 and np.isfinite(y):
                X = np.linalg.inv(A)
                regular = largest_column(A) * largest_column(X) < 1e6
                if regular:
                    Abar += ybar * y * X.T
            if not regular:
                U, s, Vt = np.linalg.svd(A)
                scale = ybar * np.linalg.det(U) * np.linalg.det(Vt)
                for i in range(s.shape[0]):
                    others = scale
                    for j in range(s.shape[0]):
                        if j != i:
                            others *= s[j]
                    for k in range(s.shape[0]):
                        U[k, i] *= others
                Abar += np.dot(U, Vt)

    return y, det_pullback


def largest_column(A):
    """The 1-norm of a matrix."""
    most = np.abs(A[0, 0]) * 0
    for j in range(A.shape[1]):
        total = np.abs(A[0, 0]) * 0
        for i in range(A.shape[0]):
            total += np.abs(A[i, j])
        most = max(most, total)
    return most


overload(largest_column)(lambda A: largest_column)


# (sign, l) = slogdet A, l = log |det A|:  Abar = lbar A^-T (Giles 2.2.4); the sign is constant where it is differentiable.
# At a singular A the derivative is infinite: the pullback raises LinAlgError, unless lbar is exactly 0, which contributes 0.
@rrule(np.linalg.slogdet, at=[SQUARE])
def slogdet_rule(A: AbstractMatrix):
    y = np.linalg.slogdet(A)

    def slogdet_pullback(ybar, Abar):
        _, lbar = ybar
        if Abar is not None and lbar is not None:
            if lbar != 0:
                Y = np.linalg.inv(A)
                for i in range(Y.shape[0]):
                    for j in range(Y.shape[0]):
                        Abar[i, j] += lbar * Y[j, i]

    return y, slogdet_pullback


# Symmetric factorisations: they read the lower triangle


# A = L L^T:  S = L^-T phi(L^T Lbar) L^-1 with phi(X) = tril(X), its diagonal halved; the lower triangle of S + S^T, its diagonal halved
# (I. Murray, Differentiation of the Cholesky decomposition, 2016, arXiv:1602.07527, eq. 10)
@rrule(np.linalg.cholesky, at=[SYMMETRIC])
def cholesky_rule(A: AbstractMatrix):
    L = np.linalg.cholesky(A)

    def cholesky_pullback(Lbar, Abar):
        n = L.shape[0]
        if Abar is not None:
            below = np.zeros_like(L)
            for i in range(n):
                for j in range(i + 1):
                    below[i, j] = Lbar[i, j]
            P = np.dot(L.T, below)
            for i in range(n):
                P[i, i] *= 0.5
                for j in range(i + 1, n):
                    P[i, j] = 0
            inverse = np.linalg.inv(L)
            S = np.dot(inverse.T, np.dot(P, inverse))
            for i in range(n):
                Abar[i, i] += S[i, i]
                for j in range(i):
                    Abar[i, j] += S[i, j] + S[j, i]

    return L, cholesky_pullback


# A = V diag(w) V^T:  S = V (diag(wbar) + F o (V^T Vbar)) V^T with F_ij = 1/(w_j - w_i), F_ii = 0                     (Giles 3.1)
# F is antisymmetric, so that only the antisymmetric part of V^T Vbar counts. Without a cotangent of V there is no F: finite for repeated
# eigenvalues. Where two are equal and V has a cotangent, its part in that plane is infinite, and exactly 0 where it is 0.
@rrule(np.linalg.eigh, at=[SYMMETRIC])
def eigh_rule(A: AbstractMatrix):
    w, V = np.linalg.eigh(A)

    def eigh_pullback(ybar, Abar):
        wbar, Vbar = ybar
        n = w.shape[0]
        if Abar is not None:
            K = np.zeros_like(V)
            if Vbar is not None:
                M = np.dot(V.T, contiguous(Vbar))
                for i in range(n):
                    for j in range(n):
                        part = 0.5 * (M[i, j] - M[j, i])
                        if part != 0:
                            K[i, j] = part / (w[j] - w[i])
            if wbar is not None:
                for i in range(n):
                    K[i, i] = wbar[i]
            S = np.dot(np.dot(V, K), V.T)
            for i in range(n):
                Abar[i, i] += S[i, i]
                for j in range(i):
                    Abar[i, j] += S[i, j] + S[j, i]

    return (w, V), eigh_pullback


# w = eigenvalues of a symmetric A:  S = V diag(wbar) V^T                                            (Giles 3.1)
@rrule(np.linalg.eigvalsh, at=[SYMMETRIC])
def eigvalsh_rule(A: AbstractMatrix):
    w, V = np.linalg.eigh(A)

    def eigvalsh_pullback(wbar, Abar):
        if Abar is not None:
            S = np.dot(V * wbar, V.T)
            for i in range(S.shape[0]):
                Abar[i, i] += S[i, i]
                for j in range(i):
                    Abar[i, j] += S[i, j] + S[j, i]

    return w, eigvalsh_pullback


# General factorisations. Like cholesky's, their pullbacks use `inv` and loops over a triangle: `np.linalg.solve`, `np.tril` and `np.triu`
# bring Numba's code that writes out a mismatch of shapes, 2 s of compiling each.


# A = X diag(w) X^-1 with real w (Numba raises where they are complex):  Abar = X^-T diag(wbar) X^T  (Giles 3.1). Infinite, or LinAlgError,
# where A is defective.
@rrule(np.linalg.eigvals, at=[SYMMETRIC])
def eigvals_rule(A: AbstractMatrix):
    w, X = np.linalg.eig(A)

    def eigvals_pullback(wbar):
        return np.dot(np.linalg.inv(X).T, (X * wbar).T)

    return w, eigvals_pullback


# A = U diag(s) V^T, thin:  with F_ij = 1/(s_j^2 - s_i^2), F_ii = 0, J = F o (U^T Ubar - Ubar^T U), K = F o (V^T Vbar - Vbar^T V)
# Abar = U (J S + S K + diag(sbar)) V^T + (I - U U^T) Ubar S^-1 V^T + U S^-1 Vbar^T (I - V V^T)
# (J. Townsend, Differentiating the singular value decomposition, 2016, eqs. 24-31). Repeated values: as in eigh.
@rrule(np.linalg.svd, at=[(SQUARE,), (TALL, False)])
def svd_rule(A: AbstractMatrix, full_matrices=1):
    F, s, Ft = np.linalg.svd(A, full_matrices)
    k = s.shape[0]
    U = contiguous(F[:, :k])
    Vt = contiguous(Ft[:k])

    def svd_pullback(ybar):
        Fbar, sbar, Ftbar = ybar
        D = np.zeros((k, k), s.dtype)
        if Fbar is not None:
            if F.shape[1] != k:
                raise ValueError("the derivative of the extra singular vectors is not known: use full_matrices=False")
            M = np.dot(U.T, contiguous(Fbar))
            for i in range(k):
                for j in range(k):
                    part = M[i, j] - M[j, i]
                    if part != 0:
                        D[i, j] += s[j] * part / ((s[j] - s[i]) * (s[j] + s[i]))
        if Ftbar is not None:
            if Ft.shape[0] != k:
                raise ValueError("the derivative of the extra singular vectors is not known: use full_matrices=False")
            N = np.dot(Vt, contiguous(Ftbar).T)
            for i in range(k):
                for j in range(k):
                    part = N[i, j] - N[j, i]
                    if part != 0:
                        D[i, j] += s[i] * part / ((s[j] - s[i]) * (s[j] + s[i]))
        if sbar is not None:
            for i in range(k):
                D[i, i] += sbar[i]
        out = np.dot(np.dot(U, D), Vt)
        if Fbar is not None:
            if U.shape[0] > k:
                out += np.dot((Fbar - np.dot(U, np.dot(U.T, contiguous(Fbar)))) / s, Vt)
        if Ftbar is not None:
            if Vt.shape[1] > k:
                out += np.dot(U / s, Ftbar - np.dot(np.dot(contiguous(Ftbar), Vt.T), Vt))
        return out, None

    return (F, s, Ft), svd_pullback


# A = Q R, thin, m >= n:  M = R Rbar^T - Qbar^T Q,  Abar = (Qbar + Q copyltu(M)) R^-T, copyltu(M) = tril(M) + tril(M, -1)^T
# (H. J. Liao et al., Differentiable programming tensor networks, 2019, arXiv:1903.09650, eq. 12). A wide A: ValueError in the pullback.
@rrule(np.linalg.qr, at=[TALL])
def qr_rule(A: AbstractMatrix):
    Q, R = np.linalg.qr(A)
    P = contiguous(Q)
    S = np.ascontiguousarray(R)

    def qr_pullback(ybar):
        Qbar, Rbar = ybar
        if S.shape[0] != S.shape[1]:
            raise ValueError("the derivative of np.linalg.qr is known for matrices with at least as many rows as columns")
        M = np.zeros_like(S)
        B = np.zeros_like(P)
        if Rbar is not None:
            above = np.zeros_like(S)
            for i in range(S.shape[0]):
                for j in range(i, S.shape[0]):
                    above[i, j] = Rbar[i, j]
            M += np.dot(S, above.T)
        if Qbar is not None:
            M -= np.dot(contiguous(Qbar).T, P)
            B += Qbar
        for i in range(M.shape[0]):
            for j in range(i):
                M[j, i] = M[i, j]
        B += np.dot(P, M)
        return np.dot(B, np.linalg.inv(S).T)

    return (Q, R), qr_pullback
