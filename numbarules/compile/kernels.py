"""The scalar functions of `@vectorize`d ones."""

from __future__ import annotations

from typing import Any

from numba import njit
from numba.np.ufunc.dufunc import DUFunc

from .._numba import numba_type, our_type
from ..ir.nodes import Apply, Function, Named, Region, Stmt, walk
from ..ir.rewrite import Builder, Names
from ..ir.types import Array, Scalar, is_float
from ..transform.elementwise import Kernel
from ..transform.residuals import forgiving
from .capture import capture, options_of
from .owned import memo_of

__all__ = ["capture_kernel", "kernel_body", "kernel_of"]


def kernel_of(stmt: Stmt) -> Kernel | None:
    """The scalar function that a call of a `@vectorize`d function applies, with the types it is compiled for; None for any other call."""
    if not isinstance(stmt.op, Apply) or not isinstance(stmt.op.callee, Named) or stmt.op.keywords:
        return None
    if not isinstance(stmt.op.callee.obj, DUFunc):
        return None
    dufunc: Any = stmt.op.callee.obj
    elements = [a.type.dtype if isinstance(a.type, Array) else a.type for a in stmt.args]
    if len(elements) != dufunc.nin:
        return None
    found, _ = dufunc.find_ewise_function(tuple(map(numba_type, elements)))
    if found is None:
        return None
    return Kernel(_scalar_dispatcher(dufunc), tuple(our_type(t) for t in found.args), our_type(found.return_type))


def _scalar_dispatcher(dufunc: Any) -> Any:
    """Ufuncs divide by NumPy's rules."""
    made = memo_of(dufunc, "kernel")
    if None not in made:
        made[None] = njit(**{**options_of(dufunc._dispatcher), "error_model": "numpy"})(dufunc._dispatcher.py_func)
    return made[None]


def capture_kernel(kernel: Kernel, options: dict[str, Any]) -> Function:
    """A function that calls the scalar function of a `@vectorize`d one, with arguments of the types it is compiled for."""
    names = Names()
    params = tuple(names.var(t, "x") for t in kernel.args)
    b = Builder(names)
    y = b.one(Apply(Named(kernel.function)), params, kernel.result, "y")
    return Function("kernel", tuple((p.name, p.type) for p in params), b.region(params, [y]), kernel.result, None, tuple(options.items()))


def kernel_body(f: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Function | None:
    """The code of a scalar function that divides by NumPy's rules, for a caller under `options`; None where it cannot be mixed in."""
    theirs = options_of(f)
    if theirs.get("error_model") != "numpy" or {**theirs, "error_model": None} != {**options, "error_model": None}:
        return None
    function = capture(f.py_func, args, theirs)
    body = Region(function.region.params, tuple(map(forgiving, function.region.body)), function.region.yields)
    if options.get("error_model") != "numpy" and any(_may_divide(s) for s in walk(body)):
        return None
    return Function(function.name, function.args, body, function.result, function.loc, function.flags)


_PLAIN = {"add", "sub", "mul", "neg", "pos", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor", "not_", "abs"}


def _may_divide(stmt: Stmt) -> bool:
    """True for operators whose meaning the error model changes."""
    match stmt.op:
        case Apply(Named(obj)) if getattr(obj, "__module__", None) == "_operator":
            if getattr(obj, "__name__", "") == "pow":
                return not all(isinstance(a.type, Scalar) and is_float(a.type) for a in stmt.args[:1])
            return getattr(obj, "__name__", "") not in _PLAIN
    return False
