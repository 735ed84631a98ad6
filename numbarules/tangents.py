"""Tangent spaces: the one type in which the derivative by a value of each type comes.

A float's is a float, an array's an array of its dtype and shape. A tuple's is a tuple of its items' tangents, None for items that have
none. A struct's is a struct of its class: the fields that have no derivative (a shape, indices) are those of the struct itself, so that the
tangent can be used as such a struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as OneOf

from .ir.types import NONE, Array, NoneType, Opaque, Tuple, Type, is_float, is_float_array, leaves

__all__ = ["Part", "has_tangent", "has_tangents", "incoming_type", "parts", "tangent_type"]

Part = OneOf["tangent", "kept", "absent"]
"""What a leaf of a value is in its tangent: a tangent, the leaf itself, or nothing."""


def has_tangent(leaf: Type) -> bool:
    """True for a leaf that has a derivative: a real float, or an array of such."""
    return is_float(leaf) or is_float_array(leaf)


def has_tangents(t: Type) -> bool:
    """True where some leaf of a value of type `t` has a derivative."""
    return any(map(has_tangent, leaves(t)))


def tangent_type(t: Type) -> Type:
    """The type of a gradient by a value of type `t`; None where no leaf of it has one. New arrays are in F order for F, else in C order."""
    if isinstance(t, Tuple):
        return _field_type(t) if t.struct else Tuple(tuple(map(tangent_type, t.items)), t.cls)
    return incoming_type(t) if has_tangent(t) else NONE


def incoming_type(t: Type) -> Type:
    """The type in which a cotangent of a leaf comes in from outside, and its value goes out: an array of its own memory."""
    return Array(t.dtype, t.ndim, "F" if t.layout == "F" else "C") if isinstance(t, Array) else t


def parts(t: Type, kept: bool = False) -> Iterator[Part]:
    """What the leaves of a value are in its tangent, for those leaves that are parameters of a function; `kept`: inside a struct."""
    if isinstance(t, Tuple):
        for item in t.items:
            yield from parts(item, kept or t.struct)
    elif not isinstance(t, NoneType) and not (isinstance(t, Opaque) and t.constant):
        yield "tangent" if has_tangent(t) else "kept" if kept else "absent"


def _field_type(t: Type) -> Type:
    return Tuple(tuple(map(_field_type, t.items)), t.cls) if isinstance(t, Tuple) else incoming_type(t)
