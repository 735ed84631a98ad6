"""Untyped IR of a rule, with the branches that the types of its arguments decide taken: what is known before inference."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType, UnionType
from typing import Any, NoReturn

from .._numba import nir, types
from ..errors import RuleError, message
from ..rules.patterns import Any as Anything
from ..rules.patterns import Category, Literal, Union, as_pattern, literal, matches
from ..rules.register import is_a

__all__ = ["UNKNOWN", "Body"]

UNKNOWN: Any = object()
_COMPARE = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}


@dataclass(slots=True)
class Body:
    """Untyped IR whose blocks this module owns: statements are replaced, never changed in place."""

    ir: Any
    args: tuple[Any, ...]
    rule: str
    names: tuple[str, ...]
    blocks: dict[int, Any] = field(init=False)
    definitions: dict[str, list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = {label: _copy(block) for label, block in self.ir.blocks.items()}
        self.define()

    def define(self) -> None:
        self.definitions = {}
        for stmt in self.statements():
            if isinstance(stmt, nir.Assign):
                self.definitions.setdefault(stmt.target.name, []).append(stmt.value)

    def statements(self) -> Iterable[Any]:
        return (s for b in self.blocks.values() for s in b.body)

    def refuse(self, what: str, contract: str, line: int | None = None, found: str = "", instead: str = "") -> NoReturn:
        raise RuleError(
            message(
                f"the rule {self.rule} {what}",
                filename=self.ir.loc.filename,
                line=line or self.ir.loc.line,
                contract=contract,
                found=found,
                instead=instead,
            )
        )

    # ------------------------------------------------------------------------------------------ what is known

    def definition(self, name: str) -> Any:
        """The only value that a variable has, copies followed; None where there are several."""
        seen = set()
        while name not in seen:
            seen.add(name)
            found = self.definitions.get(name, [])
            if len(found) != 1:
                return None
            value = found[0]
            if isinstance(value, nir.Expr) and value.op == "cast":
                value = value.value
            if not isinstance(value, nir.Var):
                return value
            name = value.name
        return None

    def type_of(self, var: Any) -> Any:
        """The type of a variable that is an argument, or an item of one; None where it is not known before inference."""
        value = self.definition(var.name)
        if isinstance(value, nir.Arg):
            return self.args[value.index]
        if isinstance(value, nir.Const) and value.value is None:
            return types.none
        if isinstance(value, nir.Expr) and value.op == "exhaust_iter":
            return self.type_of(value.value)
        if isinstance(value, nir.Expr) and value.op in ("static_getitem", "getitem"):
            index = value.index if value.op == "static_getitem" else self.value_of(value.index)
            inside = self.type_of(value.value)
            if isinstance(inside, types.BaseTuple) and isinstance(index, int) and -len(inside) <= index < len(inside):
                return inside[index]
        return None

    def value_of(self, var: Any) -> Any:
        """The Python value of a variable that is known before inference, else `UNKNOWN`."""
        value = self.definition(var.name)
        if isinstance(value, nir.Const | nir.Global | nir.FreeVar):
            return value.value
        if isinstance(value, nir.Arg):
            t = self.args[value.index]
            if isinstance(t, types.Omitted):
                return t.value
            return getattr(t, "literal_value", None if isinstance(t, types.NoneType) else UNKNOWN)
        if not isinstance(value, nir.Expr):
            return UNKNOWN
        if value.op == "getattr":
            owner = self.value_of(value.value)
            if isinstance(owner, ModuleType | type) and hasattr(owner, value.attr):
                return getattr(owner, value.attr)
            if value.attr == "ndim" and isinstance(t := self.type_of(value.value), types.Array):
                return t.ndim
        if value.op == "build_tuple":
            items = tuple(self.value_of(v) for v in value.items)
            return UNKNOWN if any(i is UNKNOWN for i in items) else items
        if value.op in ("getitem", "static_getitem"):
            return self.type_item(value)
        if value.op == "call" and not value.kws and value.vararg is None:
            return self.call(value)
        if value.op == "unary" and value.fn in ("not", operator.not_):
            inner = self.value_of(value.value)
            return UNKNOWN if inner is UNKNOWN else not inner
        if value.op == "binop":
            return self.compare(value)
        return UNKNOWN

    def type_item(self, expr: Any) -> Any:
        """The array type that is written `types.float64[::1]`."""
        owner = self.value_of(expr.value)
        if not isinstance(owner, types.Type):
            return UNKNOWN
        index = expr.index if expr.op == "static_getitem" else self.value_of(expr.index)
        return UNKNOWN if index is UNKNOWN else owner[index]

    def call(self, expr: Any) -> Any:
        callee = self.value_of(expr.func)
        if callee is is_a:
            pattern = self.value_of(expr.args[1])
            t = self.type_of(expr.args[0])
            if t is None or pattern is UNKNOWN:
                self.refuse(
                    "asks `is_a` of something that has no type yet",
                    "`is_a(x, pattern)` is decided for the rule's arguments and their items, with a pattern written outside the rule",
                    line=expr.loc.line,
                )
            return matches(as_pattern(pattern), t)
        if callee is slice or callee is literal:
            given = [self.value_of(a) for a in expr.args]
            return UNKNOWN if any(v is UNKNOWN for v in given) else callee(*given)
        if callee is bool and len(expr.args) == 1:
            inner = self.value_of(expr.args[0])
            return UNKNOWN if inner is UNKNOWN else bool(inner)
        if callee is len and isinstance(t := self.type_of(expr.args[0]), types.BaseTuple):
            return len(t)
        return UNKNOWN

    def compare(self, expr: Any) -> Any:
        a, b = self.value_of(expr.lhs), self.value_of(expr.rhs)
        if expr.fn is operator.or_ and _is_pattern(a) and _is_pattern(b):
            return a | b
        if expr.fn in (operator.is_, operator.is_not):
            same = self.both_none(expr.lhs, a, expr.rhs, b)
            return UNKNOWN if same is None else same == (expr.fn is operator.is_)
        if expr.fn in _COMPARE and all(isinstance(x, int | str) for x in (a, b)):
            return expr.fn(a, b)
        return UNKNOWN

    def both_none(self, lhs: Any, a: Any, rhs: Any, b: Any) -> bool | None:
        """Whether `lhs is rhs`, where one of them is None and the type of the other is known."""
        if a is not None and b is not None:
            return None
        if a is None and b is None:
            return True
        other, value = (rhs, b) if a is None else (lhs, a)
        if value is not UNKNOWN:
            return False
        t = self.type_of(other)
        return None if t is None or isinstance(t, types.Optional) else isinstance(t, types.NoneType)

    # ------------------------------------------------------------------------------------------ pruning

    def fold(self) -> None:
        """Takes the branches that the types decide, until none is left."""
        while True:
            for block in self.blocks.values():
                end = block.body[-1]
                if (
                    isinstance(end, nir.Branch)
                    and (known := self.value_of(end.cond)) is not UNKNOWN
                    and isinstance(known, int | type(None))
                ):
                    block.body[-1] = nir.Jump(end.truebr if known else end.falsebr, end.loc)
                    break
            else:
                break
            self.prune()
        for block in self.blocks.values():
            block.body = [self.settled(s) for s in block.body]

    def settled(self, stmt: Any) -> Any:
        """A statement with `is_a` replaced by its answer: it is no function that Numba knows."""
        if isinstance(stmt, nir.Assign):
            value = stmt.value
            if isinstance(value, nir.Expr) and value.op == "call" and self.value_of(value.func) is is_a:
                return nir.Assign(nir.Const(self.call(value), stmt.loc), stmt.target, stmt.loc)
            if isinstance(value, nir.Global | nir.FreeVar) and _is_pattern(value.value):
                return nir.Assign(nir.Const(None, stmt.loc), stmt.target, stmt.loc)
            made = isinstance(value, nir.Expr) and value.op in ("getattr", "getitem", "static_getitem", "call", "binop")
            if made and _is_pattern(self.value_of(stmt.target)):
                return nir.Assign(nir.Const(None, stmt.loc), stmt.target, stmt.loc)
        return stmt

    def prune(self) -> None:
        reached: set[int] = set()
        todo = [min(self.blocks)]
        while todo:
            label = todo.pop()
            if label not in reached:
                reached.add(label)
                todo += self.blocks[label].body[-1].get_targets() if self.blocks[label].body[-1].is_terminator else []
        self.blocks = {label: block for label, block in self.blocks.items() if label in reached}
        self.define()


def _copy(block: Any) -> Any:
    new = nir.Block(block.scope, block.loc)
    new.body = list(block.body)
    return new


def _is_pattern(value: Any) -> bool:
    """True for `is_a` and what only it can use: a category, a literal pattern, an array type, a Numba type class, several."""
    if isinstance(value, type):
        return issubclass(value, Category) or issubclass(value, types.Type)
    if value is is_a or value is literal or value is Anything:
        return True
    return isinstance(value, Literal | Union | types.Array | UnionType)
