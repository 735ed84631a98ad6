"""A function and its pullback as two compiled halves that share a record, which the caller holds in between."""

from __future__ import annotations

import inspect
import operator
import weakref
from functools import cached_property, partial
from typing import Any

from .._numba import compiler_lock, numba_type
from ..analysis.alias import aliases_of
from ..emit.emit import Generated, emit
from ..emit.stubs import stub_dispatcher
from ..ir.nodes import Apply, Function, Named, OpenRecord, Operand, Region, ShadowLike, Stmt, Var
from ..ir.rewrite import Builder
from ..ir.types import POINTER, Array, Scalar, Tuple, Type, is_float, is_float_array, leaves, writable
from ..primitives import assign
from ..runtime.record import record_from_handle, record_handle
from ..tangents import Part, has_tangent, has_tangents, incoming_type, parts
from ..transform.adjoints import Adjoints, zero
from ..transform.elementwise import expand_assign
from ..transform.forward import Forward
from ..transform.reverse import Reverse, replaced
from .body import Body, finished
from .callers import watch
from .capture import capture, options_of, python_function
from .isolation import isolate, owned
from .lookups import Record, recording, use
from .observer import SILENT, Observer
from .owned import memo_of
from .units import write_frame

__all__ = ["Halves", "halves_of"]

HANDLE = Scalar("uint64")


class Halves:
    """The halves of one function at one signature.

    forward(*arguments) -> (value, record, frame): the value shares no memory with anything that a sweep writes; the
    two others are integers. reverse(frame, *cotangents) -> one cotangent per leaf parameter that has a derivative; it
    leaves the record as it found it and can be called again.
    """

    def __init__(self, f: Any, args: tuple[Any, ...]) -> None:
        self.function = python_function(f)
        self.options = options_of(f)
        self.types = args
        self.implementation: Record | None = None  # of what Numba remembers for `vjp` in jitted code
        self.record = Record(f"{self.name}_vjp", partial(_forget, weakref.ref(f), args))
        with recording(self.record):
            self.primal = capture(self.function, args, self.options)

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def cotangent_types(self) -> list[Type]:
        """The types of the cotangents that the reverse half takes: those of the differentiable leaves of the value."""
        return [incoming_type(t) for t in leaves(self.primal.result) if has_tangent(t)]

    @cached_property
    def gradient_leaves(self) -> list[Type]:
        """The types of what the reverse half returns: the leaves of the arguments' tangents."""
        params = self.primal.region.params
        return [incoming_type(p.type) for p, part in zip(params, tangent_parts(self.primal), strict=True) if part != "absent"]

    @cached_property
    def _ir(self) -> tuple[Function, Function]:
        with compiler_lock, recording(self.record):
            return self.build()

    def build(self, observer: Observer = SILENT) -> tuple[Function, Function]:
        """Makes both halves as IR, once more if they are made already."""
        return _build(self, observer)

    @cached_property
    def forward(self) -> Any:
        parameters = list(inspect.signature(self.function).parameters.values())
        return self._dispatcher(0, parameters)

    @cached_property
    def reverse(self) -> Any:
        n = 1 + len(self.cotangent_types)
        return self._dispatcher(1, [inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(n)])

    @cached_property
    def compiled_reverse(self) -> Any:
        """The reverse half, compiled for its only signature."""
        self.reverse.compile((numba_type(HANDLE), *map(numba_type, self.cotangent_types)))
        return self.reverse

    def _dispatcher(self, half: int, parameters: list[inspect.Parameter]) -> Any:
        itself = weakref.ref(self)  # the stub is held by compiled code, which Numba holds until the dispatcher goes

        def generate(func_id: Any, args: tuple[Any, ...]) -> Generated:
            return emit(itself()._ir[half], func_id)  # type: ignore[union-attr]

        name = f"{self.name}_{('vjp', 'pullback')[half]}"
        dispatcher = stub_dispatcher(name, parameters, generate, self.options, self.function.__module__)
        dispatcher.halves = self
        watch(dispatcher, self.record)
        return dispatcher


def halves_of(f: Any, args: tuple[Any, ...]) -> Halves:
    """The halves of a function at Numba argument types, each made once."""
    made = memo_of(f, "halves")
    with compiler_lock:
        if args not in made:
            made[args] = Halves(f, args)
        halves: Halves = made[args]
    use(halves.record)
    return halves


def _forget(f: weakref.ref[Any], args: tuple[Any, ...]) -> None:
    """Lets the halves be made again. A pullback goes on using those that it has."""
    if f() is not None:
        memo_of(f(), "halves").pop(args, None)


def tangent_parts(primal: Function) -> list[Part]:
    """What each leaf parameter is in its argument's tangent; only the arguments with a derivative have one."""
    return [part if has_tangents(t) else "absent" for _, t in primal.args for part in parts(t)]


def _build(halves: Halves, observer: Observer) -> tuple[Function, Function]:
    primal = halves.primal
    carries = tuple(has_tangent(p.type) for p in primal.region.params)
    yields = primal.region.yields or ()
    seeds = tuple(has_tangent(y.type) for y in yields)
    body = Body(primal, halves.options, halves.name, carries, seeds, arrays_out=False, observer=observer)
    names = body.names
    head = Builder(names, primal.loc)
    record, frame = head.one(OpenRecord(kept=True), (), POINTER, "record"), names.var(POINTER, "frame")
    kept = _kept_fields(body, head)
    isolate(body, head, everything=True)
    forward = Forward(names, body.activity, record)
    shadows: dict[Var, Var] = {}
    for p in body.region.params:
        used = body.inside.get(p, p)
        if is_float_array(p.type) and body.activity(used):
            assert isinstance(p.type, Array)
            shadows[p] = head.one(ShadowLike(), [record, p], writable(p.type), "shadow")
            forward.give(used, shadows[p])
    tree = forward.region(body.region)
    observer.paired(forward.pairs.values())  # type: ignore[arg-type]
    results = tree.yields or []
    # the reverse half
    back = Builder(names, primal.loc)
    adj = Adjoints()
    ybars: list[Var] = []
    seeded: list[Operand] = []
    for y in body.region.yields or ():
        if not (has_tangent(y.type)):
            continue
        ybars.append(names.var(incoming_type(y.type), "ybar"))
        if is_float(y.type):
            adj.add(y, ybars[-1], back)
        elif isinstance(y, Var) and forward.has_shadow(y):
            seeded.append(forward.shadow(y))
            add = Stmt(Apply(Named(operator.iadd)), (seeded[-1], ybars[-1]), (), (), primal.loc)
            expand_assign(add, ybars[-1], back)
    sweep = Reverse(forward, body.rules, restore=True, fast=body.fast)
    sweep.region(tree, adj, back)
    gradients: list[Operand] = []
    for p in body.region.params:
        if is_float(p.type):
            gradients.append(adj.get(p) or zero(p.type))
        elif is_float_array(p.type):
            gradients.append(_gradient(body.inside.get(p, p), shadows.get(p), back))
        elif p in kept:
            gradients.append(owned(kept[p] or body.inside.get(p, p), back))
    for shadow in [*shadows.values(), *seeded]:
        assert isinstance(shadow.type, Array)
        back.emit(Apply(Named(assign)), [shadow, zero(shadow.type.dtype)])
    handle_in = names.var(HANDLE, "handle")
    reverse_region = back.region((), gradients)
    tree.params += [r for s in head.body for r in s.results]
    writing, reverse_region = write_frame(tree, reverse_region, forward, sweep, frame)
    opening = Builder(names, primal.loc)
    opened = opening.one(Apply(Named(record_from_handle)), [handle_in], POINTER, "frame")
    reverse_region = replaced(reverse_region, opening.body, {frame: opened})
    reverse_region = Region((handle_in, *ybars), reverse_region.body, reverse_region.yields)
    # the forward half
    tail = Builder(names, primal.loc)
    values = [owned(y, tail) for y in results]
    handles = [tail.one(Apply(Named(record_handle)), [v], HANDLE, "handle") for v in (record, frame)]
    frozen = tree.freeze()
    statements = (*head.body, *frozen.body, *writing, *tail.body)
    whole = Tuple((_owned(primal.result), HANDLE, HANDLE))
    params = body.region.params
    ended = frozen.yields is None
    forward_region = Region(params, statements, None if ended else (*values, *handles))
    forward_half = Function(f"{halves.name}_vjp", primal.args, forward_region, whole, primal.loc, primal.flags)
    reverse_args = tuple((f"a{i}", p.type) for i, p in enumerate(reverse_region.params))
    result = Tuple(tuple(g.type for g in gradients))
    reverse_half = Function(f"{halves.name}_pullback", reverse_args, reverse_region, result, primal.loc, primal.flags)
    return finished(forward_half, body), finished(reverse_half, body)


def _kept_fields(body: Body, b: Builder) -> dict[Var, Operand | None]:
    """The leaves that are part of a tangent as they are: a copy of those that the function writes into, None for the others."""
    aliases = aliases_of(body.region)
    params = [p for p, part in zip(body.region.params, tangent_parts(body.primal), strict=True) if part == "kept"]
    return {p: owned(p, b) if isinstance(p.type, Array) and aliases.written(p) else None for p in params}


def _gradient(p: Var, shadow: Var | None, b: Builder) -> Operand:
    """A gradient of its own memory: a copy of the shadow, or zeros."""
    if shadow is None:
        return b.one(ShadowLike(owned=True), [p], incoming_type(p.type), "gradient")
    return owned(shadow, b)


def _owned(t: Type) -> Type:
    if isinstance(t, Tuple):
        return Tuple(tuple(map(_owned, t.items)), t.cls)
    return incoming_type(t)
