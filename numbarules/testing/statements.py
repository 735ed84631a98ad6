"""Single statements for the random programs: arithmetic, accesses to memory, views, new arrays."""

from __future__ import annotations

import builtins
import math
import operator
from typing import TYPE_CHECKING, Any

from ..ir.nodes import AddTo, Alloc, Cast, Const, For, Load, Operand, Store, View, const
from ..ir.types import FLOAT32, FLOAT64, INT64, NONE, Array

if TYPE_CHECKING:
    from .programs import Generator

__all__ = [
    "add_to",
    "allocate",
    "arithmetic",
    "convert",
    "divide",
    "exchange",
    "extreme",
    "index_array",
    "integer",
    "load",
    "power",
    "reload",
    "store",
    "unary",
    "update",
    "view",
]

_UNARY: list[Any] = [math.sin, math.cos, math.tanh, math.atan, operator.neg, builtins.abs]


def arithmetic(g: Generator) -> None:
    a = g.float()
    f = g.rng.choice([operator.add, operator.sub, operator.mul, operator.mul])
    g.add(g.bounded(g.call(f, [a, g.float(a.type)], a.type)))


def unary(g: Generator) -> None:
    a = g.float()
    g.add(g.call(g.rng.choice(_UNARY), [a], a.type))


def divide(g: Generator) -> None:
    a = g.float()
    low = g.call(operator.add, [g.call(math.sin, [g.float(a.type)], a.type), Const(a.type, 2.0)], a.type)
    g.add(g.call(operator.truediv, [a, low], a.type))


def power(g: Generator) -> None:
    a = g.call(math.sin, [g.float(FLOAT64)], FLOAT64)
    g.add(g.call(operator.pow, [a, const(g.rng.randint(0, 4))], FLOAT64))


def extreme(g: Generator) -> None:
    a = g.float()
    g.add(g.call(g.rng.choice([max, min]), [a, g.float(a.type)], a.type))


def convert(g: Generator) -> None:
    a = g.float()
    g.add(g.b.one(Cast(), [a], FLOAT32 if a.type == FLOAT64 else FLOAT64, "c"))


def integer(g: Generator) -> None:
    i = g.call(g.rng.choice([operator.add, operator.mul, operator.sub]), [g.int(), const(g.rng.randint(1, 3))], INT64)
    if g.rng.random() < 0.3:
        i = g.b.one(Cast(), [g.call(math.floor, [g.call(math.sin, [g.float(FLOAT64)], FLOAT64)], FLOAT64)], INT64, "i")
    g.add(g.call(operator.mod, [i, const(g.rng.randint(3, 9))], INT64) if g.rng.random() < 0.7 else i)


def load(g: Generator) -> None:
    k = g.recent(g.arrays())
    g.add(g.b.one(*g.access(Load, k), k.operand.type.dtype))


def store(g: Generator) -> None:
    k = g.recent(g.arrays())
    g.b.emit(*g.access(Store, k, g.float(k.operand.type.dtype)))


def add_to(g: Generator) -> None:
    k = g.recent(g.arrays())
    g.b.emit(*g.access(AddTo, k, g.float(k.operand.type.dtype)))


def update(g: Generator) -> None:
    """a[i] = g(a[i])."""
    k = g.recent(g.arrays())
    t, index = k.operand.type.dtype, g.index(k)
    old = g.b.one(Load(), [k.operand, *index], t)
    g.add(old)
    new = g.call(operator.mul, [g.call(math.sin, [old], t), g.float(t)], t)
    g.b.emit(Store(), [k.operand, *index, new])


def exchange(g: Generator) -> None:
    """t = a[i]; a[i] = a[j]; a[j] = t."""
    k = g.recent(g.arrays())
    t = k.operand.type.dtype
    i, j = g.index(k), g.index(k)
    first = g.b.one(Load(), [k.operand, *i], t)
    g.add(first)
    g.b.emit(Store(), [k.operand, *i, g.b.one(Load(), [k.operand, *j], t)])
    g.b.emit(Store(), [k.operand, *j, first])


def reload(g: Generator) -> None:
    """v = a[i]; a[j] = e; w = a[i]; v*w: the same element on both sides of a store that may have changed it."""
    k = g.recent(g.arrays())
    t, i, j = k.operand.type.dtype, g.index(k), g.index(k)
    first = g.b.one(Load(), [k.operand, *i], t)
    g.b.emit(Store(), [k.operand, *j, g.call(math.sin, [g.float(t)], t)])
    second = g.b.one(Load(), [k.operand, *i], t)
    g.add(second)
    g.add(g.call(operator.mul, [first, second], t))


def index_array(g: Generator) -> None:
    k = g.recent(g.arrays(floats=False))
    assert k.shape is not None
    if g.rng.random() < 0.6:
        g.add(g.b.one(Load(), [k.operand, *g.index(k)], INT64))
    else:
        g.b.emit(Store(), [k.operand, *g.index(k), g.below(7)])


def view(g: Generator) -> None:
    k = g.recent(g.arrays())
    t, shape, rng = k.operand.type, k.shape, g.rng
    if len(shape) == 2 and rng.random() < 0.4:
        flipped = Array(t.dtype, 2, {"C": "F", "F": "C"}.get(t.layout, "A"))
        g.add(g.b.one(View("transpose"), [k.operand], flipped, "T"), shape[::-1])
    elif len(shape) == 2 and rng.random() < 0.6:
        if rng.random() < 0.5:
            row = Array(t.dtype, 1, "C" if t.layout == "C" else "A")
            g.add(g.b.one(View("index", rng.choice(["i", "if"])), [k.operand, g.below(shape[0])], row, "row"), shape[1:])
        else:
            column = Array(t.dtype, 1, "C" if t.layout == "F" else "A")
            g.add(g.b.one(View("index", "fi"), [k.operand, g.below(shape[1])], column, "column"), shape[:1])
    elif t.layout == "C" and rng.random() < 0.3:
        flat = len(shape) == 2
        new = (shape[0] * shape[1],) if flat else (1, shape[0])
        g.add(g.b.one(View("reshape"), [k.operand, *map(const, new)], Array(t.dtype, len(new), "C"), "r"), new)
    else:
        n = shape[0]
        start, step = rng.randrange(n), rng.choice([None, None, 1, 2, -1])
        stop = None if step == -1 else rng.randint(start + 1, n)
        length = len(range(n)[start:stop:step])
        parts: list[Operand] = [const(p) if p is not None else Const(NONE, None) for p in (start, stop, step)]
        layout = "C" if t.layout == "C" and step is None else "A"
        g.add(g.b.one(View("index", "s"), [k.operand, *parts], Array(t.dtype, t.ndim, layout), "part"), (length, *shape[1:]))


def allocate(g: Generator) -> None:
    t = g.rng.choice([FLOAT64, FLOAT64, FLOAT32])
    model = g.rng.choice(g.arrays())
    assert model.shape is not None
    shape = model.shape if g.rng.random() < 0.7 and len(model.shape) == 1 else (g.rng.randint(1, 4),)
    fill = g.rng.choice(["zeros", "empty"])
    a = g.b.one(Alloc(fill), [const(n) for n in shape], Array(t, 1, "C"), "buf")
    g.add(a, shape)
    if fill == "empty":
        k = g.names.var(INT64, "k")
        outer, g.b = g.b, g.b.child()
        source = g.rng.choice([m for m in g.arrays() if len(m.shape or ()) == 1 and m.operand is not a])
        value: Operand = g.float(t)
        if (source.shape or (0,))[0] >= shape[0]:
            found = source.operand.type
            assert isinstance(found, Array)
            read = g.b.one(Load(False), [source.operand, k], found.dtype)
            value = g.call(operator.mul, [value, g.b.cast(read, t)], t)
        g.b.emit(Store(False), [a, k, g.bounded(value)])
        inner, g.b = g.b, outer
        g.b.emit(For(), [const(shape[0])], regions=(inner.region([k]),))
