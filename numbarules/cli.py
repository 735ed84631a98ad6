"""The command `numbarules`: what the rules do to a function, which rules there are, and whether all is decided by types."""

from __future__ import annotations

import argparse
import math
import operator
import os
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from .compile.questions import opted_out
from .errors import NumbarulesError
from .reports.audit import describes
from .reports.explain import explain
from .rules import patterns as pt
from .rules.patterns import Tail, as_pattern
from .rules.table import Entry, function_key, table
from .testing.modules import check_modules, find_object, load

__all__ = ["main"]

OK, FOUND, FAILED = 0, 1, 2
CLOSED = 128 + 13
"""As a shell reports a program that SIGPIPE has ended."""


class _Unusable(Exception):
    """What the user has written cannot be used."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status: 0 all well, 1 something was found, 2 what was asked for could not be done.

    Where nobody reads the output any more (`numbarules rules | head`) it stops, with the status that shells give to that.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    if "" not in sys.path:
        sys.path.insert(0, "")
    warnings.simplefilter("default")
    try:
        status: int = asked.run(asked)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what is left when it exits
        return CLOSED
    except (_Unusable, ImportError, NumbarulesError) as error:
        print(f"numbarules: {error}", file=sys.stderr)
        return FAILED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="numbarules", description="Reports and checks of derivatives and of the rules they are made by.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("explain", help="how a function is differentiated, call by call")
    one.add_argument("function", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    one.add_argument("--args", default="", metavar="EXPRESSIONS", help='its arguments, "1.0, np.ones(3)"; names of the module may be used')
    one.add_argument("--argnums", default=None, metavar="NUMBERS", help='by which arguments, "0" or "0,2"')
    one.add_argument("--html", default=None, metavar="FILE", help="write a page with the annotated source instead")
    one.set_defaults(run=_explain)

    rules = commands.add_parser("rules", help="the entries of the table of rules")
    rules.add_argument("modules", nargs="*", metavar="MODULE", help="modules or files with rules of their own, imported first")
    rules.add_argument("--function", default=None, metavar="NAME", help="np.sum, operator.matmul, Array.dot, or MODULE:NAME")
    rules.add_argument("--type", default=None, metavar="NAME", help="types.float64[::1], AbstractMatrix, or MODULE:NAME: entries for it")
    rules.add_argument("--opt-outs", action="store_true", help="only what is opted out")
    rules.set_defaults(run=_rules)

    check = commands.add_parser("check", help="type stability of functions and rules, and the table; the exit status is for CI")
    check.add_argument("modules", nargs="*", metavar="MODULE", help="modules, packages, files or folders; without any, the table alone")
    check.add_argument("--quiet", action="store_true", help="leave out the notes")
    check.set_defaults(run=_check)
    return parser


# ---------------------------------------------------------------------------------------------- commands


def _explain(asked: argparse.Namespace) -> int:
    f, module = find_object(asked.function)
    args = _evaluated(f"({asked.args},)" if asked.args.strip() else "()", module)
    argnums = _evaluated(asked.argnums, module) if asked.argnums is not None else None
    try:
        report = explain(f, *args, argnums=argnums)
    except TypeError as error:
        raise _Unusable(f"{asked.function} cannot be called with these arguments: {error}") from error
    if asked.html is None:
        print(report)
    else:
        report.to_html(asked.html)
        print(f"written to {asked.html}")
    return FOUND if report.refusal else OK


def _rules(asked: argparse.Namespace) -> int:
    for target in asked.modules:
        _imported(target)
    if asked.opt_outs:
        key = function_key(_named(asked.function)) if asked.function else None
        pattern = as_pattern(_named(asked.type)) if asked.type else None
        shown = [o for o in opted_out() if (key is None or _same(o.function, key)) and (pattern is None or _concerns(o.patterns, pattern))]
        print("\n".join(map(str, shown)) or "Nothing is opted out.")
        return OK
    entries = _of_function(_named(asked.function)) if asked.function else list(table.entries())
    if asked.type:
        pattern = as_pattern(_named(asked.type))
        entries = [e for e in entries if _concerns(e.patterns, pattern)]
    print("\n".join(map(str, sorted(entries, key=_order))) or "There is no such entry.")
    return OK


def _check(asked: argparse.Namespace) -> int:
    found = check_modules([m for target in asked.modules for m in _imported(target)])
    faults = [f for f in found if f.kind == "fault"]
    for finding in faults if asked.quiet else found:
        print(finding)
    print(f"{_count(len(faults), 'fault')}, {_count(len(found) - len(faults), 'note')}")
    return FOUND if faults else OK


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


# ---------------------------------------------------------------------------------------------- names


def _imported(target: str) -> list[ModuleType]:
    try:
        return load(target)
    except Exception as error:
        raise _Unusable(f"{target} cannot be imported: {type(error).__name__}: {error}") from error


def _evaluated(text: str, module: ModuleType | None = None) -> Any:
    """The value of what the user has written, with NumPy, Numba's types and the names of a module."""
    patterns = {name: getattr(pt, name) for name in ("AbstractArray", "AbstractMatrix", "AbstractVector", "Any", "Number", "Real")}
    known = {"np": np, "numpy": np, "math": math, "operator": operator, "types": types, **patterns}
    try:
        return eval(text, {**known, **(vars(module) if module is not None else {})})
    except Exception as error:
        raise _Unusable(f"{text!r} cannot be evaluated: {type(error).__name__}: {error}") from error


def _named(text: str) -> Any:
    """A function, method or type by its name."""
    if ":" in text and "[" not in text:
        return find_object(text)[0]
    try:
        return _evaluated(text)
    except _Unusable:
        function_key(text)  # a method; says what it should look like otherwise
        return text


def _of_function(function: Any) -> list[Entry]:
    """The entries of a function, and of those that it is an alias of."""
    key = function_key(function)
    return [e for e in table.entries() if _same(e.function, key) or any(_same(key, user) for user in table.aliases_of(e.function))]


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, tuple) and a == b)


def _concerns(patterns: Sequence[Any], pattern: Any) -> bool:
    """True where some argument of an entry may be of the type."""
    return any(describes(p.pattern if isinstance(p, Tail) else p, pattern) for p in patterns)


def _order(entry: Entry) -> tuple[str, str]:
    return entry.signature.partition("(")[0], entry.signature
