"""The meaning of the IR, on NumPy arrays and Python numbers: what compiled code is compared with.

    run(function, args)                      the leaves of the result
    run_dual(function, args, tangents)       the leaves of the result and of its directional derivative

It is strict where compiled code is not: a value that was never set, an entry of the record that was never written,
an index out of bounds of an unchecked access, a value that is not of its variable's type: each is an error. `empty`
arrays are full of NaN. The directional derivative is forward mode, value and tangent side by side, and shares nothing
with the reverse transform: an array's tangent is a second array, whose views follow those of the first.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.nodes import UNDEFINED, Apply, Attribute, Cast, For, Function, If, Method, Named, Raise, Region, Stmt, While
from ..ir.types import Array, Scalar, Tuple, Type, is_float, is_float_array
from ..primitives import Failure, assign, ieee_divide
from . import memory
from .machine import Dual, IllFormed, Machine
from .memory import Memory, Record
from .partials import DERIVATIVES, LINEAR, LINEAR_METHODS

__all__ = ["Dual", "IllFormed", "Interpreter", "OutOfFuel", "run", "run_dual"]


class OutOfFuel(Exception):
    """More statements were executed than allowed."""


def run(function: Function, args: Sequence[Any], *, wide: bool = False, fuel: int = 1_000_000) -> tuple[Any, ...]:
    """The leaves of the function's result. `wide`: float32 is computed as float64. Raises what the program raises."""
    return Interpreter(wide, False, fuel).call(function, args)


Resolve = Callable[[Any, Stmt], Function | None]


def _as_it_is(obj: Any, stmt: Stmt) -> Function | None:
    return None


def run_dual(
    function: Function,
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    wide: bool = False,
    fuel: int = 1_000_000,
    resolve: Resolve = _as_it_is,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The leaves of the result, and their derivative along `tangents`, one a leaf of the arguments (None: not varied)."""
    duals = [Dual(a, t) if t is not None else a for a, t in zip(args, tangents, strict=True)]
    out = Interpreter(wide, True, fuel, resolve).call(function, duals)
    return tuple(o.value if isinstance(o, Dual) else o for o in out), tuple(o.tangent if isinstance(o, Dual) else None for o in out)


class Interpreter(Machine):
    """Executes a function. `wide`: float32 is computed as float64; `dual`: floats and float arrays are `Dual`.

    `resolve(obj, stmt)` gives the IR of a function that is called, None for those that are called as they are.
    """

    def __init__(self, wide: bool = False, dual: bool = False, fuel: int = 1_000_000, resolve: Resolve = _as_it_is) -> None:
        super().__init__(wide, dual)
        self.fuel = fuel
        self.resolve = resolve

    def call(self, function: Function, args: Sequence[Any]) -> tuple[Any, ...]:
        region = function.region
        if len(args) != len(region.params):
            raise IllFormed(f"{len(region.params)} leaves of arguments are wanted, {len(args)} came")
        for p, a in zip(region.params, args, strict=True):
            self.define(p, a if isinstance(a, Dual | np.ndarray) else self.scalar(a, p.type))
        with np.errstate(all="ignore"):
            out = self.region(region)
        if any(y is UNDEFINED for y in out):
            raise IllFormed("a result was never defined")
        return tuple(out)

    # ------------------------------------------------------------------------------------------ control

    def region(self, region: Region) -> list[Any]:
        for stmt in region.body:
            self.statement(stmt)
        if region.yields is None:
            raise IllFormed("a region that raises reached its end")
        return [self.get(y) for y in region.yields]

    def statement(self, stmt: Stmt) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel
        method = _METHODS.get(type(stmt.op))
        if method is None:
            raise IllFormed(f"no meaning: {stmt}")
        results = method(self, stmt)
        if len(results) != len(stmt.results):
            raise IllFormed(f"{len(results)} values for {stmt}")
        for r, value in zip(stmt.results, results):  # noqa: B905 - their number was just compared
            self.define(r, value)

    def branch(self, stmt: Stmt) -> list[Any]:
        return self.region(stmt.regions[0 if self.defined(stmt.args[0]) else 1])

    def for_loop(self, stmt: Stmt) -> list[Any]:
        n, *state = (self.defined(stmt.args[0]), *map(self.get, stmt.args[1:]))
        (region,) = stmt.regions
        for k in range(n):
            self.parameters(region, [k, *state])
            state = self.region(region)
        return state

    def while_loop(self, stmt: Stmt) -> list[Any]:
        state = [self.get(a) for a in stmt.args]
        (region,) = stmt.regions
        while True:
            self.parameters(region, state)
            again, *state = self.region(region)
            if again is UNDEFINED:
                raise IllFormed("a loop that does not know whether to go on")
            if not again:
                return state

    def parameters(self, region: Region, values: list[Any]) -> None:
        for p, value in zip(region.params, values, strict=True):
            self.define(p, value)

    def raises(self, stmt: Stmt) -> list[Any]:
        assert isinstance(stmt.op, Raise)
        if isinstance(stmt.op.payload, Failure):
            raise stmt.op.payload.kind(stmt.op.payload.text)
        raise RuntimeError("raised by the program")

    # ------------------------------------------------------------------------------------------ calls

    def apply(self, stmt: Stmt) -> list[Any]:
        assert isinstance(stmt.op, Apply)
        values = [self.defined(a) for a in stmt.args]
        if not self.dual and type(stmt.op.callee) is Named and stmt.op.callee.obj in _ON_NUMBERS:
            if stmt.results and type(stmt.results[0].type) is Scalar:
                return [self.scalar(stmt.op.callee.obj(*values), stmt.results[0].type)]  # type: ignore[operator]
        if any(isinstance(v, Memory | Record) for v in values):
            raise IllFormed(f"a call with a part of the record: {stmt}")
        match stmt.op.callee:
            case Named(obj):
                f: Any = obj
            case Method(name):
                f = lambda a, *rest, **kw: getattr(a, name)(*rest, **kw)  # noqa: E731 - one line a case
            case Attribute(name):
                f = lambda a: getattr(a, name)  # noqa: E731 - one line a case
        if f is assign or f in _INPLACE:
            return self.assignment(f, values, stmt)
        if isinstance(stmt.op.callee, Named) and (code := self.resolve(f, stmt)) is not None:
            if not stmt.results:
                return []
            found = Interpreter(self.wide, self.dual, self.fuel, self.resolve).call(code, values)
            return [_rebuilt(code.result, iter(found))]
        split = len(values) - len(stmt.op.keywords)
        keywords = dict(zip(stmt.op.keywords, values[split:], strict=True))
        plain = [v.value if isinstance(v, Dual) else v for v in values[:split]]
        if stmt.results and isinstance(stmt.result.type, Array) and f in _ELEMENTWISE:
            y = _elementwise(f, plain, self.dtype(stmt.result.type.dtype))
        else:
            y = _call(f, plain, keywords)
        if not stmt.results:
            return []
        if self.dual:
            y = self.with_tangent(f, y, values[:split], keywords, stmt)
        return [self.scalar(y, stmt.result.type)]

    def with_tangent(self, f: Any, y: Any, values: list[Any], keywords: dict[str, Any], stmt: Stmt) -> Any:
        """The value of a call of `f` with its tangent, if it carries one."""
        assert isinstance(stmt.op, Apply)
        t = stmt.result.type
        if any(isinstance(v, Dual) for v in (*values, *keywords.values())) and (is_float(t) or is_float_array(t)):
            method = getattr(stmt.op.callee, "name", None)
            if method in LINEAR_METHODS or (method is None and f in LINEAR):
                return Dual(y, _call(f, [v.tangent if isinstance(v, Dual) else v for v in values], keywords))
            return Dual(y, _tangent(f, y, values, stmt))
        if isinstance(t, Array) and is_float(t.dtype):
            return Dual(y, np.zeros(np.shape(y), order="F" if t.layout == "F" else "C"))
        return y

    def assignment(self, f: Any, values: list[Any], stmt: Stmt) -> list[Any]:
        """`target[...] = value` and the augmented stores of whole arrays."""
        target, source = values
        a, s = (v.value if isinstance(v, Dual) else v for v in (target, source))
        if isinstance(target, Dual):
            ds = source.tangent if isinstance(source, Dual) else np.zeros(np.shape(s))
            if f is assign or isinstance(target.value, np.ndarray):
                steps: dict[Any, Callable[[], Any]] = {
                    assign: lambda: ds,
                    operator.iadd: lambda: target.tangent + ds,
                    operator.isub: lambda: target.tangent - ds,
                    operator.imul: lambda: target.tangent * s + a * ds,
                    operator.itruediv: lambda: target.tangent / s - a / s / s * ds,
                }
                target.tangent[...] = steps[f]()
        a[...] = s if f is assign else _INPLACE[f](a, s)
        return [target] * len(stmt.results)

    def cast(self, stmt: Stmt) -> list[Any]:
        value = self.get(stmt.args[0])
        return [value if value is UNDEFINED else self.scalar(value, stmt.result.type)]


_METHODS: dict[type, Callable[[Interpreter, Stmt], list[Any]]] = {
    If: Interpreter.branch,
    For: Interpreter.for_loop,
    While: Interpreter.while_loop,
    Raise: Interpreter.raises,
    Apply: Interpreter.apply,
    Cast: Interpreter.cast,
    **memory.MEANING,
}

# What is called as it is where its result is a number: comparisons, arithmetic, functions of `math`.
_ON_NUMBERS = {getattr(operator, n) for n in "lt le gt ge eq ne add sub mul truediv floordiv mod neg".split()}
_ON_NUMBERS |= {math.sin, math.cos, math.tanh, math.atan, math.exp, math.log, math.sqrt, math.floor, builtins.abs}

_INPLACE: dict[Any, Callable[..., Any]] = {getattr(operator, "i" + n): getattr(operator, n) for n in "add sub mul truediv".split()}


def _rebuilt(t: Type, leaves: Iterator[Any]) -> Any:
    """A value of type `t` made of its leaves."""
    return tuple(_rebuilt(item, leaves) for item in t.items) if isinstance(t, Tuple) else next(leaves)


_ELEMENTWISE = {operator.add, operator.sub, operator.mul, operator.neg, np.add, np.multiply, np.sin, np.cos, np.tanh, np.square}


def _elementwise(f: Any, args: list[Any], dtype: Any) -> Any:
    """`f` of each element: a loop over an array may round functions otherwise than a call for one number."""
    places = np.broadcast(*args)
    return np.array([f(*elements) for elements in places], dtype).reshape(places.shape)


def _call(f: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`f(*args, **keywords)` as compiled code has it where Python differs."""
    if getattr(f, "__name__", "") == "overlaps":  # an intrinsic of the runtime
        return bool(np.shares_memory(*args))
    if getattr(f, "__name__", "") == "ieee_divide":
        return ieee_divide(*args)
    if f is operator.pow and isinstance(args[0], float) and args[0] == 0.0 and args[1] < 0:
        return math.inf  # Python raises
    if f in (builtins.max, builtins.min) and any(isinstance(a, float) and math.isnan(a) for a in args):
        return math.nan
    return f(*args, **keywords)


def _tangent(f: Any, y: Any, values: list[Any], stmt: Stmt) -> Any:
    """The tangent of `y`, a value of `f`, from those of the arguments."""
    partials = DERIVATIVES.get(ieee_divide if getattr(f, "__name__", "") == "ieee_divide" else f)
    if partials is None:
        raise NotImplementedError(f"the derivative of {stmt}")
    plain = [v.value if isinstance(v, Dual) else v for v in values]
    doubles = [float(p) if isinstance(p, float | np.floating) else p for p in plain]
    arrays = isinstance(y, np.ndarray)
    if not arrays and not any(isinstance(v, Dual) and v.tangent != 0.0 for v in values):
        return 0.0  # the partials need not exist where no derivative comes in
    out: Any = np.zeros_like(y, dtype=float) if arrays else 0.0
    for value, d in zip(values, partials(y, *doubles), strict=True):
        if isinstance(value, Dual) and (arrays or value.tangent != 0.0):
            out = out + value.tangent * d
    return out if arrays else float(out)
