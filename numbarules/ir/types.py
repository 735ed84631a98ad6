"""Type terms of the IR: what a value is, independent of Numba."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "INT64",
    "NONE",
    "POINTER",
    "Array",
    "NoneType",
    "Opaque",
    "Pointer",
    "Scalar",
    "Tuple",
    "Type",
    "has_parameters",
    "is_float",
    "is_float_array",
    "is_integer",
    "leaves",
    "parameters",
    "tuples",
    "writable",
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A machine number, by NumPy's name of its dtype (`float64`, `int64`, `bool`, `complex128`, ...)."""

    kind: str

    def __str__(self) -> str:
        return _SHORT.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class Array:
    """A NumPy array. `layout` is `C`, `F` or `A` (any strides)."""

    dtype: Scalar
    ndim: int
    layout: str = "C"
    mutable: bool = True
    aligned: bool = True

    def __str__(self) -> str:
        flags = ("" if self.mutable else " const") + ("" if self.aligned else " unaligned")
        return f"{self.dtype}[{','.join(':' * self.ndim)}]{self.layout}{flags}"


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple or a struct; `cls` is the named tuple class, the class of a struct (no Python type: it knows how to make one), or None.

    `homogeneous` tells Numba's UniTuple from its Tuple.
    """

    items: tuple[Type, ...]
    cls: Any = None
    homogeneous: bool = False

    @property
    def struct(self) -> bool:
        """True for a struct: its items are fields, and it is no sequence."""
        return self.cls is not None and not isinstance(self.cls, type)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the items, where they have names."""
        if self.cls is None:
            return ()
        return tuple(self.cls.fields if self.struct else self.cls._fields)

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"{'' if self.cls is None else self.cls.name if self.struct else self.cls.__name__}({inner})"


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in the record."""

    def __str__(self) -> str:
        return "ptr"


@dataclass(frozen=True, slots=True)
class NoneType:
    """The type of `None`."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that only the back end knows; `payload` is its own type object. `constant`: it has one value, a function for example."""

    name: str
    payload: Hashable = None
    constant: bool = False

    def __str__(self) -> str:
        return f"<{self.name}>"


Type = Scalar | Array | Tuple | Pointer | NoneType | Opaque

_SHORT = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32", "complex128": "c128", "complex64": "c64"}

FLOAT64 = Scalar("float64")
FLOAT32 = Scalar("float32")
INT64 = Scalar("int64")
BOOL = Scalar("bool")
POINTER = Pointer()
NONE = NoneType()


def is_float(t: Type) -> bool:
    """True for a real floating-point scalar: the leaves that carry derivatives."""
    return isinstance(t, Scalar) and t.kind in ("float64", "float32")


def is_integer(t: Type) -> bool:
    """True for integers and booleans."""
    return isinstance(t, Scalar) and (t.kind == "bool" or "int" in t.kind)


def is_float_array(t: Type) -> bool:
    """True for an array of real floating-point numbers."""
    return isinstance(t, Array) and is_float(t.dtype)


def leaves(t: Type) -> Iterator[Type]:
    """The types of the leaves of a (nested) tuple, in order; the type itself when it is none."""
    if isinstance(t, Tuple):
        for item in t.items:
            yield from leaves(item)
    else:
        yield t


def has_parameters(t: Type) -> bool:
    """True where a function has parameters for a value of type `t`: None and what has one value of its type need none."""
    if isinstance(t, Tuple):
        return any(map(has_parameters, t.items))
    return not isinstance(t, NoneType) and not (isinstance(t, Opaque) and t.constant)


def parameters(t: Type) -> list[Type]:
    """The leaves of a value of type `t` that a function has parameters for, in order."""
    return [leaf for leaf in leaves(t) if has_parameters(leaf)]


def tuples(t: Type) -> Iterator[Tuple]:
    """A tuple and those in it."""
    if isinstance(t, Tuple):
        yield t
        for item in t.items:
            yield from tuples(item)


def writable(t: Array) -> Array:
    """The same array type, mutable and aligned: the type of its shadow."""
    return replace(t, mutable=True, aligned=True)
