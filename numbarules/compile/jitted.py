"""`vjp` inside jitted code: the pullback is a value of a type of our own, which owns the record of the forward sweep."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numba import types
from numba.extending import lower_builtin, models, overload, overload_method, register_model

from .._numba import forget_implementations, our_type
from ..errors import DifferentiationError, message
from ..ir.types import Array, Scalar, Tuple, Type
from ..runtime.pullbacks import frame_of, own_record
from ..tangents import has_tangent, has_tangents, incoming_type, parts
from .callers import internal
from .lookups import Record
from .vjp import Halves, halves_of

__all__ = ["PullbackType", "register"]


class PullbackType(types.Type):
    """The type of the pullback of one function at one signature."""

    private = True  # what such a value refers to is its own

    def __init__(self, halves: Halves) -> None:
        self.halves = halves
        super().__init__(name=f"pullback({halves.name}, {', '.join(map(str, halves.types))})")
        lower_builtin(self, self, types.Any)(_lower_call)

    @property
    def key(self) -> Any:
        return id(self.halves)


@register_model(PullbackType)
class _PullbackModel(models.StructModel):
    def __init__(self, manager: Any, t: Any) -> None:
        super().__init__(manager, t, [("owner", types.MemInfoPointer(types.voidptr)), ("frame", types.uintp)])


def register(vjp: Any) -> None:
    """Makes `vjp(f, *args)` callable from jitted code."""

    @overload(vjp)
    def vjp_in_jitted_code(f: Any, *args: Any) -> Any:
        if not isinstance(f, types.Dispatcher):
            return None
        halves = halves_of(f.dispatcher, tuple(map(types.unliteral, args)))
        if not halves.cotangent_types:
            raise DifferentiationError(
                message(
                    f"`{halves.name}` has no pullback: its result holds no float",
                    contract="`vjp` needs a function that returns a float, a float array, or a tuple with such",
                    found=f"a result of type {halves.primal.result}",
                    instead="return what depends on the arguments, as a float",
                )
            )
        numbas = halves.implementation = Record("vjp", partial(_forget, vjp, vjp_in_jitted_code, weakref.ref(f.dispatcher)))
        numbas.add_use(halves.record)
        forward, pullback = halves.forward, own_record(PullbackType(halves))

        def implementation(f: Any, *args: Any) -> Any:
            value, record, frame = forward(*args)
            return value, pullback(record, frame)

        return implementation


def _forget(vjp: Any, choose: Any, f: weakref.ref[Any]) -> None:
    """Lets Numba ask again for what `vjp` of a function is in jitted code."""

    def is_it(t: Any) -> bool:
        try:
            return isinstance(t, types.Dispatcher) and t.dispatcher is f()
        except ReferenceError:  # of a function that is gone; nobody asks for it again
            return True

    forget_implementations(vjp, choose, lambda args: is_it(args[0]))


def _call(self: Any, ybar: Any) -> Any:
    """One cotangent per argument, None for arguments without derivative."""
    halves: Halves = self.halves
    given = list(_taken_apart("ybar", halves.primal.result, our_type(types.unliteral(ybar))))
    names = iter(range(len(halves.gradient_leaves)))
    makers: list[Any] = []
    parts = [_put_together(t, names, makers) if has_tangents(t) else "None" for _, t in halves.primal.args]
    source = f"def pullback(self, ybar):\n    found = reverse({', '.join(['frame(self)', *given])})\n    return ({', '.join(parts)},)\n"
    namespace: dict[str, Any] = {
        "reverse": halves.reverse,
        "frame": frame_of,
        "array": np.ascontiguousarray,
        "fortran": np.asfortranarray,
        "float64": np.float64,
        "float32": np.float32,
    }
    namespace |= {f"make{i}": make for i, make in enumerate(makers)}
    exec(source, namespace)
    return namespace["pullback"]


_call.__annotations__.clear()  # Numba compares them with those of what is returned
overload_method(PullbackType, "__call__")(_call)


def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The call of a pullback: Numba types a call of a value by its `__call__`, and looks for the code under the value's type."""
    return context.compile_internal(builder, internal(_call(*sig.args)), sig, args)


def _taken_apart(name: str, t: Type, given: Type) -> Iterator[str]:
    """The cotangents of the differentiable leaves of a result, as expressions in the cotangent that is given."""
    if isinstance(t, Tuple):
        if not isinstance(given, Tuple) or len(given.items) != len(t.items) or (t.struct and given.cls is not t.cls):
            raise DifferentiationError(
                message(
                    "a cotangent of another structure than the value",
                    contract=f"a cotangent of a value of type {t}",
                    found=f"{given}",
                    instead="pass a tuple with one cotangent for each item",
                )
            )
        for i, (item, own) in enumerate(zip(t.items, given.items, strict=True)):
            yield from _taken_apart(f"{name}.{t.fields[i]}" if t.struct else f"{name}[{i}]", item, own)
    elif isinstance(t, Scalar) and has_tangent(t):
        yield f"{t.kind}({name})"
    elif has_tangent(t):
        wanted = incoming_type(t)
        assert isinstance(wanted, Array)
        if not isinstance(given, Array) or given.ndim != wanted.ndim or given.dtype != wanted.dtype:
            raise DifferentiationError(
                message(
                    "a cotangent of another type than the value",
                    contract=f"a cotangent of type {wanted}",
                    found=f"{given}",
                    instead="pass an array of the value's dtype and shape",
                )
            )
        yield name if given.layout == wanted.layout else f"{'fortran' if wanted.layout == 'F' else 'array'}({name})"


def _put_together(t: Type, names: Iterator[int], makers: list[Any], kept: bool = False) -> str:
    """The cotangent of an argument, as an expression in the leaves that the reverse half returns and the constructors `make0`, ..."""
    if isinstance(t, Tuple):
        items = ", ".join(_put_together(i, names, makers, kept or t.struct) for i in t.items)
        if not t.struct:
            return f"({items},)" if items else "()"
        makers.append(t.cls.make)
        return f"make{len(makers) - 1}({items})"
    return f"found[{next(names)}]" if next(iter(parts(t, kept)), "absent") != "absent" else "None"
