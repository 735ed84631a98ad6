"""Opting out for other than structured matrices: by memory order, for a number for which the generic rule is wrong, for a function."""

import operator
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

import numbarules as nr
from perf.scenarios.scenario import Scenario, rng

# mypy: ignore-errors - bodies that Numba compiles, annotated with patterns

__all__ = ["F_ORDER", "SUM_OF_FUNCTION", "TAYLOR"]


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


F_ORDER = Scenario(
    name="F order",
    function=squares_by_rows,
    patterns=(types.Array(types.float64, 2, "F"),),
    abstract=nr.AbstractMatrix,
    rule=in_rows,
    program=orders,
    pasted=orders_pasted,
    hand=orders_by_hand,
    arguments=orders_arguments,
)


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


TAYLOR = Scenario(
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
)


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


SUM_OF_FUNCTION = Scenario(
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
)
