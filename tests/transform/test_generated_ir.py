"""Generated IR programs: the reverse transform against forward mode through the interpreter; and programs that were wrong once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from generated import MODES

from numbarules.ir.nodes import Apply, For, Function, Load, Named, Operand, Raise, Region, Stmt, Store, Var, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import FLOAT64, INT64, Array, Type
from numbarules.primitives import Failure
from numbarules.testing.checks import Mismatch, check_program, shrink
from numbarules.testing.programs import Program, generate

SEEDS = {"simplified": 1000, "plain": 300}
BATCH = 100
VECTOR = Array(FLOAT64, 1, "C")


RUNS = [(first, mode) for mode in MODES for first in range(0, SEEDS[mode], BATCH)]


@pytest.mark.parametrize(("first", "mode"), RUNS)
def test_generated_programs(first: int, mode: str) -> None:
    checked = 0
    for seed in range(first, first + BATCH):
        program = generate(seed)
        try:
            checked += check_program(program, MODES[mode])
        except Mismatch as error:
            small = shrink(program, lambda p: _fails(p, mode))
            pytest.fail(f"seed {seed}: {error}\n{small.function}\narguments {small.args}, argnums {small.argnums}")
    assert checked >= 0.9 * BATCH


def _fails(program: Program, mode: str) -> bool:
    try:
        check_program(program, MODES[mode])
    except Mismatch:
        return True
    return False


# ---------------------------------------------------------------------------------------------- programs that were wrong


def call(b: Builder, f: object, *args: Operand) -> Var:
    return b.one(Apply(Named(f)), args, FLOAT64)


def program(args: dict[str, Type], values: tuple[object, ...], argnums: tuple[int, ...], body: Callable[..., Operand]) -> Program:
    names = Names()
    b = Builder(names)
    params = [names.var(t, n) for n, t in args.items()]
    y = body(b, *params)
    return Program(Function("f", tuple(args.items()), b.region(params, [y]), FLOAT64), values, argnums)


def read_before_overwritten() -> Program:
    """a = x[i]; x[i] = 5*a; z += a*a*a"""

    def body(b: Builder, x: Var) -> Operand:
        k, z = b.names.var(INT64, "k"), b.names.var(FLOAT64, "z")
        inner = b.child()
        a = inner.one(Load(), [x, k], FLOAT64)
        inner.emit(Store(), [x, k, call(inner, operator.mul, const(5.0), a)])
        cube = call(inner, operator.mul, call(inner, operator.mul, a, a), a)
        return b.emit(For(), [const(3), const(0.0)], FLOAT64, regions=(inner.region([k, z], [call(inner, operator.add, z, cube)]),))[0]

    return program({"x": VECTOR}, (np.array([0.3, -1.2, 0.7]),), (0,), body)


def swapped_through_a_scalar() -> Program:
    """t = x[0]; x[0] = x[k]; x[k] = t; z += t*x[0]"""

    def body(b: Builder, x: Var) -> Operand:
        k, z = b.names.var(INT64, "k"), b.names.var(FLOAT64, "z")
        inner = b.child()
        t = inner.one(Load(), [x, const(0)], FLOAT64)
        inner.emit(Store(), [x, const(0), inner.one(Load(), [x, k], FLOAT64)])
        inner.emit(Store(), [x, k, t])
        product = call(inner, operator.mul, t, inner.one(Load(), [x, const(0)], FLOAT64))
        return b.emit(For(), [const(3), const(0.0)], FLOAT64, regions=(inner.region([k, z], [call(inner, operator.add, z, product)]),))[0]

    return program({"x": VECTOR}, (np.array([0.3, -1.2, 0.7]),), (0,), body)


def outer_value_overwritten_inside() -> Program:
    """for i: a = x[i]; for j: x[j] = sin(x[j]); z += a*a"""

    def body(b: Builder, x: Var) -> Operand:
        i, j, z = b.names.var(INT64, "i"), b.names.var(INT64, "j"), b.names.var(FLOAT64, "z")
        outer = b.child()
        a = outer.one(Load(), [x, i], FLOAT64)
        inner = outer.child()
        inner.emit(Store(), [x, j, call(inner, math.sin, inner.one(Load(), [x, j], FLOAT64))])
        outer.emit(For(), [const(3)], regions=(inner.region([j]),))
        following = call(outer, operator.add, z, call(outer, operator.mul, a, a))
        return b.emit(For(), [const(3), const(0.0)], FLOAT64, regions=(outer.region([i, z], [following]),))[0]

    return program({"x": VECTOR}, (np.array([0.3, -1.2, 0.7]),), (0,), body)


def loop_that_would_raise() -> Program:
    """z = s*s; for k in range(m): z = 2*z; raise; with m = 0: the cotangent of z passes by the loop"""

    def body(b: Builder, s: Var, m: Var) -> Operand:
        k, p, z = b.names.var(INT64, "k"), b.names.var(FLOAT64, "p"), b.names.var(FLOAT64, "z")
        fail = Stmt(Raise(Failure(ValueError, "")))
        b.add(Stmt(For(), (m, call(b, operator.mul, s, s)), (z,), (Region((k, p), (fail,), None),)))
        return z

    return program({"s": FLOAT64, "m": INT64}, (1.3, 0), (0,), body)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [read_before_overwritten, swapped_through_a_scalar, outer_value_overwritten_inside, loop_that_would_raise])
def test_program_that_was_wrong(make: Callable[[], Program], mode: str) -> None:
    assert check_program(make(), MODES[mode])
