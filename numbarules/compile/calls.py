"""Calls of functions that are not inlined: recursive ones, large ones, and those compiled under other options."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._numba import numba_type, types
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Call, Function, Operand, Stmt
from ..ir.rewrite import Builder
from ..ir.types import has_parameters, leaves, parameters
from .capture import bind, bound_type, capture, options_of, python_function

__all__ = ["Callee", "bound_call", "split_call"]


@dataclass(frozen=True)
class Callee:
    """A jitted function at the types of a call: what one compiled pair of sweeps is made for."""

    dispatcher: Any
    types: tuple[Any, ...]

    @cached_property
    def function(self) -> Function:
        """Its IR."""
        return self.captured()

    def captured(self) -> Function:
        """Its IR as it is now; who asks depends on it."""
        return capture(python_function(self.dispatcher), self.types, options_of(self.dispatcher))

    @property
    def options(self) -> dict[str, Any]:
        """The `njit` options that change what its code means."""
        return options_of(self.dispatcher)

    def pair(self, inputs: tuple[bool, ...], outputs: tuple[bool, ...], sharing: tuple[tuple[int, int], ...]) -> Any:
        """Its two sweeps for these active parameters and results; `sharing` are the pairs of parameters that may share memory."""
        from .units import unit_of  # units are made of bodies, and bodies ask for calls

        return unit_of(self, inputs, outputs, sharing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and self.dispatcher is other.dispatcher and self.types == other.types

    def __hash__(self) -> int:
        return hash((id(self.dispatcher), self.types))


def bound_call(stmt: Stmt, dispatcher: Any) -> tuple[Callee, list[tuple[int, ...]]] | None:
    """What a call of a jitted function calls, and for each parameter the positions of its arguments: several for `*args`, none for a
    default. None where the arguments do not fit."""
    assert isinstance(stmt.op, Apply)
    split = len(stmt.args) - len(stmt.op.keywords)
    try:
        args = bind(python_function(dispatcher), list(range(split)), {name: split + i for i, name in enumerate(stmt.op.keywords)})
    except TypeError:
        return None

    def type_of(place: Any) -> Any:
        return types.unliteral(numba_type(stmt.args[place].type))

    numba_types = tuple(bound_type(place, type_of) if given else types.Omitted(place) for _, place, given in args)
    places = [() if not given else place if isinstance(place, tuple) else (place,) for _, place, given in args]
    return Callee(dispatcher, numba_types), places


def split_call(stmt: Stmt, dispatcher: Any, b: Builder) -> Stmt | None:
    """The call as a `Call` of leaves, with the statements in `b` that take tuples apart and put them together; None where it cannot be."""
    bound = bound_call(stmt, dispatcher)
    if bound is None:
        return None
    callee, places = bound
    try:
        function = callee.function
    except UnsupportedError:
        return None
    leaves_in: list[Operand] = []
    for (_, t), own in zip(function.args, places, strict=True):
        found = itertools.chain.from_iterable(b.apart(stmt.args[i]) for i in own)
        leaves_in += [b.cast(x, leaf) for x, leaf in zip(found, parameters(t) if own else (), strict=True)]
    if function.region.yields is None:
        return None
    results = tuple(b.names.var(leaf, "result") for leaf in leaves(function.result))
    call = Stmt(Call(dispatcher.py_func.__name__, callee), tuple(leaves_in), results, (), stmt.loc)
    b.add(call)
    if stmt.results:
        b.emit_alias(stmt.result, b.together(function.result, (r for r in results if has_parameters(r.type)), "tuple"))
    return call
