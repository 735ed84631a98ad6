"""Pairs of sweeps: a function's forward half, which writes a frame, and its reverse half, which reads it.

One pair serves all calls of a function at the same types and activity, its own recursive calls included. The frame is
one block of the record: the address of it is all that a caller keeps.
"""

from __future__ import annotations

import inspect
import weakref
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from .._numba import compiler_lock
from ..emit.emit import Generated, emit
from ..emit.stubs import stub_dispatcher
from ..ir.nodes import Apply, Const, Function, Get, Named, Offset, Operand, Put, Region, Retain, ShadowLike, Slab, Stmt, Var, const
from ..ir.rewrite import Builder, free_vars
from ..ir.types import INT64, NONE, POINTER, Array, Tuple, Type, is_float, is_float_array, writable
from ..runtime.record import record_enter, record_leave
from ..transform.adjoints import Adjoints
from ..transform.forward import Forward, shadow_type
from ..transform.residuals import has_size, plan_residuals, recompute, size_of
from ..transform.reverse import Reverse, replaced
from ..transform.tree import Tree
from .body import Body, finished
from .callers import watch
from .calls import Callee
from .lookups import Record, recording, use
from .observer import SILENT, Observer
from .owned import memo_of

__all__ = ["Unit", "unit_of", "write_frame"]


@dataclass(eq=False)
class Unit:
    """The two halves of a callee at one activity. `inputs` and `outputs`: which leaf parameters and results carry derivatives.

    `sharing`: the pairs of parameters that may share memory.
    """

    callee: Callee
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    sharing: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        return str(self.callee.dispatcher.py_func.__name__)

    @cached_property
    def record(self) -> Record:
        """The look-ups that it was made with."""
        record = Record(self.name, partial(_forget, weakref.ref(self)))
        record.sources.add(self.callee.dispatcher.py_func)
        return record

    # ------------------------------------------------------------------------------------------ signatures

    @property
    def params(self) -> tuple[Var, ...]:
        return self.callee.function.region.params

    @property
    def results(self) -> tuple[Operand, ...]:
        return self.callee.function.region.yields or ()

    @cached_property
    def shadowed(self) -> tuple[int, ...]:
        """The parameters that come with a shadow."""
        return tuple(i for i, (p, w) in enumerate(zip(self.params, self.inputs, strict=True)) if w and is_float_array(p.type))

    @cached_property
    def scalars(self) -> tuple[int, ...]:
        """The parameters whose cotangents the reverse half returns."""
        return tuple(i for i, (p, w) in enumerate(zip(self.params, self.inputs, strict=True)) if w and is_float(p.type))

    @cached_property
    def shadows_out(self) -> tuple[int, ...]:
        """The results that come with a shadow."""
        return tuple(i for i, (y, w) in enumerate(zip(self.results, self.outputs, strict=True)) if w and is_float_array(y.type))

    @cached_property
    def cotangents(self) -> tuple[int, ...]:
        """The results whose cotangents the reverse half takes."""
        return tuple(i for i, (y, w) in enumerate(zip(self.results, self.outputs, strict=True)) if w and is_float(y.type))

    # ------------------------------------------------------------------------------------------ the halves

    @cached_property
    def halves(self) -> tuple[Function, Function]:
        """The forward and the reverse half as IR."""
        with compiler_lock, recording(self.record):
            return self.build()

    def build(self, observer: Observer = SILENT) -> tuple[Function, Function]:
        """Makes the halves, once more if they are made already."""
        return _Halves(self, observer).build()

    @cached_property
    def forward(self) -> Any:
        """The dispatcher of the forward half: (record, *parameters, *shadows) -> (*results, *shadows of results, frame)."""
        return self._dispatcher(0, 1 + len(self.params) + len(self.shadowed))

    @cached_property
    def reverse(self) -> Any:
        """The dispatcher of the reverse half: (frame, *cotangents) -> (*cotangents of scalar parameters,)."""
        return self._dispatcher(1, 1 + len(self.cotangents))

    def _dispatcher(self, half: int, n: int) -> Any:
        itself = weakref.ref(self)  # the stub is held by compiled code, which Numba holds until the dispatcher goes

        def generate(func_id: Any, args: tuple[Any, ...]) -> Generated:
            return emit(itself().halves[half], func_id)  # type: ignore[union-attr]

        parameters = [inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(n)]
        name = f"{self.name}_{('forward', 'reverse')[half]}"
        options = dict(self.callee.options)
        dispatcher = stub_dispatcher(name, parameters, generate, options, self.callee.dispatcher.py_func.__module__)
        dispatcher.unit = self
        watch(dispatcher, self.record)
        return dispatcher


def unit_of(callee: Callee, inputs: tuple[bool, ...], outputs: tuple[bool, ...], sharing: tuple[tuple[int, int], ...]) -> Unit:
    """The unit of a callee at an activity, each made once, until a rule that it was made with changes."""
    units = memo_of(callee.dispatcher, "units")
    key = (callee.types, inputs, outputs, sharing)
    unit: Unit = units.setdefault(key, Unit(callee, inputs, outputs, sharing))
    use(unit.record)
    return unit


def _forget(itself: weakref.ref[Unit]) -> None:
    """Lets the unit be made again. What holds it goes on using it."""
    unit = itself()
    if unit is not None:
        units = memo_of(unit.callee.dispatcher, "units")
        for key in [k for k, u in units.items() if u is unit]:
            del units[key]


def write_frame(tree: Tree, reverse: Region, forward: Forward, sweep: Reverse, frame: Var) -> tuple[list[Stmt], Region]:
    """The statements that make `frame` and write into it what a reverse half needs, and that half, reading from its frame."""
    own = tree.defined()
    needed = [v for v in free_vars(reverse) if v in own]
    plan = plan_residuals(needed, tree, set(), sweep.stable, sweep.fast)
    writing: list[Stmt] = []
    reading = Builder(forward.names)
    given: dict[Var, Operand] = {}
    words = 0
    for v in plan.recorded:
        place, back = forward.names.var(POINTER, "place"), reading.one(Offset(8 * words), [frame], POINTER, "place")
        writing.append(Stmt(Offset(8 * words), (frame,), (place,)))
        words += -(-size_of(v.type) // 8) if has_size(v.type) else 1
        if not has_size(v.type):  # its room is the back end's business, and the frame says where it is
            slab, memory = forward.names.var(POINTER, "slab"), ("slab", v)
            writing += [Stmt(Slab(v.type), (forward.record, const(1)), (slab,)), Stmt(Put(memory), (place, const(0), slab))]
            place, back = slab, reading.one(Get(memory), [back, const(0)], POINTER, "slab")
        if sweep.retained(v):
            writing.append(Stmt(Retain(), (forward.record, v)))
        writing.append(Stmt(Put(sweep.memory(v)), (place, const(0), v)))
        given[v] = reading.one(Get(sweep.memory(v)), [back, const(0)], v.type, v.name)
    env = recompute(plan, needed, given, reading)
    sweep.rules.repeated(plan, (v for v in env if v not in given))
    block = Stmt(Slab(INT64), (forward.record, const(max(words, 1))), (frame,))
    return [block, *writing], replaced(reverse, reading.body, env)


class _Halves:
    def __init__(self, unit: Unit, observer: Observer) -> None:
        self.unit = unit
        function, options = unit.callee.function, unit.callee.options
        self.body = Body(function, options, unit.name, unit.inputs, unit.outputs, True, unit.sharing, observer)
        self.names = self.body.names

    def build(self) -> tuple[Function, Function]:
        unit, body, names = self.unit, self.body, self.names
        loc = body.primal.loc
        record, frame = names.var(POINTER, "record"), names.var(POINTER, "frame")
        forward = Forward(names, body.activity, record)
        head, tail = Builder(names, loc), Builder(names, loc)
        head.emit(Apply(Named(record_enter)), [record], NONE)
        shadow_params: list[Var] = []
        for i, p in enumerate(body.region.params):
            if i in unit.shadowed:
                shadow_params.append(names.var(shadow_type(p.type), f"{p.name.split('.')[0]}_bar"))
                forward.give(p, shadow_params[-1])
            elif is_float_array(p.type) and body.activity(p):
                assert isinstance(p.type, Array)
                forward.give(p, head.one(ShadowLike(), [record, p], writable(p.type), "shadow"))
        tree = forward.region(body.region)
        body.rules.observer.paired(forward.pairs.values())  # type: ignore[arg-type]
        back = Builder(names, loc)
        ybars = [names.var(unit.results[i].type, "ybar") for i in unit.cotangents]
        adj = Adjoints()
        for i, ybar in zip(unit.cotangents, ybars, strict=True):
            adj.add((body.region.yields or ())[i], ybar, back)
        sweep = Reverse(forward, body.rules, restore=True, fast=body.fast)
        sweep.region(tree, adj, back)
        gradients = [adj.get(body.region.params[i]) or Const(body.region.params[i].type, 0.0) for i in unit.scalars]
        reverse_region = back.region((frame, *ybars), gradients)
        tree.params += [*shadow_params, *(r for s in head.body for r in s.results)]
        writing, reverse_region = write_frame(tree, reverse_region, forward, sweep, frame)
        outs: list[Operand] = []
        for i in unit.shadows_out:
            y = (body.region.yields or ())[i]
            if isinstance(y, Var) and forward.has_shadow(y) and y in forward.shadows:
                tail_shadow: Operand = forward.shadow(y)
            else:
                assert isinstance(y.type, Array)
                tail_shadow = tail.one(ShadowLike(), [record, y], writable(y.type), "shadow")
            outs.append(tail_shadow)
        tail.emit(Apply(Named(record_leave)), [record], NONE)
        frozen = tree.freeze()
        statements = (*head.body, *frozen.body, *writing, *tail.body)
        results: list[Operand] = [*(frozen.yields or ()), *outs, frame]
        forward_types: tuple[Type, ...] = (POINTER, *(p.type for p in body.region.params), *(p.type for p in shadow_params))
        forward_half = Function(
            f"{unit.name}_forward",
            tuple((f"a{i}", t) for i, t in enumerate(forward_types)),
            Region((record, *body.region.params, *shadow_params), statements, tuple(results) if frozen.yields is not None else None),
            Tuple(tuple(r.type for r in results)),
            loc,
        )
        reverse_half = Function(
            f"{unit.name}_reverse",
            tuple((f"a{i}", p.type) for i, p in enumerate(reverse_region.params)),
            reverse_region,
            Tuple(tuple(g.type for g in gradients)),
            loc,
        )
        groups = [(body.region.params[i], body.region.params[j]) for i, j in unit.sharing]
        shadows = dict(zip(unit.shadowed, shadow_params, strict=True))
        groups += [(shadows[i], shadows[j]) for i, j in unit.sharing if i in shadows and j in shadows]
        return finished(forward_half, body, groups), finished(reverse_half, body)
