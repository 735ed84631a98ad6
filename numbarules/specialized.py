"""Implementations of functions for argument types of one's own: in Python, in jitted code, and as what derivatives differentiate."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.extending import overload, overload_attribute, overload_method

from ._numba import INPLACE, Dispatcher, forget_implementations
from .errors import RuleError, message
from .rules.patterns import Category, on_change, parts_of, show
from .rules.register import entry_of
from .rules.table import Entry, Table, function_key, show_key, table
from .structs import StructType

__all__ = ["apply", "specialized"]

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

implementations = Table()
"""Which implementation serves which argument types: ordered as rules are, apart from them."""


def specialized(
    function: Any, *, method: str | None = None, attribute: bool = False, replace: bool = False
) -> Callable[[Implementation], Implementation]:
    """Registers the decorated function as what `function` does for arguments of the types that its annotations name; returns it unchanged.

    `function`: a callable (`np.trace`, `operator.matmul`, a class for its constructor), or a method as `(Class, "name")`; with
    `attribute=True` that is an attribute. `method`: a method of the first argument's type that does the same. The annotations are
    patterns, as those of a rule, and the most specific implementation serves a call. Arguments are positional.

    The function is written in what Numba compiles, and serves three ends:

    - in Python, the operators, the NumPy functions and the methods of structs call it as it is;
    - in jitted code, calls of `function` compile it. For types that no implementation matches nothing changes;
    - in derivatives, the signature is opted out of rules: it is the implementation that is differentiated.

    At least one argument's pattern is a type of your own (a struct, a type class that is not Numba's, a category of your own), or the
    function is yours: Numba and NumPy have implementations for their types, which come first. Register before jitted code that calls the
    function is compiled.

    Raises RuleError where the annotations are no patterns or none is a type of your own, AmbiguousRuleError where two implementations tie
    or an equal signature is there already and `replace` is not given.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> @nr.struct(category=nr.AbstractVector, ndim=1)
    ... class Scaled:
    ...     base: np.ndarray
    ...     factor: float
    >>> @nr.specialized(np.sum, method="sum")
    ... def scaled_sum(x: Scaled):
    ...     return x.factor * np.sum(x.base)
    >>> float(np.sum(Scaled(np.ones(3), 2.0)))
    6.0
    >>> @nr.njit_grad
    ... def total(x):
    ...     return x.sum() ** 2
    >>> total(Scaled(np.ones(3), 2.0))
    36.0
    >>> nr.no_rrule(np.sum, numba.typeof(Scaled(np.ones(3), 2.0)))
    True
    """
    key = function_key(function)
    if isinstance(key, Dispatcher):
        raise RuleError(
            message(
                f"{show_key(key)} cannot be specialized",
                contract="Numba asks for implementations of Python functions; a jitted function has its own code",
                instead="overload a plain function, and call that",
            )
        )
    frame = sys._getframe(1)

    def register(code: Implementation) -> Implementation:
        entry = entry_of(key, code, "opt_out", frame, payload=code)
        if isinstance(key, tuple):
            entry = dataclasses.replace(entry, patterns=(key[0], *entry.patterns[1:]))
        _refuse_foreign(entry)
        implementation = dataclasses.replace(entry, kind="rule")
        table.add(entry, replace)
        try:
            implementations.add(implementation, replace)
            _teach_numba(entry, method, attribute)
        except RuleError:
            implementations.remove(implementation)
            table.remove(entry)
            raise
        _teach_python(entry, method, attribute)
        return code

    return register


def _refuse_foreign(entry: Entry) -> None:
    """Refuses an implementation of somebody else's function for nothing but somebody else's types: it would never be asked for."""
    key = entry.function
    module = getattr(key, "__module__", None) or "numpy"  # ufuncs have none
    if not isinstance(key, tuple) and module.partition(".")[0] not in _FOREIGN:
        return
    if any(map(_is_own, _parts(entry))):
        return
    raise RuleError(
        message(
            f"{entry.signature} cannot be specialized: no argument is of a type of your own",
            filename=entry.origin.filename,
            line=entry.origin.line,
            contract="at least one annotation is a struct class, a type class that is not Numba's, or a category of your own;"
            " for other types the function has the implementations of Numba",
            found=f"({', '.join(map(show, entry.patterns))})",
            instead="annotate the argument with your type, `x: MyStruct`; what a derivative does for arrays is said by a rule",
        )
    )


_FOREIGN = frozenset({"numba", "numpy", "scipy", "math", "cmath", "operator", "_operator", "builtins"})
_NAMED_BY_USERS = types.ClassInstanceType, types.BaseNamedTuple, types.Record
"""Numba's classes of types whose instances are a user's own."""


def _is_own(pattern: Any) -> bool:
    if isinstance(pattern, _NAMED_BY_USERS):
        return True
    cls = type(pattern) if isinstance(pattern, types.Type) else pattern
    if not isinstance(cls, type) or not issubclass(cls, types.Type | Category):
        return False
    return cls.__module__.partition(".")[0] != "numba" and cls.__module__ != Category.__module__


def apply(function: Any, *args: Any) -> Any:
    """What the implementation for these arguments returns, called in Python; NotImplemented where there is none."""
    try:
        argument_types = tuple(map(numba.typeof, args))
    except ValueError:  # Numba has no type for an argument
        return NotImplemented
    code = _chosen(function_key(function), argument_types)
    return NotImplemented if code is None else code(*args)


def _chosen(key: Any, argument_types: tuple[types.Type, ...]) -> Any:
    entry = implementations.lookup(key, argument_types).entry
    return None if entry is None else entry.payload


# ---------------------------------------------------------------------------------------------- in jitted code

_taught: dict[Hashable, tuple[Callable[..., Any], list[str]]] = {}
"""What Numba was told of: the function that chooses an implementation, and the parameters of the implementations."""


def _teach_numba(entry: Entry, method: str | None, attribute: bool) -> None:
    """Sees to it that Numba asks for implementations, and asks again for types that had none."""
    key = entry.function
    if isinstance(key, tuple):
        register = (overload_attribute if attribute else overload_method)(*key, strict=False)
        _teach(key, key, entry, register)
    else:
        _teach(id(key), key, entry, overload(key, strict=False))
        for inplace in (i for i, f in INPLACE.items() if f is key):
            _teach(id(inplace), key, entry, overload(inplace, strict=False))
    if method is not None:
        owner = _owner(entry)
        _teach((owner, method), key, entry, overload_method(owner, method, strict=False))


def _teach(place: Hashable, key: Any, entry: Entry, register: Callable[[Any], Any]) -> None:
    parameters = list(inspect.signature(entry.payload).parameters)
    if place not in _taught:
        signature = inspect.Signature([inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters])

        def choose(*args: Any, **keywords: Any) -> Any:
            return _chosen(key, signature.bind(*args, **keywords).args if keywords else args)

        if isinstance(place, tuple):  # Numba binds the arguments of a method to the parameters of what was registered for it
            choose.__signature__ = signature  # type: ignore[attr-defined]
        else:
            choose.__signature__ = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])  # type: ignore[attr-defined]
        _taught[place] = register(choose), parameters
    choose, known = _taught[place]
    if isinstance(place, tuple) and known != parameters:
        raise RuleError(
            message(
                f"{entry.signature} cannot be a method",
                filename=entry.origin.filename,
                line=entry.origin.line,
                contract="the implementations of a method have parameters of the same names",
                found=f"({', '.join(parameters)}) and ({', '.join(known)})",
            )
        )
    forget_implementations(choose if isinstance(place, tuple) else key, choose)


def _owner(entry: Entry) -> type[types.Type]:
    """The type class that has a method: that of the first argument, and for a pattern of many types every struct."""
    first = entry.patterns[0]
    if isinstance(first, types.Type):
        first = type(first)
    return first if isinstance(first, type) and issubclass(first, types.Type) else StructType


# ---------------------------------------------------------------------------------------------- in Python

_DUNDER = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "truediv",
    operator.matmul: "matmul",
    operator.pow: "pow",
}
_UNARY = {operator.neg: "__neg__", operator.getitem: "__getitem__", abs: "__abs__", len: "__len__"}
_UFUNCS = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.matmul: operator.matmul,
    np.power: operator.pow,
    np.negative: operator.neg,
}


_open: list[tuple[Entry, str | None, bool]] = []
"""The implementations for categories, which may get members later."""


def _teach_python(entry: Entry, method: str | None, attribute: bool) -> None:
    """Gives struct classes that an implementation names what Python needs to find it, where they have none of their own."""
    if any(issubclass(p, Category) for p in _parts(entry) if isinstance(p, type)):
        _open.append((entry, method, attribute))
    _install_all(entry, method, attribute)


def _teach_new_members() -> None:
    for each in _open:
        _install_all(*each)


on_change(_teach_new_members)


def _install_all(entry: Entry, method: str | None, attribute: bool) -> None:
    key = entry.function
    for position, cls in _struct_classes(entry):
        if isinstance(key, tuple):
            _install(cls, key[1], property(_caller(key)) if attribute else _caller(key))
        elif key in _DUNDER:
            _install(cls, f"__{_DUNDER[key]}__", _caller(key))
            _install(cls, f"__r{_DUNDER[key]}__", _reflected(key))
        elif key in _UNARY:
            _install(cls, _UNARY[key], _caller(key))
        if method is not None and position == 0:
            _install(cls, method, _caller(key))
        _install(cls, "__array_function__", _array_function)
        _install(cls, "__array_ufunc__", _array_ufunc)


def _struct_classes(entry: Entry) -> Iterator[tuple[int, type]]:
    for position, pattern in enumerate(entry.patterns):
        for part in parts_of(pattern):
            members = part._members if isinstance(part, type) and issubclass(part, Category) else (part,)
            for each in members:
                cls = type(each) if isinstance(each, types.Type) else each
                if isinstance(cls, type) and issubclass(cls, StructType):
                    yield position, cls.struct.python_class


def _parts(entry: Entry) -> Iterator[Any]:
    for pattern in entry.patterns:
        yield from parts_of(pattern)


def _install(cls: type, name: str, value: Any) -> None:
    if not hasattr(cls, name):
        setattr(cls, name, value)


def _caller(key: Any) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return _or_refuse(key, args, apply(key, *args))

    def operate(*args: Any) -> Any:
        return apply(key, *args)

    return operate if key in _DUNDER else call


def _reflected(key: Any) -> Callable[..., Any]:
    def operate(right: Any, left: Any) -> Any:
        return apply(key, left, right)

    return operate


def _array_function(self: Any, function: Any, _: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    return NotImplemented if keywords else apply(function, *args)


def _array_ufunc(self: Any, ufunc: Any, call: str, *args: Any, **keywords: Any) -> Any:
    key = _UFUNCS.get(ufunc, ufunc)
    return NotImplemented if keywords or call != "__call__" else apply(key, *args)


def _or_refuse(key: Any, args: tuple[Any, ...], value: Any) -> Any:
    if value is NotImplemented:
        raise TypeError(f"{show_key(key)} is not defined for ({', '.join(type(a).__name__ for a in args)})")
    return value
