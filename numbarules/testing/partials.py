"""Partial derivatives of the functions that random programs call, written once more on purpose: nothing is shared with the rules."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..primitives import ieee_divide

__all__ = ["DERIVATIVES", "LINEAR", "LINEAR_METHODS"]

Partials = Callable[..., tuple[Any, ...]]

# The partial derivatives by each argument, from (y, *args): the array functions among them elementwise.
DERIVATIVES: dict[Any, Partials] = {
    operator.add: lambda y, a, b: (1.0, 1.0),
    operator.sub: lambda y, a, b: (1.0, -1.0),
    operator.mul: lambda y, a, b: (b, a),
    operator.truediv: lambda y, a, b: (1.0 / b, -a / (b * b)),
    ieee_divide: lambda y, a, b: (1.0 / b, -a / (b * b)) if b else (math.inf, math.nan),
    operator.neg: lambda y, a: (-1.0,),
    operator.pos: lambda y, a: (1.0,),
    operator.pow: lambda y, a, b: (b * a ** (b - 1) if b else 0.0, y * math.log(a) if a > 0 else 0.0),
    operator.floordiv: lambda y, a, b: (0.0, 0.0),
    operator.mod: lambda y, a, b: (1.0, -(a // b)),
    builtins.abs: lambda y, a: (float(a > 0) - float(a < 0),),
    builtins.max: lambda y, a, b: (1.0, 0.0) if a > b else (0.0, 1.0) if a < b else (0.5, 0.5),
    builtins.min: lambda y, a, b: (1.0, 0.0) if a < b else (0.0, 1.0) if a > b else (0.5, 0.5),
    math.sin: lambda y, a: (math.cos(a),),
    math.cos: lambda y, a: (-math.sin(a),),
    math.tanh: lambda y, a: (1.0 / math.cosh(a) ** 2 if abs(a) < 300 else 0.0,),
    math.exp: lambda y, a: (math.exp(a),),
    math.log: lambda y, a: (1.0 / a,),
    math.sqrt: lambda y, a: (0.5 / math.sqrt(a),),
    math.asin: lambda y, a: (1.0 / math.sqrt((1.0 - a) * (1.0 + a)),),
    math.acos: lambda y, a: (-1.0 / math.sqrt((1.0 - a) * (1.0 + a)),),
    math.atan: lambda y, a: (1.0 / (1.0 + a * a),),
    math.floor: lambda y, a: (0.0,),
    math.hypot: lambda y, a, b: (a / y, b / y) if y else (0.0, 0.0),
    math.atan2: lambda y, a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
}
DERIVATIVES.update(
    {
        np.add: lambda y, a, b: (1.0, 1.0),
        np.multiply: lambda y, a, b: (b, a),
        np.negative: lambda y, a: (-1.0,),
        np.sin: lambda y, a: (np.cos(a),),
        np.cos: lambda y, a: (-np.sin(a),),
        np.tanh: lambda y, a: (1.0 / np.cosh(a) ** 2,),
        np.exp: lambda y, a: (np.exp(a),),
        np.sqrt: lambda y, a: (0.5 / np.sqrt(a),),
        np.arctan: lambda y, a: (1.0 / (1.0 + a * a),),
        np.abs: lambda y, a: (np.sign(a),),
        np.square: lambda y, a: (2.0 * a,),
    }
)

# Functions and methods that commute with the derivative: the tangent goes through the same call.
LINEAR: set[Any] = {np.sum, np.copy, np.zeros_like, np.empty_like, np.ravel, np.transpose, np.ascontiguousarray, np.asarray}
LINEAR_METHODS = {"sum", "copy", "ravel", "flatten", "reshape", "transpose", "T", "astype"}
