"""Exceptions of the primal: the gradient raises the same, the next call is right, and no memory is lost beyond what the primal loses."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import numbarules as nr

pytestmark = pytest.mark.filterwarnings("ignore")

GOOD = np.array([0.5, 1.5, 2.5])
BAD = np.array([0.5, -1.5, 2.5])


@njit
def constant_arguments(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            raise ValueError("must be positive", 3)
        s += math.log(x[i]) * x[i]
    return s


@njit
def dynamic_arguments(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            raise ValueError(i, x[i])
        s += math.sqrt(x[i]) * s + x[i]
    return s


SOURCE = """
def checked(v):
    assert v > 0.0, "negative"
    return math.log(v)
"""
namespace: dict[str, Any] = {"math": math}
exec(SOURCE, namespace)  # pytest rewrites the assertions of a test module
checked = njit(namespace["checked"])


@njit
def asserts_in_callee(x):
    s = 0.0
    for v in x:
        s += checked(v) * v
    return s


@njit
def divides(x):
    return x[0] / max(x[1], 0.0) + x[2] * x[0]


@njit(boundscheck=True)
def out_of_bounds(x):
    n = x.shape[0] + (5 if x[1] < 0.0 else 0)
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
    return s


@njit
def misfit(x):
    y = x * x
    z = np.zeros(3 if x[1] > 0.0 else 2)
    z[:] = y
    return np.sum(z) * x[0]


@njit
def countdown(x, n):
    if n == 0:
        if x[1] < 0.0:
            raise IndexError("bottom")
        return x[0] * x[1]
    return countdown(x, n - 1) * x[2]


@njit
def raises_in_recursion(x):
    return countdown(x, 5)


PROGRAMS = [constant_arguments, dynamic_arguments, asserts_in_callee, divides, out_of_bounds, raises_in_recursion]


def error_of(f: Callable[..., Any], *args: Any) -> tuple[type[BaseException], tuple[Any, ...]]:
    with pytest.raises(Exception) as caught:
        f(*args)
    return type(caught.value), caught.value.args


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_same_exception_and_the_next_call_is_right(f: Any) -> None:
    wanted = [(f(GOOD + h) - f(GOOD - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    for gradient in (nr.grad(f), nr.value_and_grad(f)):
        for _ in range(2):
            assert error_of(gradient, BAD) == error_of(f, BAD)
            found = gradient(GOOD)
            found = found[1] if isinstance(found, tuple) else found
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_array_equal(BAD, [0.5, -1.5, 2.5])
    assert error_of(lambda x: nr.vjp(f, x), BAD) == error_of(f, BAD)


@njit
def raises_late(x, n):
    s = x[0]
    for _ in range(n):
        s = math.sin(s) + x[1]
    if x[2] < 0.0:
        raise ValueError("late")
    return s


def test_the_record_of_a_raising_call_is_given_back() -> None:
    gradient = nr.grad(raises_late)
    x = np.array([0.1, 0.2, -1.0])
    n = 100_000  # a record of about a megabyte
    for _ in range(5):
        error_of(gradient, x, n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        error_of(gradient, x, n)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


def test_a_thousand_raising_calls() -> None:
    gradient = nr.grad(dynamic_arguments)
    for _ in range(20):
        error_of(gradient, BAD)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        error_of(gradient, BAD)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_000  # kilobytes


def test_a_slice_of_another_shape_raises_the_same_type() -> None:
    """The message of Numba names the two shapes; formatting them would take seconds of compilation in each gradient."""
    for gradient in (nr.grad(misfit), nr.value_and_grad(misfit)):
        assert error_of(gradient, BAD)[0] is error_of(misfit, BAD)[0] is ValueError
        gradient(GOOD)
