"""The errors of numbarules: what cannot be done, where in the user's code, by which contract, and what to do next."""

from __future__ import annotations

import linecache

__all__ = [
    "AliasingError",
    "AmbiguousRuleError",
    "CheckError",
    "DifferentiationError",
    "NumbarulesError",
    "NumbarulesWarning",
    "RecursionDepthError",
    "RuleError",
    "UnstableRuleError",
    "UnsupportedError",
]


class NumbarulesError(Exception):
    """The base of every error that numbarules raises on purpose."""


class DifferentiationError(NumbarulesError):
    """A gradient that has no meaning was asked for: of an integer, of a result that is no real scalar, by an argument that is not there."""


class UnsupportedError(NumbarulesError):
    """A construct that a derivative passes through and that is not supported; names it with the user's file, line and source line."""


class CheckError(NumbarulesError, AssertionError):
    """A check of `numbarules.testing` has found something wrong; says what, and where."""


class AliasingError(NumbarulesError):
    """An argument that the function writes into overlaps another argument in memory."""


class RecursionDepthError(NumbarulesError):
    """A gradient recursed deeper than the documented limit."""


class RuleError(NumbarulesError):
    """A rule breaks its contract; names the rule, the contract, and what came."""


class AmbiguousRuleError(RuleError):
    """Two rules match a call and neither is more specific; names both and the signature that settles it."""


class UnstableRuleError(RuleError):
    """A rule decides by value whether it opts out, so that type inference cannot remove the branch."""


class NumbarulesWarning(UserWarning):
    """Code that holds an old derivative cannot be compiled again; names it."""


def message(
    what: str, *, filename: str | None = None, line: int | None = None, contract: str = "", found: str = "", instead: str = ""
) -> str:
    """The text of an error, in the order in which a reader needs it: what, where, the contract, what was found, what to do."""
    parts = [what]
    if filename is not None and line is not None:
        source = linecache.getline(filename, line).strip()
        parts.append(f'  File "{filename}", line {line}' + (f"\n    {source}" if source else ""))
    if contract:
        parts.append(f"Contract: {contract}")
    if found:
        parts.append(f"Found: {found}")
    if instead:
        parts.append(f"Instead: {instead}")
    return "\n".join(parts)
