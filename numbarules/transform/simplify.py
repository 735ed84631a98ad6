"""Clearing up: constants, loop-invariant and affine loop values, and dead code."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ..analysis.effects import effects
from ..ir.nodes import (
    UNDEFINED,
    Alloc,
    Apply,
    Cast,
    Const,
    For,
    Function,
    If,
    Item,
    MakeTuple,
    Named,
    Operand,
    Region,
    Shape,
    Stmt,
    Var,
    While,
    called,
    const,
    same_operand,
)
from ..ir.rewrite import Builder, Names, _get
from ..ir.types import BOOL, INT64, Scalar, Tuple, Type, is_integer
from ..ir.verify import checked

__all__ = ["eliminate_dead", "propagate", "simplify"]


def simplify(function: Function, names: Names) -> Function:
    """The function with constants folded, invariant and affine loop values computed from the counter, and dead code gone."""
    region = checked(function, "what came before simplification").region
    for _ in range(3):
        before, region = region, eliminate_dead(propagate(region, names))
        if region is before:
            break
    return checked(Function(function.name, function.args, region, function.result, function.loc, function.flags), "simplification")


# ---------------------------------------------------------------------------------------------- propagation


def propagate(region: Region, names: Names) -> Region:
    """Folds integer and boolean constants, takes known branches, and replaces loop values that a formula gives.

    Where nothing changes it is the region itself that is returned.
    """
    return _Propagate(names).region(region, {})


_FOLD = {operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}


# what a comparison of an integer with itself gives
_OF_EQUALS = {operator.eq: True, operator.le: True, operator.ge: True, operator.ne: False, operator.lt: False, operator.gt: False}


class _Propagate:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.tuples: dict[Operand, tuple[Operand, ...]] = {}
        self.shapes: dict[Operand, tuple[Operand, ...]] = {}  # of new arrays
        self.trips: dict[Operand, Operand] = {}  # how often the loop of a counter runs
        self.wide: dict[Operand, Operand] = {}  # what is told to be other than 1, as a boolean or as an integer

    def region(self, region: Region, env: dict[Var, Operand]) -> Region:
        b = Builder(self.names)
        ends = self.body(region.body, env, b)
        yields = tuple(_get(env, y) for y in region.yields) if region.yields is not None and ends else None
        return _updated(region, region.params, tuple(b.body), yields)

    def body(self, stmts: Iterable[Stmt], env: dict[Var, Operand], b: Builder) -> bool:
        for stmt in stmts:
            b.loc = stmt.loc
            args = tuple(_get(env, a) for a in stmt.args) if any(a in env for a in stmt.args) else stmt.args
            match stmt.op:
                case If():
                    if not self.branch(stmt, args, env, b):
                        return False
                case For() | While():
                    if not self.loop(stmt, args, env, b):
                        return False
                case Apply(Named(operator.mul)) if args[0] in self.trips and self.trips[args[0]] is self.wide.get(args[1], args[0]):
                    env[stmt.result] = args[0]  # k * (n != 1) for k below n: the index of an axis that might be stretched
                case Apply(Named(fn)) if (folded := _fold(fn, args, stmt)) is not None:
                    env[stmt.result] = folded
                case Item(index) if isinstance(args[0], Var) and args[0] in self.tuples:
                    env[stmt.result] = self.tuples[args[0]][index]
                case Alloc() if all(a.type == INT64 for a in args):
                    self.shapes[stmt.result] = args
                    b.add(_rewritten(stmt, args, stmt.results, ()))
                case Shape(axis) if args[0] in self.shapes:
                    env[stmt.result] = self.shapes[args[0]][axis]
                case MakeTuple():
                    self.tuples[stmt.result] = args
                    b.add(_rewritten(stmt, args, stmt.results, ()))
                case Cast() if args[0].type == stmt.result.type or (isinstance(args[0].type, Tuple) and args[0] in self.tuples):
                    env[stmt.result] = args[0]
                case Cast() if (converted := _converted(args[0], stmt.result.type)) is not None:
                    env[stmt.result] = converted
                case _:
                    self.note_wide(stmt, args)
                    b.add(_rewritten(stmt, args, stmt.results, stmt.regions))
        return True

    def note_wide(self, stmt: Stmt, args: tuple[Operand, ...]) -> None:
        if called(stmt) is operator.ne and _is(args[1], 1):
            self.wide[stmt.result] = args[0]
        elif isinstance(stmt.op, Cast) and args[0] in self.wide and stmt.result.type == INT64:
            self.wide[stmt.result] = self.wide[args[0]]

    def branch(self, stmt: Stmt, args: tuple[Operand, ...], env: dict[Var, Operand], b: Builder) -> bool:
        condition = args[0]
        if isinstance(condition, Const) and condition.value is not UNDEFINED:
            taken = stmt.regions[0 if condition.value else 1]
            if not self.body(taken.body, env, b):
                return False
            if taken.yields is None:
                return False
            for r, y in zip(stmt.results, taken.yields, strict=True):
                env[r] = _get(env, y)
            return True
        then, orelse = (self.region(r, dict(env)) for r in stmt.regions)
        results, ya, yb = [], [], []
        if then.yields is None and orelse.yields is None:
            b.add(_rewritten(stmt, args, stmt.results, (then, orelse)))
            return False
        if then.yields is None or orelse.yields is None:  # one side raises: the other one is what follows
            goes_on = orelse if then.yields is None else then
            nothing = Region((), (), ())
            b.add(_rewritten(stmt, args, (), (then, nothing) if then.yields is None else (nothing, orelse)))
            b.body.extend(goes_on.body)
            env.update(zip(stmt.results, goes_on.yields or (), strict=True))
            return True
        for r, x, y in zip(stmt.results, then.yields, orelse.yields, strict=True):
            if same_operand(x, y):
                env[r] = x
            elif r.type == BOOL and _is(x, True) and _is(y, False):
                env[r] = condition
            elif _undefined(y) and not (isinstance(x, Var) and not self._outer(x, then)):
                env[r] = x
            elif _undefined(x) and not (isinstance(y, Var) and not self._outer(y, orelse)):
                env[r] = y
            else:
                results.append(r)
                ya.append(x)
                yb.append(y)
        regions = (_updated(then, (), then.body, tuple(ya)), _updated(orelse, (), orelse.body, tuple(yb)))
        b.add(_rewritten(stmt, args, tuple(results), regions))
        return True

    def _outer(self, v: Var, region: Region) -> bool:
        return not any(v in s.results for s in region.body)

    def loop(self, stmt: Stmt, args: tuple[Operand, ...], env: dict[Var, Operand], b: Builder) -> bool:
        counted = isinstance(stmt.op, For)
        (old,) = stmt.regions
        skip = 1 if counted else 0
        params, inits = old.params[skip:], args[skip:]
        if counted:
            self.trips[old.params[0]] = args[0]
        # values that no iteration changes
        inner = dict(env)
        for p, init, r, y in zip(params, inits, stmt.results, _carried(old, counted), strict=True):
            if y is p or (isinstance(y, Const) and same_operand(y, init)):
                inner[p] = env[r] = init
        # values that grow by a constant
        if counted and old.yields is not None:
            k, n = old.params[0], args[0]
            head: list[Stmt] = []
            for p, init, r, y in zip(params, inits, stmt.results, _carried(old, counted), strict=True):
                step = _increment(old, p, y)
                if step is not None and p.type == INT64:
                    inside = Builder(self.names, stmt.loc)
                    inner[p] = _scaled(inside, init, k, step)
                    head += inside.body
                    if isinstance(n, Var):
                        total: Operand = b.one(Apply(Named(max)), [n, const(0)], INT64, "n")
                    else:
                        total = const(max(n.value, 0))  # type: ignore[call-overload]
                    env[r] = _scaled(b, init, total, step)
            region = self.region(old, inner)
            region = _updated(region, region.params, (*head, *region.body), region.yields)
        else:
            region = self.region(old, inner)
        kept = [i for i, p in enumerate(params) if p not in inner]
        yields = region.yields
        if yields is not None:
            carried = yields[0 if counted else 1 :]
            yields = (*yields[: 0 if counted else 1], *(carried[i] for i in kept))
        new = _updated(region, (*region.params[:skip], *(params[i] for i in kept)), region.body, yields)
        b.add(_rewritten(stmt, (*args[:skip], *(inits[i] for i in kept)), tuple(stmt.results[i] for i in kept), (new,)))
        return counted or yields is not None


def _rewritten(stmt: Stmt, args: tuple[Operand, ...], results: tuple[Var, ...], regions: tuple[Region, ...]) -> Stmt:
    """The statement with other parts; itself where they are its own."""
    if args == stmt.args and results == stmt.results and regions == stmt.regions:
        return stmt
    return Stmt(stmt.op, args, results, regions, stmt.loc)


def _updated(region: Region, params: tuple[Var, ...], body: tuple[Stmt, ...], yields: tuple[Operand, ...] | None) -> Region:
    """The region with other parts; itself where they are its own."""
    if params == region.params and body == region.body and yields == region.yields:
        return region
    return Region(params, body, yields)


def _carried(region: Region, counted: bool) -> tuple[Operand | None, ...]:
    if region.yields is None:
        return (None,) * (len(region.params) - (1 if counted else 0))
    return region.yields[0 if counted else 1 :]


def _increment(region: Region, param: Var, value: Operand | None) -> int | None:
    """The constant c where the loop does `param = param + c`."""
    for stmt in region.body:
        fn = called(stmt)
        if value in stmt.results and fn in (operator.add, operator.sub):
            a, c = stmt.args
            if fn is operator.add and isinstance(a, Const):
                a, c = c, a
            if a is param and isinstance(c, Const) and isinstance(c.value, int):
                return c.value if fn is operator.add else -c.value
    return None


def _scaled(b: Builder, init: Operand, k: Operand, step: int) -> Operand:
    """`init + k * step`."""
    if isinstance(k, Const) and isinstance(init, Const):
        return const(init.value + k.value * step)  # type: ignore[operator]
    offset = k if step == 1 else b.one(Apply(Named(operator.mul)), [k, const(step)], INT64, "n")
    return offset if _is(init, 0) else b.one(Apply(Named(operator.add)), [init, offset], INT64, "n")


def _fold(fn: object, args: tuple[Operand, ...], stmt: Stmt) -> Operand | None:
    if not stmt.results or not is_integer(stmt.results[0].type):
        return None
    try:
        known = fn in _FOLD
    except TypeError:
        return None
    if known and all(isinstance(a, Const) and isinstance(a.value, int) for a in args):
        value = fn(*(a.value for a in args))  # type: ignore[operator, union-attr]
        if isinstance(value, bool) or -(2**63) <= value < 2**63:
            return Const(stmt.result.type, value)
    if known and args[0] is args[1] and fn in _OF_EQUALS:
        return const(_OF_EQUALS[fn])
    if fn in (operator.and_, operator.or_) and stmt.result.type == BOOL and any(isinstance(a, Const) for a in args):
        c, x = args if isinstance(args[0], Const) else args[::-1]
        return x if _is(c, fn is operator.and_) else c
    if fn in (operator.eq, operator.ne) and len(args) == 2 and args[0].type == BOOL and isinstance(args[1], Const):
        return args[0] if (fn is operator.eq) == bool(args[1].value) else None
    return None


def _converted(x: Operand, t: Type) -> Const | None:
    """An integer constant as a `t`, where that is a number of 64 bits."""
    if not isinstance(x, Const) or not isinstance(x.value, int) or not isinstance(t, Scalar):
        return None
    if t.kind == "float64":
        return Const(t, float(x.value))
    return Const(t, int(x.value)) if t.kind == "int64" else None


def _is(x: Operand, value: object) -> bool:
    return isinstance(x, Const) and type(x.value) is type(value) and x.value == value


def _undefined(x: Operand) -> bool:
    return isinstance(x, Const) and x.value is UNDEFINED


# ---------------------------------------------------------------------------------------------- dead code


def eliminate_dead(region: Region) -> Region:
    """`region` without statements whose results nobody uses, unless they write, raise or do anything outside."""
    return _dead(region, {y for y in region.yields or () if isinstance(y, Var)})[0]


def _dead(region: Region, live: set[Var]) -> tuple[Region, set[Var]]:
    """The region cleared, and the variables that it uses; `live` holds those it must leave defined."""
    live = set(live)
    body: list[Stmt] = []
    for stmt in reversed(region.body):
        wanted = [r in live for r in stmt.results]
        if True not in wanted and effects(stmt).removable:
            continue
        match stmt.op:
            case If():
                stmt = _dead_branch(stmt, wanted, live)
            case For() | While():
                stmt = _dead_loop(stmt, wanted, live)
        live.update(a for a in stmt.args if isinstance(a, Var))
        body.append(stmt)
    return _updated(region, region.params, tuple(reversed(body)), region.yields), live


def _dead_branch(stmt: Stmt, wanted: list[bool], live: set[Var]) -> Stmt:
    regions = []
    for region in stmt.regions:
        yields = None if region.yields is None else tuple(y for y, w in zip(region.yields, wanted, strict=True) if w)
        inner, used = _dead(_updated(region, (), region.body, yields), {y for y in yields or () if isinstance(y, Var)})
        live |= used
        regions.append(inner)
    return _rewritten(stmt, stmt.args, tuple(r for r, w in zip(stmt.results, wanted, strict=True) if w), tuple(regions))


def _dead_loop(stmt: Stmt, wanted: list[bool], live: set[Var]) -> Stmt:
    counted = isinstance(stmt.op, For)
    (region,) = stmt.regions
    skip = 1 if counted else 0
    params = region.params[skip:]
    keep = list(wanted)
    while True:
        yields = region.yields
        if yields is not None:
            carried = yields[0 if counted else 1 :]
            yields = (*yields[: 0 if counted else 1], *(y for y, w in zip(carried, keep, strict=True) if w))
        kept = tuple(p for p, w in zip(params, keep, strict=True) if w)
        start = _updated(region, (*region.params[:skip], *kept), region.body, yields)
        inner, used = _dead(start, {y for y in yields or () if isinstance(y, Var)})
        more = [w or p in used for p, w in zip(params, keep, strict=True)]
        if more == keep:
            break
        keep = more
    live |= used
    args = (*stmt.args[:skip], *(a for a, w in zip(stmt.args[skip:], keep, strict=True) if w))
    results = tuple(r for r, w in zip(stmt.results, keep, strict=True) if w)
    return _rewritten(stmt, args, results, (inner,))
