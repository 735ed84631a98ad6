"""What is dropped dies: functions, their gradients, the sweeps of callees, rules that went, and records."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from numba import njit, types

import numbarules as nr
from numbarules.compile.lookups import live_questions, live_records, record_at
from numbarules.compile.owned import Memo, memo_of

f8 = types.float64
Made = dict[str, Any]


def gradient() -> Made:
    @njit
    def inner(x):
        return x * x

    @njit
    def f(x):
        return inner(x) + x

    g = nr.grad(f)
    assert g(1.0) == 3.0
    return {"f": f, "function": f.py_func, "inner": inner, "g": g, "record": record_at(g, (f8,))}


def sweeps() -> Made:
    @njit(boundscheck=True)
    def other(x):
        return x * x

    @njit
    def f(x):
        return other(x)

    g = nr.value_and_grad(f)
    assert g(1.0) == (1.0, 2.0)
    (unit,) = memo_of(other, "units").values()
    return {"f": f, "other": other, "g": g, "unit": unit, "forward": unit.forward, "reverse": unit.reverse}


def pullback() -> Made:
    def f(x):
        return x * x

    _, pull = nr.vjp(f, 2.0)
    assert pull(1.0) == (4.0,)
    (halves,) = memo_of(f, "halves").values()
    return {"f": f, "pull": pull, "halves": halves}


def callers() -> Made:
    @nr.njit_grad
    def f(x):
        return x * x

    @njit
    def caller(x):
        return f.grad(x)

    assert caller(1.0) == 2.0
    return {"f": f, "grad": f.grad, "caller": caller, "record": record_at(caller, (f8,))}


def rules() -> Made:
    @njit
    def inner(x):
        return x * x

    @njit
    def f(x):
        return inner(x)

    with nr.rule_scope():

        @nr.rrule(inner)
        def rule(x):
            return x * x, lambda ybar: 5.0 * ybar

        g = nr.grad(f)
        assert g(1.0) == 5.0 and not nr.no_rrule(inner, f8)
    assert g(1.0) == 2.0
    return {"f": f, "inner": inner, "rule": rule, "g": g}


@pytest.mark.parametrize("make", [gradient, sweeps, pullback, callers, rules], ids=lambda f: f.__name__)
def test_what_is_dropped_dies(make: Callable[[], Made]) -> None:
    gc.collect()
    before = len(live_records()), len(live_questions())
    made = make()
    assert len(live_records()) > before[0]
    alive = {name: weakref.ref(x) for name, x in made.items()}
    del made
    gc.collect()
    gc.collect()
    assert [name for name, ref in alive.items() if ref() is not None] == []
    assert (len(live_records()), len(live_questions())) <= before


def test_a_caller_dies_before_its_gradient() -> None:
    g = nr.grad(squared)

    def use() -> weakref.ref[Any]:
        @njit
        def caller(x):
            return g(x)

        assert caller(1.0) == 2.0
        return weakref.ref(caller)

    caller = use()
    gc.collect()
    assert caller() is None
    with nr.rule_scope():
        nr.opt_out(scaled, f8)
        assert g(1.0) == 2.0


@njit
def scaled(x):
    return x * x


@njit
def squared(x):
    return scaled(x)


def test_memos_stay_with_their_owner() -> None:
    def f(x):
        return x

    def g(x):
        return x

    memo_of(f, "test")["a"] = 1
    g.__dict__.update(f.__dict__)
    assert memo_of(f, "test") == {"a": 1} and memo_of(g, "test") == {}
    kind, arguments = memo_of(f, "test").__reduce__()
    assert kind is Memo and kind(*arguments) == {}
