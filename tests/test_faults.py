"""Every planted fault is caught by a generated program of the CI seeds: the recorded one, or the first that is found."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from faults import FAULTS
from generated import simplified

from numbarules.ir.nodes import Apply, For, Function, Load, Named, Store, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import FLOAT64, INT64, Array
from numbarules.ir.verify import IllFormedError
from numbarules.testing.checks import Mismatch, check_program
from numbarules.testing.interpreter import IllFormed
from numbarules.testing.programs import Program, generate

SEARCHED = 200  # of the seeds of tests/transform/test_generated_ir.py

# The first seed that catches the fault; where the generator has changed, the search finds another one.
SEEDS: dict[str, int] = {
    "a load is executed again past a store": 0,
    "a store behind the loop is forgotten": 0,
    "a view is no alias": 0,
    "arrays that meet in a branch or a loop are no aliases": 6,
    "the private copy of a written argument is omitted": 0,
    "an assignment reads what it has overwritten": 0,
    "an elementwise operation is delayed past a store": 58,
    "a snapshot is made too early": 37,
    "a store's cotangent is not zeroed": 0,
    "a store's cotangent is not handed on": 0,
    "a load's cotangent overwrites": 0,
    "an addition is taken for a store": 2,
    "an addition's cotangent is lost": 2,
    "a cast's contribution is dropped": 4,
    "cotangents overwrite each other": 0,
    "a cotangent is not cast to its value's precision": 4,
    "a difference has the sign of a sum": 0,
    "one factor of a product gets nothing": 0,
    "a quotient's denominator gets nothing": 8,
    "a negation is taken for a copy": 3,
    "an integer power misses its factor": 25,
    "partial derivatives are in the wrong order": 11,
    "the guard of an infinite partial is omitted": 56,
    "a broadcast axis is taken for a long one": 27,
    "a side of a branch loses its cotangents": 27,
    "a value of a branch leaves it by the other side": 24,
    "the reverse loop runs forward": 7,
    "the reverse loop is one iteration off": 0,
    "a sum over the iterations is lost": 0,
    "cotangents are not carried from iteration to iteration": 0,
    "a loop without a counter is reversed once": 10,
    "every counted loop is reversed forwards": 37,
    "a partial sum that something else reads is summed in one pass": 115,
    "a loop that writes what it reads does both sweeps at once": 92,
    "a view's shadow is an array of its own": 0,
    "shadows are not swapped with their buffers": 5,
    "a residual is recorded at the wrong index": 0,
    "a growing slab is not copied": 10,
    "a residual is read at the wrong index": 0,
    "the cut chooses a value that cannot be had": 0,
    "a store does not make its array vary": 0,
    "an addition does not make its array vary": 3,
    "a load does not vary with its array": 0,
    "branches hand nothing on": 10,
    "a value that comes back in a loop is not useful": 22,
    "an affine loop value is off by one": 17,
    "a known branch takes the other side": 10,
    "the axes of a new array are taken in reverse": 19,
    "a stretched axis is taken for one that is not": 3,
    "a store is removed as dead": 0,
    "a tuple's items are mixed up": 31,
    "a loop value that falls is taken to rise": 131,
    "a load moves in front of a loop that stores": 13,
    "what branches and loops write is forgotten": 13,
    "an index is taken for natural": 15,
    "a window is never completed": 37,
    "the parts of a window are mirrored": 37,
    "a load is shared past a store": 9,
}


def written_in_the_next_iteration() -> Program:
    """for k: x[k % 2] = sin(x[0] + 1); w = x[0]; z += w*w"""
    b = Builder(Names())
    x, k, z = b.names.var(Array(FLOAT64, 1, "C"), "x"), b.names.var(INT64, "k"), b.names.var(FLOAT64, "z")
    inner = b.child()

    def call(f: object, *args: object) -> object:
        return inner.one(Apply(Named(f)), args, FLOAT64)  # type: ignore[arg-type]

    moved = call(operator.add, inner.one(Load(), [x, const(0)], FLOAT64), const(1.0))
    place = inner.one(Apply(Named(operator.mod)), [k, const(2)], INT64)
    inner.emit(Store(), [x, place, call(math.sin, moved)])  # type: ignore[list-item]
    w = inner.one(Load(), [x, const(0)], FLOAT64)
    following = call(operator.add, z, call(operator.mul, w, w))
    (y,) = b.emit(For(), [const(3), const(0.0)], FLOAT64, regions=(inner.region([k, z], [following]),))  # type: ignore[list-item]
    return Program(Function("f", (("x", x.type),), b.region([x], [y]), FLOAT64), (np.array([0.3, 0.4]),), (0,))


def read_from_both_ends() -> Program:
    """i = 1; for k: z += x[i]**2; i = i * -1"""
    b = Builder(Names())
    x, k, i, z = (b.names.var(t, name) for name, t in (("x", Array(FLOAT64, 1, "C")), ("k", INT64), ("i", INT64), ("z", FLOAT64)))
    inner = b.child()
    w = inner.one(Load(), [x, i], FLOAT64)
    square = inner.one(Apply(Named(operator.mul)), [w, w], FLOAT64)
    following = inner.one(Apply(Named(operator.add)), [z, square], FLOAT64)
    turned = inner.one(Apply(Named(operator.mul)), [i, const(-1)], INT64)
    y, _ = b.emit(For(), [const(3), const(0.0), const(1)], FLOAT64, INT64, regions=(inner.region([k, z, i], [following, turned]),))
    return Program(Function("f", (("x", x.type),), b.region([x], [y]), FLOAT64), (np.array([0.3, 0.4, 0.5]),), (0,))


# Faults that few generated programs can see have a program of their own.
DIRECTED = {
    "a store in the next iteration is forgotten": written_in_the_next_iteration,
    "a carried index that falls is taken to grow": read_from_both_ends,
}


def catches(program: Program, fault: str) -> bool:
    try:
        with FAULTS[fault]():
            check_program(program, simplified)
    except (Mismatch, IllFormed, IllFormedError, AssertionError, KeyError, ValueError):  # ValueError: a check of the program fails
        return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault: str) -> None:
    if fault in DIRECTED:
        assert check_program(DIRECTED[fault](), simplified)
        assert catches(DIRECTED[fault](), fault)
        return
    first = SEEDS.get(fault, 0)
    assert any(catches(generate(seed), fault) for seed in (first, *range(SEARCHED))), "no generated program sees it"


def test_there_are_enough() -> None:
    assert len(FAULTS) >= 50
