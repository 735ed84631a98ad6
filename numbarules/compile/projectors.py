"""`project_to`: from a cotangent that a formula gives to the one tangent that belongs to a primal value.

A projector keeps of the primal only what it needs: nothing of a number, the shape of an array, the fields of a struct. In jitted code it
is a value of a type of its own, which the IR takes for a struct of what is kept, so that a pullback may capture it in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.extending import lower_builtin, make_attribute_wrapper, models, overload, overload_method, register_model, type_callable

from .._numba import numba_type, our_type
from ..errors import DifferentiationError, message
from ..ir.types import Array, NoneType, Scalar, Tuple, Type
from ..structs import lower_build
from .callers import internal
from .projection import dense_form

__all__ = ["Projector", "project_to"]


def project_to(x: Any) -> Projector:
    """The projector onto the tangent space of `x`: `project_to(x)(dx)` is `dx` as the gradient by `x` would be.

    A float gets a float of its own precision, and so does an array, in its shape, C order (F order where `x` is in F order); an imaginary
    part is dropped where `x` is real; a tuple goes item by item. A struct takes a struct of its class, or a dense array of its shape, whose
    projection is the adjoint of the derivative of `to_dense` at `x`. None stays None, and what has no tangent (an integer) gives None.

    Raises DifferentiationError for a `dx` of another kind (in jitted code when compiling), and ValueError for one of another shape.
    Rules need not call it: what their pullbacks return is projected.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> nr.project_to(np.ones(2, np.float32))(np.array([1.0 + 2.0j, 3.0]))
    array([1., 3.], dtype=float32)
    """
    return Projector(typeof(x), _kept(our_type(typeof(x)), x))


@dataclass(frozen=True, slots=True)
class Projector:
    """What `project_to` returns. `primal` is the Numba type of the primal, `kept` what is kept of it."""

    primal: Any
    kept: Any

    def __call__(self, dx: Any) -> Any:
        """The tangent for a cotangent `dx`."""
        return _projected(our_type(self.primal), self.kept, dx)


def _kept(t: Type, x: Any) -> Any:
    match t:
        case Array():
            return np.shape(x)
        case Tuple(items) if not t.struct:
            return tuple(_kept(i, v) for i, v in zip(items, x, strict=True))
        case Tuple():
            return x
    return ()


def _projected(t: Type, kept: Any, dx: Any) -> Any:
    if dx is None or not _has_tangent(t):
        return None
    if isinstance(t, Tuple) and t.struct:
        if isinstance(dx, t.cls.python_class):
            return t.cls.make(*(_field(i, getattr(kept, f), getattr(dx, f)) for f, i in zip(t.fields, t.items, strict=True)))
        form = dense_form(numba_type(t))
        if form is None or np.ndim(dx) != form.type.ndim:
            raise _wrong(t, type(dx).__name__)
        return form.project(kept, _conform(form.type, form.zeros(kept).shape, dx))
    if isinstance(t, Tuple):
        if not isinstance(dx, tuple) or len(dx) != len(t.items):
            raise _wrong(t, type(dx).__name__)
        items = [_projected(*each) for each in zip(t.items, kept, dx, strict=True)]
        return tuple(items) if t.cls is None else t.cls(*items)
    if np.asarray(dx).dtype.kind not in "biufc" or (np.ndim(dx) != 0 and isinstance(t, Scalar)):
        raise _wrong(t, type(dx).__name__)
    if isinstance(t, Scalar):
        return np.dtype(t.kind).type(dx if t.kind.startswith("complex") else np.real(dx)).item()
    assert isinstance(t, Array)
    return _conform(t, kept, dx)


def _field(t: Type, own: Any, dx: Any) -> Any:
    """A field of a struct's tangent: what has none is the struct's own."""
    return _projected(t, _kept(t, own), dx) if _has_tangent(t) else own


def _conform(t: Array, shape: tuple[int, ...], dx: Any) -> Any:
    if np.shape(dx) != tuple(shape):
        raise ValueError("a cotangent has the shape of its primal")
    real = dx if t.dtype.kind.startswith("complex") else np.real(dx)
    return np.array(real, dtype=t.dtype.kind, order="F" if t.layout == "F" else "C")


def _has_tangent(t: Type) -> bool:
    match t:
        case Tuple(items):
            return any(map(_has_tangent, items))
        case Array(dtype):
            return _has_tangent(dtype)
        case Scalar(kind):
            return kind.startswith(("float", "complex"))
    return False


def _wrong(t: Type, found: str) -> DifferentiationError:
    return DifferentiationError(
        message(
            "a cotangent that belongs to no value of this type",
            contract=f"a cotangent of a {t} is like it: a number, an array, a tuple; for a struct one of its class, or a dense array",
            found=found,
        )
    )


# ---------------------------------------------------------------------------------------------- in jitted code


class ProjectorType(types.Type):
    """The type of a projector. The IR takes it for a struct with the one field `kept`."""

    def __init__(self, primal: Any) -> None:
        self.primal = primal
        self.items = (_kept_type(our_type(primal)),)
        super().__init__(name=f"projector({primal})")
        lower_builtin(self, self, types.Any)(_lower_call)

    @property
    def key(self) -> Any:
        return self.primal

    @property
    def struct(self) -> _ProjectorClass:
        return _class_for(self.primal)


@dataclass(frozen=True, slots=True, eq=False)
class _ProjectorClass:
    """See `structs.StructClass`."""

    primal: Any
    make: Callable[..., Any]
    name: str = "projector"
    fields: tuple[str, ...] = ("kept",)
    python_class: type = Projector

    def numba_type(self, items: tuple[Any, ...]) -> ProjectorType:
        return ProjectorType(self.primal)


@cache
def _class_for(primal: Any) -> _ProjectorClass:
    def make_projector(kept: Any) -> Projector:
        return Projector(primal, kept)

    type_callable(make_projector)(lambda context: lambda kept: ProjectorType(primal))
    lower_builtin(make_projector, types.Any)(lower_build)
    return _ProjectorClass(primal, make_projector)


@register_model(ProjectorType)
class _ProjectorModel(models.StructModel):
    def __init__(self, manager: Any, t: ProjectorType) -> None:
        super().__init__(manager, t, [("kept", t.items[0])])


make_attribute_wrapper(ProjectorType, "kept", "kept")


def _kept_type(t: Type) -> Any:
    match t:
        case Array(ndim=ndim):
            return types.UniTuple(types.intp, ndim)
        case Tuple(items) if not t.struct:
            return types.Tuple([_kept_type(i) for i in items])
        case Tuple():
            return numba_type(t)
    return types.Tuple(())


def _kept_source(t: Type, x: str) -> str:
    match t:
        case Array():
            return f"{x}.shape"
        case Tuple(items) if not t.struct and items:
            return f"({', '.join(_kept_source(i, f'{x}[{k}]') for k, i in enumerate(items))},)"
        case Tuple() if t.struct:
            return x
    return "()"


def _compiled(source: str, namespace: dict[str, Any]) -> Any:
    exec(source, namespace)
    return namespace["implementation"]


def _project_to(x: Any) -> Any:
    primal = types.unliteral(x)
    source = f"def implementation(x):\n    return make({_kept_source(our_type(primal), 'x')})\n"
    return _compiled(source, {"make": _class_for(primal).make})


_project_to.__annotations__.clear()  # Numba compares them with those of what is returned
overload(project_to)(_project_to)


def _call(self: Any, dx: Any) -> Any:
    namespace: dict[str, Any] = {}
    result = _source(our_type(self.primal), our_type(types.unliteral(dx)), "self.kept", "dx", namespace)
    return _compiled(f"def implementation(self, dx):\n    return {result}\n", namespace)


_call.__annotations__.clear()
overload_method(ProjectorType, "__call__")(_call)


def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """See `jitted._lower_call`.

    Numba's memo of what it has compiled for such calls is passed by: code taken from there would not tell the caller what it was made with.
    """
    code = context.compile_subroutine(builder, internal(_call(*sig.args)), sig, caching=False)
    return context.call_internal(builder, code.fndesc, sig, args)


def _source(t: Type, given: Type, kept: str, dx: str, namespace: dict[str, Any]) -> str:
    """The projection of `dx` as an expression in names that it adds to the namespace."""

    def named(value: Any) -> str:
        name = f"f{len(namespace)}"
        namespace[name] = value
        return name

    if isinstance(given, NoneType) or not _has_tangent(t):
        return "None"
    match t, given:
        case Tuple(items), Tuple(own) if t.struct and t.cls is given.cls:
            parts = [
                _source(i, j, _kept_source(i, f"{kept}.{f}"), f"{dx}.{f}", namespace) if _has_tangent(i) else f"{kept}.{f}"
                for f, i, j in zip(t.fields, items, own, strict=True)
            ]
            return f"{named(t.cls.make)}({', '.join(parts)})"
        case Tuple(), Array(ndim=ndim) if t.struct and (form := dense_form(numba_type(t))) is not None and form.type.ndim == ndim:
            dense = f"{named(_conformer(form.type, given))}({dx}, {kept}.shape)"
            return f"{named(form.project)}({kept}, {dense})"
        case Tuple(items, cls), Tuple(own) if not t.struct and not given.struct and len(items) == len(own):
            parts = [_source(i, j, f"{kept}[{k}]", f"{dx}[{k}]", namespace) for k, (i, j) in enumerate(zip(items, own, strict=True))]
            return f"{named(cls)}({', '.join(parts)})" if cls is not None else f"({', '.join(parts)},)"
        case Scalar(kind), Scalar(found):
            drop = found.startswith("complex") and not kind.startswith("complex")
            return f"{named(np.dtype(kind).type)}({dx}{'.real' if drop else ''})"
        case Array(ndim=n), Array(ndim=m) if n == m:
            return f"{named(_conformer(t, given))}({dx}, {kept})"
    raise _wrong(t, str(given))


@cache
def _conformer(t: Array, given: Array) -> Any:
    """A jitted function that copies an array into one of a dtype and order, and checks its shape."""
    dtype = np.dtype(t.dtype.kind)
    real = given.dtype.kind.startswith("complex") and not t.dtype.kind.startswith("complex")
    fortran = t.layout == "F"

    def conform(dx, shape):  # type: ignore[no-untyped-def]
        if dx.shape != shape:
            raise ValueError("a cotangent has the shape of its primal")
        out = np.empty(shape[::-1], dtype).T if fortran else np.empty(shape, dtype)
        for index in np.ndindex(shape):
            if real:
                out[index] = dx[index].real
            else:
                out[index] = dx[index]
        return out

    return njit(conform)
