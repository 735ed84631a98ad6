"""What called functions do with memory: fixpoints of functions that call each other, on our IR, and gradients that depend on it."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

import numpy as np
import pytest
from numba import njit

import numbarules as nr
from numbarules.compile.calls import Callee
from numbarules.compile.summaries import summary_of
from numbarules.ir.nodes import Alloc, Call, Function, If, Operand, Stmt, Store, Summary, Var, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, NONE, Array

VECTOR = Array(FLOAT64, 1, "C")


class Sketch:
    """A function of two or more vectors on our IR; in front of what its body does it may return early."""

    def __init__(self, n: int, body: Callable[[Builder, tuple[Var, ...]], Operand | None]) -> None:
        self.callee = Callee(FunctionType((lambda: None).__code__, {}), ())
        self.n = n
        self.body = body

    def finish(self) -> Callee:
        b = Builder(Names())
        params = tuple(b.names.var(VECTOR, f"a{i}") for i in range(self.n))
        inner, out = b.child(), b.names.var(VECTOR, "out")
        y = self.body(inner, params)
        fresh = b.one(Alloc("zeros"), [const(1)], VECTOR)
        b.add(Stmt(If(), (b.names.var(BOOL, "deep"),), (out,), (inner.region((), [y or fresh]), b.child().region((), [fresh]))))
        args = tuple((p.name, p.type) for p in params)
        self.callee.__dict__["function"] = Function("f", args, b.region(params, [out]), NONE)
        return self.callee

    def __call__(self, b: Builder, *args: Operand) -> Var:
        y = b.names.var(VECTOR, "y")
        b.add(Stmt(Call("f", self.callee), args, (y,)))
        return y


def new(b: Builder) -> Var:
    return b.one(Alloc("zeros"), [const(1)], VECTOR)


def store(b: Builder, a: Operand) -> None:
    b.emit(Store(), [a, const(0), const(1.0)])


def by_itself(n: int, body: Callable[[Builder, tuple[Var, ...], Sketch], Operand | None]) -> Summary:
    """The summary of a function whose body may call the function itself."""
    sketch = Sketch(n, lambda b, a: body(b, a, sketch))
    return summary_of(sketch.finish())


def reads(b: Builder, a: tuple[Var, ...], f: Sketch) -> None:
    f(b, *a)


def writes_where_it_is_called_by_itself(b: Builder, a: tuple[Var, ...], f: Sketch) -> None:
    """With the arguments swapped: at depth 2 the one that it writes into is the first caller's other one."""
    store(b, a[0])
    f(b, a[1], a[0])


def writes_three_levels_down(b: Builder, a: tuple[Var, ...], f: Sketch) -> None:
    store(b, a[0])
    f(b, a[1], a[2], new(b))


def writes_into_its_own(b: Builder, a: tuple[Var, ...], f: Sketch) -> None:
    store(b, new(b))
    f(b, new(b), a[1])


def returns_what_it_is_handed_at_the_second_level(b: Builder, a: tuple[Var, ...], f: Sketch) -> Operand:
    f(b, a[1], a[0])
    return a[0]


def returns_what_it_itself_returns(b: Builder, a: tuple[Var, ...], f: Sketch) -> Operand:
    other = b.names.var(VECTOR, "other")
    regions = (b.child().region((), [f(b, a[1], a[0])]), b.child().region((), [a[0]]))
    b.add(Stmt(If(), (b.names.var(BOOL, "flag"),), (other,), regions))
    return other


def writes_into_what_it_itself_returns(b: Builder, a: tuple[Var, ...], f: Sketch) -> Operand:
    store(b, f(b, a[1], a[0]))
    return a[0]


ALONE = [
    (2, reads, Summary()),
    (2, writes_where_it_is_called_by_itself, Summary((0, 1))),
    (3, writes_three_levels_down, Summary((0, 1, 2))),
    (2, writes_into_its_own, Summary()),
    (2, returns_what_it_is_handed_at_the_second_level, Summary((), ((0, 2),))),
    (2, returns_what_it_itself_returns, Summary((), ((0, 2), (1, 2)))),
    (2, writes_into_what_it_itself_returns, Summary((0, 1), ((0, 2),))),
]


@pytest.mark.parametrize(("n", "body", "expected"), ALONE, ids=[body.__name__ for _, body, _ in ALONE])
def test_a_function_that_calls_itself(n: int, body: Callable[..., Operand | None], expected: Summary) -> None:
    assert by_itself(n, body) == expected


def test_functions_that_call_each_other() -> None:
    even = Sketch(2, lambda b, a: odd(b, a[1], a[0]))

    def writes_and_goes_on(b: Builder, a: tuple[Var, ...]) -> Operand:
        store(b, a[0])
        even(b, new(b), a[1])
        return a[1]

    odd = Sketch(2, writes_and_goes_on)
    even.finish()
    odd.finish()
    assert summary_of(even.callee) == Summary((0, 1), ((0, 2),))
    assert summary_of(odd.callee) == Summary((0, 1), ((1, 2),))


# ---------------------------------------------------------------------------------------------- gradients


@njit(fastmath=True)  # under options of its own: it has sweeps of its own
def fills(a, b):
    b[0] = a[0]
    return a


@njit(fastmath=True)
def twice_the_same(t):
    z = np.array([t, 2.0 * t])
    return z, z


@njit
def total(x, n):
    return x[n] + total(x, n - 1) if n > 0 else x[0]


@njit
def scaled_down(x, y, n):
    if n > 0:
        y[0] = 0.5 * x[n]
        return scaled_down(y, x, n - 1)
    return x[0] * y[0]


def written_by_what_a_function_returns(x):
    w = 2.0 * x
    b = np.zeros(1)
    c = fills(w, b)
    s = 0.0
    for i in range(w.shape[0]):
        s += w[i] ** 3
    for i in range(w.shape[0]):
        c[i] = 5.0
    return s + c[0] * b[0]


def written_under_its_other_name(x):
    a, b = twice_the_same(x[0])
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] ** 3
    for i in range(b.shape[0]):
        b[i] = 5.0
    return s + b[0] * x[1]


def handed_back_and_forth(x):
    w, v = x * 1.0, x * x
    return scaled_down(w, v, 2) + w[0] * v[1]


def rebound_in_a_loop(x):
    for _ in range(3):
        x = x * x
        x[0] = 0.5 * x[1]
    return np.sum(x)


GRADIENTS = [written_by_what_a_function_returns, written_under_its_other_name, handed_back_and_forth, rebound_in_a_loop]


@pytest.mark.parametrize("f", GRADIENTS, ids=lambda f: f.__name__)
def test_gradients(f: Callable[..., float]) -> None:
    x, h = np.array([1.1, 0.7, 0.9]), 1e-6
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(nr.grad(f)(x), differences, rtol=1e-6)


def test_what_is_only_read_may_overlap() -> None:
    def reads(x, y):
        for _ in range(2):
            x = x * 2.0
            x[0] = 0.0
        return total(y, 2) * np.sum(x)

    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert nr.grad(reads, argnums=(0, 1))(a[:3], a[1:])[1].tolist() == [20.0] * 3


def test_what_recursion_writes_may_not_overlap() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(nr.AliasingError, match=r"`x` and `y`|`y` and `x`"):
        nr.grad(lambda x, y: scaled_down(x, y, 2))(a[:3], a[1:])
