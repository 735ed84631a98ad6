"""Functions of structured matrices and vectors: sums, elements, norms and determinants that need few of the elements, or none."""

import math
import operator
from typing import Any

import numpy as np
from numba import njit, types

import numbarules as nr
from numbarules.structured import Diagonal, Fill, SkewSymmetric, UpperTriangular
from numbarules.structured.common import Matrix, Structured
from perf.scenarios.scenario import Scenario, rng

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["DIAGONAL_SLOGDET", "FILL_LOOP", "SKEW_SUM", "TRIANGULAR_NORM"]


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


SKEW_SUM = Scenario(
    name="sum(SkewSymmetric)",
    function=np.sum,
    patterns=(SkewSymmetric,),
    abstract=Matrix,
    rule=sum_of_all,
    program=skew_sum,
    pasted=skew_sum_pasted,
    hand=skew_sum_by_hand,
    arguments=skew_sum_arguments,
)


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


FILL_LOOP = Scenario(
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
)


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


TRIANGULAR_NORM = Scenario(
    name="norm(UpperTriangular)",
    function=np.linalg.norm,
    patterns=(UpperTriangular,),
    abstract=Matrix,
    rule=frobenius,
    program=triangular_norm,
    pasted=triangular_norm_pasted,
    hand=triangular_norm_by_hand,
    arguments=triangular_norm_arguments,
)


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


DIAGONAL_SLOGDET = Scenario(
    name="slogdet(Diagonal)",
    function=np.linalg.slogdet,
    patterns=(Diagonal,),
    abstract=Matrix,
    rule=log_determinant,
    program=diagonal_slogdet,
    pasted=diagonal_slogdet_pasted,
    hand=diagonal_slogdet_by_hand,
    arguments=diagonal_slogdet_arguments,
)
