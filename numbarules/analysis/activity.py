"""Which values a derivative passes through: those that depend on an input (varied) and that a result depends on (useful).

Scalars are judged one by one, memory by alias class.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..ir.nodes import AddTo, Apply, Const, For, If, Load, Operand, Raise, Region, Rule, Stmt, Store, Var, While, walk
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


_PASSIVE = ("range", "slice", "unicode", "Literal[", "class(", "Function", "type(", "module", "dtype", "iter(range", "undefined", "method")
_WORD = re.compile(r"[A-Za-z_]\w*")
_INTEGER = re.compile(r"u?int(8|16|32|64|p|c)?$|bool$|boolean$|unicode_type$")
_CONTAINER = frozenset(
    "list ListType DictType set iter pair UniTuple Tuple array Array Optional OptionalType none iv None"
    " C F A readonly reflected reversed False True".split()
)


@functools.lru_cache(512)
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
    flow = _Flow(aliases, differentiable)
    for stmt in walk(region):
        flow.statement(stmt)
    active = flow.reached(inputs, flow.forward) & flow.reached(outputs, flow.backward)
    classes = frozenset(v for v in active if holds_memory(v.type))
    return Activity(active - classes, classes, aliases)


class _Flow:
    """What a derivative is handed on to, and by whom: a graph of scalars and alias classes."""

    def __init__(self, aliases: Aliases, differentiable: Callable[[Stmt], bool]) -> None:
        self.aliases = aliases
        self.differentiable = differentiable
        self.forward: dict[Var, list[Var]] = {}
        self.backward: dict[Var, list[Var]] = {}

    def place(self, v: Operand) -> Var | None:
        """What stands for a value in the graph."""
        if isinstance(v, Const):
            return None
        return self.aliases.of(v) if holds_memory(v.type) else v

    def reached(self, start: Iterable[Operand], graph: dict[Var, list[Var]]) -> frozenset[Var]:
        """Everything on a path from `start`."""
        todo = [place for v in start if carries_derivative(v.type) and (place := self.place(v)) is not None]
        found = set(todo)
        while todo:
            for place in graph.get(todo.pop(), ()):
                if place not in found:
                    found.add(place)
                    todo.append(place)
        return frozenset(found)

    def hand_on(self, sources: Iterable[Operand], targets: Iterable[Operand]) -> None:
        """Enters that the targets get a derivative from each of the sources; only those whose type can carry one have it."""
        ends = [(place, carries_derivative(v.type)) for v in targets if (place := self.place(v)) is not None]
        for v in sources:
            place = self.place(v)
            if place is None:
                continue
            carries = carries_derivative(v.type)
            for end, receives in ends:
                if receives:
                    self.forward.setdefault(place, []).append(end)
                if carries:
                    self.backward.setdefault(end, []).append(place)

    def statement(self, stmt: Stmt) -> None:
        for source, target in _edges(stmt):
            self.hand_on([source], [target])
        if (not stmt.regions or isinstance(stmt.op, Rule)) and not isinstance(stmt.op, Raise):
            self.hand_on(*self.flow(stmt))

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
