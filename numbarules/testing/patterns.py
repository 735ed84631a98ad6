"""Groups of statements for the random programs, each about one analysis or pass: what it must see, and often what it must not do."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.nodes import AddTo, Alloc, Apply, Const, For, If, Item, Load, MakeTuple, Named, Operand, Shape, Stmt, Store, Var, View, const
from ..ir.types import FLOAT64, INT64, NONE, Array, Tuple, Type
from ..primitives import assign
from .scope import Known
from .statements import view

if TYPE_CHECKING:
    from .programs import Generator

__all__ = ["edge", "elementwise", "nested_views", "overlapping", "positive", "stencil", "sums", "tuples"]

VECTOR = Array(FLOAT64, 1, "C")


# ---------------------------------------------------------------------------------------------- loops


def sums(g: Generator) -> None:
    """A loop that sums, once more in a branch or a loop of its own; another sum, or an array, may read the partial sums.

    What it sums may be overwritten, in the loop or behind it.
    """
    rng, names = g.rng, g.names
    n: Operand = const(rng.randint(0, 4)) if rng.random() < 0.7 else g.call(operator.sub, [g.below(5), const(1)], INT64)
    source = g.recent([k for k in g.arrays() if k.array.dtype == FLOAT64])
    kept = g.b.one(Alloc("zeros"), [const(5)], VECTOR, "kept") if rng.random() < 0.3 else None
    counter, s, z = names.var(INT64, "k"), names.var(FLOAT64, "s"), names.var(FLOAT64, "z")
    starts = [g.float(FLOAT64) if rng.random() < 0.5 else const(0.0) for _ in range(2)]
    factor = g.float(FLOAT64)
    outer, scope = g.b, list(g.scope)
    g.b = g.b.child()

    def term() -> Operand:
        x = g.b.one(Load(), [source.operand, *(g.call(operator.mod, [counter, const(m)], INT64) for m in source.sizes)], FLOAT64)
        f = rng.choice([None, math.sin, math.tanh])
        y: Operand = x if f is None else g.call(f, [x], FLOAT64)
        return g.call(operator.mul, [y, factor], FLOAT64) if rng.random() < 0.5 else y

    def more(total: Operand) -> Operand:
        return g.call(rng.choice([operator.add, operator.add, operator.sub]), [total, term()], FLOAT64)

    total: Operand = more(s)
    kind = rng.random()
    if kind < 0.2:
        total = _inner_sum(g, total, more)
    elif kind < 0.4:
        total = _sum_in_a_branch(g, total, more)
    kind = rng.random()
    if kept is not None:
        g.b.emit(Store(False), [kept, counter, total])
    if kind < 0.35:
        other = g.call(operator.add, [z, g.call(operator.mul, [total, term()], FLOAT64)], FLOAT64)
    elif kind < 0.5:
        other = g.call(operator.add, [z, g.call(math.sin, [s], FLOAT64)], FLOAT64)
    elif kind < 0.6:
        other = g.call(operator.sub, [term(), z], FLOAT64)
    else:
        other = g.call(operator.add, [z, term()], FLOAT64)
    if rng.random() < 0.2:
        g.b.emit(Store(), [source.operand, *(g.call(operator.mod, [counter, const(m)], INT64) for m in source.sizes), term()])
    region, g.b, g.scope = g.b.region([counter, s, z], [total, other]), outer, scope
    results = (names.var(FLOAT64, "sum"), names.var(FLOAT64, "sum"))
    g.b.add(Stmt(For(), (n, *starts), results, (region,)))
    for r in results:
        g.add(r)
    if rng.random() < 0.3:
        g.b.emit(*g.access(Store, source, const(0.5)))
    if kept is not None:
        g.add(kept, (5,))
        g.add(g.b.one(Load(), [kept, g.below(5)], FLOAT64))


def _inner_sum(g: Generator, total: Operand, more: Callable[[Operand], Operand]) -> Operand:
    k, p, r = g.names.var(INT64, "j"), g.names.var(FLOAT64, "p"), g.names.var(FLOAT64, "r")
    outer, g.b = g.b, g.b.child()
    y = more(p)
    region, g.b = g.b.region([k, p], [y]), outer
    g.b.add(Stmt(For(), (const(g.rng.randint(0, 2)), total), (r,), (region,)))
    return r


def _sum_in_a_branch(g: Generator, total: Operand, more: Callable[[Operand], Operand]) -> Operand:
    r = g.names.var(FLOAT64, "r")
    condition = g.condition()
    outer, g.b = g.b, g.b.child()
    y = more(total)
    then, g.b = g.b.region([], [y]), outer
    g.b.add(Stmt(If(), (condition,), (r,), (then, g.b.child().region((), [total]))))
    return r


def stencil(g: Generator) -> None:
    """Sweeps over a grid whose elements are read by their neighbours, and which is overwritten by the next sweep."""
    rng, names = g.rng, g.names
    x = g.recent([k for k in g.arrays() if k.array.dtype == FLOAT64 and len(k.sizes) == 1])
    n = g.b.one(Shape(0), [x.operand], INT64, "n")
    length = g.call(operator.add, [n, const(2)], INT64)
    u, v = (g.b.one(Alloc("zeros"), [length], VECTOR, name) for name in "uv")
    k = names.var(INT64, "k")
    inner = g.b.child()
    place = inner.one(Apply(Named(operator.add)), [k, const(1)], INT64, "i")
    inner.emit(Store(False), [u, place, inner.one(Load(False), [x.operand, k], FLOAT64)])
    g.b.emit(For(), [n], regions=(inner.region([k]),))
    factor, swapped = g.float(FLOAT64), rng.random() < 0.5
    t, a, c = names.var(INT64, "t"), names.var(VECTOR, "a"), names.var(VECTOR, "c")
    step = g.b.child()
    old, new = (a, c) if swapped else (u, v)
    sweep, i = step.child(), names.var(INT64, "i")
    parts = [sweep.one(Load(False), [old, sweep.one(Apply(Named(operator.add)), [i, const(d)], INT64, "i")], FLOAT64) for d in range(3)]
    product = sweep.one(Apply(Named(operator.mul)), [parts[0], sweep.one(Apply(Named(math.sin)), [parts[2]], FLOAT64)], FLOAT64)
    moved = sweep.one(Apply(Named(operator.mul)), [sweep.one(Apply(Named(math.tanh)), [parts[1]], FLOAT64), factor], FLOAT64)
    middle = sweep.one(Apply(Named(operator.add)), [i, const(1)], INT64, "i")
    sweep.emit(Store(False), [new, middle, sweep.one(Apply(Named(operator.add)), [product, moved], FLOAT64)])
    step.emit(For(), [n], regions=(sweep.region([i]),))
    if not swapped:
        back, j = step.child(), names.var(INT64, "j")
        back.emit(Store(False), [u, j, back.one(Load(False), [v, j], FLOAT64)])
        step.emit(For(), [length], regions=(back.region([j]),))
    params, yields, inits = ([a, c], [c, a], [u, v]) if swapped else ([], [], [])
    results = g.b.emit(For(), [const(rng.randint(0, 3)), *inits], *(VECTOR for _ in params), regions=(step.region([t, *params], yields),))
    for r in results or (u, v):
        g.add(r, (x.sizes[0] + 2,))


# ---------------------------------------------------------------------------------------------- arrays

_BINARY: list[Any] = [operator.add, operator.sub, operator.mul, operator.mul, np.add, np.multiply]
_UNARY: list[Any] = [np.sin, np.tanh, operator.neg, np.cos, np.square]
_INPLACE: list[Any] = [assign, assign, operator.iadd, operator.isub, operator.imul]


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape; None where there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _thin(g: Generator, k: Known) -> Known:
    """An array, or a view of one of its rows, columns or elements that keeps the dimension: an axis of length one."""
    t, shape = k.array, k.sizes
    if g.rng.random() < 0.6:
        return k
    axis = g.rng.randrange(len(shape))
    parts: list[Operand] = [Const(NONE, None)] * (3 * len(shape))
    start = g.rng.randrange(shape[axis])
    parts[3 * axis : 3 * axis + 2] = [const(start), const(start + 1)]
    view = g.b.one(View("index", "s" * len(shape)), [k.operand, *parts], Array(t.dtype, t.ndim, "A"), "thin")
    return Known(view, (*shape[:axis], 1, *shape[axis + 1 :]))


def elementwise(g: Generator) -> None:
    """An expression on whole arrays, whose operands are broadcast; it makes an array or goes into one."""
    rng = g.rng
    a = _thin(g, g.recent(g.arrays()))
    t = a.array.dtype
    for _ in range(rng.randint(1, 3)):
        f: Any
        if rng.random() < 0.35:
            f, args, shape = rng.choice(_UNARY), [a.operand], a.shape
        else:
            fitting = [k for k in g.arrays() if k.array.dtype == t and broadcast(a.sizes, k.sizes) is not None]
            other = _thin(g, g.recent(fitting)) if fitting and rng.random() < 0.75 else Known(g.float(t), ())
            shape = broadcast(a.sizes, other.sizes)
            if shape is None:
                other, shape = Known(g.float(t), ()), a.shape
            f, args = rng.choice(_BINARY), [a.operand, other.operand][:: rng.choice([1, -1])]
        assert shape is not None
        a = Known(g.b.one(Apply(Named(f)), args, Array(t, len(shape), "C"), "whole"), shape)
    if rng.random() < 0.5:
        targets = [k for k in g.arrays() if k.array.dtype == t and broadcast(a.sizes, k.sizes) == k.shape]
        if targets:
            into(g, g.recent(targets), a.operand)
            return
    g.add(a.operand, a.shape)


def into(g: Generator, target: Known, value: Operand) -> None:
    """`target[...] = value`, or an augmented assignment."""
    f = g.rng.choice(_INPLACE)
    types: tuple[Type, ...] = () if f is assign else (target.operand.type,)
    results = g.b.emit(Apply(Named(f)), [target.operand, value], *types, hint="same")
    for r in results:
        g.add(r, target.shape)


def overlapping(g: Generator) -> None:
    """a[1:] = a[:-1], or the other way round: what is read is what was there before."""
    k = g.recent([k for k in g.arrays() if k.sizes[0] > 1])
    t, (n, *rest) = k.array, k.sizes
    nothing = Const(NONE, None)
    view = Array(t.dtype, t.ndim, "A")
    low = g.b.one(View("index", "s"), [k.operand, const(0), const(n - 1), nothing], view, "low")
    high = g.b.one(View("index", "s"), [k.operand, const(1), const(n), nothing], view, "high")
    target, source = (high, low) if g.rng.random() < 0.6 else (low, high)
    value: Operand = source
    if g.rng.random() < 0.4:  # a new array first
        value = g.b.one(Apply(Named(operator.mul)), [source, g.float(t.dtype)], Array(t.dtype, t.ndim, "C"), "whole")
        into(g, Known(target, (n - 1, *rest)), value)
    else:
        g.b.emit(Apply(Named(assign)), [target, value])
    g.add(high, (n - 1, *rest))


def nested_views(g: Generator) -> None:
    """Views of views; one is written through, the array or an earlier view is read."""
    start = len(g.scope)
    first = g.recent(g.arrays())
    for _ in range(g.rng.randint(2, 3)):
        view(g)
    made = [k for k in g.scope[start:] if k.shape is not None]
    t = first.array.dtype
    for k in (made[-1], g.rng.choice([first, *made])):
        g.b.emit(*g.access(g.rng.choice([Store, AddTo]), k, g.float(k.array.dtype)))
    g.add(g.b.one(*g.access(Load, first), t))


# ---------------------------------------------------------------------------------------------- scalars


def edge(g: Generator) -> None:
    """A function where its derivative is infinite, reached by no derivative and with a cotangent that is exactly zero."""
    rng = g.rng
    zero = g.call(operator.mul, [g.float(FLOAT64), const(0.0)], FLOAT64)
    if rng.random() < 0.5:
        zero = g.call(operator.mul, [zero, zero], FLOAT64)
    match rng.randrange(4):
        case 0:
            y = g.call(math.sqrt, [zero], FLOAT64)
        case 1:
            y = g.call(operator.pow, [zero, Const(FLOAT64, round(rng.uniform(0.2, 0.8), 2))], FLOAT64)
        case 2:
            y = g.call(math.asin, [g.call(operator.add, [zero, const(1.0)], FLOAT64)], FLOAT64)
        case _:
            y = g.call(math.acos, [g.call(operator.sub, [zero, const(1.0)], FLOAT64)], FLOAT64)
    g.add(g.call(operator.mul, [y, const(0.0)], FLOAT64))


def positive(g: Generator) -> None:
    """x ** p with both varying, x positive; and sqrt and log of it."""
    low = g.call(operator.add, [g.call(math.sin, [g.float(FLOAT64)], FLOAT64), const(1.5)], FLOAT64)
    match g.rng.randrange(3):
        case 0:
            g.add(g.call(operator.pow, [low, g.call(math.sin, [g.float(FLOAT64)], FLOAT64)], FLOAT64))
        case 1:
            g.add(g.call(math.sqrt, [low], FLOAT64))
        case _:
            g.add(g.call(math.log, [low], FLOAT64))


def tuples(g: Generator) -> None:
    """A tuple, taken apart in a branch or a loop."""
    rng = g.rng
    items = [rng.choice([g.float, g.float, g.int])() for _ in range(rng.randint(2, 3))]
    if rng.random() < 0.3:
        items.append(_tuple(g, [g.float(), g.float()]))
    t = _tuple(g, items)

    def item(b: Any) -> Operand:
        i = rng.randrange(len(items))
        v: Operand = b.one(Item(i), [t], items[i].type, "item")
        while isinstance(v.type, Tuple):
            j = rng.randrange(2)
            v = b.one(Item(j), [v], v.type.items[j], "item")
        return b.cast(v, FLOAT64)  # type: ignore[no-any-return]

    where = rng.random()
    if where < 0.4:
        g.add(item(g.b))
        return
    inner, r = g.b.child(), g.names.var(FLOAT64, "r")
    if where < 0.7:
        other = g.b.child()
        regions = (inner.region((), [item(inner)]), other.region((), [item(other)]))
        g.b.add(Stmt(If(), (g.condition(),), (r,), regions))
    else:
        k, p = g.names.var(INT64, "k"), g.names.var(FLOAT64, "p")
        y = inner.one(Apply(Named(operator.add)), [inner.one(Apply(Named(math.sin)), [p], FLOAT64), item(inner)], FLOAT64)
        g.b.add(Stmt(For(), (const(rng.randint(0, 3)), g.float(FLOAT64)), (r,), (inner.region([k, p], [y]),)))
    g.add(r)


def _tuple(g: Generator, items: list[Operand]) -> Var:
    return g.b.one(MakeTuple(), items, Tuple(tuple(v.type for v in items)), "tuple")
