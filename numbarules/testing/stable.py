"""`check_stable`: everything that type inference was to decide is decided, and the compiled gradient has no trace of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numba import typeof

from .._numba import Dispatcher, NumbaError, numba_type, types
from ..compile.capture import capture, options_of, python_function
from ..compile.dispatchers import gradient_dispatcher
from ..compile.rules import is_derivative
from ..errors import CheckError, NumbarulesError, UnstableRuleError, message
from ..ir.nodes import Apply, Function, Loc, Stmt, called, walk
from ..ir.types import Opaque, Tuple, Type, is_float
from ..reports.explain import explain_types
from ..reports.report import Report

__all__ = ["StableCheck", "check_stable", "stable_report"]


@dataclass(frozen=True, slots=True)
class StableCheck:
    """What `check_stable` looked at: the function, its argument types, and how many call sites."""

    function: str
    types: tuple[str, ...]
    sites: int

    def __str__(self) -> str:
        return f"{self.function}({', '.join(self.types)}): {self.sites} calls, all decided by types"


def check_stable(f: Any, *args: Any, argnums: int | Iterable[int] | None = None) -> StableCheck:
    """Checks that the gradient of `f` at the types of `args` is decided by types alone, and returns how many calls were looked at.

    `f` and `argnums`: as for `explain`. The values of `args` do not matter.

    What is checked: there is a gradient; no value at a call site, in `f` and in the jitted functions that it calls, may be of one type or
    another (Numba's Optional and Union); no rule decides by value; and no code in the
    compiled gradient is in object mode or has such types.

    Raises CheckError, an AssertionError, which names the line and the type.

    >>> from numbarules.testing import check_stable
    >>> def f(x):
    ...     return x * x
    >>> check_stable(f, 1.0).sites
    1
    """
    function = python_function(getattr(f, "primal", f))
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    signature = tuple(map(typeof, bound.args))
    report = stable_report(f, signature, argnums)
    _check_compiled(f, signature, report)
    return StableCheck(report.function, tuple(t for _, t in report.arguments), sum(1 for _ in report.walk()))


def stable_report(f: Any, signature: tuple[Any, ...], argnums: int | Iterable[int] | None = None) -> Report:
    """The report of a gradient that is decided by types alone; a CheckError where it is not. Nothing is compiled."""
    try:
        report = explain_types(f, signature, argnums)
    except UnstableRuleError as error:
        raise CheckError(f"`{_name(f)}`: a rule decides by value\n{error}") from error
    if report.refusal:
        raise CheckError(f"`{report.function}` has no gradient\n{report.refusal}")
    _check_rules(report)
    _check_primal(f, signature)
    return report


def _name(f: Any) -> str:
    return python_function(getattr(f, "primal", f)).__name__


def _check_rules(report: Report) -> None:
    """No rule that decides at run time."""
    for site in report.walk():
        if site.branches:
            raise CheckError(
                message(
                    f"`{report.function}`: a rule of {site.call}({', '.join(site.types)}) decides by value, at run time",
                    filename=site.place.filename,
                    line=site.place.line,
                    contract="type inference decides which rule is used",
                    found=f"{site.entry}, with on_unstable='branch'",
                    instead="decide in the rule by type alone",
                )
            )


# ---------------------------------------------------------------------------------------------- the primal


def _check_primal(f: Any, signature: tuple[Any, ...]) -> None:
    """No value of two types in the function, nor in the jitted functions that it calls."""
    f = getattr(f, "primal", f)
    todo = [capture(python_function(f), signature, options_of(f))]
    seen: set[int] = set()
    while todo:
        function = todo.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        for stmt in walk(function.region):
            for v in (*stmt.args, *stmt.results):
                if (name := _two_types(v.type)) is not None:
                    _fail(function.name, stmt.loc, name)
            todo += _called(stmt)


def _called(stmt: Stmt) -> list[Function]:
    """The code of a jitted function that is called."""
    f = called(stmt)
    if not isinstance(f, Dispatcher) or is_derivative(f) or (isinstance(stmt.op, Apply) and stmt.op.keywords):
        return []
    try:
        return [capture(python_function(f), tuple(types.unliteral(numba_type(a.type)) for a in stmt.args), options_of(f))]
    except (NumbarulesError, NumbaError, TypeError):
        return []  # whoever needs it says what is wrong with it


def _two_types(t: Type) -> str | None:
    """The name of a type that leaves open which of several a value has."""
    if isinstance(t, Tuple):
        return next((n for n in map(_two_types, t.items) if n is not None), None)
    payload = t.payload if isinstance(t, Opaque) else None
    return str(payload) if isinstance(payload, types.Optional | types.UnionType) else None


def _fail(name: str, loc: Loc | None, found: str) -> None:
    raise CheckError(
        message(
            f"`{name}` has a value of more than one type",
            filename=loc.filename if loc else None,
            line=loc.line if loc else None,
            contract="each value at a call site has one type",
            found=found,
            instead="give it the same type on every path",
        )
    )


# ---------------------------------------------------------------------------------------------- the compiled code


def _check_compiled(f: Any, signature: tuple[Any, ...], report: Report) -> None:
    """No object mode and no value of two types in the compiled gradient; of a function that returns no float there is none."""
    primal = getattr(f, "primal", f)
    function = python_function(primal)
    if not is_float(capture(function, signature, options_of(primal)).result):
        return
    numbers = tuple(i for i, (name, _) in enumerate(report.arguments) if name in report.by)
    gradient = gradient_dispatcher(primal, numbers[0] if len(numbers) == 1 else numbers, "value_and_grad")
    try:
        gradient.compile(signature)
    except NumbarulesError as error:
        raise CheckError(f"`{report.function}` has no gradient\n{error}") from error
    for at, compiled in gradient.overloads.items():
        if compiled.objectmode:
            raise CheckError(f"the gradient of `{report.function}` is in object mode for {at}")
        typed = getattr(compiled.type_annotation, "typemap", {})
        for name, t in typed.items():
            if isinstance(t, types.Optional | types.UnionType | types.PyObject):
                raise CheckError(f"the gradient of `{report.function}` has a value of more than one type for {at}: `{name}`, {t}")

