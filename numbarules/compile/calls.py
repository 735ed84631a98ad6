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
from ..ir.nodes import Apply, Call, Function, Operand, Stmt, walk
from ..ir.rewrite import Builder
from ..ir.types import has_parameters, leaves, parameters
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
    leaves_in: list[Operand] = []
    for (_, t), (_, value, given) in zip(function.args, args, strict=True):
        if given:
            operands = value if isinstance(value, tuple) else (value,)  # the extra positional arguments, or one argument
            found = itertools.chain.from_iterable(map(b.apart, operands))
            leaves_in += [b.cast(x, leaf) for x, leaf in zip(found, parameters(t), strict=True)]
    if function.region.yields is None:
        return None
    results = tuple(b.names.var(leaf, "result") for leaf in leaves(function.result))
    call = Stmt(Call(dispatcher.py_func.__name__, callee, callee.writes), tuple(leaves_in), results, (), stmt.loc)
    b.add(call)
    if stmt.results:
        b.emit_alias(stmt.result, b.together(function.result, (r for r in results if has_parameters(r.type)), "tuple"))
    return call
