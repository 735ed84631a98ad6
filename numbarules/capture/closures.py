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
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._numba import NumbaError, TypedIR, typed_from, types, untyped_ir
from ..errors import RuleError, message
from .graph import tries
from .separation import CAPTURED, Return, RuleBody

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
        captured = [n for n, c in zip(code.co_freevars, self.function.__closure__ or (), strict=True) if c.cell_contents is CAPTURED]
        everything = (*args, *self.captured)
        body = RuleBody(ir, everything, self.rule, tuple(names + captured))
        body.bind_captured(captured, len(names))
        body.fold()
        typed = typed_from(ir, body.blocks, tuple(names + captured), everything, options)
        _check_tries(body, typed, f"has a pullback `{code.co_name}` with a `try`")
        if isinstance(typed.return_type, types.NoneType) and self.parameters == 1 and _explicit_none(self.function) == set():
            body.refuse(
                f"has a pullback `{code.co_name}` that returns nothing",
                "a pullback returns its cotangents; no contribution is said by `return None`",
                line=code.co_firstlineno,
            )
        return typed


@dataclass(frozen=True, slots=True)
class Pair:
    """Both halves: the typed value half, which returns `(value, captured values)`, and the pullback.

    A `partial` one opts out by value: its value half returns `(flag, (value, captured values))`, the pair undefined where the flag is not
    set.
    """

    value: TypedIR
    pullback: Pullback
    partial: bool = False


def convert(rule: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any], branch: bool = False) -> OptedOut | Pair:
    """What a rule answers at Numba argument types (`*args` as one tuple type); with `branch` it may opt out by value.

    Raises RuleError where the rule breaks its contract or does not compile, UnstableRuleError where it decides by value.
    """
    ir = untyped_ir(rule)
    names = tuple(ir.arg_names)
    body = RuleBody(ir, args, _title(rule), names)
    if ir.is_generator:
        body.refuse("has a `yield`", "a rule returns `value, pullback`, or None", line=rule.__code__.co_firstlineno)
    body.fold()
    returns = body.returns()
    said = [r for r in returns if r.closure is None]
    pairs = [r for r in returns if r.closure is not None]
    if not returns:
        body.refuse(
            "never returns", "a rule returns `value, pullback`, or says `return None` to opt out", line=rule.__code__.co_firstlineno
        )
    partial = bool(said and pairs)
    if partial and not branch:
        body.unstable(said[0], pairs[0])
    if said:
        _check_said(rule, body, said)
    if not pairs:
        return OptedOut(said[0].line)
    first = pairs[0]
    for other in pairs[1:]:
        if other.closure is not first.closure:
            body.unstable(first, other)
    made = body.separate(pairs)
    if partial:
        body.flag_returns(said)
    typed = _typed_value(rule, body, args, options)
    _check_tries(body, typed, "has a `try`")
    result = typed.return_type[1] if partial and isinstance(typed.return_type, types.BaseTuple) else typed.return_type
    if not isinstance(result, types.BaseTuple) or len(result) != 2:
        body.refuse(
            "returns different types on different paths", "a rule returns one value and one pullback", found=str(result), line=first.line
        )
    captured = tuple(types.unliteral(t) for t in result[1])
    return Pair(typed, Pullback(made, _title(rule), made.__code__.co_argcount, captured), partial)


def _check_tries(body: RuleBody, typed: TypedIR, what: str) -> None:
    if (line := tries(typed)) is not None:
        body.refuse(
            what,
            "both halves of a rule are taken apart, and a `try` cannot be",
            line=line,
            instead="test for the condition beforehand, or move the `try` into a jitted function that the rule calls",
        )


def _check_said(rule: Callable[..., Any], body: RuleBody, said: list[Return]) -> None:
    """Refuses a rule that returns None only because it ends."""
    explicit = _explicit_none(rule)
    if explicit is not None and not any(r.line in explicit for r in said):
        body.refuse(
            "ends without a return",
            "opting out is said: at least one explicit `return None` is reached",
            line=said[-1].line,
            instead="write `return None` where the rule opts out, and return the value and the pullback elsewhere",
        )


def _typed_value(rule: Callable[..., Any], body: RuleBody, args: tuple[Any, ...], options: Mapping[str, Any]) -> TypedIR:
    """The value half, typed."""
    plain = tuple(types.unliteral(t) for t in args)
    try:
        return typed_from(body.ir, body.blocks, body.names, plain, options)
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


def _title(rule: Callable[..., Any]) -> str:
    return f"`{getattr(rule, '__qualname__', repr(rule))}`"


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
