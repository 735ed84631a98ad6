"""What the jitted functions that a region calls do with the memory they are handed, as seen in their own code.

A function that calls itself, through others or not, is a least fixpoint: at first none of them is taken to do anything, then each
is looked at with what is known of the others, until nothing new is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .._numba import CPUDispatcher, NumbaError
from ..analysis.alias import aliases_of, holds_memory
from ..errors import UnsupportedError
from ..ir.nodes import Apply, Call, Const, Function, Named, Region, Stmt, Summary
from ..ir.types import parameters
from .calls import Callee, bound_call
from .owned import memo_of
from .rules import is_derivative

__all__ = ["summarised", "summary_of"]

Known = Callable[[Callee], Summary]


def summarised(region: Region) -> Region:
    """The region with the summary of each call of a jitted function, where it has memory to touch and its code can be looked into."""
    return _filled(region, summary_of)


def summary_of(callee: Callee) -> Summary:
    """What a function does, by leaves of its arguments and result."""
    memo = memo_of(callee.dispatcher, "summaries")
    found: dict[Callee, tuple[Function, Summary]] | None = memo.get(callee.types)
    if found is None or any(c.captured() is not function for c, (function, _) in found.items()):
        found = _fixpoint(callee)
        memo[callee.types] = found
    return found[callee][1]


def _fixpoint(callee: Callee) -> dict[Callee, tuple[Function, Summary]]:
    """The summaries of a function and of all that it calls."""
    found: dict[Callee, Summary] = {callee: Summary()}
    before: dict[Callee, Summary] = {}
    while found != before:
        before = dict(found)
        for c in before:
            region = _filled(c.function.region, lambda other: found.setdefault(other, Summary()))
            found[c] = aliases_of(region).summary(region)
    return {c: (c.function, summary) for c, summary in found.items()}


def _filled(region: Region, known: Known) -> Region:
    body = tuple(_statement(s, known) for s in region.body)
    return region if all(a is b for a, b in zip(body, region.body, strict=True)) else Region(region.params, body, region.yields)


def _statement(stmt: Stmt, known: Known) -> Stmt:
    if stmt.regions:
        regions = tuple(_filled(r, known) for r in stmt.regions)
        same = all(a is b for a, b in zip(regions, stmt.regions, strict=True))
        return stmt if same else Stmt(stmt.op, stmt.args, stmt.results, regions, stmt.loc)
    match stmt.op:
        case Call(unit=Callee() as callee, summary=None) as op:
            return _with(stmt, op, known(callee))
        case Apply(Named(obj), summary=None) as op if _can_be_looked_into(obj) and _concerns_memory(stmt):
            found = _of_call(stmt, obj, known)
            return stmt if found is None else _with(stmt, op, found)
    return stmt


def _with(stmt: Stmt, op: Apply | Call, summary: Summary) -> Stmt:
    return Stmt(replace(op, summary=summary), stmt.args, stmt.results, (), stmt.loc)


def _can_be_looked_into(obj: Any) -> bool:
    return isinstance(obj, CPUDispatcher) and not is_derivative(obj) and not hasattr(obj, "__numbarules_effects__")


def _concerns_memory(stmt: Stmt) -> bool:
    return any(not isinstance(v, Const) and holds_memory(v.type) for v in (*stmt.args, *stmt.results))


def _of_call(stmt: Stmt, dispatcher: Any, known: Known) -> Summary | None:
    """The summary of a call by its arguments and its result, whole; None where the function cannot be looked into."""
    try:
        bound = bound_call(stmt, dispatcher)
        if bound is None:
            return None
        callee, places = bound
        function = callee.function
    except (UnsupportedError, NumbaError):
        return None
    own = [i for place in places for i in place for _ in parameters(stmt.args[i].type)]  # the argument that each leaf belongs to
    own += [len(stmt.args)] * len(function.region.yields or ())
    summary = known(callee)
    writes = sorted({own[i] for i in summary.writes})
    shares = sorted({(own[i], own[j]) for i, j in summary.shares if own[i] != own[j]})
    return Summary(tuple(writes), tuple(shares), summary.outside)
