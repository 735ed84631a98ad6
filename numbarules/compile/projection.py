"""The projection of dense cotangents onto the tangents of structured values.

A structured value x stands for the dense array D(x). A rule that treats it as such an array returns a dense cotangent G; what belongs to x
itself is the gradient of <D(x), G> by x: the adjoint of the derivative of `to_dense`, applied to G. Nothing is written by hand for a type:
its own `to_dense` is differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from .._numba import NumbaError, numba_type, our_type, typed_ir
from ..analysis.effects import Effects
from ..ir.nodes import Apply, Function, Named, Operand, Var
from ..ir.rewrite import Builder, Names
from ..ir.types import Array, Tuple, Type, is_float_array, parameters
from ..tangents import has_tangent, tangent_type

__all__ = ["Dense", "DenseForm", "Missing", "Target", "dense_form", "dense_type", "wrap"]


@dataclass(frozen=True, slots=True)
class Dense:
    """The target of a dense cotangent: the struct argument that it belongs to."""

    argument: int


@dataclass(frozen=True, slots=True)
class Missing:
    """The target of a cotangent that a rule says it does not give: the argument, and its leaves."""

    argument: int
    start: int
    stop: int


Target = int | Dense | None
"""What a yielded cotangent belongs to: a leaf of the arguments, a struct among them, or nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseForm:
    """A struct type as an array: its type; `zeros(x)`, an array of the shape of x; `project(x, G)`, the tangent of a cotangent G."""

    type: Array
    zeros: Any
    project: Any


def _to_dense(x: Any) -> Any:
    return x.to_dense()


def _pairing(x: Any, dense: Any) -> Any:
    return np.sum(x.to_dense() * dense)


def _shape(x: Any) -> Any:
    return x.shape


_known: dict[Any, DenseForm] = {}
"""The dense forms that were found; a type that has none may get one later."""


def dense_form(struct_type: Any) -> DenseForm | None:
    """The dense form of a Numba struct type; None where it has no `shape`, or no method `to_dense` that returns an array of floats."""
    if struct_type not in _known and (made := _dense_form(struct_type)) is not None:
        _known[struct_type] = made
    return _known.get(struct_type)


def _dense_form(struct_type: Any) -> DenseForm | None:
    from .dispatchers import gradient_dispatcher  # gradients are made of bodies, and bodies ask for rules

    try:
        t = our_type(typed_ir(_to_dense, (struct_type,), {}).return_type)
        typed_ir(_shape, (struct_type,), {})
    except NumbaError:
        return None
    if not isinstance(t, Array) or not is_float_array(t):
        return None
    dtype = np.dtype(t.dtype.kind)

    def zeros(x):  # type: ignore[no-untyped-def]
        return np.zeros(x.shape, dtype)

    made, project = njit(zeros), gradient_dispatcher(_pairing, 0, "grad")
    for function in (made, project):
        function.__numbarules_effects__ = Effects(reads=True, may_raise=True)
    return DenseForm(Array(t.dtype, t.ndim, "C"), made, project)


def dense_type(t: Type) -> Array | None:
    """The type of the array that a struct stands for, None for what stands for none."""
    form = dense_form(numba_type(t)) if isinstance(t, Tuple) and t.struct else None
    return None if form is None else form.type


def wrap(
    function: Function,
    args: Sequence[Type],
    structs: Sequence[int],
    kept: Sequence[Var],
    shadows: Mapping[int, Var],
    targets: Sequence[Target],
) -> tuple[Function, tuple[Target, ...]]:
    """A pullback around its struct arguments: their leaves, and those in `kept`, become its last parameters, and it returns their tangents.

    `kept`: parameters that are moved there. `shadows`: by argument, the parameter that is its dense shadow; it becomes an array made here.
    """
    b = Builder(Names(2_000_000), function.loc)
    leaves = {i: [b.names.var(t, "x") for t in parameters(args[i])] for i in structs}
    values: dict[int, Operand] = {}

    def value(i: int) -> Operand:
        if i not in values:
            values[i] = b.together(args[i], iter(leaves[i]), "x")
        return values[i]

    for i, shadow in shadows.items():
        form = _form(args[i])
        b.emit_alias(shadow, b.one(Apply(Named(form.zeros)), [value(i)], form.type, "dense"))
    b.body.extend(function.region.body)
    yields = function.region.yields
    out: list[tuple[Operand, Target]] = []
    bars: list[tuple[int, Operand]] = list(shadows.items())
    for y, target in zip(yields or (), targets, strict=True):
        if isinstance(target, Dense):
            bars.append((target.argument, y))
        else:
            out.append((y, target))
    for i, bar in bars if yields is not None else ():
        tangent = b.one(Apply(Named(_form(args[i]).project)), [value(i), bar], tangent_type(args[i]), "tangent")
        first = sum(len(parameters(a)) for a in args[:i])
        out += [(leaf, first + k) for k, leaf in enumerate(b.apart(tangent)) if has_tangent(leaf.type)]
    moved = {*kept, *shadows.values()}
    params = [*(p for p in function.region.params if p not in moved), *(p for i in structs for p in leaves[i]), *kept]
    region = b.region(params, None if yields is None else [y for y, _ in out])
    return replace(function, region=region), tuple(t for _, t in out)


def _form(t: Type) -> DenseForm:
    form = dense_form(numba_type(t))
    assert form is not None
    return form
