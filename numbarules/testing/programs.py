"""Random programs of the IR.

A program is valid by construction and keeps to what the front end makes of Python: loops with several exits carry an
exit number, what one branch alone defines is undefined behind the other, buffers are swapped by loop-carried values.
`statements` are single ones, `control` has branches and loops, `patterns` are groups that some analysis or pass is about.
"""

from __future__ import annotations

import builtins
import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.nodes import (
    Apply,
    Const,
    Function,
    Load,
    Named,
    Operand,
    Var,
    const,
)
from ..ir.rewrite import Builder, Names
from ..ir.types import BOOL, FLOAT32, FLOAT64, INT64, Array, Type, is_float, is_float_array
from . import control, patterns, statements
from .scope import Guarded, Known

__all__ = ["Generator", "Program", "generate"]


@dataclass(frozen=True, slots=True)
class Program:
    """A function, arguments to run it at, and the positions to differentiate by."""

    function: Function
    args: tuple[Any, ...]
    argnums: tuple[int, ...]


# statements, or groups of statements, beside those that give the result: small programs are quick, large ones have more that meets
SIZES = (3, 4, 6, 8, 12, 22)


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    return Generator(rng, rng.choice(SIZES)).program()


class Generator:
    """The state of a program that is being made: its statements so far, and what is in scope."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.left = size
        self.names = Names()
        self.b = Builder(self.names)
        self.scope: list[Known] = []
        self.guarded: list[Guarded] = []
        self.depth = 0

    def program(self) -> Program:
        """The whole program; a generator makes one."""
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
        """An argument: random numbers in an array of the type."""
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
        """A weighted sum of what the program has computed last and of elements of its arrays."""
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
        """What is in scope of a type."""
        return [k for k in self.scope if k.operand.type == t]

    def arrays(self, floats: bool = True) -> list[Known]:
        """The arrays in scope, of floats or of integers."""
        return [k for k in self.scope if isinstance(k.operand.type, Array) and is_float(k.operand.type.dtype) == floats]

    def recent(self, found: list[Any]) -> Any:
        """One of them, more often a late one."""
        return found[-min(len(found), 1 + int(self.rng.expovariate(0.35)))]

    def float(self, t: Type | None = None) -> Operand:
        """A float, of the type if one is given."""
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
        """An integer."""
        if self.rng.random() < 0.25:
            return const(self.rng.randint(0, 5))
        return self.recent(self.known(INT64)).operand  # type: ignore[no-any-return]

    def below(self, n: builtins.int) -> Operand:
        """An integer in [0, n)."""
        if self.rng.random() < 0.3:
            return const(self.rng.randrange(n))
        return self.call(operator.mod, [self.int(), const(n)], INT64)

    def index(self, k: Known) -> list[Operand]:
        """An index of an element that is in bounds."""
        assert k.shape is not None
        return [self.below(n) for n in k.shape]

    def call(self, f: Any, args: list[Operand], t: Type) -> Var:
        """`f(*args)`, of type `t`."""
        return self.b.one(Apply(Named(f)), args, t, getattr(f, "__name__", "v"))

    def add(self, operand: Operand, shape: tuple[builtins.int, ...] | None = None) -> None:
        """Brings a value into scope."""
        self.scope.append(Known(operand, shape))

    def bounded(self, v: Operand) -> Operand:
        """`v` as it is, or brought back to the order of one."""
        return self.call(self.rng.choice([math.sin, math.tanh]), [v], v.type) if self.rng.random() < 0.4 else v

    # ------------------------------------------------------------------------------------------ statements

    def statement(self) -> None:
        """Adds a statement, or a group of them."""
        self.left -= 1
        kinds = _FLAT + _NESTED if self.depth < 3 and self.left > 2 else _FLAT
        self.rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0](self)

    def access(self, op: Any, k: Known, *value: Operand) -> tuple[Any, list[Operand]]:
        """An access to an element: some wrap, and some of those count from the end."""
        wrap = self.rng.random() < 0.7
        index = self.index(k)
        assert k.shape is not None
        if wrap and self.rng.random() < 0.3:
            places = zip(index, k.shape, strict=True)
            index = [const(i.value - n) if isinstance(i, Const) and isinstance(i.value, int) else i for i, n in places]
        return op(wrap), [k.operand, *index, *value]

    def condition(self) -> Operand:
        """A boolean, new or one that was used before."""
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


_Weighted = tuple[int, Callable[[Generator], None]]

_FLAT: list[_Weighted] = [
    (4, statements.arithmetic),
    (2, statements.unary),
    (1, statements.divide),
    (1, statements.power),
    (1, statements.extreme),
    (1, statements.convert),
    (2, statements.integer),
    (4, statements.load),
    (5, statements.store),
    (2, statements.add_to),
    (2, statements.view),
    (1, statements.allocate),
    (1, statements.exchange),
    (1, statements.index_array),
    (1, statements.update),
    (2, statements.reload),
    (3, patterns.sums),
    (1, patterns.stencil),
    (3, patterns.elementwise),
    (1, patterns.overlapping),
    (1, patterns.nested_views),
    (1, patterns.edge),
    (1, patterns.positive),
    (1, patterns.tuples),
]
_NESTED: list[_Weighted] = [(4, control.branch), (4, control.for_loop), (3, control.while_loop), (1, control.raising)]
