"""What crosses the border of a region: the names that a branch leaves behind, and those that one iteration hands to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .._numba import our_type, types
from ..ir.nodes import UNDEFINED, Const, Operand, Var, same_operand
from ..ir.types import INT64, Type
from .frame import STATE, Frame
from .graph import RETURNED
from .liveness import Liveness, assigned
from .operands import constant_type
from .structure import LoopNode
from .values import Value, leaves_of, rebuild, same_shape, undefined

__all__ = ["Crossing", "carried", "fresh", "handed_on"]

_SECOND_CLASS = (
    types.SliceType,
    types.RangeType,
    types.RangeIteratorType,
    types.BoundFunction,
    types.IteratorType,
    types.Pair,
    types.Module,
)
"""Types whose values the IR does not carry from one iteration to the next."""


# ---------------------------------------------------------------------------------------------- branches


@dataclass(slots=True)
class Crossing:
    """What the two sides of an `if` yield, and the results that take it up."""

    frame: Frame
    then: list[Operand] = field(default_factory=list)
    orelse: list[Operand] = field(default_factory=list)
    results: list[Var] = field(default_factory=list)

    def only(self, name: str, value: Value, yields: list[Operand]) -> None:
        """Binds `name` to what the one side holds that reaches its end, the other raises."""
        leaves = iter(leaves_of(value))

        def leaf() -> Operand:
            old = next(leaves)
            return old if isinstance(old, Const) else self._result(name, old.type, (yields, old))

        self.frame.env[name] = rebuild(value, leaf)

    def both(self, name: str, a: Value | None, b: Value | None) -> None:
        """Binds `name` to what either side holds; where one holds nothing, nobody reads it on that path."""
        if a is b:
            if a is not None:
                self.frame.env[name] = a
            return
        model = a if a is not None else b
        assert model is not None
        if a is None or b is None:
            missing = iter([Const(leaf.type, UNDEFINED) for leaf in leaves_of(model)])
            other = rebuild(model, lambda: next(missing))
            a, b = a or other, b or other
        if not same_shape(a, b):
            self.frame.refuse(
                "values of different kinds meet after a branch",
                f"`{name}` is bound to a different kind of iterator, slice or method on each side",
            )
        pairs = iter(list(zip(leaves_of(a), leaves_of(b), strict=True)))

        def leaf() -> Operand:
            x, y = next(pairs)
            if same_operand(x, y):
                return x
            t = y.type if isinstance(x, Const) and x.value is UNDEFINED else x.type
            return self._result(name, t, (self.then, x), (self.orelse, y))

        self.frame.env[name] = rebuild(a, leaf)

    def _result(self, name: str, t: Type, *yielded: tuple[list[Operand], Operand]) -> Var:
        for yields, value in yielded:
            yields.append(value)
        self.results.append(self.frame.b.names.var(t, name.lstrip("$#")))
        return self.results[-1]


# ---------------------------------------------------------------------------------------------- loops


def carried(frame: Frame, node: LoopNode, liveness: Liveness, position: str) -> tuple[list[str], list[Value]]:
    """The names that change from one iteration to the next, and their values at the start; `position`, the loop's own, is none of them."""
    inner = assigned(node)
    wanted = liveness.start[id(node)] | liveness.after[id(node)]
    names = sorted((inner & wanted) - {node.again})
    loops, explicit = STATE
    names += [n for n in frame.env if n.startswith(explicit) or (n.startswith(loops) and "#" in inner)]
    kept: list[str] = []
    inits: list[Value] = []
    for name in names:
        value = frame.env.get(name)
        if value is None and (t := _type_at_start(frame, name)) is not None:
            value = undefined(t)
        if value is not None and name != position:
            kept.append(name)
            inits.append(value)
    return kept, inits


def _type_at_start(frame: Frame, name: str) -> Type | None:
    """The type of a name without a value in front of its loop; None where no iteration can hand it to the next."""
    known = name.removesuffix("~")
    if name.startswith("$") and known not in frame.typed.typemap:
        return INT64  # a control variable
    numba_type = frame.typed.return_type if name == RETURNED else frame.typed.typemap[known]
    t = our_type(numba_type)
    return t if constant_type(t) is None and not isinstance(numba_type, _SECOND_CLASS) else None


def fresh(frame: Frame, names: Iterable[str], inits: Iterable[Value]) -> list[Var]:
    """Binds the names to new variables, of the form of `inits`; returns the variables."""
    out: list[Var] = []

    def bind(name: str, init: Value) -> None:
        leaves = iter(leaves_of(init))

        def leaf() -> Operand:
            out.append(frame.b.names.var(next(leaves).type, name.lstrip("$#")))
            return out[-1]

        frame.env[name] = rebuild(init, leaf)

    for name, init in zip(names, inits, strict=True):
        bind(name, init)
    return out


def handed_on(frame: Frame, names: Iterable[str], inits: Iterable[Value]) -> list[Operand]:
    """What an iteration leaves in the names, leaf by leaf."""
    out: list[Operand] = []
    for name, init in zip(names, inits, strict=True):
        value = frame.env.get(name)
        if value is None:
            value = init
        if not same_shape(init, value):
            frame.refuse(
                "a loop rebinds a name to another kind of value",
                f"`{name}` is bound to a different kind of iterator, slice or method in each iteration",
            )
        out += leaves_of(value)
    return out
