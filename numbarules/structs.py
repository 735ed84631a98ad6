"""Immutable structs of named fields: Python classes whose values Numba passes in and out, makes and reads."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numba import types
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    make_attribute_wrapper,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from ._numba_lowering import cgutils, impl_ret_borrowed, lower_constant
from .errors import RuleError, message
from .rules.patterns import Category, register_category, register_type

__all__ = ["StructClass", "StructType", "maker", "struct", "struct_of"]

Class = TypeVar("Class", bound=type)


class StructType(types.Type):
    """The Numba type of a struct with fields of certain types. Each struct class has a subclass of its own, which patterns can name."""

    struct: ClassVar[StructClass]

    def __init__(self, items: tuple[types.Type, ...]) -> None:
        self.items = items
        super().__init__(name=f"{self.struct.name}({', '.join(map(str, items))})")

    @property
    def key(self) -> tuple[types.Type, ...]:
        return self.items

    def __reduce__(self) -> tuple[Any, ...]:
        return _type_again, (self.struct.python_class, self.items)


@dataclass(frozen=True, slots=True, eq=False)
class StructClass:
    """What is known of a struct class. `make` builds a value from all fields in order, in Python and in jitted code.

    `from_fields`: so does the class itself; it has no constructor of its own.
    """

    name: str
    fields: tuple[str, ...]
    python_class: type
    make: Callable[..., Any]
    type_class: type[StructType]
    from_fields: bool
    _types: dict[tuple[types.Type, ...], StructType] = field(default_factory=dict, repr=False)

    def numba_type(self, items: tuple[types.Type, ...]) -> StructType:
        """The type of a value whose fields have these types; what is known of their values is dropped."""
        known = self._types.get(items)
        if known is None:
            known = self._types[items] = self.type_class(tuple(map(types.unliteral, items)))
        return known


@typing.overload
def struct(cls: Class, /) -> Class: ...


@typing.overload
def struct(
    *, category: type[Category] | None = None, ndim: int | Callable[[StructType], int] | None = None
) -> Callable[[Class], Class]: ...


def struct(
    cls: type | None = None, /, *, category: type[Category] | None = None, ndim: int | Callable[[StructType], int] | None = None
) -> Any:
    """A class decorator that makes an immutable struct of the annotated fields and teaches it to Numba. Returns the class itself.

    `@struct` is `@struct()`.

    The fields may be numbers, arrays of any layout, tuples, strings and other structs; the annotations name them and are not checked.
    In Python and in jitted code, `Name(field, ...)` builds a value and `value.field` reads a field; values are passed in and out of
    jitted functions, and may be globals of theirs. Equality and hash go by the fields. A class that defines `__new__` is called by it in
    Python, and has in jitted code no constructor but the ones that are registered for it.

    Methods and properties of the class body are for Python alone. One that jitted code calls too is a function outside it, decorated by
    `numbarules.specialized((Name, "method"))`, with `attribute=True` for a property.

    `category`: what rule patterns take the type for, `AbstractMatrix` or `Number` for example; in annotations of rules the class itself
    stands for its type. `ndim`: the number of dimensions, for array-likes; or a function of the Numba type that tells it.

    Raises RuleError for a class without fields, for a field whose name starts with an underscore, and for what is no class.

    >>> import numba
    >>> import numbarules as nr
    >>> @nr.struct(category=nr.Number)
    ... class Dual:
    ...     value: float
    ...     slope: float
    >>> @numba.njit
    ... def square(x):
    ...     return Dual(x.value * x.value, 2.0 * x.value * x.slope)
    >>> square(Dual(3.0, 1.0))
    Dual(value=9.0, slope=6.0)
    """

    def decorate(cls: Class) -> Class:
        if not isinstance(cls, type):
            raise RuleError(message(f"{cls!r} cannot be a struct", contract="a struct is made of a class", instead="@struct(category=...)"))
        made = _struct_class(cls, {} if ndim is None else {"ndim": property(ndim) if callable(ndim) else ndim})
        _teach_typing(made)
        _teach_conversion(made)
        register_type(cls, made.type_class)
        if category is not None:
            register_category(category, made.type_class)
        return cls

    return decorate if cls is None else decorate(cls)


def maker(python_class: type) -> Callable[..., Any]:
    """The function that builds a value of a struct class from all its fields, whatever constructor the class has."""
    made: StructClass = python_class.__numbarules_struct__  # type: ignore[attr-defined]
    return made.make


def struct_of(numba_type: Any) -> StructClass | None:
    """The struct class of a Numba type; None where it is not the type of a struct."""
    return numba_type.struct if isinstance(numba_type, StructType) else None


# ---------------------------------------------------------------------------------------------- the Python class


def _struct_class(cls: type, attributes: dict[str, Any]) -> StructClass:
    own_new, own_repr = _defines(cls, "__new__"), _defines(cls, "__repr__")
    dataclass(frozen=True, eq=False, repr=False, init=not own_new)(cls)
    fields = tuple(f.name for f in dataclasses.fields(cls))
    if not fields or any(f.startswith("_") for f in fields):
        raise RuleError(
            message(
                f"{cls.__name__} cannot be a struct",
                contract="a struct has at least one annotated field, and the names of fields start with a letter",
                found=f"the fields {', '.join(fields) or '(none)'}",
            )
        )

    def make(*values: Any) -> Any:
        value: Any = object.__new__(cls)
        for name, v in zip(fields, values, strict=True):
            object.__setattr__(value, name, v)
        return value

    make.__name__ = f"make_{cls.__name__}"
    make.__qualname__ = f"{cls.__qualname__}.{make.__name__}"
    type_class = type(f"{cls.__name__}Type", (StructType,), {"__module__": cls.__module__, **attributes})
    made = StructClass(cls.__name__, fields, cls, make, type_class, not own_new)
    make.struct = type_class.struct = made  # type: ignore[attr-defined]
    added: dict[str, Any] = {"__numbarules_struct__": made, "__eq__": _equal, "__hash__": _hash, "__reduce__": _reduce}
    for name, value in added.items():
        setattr(cls, name, value)
    if not own_repr:
        cls.__repr__ = _repr  # type: ignore[assignment, method-assign]
    return made


def _defines(cls: type, name: str) -> bool:
    return any(name in c.__dict__ for c in cls.__mro__ if c is not object)


def _values(value: Any) -> list[Any]:
    return [getattr(value, f) for f in value.__numbarules_struct__.fields]


def _equal(self: Any, other: object) -> bool:
    return type(self) is type(other) and all(map(_same, _values(self), _values(other)))


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and bool(np.array_equal(a, b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _hash(self: Any) -> int:
    return hash((type(self), *_values(self)))


def _repr(self: Any) -> str:
    made: StructClass = self.__numbarules_struct__
    return f"{made.name}({', '.join(f'{f}={v!r}' for f, v in zip(made.fields, _values(self), strict=True))})"


def _reduce(self: Any) -> tuple[Any, ...]:
    return _again, (type(self), *_values(self))


def _again(cls: Any, *values: Any) -> Any:
    return cls.__numbarules_struct__.make(*values)


def _type_again(cls: Any, items: tuple[types.Type, ...]) -> StructType:
    made: StructClass = cls.__numbarules_struct__
    return made.numba_type(items)


# ---------------------------------------------------------------------------------------------- the Numba type


def _teach_typing(made: StructClass) -> None:
    """The data model, the fields, and the calls that build a value."""

    @register_model(made.type_class)
    class Model(models.StructModel):
        def __init__(self, manager: Any, t: StructType) -> None:
            super().__init__(manager, t, list(zip(made.fields, t.items, strict=True)))

    for name in made.fields:
        make_attribute_wrapper(made.type_class, name, name)

    @typeof_impl.register(made.python_class)
    def typeof(value: Any, c: Any) -> StructType | None:
        known: _Typed | None = value.__dict__.get(_TYPED)
        if known is not None and known.holds():
            return known.type
        items = [typeof_impl(v, c) for v in _values(value)]
        if None in items:
            return None
        found = made.numba_type(tuple(items))
        object.__setattr__(value, _TYPED, _Typed(found, tuple(_layout(a) for a in _arrays(value))))
        return found

    builders = [made.make, made.python_class] if made.from_fields else [made.make]
    for builder in builders:
        type_callable(builder)(_typer_for(made))
        lower_builtin(builder, types.VarArg(types.Any))(lower_build)


_TYPED = "_numbarules_typed"


@dataclass(frozen=True, slots=True)
class _Typed:
    """What a value keeps of its own type: finding it anew takes 20 to 100 us, at each call from Python.

    Fields cannot be set; an array's flags, dimensions and dtype can, in place, and are looked at again.
    """

    type: StructType
    arrays: tuple[tuple[Any, int, int, Any], ...]

    def holds(self) -> bool:
        return all(a.flags.num == flags and a.ndim == ndim and a.dtype == dtype for a, flags, ndim, dtype in self.arrays)


def _layout(array: Any) -> tuple[Any, int, int, Any]:
    return array, array.flags.num, array.ndim, array.dtype


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _arrays(item)
    elif hasattr(value, "__numbarules_struct__"):
        yield from _arrays(tuple(_values(value)))


def _typer_for(made: StructClass) -> Callable[..., Any]:
    signature = inspect.Signature([inspect.Parameter(f, inspect.Parameter.POSITIONAL_OR_KEYWORD) for f in made.fields])

    def typing(context: Any) -> Any:
        def typer(*args: Any, **keywords: Any) -> StructType | None:
            try:
                return made.numba_type(signature.bind(*args, **keywords).args)
            except TypeError:
                return None

        typer.__signature__ = signature  # type: ignore[attr-defined]
        return typer

    return typing


def lower_build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    t: StructType = sig.return_type
    value = cgutils.create_struct_proxy(t)(context, builder)
    for name, arg, given, wanted in zip(t.struct.fields, args, sig.args, t.items, strict=True):
        setattr(value, name, context.cast(builder, arg, given, wanted))
    return impl_ret_borrowed(context, builder, t, value._getvalue())


def _teach_conversion(made: StructClass) -> None:
    """From Python objects to native values and back. The rules of ownership are those of tuples."""

    @unbox(made.type_class)
    def from_python(t: StructType, obj: Any, c: Any) -> Any:
        value = cgutils.create_struct_proxy(t)(c.context, c.builder)
        failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
        cleanups = []
        for name, item in zip(made.fields, t.items, strict=True):
            held = c.pyapi.object_getattr_string(obj, name)  # lives as long as `obj`, which does not change
            c.pyapi.decref(held)
            native = c.unbox(item, held)
            setattr(value, name, native.value)
            with c.builder.if_then(native.is_error, likely=False):
                c.builder.store(cgutils.true_bit, failed)
            if native.cleanup is not None:
                cleanups.append(native.cleanup)

        def cleanup() -> None:
            for one in reversed(cleanups):
                one()

        return NativeValue(value._getvalue(), is_error=c.builder.load(failed), cleanup=cleanup if cleanups else None)

    @box(made.type_class)
    def to_python(t: StructType, value: Any, c: Any) -> Any:
        native = cgutils.create_struct_proxy(t)(c.context, c.builder, value=value)
        boxed = [c.box(item, getattr(native, name)) for name, item in zip(made.fields, t.items, strict=True)]
        missing = cgutils.false_bit
        for b in boxed:
            missing = c.builder.or_(missing, cgutils.is_null(c.builder, b))
        out = cgutils.alloca_once_value(c.builder, c.pyapi.get_null_object())
        with c.builder.if_then(c.builder.not_(missing)):
            make, cls = _object(c, _again), _object(c, made.python_class)
            c.builder.store(c.pyapi.call_function_objargs(make, [cls, *boxed]), out)
            c.pyapi.decref(cls)
            c.pyapi.decref(make)
        for b in boxed:
            c.pyapi.decref(b)
        return c.builder.load(out)

    @lower_constant(made.type_class)
    def constant(context: Any, builder: Any, t: StructType, value: Any) -> Any:
        native = cgutils.create_struct_proxy(t)(context, builder)
        for name, item in zip(made.fields, t.items, strict=True):
            setattr(native, name, context.get_constant_generic(builder, item, getattr(value, name)))
        return native._getvalue()


def _object(c: Any, value: Any) -> Any:
    """A new reference to a Python object; a constant of the function's environment where there is one, which saves unpickling it."""
    if c.env_manager is None:
        return c.pyapi.unserialize(c.pyapi.serialize_object(value))
    found = c.env_manager.read_const(c.env_manager.add_const(value))
    c.pyapi.incref(found)
    return found
