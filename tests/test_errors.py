"""What is asked for and has no meaning: a clear error, from Python and from jitted code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import float32, njit

import numbarules as nr
from numbarules import DifferentiationError, NumbarulesError


def line_of(f: Any) -> str:
    return f'File "{__file__}", line {f.__code__.co_firstlineno}'


def product(x, y, k=2.0):
    return x * y * k


def complex_result(x):
    return x + 1j


def array_result(x):
    return 2.0 * x


def nothing(x):
    x[0] = 1.0


def whole(n):
    return n * 2.5


def does_not_compile(x):
    return undefined_thing(x)  # noqa: F821 - the unknown name is what is tested


def text_of(call: Any, *args: Any) -> str:
    with pytest.raises(DifferentiationError) as caught:
        call(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("argnums", "found"),
    [
        (3, "position 3, where `product` has 3 parameters"),
        (-4, "position -4, where `product` has 3 parameters"),
        ((0, 3), "position 3, where `product` has 3 parameters"),
        ((0, 0), "parameter `x` twice"),
        ((1, -2), "parameter `y` twice"),
        ((), "no position at all"),
        (1.0, "a value of type `float`"),
        ("x", "a value of type `str`"),
        (True, "a value of type `bool`"),
        ((0, None), "a value of type `NoneType`"),
    ],
)
@pytest.mark.parametrize("derivative", [nr.grad, nr.value_and_grad, lambda f, n: nr.njit_grad(argnums=n)(f)])
def test_argnums_are_checked_when_they_are_given(derivative: Any, argnums: Any, found: str) -> None:
    text = text_of(derivative, product, argnums)
    assert f"argnums={argnums!r}" in text
    assert "`product`" in text
    assert line_of(product) in text
    assert f"Found: {found}" in text
    assert "0 `x`, 1 `y`, 2 `k`" in text


@pytest.mark.parametrize("f", [math.sin, np.sin, 3.0, "f", len])
@pytest.mark.parametrize("derivative", [nr.grad, nr.value_and_grad, lambda f: nr.vjp(f, 1.0)])
def test_what_is_no_python_function_is_refused(derivative: Any, f: Any) -> None:
    text = text_of(derivative, f)
    assert "`@njit_grad` function" in text
    assert f"`{type(f).__qualname__}`" in text
    assert "Instead: write a function that calls it" in text


CONTRACT = [
    (complex_result, (1.0,), 0, "a result of type c128", "vjp"),
    (array_result, (np.ones(2),), 0, "a result of type", "vjp"),
    (nothing, (np.ones(2),), 0, "a result of type none", "vjp"),
    (whole, (3,), 0, "`n` is of type i64", "pass a float"),
    (whole, (True,), 0, "`n` is of type bool", "pass a float"),
    (product, (1.0, 2), (0, 1), "`y` is of type i64", "leave 1 out of `argnums`"),
]


@pytest.mark.parametrize(("f", "args", "argnums", "found", "instead"), CONTRACT)
def test_contract_of_a_call(f: Any, args: Any, argnums: Any, found: str, instead: str) -> None:
    text = text_of(nr.grad(f, argnums), *args)
    assert f"`{f.__name__}`" in text
    assert line_of(f) in text
    assert f"def {f.__name__}(" in text
    assert "Contract: " in text
    assert found in text
    assert instead in text


@pytest.mark.parametrize(("f", "args", "argnums", "found", "instead"), CONTRACT)
def test_the_same_error_from_jitted_code(f: Any, args: Any, argnums: Any, found: str, instead: str) -> None:
    gradient = nr.grad(f, argnums)

    @njit
    def caller(*args):
        return gradient(*args)

    with pytest.raises(Exception, match=r"Contract: ") as caught:
        caller(*args)
    assert str(found) in str(caught.value)
    assert line_of(f) in str(caught.value)


def test_numbas_own_message_is_shown_once() -> None:
    text = text_of(nr.grad(does_not_compile), 1.0)
    assert text.count("name 'undefined_thing' is not defined") == 1
    assert line_of(does_not_compile) in text
    assert "x float64" in text
    assert "numbarules_" not in text
    assert "pipeline" not in text


def test_a_callee_that_does_not_compile() -> None:
    inner = njit(does_not_compile)

    def outer(x):
        return inner(x)

    text = text_of(nr.grad(outer), 1.0)
    assert "name 'undefined_thing' is not defined" in text
    assert "`outer` has no gradient: Numba cannot compile it" in text


def test_an_argument_that_numba_does_not_know() -> None:
    text = text_of(nr.grad(product), 1.0, object())
    assert "Numba has no type for the value of `y`" in text


def test_types_given_to_local_variables() -> None:
    def tripled(x):
        t = x * 3.0
        return t * t

    f = nr.njit_grad(locals={"t": float32})(tripled)
    for call in (f.grad, nr.grad(njit(lambda x: f(x) * x)), lambda x: nr.vjp(f, x)):
        with pytest.raises(nr.UnsupportedError) as caught:
            call(1.1)
        assert "tripled" in str(caught.value)
    assert f(1.0) == 9.0


def test_a_default_is_no_argument_to_differentiate_by() -> None:
    text = text_of(nr.grad(product, argnums=2), 1.0, 2.0)
    assert "argument `k`, which the call leaves out" in text
    assert "Instead: pass `k`" in text


def test_an_error_comes_again_at_the_next_call() -> None:
    gradient = nr.grad(complex_result)
    assert text_of(gradient, 1.0) == text_of(gradient, 1.0)


def test_the_traceback_has_no_frame_of_numba() -> None:
    with pytest.raises(NumbarulesError) as caught:
        nr.grad(complex_result)(1.0)
    assert not [entry for entry in caught.traceback if "numba/core" in str(entry.path)]
    assert caught.value.__suppress_context__


def test_missing_and_unknown_arguments_are_those_of_a_call() -> None:
    with pytest.raises(TypeError):
        nr.grad(product)(1.0)
    with pytest.raises(TypeError):
        nr.grad(product)(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(TypeError):
        nr.grad(product)(1.0, z=2.0)


def test_overlapping_arguments_of_which_one_is_written() -> None:
    def moved(x, y):
        y[0] = x[0] * 2.0
        return y[0] * x[1]

    a = np.ones(4)
    with pytest.raises(nr.AliasingError, match=r"`x` and `y`|`y` and `x`"):
        nr.grad(moved)(a[:3], a[1:])
    assert nr.grad(moved)(a[:2], a[2:]).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("ybar", "found"),
    [
        (1.0, "a value of type `float`"),
        ((1.0, np.ones(3), 0), "a value of type `tuple` of length 3"),
        ((1.0, np.ones(2)), r"shape (2,)"),
        ((np.ones(1), np.ones(3)), r"shape (1,)"),
        (("a", np.ones(3)), "`str`"),
        ((1j, np.ones(3)), "`complex`"),
        ((1.0, [[1.0], 2.0, 3.0]), "`list`"),
    ],
)
def test_cotangent_of_another_shape(ybar: Any, found: str) -> None:
    def pair(x):
        return x.sum(), 2.0 * x

    text = text_of(nr.vjp(pair, np.ones(3))[1], ybar)
    assert "the pullback of `pair` cannot take this cotangent" in text
    assert f"Found: {found}" in text


def test_vjp_of_a_result_without_floats() -> None:
    text = text_of(nr.vjp, lambda x: int(x), 1.5)
    assert "its result holds no float" in text


def test_vjp_with_missing_arguments() -> None:
    with pytest.raises(TypeError, match="missing a required argument"):
        nr.vjp(product, 1.0)


NAMED = {
    "numpy.expand_dims": lambda x: np.sum(np.expand_dims(x, int(x[1])) * 2.0),
    "numpy.swapaxes": lambda x: np.sum(np.swapaxes(np.outer(x, x), int(x[1]), 0) * 2.0),
    "numpy.moveaxis": lambda x: np.sum(np.moveaxis(np.outer(x, x), int(x[1]) - 1, 1) * 2.0),
    "numpy.broadcast_to": lambda x: np.sum(np.broadcast_to(x, (2, 3)) * 2.0),
    "numpy.split": lambda x: np.sum(np.split(x, 3)[0]),
    "numpy.unique": lambda x: np.sum(np.unique(x)),
    "numpy.extract": lambda x: np.sum(np.extract(x > 1.5, x)),
}
NO_VIEWS = {"numpy.unique", "numpy.extract"}


@pytest.mark.parametrize("name", NAMED)
def test_a_refusal_inside_a_library_function_names_what_the_user_called(name: str) -> None:
    with pytest.raises(nr.UnsupportedError) as caught:
        nr.grad(NAMED[name])(np.array([3.0, 1.0, 2.0]))
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"a call of `{name}`")
    assert any(name.replace("numpy.", "np.") in line for line in rest)  # the user's own line
    assert (f"rrule({name})" in rest[-1]) == (name in NO_VIEWS)  # a rule for what returns a view would be refused
