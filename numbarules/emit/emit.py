"""Our IR as Numba IR, with the type of every variable pinned.

Pinning makes Numba's own type inference a check of ours: it can refuse what we wrote, and never choose otherwise.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numba import INPLACE, build_definitions, nir, numba_type, scalar_value, types
from ..analysis.effects import hashable
from ..ir.nodes import (
    UNDEFINED,
    AddTo,
    Alloc,
    Apply,
    Attribute,
    Cast,
    Const,
    Extend,
    For,
    Function,
    Get,
    If,
    Invoke,
    Item,
    Load,
    MakeTuple,
    Method,
    Named,
    Offset,
    OpenRecord,
    Operand,
    PrivateCopy,
    Put,
    Raise,
    Raw,
    Region,
    Retain,
    ShadowLike,
    Shape,
    Slab,
    Snapshot,
    Stmt,
    Store,
    Var,
    View,
    While,
    const,
)
from ..ir.types import BOOL, INT64, NONE, Array, NoneType, Opaque, Scalar, Tuple, Type, has_parameters
from ..primitives import Empty, Failure, GlobalArray, Whole, accumulate, assign, call_value, ieee_divide
from ..runtime.arrays import accumulate as add_in_any_order
from ..runtime.arrays import (
    element_add,
    element_get,
    element_set,
    empty_container,
    fill,
    gradient_like,
    private_copy,
    retype,
    shadow_like,
    snapshot,
)
from ..runtime.arrays import ieee_divide as divide
from ..runtime.lowering import RecordLower
from ..runtime.record import record_extend, record_get, record_offset, record_open, record_put, record_retain, record_slab
from ..runtime.scopes import element_add_in, element_get_in, element_set_in, record_get_in, record_put_in, row_start
from .scopes import Scopes

__all__ = ["Generated", "emit"]

_BINARY_NAMES = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne is_ is_not"
_BINARY = {getattr(operator, n) for n in _BINARY_NAMES.split()}
_UNARY = {operator.neg, operator.pos, operator.invert, operator.not_}


_INTRINSIC: dict[object, Any] = {ieee_divide: divide, accumulate: add_in_any_order}

_BY_VALUE = (types.LiteralStrKeyDict, types.LiteralList)
"""Containers of values of different types: the type has the values themselves, which the emitted constants need not repeat."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Numba IR, the pinned types by name, and compiler flags to set."""

    ir: Any
    locals: dict[str, Any]
    flags: tuple[tuple[str, Any], ...] = ()


def emit(function: Function, func_id: Any, flags: tuple[tuple[str, Any], ...] = ()) -> Generated:
    """Numba IR of `function` under the identity `func_id` of its stub."""
    return _Emitter(function, func_id).run(flags)


class _Emitter:
    def __init__(self, function: Function, func_id: Any) -> None:
        self.function = function
        self.func_id = func_id
        where = function.loc
        self.loc = nir.Loc(where.filename if where else "<generated>", where.line if where else 1)
        self.scope = nir.Scope(parent=None, loc=self.loc)
        self.blocks: dict[int, Any] = {}
        self.locals: dict[str, Any] = {}
        self.names: dict[Var, Any] = {}
        self.temporaries = 0
        self.labels = 0
        self.block = self.new_block()
        self.scopes = Scopes(function)

    def run(self, flags: tuple[tuple[str, Any], ...]) -> Generated:
        self.arguments()
        if self.region(self.function.region):
            self.leave()
        names = tuple(name for name, _ in self.function.args)
        ir = nir.FunctionIR(self.blocks, False, self.func_id, self.loc, build_definitions(self.blocks), len(names), names)
        return Generated(ir, self.locals, flags)

    # ------------------------------------------------------------------------------------------ pieces

    def new_block(self) -> Any:
        label = self.labels
        self.labels += 1  # never used twice, whatever was deleted meanwhile
        self.blocks[label] = nir.Block(self.scope, self.loc)
        return self.blocks[label]

    def label(self, block: Any) -> int:
        return next(k for k, b in self.blocks.items() if b is block)

    def jump(self, target: Any) -> None:
        self.block.append(nir.Jump(self.label(target), self.loc))

    def temporary(self, value: Any, hint: str = "t", pin: Type | None = None) -> Any:
        """A new variable that holds a Numba IR value."""
        self.temporaries += 1
        var = self.scope.define(f"${hint}.{self.temporaries}", self.loc)
        if pin is not None:
            self.locals[var.name] = numba_type(pin)
        self.block.append(nir.Assign(value, var, self.loc))
        return var

    def var(self, v: Var) -> Any:
        """The Numba variable of `v`, pinned to its type."""
        found = self.names.get(v)
        if found is None:
            found = self.names[v] = self.scope.define(v.name.replace("#", "_"), self.loc)
            self.pin(found, v.type)
        return found

    def pin(self, var: Any, t: Type) -> None:
        if not (isinstance(t, Opaque) and (t.payload is None or isinstance(t.payload, _BY_VALUE))):
            self.locals[var.name] = numba_type(t)

    def set(self, v: Var, value: Any) -> None:
        self.block.append(nir.Assign(value, self.var(v), self.loc))

    def use(self, operand: Operand) -> Any:
        """The Numba variable that holds an operand."""
        if isinstance(operand, Var):
            return self.var(operand)
        return self.constant(operand)

    def constant(self, c: Const) -> Any:
        t, value = c.type, c.value
        if value is UNDEFINED:
            value = scalar_value(t, 0) if isinstance(t, Scalar) else None
        if isinstance(t, NoneType):
            return self.temporary(nir.Const(None, self.loc), "none")
        if isinstance(t, Scalar):
            if t in (INT64, BOOL) or t.kind in ("float64", "complex128"):
                kind = {"int64": int, "bool": bool, "float64": float, "complex128": complex}[t.kind]
                return self.temporary(nir.Const(kind(value), self.loc), "const")
            return self.temporary(nir.Global("const", scalar_value(t, value), self.loc), "const")
        if isinstance(value, str):
            return self.temporary(nir.Const(value, self.loc), "const")
        return self.temporary(nir.Global(getattr(value, "__name__", "object"), value, self.loc), "global")

    def call(self, obj: Any, *args: Any, kws: tuple[tuple[str, Any], ...] = ()) -> Any:
        """A call expression of a Python object on Numba variables."""
        func = self.temporary(nir.Global(getattr(obj, "__name__", "function"), obj, self.loc), "fn")
        return nir.Expr.call(func, list(args), kws, self.loc)

    def together(self, t: Tuple, items: list[Any]) -> Any:
        """The expression of a tuple or struct of these items."""
        if t.cls is None:
            return nir.Expr.build_tuple(items, self.loc)
        return self.call(t.cls.make if t.struct else t.cls, *items)

    def item(self, source: Any, t: Tuple, i: int) -> Any:
        """The expression of one item of a tuple or struct."""
        if t.struct:
            return nir.Expr.getattr(source, t.fields[i], self.loc)
        return nir.Expr.static_getitem(source, i, None, self.loc)

    def tuple_of(self, items: list[Any]) -> Any:
        return self.temporary(nir.Expr.build_tuple(items, self.loc), "tuple")

    # ------------------------------------------------------------------------------------------ frame

    def arguments(self) -> None:
        params = iter(self.function.region.params)

        def spread(source: Any, t: Type) -> None:
            if isinstance(t, Tuple):
                for i, item in enumerate(t.items):
                    if has_parameters(item):
                        spread(self.temporary(self.item(source, t, i), "item"), item)
            elif has_parameters(t):
                param = next(params)
                self.names[param] = source

        for i, (name, t) in enumerate(self.function.args):
            source = self.scope.define(f"{name}", self.loc)
            self.block.append(nir.Assign(nir.Arg(name, i, self.loc), source, self.loc))
            spread(source, t)

    def leave(self) -> None:
        leaves = iter(self.function.region.yields or ())

        def build(t: Type) -> Any:
            if isinstance(t, Tuple):
                return self.temporary(self.together(t, [build(i) for i in t.items]), "tuple")
            if isinstance(t, NoneType):
                next(leaves, None)
                return self.constant(Const(NONE, None))
            return self.use(next(leaves))

        value = self.temporary(nir.Expr.cast(build(self.function.result), self.loc), "return", self.function.result)
        self.block.append(nir.Return(value, self.loc))

    # ------------------------------------------------------------------------------------------ statements

    def region(self, region: Region) -> bool:
        """Emits the statements; False where the end is never reached."""
        for stmt in region.body:
            if stmt.loc is not None:
                self.loc = nir.Loc(stmt.loc.filename, stmt.loc.line)
            if not self.statement(stmt):
                return False
        return region.yields is not None

    def statement(self, stmt: Stmt) -> bool:
        match stmt.op:
            case If():
                return self.emit_if(stmt)
            case For():
                return self.emit_for(stmt)
            case While():
                return self.emit_while(stmt)
            case Raise(Failure(kind, text)):
                self.block.append(nir.StaticRaise(kind, (text,), self.loc))
                return False
            case Raise(payload, names):
                self.block.append(self.rename(payload, names, stmt.args))
                return False
            case Raw(payload, names):
                renamed = self.rename(payload, names, stmt.args)
                if stmt.results:
                    self.set(stmt.result, renamed)
                else:
                    self.block.append(renamed)
            case Invoke(_, callee):
                packed = self.temporary(self.call(callee, *map(self.use, stmt.args)), "packed")
                for i, result in enumerate(stmt.results):
                    self.set(result, nir.Expr.static_getitem(packed, i, None, self.loc))
            case Put():
                access = self.scopes.access(stmt)
                self.temporary(self.call(record_put_in(access) if access else record_put, *map(self.use, stmt.args)), "unused")
            case Retain():
                self.temporary(self.call(record_retain, *map(self.use, stmt.args)), "unused")
            case OpenRecord(kept):
                self.names[stmt.result] = self.scope.define(RecordLower.kept_variable if kept else RecordLower.record_variable, self.loc)
                self.pin(self.names[stmt.result], stmt.result.type)
                self.set(stmt.result, self.call(record_open))
            case (Store(wrap) | AddTo(wrap)) as op if (access := self.scopes.access(stmt, wrap)) is not None:
                make = element_set_in if isinstance(op, Store) else element_add_in
                self.temporary(self.call(make(access), *map(self.use, stmt.args)), "unused")
            case Store(wrap=False):
                self.temporary(self.call(element_set, *map(self.use, stmt.args)), "unused")
            case AddTo(wrap=False):
                self.temporary(self.call(element_add, *map(self.use, stmt.args)), "unused")
            case Store():
                self.store(stmt)
            case AddTo():
                self.add_to(stmt)
            case Apply(Named(obj)) if obj is operator.setitem:
                self.block.append(nir.SetItem(*map(self.use, stmt.args), self.loc))
            case Apply(Named(obj)) if obj is assign and isinstance(stmt.args[1].type, Scalar):
                self.temporary(self.call(fill, *map(self.use, stmt.args)), "unused")
            case Apply(Named(obj)) if obj is assign:
                everything = self.temporary(nir.Global("Ellipsis", Ellipsis, self.loc), "all")
                self.block.append(nir.SetItem(self.use(stmt.args[0]), everything, self.use(stmt.args[1]), self.loc))
            case _:
                value = self.expression(stmt)
                if stmt.results:
                    self.set(stmt.result, value)
                else:
                    self.temporary(value, "unused")
        return True

    def expression(self, stmt: Stmt) -> Any:
        """The Numba expression of an operation with one result."""
        args = stmt.args
        match stmt.op:
            case Apply(callee, keywords):
                return self.apply(callee, args, keywords)
            case Cast():
                return self.use(args[0])
            case ShadowLike(owned):
                return self.call(gradient_like, self.use(args[0])) if owned else self.call(shadow_like, *map(self.use, args))
            case PrivateCopy():
                return self.call(private_copy, self.use(args[0]))
            case Snapshot():
                return self.call(snapshot, *map(self.use, args))
            case Slab(of):
                return self.call(record_slab(numba_type(of)), *map(self.use, args))
            case Extend(of):
                return self.call(record_extend(numba_type(of)), *map(self.use, args))
            case Offset(distance):
                return self.call(record_offset, self.use(args[0]), self.constant(Const(INT64, distance)))
            case Get():
                access = self.scopes.access(stmt)
                kind = numba_type(stmt.result.type)
                return self.call(record_get_in(kind, access) if access else record_get(kind), *map(self.use, args))
            case Load(wrap) if (access := self.scopes.access(stmt, wrap)) is not None:
                return self.call(element_get_in(access), *map(self.use, args))
            case View("cast"):
                return self.call(retype(numba_type(stmt.result.type)), self.use(args[0]))
            case Load(wrap=False):
                return self.call(element_get, *map(self.use, args))
            case Load():
                return nir.Expr.getitem(self.use(args[0]), self.index(args[1:]), self.loc)
            case View(kind, spec):
                return self.view(kind, spec, args)
            case Alloc(fill):
                return self.alloc(fill, stmt)
            case Shape(axis):
                shape = self.temporary(nir.Expr.getattr(self.use(args[0]), "shape", self.loc), "shape")
                return nir.Expr.static_getitem(shape, axis, None, self.loc)
            case MakeTuple():
                t = stmt.result.type
                assert isinstance(t, Tuple)
                return self.together(t, [self.use(a) for a in args])
            case Item(index):
                assert isinstance(args[0].type, Tuple)
                return self.item(self.use(args[0]), args[0].type, index)
        raise AssertionError(stmt)

    def apply(self, callee: Named | Method | Attribute, args: tuple[Operand, ...], keywords: tuple[str, ...]) -> Any:
        split = len(args) - len(keywords)
        if isinstance(callee, Named):
            obj = callee.obj
            if obj in _BINARY_OR_INPLACE(obj):
                lhs, rhs = map(self.use, args)
                if obj in INPLACE:
                    return nir.Expr.inplace_binop(obj, INPLACE[obj], lhs, rhs, self.loc)
                return nir.Expr.binop(obj, lhs, rhs, self.loc)
            if hashable(obj) and obj in _UNARY:
                return nir.Expr.unary(obj, self.use(args[0]), self.loc)
            if obj is operator.getitem:
                return nir.Expr.getitem(self.use(args[0]), self.use(args[1]), self.loc)
            if isinstance(obj, GlobalArray):
                return nir.Global("array", obj.array, self.loc)
            if isinstance(obj, Empty):
                obj = empty_container(obj.type)
            if isinstance(obj, Whole):
                obj = obj.function
            obj = _INTRINSIC.get(obj, obj) if hashable(obj) else obj
            values = [self.use(a) for a in args]
            if obj is call_value:
                return nir.Expr.call(values[0], values[1:split], tuple(zip(keywords, values[split:], strict=True)), self.loc)
            return self.call(obj, *values[:split], kws=tuple(zip(keywords, values[split:], strict=True)))
        values = [self.use(a) for a in args]
        if isinstance(callee, Attribute):
            return nir.Expr.getattr(values[0], callee.name, self.loc)
        method = self.temporary(nir.Expr.getattr(values[0], callee.name, self.loc), "method")
        return nir.Expr.call(method, values[1:split], tuple(zip(keywords, values[split:], strict=True)), self.loc)

    def rename(self, payload: Any, names: tuple[str, ...], args: tuple[Operand, ...]) -> Any:
        """A copy of Numba's own expression or statement with our variables."""
        env = {name: self.use(arg) for name, arg in zip(names, args, strict=True)}

        def fix(value: Any) -> Any:
            if isinstance(value, nir.Var):
                return env[value.name]
            if isinstance(value, list | tuple):
                return type(value)(fix(v) for v in value)
            if isinstance(value, nir.Expr):
                return rename_expr(value)
            return value

        def rename_expr(expr: Any) -> Any:
            new = copy.copy(expr)
            new._kws = {k: fix(v) for k, v in expr._kws.items()}
            return new

        if isinstance(payload, nir.Expr):
            return rename_expr(payload)
        new = copy.copy(payload)
        for field, value in vars(payload).items():
            setattr(new, field, fix(value))
        return new

    # ------------------------------------------------------------------------------------------ memory

    def index(self, indices: tuple[Operand, ...]) -> Any:
        values = [self.use(i) for i in indices]
        return values[0] if len(values) == 1 else self.tuple_of(values)

    def store(self, stmt: Stmt) -> None:
        array, *indices, value = stmt.args
        self.block.append(nir.SetItem(self.use(array), self.index(tuple(indices)), self.use(value), self.loc))

    def add_to(self, stmt: Stmt) -> None:
        array, *indices, value = stmt.args
        where, index = self.use(array), self.index(tuple(indices))
        old = self.temporary(nir.Expr.getitem(where, index, self.loc), "old")
        new = self.temporary(nir.Expr.binop(operator.add, old, self.use(value), self.loc), "new")
        self.block.append(nir.SetItem(where, index, new, self.loc))

    def view(self, kind: str, spec: str, args: tuple[Operand, ...]) -> Any:
        source = self.use(args[0])
        if kind == "transpose":
            return nir.Expr.getattr(source, "T", self.loc)
        if kind == "permute":
            method = self.temporary(nir.Expr.getattr(source, "transpose", self.loc), "method")
            return nir.Expr.call(method, [self.tuple_of([self.constant(const(int(axis))) for axis in spec])], (), self.loc)
        if kind == "reshape":
            method = self.temporary(nir.Expr.getattr(source, "reshape", self.loc), "method")
            return nir.Expr.call(method, [self.tuple_of([self.use(a) for a in args[1:]])], (), self.loc)
        rest = iter(args[1:])
        parts: list[Any] = []
        for letter in spec.rstrip("f"):
            if letter == "i":
                parts.append(self.use(next(rest)))
            elif letter == "n":
                parts.append(self.constant(Const(NONE, None)))
            elif letter == "s":
                given = [next(rest) for _ in range(3)]
                if isinstance(given[2], Const) and given[2].value is None:
                    given.pop()
                parts.append(self.temporary(self.call(slice, *map(self.use, given)), "slice"))
            elif not parts or parts[-1] is not None:
                parts.append(None)
        values = [self.temporary(nir.Global("Ellipsis", Ellipsis, self.loc), "all") if p is None else p for p in parts]
        if not values:
            values = [self.temporary(nir.Global("Ellipsis", Ellipsis, self.loc), "all")]
        bare = len(values) == 1 and any(p is not None for p in parts)  # Numba has no `a[...]`, only `a[(...,)]`
        return nir.Expr.getitem(source, values[0] if bare else self.tuple_of(values), self.loc)

    def alloc(self, fill: str, stmt: Stmt) -> Any:
        t = stmt.result.type
        assert isinstance(t, Array)
        shape = [self.use(a) for a in stmt.args]
        maker: Callable[..., Any] = np.zeros if fill == "zeros" else np.empty
        dtype = self.temporary(nir.Global("dtype", np.dtype(t.dtype.kind).type, self.loc), "dtype")
        if t.layout == "F" and t.ndim > 1:
            array = self.temporary(self.call(maker, self.tuple_of(shape[::-1]), dtype), "array")
            return nir.Expr.getattr(array, "T", self.loc)
        return self.call(maker, self.tuple_of(shape), dtype)

    # ------------------------------------------------------------------------------------------ control flow

    def emit_if(self, stmt: Stmt) -> bool:
        then, orelse, behind = self.new_block(), self.new_block(), self.new_block()
        condition = self.use(stmt.args[0])
        self.block.append(nir.Branch(condition, self.label(then), self.label(orelse), self.loc))
        reached = False
        for block, region in ((then, stmt.regions[0]), (orelse, stmt.regions[1])):
            self.block = block
            if self.region(region):
                assert region.yields is not None
                for result, value in zip(stmt.results, region.yields, strict=True):
                    if not (isinstance(value, Const) and value.value is UNDEFINED):
                        self.set(result, self.use(value))
                self.jump(behind)
                reached = True
        if not reached:
            del self.blocks[self.label(behind)]
        self.block = behind
        return reached

    def enter_loop(self, params: tuple[Var, ...], inits: tuple[Operand, ...]) -> None:
        for param, init in zip(params, inits, strict=True):
            if not (isinstance(init, Const) and init.value is UNDEFINED):
                self.set(param, self.use(init))

    def next_iteration(self, params: tuple[Var, ...], yields: tuple[Operand, ...]) -> None:
        """`params = yields`, all at once."""
        moves = [(p, y) for p, y in zip(params, yields, strict=True) if p is not y and not (isinstance(y, Const) and y.value is UNDEFINED)]
        targets = {p for p, _ in moves}
        values = [self.temporary(self.var(y), "move", y.type) if isinstance(y, Var) and y in targets else self.use(y) for _, y in moves]
        for (p, _), value in zip(moves, values, strict=True):
            self.set(p, value)

    def emit_for(self, stmt: Stmt) -> bool:
        n, *inits = stmt.args
        (region,) = stmt.regions
        k, *params = region.params
        count = self.use(n)
        self.set(k, nir.Const(0, self.loc))
        self.enter_loop(tuple(params), tuple(inits))
        for row in self.scopes.starting(stmt):
            self.temporary(self.call(row_start(row)), "unused")
        header, body, behind = self.new_block(), self.new_block(), self.new_block()
        self.jump(header)
        self.block = header
        more = self.temporary(nir.Expr.binop(operator.lt, self.var(k), count, self.loc), "more")
        self.block.append(nir.Branch(more, self.label(body), self.label(behind), self.loc))
        self.block = body
        if self.region(region):
            self.next_iteration(tuple(params), region.yields or ())
            one = self.temporary(nir.Const(1, self.loc), "one")
            self.set(k, nir.Expr.binop(operator.add, self.var(k), one, self.loc))
            self.jump(header)
        self.block = behind
        self.alias(stmt, tuple(params))
        return True

    def emit_while(self, stmt: Stmt) -> bool:
        (region,) = stmt.regions
        self.enter_loop(region.params, stmt.args)
        body = self.new_block()
        self.jump(body)
        self.block = body
        ends = self.region(region)
        if ends:
            again, *yields = region.yields or ()
            test = self.use(again)
            self.next_iteration(region.params, tuple(yields))
            behind = self.new_block()
            self.block.append(nir.Branch(test, self.label(body), self.label(behind), self.loc))
            self.block = behind
        self.alias(stmt, region.params)
        return ends

    def alias(self, stmt: Stmt, params: tuple[Var, ...]) -> None:
        """The results of a loop are its parameters, as the last iteration left them."""
        for result, param in zip(stmt.results, params, strict=True):
            self.names[result] = self.var(param)


def _BINARY_OR_INPLACE(obj: Any) -> Any:
    return (_BINARY | INPLACE.keys()) if hashable(obj) else ()
