"""Loops whose reverse may run in either direction: forwards is the one that the hardware, and LLVM, like better."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.alias import holds_memory
from ..analysis.effects import effects
from ..analysis.linear import Linear, linear
from ..ir.nodes import AddTo, Load, Region, Stmt, Store, Var, While, walk
from .forward import Forward

__all__ = ["iterations_commute"]


def iterations_commute(forward: Forward, loop: Stmt) -> bool:
    """True where the reverses of a counted loop's iterations can be done in any order.

    The reverse of a load adds into a shadow, which commutes with other additions; that of a store reads and clears one
    element, which commutes if every iteration stores into an element of its own and the loop does nothing else with the
    array.
    """
    (region,) = loop.regions
    if any(forward.has_shadow(p) for p in region.params):
        return False
    made = {s.results[0]: s for s in walk(region) if len(s.results) == 1 and not s.regions}
    inner = {p for s in walk(region) for r in s.regions for p in r.params} | {r for s in walk(region) if s.regions for r in s.results}
    uses: dict[Var | None, list[Stmt]] = {}
    for s in walk(region):
        match s.op:
            case Load() | Store() | AddTo():
                if forward.has_shadow(s.args[0]):
                    uses.setdefault(forward.active.aliases.of(s.args[0]), []).append(s)
            case While():
                return False
            case _ if not s.regions:
                e = effects(s)
                touched = [*s.results, *(s.args[i] for i in e.writes), *((a for a in s.args if holds_memory(a.type)) if e.opaque else ())]
                if any(forward.has_shadow(a) for a in touched):
                    return False
    return all(_commute(found, region, made, inner) for found in uses.values())


def _commute(uses: list[Stmt], region: Region, made: dict[Var, Stmt], inner: set[Var]) -> bool:
    kinds = {type(s.op) for s in uses}
    if len(kinds) > 1:
        return False
    return Store not in kinds or (len(uses) == 1 and any(_own_element(s, region, made, inner) for s in uses))


def _own_element(store: Stmt, region: Region, made: dict[Var, Stmt], inner: set[Var]) -> bool:
    """True where some index is a multiple of the counter plus what is the same in every iteration."""
    counter = region.params[0]
    varying = {*region.params[1:], *inner, *made}
    return any(form is not None and form.slope(counter) and not any(v in varying for v, _ in form.terms) for form in _forms(store, made))


def _forms(store: Stmt, made: dict[Var, Stmt]) -> Iterator[Linear | None]:
    for index in store.args[1:-1]:
        yield linear(index, made)
