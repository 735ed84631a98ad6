"""Gradients by structured matrices are of their kind, and hold the differences by the numbers that they store."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import numbarules as nr
from numbarules.structured import Diagonal, Fill, LowerTriangular, LowRank, Symmetric

from .kinds import KINDS, N, of_dtype, x

W, w = np.cos(np.arange(N * N)).reshape(N, N), np.sin(1.0 + np.arange(N))


def reading(A, x):
    return np.sum(A) ** 2 + A.trace() ** 2 + np.linalg.norm(A) * x[0] + 3.0 * A[1, 2] + A[-1, -1] * A[2, 1] + np.sum(W * A.to_dense())


def vectors(A, x):
    return np.dot(w, A @ x) + np.dot(x, x @ A) + np.sum(W * (2.0 * A).T.to_dense())


def matrices(A, x):
    return np.sum(W * (A @ W)) + x[0] * np.sum(W * (W @ A)) + np.sum(W * ((A @ A) @ W))


def arithmetic(A, x):
    own = np.sum(W * (x[0] * A).to_dense()) + np.sum(W * (A + A).to_dense()) - np.sum(W * (A * A).to_dense()) + np.sum(W * (-A).to_dense())
    return own + np.sum(W * ((A + W) * A * (W - A))) + np.sum(W * (x[1] - A))


def determinants(A, x):
    sign, logarithm = np.linalg.slogdet(A)
    return np.linalg.det(A) * x[0] + sign * logarithm * x[1]


def solutions(A, x):
    return np.dot(w, A.solve(x)) + np.sum(W * np.linalg.solve(A, W))


SINGULAR = ("determinants", "solutions")
CHEAP = {  # in each run of the tests; the other pairs are slow
    "reading": ("Diagonal", "SkewSymmetric", "CSR"),
    "vectors": ("UpperTriangular", "LowRank"),
    "matrices": ("Fill",),
    "determinants": ("LowerTriangular",),
    "solutions": ("LowerTriangular",),
}
CASES = [
    pytest.param(f, A, id=f"{f.__name__}-{name}", marks=[] if name in CHEAP.get(f.__name__, ()) else pytest.mark.slow)
    for f in (reading, vectors, matrices, arithmetic, determinants, solutions)
    for name, (A, _) in KINDS.items()
    if not (name == "Fill" and f.__name__ in SINGULAR)
]


def moved(A, field, place, h):
    made = A.__numbarules_struct__
    values = [getattr(A, f) for f in made.fields]
    at = made.fields.index(field)
    if isinstance(values[at], float):
        values[at] += h
    else:
        values[at] = values[at].copy()
        values[at].flat[place] += h
    return made.make(*values)


def differences(f, A, x, h=1e-6):
    """The central differences of `f`, run in Python, by each number that is stored."""
    for field in A.__numbarules_struct__.fields:
        stored = getattr(A, field)
        if np.asarray(stored).dtype.kind == "f" and not isinstance(stored, tuple):
            found = [(f(moved(A, field, p, h), x) - f(moved(A, field, p, -h), x)) / (2 * h) for p in range(np.size(stored))]
            yield field, np.reshape(found, np.shape(stored))


@pytest.mark.parametrize(("f", "A"), CASES)
def test_gradients_are_of_the_kind_and_differences_by_what_is_stored(f, A):
    by_matrix, by_vector = nr.grad(njit(f), argnums=(0, 1))(A, x)
    assert type(by_matrix) is type(A)
    compared = 0
    for field, wanted in differences(f, A, x):
        np.testing.assert_allclose(getattr(by_matrix, field), wanted, 1e-6, 1e-6 * (1 + np.abs(wanted).max()))
        compared += 1
    assert compared > 0
    steps = np.eye(N) * 1e-6
    by_hand = np.array([(f(A, x + s) - f(A, x - s)) / 2e-6 for s in steps])
    np.testing.assert_allclose(by_vector, by_hand, 1e-6, 1e-6 * (1 + np.abs(by_hand).max()))


def test_what_is_no_float_is_that_of_the_matrix():
    A = KINDS["CSR"][0]
    g = nr.grad(njit(lambda A: A.sum()))(A)
    assert np.array_equal(g.indices, A.indices) and np.array_equal(g.indptr, A.indptr) and g.shape == A.shape


def test_float32_stays_float32():
    g = nr.grad(njit(lambda A, x: np.sum(A @ x)))(of_dtype(KINDS["Diagonal"][0], np.float32), x.astype(np.float32))
    assert g.diag.dtype == np.float32


def test_the_norm_of_zero_has_gradient_zero():
    norm = njit(lambda A: np.linalg.norm(A))
    assert nr.grad(norm)(Diagonal(np.zeros(2))) == Diagonal(np.zeros(2))
    assert nr.grad(norm)(Fill(0.0, (2, 2))).value == 0.0


def test_a_determinant_that_is_zero_by_structure_has_gradient_zero():
    g = nr.grad(njit(lambda A: np.linalg.det(A)))(LowRank(np.ones((3, 2)), np.ones((3, 2))))
    assert not g.U.any() and not g.V.any()


def test_constructors_and_chains_of_kinds():
    @njit
    def f(M, x):
        L = LowerTriangular(M)
        return np.sum((L @ Diagonal(x).to_dense()) * Symmetric(M).to_dense())

    M = W + 2.0
    gradient = nr.grad(f)(M, x)
    wanted = np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            step = np.zeros((N, N))
            step[i, j] = 1e-6
            wanted[i, j] = (f(M + step, x) - f(M - step, x)) / 2e-6
    np.testing.assert_allclose(gradient, wanted, 1e-6, 1e-7)
    assert not gradient[np.triu_indices(N, 1)].any(), "what is not read has derivative zero"
