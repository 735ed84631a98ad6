"""The record of look-ups: what a gradient asked the table while it was compiled, and what it was compiled against."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

import numbarules as nr
from numbarules.compile.lookups import Record, record_at, recording, use
from numbarules.rules.table import table

f8 = types.float64


@njit
def inner(x):
    return math.tanh(x)


@njit
def unruled(x):
    return x * 2.0


@njit
def outer(x):
    return unruled(inner(x)) + abs(x)


@njit
def power(x, n):
    if n == 0:
        return math.tanh(x)
    return x * power(x, n - 1)


def test_look_ups_of_a_gradient_fruitless_ones_too():
    gradient = nr.grad(outer)
    gradient(0.5)
    record = record_at(gradient, (f8,))
    assert record is not None and record_at(gradient, (types.float32,)) is None
    found = {x.key: x for x in record.lookups}
    assert found[math.tanh].found.entry is not None and found[math.tanh].types == (f8,)
    assert found[math.tanh].found == table.lookup(math.tanh, (f8,))
    assert found[inner].found.entry is None and found[unruled].found.entry is None, "questions without an answer are recorded"
    at = outer.py_func.__code__.co_firstlineno
    assert found[inner].loc.line == at + 2 and found[inner].loc.filename == __file__
    assert found[math.tanh].loc.line == inner.py_func.__code__.co_firstlineno + 2, "an inlined call stands where it is written"
    assert all(x.within == "outer" for x in record.lookups)
    assert len({(x.question, x.loc) for x in record.lookups}) == len(record.lookups)


def test_look_ups_of_sweeps_of_their_own():
    def through(x):
        return power(x, 3)

    gradient = nr.value_and_grad(through)
    value, slope = gradient(0.5)
    assert np.isclose(value, 0.125 * math.tanh(0.5))
    assert np.isclose(slope, 0.75 * math.tanh(0.5) + 0.125 * (1 - math.tanh(0.5) ** 2))
    record = record_at(gradient, (f8,))
    assert math.tanh not in {x.key for x in record.lookups}
    (sweeps,) = record.uses
    assert math.tanh in {x.key for x in sweeps.lookups}
    assert math.tanh in {x.key for r, x in record.everything() if r is sweeps and x.within == "power"}
    assert record in sweeps.users


def test_records_in_a_circle():
    a, b = Record("a"), Record("b")
    with recording(a):
        use(b)
        with recording(b):
            use(a)
            use(b)
    assert a.uses == (b,) and b.uses == (a,) and list(a.everything()) == []
