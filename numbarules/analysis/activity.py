"""Which values a derivative passes through: those that depend on an input (varied) and that a result depends on (useful).

Scalars are judged one by one, memory by alias class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..ir.nodes import AddTo, Apply, Const, For, If, Load, Operand, Raise, Region, Rule, Stmt, Store, Var, While
from ..ir.types import Array, Opaque, Tuple, Type, is_float
from .alias import Aliases, holds_memory
from .effects import effects

__all__ = ["Activity", "activity_of", "carries_derivative"]


def carries_derivative(t: Type) -> bool:
    """True for types with a differentiable leaf: floats, complex numbers, arrays and tuples of these, and what is not modelled."""
    match t:
        case Array(dtype):
            return carries_derivative(dtype)
        case Tuple(items):
            return any(map(carries_derivative, items))
        case Opaque(name):
            return not name.startswith(_PASSIVE) and not _of_integers(name)
    return is_float(t) or getattr(t, "kind", "").startswith("complex")


_PASSIVE = ("range", "slice", "unicode", "Literal", "class(", "Function", "type(", "module", "dtype", "iter(range", "undefined", "method")
_WORD = re.compile(r"[A-Za-z_]\w*")
_INTEGER = re.compile(r"u?int(8|16|32|64|p|c)?$|bool$|boolean$|unicode_type$")
_CONTAINER = frozenset(
    "list ListType DictType set iter pair UniTuple Tuple array Array Optional OptionalType none iv None"
    " C F A readonly reflected reversed False True".split()
)


def _of_integers(name: str) -> bool:
    """True for a type whose name says that it is made of integers, booleans and strings; a word that is not known may be anything."""
    words = _WORD.findall(re.sub(r"<iv=.*?>", "", name))
    return any(map(_INTEGER.match, words)) and all(_INTEGER.match(w) or w in _CONTAINER for w in words)


@dataclass(frozen=True, slots=True)
class Activity:
    """`values`: active scalars. `classes`: active alias classes."""

    values: frozenset[Var]
    classes: frozenset[Var]
    aliases: Aliases

    def __call__(self, v: Operand) -> bool:
        """True where a derivative passes through `v`."""
        if isinstance(v, Const):
            return False
        if holds_memory(v.type):
            return self.aliases.of(v) in self.classes
        return v in self.values


def activity_of(
    region: Region, aliases: Aliases, inputs: Iterable[Var], outputs: Iterable[Operand], differentiable: Callable[[Stmt], bool]
) -> Activity:
    """The activity of a function: `inputs` vary, `outputs` are useful; calls that are not `differentiable` cut the flow."""
    varied = _Flow(aliases, differentiable)
    for x in inputs:
        varied.mark(x)
    while varied.changed:
        varied.changed = False
        varied.forward(region)
    useful = _Flow(aliases, differentiable)
    for y in outputs:
        useful.mark(y)
    while useful.changed:
        useful.changed = False
        useful.backward(region)
    return Activity(frozenset(varied.values & useful.values), frozenset(varied.classes & useful.classes), aliases)


class _Flow:
    def __init__(self, aliases: Aliases, differentiable: Callable[[Stmt], bool]) -> None:
        self.aliases = aliases
        self.differentiable = differentiable
        self.values: set[Var] = set()
        self.classes: set[Var] = set()
        self.changed = True

    def mark(self, v: Operand) -> None:
        if isinstance(v, Const) or not carries_derivative(v.type):
            return
        if holds_memory(v.type):
            cls = self.aliases.of(v)
            if cls is not None and cls not in self.classes:
                self.classes.add(cls)
                self.changed = True
        elif v not in self.values:
            self.values.add(v)
            self.changed = True

    def has(self, v: Operand) -> bool:
        if isinstance(v, Const):
            return False
        if holds_memory(v.type):
            return self.aliases.of(v) in self.classes
        return v in self.values

    def pass_on(self, sources: Iterable[Operand], targets: Iterable[Operand]) -> None:
        if any(self.has(s) for s in sources):
            for t in targets:
                self.mark(t)

    # ------------------------------------------------------------------------------------------ both directions

    def forward(self, region: Region) -> None:
        for stmt in region.body:
            self.step(stmt, self.forward, flip=False)

    def backward(self, region: Region) -> None:
        for stmt in reversed(region.body):
            self.step(stmt, self.backward, flip=True)

    def step(self, stmt: Stmt, inner: Callable[[Region], None], flip: bool) -> None:
        for source, target in _edges(stmt):
            self.pass_on([target] if flip else [source], [source] if flip else [target])
        for region in stmt.regions:
            inner(region)
        for source, target in _edges(stmt):
            self.pass_on([target] if flip else [source], [source] if flip else [target])
        if (not stmt.regions or isinstance(stmt.op, Rule)) and not isinstance(stmt.op, Raise):
            ins, outs = self.flow(stmt)
            self.pass_on(outs if flip else ins, ins if flip else outs)

    def flow(self, stmt: Stmt) -> tuple[list[Operand], list[Operand]]:
        """What goes into a plain statement and what comes out."""
        match stmt.op:
            case Load():
                return [stmt.args[0]], list(stmt.results)
            case Store() | AddTo():
                return [stmt.args[-1]], [stmt.args[0]]
            case Rule(pullback=None):
                return [], []
            case Apply() if not self.differentiable(stmt):
                return [], []
        e = effects(stmt)
        outs: list[Operand] = list(stmt.results)
        if e.opaque:
            outs += [a for a in stmt.args if isinstance(a, Var) and holds_memory(a.type)]
        outs += [stmt.args[i] for i in e.writes]
        return list(stmt.args), outs


def _edges(stmt: Stmt) -> Iterable[tuple[Operand, Operand]]:
    """Pairs (source, target) that a structured statement only hands on."""
    match stmt.op:
        case If():
            for region in stmt.regions:
                yield from zip(region.yields or (), stmt.results, strict=False)
        case For() | While():
            (region,) = stmt.regions
            skip = 1 if isinstance(stmt.op, For) else 0
            params = region.params[skip:]
            yields = (region.yields or ())[0 if skip else 1 :]
            yield from zip(stmt.args[skip:], params, strict=True)
            yield from zip(yields, params, strict=False)
            yield from zip(yields, stmt.results, strict=False)
            yield from zip(stmt.args[skip:], stmt.results, strict=True)
