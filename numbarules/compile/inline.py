"""What stands in for a call: the code of a jitted function, or the library's implementation of a NumPy function."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .._numba import Dispatcher, NumbaError, numba_type, types
from ..analysis.activity import carries_derivative
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Attribute, Function, Loc, Method, Named, Operand, Region, Stmt, walk
from ..ir.types import Array, NoneType, Opaque, Scalar
from ..library.expansions import lookup_expansion
from ..transform.lower import Given
from .capture import bind, bound_type, capture, options_of, python_function, recursive
from .kernels import capture_kernel, kernel_body, kernel_of
from .methods import method_of
from .rules import argument_type, container

__all__ = ["Inliner", "size"]

LIMIT = 200
"""A function of more statements than this, inlined ones included, gets sweeps of its own."""

Found = tuple[Function, tuple[Given, ...]]


def size(function: Function) -> int:
    """How many statements a function has."""
    return sum(1 for _ in walk(function.region))


class Inliner:
    """Finds the function to put in place of a call. `options` are those of the caller: code under others is not mixed in."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self._totals: dict[tuple[int, int], float] = {}

    def __call__(self, stmt: Stmt) -> Found | None:
        assert isinstance(stmt.op, Apply)
        callee = stmt.op.callee
        if isinstance(callee, Named) and isinstance(callee.obj, Dispatcher):
            return self.kernel(stmt, callee.obj) or self.dispatcher(stmt, callee.obj)
        kernel = kernel_of(stmt)
        if kernel is not None and all(isinstance(a.type, Scalar) for a in stmt.args):
            return capture_kernel(kernel, self.options), stmt.args
        return self.expansion(stmt) or self.method(stmt)

    def kernel(self, stmt: Stmt, f: Any) -> Found | None:
        """The code of the scalar function of a `@vectorize`d one."""
        if not all(isinstance(a.type, Scalar) for a in stmt.args) or stmt.op.keywords:  # type: ignore[union-attr]
            return None
        found = kernel_body(f, tuple(numba_type(a.type) for a in stmt.args), self.options)
        return (found, stmt.args) if found is not None else None

    def dispatcher(self, stmt: Stmt, f: Any) -> Found | None:
        """The code of a jitted function, unless it is recursive, large, or compiled under other options."""
        if options_of(f) != self.options:
            return None
        try:
            found = self.bound(stmt, python_function(f))
        except UnsupportedError:
            return None
        if found is None or self.total(f, found[0], ()) > LIMIT:
            return None
        return found

    def total(self, f: Any, function: Function, above: tuple[Any, ...]) -> float:
        """How many statements a function has once everything in it is inlined; infinite for a recursive one."""
        if f in above or recursive(f):
            return math.inf
        key = (id(f), id(function))
        if key not in self._totals:
            n: float = 0
            for stmt in walk(function.region):
                n += 1
                if isinstance(stmt.op, Apply) and isinstance(stmt.op.callee, Named) and isinstance(stmt.op.callee.obj, Dispatcher):
                    inner = stmt.op.callee.obj
                    try:
                        found = self.bound(stmt, python_function(inner))
                    except UnsupportedError:
                        found = None
                    if found is not None:
                        total = self.total(inner, found[0], (*above, f))
                        n += total if total <= LIMIT or (math.isinf(total) and inner in (*above, f)) else 1
            self._totals[key] = n
        return self._totals[key]

    def expansion(self, stmt: Stmt) -> Found | None:
        """The library's implementation of a NumPy function or array method."""
        assert isinstance(stmt.op, Apply)
        key: Any = None
        match stmt.op.callee:
            case Named(obj):
                key = obj
            case Method(name) if stmt.args and isinstance(stmt.args[0].type, Array):
                key = ("Array", name)
        if key is None:
            return None
        split = len(stmt.args) - len(stmt.op.keywords)
        given = [argument_type(a) for a in stmt.args]
        try:
            implementation = lookup_expansion(key, tuple(given[:split]), dict(zip(stmt.op.keywords, given[split:], strict=True)))
        except TypeError:
            return None
        if implementation is None:
            return None
        return self.bound(stmt, python_function(implementation), literals=True)

    def method(self, stmt: Stmt) -> Found | None:
        """The Python implementation that Numba itself runs. What has no cotangent, or is drawn at random, is left to the fence."""
        if any(container(t) is not None for t in (*(a.type for a in stmt.args), *(r.type for r in stmt.results))):
            return None
        callee = stmt.op.callee if isinstance(stmt.op, Apply) else None
        if isinstance(callee, Named) and isinstance(getattr(callee.obj, "__self__", None), np.random.RandomState):
            return None
        found = method_of(stmt)
        if found is None:
            return None
        try:
            bound = self.bound(stmt, python_function(found), literals=True)
        except (UnsupportedError, NumbaError, ValueError):  # ValueError: a default that has no Numba type, such as `dtype=float`
            return None
        return None if bound is None or any(map(_beyond_python, walk(bound[0].region))) else bound

    def bound(self, stmt: Stmt, function: Any, literals: bool = False) -> Found | None:
        assert isinstance(stmt.op, Apply)
        split = len(stmt.args) - len(stmt.op.keywords)
        try:
            args = bind(function, list(stmt.args[:split]), dict(zip(stmt.op.keywords, stmt.args[split:], strict=True)))
        except TypeError:
            return None

        def type_of(value: Operand) -> Any:
            if isinstance(value.type, NoneType):
                return types.none
            return argument_type(value) if literals else types.unliteral(numba_type(value.type))

        numba_types: list[Any] = []
        operands: list[Given] = []
        for _, value, given in args:
            if given:
                numba_types.append(bound_type(value, type_of))
                operands.append(value)
            else:
                numba_types.append(types.Omitted(value))
                operands.append(None)
        captured = capture(function, tuple(numba_types), self.options)
        own = not literals or not _is_library(function.__code__.co_filename)  # a user's method is told of, and refused, line by line
        return captured if own else relocated(captured, stmt.loc), tuple(operands)


_LIBRARIES = Path(numba.__file__).parent, Path(__file__).parent.parent


def _is_library(filename: str) -> bool:
    """True for a file of Numba or of this package."""
    parents = Path(filename).parents
    return any(library in parents for library in _LIBRARIES)


def relocated(function: Function, loc: Loc | None) -> Function:
    """A library's function as if all of it stood where the user calls it."""

    moved: dict[int, Loc] = {}

    def own(old: Loc | None) -> Loc | None:  # calls that stood apart stay apart
        return loc and moved.setdefault(id(old), Loc(loc.filename, loc.line))

    def move(region: Region) -> Region:
        body = tuple(Stmt(s.op, s.args, s.results, tuple(map(move, s.regions)), own(s.loc)) for s in region.body)
        return Region(region.params, body, region.yields)

    return replace(function, region=move(function.region))


def _beyond_python(stmt: Stmt) -> bool:
    """True for what no derivative passes through: a call of compiled code from outside, or a value that is not modelled."""
    match stmt.op:
        case Apply(Attribute("ctypes")):
            return True
        case Apply(Named(obj)) if isinstance(obj, types.ExternalFunction):
            return True
    optional = [r.type for r in stmt.results if isinstance(r.type, Opaque) and isinstance(r.type.payload, types.Optional)]
    return any(map(carries_derivative, optional))
