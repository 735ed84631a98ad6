"""Random programs of the IR.

A program is valid by construction and keeps to what the front end makes of Python: loops with several exits carry an
exit number, what one branch alone defines is undefined behind the other, buffers are swapped by loop-carried values.
`patterns` are those groups of statements that some analysis or pass is about.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Alloc,
    Apply,
    Cast,
    Const,
    For,
    Function,
    If,
    Load,
    Named,
    Operand,
    Raise,
    Region,
    Stmt,
    Store,
    Var,
    View,
    While,
    const,
)
from ..ir.rewrite import Builder, Names
from ..ir.types import BOOL, FLOAT32, FLOAT64, INT64, NONE, Array, Type, is_float, is_float_array
from ..primitives import Failure
from . import patterns
from .scope import Guarded, Known

__all__ = ["Generator", "Program", "generate"]

@dataclass(frozen=True, slots=True)
class Program:
    """A function, arguments to run it at, and the positions to differentiate by."""

    function: Function
    args: tuple[Any, ...]
    argnums: tuple[int, ...]


# ---------------------------------------------------------------------------------------------- generation


# statements, or groups of statements, beside those that give the result: small programs are quick, large ones have more that meets
SIZES = (3, 4, 6, 8, 12, 22)


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    return Generator(rng, rng.choice(SIZES)).program()


_UNARY: list[Any] = [math.sin, math.cos, math.tanh, math.atan, operator.neg, builtins.abs]
_PATTERNS: list[tuple[int, Callable[[Generator], None]]] = [
    (3, patterns.sums),
    (1, patterns.stencil),
    (3, patterns.elementwise),
    (1, patterns.overlapping),
    (1, patterns.nested_views),
    (1, patterns.edge),
    (1, patterns.positive),
    (1, patterns.tuples),
]
_MISFIT = Failure(ValueError, "never raised")


class Generator:
    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.left = size
        self.names = Names()
        self.b = Builder(self.names)
        self.scope: list[Known] = []
        self.guarded: list[Guarded] = []
        self.depth = 0

    def program(self) -> Program:
        rng = self.rng
        n = rng.randint(2, 4)
        layout = rng.choice("CFA")
        kind = rng.choice([FLOAT64, FLOAT64, FLOAT32])
        args: list[tuple[str, Type, Any]] = [
            ("s", FLOAT64, rng.uniform(-1.5, 1.5)),
            ("x", Array(FLOAT64, 1, rng.choice("CCA")), (n,)),
            ("y", Array(kind, rng.choice([1, 2]), layout), None),
            ("t", kind, rng.uniform(-1.5, 1.5)),
            ("m", INT64, rng.randint(1, 9)),
            ("idx", Array(INT64, 1, "C"), (3,)),
        ]
        values: list[Any] = []
        params: list[Var] = []
        for name, t, value in args:
            p = self.names.var(t, name)
            params.append(p)
            shape: tuple[int, ...] | None = None
            if isinstance(t, Array):
                shape = value or ((n,) if t.ndim == 1 else (rng.randint(2, 3), n))
                value = self.array(t, shape)
            elif t == FLOAT32:
                value = np.float32(value)
            values.append(value)
            self.scope.append(Known(p, shape))
        while self.left > 0:
            self.statement()
        result = self.result()
        function = Function("f", tuple((name, t) for name, t, _ in args), self.b.region(params, [result]), result.type)
        floats = [i for i, (_, t, _) in enumerate(args) if is_float(t) or is_float_array(t)]
        argnums = tuple(floats) if rng.random() < 0.7 else tuple(sorted(rng.sample(floats, rng.randint(1, len(floats)))))
        return Program(function, tuple(values), argnums)

    def array(self, t: Array, shape: tuple[int, ...]) -> Any:
        size = int(np.prod(shape))
        if not is_float(t.dtype):
            return np.array([self.rng.randint(0, 7) for _ in range(size)]).reshape(shape)
        flat = np.array([self.rng.uniform(-1.5, 1.5) for _ in range(size)], t.dtype.kind)
        if t.layout == "A":
            base = np.zeros((*shape[:-1], 2 * shape[-1]), t.dtype.kind)
            base[..., ::2] = flat.reshape(shape)
            return base[..., ::2]
        return np.array(flat.reshape(shape), order=t.layout)  # type: ignore[call-overload]

    def result(self) -> Operand:
        total: Operand = const(0.25)
        found = [k for k in self.scope if is_float(k.operand.type)][-4:]
        for k in self.arrays():
            t = k.operand.type
            assert isinstance(t, Array)
            found += [Known(self.b.one(Load(), [k.operand, *self.index(k)], t.dtype), None) for _ in range(2)]
        for k in found:
            weighted = self.call(operator.mul, [self.b.cast(k.operand, FLOAT64), const(round(self.rng.uniform(0.3, 2.0), 2))], FLOAT64)
            total = self.call(operator.add, [total, weighted], FLOAT64)
        return total if self.rng.random() < 0.9 else self.b.cast(total, FLOAT32)

    # ------------------------------------------------------------------------------------------ choice

    def known(self, t: Type) -> list[Known]:
        return [k for k in self.scope if k.operand.type == t]

    def arrays(self, floats: bool = True) -> list[Known]:
        return [k for k in self.scope if isinstance(k.operand.type, Array) and is_float(k.operand.type.dtype) == floats]

    def recent(self, found: list[Any]) -> Any:
        return found[-min(len(found), 1 + int(self.rng.expovariate(0.35)))]

    def float(self, t: Type | None = None) -> Operand:
        if t is None:
            t = self.rng.choice([FLOAT64, FLOAT64, FLOAT32])
        if self.rng.random() < 0.12:
            return Const(t, round(self.rng.uniform(-1.5, 1.5), 2) if t == FLOAT64 else self.rng.randint(-3, 3) / 2)
        exact = self.known(t)
        if exact and self.rng.random() < 0.9:
            return self.recent(exact).operand  # type: ignore[no-any-return]
        other = [k for k in self.scope if is_float(k.operand.type)]
        return self.b.cast(self.recent(other).operand, t)

    def int(self) -> Operand:
        if self.rng.random() < 0.25:
            return const(self.rng.randint(0, 5))
        return self.recent(self.known(INT64)).operand  # type: ignore[no-any-return]

    def below(self, n: builtins.int) -> Operand:
        """An integer in [0, n)."""
        if self.rng.random() < 0.3:
            return const(self.rng.randrange(n))
        return self.call(operator.mod, [self.int(), const(n)], INT64)

    def index(self, k: Known) -> list[Operand]:
        assert k.shape is not None
        return [self.below(n) for n in k.shape]

    def call(self, f: Any, args: list[Operand], t: Type) -> Var:
        return self.b.one(Apply(Named(f)), args, t, getattr(f, "__name__", "v"))

    def add(self, operand: Operand, shape: tuple[builtins.int, ...] | None = None) -> None:
        self.scope.append(Known(operand, shape))

    def bounded(self, v: Operand) -> Operand:
        """`v` as it is, or brought back to the order of one."""
        return self.call(self.rng.choice([math.sin, math.tanh]), [v], v.type) if self.rng.random() < 0.4 else v

    # ------------------------------------------------------------------------------------------ statements

    def statement(self) -> None:
        self.left -= 1
        kinds: list[tuple[int, Callable[[], None]]] = [
            (4, self.arithmetic),
            (2, self.unary),
            (1, self.divide),
            (1, self.power),
            (1, self.extreme),
            (1, self.convert),
            (2, self.integer),
            (4, self.load),
            (5, self.store),
            (2, self.add_to),
            (2, self.view),
            (1, self.allocate),
            (1, self.exchange),
            (1, self.index_array),
            (1, self.update),
            (2, self.reload),
            *((weight, functools.partial(make, self)) for weight, make in _PATTERNS),
        ]
        if self.depth < 3 and self.left > 2:
            kinds += [(4, self.branch), (4, self.for_loop), (3, self.while_loop), (1, self.raising)]
        makers = [m for _, m in kinds]
        self.rng.choices(makers, [w for w, _ in kinds])[0]()

    def arithmetic(self) -> None:
        a = self.float()
        f = self.rng.choice([operator.add, operator.sub, operator.mul, operator.mul])
        self.add(self.bounded(self.call(f, [a, self.float(a.type)], a.type)))

    def unary(self) -> None:
        a = self.float()
        self.add(self.call(self.rng.choice(_UNARY), [a], a.type))

    def divide(self) -> None:
        a = self.float()
        low = self.call(operator.add, [self.call(math.sin, [self.float(a.type)], a.type), Const(a.type, 2.0)], a.type)
        self.add(self.call(operator.truediv, [a, low], a.type))

    def power(self) -> None:
        a = self.call(math.sin, [self.float(FLOAT64)], FLOAT64)
        self.add(self.call(operator.pow, [a, const(self.rng.randint(0, 4))], FLOAT64))

    def extreme(self) -> None:
        a = self.float()
        self.add(self.call(self.rng.choice([max, min]), [a, self.float(a.type)], a.type))

    def convert(self) -> None:
        a = self.float()
        self.add(self.b.one(Cast(), [a], FLOAT32 if a.type == FLOAT64 else FLOAT64, "c"))

    def integer(self) -> None:
        i = self.call(self.rng.choice([operator.add, operator.mul, operator.sub]), [self.int(), const(self.rng.randint(1, 3))], INT64)
        if self.rng.random() < 0.3:
            i = self.b.one(Cast(), [self.call(math.floor, [self.call(math.sin, [self.float(FLOAT64)], FLOAT64)], FLOAT64)], INT64, "i")
        self.add(self.call(operator.mod, [i, const(self.rng.randint(3, 9))], INT64) if self.rng.random() < 0.7 else i)

    def load(self) -> None:
        k = self.recent(self.arrays())
        self.add(self.b.one(*self.access(Load, k), k.operand.type.dtype))

    def access(self, op: Any, k: Known, *value: Operand) -> tuple[Any, list[Operand]]:
        """An access to an element: some wrap, and some of those count from the end."""
        wrap = self.rng.random() < 0.7
        index = self.index(k)
        assert k.shape is not None
        if wrap and self.rng.random() < 0.3:
            places = zip(index, k.shape, strict=True)
            index = [const(i.value - n) if isinstance(i, Const) and isinstance(i.value, int) else i for i, n in places]
        return op(wrap), [k.operand, *index, *value]

    def store(self) -> None:
        k = self.recent(self.arrays())
        self.b.emit(*self.access(Store, k, self.float(k.operand.type.dtype)))

    def add_to(self) -> None:
        k = self.recent(self.arrays())
        self.b.emit(*self.access(AddTo, k, self.float(k.operand.type.dtype)))

    def update(self) -> None:
        """a[i] = g(a[i])."""
        k = self.recent(self.arrays())
        t, index = k.operand.type.dtype, self.index(k)
        old = self.b.one(Load(), [k.operand, *index], t)
        self.add(old)
        new = self.call(operator.mul, [self.call(math.sin, [old], t), self.float(t)], t)
        self.b.emit(Store(), [k.operand, *index, new])

    def exchange(self) -> None:
        """t = a[i]; a[i] = a[j]; a[j] = t."""
        k = self.recent(self.arrays())
        t = k.operand.type.dtype
        i, j = self.index(k), self.index(k)
        first = self.b.one(Load(), [k.operand, *i], t)
        self.add(first)
        self.b.emit(Store(), [k.operand, *i, self.b.one(Load(), [k.operand, *j], t)])
        self.b.emit(Store(), [k.operand, *j, first])

    def reload(self) -> None:
        """v = a[i]; a[j] = e; w = a[i]; v*w: the same element on both sides of a store that may have changed it."""
        k = self.recent(self.arrays())
        t, i, j = k.operand.type.dtype, self.index(k), self.index(k)
        first = self.b.one(Load(), [k.operand, *i], t)
        self.b.emit(Store(), [k.operand, *j, self.call(math.sin, [self.float(t)], t)])
        second = self.b.one(Load(), [k.operand, *i], t)
        self.add(second)
        self.add(self.call(operator.mul, [first, second], t))

    def index_array(self) -> None:
        k = self.recent(self.arrays(floats=False))
        assert k.shape is not None
        if self.rng.random() < 0.6:
            self.add(self.b.one(Load(), [k.operand, *self.index(k)], INT64))
        else:
            self.b.emit(Store(), [k.operand, *self.index(k), self.below(7)])

    def view(self) -> None:
        k = self.recent(self.arrays())
        t, shape, rng = k.operand.type, k.shape, self.rng
        if len(shape) == 2 and rng.random() < 0.4:
            flipped = Array(t.dtype, 2, {"C": "F", "F": "C"}.get(t.layout, "A"))
            self.add(self.b.one(View("transpose"), [k.operand], flipped, "T"), shape[::-1])
        elif len(shape) == 2 and rng.random() < 0.6:
            if rng.random() < 0.5:
                row = Array(t.dtype, 1, "C" if t.layout == "C" else "A")
                self.add(self.b.one(View("index", rng.choice(["i", "if"])), [k.operand, self.below(shape[0])], row, "row"), shape[1:])
            else:
                column = Array(t.dtype, 1, "C" if t.layout == "F" else "A")
                self.add(self.b.one(View("index", "fi"), [k.operand, self.below(shape[1])], column, "column"), shape[:1])
        elif t.layout == "C" and rng.random() < 0.3:
            flat = len(shape) == 2
            new = (shape[0] * shape[1],) if flat else (1, shape[0])
            self.add(self.b.one(View("reshape"), [k.operand, *map(const, new)], Array(t.dtype, len(new), "C"), "r"), new)
        else:
            n = shape[0]
            start, step = rng.randrange(n), rng.choice([None, None, 1, 2, -1])
            stop = None if step == -1 else rng.randint(start + 1, n)
            length = len(range(n)[start:stop:step])
            parts: list[Operand] = [const(p) if p is not None else Const(NONE, None) for p in (start, stop, step)]
            layout = "C" if t.layout == "C" and step is None else "A"
            self.add(self.b.one(View("index", "s"), [k.operand, *parts], Array(t.dtype, t.ndim, layout), "part"), (length, *shape[1:]))

    def allocate(self) -> None:
        t = self.rng.choice([FLOAT64, FLOAT64, FLOAT32])
        model = self.rng.choice(self.arrays())
        assert model.shape is not None
        shape = model.shape if self.rng.random() < 0.7 and len(model.shape) == 1 else (self.rng.randint(1, 4),)
        fill = self.rng.choice(["zeros", "empty"])
        a = self.b.one(Alloc(fill), [const(n) for n in shape], Array(t, 1, "C"), "buf")
        self.add(a, shape)
        if fill == "empty":
            k = self.names.var(INT64, "k")
            outer, self.b = self.b, self.b.child()
            source = self.rng.choice([m for m in self.arrays() if len(m.shape or ()) == 1 and m.operand is not a])
            value: Operand = self.float(t)
            if (source.shape or (0,))[0] >= shape[0]:
                found = source.operand.type
                assert isinstance(found, Array)
                read = self.b.one(Load(False), [source.operand, k], found.dtype)
                value = self.call(operator.mul, [value, self.b.cast(read, t)], t)
            self.b.emit(Store(False), [a, k, self.bounded(value)])
            inner, self.b = self.b, outer
            self.b.emit(For(), [const(shape[0])], regions=(inner.region([k]),))

    # ------------------------------------------------------------------------------------------ control

    def condition(self) -> Operand:
        known = self.known(BOOL)
        if known and self.rng.random() < 0.3:
            return self.recent(known).operand  # type: ignore[no-any-return]
        if self.rng.random() < 0.5:
            a = self.float(FLOAT64)
            c = self.call(self.rng.choice([operator.lt, operator.gt]), [a, const(round(self.rng.uniform(-0.5, 0.5), 2))], BOOL)
        else:
            c = self.call(operator.eq, [self.below(self.rng.randint(2, 3)), const(0)], BOOL)
        self.add(c)
        return c

    def inside(self, count: builtins.int, extra: list[Known] | None = None) -> tuple[Builder, list[Known]]:
        """Statements of a region: its builder, and the scope at its end. The caller's scope is unchanged."""
        scope, guarded, outer = list(self.scope), list(self.guarded), self.b
        self.scope += extra or []
        self.b, self.depth = self.b.child(), self.depth + 1
        while count > 0 and self.left > 0:
            before = self.left
            self.statement()
            count -= before - self.left
        builder, end = self.b, self.scope
        self.b, self.depth, self.scope, self.guarded = outer, self.depth - 1, scope, guarded
        return builder, end

    def branch(self) -> None:
        condition = self.condition()
        sides = []
        for side in (True, False):
            extra = [g.known for g in self.guarded if g.condition is condition and g.side == side]
            sides.append(self.inside(self.rng.randint(0, 5), extra))
        results: list[Var] = []
        yields: tuple[list[Operand], list[Operand]] = ([], [])
        fresh: list[Known] = []
        for model in self.wanted(self.rng.randint(0, 3)):
            r = self.names.var(model.operand.type, "r")
            for out, (_, end) in zip(yields, sides, strict=True):
                out.append(self.pick(end, model))
            results.append(r)
            fresh.append(Known(r, model.shape))
        only = self.rng.random() < 0.4
        if only:
            side = self.rng.random() < 0.5
            end = sides[0 if side else 1][1][len(self.scope) :]
            defined = [k for k in end if isinstance(k.operand, Var)]
            if defined:
                k = self.recent(defined)
                r = self.names.var(k.operand.type, "only")
                yields[0 if side else 1].append(k.operand)
                yields[1 if side else 0].append(Const(r.type, UNDEFINED))
                results.append(r)
                self.guarded.append(Guarded(condition, side, Known(r, k.shape)))
        regions = tuple(b.region((), out) for (b, _), out in zip(sides, yields, strict=True))
        self.b.add(Stmt(If(), (condition,), tuple(results), regions))
        self.scope += fresh
        if only and self.guarded and self.rng.random() < 0.7 and self.left > 0:
            self.again(self.guarded[-1])

    def again(self, g: Guarded) -> None:
        """Another branch on the same condition, which uses what the first one made."""
        if not any(k.operand is g.condition for k in self.scope) and isinstance(g.condition, Var):
            return
        builder, end = self.inside(self.rng.randint(1, 3), [g.known])
        value = self.pick(end, Known(Const(FLOAT64, 0.0)))
        if is_float(g.known.operand.type):
            value = builder.one(Apply(Named(operator.mul)), [value, builder.cast(g.known.operand, FLOAT64)], FLOAT64)
        r = self.names.var(FLOAT64, "r")
        other = (self.b.child().region((), [self.float_known()]), builder.region((), [value]))
        self.b.add(Stmt(If(), (g.condition,), (r,), other[::-1] if g.side else other))
        self.add(r)

    def float_known(self) -> Operand:
        return self.recent(self.known(FLOAT64)).operand  # type: ignore[no-any-return]

    def wanted(self, count: builtins.int) -> list[Known]:
        """Values of the scope whose types become results of a region."""
        out = []
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.35:
                found = self.arrays()
            elif kind < 0.5:
                found = self.known(INT64)
            else:
                found = [k for k in self.scope if is_float(k.operand.type)]
            out.append(self.recent(found))
        return out

    def pick(self, scope: list[Known], model: Known) -> Operand:
        """A value of the model's type and shape."""
        found = [k for k in scope if k.operand.type == model.operand.type and k.shape == model.shape]
        if not found:
            return model.operand
        if isinstance(model.operand.type, Array):
            return self.rng.choice(found).operand
        return self.recent(found).operand  # type: ignore[no-any-return]

    def carried(self) -> tuple[list[Operand], list[Known]]:
        """Initial values and parameters of a loop; arrays often come in pairs, to be swapped."""
        models = self.wanted(self.rng.randint(0, 3))
        if self.rng.random() < 0.25:
            k = self.recent(self.arrays())
            models += [k, Known(self.pick(self.scope, k), k.shape)]
        return [m.operand for m in models], [Known(self.names.var(m.operand.type, "p"), m.shape) for m in models]

    def passed_on(self, end: list[Known], params: list[Known]) -> list[Operand]:
        """What an iteration hands to the next: something new, the same, or another parameter of the type."""
        out: list[Operand] = []
        for p in params:
            same = [q for q in params if q is not p and q.operand.type == p.operand.type and q.shape == p.shape]
            if same and self.rng.random() < 0.6:
                out.append(self.rng.choice(same).operand)
            else:
                out.append(self.pick(end, p))
        return out

    def late(self, builder: Builder, end: list[Known], inits: list[Operand], params: list[Known], yields: list[Operand]) -> None:
        """A value that only the loop defines: undefined before its first iteration."""
        k = self.recent(end)
        if isinstance(k.operand, Var) and self.rng.random() < 0.3:
            inits.append(Const(k.operand.type, UNDEFINED))
            params.append(Known(self.names.var(k.operand.type, "late"), k.shape))
            yields.append(k.operand)

    def for_loop(self) -> None:
        rng = self.rng
        n: Operand = const(rng.randint(0, 4)) if rng.random() < 0.6 else self.call(operator.sub, [self.below(5), const(1)], INT64)
        inits, params = self.carried()
        k = self.names.var(INT64, "k")
        counter = rng.random() < 0.4  # an integer that moves by a constant, or by another rule
        if counter:
            inits.append(self.int())
            params.append(Known(self.names.var(INT64, "i")))
        builder, end = self.inside(rng.randint(1, 7), [*params, Known(k)])
        yields = self.passed_on(end, params)
        if counter:
            step: list[Operand] = [params[-1].operand, const(rng.choice([1, 2, -1]))]
            moved: Operand = builder.one(Apply(Named(operator.add)), step, INT64, "i")
            if rng.random() < 0.3:
                moved = builder.one(Apply(Named(operator.mod)), [moved, const(5)], INT64, "i")
            yields[-1] = moved
        if isinstance(n, Const) and isinstance(n.value, int) and n.value > 0:
            self.late(builder, end, inits, params, yields)
        results = [self.names.var(p.operand.type, "q") for p in params]
        self.b.add(Stmt(For(), (n, *inits), tuple(results), (builder.region([k, *(p.operand for p in params)], yields),)))  # type: ignore[list-item]
        self.scope += [Known(r, p.shape) for r, p in zip(results, params, strict=True)]

    def while_loop(self) -> None:
        """A loop with one or two exits: it carries a count, and the number of the exit it left by."""
        rng = self.rng
        inits, params = self.carried()
        count, door = self.names.var(INT64, "count"), self.names.var(INT64, "exit")
        limit = rng.choice([1, 2, 3, 4, 19, 35] if self.depth == 0 else [1, 2, 3])
        state = [*params, Known(count)]
        builder, end = self.inside(rng.randint(0, 3), state)
        following = builder.one(Apply(Named(operator.add)), [count, const(1)], INT64, "count")
        again, chosen = self.names.var(BOOL, "again"), self.names.var(INT64, "exit")
        # the first exit, in the middle of the iteration
        outer, self.b, saved, guarded = self.b, builder, self.scope, list(self.guarded)
        self.scope, self.depth = list(end), self.depth + 1
        leave = self.condition()
        builder2, end2 = self.inside(rng.randint(1, 5))
        middle, rest = self.passed_on(end, params), self.passed_on(end2, params)
        more = builder2.one(Apply(Named(operator.lt)), [following, const(limit)], BOOL, "more")
        stay, go = ([more, const(1), *rest], [const(False), const(0), *middle])
        results = [again, chosen, *(self.names.var(p.operand.type, "p") for p in params)]
        early = rng.random() < 0.8
        test: Operand = leave if early else self.call(operator.lt, [count, const(0)], BOOL)
        self.b.add(Stmt(If(), (test,), tuple(results), (self.b.child().region((), go), builder2.region((), stay))))
        builder, self.b, self.scope, self.depth, self.guarded = self.b, outer, saved, self.depth - 1, guarded
        yields: list[Operand] = [*results[2:]]
        self.late(builder, end, inits, params, yields)
        region = builder.region([*(p.operand for p in params), count, door], [again, *yields, following, chosen])  # type: ignore[list-item]
        out = [self.names.var(p.operand.type, "q") for p in params]
        trips, left_by = self.names.var(INT64, "trips"), self.names.var(INT64, "exit")
        self.b.add(Stmt(While(), (*inits, const(0), const(7)), (*out, trips, left_by), (region,)))
        self.scope += [Known(r, p.shape) for r, p in zip(out, params, strict=True)]
        self.add(trips)
        c = self.call(operator.eq, [left_by, const(1)], BOOL)
        self.add(c)

    def raising(self) -> None:
        """if m > 1000: raise."""
        c = self.call(operator.gt, [self.int(), const(10**6)], BOOL)
        fail, quiet = self.b.child(), None
        fail.add(Stmt(Raise(_MISFIT)))
        quiet, end = self.inside(self.rng.randint(0, 4))
        models = self.wanted(self.rng.randint(0, 2))
        results = [self.names.var(m.operand.type, "r") for m in models]
        alive = quiet.region((), [self.pick(end, m) for m in models])
        if self.rng.random() < 0.3:  # the same in a loop that would raise in its first iteration
            k, n = self.names.var(INT64, "k"), self.call(operator.mod, [self.int(), const(1)], INT64)
            params = [self.names.var(m.operand.type, "p") for m in models]
            self.b.add(Stmt(For(), (n, *(m.operand for m in models)), tuple(results), (Region((k, *params), tuple(fail.body), None),)))
        else:
            self.b.add(Stmt(If(), (c,), tuple(results), (fail.region((), None), alive)))
        self.scope += [Known(r, m.shape) for r, m in zip(results, models, strict=True)]
