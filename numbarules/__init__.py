"""Compiled reverse-mode derivatives of Numba-jitted functions."""

from .api import grad as grad
from .api import njit_grad as njit_grad
from .api import value_and_grad as value_and_grad
from .api import vjp as vjp
from .errors import AliasingError as AliasingError
from .errors import DifferentiationError as DifferentiationError
from .errors import NumbarulesError as NumbarulesError
from .errors import PullbackError as PullbackError
from .errors import RecursionDepthError as RecursionDepthError
from .errors import UnsupportedError as UnsupportedError
