"""What users ask of the rules: whether a call has one."""

from __future__ import annotations

from typing import Any

from ..capture.closures import OptedOut
from ..rules.table import table
from .rule_arguments import bound_types
from .rule_calls import answer

__all__ = ["no_rrule"]


def no_rrule(function: Any, *argument_types: Any) -> bool:
    """True where a call at these Numba types would be differentiated through: without an entry, or opted out, by entry or by its rule.

    Raises RuleError where the rule is wrong at these types, AmbiguousRuleError where two rules match.
    """
    entry = table.lookup(function, argument_types).entry
    if entry is None or entry.kind == "opt_out":
        return True
    if entry.kind != "rule":
        return False
    return isinstance(answer(entry, bound_types(entry.payload, list(argument_types)), {}), OptedOut)
