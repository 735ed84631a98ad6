"""Closure conversion of rules: a function that returns `(value, pullback)` or None, taken apart before it is typed.

Numba refuses to return a closure, so the untyped IR is rewritten: what is known of the types decides `is_a(x, pattern)`,
`x is None` and the like, branches not taken go, and what is left of the returns is the answer. All None: opted out. All the
same closure: the value half returns `(value, (captured values...))`, and the pullback is its own code with the captured
variables as further parameters. Which closure is returned is decided here and not by a type: two closures with equal
captures never meet.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from .._numba import Dispatcher, NumbaError, TypedIR, nir, typed_from, types, untyped_ir
from ..errors import RuleError, UnstableRuleError, message
from ..rules.patterns import as_pattern, matches
from ..rules.register import is_a

__all__ = ["OptedOut", "Pair", "Pullback", "convert"]


@dataclass(frozen=True, slots=True)
class OptedOut:
    """The rule said None, at this line."""

    line: int


@dataclass(frozen=True, slots=True)
class Pullback:
    """The pullback half, not yet typed. `captured` are the types of the captured values, its last parameters."""

    function: Callable[..., Any]
    rule: str
    parameters: int
    captured: tuple[Any, ...]

    def typed(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> TypedIR:
        """The typed IR at the types of the parameters, the captured values behind them. Raises Numba's errors."""
        ir = untyped_ir(self.function)
        code = self.function.__code__
        names = list(code.co_varnames[: self.parameters])
        captured = [n for n, c in zip(code.co_freevars, self.function.__closure__ or (), strict=True) if c.cell_contents is _CAPTURED]
        everything = (*args, *self.captured)
        body = _Body(ir, everything, self.rule, tuple(names + captured))
        body.bind_captured(captured, len(names))
        body.fold()
        return typed_from(ir, body.blocks, tuple(names + captured), everything, options)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both halves: the typed value half, which returns `(value, captured values)`, and the pullback."""

    value: TypedIR
    pullback: Pullback


_CAPTURED = object()  # stands in the cell of a captured variable


def convert(rule: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> OptedOut | Pair:
    """What a rule answers at Numba argument types (`*args` as one tuple type).

    Raises RuleError where the rule breaks its contract or does not compile, UnstableRuleError where it decides by value.
    """
    ir = untyped_ir(rule)
    names = tuple(ir.arg_names)
    body = _Body(ir, args, _title(rule), names)
    body.fold()
    returns = body.returns()
    said = [r for r in returns if r.closure is None]
    pairs = [r for r in returns if r.closure is not None]
    if not returns:
        body.refuse(
            "never returns", "a rule returns `value, pullback`, or says `return None` to opt out", line=rule.__code__.co_firstlineno
        )
    if said and pairs:
        body.unstable(said[0], pairs[0])
    if said:
        explicit = _explicit_none(rule)
        if explicit is not None and not any(r.line in explicit for r in said):
            body.refuse(
                "ends without a return",
                "opting out is said: at least one explicit `return None` is reached",
                line=said[-1].line,
                instead="write `return None` where the rule opts out, and return the value and the pullback elsewhere",
            )
        return OptedOut(said[0].line)
    first = pairs[0]
    for other in pairs[1:]:
        if other.closure is not first.closure:
            body.unstable(first, other)
    made = body.separate(pairs)
    plain = tuple(types.unliteral(t) for t in args)
    try:
        typed = typed_from(ir, body.blocks, names, plain, options)
    except NumbaError as e:
        raise RuleError(
            message(
                f"the rule {_title(rule)} does not compile for ({', '.join(map(str, plain))})",
                filename=rule.__code__.co_filename,
                line=rule.__code__.co_firstlineno,
                contract="a rule is a function in the language that Numba compiles",
                found=str(e),
            )
        ) from e
    result = typed.return_type
    if not isinstance(result, types.BaseTuple) or len(result) != 2:
        body.refuse(
            "returns different types on different paths", "a rule returns one value and one pullback", found=str(result), line=first.line
        )
    captured = tuple(types.unliteral(t) for t in result[1])
    code = made.__code__
    return Pair(typed, Pullback(made, _title(rule), code.co_argcount, captured))


def _title(rule: Callable[..., Any]) -> str:
    return f"`{getattr(rule, '__qualname__', repr(rule))}`"


# ---------------------------------------------------------------------------------------------- one body


@dataclass(frozen=True, slots=True)
class _Return:
    """One return: its line, the object that says which closure it is (None for `return None`), and where its pair is built."""

    line: int
    closure: Any = None
    pair: Any = None  # the assignment of the tuple
    made: Any = None  # the make_function expression, or a Python function


_UNKNOWN: Any = object()
_COMPARE = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}


@dataclass(slots=True)
class _Body:
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

    def unstable(self, a: _Return, b: _Return) -> NoReturn:
        def say(r: _Return) -> str:
            return f"line {r.line} returns " + ("None" if r.closure is None else f"the pullback `{_name_of(r.made)}`")

        raise UnstableRuleError(
            message(
                f"the rule {self.rule} decides by value what it returns",
                filename=self.ir.loc.filename,
                line=a.line,
                contract="which return a rule reaches follows from the types of its arguments",
                found=f"{say(a)}, {say(b)}, and the types ({', '.join(map(str, self.args))}) do not settle which",
                instead="decide by type (`numbarules.is_a`, `x is None`, `x.ndim`), in an annotation, or inside one pullback",
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
        """The Python value of a variable that is known before inference, else `_UNKNOWN`."""
        value = self.definition(var.name)
        if isinstance(value, nir.Const | nir.Global | nir.FreeVar):
            return value.value
        if isinstance(value, nir.Arg):
            t = self.args[value.index]
            if isinstance(t, types.Omitted):
                return t.value
            return getattr(t, "literal_value", None if isinstance(t, types.NoneType) else _UNKNOWN)
        if not isinstance(value, nir.Expr):
            return _UNKNOWN
        if value.op == "getattr":
            owner = self.value_of(value.value)
            if isinstance(owner, ModuleType | type) and hasattr(owner, value.attr):
                return getattr(owner, value.attr)
            if value.attr == "ndim" and isinstance(t := self.type_of(value.value), types.Array):
                return t.ndim
        if value.op == "build_tuple":
            items = tuple(self.value_of(v) for v in value.items)
            return _UNKNOWN if any(i is _UNKNOWN for i in items) else items
        if value.op == "call" and not value.kws and value.vararg is None:
            return self.call(value)
        if value.op == "unary" and value.fn in ("not", operator.not_):
            inner = self.value_of(value.value)
            return _UNKNOWN if inner is _UNKNOWN else not inner
        if value.op == "binop":
            return self.compare(value)
        return _UNKNOWN

    def call(self, expr: Any) -> Any:
        callee = self.value_of(expr.func)
        if callee is is_a:
            pattern = self.value_of(expr.args[1])
            t = self.type_of(expr.args[0])
            if t is None or pattern is _UNKNOWN:
                self.refuse(
                    "asks `is_a` of something that has no type yet",
                    "`is_a(x, pattern)` is decided for the rule's arguments and their items, with a pattern written outside the rule",
                    line=expr.loc.line,
                )
            return matches(as_pattern(pattern), t)
        if callee is bool and len(expr.args) == 1:
            inner = self.value_of(expr.args[0])
            return _UNKNOWN if inner is _UNKNOWN else bool(inner)
        if callee is len and isinstance(t := self.type_of(expr.args[0]), types.BaseTuple):
            return len(t)
        return _UNKNOWN

    def compare(self, expr: Any) -> Any:
        a, b = self.value_of(expr.lhs), self.value_of(expr.rhs)
        if expr.fn in (operator.is_, operator.is_not):
            same = self.both_none(expr.lhs, a, expr.rhs, b)
            return _UNKNOWN if same is None else same == (expr.fn is operator.is_)
        if expr.fn in _COMPARE and all(isinstance(x, int | str) for x in (a, b)):
            return expr.fn(a, b)
        return _UNKNOWN

    def both_none(self, lhs: Any, a: Any, rhs: Any, b: Any) -> bool | None:
        """Whether `lhs is rhs`, where one of them is None and the type of the other is known."""
        if a is not None and b is not None:
            return None
        if a is None and b is None:
            return True
        other, value = (rhs, b) if a is None else (lhs, a)
        if value is not _UNKNOWN:
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
                    and (known := self.value_of(end.cond)) is not _UNKNOWN
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
            if isinstance(value, nir.Global | nir.FreeVar) and (value.value is is_a or _is_pattern(value.value)):
                return nir.Assign(nir.Const(None, stmt.loc), stmt.target, stmt.loc)
            if isinstance(value, nir.Expr) and value.op == "getattr" and ((got := self.value_of(stmt.target)) is is_a or _is_pattern(got)):
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

    # ------------------------------------------------------------------------------------------ returns

    def returns(self) -> list[_Return]:
        return [self.one_return(b.body[-1]) for b in self.blocks.values() if isinstance(b.body[-1], nir.Return)]

    def one_return(self, stmt: Any) -> _Return:
        line = stmt.loc.line
        value = self.definition(stmt.value.name)
        if isinstance(value, nir.Const) and value.value is None:
            return _Return(line)
        contract = "a rule returns `value, pullback`, written as such a pair, or None"
        if not isinstance(value, nir.Expr) or value.op != "build_tuple" or len(value.items) != 2:
            self.refuse("returns something else than a value and a pullback", contract, line=line)
        made = self.definition(value.items[1].name)
        if isinstance(made, nir.Expr) and made.op == "make_function":
            return _Return(line, made, value, made)
        function = self.value_of(value.items[1])
        if isinstance(function, Dispatcher):
            function = function.py_func
        if isinstance(function, FunctionType):
            return _Return(line, function.__code__, value, function)
        if isinstance(made, nir.Expr) and made.op == "build_tuple":
            self.refuse("returns a tuple of pullbacks", contract, line=line)
        self.refuse(
            "returns a pullback that is not one function",
            contract,
            line=line,
            instead="define the pullback with `def` in the rule, once, and return it by its name",
        )

    def separate(self, pairs: list[_Return]) -> Callable[..., Any]:
        """Puts the captured values in the place of the closure; returns the pullback, its cells marked or filled."""
        made = pairs[0].made
        if isinstance(made, FunctionType):
            self.check_pullback(made.__code__, made.__defaults__, made.__kwdefaults__)
            return self.without_captures(pairs, made)
        code = made.code if isinstance(made.code, CodeType) else self.value_of(made.code)
        self.check_pullback(code, made.defaults, None)
        items = self.definition(made.closure.name).items if made.closure is not None and isinstance(made.closure, nir.Var) else ()
        cells: list[CellType] = []
        captured: list[Any] = []
        for name, item in zip(code.co_freevars, items, strict=True):
            definition = self.definition(item.name)
            if isinstance(definition, nir.Expr) and definition.op == "make_function":
                self.refuse(
                    f"has a pullback that captures the function `{name}`",
                    "a pullback captures values; a function that it calls stands outside the rule",
                    line=made.loc.line,
                    instead=f"move `{name}` out of the rule, with what it needs as parameters",
                )
            if isinstance(definition, nir.FreeVar | nir.Global | nir.Const):
                cells.append(CellType(definition.value))
            else:
                self.check_kept(name, item, made)
                cells.append(CellType(_CAPTURED))
                captured.append(item)
        self.replace_returns(pairs, captured)
        self.drop_closure(made)
        return FunctionType(code, self.ir.func_id.func.__globals__, code.co_name, None, tuple(cells))

    def check_pullback(self, code: CodeType, defaults: Any, keyword_defaults: Any) -> None:
        where = code.co_firstlineno
        if defaults or keyword_defaults or code.co_kwonlyargcount:
            self.refuse(
                f"has a pullback `{code.co_name}` with default or keyword-only arguments",
                "a pullback's parameters are the cotangent, and the shadows of the arguments if it adds into them",
                line=where,
            )
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR):
            self.refuse(
                f"has a pullback `{code.co_name}` with `*` parameters or `yield`",
                "a pullback's parameters are named one by one",
                line=where,
            )
        if code.co_argcount < 1:
            self.refuse(
                f"has a pullback `{code.co_name}` without parameters",
                "the first parameter of a pullback is the cotangent of the value",
                line=where,
            )

    def check_kept(self, name: str, item: Any, made: Any) -> None:
        """Refuses a captured variable that is assigned again once the closure is made: it would be captured at its old value."""
        home, place = next(
            (label, i) for label, b in self.blocks.items() for i, s in enumerate(b.body) if isinstance(s, nir.Assign) and s.value is made
        )
        later: set[int] = set()
        todo = list(self.blocks[home].body[-1].get_targets())
        while todo:
            label = todo.pop()
            if label not in later:
                later.add(label)
                todo += self.blocks[label].body[-1].get_targets()
        for label, block in self.blocks.items():
            for i, stmt in enumerate(block.body):
                again = isinstance(stmt, nir.Assign) and stmt.target.name == item.name and (label in later or (label == home and i > place))
                if again:
                    self.refuse(
                        f"assigns `{name}` again after its pullback is made",
                        "what a pullback captures keeps its value",
                        line=stmt.loc.line,
                        instead="give the new value a name of its own",
                    )

    def without_captures(self, pairs: list[_Return], function: Any) -> Callable[..., Any]:
        if any(c.cell_contents is _CAPTURED for c in function.__closure__ or ()):
            raise AssertionError("a marker in a user's closure")
        self.replace_returns(pairs, [])
        return function  # type: ignore[no-any-return]

    def replace_returns(self, pairs: list[_Return], captured: list[Any]) -> None:
        tuples = [p.pair for p in pairs]
        for block in self.blocks.values():
            body: list[Any] = []
            for stmt in block.body:
                if isinstance(stmt, nir.Assign) and any(stmt.value is t for t in tuples):
                    scope, loc = stmt.target.scope, stmt.loc
                    kept = scope.redefine("$captured", loc)
                    body.append(nir.Assign(nir.Expr.build_tuple(list(captured), loc), kept, loc))
                    stmt = nir.Assign(nir.Expr.build_tuple([stmt.value.items[0], kept], loc), stmt.target, loc)
                body.append(stmt)
            block.body = body

    def drop_closure(self, made: Any) -> None:
        """Removes the making of the closure; refuses any other use of it."""
        names = {s.target.name for s in self.statements() if isinstance(s, nir.Assign) and s.value is made}
        while True:  # copies of it
            more = {
                s.target.name
                for s in self.statements()
                if isinstance(s, nir.Assign) and isinstance(s.value, nir.Var) and s.value.name in names
            } - names
            if not more:
                break
            names |= more
        dropped = names | ({made.closure.name} if isinstance(made.closure, nir.Var) else set())
        for block in self.blocks.values():
            body = []
            for stmt in block.body:
                if isinstance(stmt, nir.Assign) and stmt.target.name in dropped:
                    continue
                if any(v.name in names for v in stmt.list_vars()):
                    self.refuse(
                        "uses its pullback in another way than to return it",
                        "the pullback is returned, once on each path",
                        line=stmt.loc.line,
                    )
                body.append(stmt)
            block.body = body

    # ------------------------------------------------------------------------------------------ the pullback

    def bind_captured(self, captured: list[str], first: int) -> None:
        """Captured variables become parameters."""
        for block in self.blocks.values():
            block.body = [
                nir.Assign(nir.Arg(s.value.name, first + captured.index(s.value.name), s.loc), s.target, s.loc)
                if isinstance(s, nir.Assign) and isinstance(s.value, nir.FreeVar) and s.value.value is _CAPTURED
                else s
                for s in block.body
            ]
        self.define()


def _copy(block: Any) -> Any:
    new = nir.Block(block.scope, block.loc)
    new.body = list(block.body)
    return new


def _is_pattern(value: Any) -> bool:
    """True for what only `is_a` can use: a category, a literal pattern, a Numba type class."""
    from ..rules.patterns import Any as Anything
    from ..rules.patterns import Category, Literal, Union

    if isinstance(value, type):
        return issubclass(value, Category) or issubclass(value, types.Type)
    return value is Anything or isinstance(value, Literal | Union)


def _name_of(made: Any) -> str:
    code = made.__code__ if isinstance(made, FunctionType) else made.code
    return getattr(code, "co_name", "pullback")


def _explicit_none(rule: Callable[..., Any]) -> set[int] | None:
    """The lines of `return None` and `return` in the rule's source; None where there is no source to read."""
    try:
        lines, start = inspect.getsourcelines(rule)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    out: set[int] = set()

    def visit(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Return) and (
                child.value is None or any(isinstance(n, ast.Constant) and n.value is None for n in ast.walk(child.value))
            ):
                out.update(range(start + child.lineno - 1, start + (child.end_lineno or child.lineno)))
            if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef) or top:
                visit(child, False)

    visit(tree, True)
    return out
