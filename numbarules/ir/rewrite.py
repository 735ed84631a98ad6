"""Walking, copying and building regions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from .nodes import Cast, Const, Item, Loc, MakeTuple, Op, Operand, Region, Stmt, Var
from .types import Scalar, Tuple, Type, has_parameters

__all__ = ["Builder", "Names", "defined", "free_vars", "map_region", "substitute", "substitute_stmt"]


class Names:
    """Makes variables with names that are unique within one function."""

    def __init__(self, start: int = 0) -> None:
        self._count = itertools.count(start)

    def var(self, type: Type, hint: str = "v") -> Var:
        """A new variable; its name is `hint`, cut at the last dot, and a number."""
        base = hint.split(".")[0] or "v"
        return Var(f"{base}.{next(self._count)}", type)


class Builder:
    """Collects the statements of one region."""

    def __init__(self, names: Names, loc: Loc | None = None) -> None:
        self.names = names
        self.loc = loc
        self.body: list[Stmt] = []

    def add(self, stmt: Stmt) -> Stmt:
        """Appends a statement that is already made."""
        self.body.append(stmt)
        return stmt

    def emit(self, op: Op, args: Iterable[Operand], *types: Type, regions: tuple[Region, ...] = (), hint: str = "v") -> tuple[Var, ...]:
        """Appends `op(args)` and returns its results, new variables of the given types."""
        results = tuple(self.names.var(t, hint) for t in types)
        self.body.append(Stmt(op, tuple(args), results, regions, self.loc))
        return results

    def one(self, op: Op, args: Iterable[Operand], type: Type, hint: str = "v") -> Var:
        """As `emit`, for an operation with one result."""
        return self.emit(op, args, type, hint=hint)[0]

    def cast(self, operand: Operand, type: Type) -> Operand:
        """`operand` converted to `type`; constants are converted here."""
        if operand.type == type:
            return operand
        of_floats = isinstance(type, Scalar) and type.kind.startswith("float")
        if of_floats and isinstance(operand, Const) and isinstance(operand.value, int | float):
            return Const(type, float(operand.value))
        return self.one(Cast(), [operand], type, "cast")

    def emit_alias(self, name: Var, value: Operand) -> None:
        """Makes `name`, a variable that stands for something already, a name for `value`."""
        self.body.append(Stmt(Cast(), (value,), (name,), (), self.loc))

    def apart(self, x: Operand) -> Iterator[Operand]:
        """The leaves of a value that a function has parameters for, tuples taken apart."""
        if isinstance(x.type, Tuple):
            for i, t in enumerate(x.type.items):
                if has_parameters(t):
                    yield from self.apart(self.one(Item(i), [x], t, "item"))
        elif has_parameters(x.type):
            yield x

    def together(self, t: Type, leaves: Iterator[Var], hint: str) -> Operand:
        """A value of type `t` made of its leaves, as `apart` gives them."""
        if isinstance(t, Tuple):
            return self.one(MakeTuple(), [self.together(i, leaves, hint) for i in t.items], t, hint)
        return next(leaves) if has_parameters(t) else Const(t, None)

    def child(self) -> Builder:
        """A builder for a region inside this one."""
        return Builder(self.names, self.loc)

    def region(self, params: Iterable[Var] = (), yields: Iterable[Operand] | None = ()) -> Region:
        """The collected statements as a region."""
        return Region(tuple(params), tuple(self.body), None if yields is None else tuple(yields))


def defined(region: Region) -> set[Var]:
    """The variables that `region` defines itself: its parameters and the results of its own statements, not those further in."""
    out = set(region.params)
    for stmt in region.body:
        out.update(stmt.results)
    return out


def free_vars(region: Region) -> dict[Var, None]:
    """The variables that `region` uses and does not define, in order of first use."""
    found: dict[Var, None] = {}
    _collect(region, set(), found)
    return found


def _collect(region: Region, bound: set[Var], found: dict[Var, None]) -> None:
    bound = bound | set(region.params)
    for stmt in region.body:
        for arg in stmt.args:
            if isinstance(arg, Var) and arg not in bound:
                found[arg] = None
        for inner in stmt.regions:
            _collect(inner, bound, found)
        bound.update(stmt.results)
    for arg in region.yields or ():
        if isinstance(arg, Var) and arg not in bound:
            found[arg] = None


def substitute(region: Region, env: Mapping[Var, Operand], names: Names) -> Region:
    """A copy of `region` in which every variable it defines is new, and free variables are replaced by `env`."""
    env = dict(env)
    params = []
    for p in region.params:
        new = names.var(p.type, p.name)
        env[p] = new
        params.append(new)
    body = [substitute_stmt(s, env, names) for s in region.body]
    yields = None if region.yields is None else tuple(_get(env, y) for y in region.yields)
    return Region(tuple(params), tuple(body), yields)


def substitute_stmt(stmt: Stmt, env: dict[Var, Operand], names: Names) -> Stmt:
    """A copy of `stmt` with new results, which are entered into `env`."""
    args = tuple(_get(env, a) for a in stmt.args)
    regions = tuple(substitute(r, env, names) for r in stmt.regions)
    results = []
    for r in stmt.results:
        new = names.var(r.type, r.name)
        env[r] = new
        results.append(new)
    return Stmt(stmt.op, args, tuple(results), regions, stmt.loc)


def _get(env: Mapping[Var, Operand], operand: Operand) -> Operand:
    return operand if isinstance(operand, Const) else env.get(operand, operand)


Visit = Callable[[Stmt, Callable[[Operand], Operand]], Iterable[Stmt]]


def map_region(region: Region, visit: Visit, env: dict[Var, Operand] | None = None) -> Region:
    """Rewrites `region` statement by statement, keeping its variables.

    `visit(stmt, value)` gets each statement, its arguments and inner regions already rewritten, and returns what
    stands in its place; it may replace a result by calling `value.replace(old, new)`.
    """
    env = {} if env is None else env
    get = _Values(env)
    return _map(region, visit, get)


class _Values:
    def __init__(self, env: dict[Var, Operand]) -> None:
        self._env = env

    def __call__(self, operand: Operand) -> Operand:
        while isinstance(operand, Var) and operand in self._env:
            operand = self._env[operand]
        return operand

    def replace(self, old: Var, new: Operand) -> None:
        self._env[old] = new


def _map(region: Region, visit: Callable[..., Iterable[Stmt]], get: _Values) -> Region:
    body: list[Stmt] = []
    for stmt in region.body:
        args = tuple(get(a) for a in stmt.args)
        regions = tuple(_map(r, visit, get) for r in stmt.regions)
        body.extend(visit(Stmt(stmt.op, args, stmt.results, regions, stmt.loc), get))
    yields = None if region.yields is None else tuple(get(y) for y in region.yields)
    return Region(region.params, tuple(body), yields)
