"""What is well formed and what is not: one defect a case."""

from __future__ import annotations

import operator

import pytest

from numbarules.ir.nodes import (
    UNDEFINED,
    Apply,
    Cast,
    Const,
    For,
    If,
    Load,
    Named,
    Raise,
    Region,
    Shape,
    Slab,
    Stmt,
    Store,
    Var,
    View,
    While,
    const,
)
from numbarules.ir.types import BOOL, FLOAT32, FLOAT64, INT64, NONE, POINTER, Array
from numbarules.ir.verify import IllFormedError, verify
from numbarules.primitives import Failure

X, Y, S, K, N, C = (Var(n, t) for n, t in [("x", FLOAT64), ("y", FLOAT64), ("s", FLOAT32), ("k", INT64), ("n", INT64), ("c", BOOL)])
A, G = Var("a", Array(FLOAT64, 1, "C")), Var("g", Array(FLOAT64, 1, "C", mutable=False))
FAIL = Stmt(Raise(Failure(ValueError, "")))


def add(out: Var, *args: Var | Const) -> Stmt:
    return Stmt(Apply(Named(operator.add)), args, (out,))


def region(*body: Stmt, params: tuple[Var, ...] = (X, S, N, C, A, G), yields: tuple[Var | Const, ...] | None = ()) -> Region:
    return Region(params, body, yields)


GOOD = {
    "a sum": region(add(Y, X, X), yields=(Y,)),
    "integers become floats": region(add(Y, X, N), yields=(Y,)),
    "a side that raises": region(Stmt(If(), (C,), (), (Region((), (FAIL,), None), Region((), (), ())))),
    "an undefined side": region(Stmt(If(), (C,), (Y,), (Region((), (), (X,)), Region((), (), (Const(FLOAT64, UNDEFINED),))))),
    "both sides raise": region(Stmt(If(), (C,), (), (Region((), (FAIL,), None), Region((), (FAIL,), None))), yields=None),
    "a loop": region(Stmt(For(), (N, X), (Y,), (Region((K, v := Var("v", FLOAT64)), (), (v,)),)), yields=(Y,)),
}

BAD = {
    "%y is used and not defined": region(add(Var("z", FLOAT64), Y, X)),
    "%y is used outside its scope": region(Stmt(If(), (C,), (), (Region((), (add(Y, X, X),), ()), Region((), (), ()))), yields=(Y,)),
    "%y is defined twice": region(add(Y, X, X), add(Y, X, X)),
    "two variables are named %x": region(add(Var("x", FLOAT64), X, X)),
    "a statement behind the end of its region": region(FAIL, add(Y, X, X), yields=None),
    "a region yields although it raises": region(FAIL),
    "a region yields nothing and does not raise": region(yields=None),
    "the constant 2 is not of type f64": region(add(Y, X, Const(FLOAT64, 2))),
    "the constant True is not of type i64": region(Stmt(Load(), (A, Const(INT64, True)), (Y,))),
    "the result of types (f32), not (f64)": region(add(Var("t", FLOAT32), X, S)),
    "the result of types (f64), not (f32)": region(add(Y, S, S)),
    "the result of types (i64), not (bool)": region(Stmt(Apply(Named(operator.lt)), (X, X), (Var("i", INT64),))),
    "a cast from f64[:]C to f64": region(Stmt(Cast(), (A,), (Y,))),
    "1 arguments, not 2": region(Stmt(Load(), (A,), (Y,))),
    "%x: f64 is no integer": region(Stmt(Load(), (A, X), (Y,))),
    "an element of types (f32), not (f64)": region(Stmt(Load(), (A, N), (Var("t", FLOAT32),))),
    "a value of types (f32), not (f64)": region(Stmt(Store(), (A, N, S))),
    "a store into a constant array": region(Stmt(Store(), (G, N, X))),
    "no axis 1": region(Stmt(Shape(1), (A,), (Var("i", INT64),))),
    "0 dimensions of [i]": region(
        Stmt(View("index", "i"), (A, N), (Var("b", Array(FLOAT64, 0)),)),
        Stmt(View("index", "i"), (A, N), (Var("d", Array(FLOAT64, 1)),)),
    ),
    "2 axes of an array with 1": region(Stmt(View("index", "ii"), (A, N, N), (Var("b", Array(FLOAT64, 0)),))),
    "a view of other elements": region(Stmt(View("cast"), (A,), (Var("b", Array(FLOAT32, 1)),))),
    "argument 0 is no address": region(Stmt(Slab(FLOAT64), (X, N), (Var("p", POINTER),))),
    "a condition of types (f64), not (bool)": region(Stmt(If(), (X,), (), (Region((), (), ()), Region((), (), ())))),
    "yields of types (f32), not (f64)": region(Stmt(If(), (C,), (Y,), (Region((), (), (X,)), Region((), (), (S,))))),
    "1 regions": region(Stmt(If(), (C,), (), (Region((), (), ()),))),
    "the number of iterations is no int64": region(Stmt(For(), (X,), (), (Region((K,), (), ()),))),
    "parameters of types (f32), not (f64)": region(Stmt(For(), (N, X), (Y,), (Region((K, Var("v", FLOAT32)), (), (X,)),))),
    "yields of types (f64), not (bool, f64)": region(Stmt(While(), (X,), (Y,), (Region((Var("v", FLOAT64),), (), (X,)),))),
    "an index that is no integer": region(Stmt(View("index", "s"), (A, X, const(1), Const(NONE, None)), (Var("b", Array(FLOAT64, 1)),))),
}
BAD["1 dimensions of [i]"] = BAD.pop("0 dimensions of [i]")


@pytest.mark.parametrize("code", GOOD.values(), ids=GOOD)
def test_well_formed(code: Region) -> None:
    verify(code)


@pytest.mark.parametrize("message", BAD)
def test_ill_formed(message: str) -> None:
    with pytest.raises(IllFormedError) as info:
        verify(BAD[message])
    assert str(info.value).startswith(message)


def test_the_statement_is_shown() -> None:
    with pytest.raises(IllFormedError, match=r"\n%y: f64 = operator\.add %x, 2"):
        verify(region(add(Y, X, Const(FLOAT64, 2))))
