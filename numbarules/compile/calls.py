"""Calls of functions that are not inlined: recursive ones, large ones, and those compiled under other options."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._numba import numba_type, types
from ..analysis.alias import aliases_of, holds_memory
from ..analysis.effects import effects
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Call, Const, Function, Item, MakeTuple, Operand, Stmt, Var, walk
from ..ir.rewrite import Builder
from ..ir.types import NONE, NoneType, Opaque, Tuple, Type
from .capture import bind, bound_type, capture, options_of, python_function

__all__ = ["Callee", "split_call"]


@dataclass(frozen=True)
class Callee:
    """A jitted function at the types of a call: what one compiled pair of sweeps is made for."""

    dispatcher: Any
    types: tuple[Any, ...]

    @cached_property
    def function(self) -> Function:
        """Its IR."""
        return capture(python_function(self.dispatcher), self.types, options_of(self.dispatcher))

    @property
    def options(self) -> dict[str, Any]:
        """The `njit` options that change what its code means."""
        return options_of(self.dispatcher)

    def pair(self, inputs: tuple[bool, ...], outputs: tuple[bool, ...], sharing: tuple[tuple[int, int], ...]) -> Any:
        """Its two sweeps for these active parameters and results; `sharing` are the pairs of parameters that may share memory."""
        from .units import unit_of  # units are made of bodies, and bodies ask for calls

        return unit_of(self, inputs, outputs, sharing)

    @cached_property
    def writes(self) -> tuple[int, ...]:
        """The positions of the leaf parameters that it may write into."""
        aliases = aliases_of(self.function.region)
        deep = any(effects(s).opaque for s in walk(self.function.region))
        return tuple(i for i, p in enumerate(self.function.region.params) if holds_memory(p.type) and (deep or aliases.written(p)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.dispatcher is other.dispatcher and self.types == other.types

    def __hash__(self) -> int:
        return hash((id(self.dispatcher), self.types))


def split_call(stmt: Stmt, dispatcher: Any, b: Builder) -> Stmt | None:
    """The call as a `Call` of leaves, with the statements in `b` that take tuples apart and put them together; None where it cannot be."""
    assert isinstance(stmt.op, Apply)
    split = len(stmt.args) - len(stmt.op.keywords)
    try:
        args = bind(python_function(dispatcher), list(stmt.args[:split]), dict(zip(stmt.op.keywords, stmt.args[split:], strict=True)))
    except TypeError:
        return None

    def type_of(value: Operand) -> Any:
        return types.unliteral(numba_type(value.type))

    numba_types = tuple(bound_type(v, type_of) if given else types.Omitted(v) for _, v, given in args)
    callee = Callee(dispatcher, numba_types)
    try:
        function = callee.function
    except UnsupportedError:
        return None
    leaves: list[Operand] = []
    for (_, t), (_, value, given) in zip(function.args, args, strict=True):
        if isinstance(value, tuple) and given:
            assert isinstance(t, Tuple)
            for operand, item in zip(value, t.items, strict=True):
                _spread(operand, item, leaves, b)
        elif given:
            _spread(value, t, leaves, b)
    if function.region.yields is None:
        return None
    results: list[Var] = []
    whole = _gather(function.result, results, b)
    call = Stmt(Call(dispatcher.py_func.__name__, callee, callee.writes), tuple(leaves), tuple(results), (), stmt.loc)
    b.add(call)
    b.body.extend(whole[1])
    if stmt.results:
        b.emit_alias(stmt.result, whole[0])
    return call


def _spread(operand: Operand, t: Type, leaves: list[Operand], b: Builder) -> None:
    if isinstance(t, Tuple):
        for i, item in enumerate(t.items):
            if not (isinstance(item, NoneType) or (isinstance(item, Opaque) and item.constant)):
                _spread(b.one(Item(i), [operand], item, "item"), item, leaves, b)
    elif not (isinstance(t, NoneType) or (isinstance(t, Opaque) and t.constant)):
        leaves.append(operand if operand.type == t else b.cast(operand, t))


def _gather(t: Type, results: list[Var], b: Builder) -> tuple[Operand, list[Stmt]]:
    """A value of type `t` made of new leaf results, and the statements that make it."""
    if isinstance(t, NoneType):
        results.append(b.names.var(NONE, "none"))
        return Const(NONE, None), []
    if isinstance(t, Tuple):
        parts = [_gather(i, results, b) for i in t.items]
        var = b.names.var(t, "tuple")
        made = Stmt(MakeTuple(), tuple(p for p, _ in parts), (var,))
        return var, [*itertools.chain.from_iterable(s for _, s in parts), made]
    var = b.names.var(t, "result")
    results.append(var)
    return var, []
