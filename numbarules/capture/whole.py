"""A function with a construct that the IR has no form for, as a call of itself."""

from __future__ import annotations

from collections.abc import Iterator

from numba import njit

from .._numba import TypedIR, our_type, types
from ..ir.nodes import Apply, Function, Item, Loc, MakeTuple, Named, Operand, Var
from ..ir.rewrite import Builder
from ..ir.types import Tuple, Type
from ..primitives import Whole
from .frame import Frame
from .operands import constant_type

__all__ = ["whole"]


def whole(typed: TypedIR, options: tuple[tuple[str, object], ...], construct: str, line: int, instead: str) -> Function:
    """A function that only calls the function it stands for; `construct`, at `line`, is why, and `instead` what to write."""
    frame, ir = Frame(typed), typed.ir
    frame.at(line)
    args = tuple((a, frame.type_of(f"arg.{a}")) for a in ir.arg_names)
    if any(isinstance(typed.typemap[f"arg.{a}"], types.Omitted) for a in ir.arg_names):
        frame.refuse(f"{construct} in a function that is called with default arguments is not supported", "an omitted argument")
    params: list[Var] = []
    given = [_parameter(frame.b, t, a, params) for a, t in args]
    result = our_type(typed.return_type)
    callee = Whole(njit(**dict(options))(typed.function), construct, instead, ir.loc.filename, line)
    value = frame.b.one(Apply(Named(callee)), given, result, "value")
    yields = list(_leaves(frame.b, value))
    return Function(ir.func_id.func_name, args, frame.b.region(params, yields), result, Loc(ir.loc.filename, ir.loc.line), options)


def _parameter(b: Builder, t: Type, hint: str, params: list[Var]) -> Operand:
    """An argument, put together from its leaves, which are added to `params`."""
    if isinstance(t, Tuple):
        return b.one(MakeTuple(), [_parameter(b, x, hint, params) for x in t.items], t, hint)
    known = constant_type(t)
    if known is not None:
        return known
    params.append(b.names.var(t, hint))
    return params[-1]


def _leaves(b: Builder, value: Operand) -> Iterator[Operand]:
    if not isinstance(value.type, Tuple):
        yield value
        return
    for i, t in enumerate(value.type.items):
        yield from _leaves(b, b.one(Item(i), [value], t, "item"))
