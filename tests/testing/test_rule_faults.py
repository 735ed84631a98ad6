"""Each check of `check_rule` and `check_gradient` finds the fault that it is there for, in rules that are wrong in just that way.

What a rule cannot do in code that the engine sees is done behind its back: by a Python function that compiled code calls by its address.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload
from small_structs import D, Diag, V

import numbarules as nr
from numbarules.testing import check_gradient, check_rule, gradients

HOOK: list[Callable[[float], float]] = [lambda x: x]
hook = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: HOOK[0](x))
X = np.array([0.3, -1.2, 0.7])
ROUNDING = 2.0**-52


@njit
def squares(x):
    return x * x


@njit
def of_squares(x):
    return squares(x)


@njit
def energy(A, x):
    return np.sum(A.diag * x * x)


@njit
def weighted(pair, k):
    return pair[0] * pair[1] * k


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    HOOK[0] = lambda x: x
    with nr.rule_scope():
        yield


def hooked(in_value: bool) -> None:
    """A rule of `squares` that is right, and asks the hook for a factor, in its value or in its pullback."""
    if in_value:

        @nr.rrule(squares)
        def value_rule(x: nr.AbstractVector):
            factor = hook(1.0)

            def value_pullback(ybar):
                return 2.0 * x * ybar

            return x * x * factor, value_pullback

    else:

        @nr.rrule(squares)
        def pullback_rule(x: nr.AbstractVector):
            def pullback(ybar):
                return 2.0 * x * ybar * hook(1.0)

            return x * x, pullback


def rounded_otherwise() -> Callable[[float], float]:
    """Another number at each call, by a rounding error."""
    more = itertools.count()
    return lambda x: x + ROUNDING * next(more)


def test_the_hooked_rules_are_right() -> None:
    hooked(in_value=True)
    assert check_gradient(of_squares, X).error < 1e-9


def test_a_value_that_is_wrong_by_little() -> None:
    hooked(in_value=True)
    HOOK[0] = lambda x: x + 1e-12
    with pytest.raises(nr.CheckError, match="a wrong value"):
        check_rule(squares, X)
    with pytest.raises(nr.CheckError, match="a wrong value"):
        check_gradient(of_squares, 1e-9 * X)  # the error is 1e-12 of a small value
    assert check_gradient(of_squares, X, value_rtol=1e-11).error < 1e-6


def test_a_pullback_that_gives_something_else_the_second_time() -> None:
    hooked(in_value=False)
    HOOK[0] = rounded_otherwise()
    with pytest.raises(nr.CheckError, match="a pullback that gives something else the second time"):
        check_rule(squares, X)


def test_a_value_that_is_another_in_the_second_call() -> None:
    hooked(in_value=True)
    HOOK[0] = rounded_otherwise()
    with pytest.raises(nr.CheckError, match="another result in the second call"):
        check_rule(squares, X)


@pytest.mark.parametrize("in_value", [True, False])
def test_arguments_that_are_changed(in_value: bool) -> None:
    hooked(in_value)
    x = X.copy()

    def write(factor: float) -> float:
        x[1] = 5.0
        return factor

    HOOK[0] = write
    with pytest.raises(nr.CheckError, match=r"changed arguments, of the rule `.*` for .*squares\(AbstractVector\)"):
        check_rule(squares, x)


def test_memory_that_is_lost() -> None:
    hooked(in_value=False)
    kept: list[Any] = []

    def keep(factor: float) -> float:
        kept.append(squares(X))
        return factor

    HOOK[0] = keep
    squares(X)
    with pytest.raises(nr.CheckError, match="memory that is lost"):
        check_rule(squares, X)
    assert kept


def test_a_pullback_that_is_not_linear() -> None:
    @nr.rrule(squares)
    def bent_rule(x: nr.AbstractVector):
        def bent_pullback(ybar):
            return 2.0 * x * ybar + 3e-3 * np.abs(ybar)

        return x * x, bent_pullback

    with pytest.raises(nr.CheckError, match="a pullback that is not linear"):
        check_rule(squares, X, rtol=1e-2)  # which lets the values pass


# ---------------------------------------------------------------------------------------------- what no rule can do: projected away


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda bar: bar.astype(np.float32), "does not fit argument 0"),
        (lambda bar: bar[:2], "does not fit argument 0"),
        (lambda bar: 1.0, "a cotangent of another type than argument 0"),
        (lambda bar: None, "a cotangent of another type than argument 0"),
    ],
    ids=["dtype", "shape", "kind", "none"],
)
def test_cotangents_that_are_no_tangents(change: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def vjp(f: Any, x: Any) -> Any:
        return squares(x), lambda ybar: (change(2.0 * x * ybar),)

    monkeypatch.setattr(gradients, "vjp", vjp)
    with pytest.raises(nr.CheckError, match=says):
        check_gradient(squares, X)


# ---------------------------------------------------------------------------------------------- in plain Python


def in_python(x: float) -> float:
    """What the hook says of 1; in jitted code, where it is another function, 0."""
    return HOOK[0](1.0)


overload(in_python)(lambda x: lambda x: 0.0)


def one_of_its_kind(fault: float) -> None:
    @nr.rrule(energy)
    def kind_rule(A: Diag, x: nr.AbstractVector):
        def kind_pullback(ybar):
            return Diag(ybar * x * x + fault * in_python(0.0)), 2.0 * ybar * A.diag * x

        return np.sum(A.diag * x * x), kind_pullback


def dense(fault: float) -> None:
    @nr.rrule(energy)
    def dense_rule(A: Diag, x: nr.AbstractVector):
        def dense_pullback(ybar):
            A_bar = np.ones((x.shape[0], x.shape[0]))  # beside the diagonal, no part of the matrix
            for i in range(x.shape[0]):
                A_bar[i, i] = ybar * x[i] * x[i] + fault * in_python(0.0)
            return A_bar, 2.0 * ybar * A.diag * x

        return np.sum(A.diag * x * x), dense_pullback


def shadows(fault: float) -> None:
    @nr.rrule(energy)
    def shadow_rule(A: Diag, x: nr.AbstractVector):
        def shadow_pullback(ybar, A_bar, x_bar):
            if A_bar is not None:
                for i in range(x.shape[0]):
                    A_bar[i, i] += ybar * x[i] * x[i] + fault * in_python(0.0)
                    A_bar[i, (i + 1) % x.shape[0]] += 1.0  # no part of a diagonal matrix
            if x_bar is not None:
                for i in range(x.shape[0]):
                    x_bar[i] += 2.0 * ybar * A.diag[i] * x[i]

        return np.sum(A.diag * x * x), shadow_pullback


@pytest.mark.parametrize("rule", [one_of_its_kind, dense, shadows])
def test_a_rule_with_a_struct_argument_is_run_in_python(rule: Any) -> None:
    with nr.rule_scope():
        rule(0.0)
        assert check_rule(energy, D, V).gradient.entries == 6
    rule(1.0)
    with pytest.raises(nr.CheckError, match="a wrong cotangent of argument 0 in Python"):
        check_rule(energy, D, V)


@pytest.mark.parametrize("fault", ["", "item", "structure", "arguments", "raises"])
def test_a_rule_with_a_tuple_argument_is_run_in_python(fault: str) -> None:
    item, structure, raises = (fault == name for name in ("item", "structure", "raises"))
    x = X.copy()
    if fault == "arguments":

        def write(one: float) -> float:
            x[0] = 7.0
            return one

        HOOK[0] = write

    @nr.rrule(weighted)
    def weighted_rule(pair: types.BaseTuple, k: nr.Real):
        y = pair[0] * pair[1] * k

        def weighted_pullback(ybar):
            second = np.dot(ybar, pair[0]) * k
            third = np.dot(ybar, pair[0]) * pair[1]
            first = ybar * pair[1] * k
            wrong = in_python(0.0)
            if raises and wrong > 0.0:
                raise ZeroDivisionError
            if structure:
                first = first[: first.shape[0] - int(wrong)]
            if item:
                second += wrong
            return (first, second), third

        return y, weighted_pullback

    if not fault:
        assert check_rule(weighted, (x, 0.5), 1.5).gradient.entries == 5
        return
    says = {
        "item": "a wrong cotangent of argument 0 in Python",
        "structure": "a cotangent of argument 0 that is none of its tangents in Python",
        "arguments": "changed arguments, by the rule",
        "raises": "`weighted_pullback` does not run in Python",
    }
    with pytest.raises(nr.CheckError, match=says[fault]):
        check_rule(weighted, (x, 0.5), 1.5)
