"""Tools that test derivatives and rules; and those that test the engine: an interpreter of the IR, and generators of programs."""

from .gradients import GradientCheck as GradientCheck
from .gradients import check_gradient as check_gradient
from .opt_out import OptOutCheck as OptOutCheck
from .opt_out import OptOutLosesWarning as OptOutLosesWarning
from .opt_out import check_opt_out as check_opt_out
from .rules import RuleCheck as RuleCheck
from .rules import check_rule as check_rule
from .stable import StableCheck as StableCheck
from .stable import check_stable as check_stable
