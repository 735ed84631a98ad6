"""What rule authors call: each of these puts entries into the one table."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, TypeVar
from typing import Literal as OneOf

import numba
from numba import types

from numbarules.errors import RuleError, message
from numbarules.rules.patterns import Real, Tail, as_pattern, matches
from numbarules.rules.table import CAPABILITIES, Entry, Found, Kind, Origin, ScalarRule, function_key, show_key, table
from numbarules.rules.unreachable import unused

__all__ = [
    "alias",
    "check_table",
    "entry_of",
    "is_a",
    "lookup",
    "no_entry",
    "non_differentiable",
    "opt_out",
    "rrule",
    "rule_scope",
    "scalar_rule",
]

Rule = TypeVar("Rule", bound=Callable[..., Any])


def rrule(
    function: Any,
    *,
    at: Sequence[Any] = (),
    replace: bool = False,
    on_unstable: OneOf["error", "branch"] = "error",
    requires: str | Iterable[str] = (),
) -> Callable[[Rule], Rule]:
    """Registers the decorated function as a rule, and returns it unchanged.

    Its annotations are the argument patterns (none: `Any`); parameters with a default may be left out of a call; `*args` takes any number.

    `at`: sample points inside the domain, each a tuple of arguments or the only one, at which `numbarules.testing.check_rule` can check it.
    `replace`: an entry of the same package for the same patterns is replaced. `on_unstable="branch"`: the rule may decide by value whether
    it opts out; both ways are compiled. `requires`: capabilities of the system that asks (`"reverse"`, `"forward"`, `"debug"`) that the
    rule needs; without them it is not there, and of two rules with equal patterns, the one that requires more wins.

    Raises RuleError where an annotation is no pattern, AmbiguousRuleError where the rule ties with another one of its package.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> from numba import njit
    >>> @njit
    ... def norm2(x):
    ...     return np.sum(x * x)
    >>> with nr.rule_scope():
    ...     @nr.rrule(norm2)
    ...     def norm2_rule(x: nr.AbstractVector):
    ...         def norm2_pullback(ybar):
    ...             return 2.0 * ybar * x
    ...         return np.sum(x * x), norm2_pullback
    ...     nr.grad(lambda x: 2.0 * norm2(x))(np.array([1.0, 2.0]))
    array([4., 8.])
    """
    key = function_key(function)
    if key is Any:
        raise RuleError(message("a rule cannot be for any function", contract="Any as the function is for opt_out and non_differentiable"))
    if on_unstable not in ("error", "branch"):
        raise RuleError(message(f"on_unstable={on_unstable!r} is unknown", contract='on_unstable is "error" or "branch"'))
    needs = frozenset((requires,) if isinstance(requires, str) else requires)
    if not needs <= CAPABILITIES:
        raise RuleError(message(f"requires={requires!r} is unknown", contract=f"a rule requires some of {', '.join(sorted(CAPABILITIES))}"))
    frame = sys._getframe(1)

    def register(rule: Rule) -> Rule:
        if not inspect.isfunction(rule):
            raise RuleError(
                message(
                    f"{rule!r} cannot be the rule for {show_key(key)}",
                    filename=frame.f_code.co_filename,
                    line=frame.f_lineno,
                    contract="a rule is a plain Python function; it is compiled where it is used",
                    found=f"a {type(rule).__name__}",
                    instead="define it with `def`, without `njit`",
                )
            )
        points = tuple(p if isinstance(p, tuple) else (p,) for p in at)
        _add(dataclasses.replace(entry_of(key, rule, "rule", frame, rule), on_unstable=on_unstable, requires=needs, at=points), replace)
        return rule

    return register


def opt_out(function: Any, *patterns: Any, replace: bool = False) -> Entry:
    """Says that calls with such arguments have no rule: the method that runs is differentiated. Without patterns: all calls.

    `opt_out(Any, SomeType)` says it for every function with an argument of that type.
    """
    return _plain_entry(function, patterns, "opt_out", replace, sys._getframe(1))


def non_differentiable(function: Any, *patterns: Any, replace: bool = False) -> Entry:
    """Says that the result of calls with such arguments has derivative zero everywhere. Without patterns: all calls."""
    return _plain_entry(function, patterns, "non_differentiable", replace, sys._getframe(1))


def scalar_rule(
    function: Any,
    *partials: Callable[..., Any] | None,
    at: Sequence[Any] = (),
    guard: bool | Sequence[bool] = False,
    patterns: Sequence[Any] | None = None,
    replace: bool = False,
    doc: str = "",
) -> Entry:
    """Registers the partial derivatives of a function of real scalars, one per argument: `partial(y, *args)` with the result `y`.

    None instead of a partial: that argument is discrete. `at`: sample points inside the domain (a number, or a tuple with one per
    argument). `guard`: which partials may be infinite or NaN somewhere, so that a cotangent of exactly zero must contribute exactly zero.
    `patterns`: one per argument, `Real` if not given. `doc`: the convention at kinks and edges.

    >>> scalar_rule(math.tanh, lambda y, x: 1 - y*y, at=(-1.2, 0.3))                                      # doctest: +SKIP
    """
    n = len(partials)
    frame = sys._getframe(1)
    filename, line = frame.f_code.co_filename, frame.f_lineno
    name = show_key(function_key(function))
    guards = (guard,) * n if isinstance(guard, bool) else tuple(guard)
    written = (Real,) * n if patterns is None else tuple(map(as_pattern, patterns))
    points = tuple(p if isinstance(p, tuple) else (p,) for p in at)
    if n == 0 or len(guards) != n or len(written) != n or any(len(p) != n for p in points):
        raise RuleError(
            message(
                f"the scalar rule of {name} is inconsistent",
                filename=filename,
                line=line,
                contract="partials, guards, patterns and the numbers of a sample point are one per argument",
                found=f"{n} partials, {len(guards)} guards, {len(written)} patterns, points of {sorted({len(p) for p in points})}",
            )
        )
    for i, partial in enumerate(partials):
        if partial is not None and len(inspect.signature(partial).parameters) != n + 1:
            raise RuleError(
                message(
                    f"partial {i} of {name} has the wrong parameters",
                    filename=filename,
                    line=line,
                    contract=f"a partial takes the result and the {n} arguments",
                )
            )
    return _add(
        Entry(function_key(function), written, "scalar", ScalarRule(partials, guards, points, doc), _origin(frame, name), n), replace
    )


def alias(new: Any, old: Any) -> None:
    """Lets `new` use the entries of `old`, those made later too; its own come first where the argument patterns are equal."""
    table.alias(new, old)


def rule_scope() -> AbstractContextManager[None]:
    """Entries that this thread makes inside last until the end; what they replaced is back then."""
    return table.scope()


def lookup(function: Any, *argument_types: types.Type) -> Found:
    """The entry that the table has for a call at these Numba types, its runner-up, and why."""
    return table.lookup(function, argument_types)


def is_a(x: Any, pattern: Any) -> bool:
    """True where the type of `x` is described by the pattern.

    In a rule the answer is known before the rule is typed, and no branch is left.
    """
    return matches(as_pattern(pattern), numba.typeof(x))


def no_entry(function: Any, *argument_types: types.Type) -> bool:
    """True where the table has no rule for a call: no entry, or an opt-out. (A rule that returns None opts out by type inference.)"""
    entry = table.lookup(function, argument_types).entry
    return entry is None or entry.kind == "opt_out"


def check_table() -> tuple[Any, ...]:
    """Ambiguities, opt-outs that shadow nothing, unreachable entries, and scalar rules without sample points: see `Problem`."""
    return table.check()


def entry_of(key: Any, code: Callable[..., Any], kind: Kind, frame: FrameType, payload: Any) -> Entry:
    """The entry whose patterns are the annotations of a function that was written in `frame`."""
    patterns, required = _patterns_of(code, frame)
    body = getattr(inspect.unwrap(code), "__code__", None)
    line = body.co_firstlineno if body else frame.f_lineno
    filename = body.co_filename if body else frame.f_code.co_filename
    return Entry(key, patterns, kind, payload, Origin(_package(code.__module__), filename, line, _name(code)), required)


def _name(code: Callable[..., Any]) -> str:
    return getattr(code, "__qualname__", repr(code))


def _plain_entry(function: Any, patterns: tuple[Any, ...], kind: Kind, replace: bool, frame: FrameType) -> Entry:
    key = function_key(function)
    written = tuple(Tail(as_pattern(p.pattern)) if isinstance(p, Tail) else as_pattern(p) for p in patterns) or (Tail(Any),)
    if any(isinstance(p, Tail) for p in written[:-1]):
        raise RuleError(message(f"a Tail stands before another pattern of {show_key(key)}", contract="only the last pattern may be a Tail"))
    if key is Any and (len(patterns) != 1 or isinstance(written[0], Tail) or written[0] is Any):
        raise RuleError(
            message(
                f"{kind}(Any, ...) needs one type", contract="with Any as the function, the one pattern is the type that some argument has"
            )
        )
    required = len(written) - isinstance(written[-1], Tail)
    return _add(Entry(key, written, kind, None, _origin(frame, show_key(key)), required), replace)


def _add(entry: Entry, replace: bool) -> Entry:
    for reason in unused(entry):
        warnings.warn(f"{entry}: {reason}", stacklevel=3)
    return table.add(entry, replace)


def _package(module: str | None) -> str:
    return (module or "__main__").partition(".")[0]


def _origin(frame: FrameType, name: str) -> Origin:
    return Origin(_package(frame.f_globals.get("__name__")), frame.f_code.co_filename, frame.f_lineno, name)


def _patterns_of(rule: Callable[..., Any], frame: FrameType) -> tuple[tuple[Any, ...], int]:
    """The patterns of a rule's parameters, and how many of them a call must give."""
    patterns: list[Any] = []
    required = 0
    for p in inspect.signature(rule).parameters.values():
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            raise RuleError(
                message(
                    f"the rule {rule.__qualname__} has the keyword-only parameter {p.name}",
                    filename=rule.__code__.co_filename,
                    line=rule.__code__.co_firstlineno,
                    contract="a rule's parameters are positional; keywords of a call are matched by position in the function's signature",
                )
            )
        pattern = Any if p.annotation is p.empty else as_pattern(_evaluated(p.annotation, rule, frame))
        if p.kind is p.VAR_POSITIONAL:
            patterns.append(Tail(pattern))
            continue
        patterns.append(pattern)
        required += p.default is p.empty
    return tuple(patterns), required


def _evaluated(annotation: Any, rule: Callable[..., Any], frame: FrameType) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {**rule.__globals__, **frame.f_locals})
    except Exception as e:
        raise RuleError(
            message(
                f"the annotation {annotation!r} of the rule {rule.__qualname__} cannot be evaluated: {e}",
                filename=rule.__code__.co_filename,
                line=rule.__code__.co_firstlineno,
                contract="an annotation is a pattern, or a string that evaluates to one where the rule is written",
                instead="for a literal string write literal(...)",
            )
        ) from e
