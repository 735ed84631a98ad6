"""The ranked table of rules: patterns over Numba types and their order, entries, look-up. No inference and no compilation here."""

from .patterns import (
    AbstractArray,
    AbstractMatrix,
    AbstractVector,
    Any,
    Category,
    Number,
    Real,
    Tail,
    literal,
    register_category,
    register_type,
)
from .register import alias, check_table, lookup, no_entry, non_differentiable, opt_out, rrule, rule_scope, scalar_rule
from .table import Entry, Found, Origin, Problem, ScalarRule, Table, table

__all__ = [
    "AbstractArray",
    "AbstractMatrix",
    "AbstractVector",
    "Any",
    "Category",
    "Entry",
    "Found",
    "Number",
    "Origin",
    "Problem",
    "Real",
    "ScalarRule",
    "Table",
    "Tail",
    "alias",
    "check_table",
    "literal",
    "lookup",
    "no_entry",
    "non_differentiable",
    "opt_out",
    "register_category",
    "register_type",
    "rrule",
    "rule_scope",
    "scalar_rule",
    "table",
]
