"""The state of the interpreter: what variables hold, as the machine numbers and arrays that compiled code would have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.nodes import UNDEFINED, Const, Operand, Var
from ..ir.types import Array, Scalar, Type, is_float

__all__ = ["Dual", "IllFormed", "Machine"]


class IllFormed(Exception):
    """A program that does what no valid program does."""


@dataclass(slots=True)
class Dual:
    """A number or an array, and its derivative along one direction; both arrays have the same views."""

    value: Any
    tangent: Any


_NEVER = object()
_CLASSES: dict[str, type] = {"bool": bool, "int64": int, "float64": float}


class Machine:
    """The values of a function's variables. `wide`: float32 is computed as float64; `dual`: floats and float arrays are `Dual`."""

    def __init__(self, wide: bool = False, dual: bool = False) -> None:
        self.wide = wide
        self.dual = dual
        self.env: dict[Operand, Any] = {}  # variables, and constants as machine numbers
        self.classes = _CLASSES | ({"float32": float} if wide else {"float32": np.float32})

    def dtype(self, t: Scalar) -> Any:
        """The NumPy dtype in which numbers of the type `t` are computed."""
        return np.dtype("float64" if self.wide and t.kind == "float32" else t.kind)

    def scalar(self, value: Any, t: Type) -> Any:
        """`value` as a machine number of the type `t`."""
        if type(t) is Scalar and type(value) is self.classes.get(t.kind, _NEVER) and t.kind != "int64":
            return value
        if isinstance(value, Dual):
            if not isinstance(t, Scalar):
                return value
            if not is_float(t):
                return self.scalar(value.value, t)
            return Dual(self.scalar(value.value, t), float(value.tangent))
        if not isinstance(t, Scalar):
            return value
        if t.kind == "float64" or (t.kind == "float32" and self.wide):
            return float(value)
        if t.kind == "float32":
            return np.float32(value)
        if t.kind == "bool":
            return bool(value)
        if t.kind == "int64":
            value = int(value)
            return value if -(2**63) <= value < 2**63 else (value + 2**63) % 2**64 - 2**63
        return np.dtype(t.kind).type(value)

    def get(self, x: Operand) -> Any:
        """What an operand holds; it may be undefined."""
        value = self.env.get(x, _NEVER)
        if value is not _NEVER:
            return value
        if isinstance(x, Const):
            value = x.value if x.value is UNDEFINED or x.value is None else self.scalar(x.value, x.type)
            self.env[x] = value
            return value
        raise IllFormed(f"{x} is used where it has no value")

    def defined(self, x: Operand) -> Any:
        """What an operand holds; IllFormed where that was never defined."""
        value = self.env.get(x, _NEVER)
        if value is _NEVER:
            value = self.get(x)
        if value is UNDEFINED:
            raise IllFormed(f"{x} is used and was never defined")
        return value

    def define(self, v: Var, value: Any) -> None:
        """Gives a variable its value."""
        if type(value) is not self.classes.get(getattr(v.type, "kind", ""), _NEVER) and value is not UNDEFINED:
            self.check(v, value.value if type(value) is Dual else value)
        self.env[v] = value

    def check(self, v: Var, value: Any) -> None:
        """Refuses a value that is not of the variable's type."""
        match v.type:
            case Array(dtype, ndim, layout):
                if not isinstance(value, np.ndarray) or value.dtype != self.dtype(dtype) or value.ndim != ndim:
                    raise IllFormed(f"{v} holds {type(value).__name__} {getattr(value, 'dtype', '')}")
                if (layout == "C" and not value.flags.c_contiguous) or (layout == "F" and not value.flags.f_contiguous):
                    raise IllFormed(f"{v} holds an array with strides {value.strides}")
            case Scalar(kind):
                wanted = self.classes.get(kind)
                if wanted is not None and type(value) is not wanted:
                    raise IllFormed(f"{v} holds {value!r}, a {type(value).__name__}")
