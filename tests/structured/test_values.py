"""Every operation of every structured type has the value that NumPy computes with the dense matrix, in Python and in jitted code."""

# mypy: ignore-errors

from __future__ import annotations

import operator
import subprocess
import sys

import numpy as np
import pytest
from numba import float32, njit, typeof
from numba.core.errors import TypingError

import numbarules as nr
from numbarules.rules.table import table
from numbarules.specialized import implementations
from numbarules.structs import struct_of
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

from . import kinds as k
from .kinds import KINDS, B, N, x

BY_KIND = pytest.mark.parametrize(("A", "D"), KINDS.values(), ids=KINDS)

# What the kind of a result is where it is not that of the operands: of A + A, A - cA, A * A, cA, cA, -A, A.T
CHANGED = {
    "UnitLowerTriangular": [LowerTriangular, np.ndarray, UnitLowerTriangular, *[LowerTriangular] * 3, UpperTriangular],
    "LowerTriangular": [*[LowerTriangular] * 6, UpperTriangular],
    "UpperTriangular": [*[UpperTriangular] * 6, LowerTriangular],
    "SkewSymmetric": [*[SkewSymmetric] * 2, Symmetric, *[SkewSymmetric] * 4],
}


class Dense(np.ndarray):
    """A dense matrix with the methods of the structured ones, which are NumPy's functions."""

    norm, det, slogdet, solve = np.linalg.norm, np.linalg.det, np.linalg.slogdet, np.linalg.solve

    def to_dense(self):
        return self


def close(found, wanted, rtol=1e-10):
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(f), np.asarray(w), rtol, rtol)


def check(run, A, D, singular):
    """`run` calls one of the operations of `kinds`, in Python or compiled."""
    dense = D.view(Dense)
    made = run(k.same_kind, A, A, 2.0)
    close(made, k.same_kind(dense, dense, 2.0))
    assert [type(m) for m in made] == CHANGED.get(type(A).__name__, [type(A)] * 7)
    close(run(k.products, A, x, B), k.products(D, x, B))
    close(run(k.numbers, A), k.numbers(dense))
    close(run(k.with_dense, A, D, 2.0), k.with_dense(dense, D, 2.0))
    if not singular:
        close(run(k.determinants, A), k.determinants(dense))
        close(run(k.solutions, A, x, B), k.solutions(dense, x, B))


@BY_KIND
def test_in_python(A, D):
    check(lambda f, *args: f(*args), A, D, singular=isinstance(A, Fill))


JITTED = {f: njit(f) for f in (k.same_kind, k.products, k.numbers, k.with_dense, k.determinants, k.solutions)}


@pytest.mark.slow
@BY_KIND
def test_in_jitted_code(A, D):
    check(lambda f, *args: JITTED[f](*args), A, D, singular=isinstance(A, Fill))


def cheap(A, x):
    """Some operations, without LAPACK and without other matrices."""
    return (2.0 * (A.T @ x), (-A).to_dense(), A[1, 2], A[-1, -1], A.sum(), np.trace(A), np.linalg.norm(A)), A.T


@pytest.mark.parametrize(
    ("A", "D"),
    [pytest.param(*pair, marks=[] if name in ("Diagonal", "UpperTriangular", "CSR") else pytest.mark.slow) for name, pair in KINDS.items()],
    ids=KINDS,
)
def test_cheap_in_jitted_code(A, D):
    found, turned = njit(cheap)(A, x)
    close(found, cheap(D.view(Dense), x)[0])
    close((turned,), (D.T,))


@BY_KIND
def test_float32_stays_float32_in_python(A, D):
    A32, x32, B32, c = k.of_dtype(A, np.float32), x.astype(np.float32), B.astype(np.float32), np.float32(2)
    results = [*k.same_kind(A32, A32, c), *k.products(A32, x32, B32), *k.numbers(A32), *k.with_dense(A32, D.astype(np.float32), c)]
    if not isinstance(A, Fill):
        results += [*k.determinants(A32), *k.solutions(A32, x32, B32)]
    assert {np.asarray(r).dtype for r in results} == {np.dtype(np.float32)}


@pytest.mark.slow
@BY_KIND
def test_float32_stays_float32_in_jitted_code(A, D):
    A32, D32, x32, B32 = (typeof(k.of_dtype(v, np.float32)) for v in (A, D, x, B))
    for f, args in ((k.numbers, (A32,)), (k.products, (A32, x32, B32)), (k.determinants, (A32,)), (k.solutions, (A32, x32, B32))):
        assert "float64" not in str(_result(f, args))
    assert "float64" not in str(_result(k.same_kind, (A32, A32, float32))) and "float64" not in str(
        _result(k.with_dense, (A32, D32, float32))
    )


def _result(f, args):
    compiled = njit(f)
    compiled.compile(args)
    return compiled.overloads[compiled.signatures[0]].signature.return_type


# Between kinds


L, U, R = KINDS["LowerTriangular"][0], KINDS["UpperTriangular"][0], KINDS["LowRank"][0]


def mixed(A, B, r):
    return A + B, A - B, A * B, A @ B, A @ r, r @ A


@pytest.mark.parametrize("run", [lambda f: f, pytest.param(njit, marks=pytest.mark.slow)], ids=["python", "jitted"])
def test_mixed_kinds_are_dense_and_products_with_low_rank_of_low_rank(run):
    found = run(mixed)(L, U, R)
    assert [type(f) for f in found] == [np.ndarray] * 4 + [LowRank] * 2
    close(found, mixed(np.asarray(L), np.asarray(U), np.asarray(R)))


@pytest.mark.parametrize("left", KINDS.values(), ids=KINDS)
def test_all_kinds_combine(left):
    A, D = left
    for E, F in KINDS.values():
        close([A + E, A - E, A * E, A @ E], [D + F, D - F, D * F, D @ F])


# Particular types


def test_of_skew_symmetric_matrices_of_odd_size_the_determinant_is_zero():
    A = SkewSymmetric(np.arange(9.0).reshape(3, 3))
    assert A.det() == 0.0 and A.slogdet() == (0.0, -np.inf)


def test_low_rank_is_singular_below_full_rank():
    A = LowRank(np.ones((3, 2)), np.ones((3, 2)))
    assert A.det() == 0.0 and A.slogdet() == (0.0, -np.inf)
    with pytest.raises(ValueError, match="singular"):
        A.solve(np.ones(3))


def test_fill_of_one_dimension_and_of_one_row():
    f = Fill(2.0, (3,))
    assert (f[1], f.shape, f.ndim, f.sum(), f.norm(), (3.0 - f * f).value) == (2.0, (3,), 1, 6.0, 2.0 * np.sqrt(3.0), -1.0)
    assert njit(lambda f: f[1] + np.sum(f) + f.norm())(f) == 8.0 + 2.0 * np.sqrt(3.0)
    one = Fill(2.0, (1, 1))
    assert (one.det(), one.slogdet(), one.solve(np.array([4.0])).tolist()) == (2.0, (1.0, np.log(2.0)), [2.0])
    assert (Fill(2.0, (2, 2)).det(), Fill(2.0, (2, 2)).slogdet()) == (0.0, (0.0, -np.inf))
    with pytest.raises(TypeError):
        np.trace(f)


def test_rectangular_ones():
    low, fill = LowRank(np.ones((2, 1)), np.arange(3.0)[:, None]), Fill(2.0, (2, 3))
    sparse = CSR(np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 1, 2]), (2, 3))
    for A in (low, fill, sparse):
        D = A.to_dense()
        assert A.shape == D.shape == (2, 3) and A.T.shape == (3, 2)
        close(
            [A @ np.ones(3), np.ones(2) @ A, A @ A.T, A.sum(), A.trace(), A.norm()],
            [D @ np.ones(3), np.ones(2) @ D, D @ D.T, D.sum(), np.trace(D), np.linalg.norm(D)],
        )
        with pytest.raises(ValueError, match=r"not match|mismatch|not aligned"):
            A @ np.ones(2)
    assert isinstance(sparse @ sparse.T, CSR) and isinstance(fill @ fill.T, Fill)


def test_sums_of_sparse_matrices_store_each_place_once():
    A = KINDS["CSR"][0]
    total = A + A
    assert total.data.size == A.data.size - 1, "one place was there twice"


def test_slogdet_of_a_long_tridiagonal_matrix_does_not_overflow():
    n = 1000
    A = Tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    roots = 2 + np.sqrt(3), 2 - np.sqrt(3)  # of t² = 4t - 1: the determinant is (r^(n+1) - s^(n+1)) / (r - s)
    assert np.isclose(A.slogdet()[1], (n + 1) * np.log(roots[0]) - np.log(roots[0] - roots[1]), rtol=1e-13)


# Construction, fields, printing


@BY_KIND
def test_they_are_immutable_and_print_and_index_as_matrices_do(A, D):
    name = type(A).__name__
    assert repr(A).startswith(f"{name}(") and eval(repr(A), {"array": np.array, "int64": np.int64, **vars(k)}) is not None
    assert A.shape == D.shape and A.ndim == 2 and len(A) == N
    assert np.allclose([[A[i, j] for j in range(-N, N)] for i in range(-N, N)], np.tile(D, (2, 2)), rtol=1e-14)
    for index in ((N, 0), (0, -N - 1), 0, (0, 0, 0)):
        with pytest.raises(IndexError):
            A[index]
    with pytest.raises(AttributeError):
        A.shape = (1, 1)


def test_large_ones_print_their_size():
    assert repr(Symmetric(np.eye(100, dtype=np.float32))) == "Symmetric(<100 x 100, float32>)"


@njit
def built(M, x):
    diagonal, fill, low, sparse = Diagonal(x), Fill(x[0], (2, 3)), LowRank(M, M), CSR(x, np.array([0, 1]), np.array([0, 1, 2]), (2, 2))
    tri = Tridiagonal(x[1:], x, x[:1])
    packed = Symmetric(M), SkewSymmetric(M), LowerTriangular(M), UpperTriangular(M), UnitLowerTriangular(M)
    return diagonal, fill, low, sparse, tri, packed, diagonal.diag[0] + fill.value + low.U[0, 0] + sparse.data[0] + tri.d[0]


def test_they_are_built_in_jitted_code_as_in_python():
    M, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])
    found, wanted = built(M, v), built.py_func(M, v)
    assert [type(f) for f in found[5]] == [Symmetric, SkewSymmetric, LowerTriangular, UpperTriangular, UnitLowerTriangular]
    assert found == wanted
    assert Symmetric(M).packed.tolist() == [1, 3, 4] and UpperTriangular(M).packed.tolist() == [1, 2, 4]
    assert SkewSymmetric(M).packed.tolist() == UnitLowerTriangular(M).packed.tolist() == [3]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Diagonal(np.eye(2)),
        lambda: Tridiagonal(np.ones(2), np.ones(2), np.ones(1)),
        lambda: LowRank(np.ones((2, 1)), np.ones((2, 2))),
        lambda: Symmetric(np.ones((2, 3))),
        lambda: Fill(1.0, (2, 2, 2)),
        lambda: CSR([1.0], [5], [0, 1], (1, 2)),
        lambda: CSR([1.0], [0], [0, 2], (1, 2)),
        lambda: Diagonal(np.ones(2)) + Diagonal(np.ones(1)),
        lambda: Symmetric(np.eye(2)) + Symmetric(np.eye(1)),
        lambda: LowerTriangular(np.eye(2)) @ np.ones(3),
    ],
)
def test_shapes_that_do_not_fit_are_errors(wrong):
    with pytest.raises(ValueError, match=r"match|vector|columns|square|shape|indptr|indices"):
        wrong()


# The table


def test_each_implementation_is_one_opt_out_and_no_finding():
    mine = [
        e for e in implementations.entries() if e.origin.name and "structured" in e.origin.filename and "tests" not in e.origin.filename
    ]
    assert len(mine) > 150
    rows = [e for e in table.entries() if e.kind == "opt_out" and any(e.payload is m.payload for m in mine)]
    assert sorted(map(str, (e.signature for e in rows))) == sorted(e.signature for e in mine)
    assert not [p for p in nr.check_table() if any(e in rows for e in p.entries)]
    rules = [e for e in table.entries() if e.kind != "opt_out" and "structured" in e.origin.filename and "tests" not in e.origin.filename]
    assert not rules, "they need no rules of their own"


def test_generic_rules_do_not_catch_them():
    for A, _ in KINDS.values():
        t, v = typeof(A), typeof(x)
        for call in (
            (operator.matmul, t, v),
            (operator.matmul, v, t),
            (operator.matmul, t, t),
            (np.linalg.det, t),
            (np.linalg.solve, t, v),
        ):
            found = table.lookup(call[0], call[1:]).entry
            assert (
                found is not None and found.kind == "opt_out" and found.payload is implementations.lookup(call[0], call[1:]).entry.payload
            )


def test_importing_numbarules_teaches_numba_nothing():
    program = "import numbarules, sys; assert 'numbarules.structured' not in sys.modules; numbarules.structured.Diagonal"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_other_functions_of_numpy_are_refused():
    A = Diagonal(x)
    assert struct_of(typeof(A)).name == "Diagonal"
    with pytest.raises(TypeError):
        np.linalg.eigvals(A)
    with pytest.raises(TypeError):
        np.exp(A)
    with pytest.raises(TypingError):
        njit(lambda A: np.diag(A))(A)
