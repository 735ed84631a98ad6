"""Compiled reverse-mode derivatives of Numba-jitted functions."""

import importlib
import typing

from .api import grad as grad
from .api import njit_grad as njit_grad
from .api import value_and_grad as value_and_grad
from .api import vjp as vjp
from .compile.projectors import project_to as project_to
from .compile.questions import OptOut as OptOut
from .compile.questions import no_rrule as no_rrule
from .compile.questions import opted_out as opted_out
from .errors import AliasingError as AliasingError
from .errors import AmbiguousRuleError as AmbiguousRuleError
from .errors import CheckError as CheckError
from .errors import DifferentiationError as DifferentiationError
from .errors import NumbarulesError as NumbarulesError
from .errors import NumbarulesWarning as NumbarulesWarning
from .errors import RecursionDepthError as RecursionDepthError
from .errors import RuleError as RuleError
from .errors import UnstableRuleError as UnstableRuleError
from .errors import UnsupportedError as UnsupportedError
from .reports.audit import capture_audit as capture_audit
from .reports.explain import explain as explain
from .rules.missing import not_implemented as not_implemented
from .rules.patterns import AbstractArray as AbstractArray
from .rules.patterns import AbstractMatrix as AbstractMatrix
from .rules.patterns import AbstractVector as AbstractVector
from .rules.patterns import Any as Any
from .rules.patterns import Number as Number
from .rules.patterns import Real as Real
from .rules.patterns import literal as literal
from .rules.register import alias as alias
from .rules.register import check_table as check_table
from .rules.register import is_a as is_a
from .rules.register import non_differentiable as non_differentiable
from .rules.register import opt_out as opt_out
from .rules.register import rrule as rrule
from .rules.register import rule_scope as rule_scope
from .rules.register import scalar_rule as scalar_rule
from .specialized import specialized as specialized
from .structs import struct as struct


def __getattr__(name: str) -> typing.Any:
    """`numbarules.structured` when it is first asked for: it teaches Numba new types for functions of NumPy."""
    if name == "structured":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
