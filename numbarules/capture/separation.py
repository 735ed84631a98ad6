"""A rule's returns, and its pullback taken out of them: captured values take the place of the closure."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, NoneType
from typing import Any, NoReturn

from .._numba import Dispatcher, nir, types
from ..errors import UnstableRuleError, message
from .folding import UNKNOWN, Body

__all__ = ["CAPTURED", "Return", "RuleBody", "name_of"]

CAPTURED = object()
"""Stands in the cell of a captured variable."""


@dataclass(frozen=True, slots=True)
class Return:
    """One return: its line, the object that says which closure it is (None for `return None`), and where its pair is built."""

    line: int
    closure: Any = None
    pair: Any = None  # the assignment of the tuple
    made: Any = None  # the make_function expression, or a Python function


class RuleBody(Body):
    """The body of a rule."""

    def unstable(self, a: Return, b: Return) -> NoReturn:
        def say(r: Return) -> str:
            return f"line {r.line} returns " + ("None" if r.closure is None else f"the pullback `{name_of(r.made)}`")

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

    def returns(self) -> list[Return]:
        return [self.one_return(b.body[-1]) for b in self.blocks.values() if isinstance(b.body[-1], nir.Return)]

    def one_return(self, stmt: Any) -> Return:
        line = stmt.loc.line
        value = self.definition(stmt.value.name)
        if isinstance(value, nir.Const) and value.value is None:
            return Return(line)
        contract = "a rule returns `value, pullback`, written as such a pair, or None"
        if not isinstance(value, nir.Expr) or value.op != "build_tuple" or len(value.items) != 2:
            self.refuse("returns something else than a value and a pullback", contract, line=line)
        made = self.definition(value.items[1].name)
        if isinstance(made, nir.Expr) and made.op == "make_function":
            return Return(line, made, value, made)
        function = self.value_of(value.items[1])
        if isinstance(function, Dispatcher):
            function = function.py_func
        if isinstance(function, FunctionType):
            return Return(line, function.__code__, value, function)
        if isinstance(made, nir.Expr) and made.op == "build_tuple":
            self.refuse("returns a tuple of pullbacks", contract, line=line)
        self.refuse(
            "returns a pullback that is not one function",
            contract,
            line=line,
            instead="define the pullback with `def` in the rule, once, and return it by its name",
        )

    def separate(self, pairs: list[Return]) -> Callable[..., Any]:
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
            if (known := self.constant_of(item)) is not UNKNOWN:
                cells.append(CellType(known))
            else:
                self.check_kept(name, item, made)
                cells.append(CellType(CAPTURED))
                captured.append(item)
        self.replace_returns(pairs, captured)
        self.drop_closure(made)
        return FunctionType(code, self.ir.func_id.func.__globals__, code.co_name, None, tuple(cells))

    def constant_of(self, item: Any) -> Any:
        """The value of a captured variable that is known from the types, which its pullback then knows too: a literal, None, a function."""
        definition = self.definition(item.name)
        if isinstance(definition, nir.FreeVar | nir.Global | nir.Const):
            return definition.value
        t = self.type_of(item)
        if isinstance(t, types.Dispatcher):
            return t.dispatcher
        if isinstance(t, types.Function) and callable(t.typing_key):
            return t.typing_key
        known = self.value_of(item) if isinstance(definition, nir.Arg) else UNKNOWN
        return known if isinstance(known, bool | int | float | str | NoneType) else UNKNOWN

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
        stores = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
        if written := sorted(stores & {*code.co_freevars}):
            self.refuse(
                f"has a pullback `{code.co_name}` that assigns the captured variable `{written[0]}`",
                "what a pullback captures keeps its value: it may be called again",
                line=where,
                instead="give the new value a name of its own, without `nonlocal`",
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

    def without_captures(self, pairs: list[Return], function: Any) -> Callable[..., Any]:
        if any(c.cell_contents is CAPTURED for c in function.__closure__ or ()):
            raise AssertionError("a marker in a user's closure")
        self.replace_returns(pairs, [])
        return function  # type: ignore[no-any-return]

    def replace_returns(self, pairs: list[Return], captured: list[Any]) -> None:
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

    def flag_returns(self, said: list[Return]) -> None:
        """Makes one end of all returns, which gives `(flag, pair)`; the pair is undefined on paths that opt out, `said`."""
        lines = {r.line for r in said}
        ends = [b for b in self.blocks.values() if isinstance(b.body[-1], nir.Return)]
        scope, loc = ends[0].scope, ends[0].loc
        flag, pair, both, out = (scope.redefine(name, loc) for name in ("$flag", "$pair", "$both", "$out"))
        label = max(self.blocks) + 1
        for block in ends:
            end = block.body.pop()
            none = self.definition(end.value.name)
            opted_out = isinstance(none, nir.Const) and none.value is None
            assert not opted_out or end.loc.line in lines
            block.body.append(nir.Assign(nir.Const(not opted_out, loc), flag, loc))
            if not opted_out:
                block.body.append(nir.Assign(end.value, pair, loc))
            block.body.append(nir.Jump(label, loc))
        last = nir.Block(scope, loc)
        last.body = [
            nir.Assign(nir.Expr.build_tuple([flag, pair], loc), both, loc),
            nir.Assign(nir.Expr.cast(both, loc), out, loc),
            nir.Return(out, loc),
        ]
        self.blocks[label] = last
        self.define()

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
                if isinstance(s, nir.Assign) and isinstance(s.value, nir.FreeVar) and s.value.value is CAPTURED
                else s
                for s in block.body
            ]
        self.define()


def name_of(made: Any) -> str:
    """The name of a pullback, from what makes it."""
    code = made.__code__ if isinstance(made, FunctionType) else made.code
    return getattr(code, "co_name", "pullback")
