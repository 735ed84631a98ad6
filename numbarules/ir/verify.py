"""Checks that a function is well formed: a table of what each operation takes and gives, and the scoping of variables.

Passes may assume it of what they get and must keep it true of what they return. `checked` verifies between passes when
`CHECK` is set, as the tests do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ..primitives import ieee_divide
from .nodes import (
    UNDEFINED,
    AddTo,
    Alloc,
    Apply,
    Cast,
    CloseRecord,
    Const,
    Extend,
    For,
    Function,
    Get,
    If,
    Item,
    Load,
    MakeTuple,
    Named,
    OpenRecord,
    Operand,
    PrivateCopy,
    Put,
    Raise,
    Raw,
    Region,
    Retain,
    Rule,
    ShadowLike,
    Shape,
    Slab,
    Snapshot,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from .text import statement_text
from .types import BOOL, INT64, Array, NoneType, Opaque, Pointer, Scalar, Tuple, Type, is_float, is_integer

__all__ = ["CHECK", "IllFormedError", "checked", "verify"]

CHECK = False


class IllFormedError(AssertionError):
    """A function that is not well formed: a defect of the pass that made it."""


def checked(function: Function, after: str) -> Function:
    """The function itself, verified if `CHECK` is set; `after` names the pass that made it."""
    if CHECK:
        try:
            verify(function)
        except IllFormedError as error:
            raise IllFormedError(f"after {after}, in `{function.name}`: {error}") from None
    return function


def verify(code: Function | Region) -> None:
    """Raises IllFormedError, with the text of the statement, where `code` is not well formed."""
    if isinstance(code, Function):
        _Verifier().region(code.region, set(), None)
    else:
        _Verifier().region(code, set(), None)


def _fail(what: str, stmt: Stmt | None) -> NoReturn:
    raise IllFormedError(f"{what}, in\n{statement_text(stmt)}" if stmt is not None else what)


class _Verifier:
    def __init__(self) -> None:
        self.defined: set[Var] = set()
        self.names: dict[str, Var] = {}

    def define(self, v: Var, scope: set[Var], stmt: Stmt | None) -> None:
        if v in self.defined:
            _fail(f"%{v.name} is defined twice", stmt)
        if self.names.setdefault(v.name, v) is not v:
            _fail(f"two variables are named %{v.name}", stmt)
        self.defined.add(v)
        scope.add(v)

    def region(self, region: Region, outer: set[Var], holder: Stmt | None) -> None:
        scope = set(outer)
        for p in region.params:
            self.define(p, scope, holder)
        ended = False
        for stmt in region.body:
            if ended:
                _fail("a statement behind the end of its region", stmt)
            for a in stmt.args:
                if a not in scope:
                    self.operand(a, scope, stmt)
            for inner in stmt.regions:
                self.region(inner, scope, stmt)
            self.statement(stmt)
            for r in stmt.results:
                self.define(r, scope, stmt)
            ended = _never_ends(stmt)
        if ended != (region.yields is None):
            _fail("a region yields although it raises" if ended else "a region yields nothing and does not raise", holder)
        for y in region.yields or ():
            self.operand(y, scope, holder)

    def operand(self, x: Operand, scope: set[Var], stmt: Stmt | None) -> None:
        if isinstance(x, Const):
            if not _fits(x.value, x.type):
                _fail(f"the constant {x.value!r} is not of type {x.type}", stmt)
        elif x not in scope:
            _fail(f"%{x.name} is used {'outside its scope' if x in self.defined else 'and not defined'}", stmt)

    def statement(self, stmt: Stmt) -> None:
        check = _TABLE.get(type(stmt.op))
        if len(stmt.regions) != _REGIONS.get(type(stmt.op), 0):
            _fail(f"{len(stmt.regions)} regions", stmt)
        if check is not None:
            check(stmt)


def _never_ends(stmt: Stmt) -> bool:
    match stmt.op:
        case Raise():
            return True
        case If():
            return all(r.yields is None for r in stmt.regions)
        case While():
            return stmt.regions[0].yields is None
    return False


def _fits(value: object, t: Type) -> bool:
    """True where a Python value is one of the type."""
    if value is UNDEFINED:
        return True
    match t:
        case Scalar("bool"):
            return isinstance(value, bool | np.bool_)
        case Scalar() if is_integer(t):
            return isinstance(value, int | np.integer) and not isinstance(value, bool)
        case Scalar() if is_float(t):
            return isinstance(value, float | np.floating)
        case NoneType():
            return value is None
    return True


# ---------------------------------------------------------------------------------------------- the table


def _need(condition: bool, what: str, stmt: Stmt) -> None:
    if not condition:
        _fail(what, stmt)


def _arity(stmt: Stmt, args: int | None, results: int) -> None:
    if args is not None and len(stmt.args) != args:
        _fail(f"{len(stmt.args)} arguments, not {args}", stmt)
    if len(stmt.results) != results:
        _fail(f"{len(stmt.results)} results, not {results}", stmt)


def _array(x: Operand | Var, stmt: Stmt) -> Array:
    if not isinstance(x.type, Array):
        _fail(f"{x!r} is no array", stmt)
    return x.type


def _integers(operands: tuple[Operand, ...], stmt: Stmt) -> None:
    for x in operands:
        if x.type != INT64 and (x.type == BOOL or not is_integer(x.type)):
            _fail(f"{x!r} is no integer", stmt)


def _same(what: str, found: list[Type], wanted: list[Type], stmt: Stmt) -> None:
    if found != wanted:
        _fail(f"{what} of types ({', '.join(map(str, found))}), not ({', '.join(map(str, wanted))})", stmt)


def _types(operands: tuple[Operand, ...] | tuple[Var, ...]) -> list[Type]:
    return [x.type for x in operands]


def _if(stmt: Stmt) -> None:
    _same("a condition", _types(stmt.args), [BOOL], stmt)
    for region in stmt.regions:
        _need(not region.params, "a branch with parameters", stmt)
        if region.yields is not None:
            _same("yields", _types(region.yields), _types(stmt.results), stmt)


def _for(stmt: Stmt) -> None:
    (region,) = stmt.regions
    _need(bool(stmt.args) and stmt.args[0].type == INT64, "the number of iterations is no int64", stmt)
    _need(bool(region.params) and region.params[0].type == INT64, "the counter is no int64", stmt)
    wanted = _types(stmt.results)
    _same("initial values", _types(stmt.args[1:]), wanted, stmt)
    _same("parameters", _types(region.params[1:]), wanted, stmt)
    if region.yields is not None:
        _same("yields", _types(region.yields), wanted, stmt)


def _while(stmt: Stmt) -> None:
    (region,) = stmt.regions
    wanted = _types(stmt.results)
    _same("initial values", _types(stmt.args), wanted, stmt)
    _same("parameters", _types(region.params), wanted, stmt)
    if region.yields is not None:
        _same("yields", _types(region.yields), [BOOL, *wanted], stmt)


_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pos, ieee_divide}
_COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}


def _apply(stmt: Stmt) -> None:
    """Calls are the back end's business, but for arithmetic on machine numbers: it must not change precision unseen."""
    assert isinstance(stmt.op, Apply)
    _need(len(stmt.results) <= 1, f"{len(stmt.results)} results of a call", stmt)
    _need(len(stmt.op.keywords) <= len(stmt.args), "more keywords than arguments", stmt)
    callee = stmt.op.callee
    if not isinstance(callee, Named) or not all(isinstance(a.type, Scalar) for a in stmt.args) or not stmt.results:
        return
    try:
        arithmetic, comparison = callee.obj in _ARITHMETIC, callee.obj in _COMPARISONS
    except TypeError:
        return
    if comparison:
        _same("the result", _types(stmt.results), [BOOL], stmt)
    elif arithmetic and is_float(stmt.result.type):
        kinds = [a.type.kind for a in stmt.args]  # type: ignore[union-attr]
        wanted = np.result_type(*kinds)
        if not any(map(is_float, _types(stmt.args))):
            wanted = np.dtype("float64")
        _same("the result", _types(stmt.results), [Scalar(wanted.name)], stmt)


def _cast(stmt: Stmt) -> None:
    _arity(stmt, 1, 1)
    source, target = stmt.args[0].type, stmt.result.type
    if isinstance(source, Opaque) or isinstance(target, Opaque):
        return  # an optional value, or what only the back end knows
    fits = all(isinstance(source, kind) == isinstance(target, kind) for kind in (Array, Pointer))
    if isinstance(source, Array) and isinstance(target, Array):
        fits = source.dtype == target.dtype and source.ndim == target.ndim
    if not fits:
        _fail(f"a cast from {source} to {target}", stmt)


def _load(stmt: Stmt) -> None:
    _need(bool(stmt.args), "no array", stmt)
    t = _array(stmt.args[0], stmt)
    _arity(stmt, 1 + t.ndim, 1)
    _integers(stmt.args[1:], stmt)
    _same("an element", _types(stmt.results), [t.dtype], stmt)


def _store(stmt: Stmt) -> None:
    _need(len(stmt.args) > 1, "no value", stmt)
    t = _array(stmt.args[0], stmt)
    _arity(stmt, 2 + t.ndim, 0)
    _integers(stmt.args[1:-1], stmt)
    _same("a value", _types(stmt.args[-1:]), [t.dtype], stmt)
    _need(t.mutable, "a store into a constant array", stmt)


def _view(stmt: Stmt) -> None:
    op = stmt.op
    assert isinstance(op, View)
    _arity(stmt, None, 1)
    source, result = _array(stmt.args[0], stmt), _array(stmt.result, stmt)
    rest = stmt.args[1:]
    _need(source.dtype == result.dtype, "a view of other elements", stmt)
    match op.kind:
        case "transpose" | "cast":
            _arity(stmt, 1, 1)
            _need(source.ndim == result.ndim, f"{result.ndim} dimensions, not {source.ndim}", stmt)
        case "permute":
            _arity(stmt, 1, 1)
            _need(sorted(op.spec) == [str(i) for i in range(source.ndim)], f"the axes {op.spec} of {source.ndim}", stmt)
            _need(source.ndim == result.ndim, f"{result.ndim} dimensions, not {source.ndim}", stmt)
        case "reshape":
            _arity(stmt, 1 + result.ndim, 1)
            _integers(rest, stmt)
        case "index":
            _need(set(op.spec) <= set("isnf"), f"the index [{op.spec}]", stmt)
            axes, integers = len(op.spec) - op.spec.count("n"), op.spec.count("i")
            _need(axes <= source.ndim, f"{axes} axes of an array with {source.ndim}", stmt)
            _need(result.ndim == source.ndim - integers + op.spec.count("n"), f"{result.ndim} dimensions of [{op.spec}]", stmt)
            _arity(stmt, 1 + integers + 3 * op.spec.count("s"), 1)
            _need(all(is_integer(x.type) or isinstance(x.type, NoneType) for x in rest), "an index that is no integer", stmt)
        case _:
            _fail(f"a view of kind {op.kind}", stmt)


def _alloc(stmt: Stmt) -> None:
    assert isinstance(stmt.op, Alloc)
    _need(stmt.op.fill in ("zeros", "empty"), f"an array full of {stmt.op.fill}", stmt)
    _arity(stmt, _array(stmt.result, stmt).ndim, 1)
    _integers(stmt.args, stmt)


def _shape(stmt: Stmt) -> None:
    assert isinstance(stmt.op, Shape)
    _arity(stmt, 1, 1)
    _need(0 <= stmt.op.axis < _array(stmt.args[0], stmt).ndim, f"no axis {stmt.op.axis}", stmt)
    _same("a length", _types(stmt.results), [INT64], stmt)


def _make_tuple(stmt: Stmt) -> None:
    t = stmt.result.type
    if not isinstance(t, Tuple):
        _fail("the result is no tuple", stmt)
    _same("items", _types(stmt.args), list(t.items), stmt)


def _item(stmt: Stmt) -> None:
    assert isinstance(stmt.op, Item)
    _arity(stmt, 1, 1)
    t = stmt.args[0].type
    if isinstance(t, Tuple):
        _need(0 <= stmt.op.index < len(t.items), f"no item {stmt.op.index}", stmt)
        _same("an item", _types(stmt.results), [t.items[stmt.op.index]], stmt)


def _raise(stmt: Stmt) -> None:
    assert isinstance(stmt.op, Raise | Raw)
    if isinstance(stmt.op, Raise):
        _need(not stmt.results, "results", stmt)
    _need(len(stmt.op.names) == len(stmt.args), f"{len(stmt.op.names)} names for {len(stmt.args)} arguments", stmt)


def _pointer(stmt: Stmt, *positions: int) -> None:
    for i in positions:
        _need(len(stmt.args) > i and isinstance(stmt.args[i].type, Pointer), f"argument {i} is no address", stmt)


def _shadow_like(stmt: Stmt) -> None:
    assert isinstance(stmt.op, ShadowLike)
    if stmt.op.owned:
        _arity(stmt, 1, 1)
    else:
        _arity(stmt, 2, 1)
        _pointer(stmt, 0)
    _like(stmt)


def _like(stmt: Stmt) -> None:
    source, result = _array(stmt.args[-1], stmt), _array(stmt.result, stmt)
    _need((source.dtype, source.ndim) == (result.dtype, result.ndim), f"{result} is not like {source}", stmt)
    _need(result.mutable, "a constant array", stmt)


def _private_copy(stmt: Stmt) -> None:
    _arity(stmt, 1, 1)
    _like(stmt)


def _snapshot(stmt: Stmt) -> None:
    _arity(stmt, 2, 1)
    _pointer(stmt, 0)
    _like(stmt)


def _slab(stmt: Stmt) -> None:
    _arity(stmt, 2, 1)
    _pointer(stmt, 0)
    _integers(stmt.args[1:], stmt)
    _need(isinstance(stmt.result.type, Pointer), "the result is no address", stmt)


def _extend(stmt: Stmt) -> None:
    _arity(stmt, 4, 1)
    _pointer(stmt, 0, 1)
    _integers(stmt.args[2:], stmt)
    _need(isinstance(stmt.result.type, Pointer), "the result is no address", stmt)


def _put(stmt: Stmt) -> None:
    _arity(stmt, 3, 0)
    _pointer(stmt, 0)
    _integers(stmt.args[1:2], stmt)


def _get(stmt: Stmt) -> None:
    _arity(stmt, 2, 1)
    _pointer(stmt, 0)
    _integers(stmt.args[1:2], stmt)


def _retain(stmt: Stmt) -> None:
    _arity(stmt, 2, 0)
    _pointer(stmt, 0)


def _open(stmt: Stmt) -> None:
    _arity(stmt, 0, 1)
    _need(isinstance(stmt.result.type, Pointer), "the result is no address", stmt)


def _close(stmt: Stmt) -> None:
    _arity(stmt, 1, 0)
    _pointer(stmt, 0)


_TABLE: dict[type, Callable[[Stmt], None]] = {
    If: _if,
    For: _for,
    While: _while,
    Apply: _apply,
    Cast: _cast,
    Load: _load,
    Store: _store,
    AddTo: _store,
    View: _view,
    Alloc: _alloc,
    Shape: _shape,
    MakeTuple: _make_tuple,
    Item: _item,
    Raise: _raise,
    Raw: _raise,
    ShadowLike: _shadow_like,
    PrivateCopy: _private_copy,
    Snapshot: _snapshot,
    Slab: _slab,
    Extend: _extend,
    Put: _put,
    Get: _get,
    Retain: _retain,
    OpenRecord: _open,
    CloseRecord: _close,
}
_REGIONS: dict[type, int] = {If: 2, For: 1, While: 1, Rule: 1}
