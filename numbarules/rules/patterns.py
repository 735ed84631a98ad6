"""Type patterns: what an entry of the rule table says about one argument, which types it matches, and which pattern is more specific.

A pattern is one of

- `Any`: every type;
- a Numba type (`types.float64`): that type, literal or not;
- a Numba type class (`types.Array`): its instances;
- a `Category` (`AbstractMatrix`, `Real`): an open set of types that anyone may add to with `register_category`;
- a `Literal` (`literal(1)`; a bare int, bool, str or None means the same): that compile-time value;
- a `Union` (a tuple of patterns, or `A | B`).

`as_pattern` makes one from what users write, Python classes included.
"""

from __future__ import annotations

import types as python_types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import types

from numbarules.errors import RuleError, message

__all__ = [
    "AbstractArray",
    "AbstractMatrix",
    "AbstractVector",
    "Any",
    "Category",
    "Literal",
    "Number",
    "Real",
    "Tail",
    "Union",
    "apart",
    "as_pattern",
    "covers",
    "literal",
    "matches",
    "meet",
    "method_of_class",
    "more_specific",
    "names_type",
    "on_change",
    "overlap",
    "parts_of",
    "plain",
    "python_class_of",
    "register_category",
    "register_type",
    "show",
]

Pattern = Any  # Any | types.Type | type[types.Type] | type[Category] | Literal | Union | _Both: no static type says this


class Category:
    """An open set of Numba types, named by a class. A subclass is a narrower set; with `ndim=`, that part of its base.

    >>> class Banded(AbstractMatrix): ...
    >>> register_category(Banded, TridiagonalType)                                                        # doctest: +SKIP
    """

    _members: frozenset[Any] = frozenset()  # Numba types and type classes
    _ndim: int | None = None

    def __init_subclass__(cls, ndim: int | None = None) -> None:
        cls._members = frozenset()
        cls._ndim = ndim


class Number(Category):
    """Scalars: integers, booleans, floats and complex numbers."""


class Real(Number):
    """Real scalars: integers, booleans and floats."""


class AbstractArray(Category):
    """Every array-like: Numba arrays of any number of dimensions and any layout, and the structured types."""


class AbstractVector(AbstractArray, ndim=1):
    """The array-likes with one dimension."""


class AbstractMatrix(AbstractArray, ndim=2):
    """The array-likes with two dimensions."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value known when compiling; `True` and `1` differ."""

    value: int | bool | str | None
    kind: type


@dataclass(frozen=True, slots=True)
class Union:
    """Any one of several patterns, none of which covers another."""

    members: frozenset[Any]


@dataclass(frozen=True, slots=True)
class Tail:
    """As the last of an entry's patterns: any number of further arguments, each of which matches `pattern`."""

    pattern: Any


@dataclass(frozen=True, slots=True)
class _Both:
    """What two overlapping patterns have in common, where no single pattern says it."""

    parts: frozenset[Any]


def literal(value: int | bool | str | None) -> Literal:
    """The pattern of one compile-time value."""
    if value is not None and type(value) not in (int, bool, str):
        raise RuleError(
            message(
                f"{value!r} cannot be a literal pattern",
                contract="Numba knows integers, booleans, strings and None at compile time",
                instead="use the type of the value as the pattern",
            )
        )
    return Literal(value, type(value))


_CLASSES: dict[type, Any] = {
    float: types.Float,
    int: types.Integer,
    bool: types.Boolean,
    complex: types.Complex,
    str: types.UnicodeType,
    tuple: types.BaseTuple,
    np.ndarray: types.Array,
}
_changed: list[Callable[[], None]] = []


def register_category(category: type[Category], member: Any) -> None:
    """Adds a Numba type, a Numba type class or a registered Python class to a category and to those that contain it.

    Members of `AbstractArray` with an `ndim` attribute belong to `AbstractVector` or `AbstractMatrix` by it.
    """
    pattern = as_pattern(member)
    if not _is_type(pattern) and not _is_type_class(pattern):
        raise RuleError(
            message(f"{show(pattern)} cannot be a member of {category.__name__}", contract="a member is a Numba type or a Numba type class")
        )
    for base in category.__mro__:
        if issubclass(base, Category):
            base._members |= {pattern}
    for tell in _changed:
        tell()


def on_change(callback: Callable[[], None]) -> None:
    """Calls back whenever a category has got a member."""
    _changed.append(callback)


def register_type(python_class: type, numba_type: Any) -> None:
    """Lets a Python class stand for a Numba type or type class in annotations, patterns and method keys."""
    if not _is_type(numba_type) and not _is_type_class(numba_type):
        raise RuleError(
            message(
                f"{numba_type!r} cannot stand for {python_class.__name__}",
                contract="a Python class is registered with a Numba type or a Numba type class",
            )
        )
    _CLASSES[python_class] = numba_type


def as_pattern(written: Any) -> Any:
    """The pattern for what a user wrote; a `RuleError` where nothing of Numba's corresponds to it."""
    if written is Any or written is types.Any:
        return Any
    if isinstance(written, (Literal, Union, _Both)):
        return written
    if written is None or isinstance(written, (bool, int, str)):
        return literal(written)
    if isinstance(written, tuple):
        return _union(written)
    if isinstance(written, types.Type):
        return literal(value) if (value := _value(written)) is not _UNKNOWN else written
    origin = typing.get_origin(written)
    if origin is typing.Union or origin is python_types.UnionType or origin is typing.Literal:
        return _union(None if a is type(None) else a for a in typing.get_args(written))
    if isinstance(written, type):
        return _from_class(written)
    raise _no_pattern(written)


def python_class_of(numba_class: type) -> type | None:
    """The Python class that stands for a Numba type class; None where there is none."""
    for python_class, numba_type in reversed(_CLASSES.items()):
        if (numba_type if isinstance(numba_type, type) else type(numba_type)) is numba_class:
            return python_class
    return None


def method_of_class(function: Any) -> tuple[type, str] | None:
    """The registered Python class and the name of one of its methods or attributes, `np.ndarray.sum` for example."""
    for python_class in reversed(_CLASSES):
        for name, value in vars(python_class).items():
            if value is function:
                return python_class, name
    return None


def matches(pattern: Any, numba_type: types.Type) -> bool:
    """True where an argument of this Numba type, literal or not, is described by the pattern."""
    if pattern is Any:
        return True
    if isinstance(pattern, Union):
        return any(matches(p, numba_type) for p in pattern.members)
    if isinstance(pattern, _Both):
        return all(matches(p, numba_type) for p in pattern.parts)
    if isinstance(pattern, Literal):
        value = _value(numba_type)
        return type(value) is pattern.kind and value == pattern.value
    known = plain(numba_type)
    if isinstance(pattern, types.Type):
        return bool(pattern == known)
    if issubclass(pattern, Category):
        return _contains(pattern, known)
    return isinstance(known, pattern) or isinstance(numba_type, pattern)


def covers(general: Any, special: Any) -> bool:
    """True where `general` matches every type that `special` matches."""
    if general is Any or general is special:
        return True
    if isinstance(special, Union):
        return all(covers(general, p) for p in special.members)
    if isinstance(general, Union):
        return any(covers(p, special) for p in general.members)
    if isinstance(general, _Both):
        return all(covers(p, special) for p in general.parts)
    if isinstance(special, _Both):
        return any(covers(general, p) for p in special.parts)
    if special is Any:
        return False
    if isinstance(special, Literal):
        return general == special if isinstance(general, Literal) else matches(general, _type_of(special.value))
    if isinstance(general, Literal):
        return False
    if isinstance(special, types.Type):
        return matches(general, special)
    if isinstance(general, types.Type):
        return False
    if general in special.__mro__:
        return True
    if issubclass(general, Category) and not issubclass(special, Category):
        return not general._members.isdisjoint(special.__mro__)
    return False


def more_specific(p: Any, q: Any) -> bool:
    """True where `p` matches strictly fewer types than `q`: a partial order."""
    return covers(q, p) and not covers(p, q)


def meet(p: Any, q: Any) -> Any:
    """The pattern of what both match, or `_NOTHING` where no known type matches both."""
    if covers(q, p):
        return p
    if covers(p, q):
        return q
    if isinstance(p, Union):
        return _union_of_meets((m, q) for m in p.members)
    if isinstance(q, Union):
        return _union_of_meets((p, m) for m in q.members)
    return _Both(frozenset((p, q))) if _overlap(p, q) else _NOTHING


def overlap(p: Any, q: Any) -> bool:
    """True where some known type matches both."""
    return meet(p, q) is not _NOTHING


def parts_of(pattern: Any) -> Iterable[Any]:
    """The patterns that a pattern is made of: the alternatives of a union, what an intersection has in common, or itself."""
    if isinstance(pattern, Tail):
        return parts_of(pattern.pattern)
    if isinstance(pattern, Union):
        return pattern.members
    return pattern.parts if isinstance(pattern, _Both) else (pattern,)


def apart(p: Any, q: Any) -> bool:
    """True where two Numba type classes are unrelated: a quick sign that nothing matches both."""
    return _is_type_class(p) and _is_type_class(q) and p not in q.__mro__ and q not in p.__mro__


def names_type(pattern: Any) -> bool:
    """True for a pattern that says which type, or class of types, is meant: no category."""
    if isinstance(pattern, Union):
        return all(map(names_type, pattern.members))
    return _is_type(pattern) or _is_type_class(pattern) or isinstance(pattern, Literal)


def show(pattern: Any) -> str:
    """The pattern as a reader would write it."""
    if pattern is Any:
        return "Any"
    if isinstance(pattern, Literal):
        return repr(pattern.value)
    if isinstance(pattern, Union):
        return " | ".join(sorted(show(p) for p in pattern.members))
    if isinstance(pattern, _Both):
        return " & ".join(sorted(show(p) for p in pattern.parts))
    if isinstance(pattern, Tail):
        return f"*{show(pattern.pattern)}"
    return pattern.__name__ if isinstance(pattern, type) else str(pattern)


class _Absent:
    """The class of the two answers below, which no value equals."""


_UNKNOWN: Any = _Absent()  # the value of a type that has none at compile time
_NOTHING: Any = _Absent()  # the meet of two disjoint patterns


def _is_type(x: Any) -> bool:
    return isinstance(x, types.Type)


def _is_type_class(x: Any) -> bool:
    return isinstance(x, type) and types.Type in x.__mro__  # half the time of issubclass, which asks the abstract base class


def _type_of(value: int | bool | str | None) -> types.Type:
    return types.none if value is None else types.literal(value)


def _value(t: types.Type) -> Any:
    """The compile-time value of a literal, an omitted argument or None; `_UNKNOWN` for every other type."""
    if isinstance(t, types.NoneType):
        return None
    if isinstance(t, types.Omitted):
        return t.value
    return t.literal_value if isinstance(t, (types.IntegerLiteral, types.BooleanLiteral, types.StringLiteral)) else _UNKNOWN


def plain(t: types.Type) -> types.Type:
    """The type without what is known of its value."""
    return numba.typeof(t.value) if isinstance(t, types.Omitted) else types.unliteral(t)


def _contains(category: type[Category], t: types.Type) -> bool:
    if t in category._members or not category._members.isdisjoint(type(t).__mro__):
        return True
    if category._ndim is None:
        return False
    return getattr(t, "ndim", None) == category._ndim and any(
        _contains(b, t) for b in category.__bases__ if issubclass(b, Category) and b is not Category
    )


def _from_class(written: type) -> Any:
    if issubclass(written, types.Type) or (issubclass(written, Category) and written is not Category):
        return written
    if written in _CLASSES:
        return _CLASSES[written]
    if issubclass(written, np.generic):
        try:
            return numba.from_dtype(np.dtype(written))
        except (TypeError, NotImplementedError) as e:
            raise _no_pattern(written) from e
    if hasattr(written, "class_type"):  # a jitclass
        return written.class_type.instance_type
    raise _no_pattern(written)


def _no_pattern(written: Any) -> RuleError:
    return RuleError(
        message(
            f"{written!r} is not a type pattern",
            contract="a pattern is a Numba type or type class, a category, a literal, a registered Python class, Any, or several",
            instead=f"register_type({written.__name__}, ItsNumbaType) before it is used" if isinstance(written, type) else "",
        )
    )


def _union(written: Iterable[Any]) -> Any:
    members = {as_pattern(w) for w in written}
    if not members:
        raise RuleError("an empty union matches nothing and cannot be a pattern")
    widest = frozenset(p for p in members if not any(q is not p and covers(q, p) and not (covers(p, q) and id(p) < id(q)) for q in members))
    return next(iter(widest)) if len(widest) == 1 else Union(widest)


def _union_of_meets(pairs: Iterable[tuple[Any, Any]]) -> Any:
    meets = [m for p, q in pairs if (m := meet(p, q)) is not _NOTHING]
    return _union(meets) if meets else _NOTHING


def _overlap(p: Any, q: Any) -> bool:
    """True where two incomparable patterns, no unions, have a known type in common."""
    if isinstance(p, _Both) or isinstance(q, _Both):
        pairs = [(a, b) for a in getattr(p, "parts", (p,)) for b in getattr(q, "parts", (q,))]
        return all(meet(a, b) is not _NOTHING for a, b in pairs)
    p_open, q_open = (isinstance(x, type) and issubclass(x, Category) for x in (p, q))
    if not p_open and not q_open:
        return False  # two types, or type classes of which neither derives from the other
    if p_open and q_open:
        if None not in (n := (_dimensions(p), _dimensions(q))) and n[0] != n[1]:
            return False
        return (
            any(covers(q, m) or any(covers(n, m) or covers(m, n) for n in q._members) for m in p._members)
            or _refines(p, q)
            or _refines(q, p)
        )
    category, other = (p, q) if p_open else (q, p)
    own = getattr(other, "ndim", None)
    if isinstance(own, int) and _dimensions(category) not in (None, own):
        return False  # all types of the class have another number of dimensions
    return _is_type_class(other) and (any(covers(other, m) for m in category._members) or _refines(category, other))


def _refines(category: type[Category], other: Any) -> bool:
    """True where `category` takes by `ndim` a part of a base that shares types with `other`, which is not known to have another."""
    if category._ndim is None:
        return False
    bases = [b for b in category.__bases__ if issubclass(b, Category) and b is not Category]
    if any(s._ndim not in (None, category._ndim) and covers(s, other) for b in bases for s in b.__subclasses__()):
        return False
    return any(meet(b, other) is not _NOTHING for b in bases)


def _dimensions(category: type[Category]) -> int | None:
    """The number of dimensions of a category's types, where it or one that contains it says so."""
    return next((c._ndim for c in category.__mro__ if issubclass(c, Category) and c._ndim is not None), None)


for _category, _member in (
    (Number, types.Number),
    (Real, types.Float),
    (Real, types.Integer),
    (Real, types.Boolean),
    (AbstractArray, types.Array),
):
    register_category(_category, _member)
