"""What must hold of the gradient of an IR program, checked through the interpreter; and smaller programs of which it does not hold either.

The derivative along a random direction v is compared: <grad, v> by the reverse transform with forward mode on the primal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.nodes import Const, Function, Operand, Raise, Region, Stmt, Var, walk
from ..ir.types import BOOL, INT64, Array, Scalar, Type
from .interpreter import OutOfFuel, run, run_dual
from .programs import Program

__all__ = ["Gradient", "Mismatch", "check_program", "shrink"]

Gradient = Callable[[Function, tuple[int, ...]], Function]


class Mismatch(AssertionError):
    """A gradient that is not what it must be."""


FUEL = 60_000


def check_program(program: Program, gradient: Gradient, seed: int = 0) -> bool:
    """Checks a program's gradient; False where the program is no test: too long, or beyond what doubles can tell.

    `gradient(function, argnums)` gives the function that returns the value and the gradient. Raises Mismatch.
    """
    function, argnums = program.function, program.argnums
    v, slope = _direction(program, seed)
    if v is None:
        return False
    (value,) = run(function, _copied(program.args), fuel=FUEL)
    derived = gradient(function, argnums)
    args = _copied(program.args)
    first = run(derived, args, fuel=40 * FUEL)
    _same("the arguments, which were changed", args, program.args)
    _same("the value", first[:1], (value,))
    _same("a second call", run(derived, args, fuel=40 * FUEL), first)
    for i, g in zip(argnums, first[1:], strict=True):
        _kind(g, function.args[i][1])
    wide = run(derived, _wide(program.args), wide=True, fuel=40 * FUEL)
    found, scale = 0.0, abs(slope)
    for i, g in zip(argnums, wide[1:], strict=True):
        found += float(np.sum(np.asarray(g) * v[i]))
        scale += float(np.sum(np.abs(np.asarray(g) * v[i])))
    if not abs(found - slope) <= 1e-9 * (1.0 + scale):
        raise Mismatch(f"<grad, v> = {found!r}, forward mode gives {slope!r}")
    return True


def _tangent(a: Any, t: Any) -> Any:
    if t is None:
        return _zero_tangent(a)
    return t.copy() if isinstance(a, np.ndarray) else float(t)


def _direction(program: Program, seed: int) -> tuple[Any, float]:
    """A random direction and the derivative along it; None where the program is no test."""
    rng = np.random.default_rng(seed)
    args = _wide(program.args)
    v: list[Any] = [None] * len(args)
    for i in program.argnums:
        v[i] = rng.uniform(0.5, 1.5, np.shape(args[i])) * rng.choice([-1.0, 1.0], np.shape(args[i]))
    tangents = [_tangent(a, t) for a, t in zip(args, v, strict=True)]
    try:
        (value,), (slope,) = run_dual(program.function, args, tangents, wide=True, fuel=FUEL)
    except (OutOfFuel, OverflowError, ValueError):  # `math.sin` of an infinity is a ValueError in Python
        return None, 0.0
    slope = 0.0 if slope is None else slope
    if not (abs(value) < 1e6 and abs(slope) < 1e6):
        return None, 0.0
    return v, slope


def _zero_tangent(a: Any) -> Any:
    if isinstance(a, np.ndarray):
        return np.zeros(a.shape) if a.dtype.kind == "f" else None
    return 0.0 if isinstance(a, float | np.floating) else None


def _copied(args: tuple[Any, ...]) -> list[Any]:
    return [_like(a) if isinstance(a, np.ndarray) else a for a in args]


def _like(a: Any) -> Any:
    """A copy with the same strides."""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return a.copy(order="K")
    base = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    base[..., ::2] = a
    return base[..., ::2]


def _wide_array(a: Any) -> Any:
    if a.dtype != np.float32:
        return _like(a)
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return _like(a).astype(np.float64, order="K")
    return _like(a.astype(np.float64))


def _wide(args: tuple[Any, ...]) -> list[Any]:
    out = []
    for a in args:
        if isinstance(a, np.ndarray):
            out.append(_wide_array(a))
        else:
            out.append(float(a) if isinstance(a, np.floating) else a)
    return out


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return type(a) is type(b) and repr(a) == repr(b)


def _same(what: str, found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        if not _equal(a, b):
            raise Mismatch(f"{what}: {a!r}, not {b!r}")


def _kind(g: Any, t: Type) -> None:
    """Refuses a gradient that has not its argument's precision."""
    dtype = t.dtype if isinstance(t, Array) else t
    assert isinstance(dtype, Scalar)
    found = g.dtype.name if isinstance(g, np.ndarray | np.floating) else "float64"
    if found != dtype.kind or isinstance(g, np.ndarray) != isinstance(t, Array):
        raise Mismatch(f"a gradient of type {found} for an argument of type {t}")


# ---------------------------------------------------------------------------------------------- shrinking


def shrink(program: Program, fails: Callable[[Program], bool], rounds: int = 12) -> Program:
    """A smaller program that still fails: statements are taken out one by one as long as the rest is a program."""
    for _ in range(rounds):
        before = sum(1 for _ in walk(program.function.region))
        for target in [s for s in walk(program.function.region) if not isinstance(s.op, Raise)]:
            smaller = _without(program, target)
            if smaller is not None and _quietly(fails, smaller):
                program = smaller
        if sum(1 for _ in walk(program.function.region)) == before:
            break
    return program


def _quietly(fails: Callable[[Program], bool], program: Program) -> bool:
    try:
        return fails(program)
    except Exception:
        return False


def _without(program: Program, target: Stmt) -> Program | None:
    """The program without a statement; what it defined is replaced by constants, or by its arguments where it has such of the type."""
    replaced: dict[Var, Operand] = {}
    for r in target.results:
        candidates = [a for a in target.args if a.type == r.type]
        if candidates:
            replaced[r] = candidates[0]
        elif isinstance(r.type, Scalar):
            replaced[r] = Const(r.type, False if r.type == BOOL else 1 if r.type == INT64 else 0.5)
        else:
            return None

    def get(x: Operand) -> Operand:
        while isinstance(x, Var) and x in replaced:
            x = replaced[x]
        return x

    def fix(region: Region) -> Region:
        body = [Stmt(s.op, tuple(map(get, s.args)), s.results, tuple(map(fix, s.regions)), s.loc) for s in region.body if s is not target]
        return Region(region.params, tuple(body), None if region.yields is None else tuple(map(get, region.yields)))

    f = program.function
    return Program(Function(f.name, f.args, fix(f.region), f.result), program.args, program.argnums)
