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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Alloc,
    Apply,
    Attribute,
    Cast,
    CloseRecord,
    Const,
    Extend,
    For,
    Function,
    Get,
    If,
    Item,
    Load,
    MakeTuple,
    Method,
    Named,
    OpenRecord,
    Operand,
    PrivateCopy,
    Put,
    Raise,
    Region,
    Retain,
    ShadowLike,
    Shape,
    Slab,
    Snapshot,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from ..ir.types import Array, Scalar, Tuple, Type, is_float
from ..primitives import Failure, assign, ieee_divide

__all__ = ["DERIVATIVES", "Dual", "IllFormed", "Interpreter", "OutOfFuel", "run", "run_dual"]


class IllFormed(Exception):
    """A program that does what no valid program does."""


class OutOfFuel(Exception):
    """More statements were executed than allowed."""


@dataclass(slots=True)
class Dual:
    """A number or an array, and its derivative along one direction; both arrays have the same views."""

    value: Any
    tangent: Any


@dataclass(slots=True)
class Memory:
    """A slab of the record."""

    entries: list[Any]


@dataclass(slots=True)
class Record:
    """The record; `retained` holds what it keeps alive."""

    retained: list[Any] = field(default_factory=list)
    closed: bool = False


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


_NEVER = object()
_MACHINE_TYPES: dict[str, type] = {"bool": bool, "int64": int, "float64": float}


class Interpreter:
    """Executes a function. `wide`: float32 is computed as float64; `dual`: floats and float arrays are `Dual`.

    `resolve(obj, stmt)` gives the IR of a function that is called, None for those that are called as they are.
    """

    def __init__(self, wide: bool = False, dual: bool = False, fuel: int = 1_000_000, resolve: Resolve = _as_it_is) -> None:
        self.wide = wide
        self.resolve = resolve
        self.dual = dual
        self.fuel = fuel
        self.env: dict[Operand, Any] = {}  # variables, and constants as machine numbers
        self.machine = _MACHINE_TYPES | ({"float32": float} if wide else {"float32": np.float32})

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

    # ------------------------------------------------------------------------------------------ values

    def dtype(self, t: Scalar) -> Any:
        return np.dtype("float64" if self.wide and t.kind == "float32" else t.kind)

    def scalar(self, value: Any, t: Type) -> Any:
        """`value` as a machine number of the type `t`."""
        if type(t) is Scalar and type(value) is self.machine.get(t.kind, _NEVER) and t.kind != "int64":
            return value
        if isinstance(value, Dual):
            if not isinstance(t, Scalar):
                return value
            if not is_float(t):
                return self.scalar(value.value, t)
            return Dual(self.scalar(value.value, t), float(value.tangent))
        if not isinstance(t, Scalar):
            return value
        if t.kind == "float64" or (t.kind == "float32" and self.wide):
            return float(value)
        if t.kind == "float32":
            return np.float32(value)
        if t.kind == "bool":
            return bool(value)
        if t.kind == "int64":
            value = int(value)
            return value if -(2**63) <= value < 2**63 else (value + 2**63) % 2**64 - 2**63
        return np.dtype(t.kind).type(value)

    def get(self, x: Operand) -> Any:
        value = self.env.get(x, _NEVER)
        if value is not _NEVER:
            return value
        if isinstance(x, Const):
            value = x.value if x.value is UNDEFINED or x.value is None else self.scalar(x.value, x.type)
            self.env[x] = value
            return value
        raise IllFormed(f"{x} is used where it has no value")

    def defined(self, x: Operand) -> Any:
        value = self.env.get(x, _NEVER)
        if value is _NEVER:
            value = self.get(x)
        if value is UNDEFINED:
            raise IllFormed(f"{x} is used and was never defined")
        return value

    def define(self, v: Var, value: Any) -> None:
        if type(value) is not self.machine.get(getattr(v.type, "kind", ""), _NEVER) and value is not UNDEFINED:
            self.check(v, value.value if type(value) is Dual else value)
        self.env[v] = value

    def check(self, v: Var, value: Any) -> None:
        """Refuses a value that is not of the variable's type."""
        match v.type:
            case Array(dtype, ndim, layout):
                if not isinstance(value, np.ndarray) or value.dtype != self.dtype(dtype) or value.ndim != ndim:
                    raise IllFormed(f"{v} holds {type(value).__name__} {getattr(value, 'dtype', '')}")
                if (layout == "C" and not value.flags.c_contiguous) or (layout == "F" and not value.flags.f_contiguous):
                    raise IllFormed(f"{v} holds an array with strides {value.strides}")
            case Scalar(kind):
                wanted = self.machine.get(kind)
                if wanted is not None and type(value) is not wanted:
                    raise IllFormed(f"{v} holds {value!r}, a {type(value).__name__}")

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
        t = stmt.result.type
        if any(isinstance(v, Dual) for v in values) and (is_float(t) or (isinstance(t, Array) and is_float(t.dtype))):
            method = getattr(stmt.op.callee, "name", None)
            if method in _LINEAR_METHODS or (method is None and f in LINEAR):
                y = Dual(y, _call(f, [v.tangent if isinstance(v, Dual) else v for v in values[:split]], keywords))
            else:
                y = Dual(y, _tangent(f, y, plain, values[:split], stmt))
        elif self.dual and isinstance(t, Array) and is_float(t.dtype):
            y = Dual(y, np.zeros(np.shape(y), order="F" if t.layout == "F" else "C"))
        return [self.scalar(y, t)]

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

    # ------------------------------------------------------------------------------------------ memory

    def element(self, stmt: Stmt, indices: Iterable[Operand]) -> tuple[Any, tuple[int, ...]]:
        array = self.defined(stmt.args[0])
        plain = array.value if isinstance(array, Dual) else array
        index = tuple([self.defined(i) for i in indices])
        if len(index) != plain.ndim:
            raise IllFormed(f"index {index} of {stmt}")
        wrap = stmt.op.wrap  # type: ignore[union-attr]
        for i, n in zip(index, plain.shape):  # noqa: B905 - their number was just compared
            if type(i) is not int:
                raise IllFormed(f"index {index} of {stmt}")
            if not wrap and not 0 <= i < n:
                raise IllFormed(f"index {index} is out of bounds {plain.shape}: {stmt}")
        return array, index

    def load(self, stmt: Stmt) -> list[Any]:
        array, index = self.element(stmt, stmt.args[1:])
        if isinstance(array, Dual):
            return [self.scalar(Dual(array.value[index], array.tangent[index]), stmt.result.type)]
        return [self.scalar(array[index], stmt.result.type)]

    def store(self, stmt: Stmt) -> list[Any]:
        array, index = self.element(stmt, stmt.args[1:-1])
        value = self.defined(stmt.args[-1])
        adds = isinstance(stmt.op, AddTo)
        plain, dv = (value.value, value.tangent) if isinstance(value, Dual) else (value, 0.0)
        target = array.value if isinstance(array, Dual) else array
        if self.machine.get(target.dtype.name) is not type(plain) and target.dtype.type is not np.asarray(plain).dtype.type:
            raise IllFormed(f"a {type(plain).__name__} is stored into {target.dtype}: {stmt}")
        target[index] = target[index] + plain if adds else plain
        if isinstance(array, Dual):
            array.tangent[index] = array.tangent[index] + dv if adds else dv
        return []

    def view(self, stmt: Stmt) -> list[Any]:
        source = self.get(stmt.args[0])
        if source is UNDEFINED:
            return [UNDEFINED]
        numbers = [self.defined(a) for a in stmt.args[1:]]
        if isinstance(source, Dual):
            return [Dual(_view(source.value, stmt, numbers), _view(source.tangent, stmt, numbers))]
        return [_view(source, stmt, numbers)]

    def alloc(self, stmt: Stmt) -> list[Any]:
        t = stmt.result.type
        assert isinstance(t, Array) and isinstance(stmt.op, Alloc)
        shape = tuple(self.defined(a) for a in stmt.args)
        blank = 0 if stmt.op.fill == "zeros" else math.nan if is_float(t.dtype) else -(10**9)
        order: Any = "F" if t.layout == "F" else "C"
        array = np.full(shape, blank, self.dtype(t.dtype), order=order)
        return [Dual(array, np.full(shape, float(blank), order=order)) if self.dual and is_float(t.dtype) else array]

    def copy(self, stmt: Stmt) -> list[Any]:
        """A new array, with the argument's elements or zeros."""
        source = self.get(stmt.args[-1])
        if source is UNDEFINED:
            raise IllFormed(f"a shadow of an array that does not exist: {stmt}")
        t = stmt.result.type
        assert isinstance(t, Array)
        make: Any = np.array if isinstance(stmt.op, PrivateCopy | Snapshot) else np.zeros_like
        order: Any = "F" if t.layout == "F" else "C"
        if isinstance(source, Dual):
            return [Dual(make(source.value, order=order), make(source.tangent, order=order))]
        if isinstance(stmt.op, ShadowLike) and self.dual:
            return [Dual(np.zeros_like(source, order=order), np.zeros(source.shape, order=order))]
        return [make(source, order=order)]

    def shape(self, stmt: Stmt) -> list[Any]:
        assert isinstance(stmt.op, Shape)
        array = self.defined(stmt.args[0])
        return [int((array.value if isinstance(array, Dual) else array).shape[stmt.op.axis])]

    def tuple_(self, stmt: Stmt) -> list[Any]:
        return [tuple(self.defined(a) for a in stmt.args)]

    def item(self, stmt: Stmt) -> list[Any]:
        assert isinstance(stmt.op, Item)
        return [self.defined(stmt.args[0])[stmt.op.index]]

    # ------------------------------------------------------------------------------------------ record

    def record(self, x: Operand) -> Record:
        record = self.defined(x)
        if not isinstance(record, Record) or record.closed:
            raise IllFormed(f"{x} is no open record")
        return record

    def open_record(self, stmt: Stmt) -> list[Any]:
        return [Record()]

    def close_record(self, stmt: Stmt) -> list[Any]:
        self.record(stmt.args[0]).closed = True
        return []

    def retain(self, stmt: Stmt) -> list[Any]:
        self.record(stmt.args[0]).retained.append(self.get(stmt.args[1]))
        return []

    def slab(self, stmt: Stmt) -> list[Any]:
        self.record(stmt.args[0])
        return [Memory([_NEVER] * max(self.defined(stmt.args[1]), 0))]

    def extend(self, stmt: Stmt) -> list[Any]:
        self.record(stmt.args[0])
        slab, old, new = map(self.defined, stmt.args[1:])
        if len(slab.entries) < old or new < old:
            raise IllFormed(f"{stmt} of {len(slab.entries)} entries")
        return [Memory(slab.entries[:old] + [_NEVER] * (new - old))]

    def entry(self, stmt: Stmt) -> tuple[Memory, int]:
        slab, k = self.defined(stmt.args[0]), self.defined(stmt.args[1])
        if not isinstance(slab, Memory) or not 0 <= k < len(slab.entries):
            raise IllFormed(f"entry {k} of {slab}: {stmt}")
        return slab, k

    def put(self, stmt: Stmt) -> list[Any]:
        slab, k = self.entry(stmt)
        slab.entries[k] = self.get(stmt.args[2])
        return []

    def read_back(self, stmt: Stmt) -> list[Any]:
        slab, k = self.entry(stmt)
        if slab.entries[k] is _NEVER:
            raise IllFormed(f"entry {k} was never written: {stmt}")
        return [slab.entries[k]]


_METHODS: dict[type, Callable[[Interpreter, Stmt], list[Any]]] = {
    If: Interpreter.branch,
    For: Interpreter.for_loop,
    While: Interpreter.while_loop,
    Raise: Interpreter.raises,
    Apply: Interpreter.apply,
    Cast: Interpreter.cast,
    Load: Interpreter.load,
    Store: Interpreter.store,
    AddTo: Interpreter.store,
    View: Interpreter.view,
    Alloc: Interpreter.alloc,
    ShadowLike: Interpreter.copy,
    PrivateCopy: Interpreter.copy,
    Snapshot: Interpreter.copy,
    Shape: Interpreter.shape,
    MakeTuple: Interpreter.tuple_,
    Item: Interpreter.item,
    OpenRecord: Interpreter.open_record,
    CloseRecord: Interpreter.close_record,
    Retain: Interpreter.retain,
    Slab: Interpreter.slab,
    Extend: Interpreter.extend,
    Put: Interpreter.put,
    Get: Interpreter.read_back,
}

# What is called as it is where its result is a number: comparisons, arithmetic, functions of `math`.
_ON_NUMBERS = {getattr(operator, n) for n in "lt le gt ge eq ne add sub mul truediv floordiv mod neg".split()}
_ON_NUMBERS |= {math.sin, math.cos, math.tanh, math.atan, math.exp, math.log, math.sqrt, math.floor, builtins.abs}

_INPLACE: dict[Any, Callable[..., Any]] = {getattr(operator, "i" + n): getattr(operator, n) for n in "add sub mul truediv".split()}


def _rebuilt(t: Type, leaves: Iterator[Any]) -> Any:
    return tuple(_rebuilt(item, leaves) for item in t.items) if isinstance(t, Tuple) else next(leaves)


def _view(a: Any, stmt: Stmt, numbers: list[Any]) -> Any:
    assert isinstance(stmt.op, View)
    match stmt.op.kind:
        case "transpose":
            return a.T
        case "permute":
            return a.transpose([int(axis) for axis in stmt.op.spec])
        case "cast":
            return a
        case "reshape":
            out = a.reshape(tuple(numbers))
            if a.size and not np.shares_memory(a, out):
                raise IllFormed(f"a reshape that copies: {stmt}")
            return out
    rest = iter(numbers)
    index = tuple(_key(c, rest) for c in stmt.op.spec)
    return a[(*index, ...)]  # with an ellipsis NumPy gives a view always, also of no dimensions


def _key(letter: str, rest: Iterator[Any]) -> Any:
    """What a letter of a view's index says, with the numbers that it takes."""
    match letter:
        case "i":
            return next(rest)
        case "s":
            return slice(next(rest), next(rest), next(rest))
        case "n":
            return None
    return slice(None)


_ELEMENTWISE = {operator.add, operator.sub, operator.mul, operator.neg, np.add, np.multiply, np.sin, np.cos, np.tanh, np.square}


def _elementwise(f: Any, args: list[Any], dtype: Any) -> Any:
    """`f` of each element: a loop over an array may round functions otherwise than a call for one number."""
    places = np.broadcast(*args)
    return np.array([f(*elements) for elements in places], dtype).reshape(places.shape)


def _call(f: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    if getattr(f, "__name__", "") == "overlaps":  # an intrinsic of the runtime
        return bool(np.shares_memory(*args))
    if getattr(f, "__name__", "") == "ieee_divide":
        return ieee_divide(*args)
    if f is operator.pow and isinstance(args[0], float) and args[0] == 0.0 and args[1] < 0:
        return math.inf  # Python raises
    if f in (builtins.max, builtins.min) and any(isinstance(a, float) and math.isnan(a) for a in args):
        return math.nan
    return f(*args, **keywords)


# ---------------------------------------------------------------------------------------------- derivatives


Partials = Callable[..., tuple[Any, ...]]

# The partial derivatives by each argument, from (y, *args): written here once more, on purpose.
DERIVATIVES: dict[Any, Partials] = {
    operator.add: lambda y, a, b: (1.0, 1.0),
    operator.sub: lambda y, a, b: (1.0, -1.0),
    operator.mul: lambda y, a, b: (b, a),
    operator.truediv: lambda y, a, b: (1.0 / b, -a / (b * b)),
    ieee_divide: lambda y, a, b: (1.0 / b, -a / (b * b)) if b else (math.inf, math.nan),
    operator.neg: lambda y, a: (-1.0,),
    operator.pos: lambda y, a: (1.0,),
    operator.pow: lambda y, a, b: (b * a ** (b - 1) if b else 0.0, y * math.log(a) if a > 0 else 0.0),
    operator.floordiv: lambda y, a, b: (0.0, 0.0),
    operator.mod: lambda y, a, b: (1.0, -(a // b)),
    builtins.abs: lambda y, a: (float(a > 0) - float(a < 0),),
    builtins.max: lambda y, a, b: (1.0, 0.0) if a > b else (0.0, 1.0) if a < b else (0.5, 0.5),
    builtins.min: lambda y, a, b: (1.0, 0.0) if a < b else (0.0, 1.0) if a > b else (0.5, 0.5),
    math.sin: lambda y, a: (math.cos(a),),
    math.cos: lambda y, a: (-math.sin(a),),
    math.tanh: lambda y, a: (1.0 / math.cosh(a) ** 2 if abs(a) < 300 else 0.0,),
    math.exp: lambda y, a: (math.exp(a),),
    math.log: lambda y, a: (1.0 / a,),
    math.sqrt: lambda y, a: (0.5 / math.sqrt(a),),
    math.asin: lambda y, a: (1.0 / math.sqrt((1.0 - a) * (1.0 + a)),),
    math.acos: lambda y, a: (-1.0 / math.sqrt((1.0 - a) * (1.0 + a)),),
    math.atan: lambda y, a: (1.0 / (1.0 + a * a),),
    math.floor: lambda y, a: (0.0,),
    math.hypot: lambda y, a, b: (a / y, b / y) if y else (0.0, 0.0),
    math.atan2: lambda y, a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
}
DERIVATIVES.update(
    {
        np.add: lambda y, a, b: (1.0, 1.0),
        np.multiply: lambda y, a, b: (b, a),
        np.negative: lambda y, a: (-1.0,),
        np.sin: lambda y, a: (np.cos(a),),
        np.cos: lambda y, a: (-np.sin(a),),
        np.tanh: lambda y, a: (1.0 / np.cosh(a) ** 2,),
        np.exp: lambda y, a: (np.exp(a),),
        np.sqrt: lambda y, a: (0.5 / np.sqrt(a),),
        np.arctan: lambda y, a: (1.0 / (1.0 + a * a),),
        np.abs: lambda y, a: (np.sign(a),),
        np.square: lambda y, a: (2.0 * a,),
    }
)

# Functions and methods that commute with the derivative: the tangent goes through the same call.
LINEAR: set[Any] = {np.sum, np.copy, np.zeros_like, np.empty_like, np.ravel, np.transpose, np.ascontiguousarray, np.asarray}
_LINEAR_METHODS = {"sum", "copy", "ravel", "flatten", "reshape", "transpose", "T", "astype"}


def _tangent(f: Any, y: Any, plain: list[Any], values: list[Any], stmt: Stmt) -> Any:
    partials = DERIVATIVES.get(ieee_divide if getattr(f, "__name__", "") == "ieee_divide" else f)
    if partials is None:
        raise NotImplementedError(f"the derivative of {stmt}")
    doubles = [float(p) if isinstance(p, float | np.floating) else p for p in plain]
    arrays = isinstance(y, np.ndarray)
    if not arrays and not any(isinstance(v, Dual) and v.tangent != 0.0 for v in values):
        return 0.0  # the partials need not exist where no derivative comes in
    out: Any = np.zeros_like(y, dtype=float) if arrays else 0.0
    for value, d in zip(values, partials(y, *doubles), strict=True):
        if isinstance(value, Dual) and (arrays or value.tangent != 0.0):
            out = out + value.tangent * d
    return out if arrays else float(out)
