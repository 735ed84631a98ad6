"""Programs whose call has a generic rule and a cheaper method: what `perf/opt_out.py` measures and `tests/test_opt_out_code.py` compares.

Each scenario has the program, the same program with the special method pasted in by hand, the derivative written by hand, arguments of a
size, and the generic rule. A rule is made for `kind`, the pattern of its first argument, for `special`, the pattern for which its body opts
out, and for `at_run_time`, whether it opts out by a test of values. `registered` puts one of them into the table.
"""

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import njit, types
from numba.extending import overload

import numbarules as nr
from numbarules.rules.table import table
from numbarules.structured import CSR, Diagonal, Fill, LowRank, SkewSymmetric, UpperTriangular
from numbarules.structured.common import Matrix, Structured

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["SCENARIOS", "WAYS", "Scenario", "registered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """See the module.

    `patterns` is the signature to opt out, `abstract` what a generic rule has in place of the first of them. `call` gives the arguments of
    the call from those of the program. `pays` tells whether opting out is expected to be faster than the generic rule.
    """

    name: str
    function: Any
    patterns: tuple[Any, ...]
    abstract: Any
    rule: Callable[[Any, Any, bool], Any]
    program: Any
    pasted: Any
    hand: Any
    arguments: Callable[[int], tuple[Any, ...]]
    argnums: int | tuple[int, ...] = 0
    call: Callable[..., tuple[Any, ...]] = lambda *args: args
    largest: int = 1024
    pays: bool = True

    @property
    def special(self) -> Any:
        """The pattern for which a rule's body opts out."""
        return self.patterns[0]


def rng() -> np.random.Generator:
    """The generator of all arguments, the same at each call."""
    return np.random.default_rng(1)


# ---------------------------------------------------------------------------------------------- what makes a number of a result


@njit
def vector_squares(y):
    total = 0.0
    for i in range(y.shape[0]):
        total += y[i] * y[i]
    return total


@njit
def vector_cubes(y):
    total = 0.0
    for i in range(y.shape[0]):
        total += y[i] * y[i] * y[i]
    return total


@njit
def matrix_squares(Y):
    total = 0.0
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            total += Y[i, j] * Y[i, j]
    return total


# ---------------------------------------------------------------------------------------------- Diagonal @ vector


def vector_product(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, x: nr.AbstractVector):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if x.shape[0] > 0:
                return None
        y = A @ x

        def product_pullback(ybar):
            return np.outer(ybar, x), A.T @ ybar

        return y, product_pullback

    return product_rule


@njit
def diagonal_vector(A, x):
    return vector_squares(A @ x)


@njit
def diagonal_vector_pasted(A, x):
    if A.diag.shape[0] != x.shape[0]:
        raise ValueError("@: the shapes do not match")
    return vector_squares(A.diag * x)


@njit
def diagonal_vector_by_hand(A, x):
    n = x.shape[0]
    diag_bar, x_bar = np.empty(n), np.empty(n)
    total = 0.0
    for i in range(n):
        y = A.diag[i] * x[i]
        total += y * y
        diag_bar[i] = 2.0 * y * x[i]
        x_bar[i] = 2.0 * y * A.diag[i]
    return total, (Diagonal(diag_bar), x_bar)


def diagonal_vector_arguments(n: int) -> tuple[Any, ...]:
    return Diagonal(rng().normal(size=n)), rng().normal(size=n)


# ---------------------------------------------------------------------------------------------- Diagonal @ matrix, CSR @ matrix


def matrix_product(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, B: nr.AbstractMatrix):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if B.shape[0] > 0:
                return None
        Y = A @ B

        def product_pullback(Ybar):
            return np.dot(np.ascontiguousarray(Ybar), B.T), A.T @ Ybar

        return Y, product_pullback

    return product_rule


@njit
def matrix_program(A, B):
    return matrix_squares(A @ B)


@njit
def diagonal_matrix_pasted(A, B):
    if A.diag.shape[0] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    return matrix_squares(A.diag[:, np.newaxis] * B)


@njit
def diagonal_matrix_by_hand(A, B):
    m, n = B.shape
    diag_bar, B_bar = np.empty(m), np.empty((m, n))
    total = 0.0
    for i in range(m):
        d = A.diag[i]
        s = 0.0
        for j in range(n):
            y = d * B[i, j]
            total += y * y
            s += 2.0 * y * B[i, j]
            B_bar[i, j] = 2.0 * y * d
        diag_bar[i] = s
    return total, (Diagonal(diag_bar), B_bar)


def diagonal_matrix_arguments(n: int) -> tuple[Any, ...]:
    return Diagonal(rng().normal(size=n)), rng().normal(size=(n, n))


@njit
def csr_matrix_pasted(A, B):
    if A.shape[1] != B.shape[0]:
        raise ValueError("@: the shapes do not match")
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for j in range(B.shape[1]):
                Y[i, j] += A.data[k] * B[A.indices[k], j]
    return matrix_squares(Y)


@njit
def csr_matrix_by_hand(A, B):
    data_bar, B_bar = np.empty_like(A.data), np.zeros_like(B)
    n = B.shape[1]
    row = np.empty(n)
    total = 0.0
    for i in range(A.shape[0]):
        row[:] = 0.0
        for k in range(A.indptr[i], A.indptr[i + 1]):
            for j in range(n):
                row[j] += A.data[k] * B[A.indices[k], j]
        for j in range(n):
            total += row[j] * row[j]
        for k in range(A.indptr[i], A.indptr[i + 1]):
            s = 0.0
            for j in range(n):
                s += 2.0 * row[j] * B[A.indices[k], j]
                B_bar[A.indices[k], j] += 2.0 * row[j] * A.data[k]
            data_bar[k] = s
    return total, (CSR(data_bar, A.indices.copy(), A.indptr.copy(), A.shape), B_bar)


def csr_matrix_arguments(n: int) -> tuple[Any, ...]:
    """Four elements a row; 32 columns of the dense factor."""
    indices = np.sort(rng().integers(0, n, size=(n, 4)), axis=1)
    return CSR(rng().normal(size=4 * n), indices.ravel(), np.arange(0, 4 * n + 1, 4), (n, n)), rng().normal(size=(n, 32))


# ---------------------------------------------------------------------------------------------- sum(SkewSymmetric)


def sum_of_all(kind: Any, special: Any, at_run_time: bool) -> Any:
    def sum_rule(A: kind):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        y = np.sum(A)
        shape = A.shape

        def sum_pullback(ybar):
            return np.full(shape, ybar)

        return y, sum_pullback

    return sum_rule


@njit
def skew_sum(A):
    total = np.sum(A)
    return total * total + total


@njit
def skew_sum_pasted(A):
    total = 0.0
    return total * total + total


@njit
def skew_sum_by_hand(A):
    return 0.0, make_skew(np.zeros(A.packed.shape[0]), A.n)


make_skew = SkewSymmetric.__numbarules_struct__.make


def skew_sum_arguments(n: int) -> tuple[Any, ...]:
    return (SkewSymmetric(rng().normal(size=(n, n))),)


# ---------------------------------------------------------------------------------------------- Fill[i] in a loop


def element_of(kind: Any, special: Any, at_run_time: bool) -> Any:
    def element_rule(x: kind, i: types.Integer):
        if nr.is_a(x, special):
            return None
        if at_run_time:
            if i >= 0:
                return None
        y = x[i]
        n = x.shape[0]

        def element_pullback(ybar):
            xbar = np.zeros(n)
            xbar[i] = ybar
            return xbar, None

        return y, element_pullback

    return element_rule


@njit
def fill_loop(x, weights):
    total = 0.0
    for i in range(weights.shape[0]):
        total += math.sin(x[i] * weights[i])
    return total


@njit
def fill_loop_pasted(x, weights):
    total = 0.0
    for i in range(weights.shape[0]):
        total += math.sin(x.value * weights[i])
    return total


@njit
def fill_loop_by_hand(x, weights):
    total = value_bar = 0.0
    for i in range(weights.shape[0]):
        total += math.sin(x.value * weights[i])
        value_bar += math.cos(x.value * weights[i]) * weights[i]
    return total, Fill(value_bar, x.shape)


def fill_loop_arguments(n: int) -> tuple[Any, ...]:
    return Fill(0.7, (n,)), rng().normal(size=n)


# ---------------------------------------------------------------------------------------------- norm(UpperTriangular)


def frobenius(kind: Any, special: Any, at_run_time: bool) -> Any:
    def norm_rule(A: kind):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        y = np.linalg.norm(A)

        def norm_pullback(ybar):
            return A.to_dense() * (ybar / y if y > 0.0 else 0.0)

        return y, norm_pullback

    return norm_rule


@njit
def triangular_norm(A):
    return np.linalg.norm(A)


@njit
def triangular_norm_pasted(A):
    squares = 0.0
    for i in range(A.packed.shape[0]):
        squares += A.packed[i] * A.packed[i]
    if squares > 0:
        return np.sqrt(squares)
    return squares - squares


@njit
def triangular_norm_by_hand(A):
    squares = 0.0
    for i in range(A.packed.shape[0]):
        squares += A.packed[i] * A.packed[i]
    norm = math.sqrt(squares)
    packed_bar = np.empty(A.packed.shape[0])
    factor = 1.0 / norm if norm > 0.0 else 0.0
    for i in range(A.packed.shape[0]):
        packed_bar[i] = A.packed[i] * factor
    return norm, make_upper(packed_bar, A.n)


make_upper = UpperTriangular.__numbarules_struct__.make


def triangular_norm_arguments(n: int) -> tuple[Any, ...]:
    return (UpperTriangular(rng().normal(size=(n, n))),)


# ---------------------------------------------------------------------------------------------- slogdet(Diagonal)


def log_determinant(kind: Any, special: Any, at_run_time: bool) -> Any:
    def slogdet_rule(A: kind):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        sign, logarithm = np.linalg.slogdet(A)

        def slogdet_pullback(ybar):
            return np.linalg.inv(A.to_dense()).T * ybar[1]

        return (sign, logarithm), slogdet_pullback

    return slogdet_rule


@njit
def diagonal_slogdet(A):
    _, logarithm = np.linalg.slogdet(A)
    return logarithm


@njit
def diagonal_slogdet_pasted(A):
    sign = 1.0
    logarithm = 0.0
    for i in range(A.diag.shape[0]):
        sign *= np.sign(A.diag[i])
        logarithm += np.log(np.abs(A.diag[i]))
    return logarithm


@njit
def diagonal_slogdet_by_hand(A):
    diag_bar = np.empty(A.diag.shape[0])
    logarithm = 0.0
    for i in range(A.diag.shape[0]):
        logarithm += np.log(np.abs(A.diag[i]))
        diag_bar[i] = 1.0 / A.diag[i]
    return logarithm, Diagonal(diag_bar)


def diagonal_slogdet_arguments(n: int) -> tuple[Any, ...]:
    return (Diagonal(rng().uniform(0.5, 2.0, size=n)),)


# ---------------------------------------------------------------------------------------------- LowRank @ vector


@njit
def low_rank_vector_pasted(A, x):
    return vector_squares(A.U @ (A.V.T @ x))


@njit
def low_rank_vector_by_hand(A, x):
    m, r = A.U.shape
    n = A.V.shape[0]
    inner, inner_bar = np.zeros(r), np.zeros(r)
    for j in range(n):
        for k in range(r):
            inner[k] += A.V[j, k] * x[j]
    U_bar, V_bar, x_bar = np.empty((m, r)), np.empty((n, r)), np.empty(n)
    total = 0.0
    for i in range(m):
        y = 0.0
        for k in range(r):
            y += A.U[i, k] * inner[k]
        total += y * y
        for k in range(r):
            U_bar[i, k] = 2.0 * y * inner[k]
            inner_bar[k] += 2.0 * y * A.U[i, k]
    for j in range(n):
        s = 0.0
        for k in range(r):
            V_bar[j, k] = inner_bar[k] * x[j]
            s += inner_bar[k] * A.V[j, k]
        x_bar[j] = s
    return total, (LowRank(U_bar, V_bar), x_bar)


def low_rank_vector_arguments(n: int) -> tuple[Any, ...]:
    """Rank 4."""
    return LowRank(rng().normal(size=(n, 4)), rng().normal(size=(n, 4))), rng().normal(size=n)


# ---------------------------------------------------------------------------------------------- F order against C order


def squares_by_rows(A: Any) -> Any:
    """The sum of the sines of the elements."""
    raise NotImplementedError


@overload(squares_by_rows)
def _squares_by_rows(A):
    if A.layout == "F":

        def by_columns(A):
            total = 0.0
            for j in range(A.shape[1]):
                for i in range(A.shape[0]):
                    total += A[i, j] * A[i, j] * A[i, j]
            return total

        return by_columns

    def by_rows(A):
        total = 0.0
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                total += A[i, j] * A[i, j] * A[i, j]
        return total

    return by_rows


def in_rows(kind: Any, special: Any, at_run_time: bool) -> Any:
    def rows_rule(A: kind):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        y = squares_by_rows(A)

        def rows_pullback(ybar):
            Abar = np.empty(A.shape)
            for i in range(A.shape[0]):
                for j in range(A.shape[1]):
                    Abar[i, j] = 3.0 * ybar * A[i, j] * A[i, j]
            return Abar

        return y, rows_pullback

    return rows_rule


@njit
def orders(A):
    return squares_by_rows(A) * 0.5


@njit
def orders_pasted(A):
    total = 0.0
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            total += A[i, j] * A[i, j] * A[i, j]
    return total * 0.5


@njit
def orders_by_hand(A):
    Abar = np.empty_like(A)
    total = 0.0
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            total += A[i, j] * A[i, j] * A[i, j]
            Abar[i, j] = 1.5 * A[i, j] * A[i, j]
    return total * 0.5, Abar


def orders_arguments(n: int) -> tuple[Any, ...]:
    return (np.asfortranarray(rng().normal(size=(n, n))),)


# --------------------------------------------------------------------------------- a number for which the generic rule is wrong


@nr.struct(category=nr.Number)
class Taylor:
    """c0 + c1 t + c2 t^2, further powers cut off."""

    c0: float
    c1: float
    c2: float


@overload(operator.mul)
def _taylor_mul(a, b):
    if isinstance(a, TaylorType) and isinstance(b, TaylorType):
        return lambda a, b: Taylor(a.c0 * b.c0, a.c0 * b.c1 + a.c1 * b.c0, a.c0 * b.c2 + a.c1 * b.c1 + a.c2 * b.c0)


TaylorType = Taylor.__numbarules_struct__.type_class


def number_product(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(a: kind, b: kind):
        if nr.is_a(a, special):
            return None
        y = a * b

        def product_pullback(ybar):
            return ybar * b, a * ybar

        return y, product_pullback

    return product_rule


@njit
def taylor(a, n):
    y = Taylor(1.0, 0.0, 0.0)
    for _ in range(n):
        y = y * a
    return y.c0 + 0.5 * y.c1 + 0.25 * y.c2


@njit
def taylor_pasted(a, n):
    y = Taylor(1.0, 0.0, 0.0)
    for _ in range(n):
        y = Taylor(y.c0 * a.c0, y.c0 * a.c1 + y.c1 * a.c0, y.c0 * a.c2 + y.c1 * a.c1 + y.c2 * a.c0)
    return y.c0 + 0.5 * y.c1 + 0.25 * y.c2


@njit
def taylor_by_hand(a, n):
    y0, y1, y2 = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    y0[0], y1[0], y2[0] = 1.0, 0.0, 0.0
    for k in range(n):
        y0[k + 1] = y0[k] * a.c0
        y1[k + 1] = y0[k] * a.c1 + y1[k] * a.c0
        y2[k + 1] = y0[k] * a.c2 + y1[k] * a.c1 + y2[k] * a.c0
    b0, b1, b2 = 1.0, 0.5, 0.25
    a0 = a1 = a2 = 0.0
    for k in range(n - 1, -1, -1):
        a0 += b0 * y0[k] + b1 * y1[k] + b2 * y2[k]
        a1 += b1 * y0[k] + b2 * y1[k]
        a2 += b2 * y0[k]
        b0, b1, b2 = b0 * a.c0 + b1 * a.c1 + b2 * a.c2, b1 * a.c0 + b2 * a.c1, b2 * a.c0
    return y0[n] + 0.5 * y1[n] + 0.25 * y2[n], Taylor(a0, a1, a2)


def taylor_arguments(n: int) -> tuple[Any, ...]:
    return Taylor(1.0 + 1.0 / n, 0.3 / n, 0.1 / n), 64 * n


# ---------------------------------------------------------------------------------------------- a function as an argument


@njit
def sum_of(f, xs):
    total = 0.0
    for i in range(xs.shape[0]):
        total += f(xs[i])
    return total


@njit
def weighted(x):
    return 0.5 * x


def each_by_its_pullback(kind: Any, special: Any, at_run_time: bool) -> Any:
    def sum_rule(f: kind, xs: nr.AbstractVector):
        if nr.is_a(f, special):
            return None
        if at_run_time:
            if xs.shape[0] > 0:
                return None
        total = 0.0
        slopes = np.empty(xs.shape[0])
        for i in range(xs.shape[0]):
            y, pullback = nr.vjp(f, xs[i])
            total += y
            slopes[i] = pullback(1.0)[0]

        def sum_pullback(ybar):
            return None, slopes * ybar

        return total, sum_pullback

    return sum_rule


@njit
def of_function(xs):
    return sum_of(weighted, xs)


@njit
def of_function_pasted(xs):
    total = 0.0
    for i in range(xs.shape[0]):
        total += 0.5 * xs[i]
    return total


@njit
def of_function_by_hand(xs):
    xs_bar = np.empty(xs.shape[0])
    total = 0.0
    for i in range(xs.shape[0]):
        total += 0.5 * xs[i]
        xs_bar[i] = 0.5
    return total, xs_bar


def of_function_arguments(n: int) -> tuple[Any, ...]:
    return (rng().normal(size=16 * n),)


# ---------------------------------------------------------------------------------------------- where opting out loses


@njit
def loops_product(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    return Y


def by_blas(kind: Any, special: Any, at_run_time: bool) -> Any:
    def product_rule(A: kind, B: nr.AbstractMatrix):
        if nr.is_a(A, special):
            return None
        if at_run_time:
            if A.shape[0] > 0:
                return None
        Y = np.dot(A, B)

        def product_pullback(Ybar, Abar, Bbar):
            if Abar is not None:
                Abar += np.dot(np.ascontiguousarray(Ybar), B.T)
            if Bbar is not None:
                Bbar += np.dot(A.T, np.ascontiguousarray(Ybar))

        return Y, product_pullback

    return product_rule


@njit
def blas(A, B):
    return matrix_squares(loops_product(A, B))


@njit
def blas_pasted(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    return matrix_squares(Y)


@njit
def blas_by_hand(A, B):
    Y = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                Y[i, j] += A[i, k] * B[k, j]
    total = 0.0
    A_bar, B_bar = np.zeros_like(A), np.zeros_like(B)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total += Y[i, j] * Y[i, j]
        for k in range(A.shape[1]):
            s = 0.0
            for j in range(B.shape[1]):
                s += 2.0 * Y[i, j] * B[k, j]
                B_bar[k, j] += 2.0 * Y[i, j] * A[i, k]
            A_bar[i, k] = s
    return total, (A_bar, B_bar)


def blas_arguments(n: int) -> tuple[Any, ...]:
    return rng().normal(size=(n, n)), rng().normal(size=(n, n))


@njit
def newton_roots(x):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z = 1.0
        for _ in range(12):
            z = 0.5 * (z + x[i] / z)
        y[i] = z
    return y


def implicit(kind: Any, special: Any, at_run_time: bool) -> Any:
    def root_rule(x: kind):
        if nr.is_a(x, special):
            return None
        if at_run_time:
            if x.shape[0] > 0:
                return None
        y = newton_roots(x)

        def root_pullback(ybar):
            return 0.5 * ybar / y

        return y, root_pullback

    return root_rule


@njit
def roots(x):
    return vector_cubes(newton_roots(x))


@njit
def roots_pasted(x):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        z = 1.0
        for _ in range(12):
            z = 0.5 * (z + x[i] / z)
        y[i] = z
    return vector_cubes(y)


@njit
def roots_by_hand(x):
    x_bar = np.empty(x.shape[0])
    steps = np.empty(13)
    total = 0.0
    for i in range(x.shape[0]):
        steps[0] = 1.0
        for k in range(12):
            steps[k + 1] = 0.5 * (steps[k] + x[i] / steps[k])
        z = steps[12]
        total += z * z * z
        z_bar = 3.0 * z * z
        s = 0.0
        for k in range(11, -1, -1):
            s += 0.5 * z_bar / steps[k]
            z_bar = 0.5 * z_bar * (1.0 - x[i] / (steps[k] * steps[k]))
        x_bar[i] = s
    return total, x_bar


def roots_arguments(n: int) -> tuple[Any, ...]:
    return (rng().uniform(0.5, 3.0, size=16 * n),)


SCENARIOS = (
    Scenario(
        name="Diagonal @ v",
        function=operator.matmul,
        patterns=(Diagonal, nr.AbstractVector),
        abstract=Matrix,
        rule=vector_product,
        program=diagonal_vector,
        pasted=diagonal_vector_pasted,
        hand=diagonal_vector_by_hand,
        arguments=diagonal_vector_arguments,
        argnums=(0, 1),
    ),
    Scenario(
        name="Diagonal @ M",
        function=operator.matmul,
        patterns=(Diagonal, nr.AbstractMatrix),
        abstract=Matrix,
        rule=matrix_product,
        program=matrix_program,
        pasted=diagonal_matrix_pasted,
        hand=diagonal_matrix_by_hand,
        arguments=diagonal_matrix_arguments,
        argnums=(0, 1),
    ),
    Scenario(
        name="sum(SkewSymmetric)",
        function=np.sum,
        patterns=(SkewSymmetric,),
        abstract=Matrix,
        rule=sum_of_all,
        program=skew_sum,
        pasted=skew_sum_pasted,
        hand=skew_sum_by_hand,
        arguments=skew_sum_arguments,
    ),
    Scenario(
        name="Fill[i] in a loop",
        function=operator.getitem,
        patterns=(Fill, types.Integer),
        abstract=Structured,
        rule=element_of,
        program=fill_loop,
        pasted=fill_loop_pasted,
        hand=fill_loop_by_hand,
        arguments=fill_loop_arguments,
        call=lambda x, weights: (x, 1),
    ),
    Scenario(
        name="norm(UpperTriangular)",
        function=np.linalg.norm,
        patterns=(UpperTriangular,),
        abstract=Matrix,
        rule=frobenius,
        program=triangular_norm,
        pasted=triangular_norm_pasted,
        hand=triangular_norm_by_hand,
        arguments=triangular_norm_arguments,
    ),
    Scenario(
        name="slogdet(Diagonal)",
        function=np.linalg.slogdet,
        patterns=(Diagonal,),
        abstract=Matrix,
        rule=log_determinant,
        program=diagonal_slogdet,
        pasted=diagonal_slogdet_pasted,
        hand=diagonal_slogdet_by_hand,
        arguments=diagonal_slogdet_arguments,
    ),
    Scenario(
        name="CSR @ M",
        function=operator.matmul,
        patterns=(CSR, nr.AbstractMatrix),
        abstract=Matrix,
        rule=matrix_product,
        program=matrix_program,
        pasted=csr_matrix_pasted,
        hand=csr_matrix_by_hand,
        arguments=csr_matrix_arguments,
        argnums=(0, 1),
    ),
    Scenario(
        name="LowRank @ v",
        function=operator.matmul,
        patterns=(LowRank, nr.AbstractVector),
        abstract=Matrix,
        rule=vector_product,
        program=diagonal_vector,
        pasted=low_rank_vector_pasted,
        hand=low_rank_vector_by_hand,
        arguments=low_rank_vector_arguments,
        argnums=(0, 1),
    ),
    Scenario(
        name="F order",
        function=squares_by_rows,
        patterns=(types.Array(types.float64, 2, "F"),),
        abstract=nr.AbstractMatrix,
        rule=in_rows,
        program=orders,
        pasted=orders_pasted,
        hand=orders_by_hand,
        arguments=orders_arguments,
    ),
    Scenario(
        name="Taylor number",
        function=operator.mul,
        patterns=(Taylor, Taylor),
        abstract=nr.Number,
        rule=number_product,
        program=taylor,
        pasted=taylor_pasted,
        hand=taylor_by_hand,
        arguments=taylor_arguments,
        call=lambda a, n: (a, a),
    ),
    Scenario(
        name="sum(f, xs)",
        function=sum_of,
        patterns=(types.Dispatcher, nr.AbstractVector),
        abstract=nr.Any,
        rule=each_by_its_pullback,
        program=of_function,
        pasted=of_function_pasted,
        hand=of_function_by_hand,
        arguments=of_function_arguments,
        call=lambda xs: (weighted, xs),
    ),
    Scenario(
        name="product by loops",
        function=loops_product,
        patterns=(types.float64[:, ::1], types.float64[:, ::1]),
        abstract=nr.AbstractMatrix,
        rule=by_blas,
        program=blas,
        pasted=blas_pasted,
        hand=blas_by_hand,
        arguments=blas_arguments,
        argnums=(0, 1),
        largest=256,
        pays=False,
    ),
    Scenario(
        name="roots by iteration",
        function=newton_roots,
        patterns=(types.float64[::1],),
        abstract=nr.AbstractVector,
        rule=implicit,
        program=roots,
        pasted=roots_pasted,
        hand=roots_by_hand,
        arguments=roots_arguments,
        pays=False,
    ),
)


# ---------------------------------------------------------------------------------------------- what the table says

OPTED_OUT = ("opt_out", "return None", "by type")
WAYS = ("generic", *OPTED_OUT, "branch", "no rule")
NEVER = types.NoneType


@contextmanager
def registered(scenario: Scenario, way: str) -> Iterator[None]:
    """Lets the table say about a scenario's call what `way` names; afterwards it is as before."""
    s = scenario
    argument_types = tuple(map(numba.typeof, s.call(*s.arguments(16))))
    mine = [e for e in table.entries(s.function) if e.matches(argument_types) and (way == "no rule" or e.kind == "opt_out")]
    for e in mine:
        table.remove(e)
    try:
        with nr.rule_scope():
            if way == "branch":
                nr.rrule(s.function, on_unstable="branch")(s.rule(s.abstract, NEVER, True))
            elif way != "no rule":
                nr.rrule(s.function)(s.rule(s.abstract, s.special if way == "by type" else NEVER, False))
            if way == "opt_out":
                nr.opt_out(s.function, *s.patterns)
            if way == "return None":
                nr.rrule(s.function)(_says_none(*s.patterns))
            yield
    finally:
        for e in mine:
            table.add(e)


def _says_none(first: Any, second: Any = None) -> Any:
    def for_one(a: first):
        return None

    def for_two(a: first, b: second):
        return None

    return for_one if second is None else for_two
