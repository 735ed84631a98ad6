"""The rules of linear algebra: gradients against central differences, at every layout and precision that they take."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import njit

import numbarules as nr


def differences(f, args, i, step):
    """The gradient by argument `i`, entry by entry."""
    out = np.zeros(args[i].shape)
    for k in np.ndindex(out.shape):
        values = []
        for sign in (1, -1):
            moved = [np.array(a, dtype=np.float64) if isinstance(a, np.ndarray) else a for a in args]
            moved[i][k] += sign * step
            values.append(f(*moved))
        out[k] = (values[0] - values[1]) / (2 * step)
    return out


def check(f, *args, by=None, rtol=2e-6, step=1e-6):
    """Compares the gradients by `by` (all arguments), and with them the second call and what became of the arguments."""
    by = tuple(range(len(args))) if by is None else by
    before = [np.array(a) for a in args]
    gradient = nr.grad(f, argnums=by)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = gradient(*args)
    assert all(w.filename == __file__ for w in told)  # of the user's own code at most
    again = gradient(*args)
    for g, h, i in zip(found, again, by, strict=True):
        want = differences(f, args, i, step)
        assert g.dtype == args[i].dtype
        np.testing.assert_allclose(g, want, rtol=rtol, atol=rtol * max(1.0, np.abs(want).max()))
        np.testing.assert_array_equal(g, h)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


def rng():
    return np.random.default_rng(7)


def layouts(a):
    """The array in C order, in F order, and strided (every second element of a larger one)."""
    wide = np.zeros(tuple(2 * n for n in a.shape))
    strided = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    strided[...] = a
    return {"C": np.ascontiguousarray(a), "F": np.asfortranarray(a), "A": strided}


A, B = rng().normal(size=(3, 4)), rng().normal(size=(4, 2))
SQUARE = rng().normal(size=(4, 4)) + 2 * np.eye(4)
SYMMETRIC = SQUARE @ SQUARE.T + np.diag([1.0, 2.0, 3.0, 4.0])
WEIGHT = rng().normal(size=(4, 4))
x, y = rng().normal(size=4), rng().normal(size=3)


@njit
def inner(a, b):
    return np.dot(a, b) + np.vdot(a, b) + 2.0 * (a @ b) * a[0] + a.dot(b)


@njit
def matrix_vector(M, v):
    r = M @ v
    return np.sum(r * r) + np.sum(np.dot(M, v))


@njit
def vector_matrix(v, M):
    r = v @ M
    return np.sum(r * r)


@njit
def matrix_matrix(M, N):
    R = M @ N
    return np.sum(R * R) + np.sum(M.dot(N))


@pytest.mark.parametrize("layout", ["C", "F", "A"])
@pytest.mark.parametrize(("f", "a", "b"), [(inner, x, 0.5 * x + 1), (matrix_vector, A, x), (vector_matrix, y, A), (matrix_matrix, A, B)])
def test_products(f, a, b, layout):
    check(f, layouts(a)[layout if a.ndim > 1 or layout != "F" else "A"], layouts(b)[layout if b.ndim > 1 or layout != "F" else "C"])


def test_products_in_float32():
    a, b = A.astype(np.float32), B.astype(np.float32)
    check(matrix_matrix, a, b, rtol=2e-4, step=1e-3)


def test_one_factor_wanted():
    check(matrix_matrix, A, B, by=(1,))


@njit
def powers(M, n):
    P = np.eye(M.shape[0])
    s = 0.0
    for _ in range(n):
        P = P @ M
        s += np.sum(P * P)
    return s


def test_product_in_a_loop():
    check(powers, 0.5 * SQUARE, 3, by=(0,))


@njit
def overwritten(M, v):
    r = M @ v
    v[:] = 2.0 * r
    M[0, 0] = 5.0
    r[1] = v[0] * r[2]
    return np.sum((M @ v) * r)


def test_factors_overwritten_after_the_product():
    check(overwritten, SQUARE, x)


@njit
def into_output(M, N, out):
    np.dot(M, N, out)
    return np.sum(out * out) + np.sum(M)


def test_product_into_an_output():
    check(into_output, SQUARE, WEIGHT, np.zeros((4, 4)), by=(0, 1))


@njit
def inverse(M, W):
    Y = np.linalg.inv(M)
    s = np.sum(Y * W)
    Y[0, 0] = 3.0
    return s * Y[0, 1]


def test_inv():
    check(inverse, SQUARE, WEIGHT)
    check(inverse, np.asfortranarray(SQUARE), layouts(WEIGHT)["A"], by=(0,))


@njit
def solve(M, b, N):
    v = np.linalg.solve(M, b)
    X = np.linalg.solve(M, N)
    return np.sum(v * v) + np.sum(X * X)


def test_solve_with_a_vector_and_with_a_matrix():
    check(solve, SQUARE, x, B)


@njit
def det(M):
    return np.linalg.det(M) ** 2 + np.linalg.det(M)


@njit
def slogdet(M):
    sign, logarithm = np.linalg.slogdet(M)
    return sign * logarithm


def test_det_and_slogdet():
    check(det, SQUARE)
    check(slogdet, SQUARE)


def test_det_at_a_singular_matrix():
    singular = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]])
    check(det, singular)


@njit
def cholesky(M, W):
    return np.sum(np.linalg.cholesky(M) * W)


def test_cholesky_has_its_gradient_in_the_lower_triangle():
    check(cholesky, SYMMETRIC, WEIGHT)
    assert np.all(np.triu(nr.grad(cholesky)(SYMMETRIC, WEIGHT), 1) == 0)


@njit
def eigen(M, W):
    w, V = np.linalg.eigh(M)
    return np.sum((V * np.sqrt(w)) @ V.T * W)


@njit
def eigen_values(M):
    w, _ = np.linalg.eigh(M)
    return np.sum(w**3) + np.sum(np.linalg.eigvalsh(M) ** 2)


def test_eigh():
    check(eigen, SYMMETRIC, WEIGHT, rtol=2e-5)
    check(eigen_values, SYMMETRIC, rtol=1e-5)


def test_repeated_eigenvalues_are_finite_where_only_values_are_used():
    np.testing.assert_allclose(nr.grad(eigen_values)(2 * np.eye(4)), (12 + 4) * np.eye(4))


@njit
def general_values(M):
    return np.sum(np.linalg.eigvals(M) ** 3)


def test_eigvals_with_real_values():
    check(general_values, SYMMETRIC + np.triu(WEIGHT, 1) * 0.1, rtol=1e-5)


@njit
def singular(M, P, Q):
    U, s, Vt = np.linalg.svd(M, False)
    return np.sum((U * np.exp(-s)) @ Vt * P) + np.sum(s**3) + np.sum(Vt * Vt * Q)


@njit
def singular_values(M):
    _, s, _ = np.linalg.svd(M)
    return np.sum(s**3)


def test_svd():
    check(singular, A, WEIGHT[:3], WEIGHT[1:], by=(0,), rtol=1e-5)
    tall = np.ascontiguousarray(A.T)
    check(singular, tall, np.ascontiguousarray(WEIGHT[:, :3]), np.ascontiguousarray(WEIGHT[:3, :3]), by=(0,), rtol=1e-5)
    check(singular_values, A, rtol=1e-5)


@njit
def orthogonal(M, P):
    Q, R = np.linalg.qr(M)
    return np.sum(Q * P) + np.sum(R * R * R)


def test_qr():
    check(orthogonal, np.ascontiguousarray(A.T), np.ascontiguousarray(WEIGHT[:, :3]), by=(0,), rtol=1e-5)


@njit
def pinv(M):
    return np.sum(np.linalg.pinv(M))


@njit
def lstsq(M, b):
    return np.sum(np.linalg.lstsq(M, b)[0])


@pytest.mark.parametrize(("f", "args"), [(pinv, (A,)), (lstsq, (A.T.copy(), x))])
def test_refused_by_name(f, args):
    with pytest.raises(nr.NumbarulesError, match=rf"numpy\.linalg\.{f.__name__}") as caught:
        nr.grad(f)(*args)
    assert __file__ in str(caught.value)
