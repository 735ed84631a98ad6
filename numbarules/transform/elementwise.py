"""Elementwise array operations as loops over scalars, with NumPy's broadcasting."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.nodes import (
    AddTo,
    Alloc,
    Apply,
    Cast,
    Const,
    For,
    If,
    Load,
    Loc,
    Named,
    Operand,
    Raise,
    Shape,
    Stmt,
    Store,
    Var,
    const,
)
from ..ir.rewrite import Builder
from ..ir.types import BOOL, INT64, Array, Scalar, Type
from ..primitives import Failure, assign, ieee_divide

__all__ = ["Expression", "Kernel", "expand_assign", "expand_new", "is_elementwise", "scalar_function"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """The scalar function of a `@vectorize`d one, with the types of its arguments and result."""

    function: Callable[..., Any]
    args: tuple[Type, ...]
    result: Type


@dataclass(frozen=True, slots=True)
class Expression:
    """`function` of the arguments, element by element; an argument is an expression, an array or a scalar."""

    function: Callable[..., Any]
    args: tuple[Expression | Operand, ...]
    type: Array
    loc: Loc | None
    kernel: Kernel | None = None  # of a `@vectorize`d function

    def leaves(self) -> Iterator[Operand]:
        for a in self.args:
            if isinstance(a, Expression):
                yield from a.leaves()
            else:
                yield a


_MISFIT = Failure(ValueError, "unable to broadcast: the shapes of the arrays do not match")

_OPERATORS: dict[object, Callable[..., Any]] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.truediv: ieee_divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.pow: np.power,
    operator.neg: operator.neg,
    operator.pos: operator.pos,
    builtins.abs: np.absolute,
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: ieee_divide,
    np.divide: ieee_divide,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.float_power: np.power,
}
_INPLACE = {getattr(operator, "i" + n): getattr(operator, n) for n in "add sub mul truediv floordiv mod pow".split()}


def is_elementwise(stmt: Stmt, kernel: Kernel | None) -> bool:
    """True for a call that applies a scalar function to each element and returns a new float array."""
    if not isinstance(stmt.op, Apply) or not isinstance(stmt.op.callee, Named) or stmt.op.keywords or len(stmt.results) != 1:
        return False
    obj = stmt.op.callee.obj
    result = stmt.results[0].type
    if not isinstance(result, Array) or not result.dtype.kind.startswith("float"):
        return False
    if not all(isinstance(a.type, Array | Scalar) for a in stmt.args):
        return False
    if any("complex" in (a.type.dtype if isinstance(a.type, Array) else a.type).kind for a in stmt.args):  # type: ignore[union-attr]
        return False
    if isinstance(obj, np.ufunc):
        return obj.nout == 1 and len(stmt.args) == obj.nin
    return _known(obj) or (kernel is not None and kernel.result == result.dtype)


def _known(obj: object) -> bool:
    try:
        return obj in _OPERATORS
    except TypeError:
        return False


def scalar_function(stmt: Stmt) -> Callable[..., Any]:
    """The scalar function of an elementwise call of an operator or a ufunc."""
    obj: Any = stmt.op.callee.obj  # type: ignore[union-attr]
    return _OPERATORS.get(obj) or obj


# ---------------------------------------------------------------------------------------------- shapes


def expand_new(expression: Expression, result: Var, b: Builder) -> None:
    """`result = expression`, a new array."""
    shape, places = _broadcast(expression, expression.type.ndim, b)
    array = b.one(Alloc("empty"), shape, expression.type, result.name.split(".")[0])

    def body(inner: Builder, index: list[Operand]) -> None:
        value = _evaluate(expression, index, places, inner)
        inner.emit(Store(wrap=False), [array, *index, inner.cast(value, expression.type.dtype)])

    _nest(shape, body, b, reverse=expression.type.layout == "F")
    b.emit_alias(result, array)


def expand_assign(stmt: Stmt, source: Expression | Operand, b: Builder) -> None:
    """`target[...] = source`, or `target op= source`."""
    target = stmt.args[0]
    assert isinstance(target.type, Array) and isinstance(stmt.op, Apply) and isinstance(stmt.op.callee, Named)
    t, ndim = target.type, target.type.ndim
    shape: list[Operand] = [b.one(Shape(i), [target], INT64, "n") for i in range(ndim)]
    expression = source if isinstance(source, Expression) else Expression(_identity, (source,), Array(t.dtype, ndim), stmt.loc)
    places: dict[Var, list[Operand | None]] = {}
    for leaf in dict.fromkeys(expression.leaves()):
        if isinstance(leaf, Var) and isinstance(leaf.type, Array):
            places[leaf] = _fit(leaf, leaf.type.ndim, target, shape, b)
    fn = stmt.op.callee.obj

    def body(inner: Builder, index: list[Operand]) -> None:
        value = _evaluate(expression, index, places, inner)
        if fn is assign:
            inner.emit(Store(wrap=False), [target, *index, inner.cast(value, t.dtype)])
        elif fn is operator.iadd:
            inner.emit(AddTo(wrap=False), [target, *index, inner.cast(value, t.dtype)])
        elif fn is operator.isub:
            negative = inner.one(Apply(Named(operator.neg)), [inner.cast(value, t.dtype)], t.dtype, "v")
            inner.emit(AddTo(wrap=False), [target, *index, negative])
        else:
            old = inner.one(Load(wrap=False), [target, *index], t.dtype, "old")
            plain = _OPERATORS[_INPLACE[fn]]
            wide = _wider(t.dtype, value.type)
            new = inner.one(Apply(Named(plain)), [inner.cast(old, wide), inner.cast(value, wide)], wide, "new")
            inner.emit(Store(wrap=False), [target, *index, inner.cast(new, t.dtype)])

    _nest(shape, body, b, reverse=t.layout == "F")


def _identity(x: Any) -> Any:
    return x


def _wider(a: Type, b: Type) -> Scalar:
    assert isinstance(a, Scalar) and isinstance(b, Scalar)
    return Scalar(str(np.result_type(a.kind, b.kind)))


def _broadcast(expression: Expression, ndim: int, b: Builder) -> tuple[list[Operand], dict[Var, list[Operand | None]]]:
    """The common shape of the leaves, and for each array leaf and axis the factor of the index: None for one."""
    arrays = [v for v in dict.fromkeys(expression.leaves()) if isinstance(v.type, Array)]
    shape: list[Operand | None] = [None] * ndim
    sizes: dict[Operand, list[Operand]] = {}
    for v in arrays:
        assert isinstance(v.type, Array)
        sizes[v] = [b.one(Shape(i), [v], INT64, "n") for i in range(v.type.ndim)]
        for i, n in enumerate(sizes[v]):
            axis = i + ndim - v.type.ndim
            old = shape[axis]
            shape[axis] = n if old is None else _common(old, n, b)
    places: dict[Var, list[Operand | None]] = {}
    full = [n if n is not None else const(1) for n in shape]
    for v in arrays:
        assert isinstance(v.type, Array)
        offset = ndim - v.type.ndim
        places[v] = [None if n is full[i + offset] else _factor(n, b) for i, n in enumerate(sizes[v])]  # type: ignore[index]
    return full, places


def _common(a: Operand, c: Operand, b: Builder) -> Operand:
    """The length of an axis that two arrays share: equal, or one of them 1."""
    one_a = b.one(Apply(Named(operator.eq)), [a, const(1)], BOOL, "one")
    out = b.names.var(INT64, "n")
    other = b.child()
    one_c = other.one(Apply(Named(operator.ne)), [c, const(1)], BOOL, "wide")
    differ = other.one(Apply(Named(operator.ne)), [a, c], BOOL, "differ")
    bad = other.one(Apply(Named(operator.and_)), [one_c, differ], BOOL, "bad")
    _raise_if(bad, other)
    b.add(Stmt(If(), (one_a,), (out,), (b.child().region((), (c,)), other.region((), (a,))), b.loc))
    return out


def _raise_if(bad: Operand, b: Builder) -> None:
    """Raises where `bad` holds. The message names no shapes: formatting them would be seconds of compilation each."""
    fail = b.child()
    fail.add(Stmt(Raise(_MISFIT), (), (), (), b.loc))
    b.add(Stmt(If(), (bad,), (), (fail.region((), None), b.child().region()), b.loc))


def _factor(n: Operand, b: Builder) -> Operand:
    """0 for an axis of length one, which every index reads, else 1."""
    wide = b.one(Apply(Named(operator.ne)), [n, const(1)], BOOL, "wide")
    return b.one(Cast(), [wide], INT64, "factor")


def _fit(leaf: Var, ndim: int, target: Operand, shape: list[Operand], b: Builder) -> list[Operand | None]:
    """Index factors of an array that is assigned to a shape; raises where it does not fit."""
    out: list[Operand | None] = []
    for i in range(ndim):
        axis = i + len(shape) - ndim
        n = b.one(Shape(i), [leaf], INT64, "n")
        if axis < 0:
            out.append(const(0))
            continue
        if leaf is target:
            out.append(None)
            continue
        differ = b.one(Apply(Named(operator.ne)), [n, shape[axis]], BOOL, "differ")
        wide = b.one(Apply(Named(operator.ne)), [n, const(1)], BOOL, "wide")
        _raise_if(b.one(Apply(Named(operator.and_)), [differ, wide], BOOL, "bad"), b)
        out.append(b.one(Cast(), [wide], INT64, "factor"))
    return out


def _evaluate(e: Expression | Operand, index: list[Operand], places: dict[Var, list[Operand | None]], b: Builder) -> Operand:
    """The element of an expression at an index."""
    if isinstance(e, Const) or (isinstance(e, Var) and not isinstance(e.type, Array)):
        return e
    if isinstance(e, Var):
        assert isinstance(e.type, Array)
        own: list[Operand] = []
        for i, factor in enumerate(places[e]):
            axis = i + len(index) - e.type.ndim
            if factor is None:
                own.append(index[axis])
            elif isinstance(factor, Const):
                own.append(const(0))
            else:
                own.append(b.one(Apply(Named(operator.mul)), [index[axis], factor], INT64, "i"))
        return b.one(Load(wrap=False), [e, *own], e.type.dtype, "x")
    values = [_evaluate(a, index, places, b) for a in e.args]
    if e.function is _identity:
        return values[0]
    b.loc = e.loc
    t = e.type.dtype
    if e.kernel is not None:
        return b.one(Apply(Named(e.function)), [b.cast(v, x) for v, x in zip(values, e.kernel.args, strict=True)], t, "y")
    return b.one(Apply(Named(e.function)), [v if v.type == BOOL else b.cast(v, t) for v in values], t, "y")


def _nest(shape: list[Operand], body: Callable[[Builder, list[Operand]], None], b: Builder, reverse: bool) -> None:
    """A loop over each axis, the last one innermost (the first with `reverse`)."""
    order = list(range(len(shape)))
    if reverse:
        order.reverse()
    index: list[Operand] = [const(0)] * len(shape)

    def level(d: int, outer: Builder) -> None:
        if d == len(order):
            body(outer, index)
            return
        k = outer.names.var(INT64, "k")
        index[order[d]] = k
        inner = outer.child()
        level(d + 1, inner)
        outer.add(Stmt(For(), (shape[order[d]],), (), (inner.region((k,)),), outer.loc))

    level(0, b)
