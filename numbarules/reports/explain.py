"""`explain`: how a function is differentiated at the types of a call, call by call, without compiling anything."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from numba import typeof

from ..compile.capture import capture, options_of, python_function
from ..compile.dispatchers import GradientDispatcher, argument_numbers, check_compiles, check_function
from ..compile.gradient import Request, gradient_function
from ..compile.units import Unit
from ..compile.vjp import Halves
from ..errors import UnsupportedError
from ..ir.nodes import Function
from ..ir.types import is_float
from .kept import kept_by
from .listener import Draft, Listener
from .report import CallSite, Kept, Place, Repeated, Report

__all__ = ["explain", "explain_types"]


def explain(f: Any, *args: Any, argnums: int | Iterable[int] | None = None) -> Report:
    """A report of how `f` is differentiated at the types of `args`: which rule each call uses, and what is recorded.

    `f`: a Python function, an `@njit` or `@njit_grad` function, or a gradient made by `grad` or `value_and_grad`. `argnums` as in
    `grad`; if it is not given, that of `f`, or else 0. `args` are one call's arguments; their values do not matter.

    The report tells for each call, those inside inlined functions included, the entry of the rule table that answered, the
    runner-up and why it lost, or that there was none and the method that is differentiated instead. It tells for each value that
    the reverse sweep needs whether it is recorded, and in how many bytes, computed again, or loaded again. `str(report)` is text,
    `report.to_html(path)` a page with the annotated source. It makes the gradient's code and does not compile it; what it leaves
    behind is what a call of the gradient would.

    Where a construct is not supported, `report.refusal` says so. Raises what `grad` raises otherwise.

    >>> import numpy as np
    >>> import numbarules as nr
    >>> def energy(x):
    ...     return 0.5 * np.dot(x, x)
    >>> report = nr.explain(energy, np.ones(3))
    >>> [(site.call, site.how) for site in report.walk() if site.call == "np.dot"]
    [('np.dot', 'rule')]
    """
    function = python_function(_subject(f, argnums)[0])
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    return explain_types(f, tuple(map(typeof, bound.args)), argnums)


def explain_types(f: Any, types: tuple[Any, ...], argnums: int | Iterable[int] | None = None) -> Report:
    """As `explain`, at Numba types, one for each parameter."""
    f, positions = _subject(f, argnums)
    function, options = python_function(f), options_of(f)
    check_compiles(function, types, options)
    listener, refusal = Listener(), ""
    made: Sequence[Function] = ()
    try:
        made = _made(f, function, types, positions, options, listener)
    except UnsupportedError as error:
        refusal = str(error)
    kept = [k for code in made for k in kept_by(code, function.__name__)]
    again = dict(listener.again)
    sites = _sites(listener, kept, again, {})
    names = list(inspect.signature(function).parameters)
    code = function.__code__
    arguments = tuple((name, str(t)) for name, t in zip(names, types, strict=False))
    by = tuple(names[i] for i in ((positions,) if isinstance(positions, int) else positions))
    place = Place(code.co_filename, code.co_firstlineno)
    return Report(function.__name__, place, arguments, by, sites, tuple(_in_order(kept)), tuple(again.values()), refusal)


def _subject(f: Any, argnums: Any) -> tuple[Any, Any]:
    """The function to explain, and the positions to differentiate by."""
    if isinstance(f, GradientDispatcher):
        f, argnums = f.primal, f.argnums if argnums is None else argnums
    check_function(f, "explain")
    if argnums is None:
        argnums = getattr(f, "argnums", 0)
    return f, argument_numbers(python_function(f), argnums)


def _made(f: Any, function: Any, types: tuple[Any, ...], positions: Any, options: dict[str, Any], listener: Listener) -> list[Function]:
    """The generated code: a gradient, or both halves of a pullback where the result is no float."""
    if is_float(capture(function, types, options).result):
        return [gradient_function(function, types, Request(positions, True, tuple(sorted(options.items()))), listener)]
    return list(Halves(f, types).build(listener))


Known = dict[Any, tuple[CallSite, ...]]  # by callee


def _sites(listener: Listener, kept: list[Kept], again: dict[Any, Repeated], known: Known) -> tuple[CallSite, ...]:
    """The calls as a tree. Those inside a function with sweeps of its own stand under the calls of it."""
    inside: dict[Any, tuple[CallSite, ...]] = {}
    for unit in listener.units.values():
        inside.setdefault(unit.callee, _unit(unit, kept, again, known))
    replaced = {id(d.loc) for d in listener.drafts if d.site.how == "none" and d.callee is None}
    children: dict[int, list[Draft]] = {}
    for d in listener.drafts:
        at = d.loc.inlined_at if d.loc is not None else None
        children.setdefault(id(at) if id(at) in replaced else 0, []).append(d)

    def tree(key: int) -> tuple[CallSite, ...]:
        found = []
        for d in sorted(children.get(key, ()), key=lambda d: d.site.place.line):
            below = inside.get(d.callee, ()) if d.callee is not None else tree(id(d.loc)) if d.site.how == "none" else ()
            found.append(replace(d.site, inside=below))
        return tuple(found)

    return tree(0)


def _unit(unit: Unit, kept: list[Kept], again: dict[Any, Repeated], known: Known) -> tuple[CallSite, ...]:
    """The calls inside a function with sweeps of its own; what it records and repeats is added to `kept` and `again`.

    A function that has several, for several activities, is told of once.
    """
    if unit.callee not in known:
        known[unit.callee] = ()
        listener = Listener()
        for half in unit.build(listener):
            kept += kept_by(half, unit.name)
        again.update(listener.again)
        known[unit.callee] = _sites(listener, kept, again, known)
    return known[unit.callee]


def _in_order(kept: list[Kept]) -> list[Kept]:
    return sorted(kept, key=lambda k: (k.place.filename, k.place.line))
