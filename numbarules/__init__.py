"""Compiled reverse-mode derivatives of Numba-jitted functions."""

from .api import grad as grad
from .api import value_and_grad as value_and_grad
from .errors import NumbarulesError as NumbarulesError
