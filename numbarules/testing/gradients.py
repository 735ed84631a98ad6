"""Checks of a derivative at one point: all that holds of a gradient whatever the function, found by running it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numba
import numpy as np

from .._numba import Dispatcher, counting_heap
from ..api import vjp
from ..compile.capture import python_function
from ..errors import CheckError, message
from .vectors import Array, copied, distance, drawn, flat, is_float, leaves, moved, paired, same, size, widened

__all__ = ["GradientCheck", "Subject", "check_gradient", "checked", "differences", "tolerance"]

ENTRIES = 40
"""Arguments with more floats than this are tested along random directions only."""

STEP = 1e-4


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """What `check_gradient` found: the value, and the largest relative error of the pullback against differences.

    `entries` is how many partial derivatives were compared one by one.
    """

    function: str
    value: Any
    error: float
    entries: int

    def __str__(self) -> str:
        return f"{self.function}: {self.entries} partial derivatives within {self.error:.1e} of differences"


def check_gradient(f: Any, *args: Any, rtol: float | None = None, value_rtol: float | None = None, seed: int = 0) -> GradientCheck:
    """Checks the derivative of `f` at `args` by all its float arguments, and returns how near to differences it is.

    `f`: a Python function, an `@njit` or an `@njit_grad` function. `rtol`: the largest relative error of derivatives, 1e-6 if not
    given, 2e-3 where an argument is of single precision. `value_rtol`: of the value, ten units in the last place if not given. The same
    operations are done in the same order, so that more is needed only where a rule has another formula for the value, under `fastmath`, and
    for sums that a BLAS orders as it likes, whose rounding errors may be large beside a sum that cancels. `seed`: of the random directions.

    What is checked: the value is that of `f`; each partial derivative, against central differences in double precision (of arguments
    with few floats one by one, of all together along random directions: <Jv, w> = <v, JᵀW>); the pullback is linear; called again it
    gives the same, and so does a new one; the arguments are unchanged; a cotangent has the type, dtype and shape of its argument; no
    memory is lost from call to call.

    Raises CheckError, an AssertionError, which says what was found where; and what `vjp` raises.

    >>> import numpy as np
    >>> from numbarules.testing import check_gradient
    >>> def f(x, k):
    ...     return np.exp(-k * x)
    >>> check_gradient(f, np.array([0.1, 2.0]), 0.5).error < 1e-6
    True
    """
    return checked(f, args, rtol, value_rtol, seed)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a derivative is checked for, as errors name it, and where it is written."""

    name: str
    filename: str
    line: int

    @staticmethod
    def of(f: Any) -> Subject:
        function = python_function(f)
        return Subject(f"`{function.__name__}`", function.__code__.co_filename, function.__code__.co_firstlineno)


def checked(
    f: Any, args: tuple[Any, ...], rtol: float | None, value_rtol: float | None, seed: int, subject: Subject | None = None
) -> GradientCheck:
    """As `check_gradient`; what is wrong is said of the subject, `f` itself if not given."""
    limit = tolerance(args) if rtol is None else rtol
    point = _Point(f, args, limit, np.random.default_rng(seed), subject or Subject.of(f))
    point.value(_ulps(args) if value_rtol is None else value_rtol)
    point.projection()
    point.partials()
    point.adjoint()
    point.linearity()
    point.reuse()
    point.memory()
    return GradientCheck(point.name, point.y, point.error, point.entries)


def tolerance(args: tuple[Any, ...]) -> float:
    """The largest relative error to expect at such arguments."""
    return 2e-3 if _single(args) else 1e-6


def _ulps(args: tuple[Any, ...]) -> float:
    """Ten units in the last place of a value at such arguments."""
    return 10.0 * float(np.finfo(np.float32 if _single(args) else np.float64).eps)


def _single(args: tuple[Any, ...]) -> bool:
    return any(getattr(leaf, "dtype", None) == np.float32 for _, leaf in leaves(args))


def differences(primal: Callable[..., Any], args: tuple[Any, ...], direction: Array) -> Array:
    """The derivative of `primal` at `args` along a direction, from four values: exact for polynomials of degree four."""

    def slope(h: float) -> Array:
        up, down = (primal(*moved(args, direction, s * h)) for s in (1.0, -1.0))
        return (flat(up, up) - flat(down, down)) / (2.0 * h)

    h = STEP * max(1.0, float(np.max(np.abs(flat(args, args)), initial=0.0)))
    return (4.0 * slope(h / 2) - slope(h)) / 3.0


class _Point:
    """A function, its arguments, and its pullback there."""

    def __init__(self, f: Any, args: tuple[Any, ...], rtol: float, rng: np.random.Generator, subject: Subject) -> None:
        self.f = f
        self.subject = subject
        self.name = python_function(f).__name__
        self.args = args
        self.rtol = rtol
        self.rng = rng
        self.before = copied(args)
        self.primal = f if isinstance(f, Dispatcher) else numba.njit(f)
        self.wide = widened(args)
        self.y, self.pullback = vjp(f, *args)
        self.error = 0.0
        self.entries = 0

    def fail(self, what: str, contract: str, found: str) -> NoReturn:
        of = self.subject
        raise CheckError(message(f"{what}, of {of.name}", filename=of.filename, line=of.line, contract=contract, found=found))

    def value(self, rtol: float) -> None:
        want = self.primal(*copied(self.before))
        floats = flat(want, want)
        scale = min(1.0, float(np.max(np.abs(floats), initial=0.0))) or 1.0
        error = distance(flat(want, self.y) / scale, floats / scale)
        if error > rtol or [np.shape(x) for _, x in leaves(want)] != [np.shape(x) for _, x in leaves(self.y)]:
            contract = f"a derivative comes with the value of the function, to a relative error of {rtol:.2g}"
            self.fail("a wrong value", contract, f"{self.y!r}, and the function gives {want!r} (error {error:.2g})")
        self.unchanged()
        if not np.all(np.isfinite(flat(want, want))):
            self.fail("an infinite value or NaN", "a sample point lies inside the domain", repr(want))

    def cotangents(self, ybar: Any) -> Any:
        return self.pullback(ybar)

    def projection(self) -> None:
        """Each cotangent is a tangent of its argument."""
        for i, (arg, bar) in enumerate(zip(self.args, self.cotangents(drawn(self.y, self.rng)), strict=True)):
            scalar = is_float(arg) and not isinstance(arg, np.ndarray)  # Numba hands out Python floats, whatever the precision
            if size(arg) and type(bar) is not (float if scalar else type(arg)):
                self.fail(f"a cotangent of another type than argument {i}", "tangents have the type of the value", f"{type(bar)}")
            for path, leaf, part in paired(arg, bar):
                other = isinstance(leaf, np.ndarray) and leaf.dtype != np.asarray(part).dtype
                if np.shape(leaf) != np.shape(part) or other:
                    found = f"shape {np.shape(part)} and dtype {np.asarray(part).dtype}"
                    want = f"shape {np.shape(leaf)} and dtype {np.asarray(leaf).dtype}"
                    self.fail(f"a cotangent that does not fit argument {i}{path}", f"it has {want}", found)

    def compare(self, found: Array, want: Array, what: str) -> None:
        error = distance(found, want)
        self.error = max(self.error, error)
        if error > self.rtol:
            self.fail(
                f"a wrong {what}",
                f"it agrees with central differences to a relative error of {self.rtol:g}",
                f"{np.array2string(found, threshold=8)}, and differences give {np.array2string(want, threshold=8)} (error {error:.2g})",
            )

    def partials(self) -> None:
        """Each partial derivative by itself, of arguments that are small."""
        n = size(self.args)
        if n > ENTRIES:
            return
        ybar = drawn(self.y, self.rng)
        w, unit = flat(self.y, ybar), np.eye(n)
        want = np.array([w @ differences(self.primal, self.wide, unit[k]) for k in range(n)])
        bars, at = self.cotangents(ybar), 0
        scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
        for i, (arg, bar) in enumerate(zip(self.args, bars, strict=True)):
            m = size(arg)
            self.compare(flat(arg, bar) / scale, want[at : at + m] / scale, f"cotangent of argument {i}, over {scale:.3g}")
            at += m
        self.entries = n

    def adjoint(self) -> None:
        """<Jv, w> = <v, Jᵀw>, for arguments of any size."""
        for _ in range(2):
            direction, ybar = self.rng.standard_normal(size(self.args)), drawn(self.y, self.rng)
            forward = differences(self.primal, self.wide, direction)
            left = float(forward @ flat(self.y, ybar))
            right = float(direction @ flat(self.args, self.cotangents(ybar)))
            scale = max(1.0, float(np.abs(forward) @ np.abs(flat(self.y, ybar))))
            self.compare(np.array([right / scale]), np.array([left / scale]), "derivative along a random direction")

    def linearity(self) -> None:
        u, v = drawn(self.y, self.rng), drawn(self.y, self.rng)
        both = moved(u, 2.0 * flat(self.y, v), 1.0)
        args = self.args
        want = flat(args, self.cotangents(u)) + 2.0 * flat(args, self.cotangents(v))
        error = distance(flat(args, self.cotangents(both)), want)
        if error > max(1e-9, 0.1 * self.rtol):
            contract = "pullback(u + 2 v) = pullback(u) + 2 pullback(v)"
            self.fail("a pullback that is not linear", contract, f"a relative error of {error:.2g}")

    def reuse(self) -> None:
        ybar = drawn(self.y, self.rng)
        first = copied(self.cotangents(ybar))
        self.cotangents(drawn(self.y, self.rng))
        if not same(first, self.cotangents(ybar)):
            self.fail("a pullback that gives something else the second time", "pullbacks can be called again", "other cotangents")
        self.unchanged()
        y, pullback = vjp(self.f, *self.args)
        if not same(y, self.y) or not same(first, pullback(ybar)):
            self.fail("another result in the second call", "the same arguments give the same result", "another value or other cotangents")
        self.unchanged()

    def unchanged(self) -> None:
        if not same(self.before, self.args):
            self.fail("changed arguments", "a derivative does not change its arguments", "other values than before")

    def memory(self) -> None:
        """Blocks on Numba's heap, after three calls and after ten."""
        ybar = drawn(self.y, self.rng)

        def call(times: int) -> None:
            for _ in range(times):
                vjp(self.f, *self.args)[1](ybar)
            gc.collect()

        call(3)
        with counting_heap() as in_use:
            before = in_use()
            call(7)
            after = in_use()
        if after > before:
            self.fail("memory that is lost", "what a call allocates is free after it", f"{after - before} blocks more after 7 calls")
