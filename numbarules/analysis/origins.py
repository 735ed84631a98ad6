"""Which arrays a value may be, as a set of origins: parameters, allocations, and what unknown code returns.

Sets go one way, from what a value is made of to the value (Andersen, 1994), so `x = x * 0.5` in a loop makes the loop's
`x` either the old array or a new one, and what is written into the new one is not written into the old.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.nodes import Var

__all__ = ["Origins"]


class Origins:
    """The origins of the values of a function. It is filled first and asked afterwards."""

    def __init__(self) -> None:
        self.sources: dict[Var, list[Var]] = {}
        self.roots: set[Var] = set()
        self.groups: list[list[Var]] = []
        self._known: dict[Var, int] | None = None

    def flow(self, source: Var, target: Var) -> None:
        """`target` may be, or be part of, what `source` is."""
        self.sources.setdefault(target, []).append(source)

    def root(self, v: Var) -> None:
        """`v` may be new, whatever else it may be. What nothing flows into is new in any case."""
        self.roots.add(v)

    def mix(self, values: Iterable[Var]) -> None:
        """What these are may share memory from now on, under all its names."""
        self.groups.append(list(values))

    def meet(self, v: Var, w: Var) -> bool:
        """True where both may be the same array, or views of it."""
        known = self._solved()
        return v is w or bool(known.get(v, 0) & known.get(w, 0))

    def _solved(self) -> dict[Var, int]:
        """The origins as sets of bits, one a root; roots that are mixed come together."""
        if self._known is None:
            known = self._propagated()
            for mixture in _joined([_union(known[v] for v in group) for group in self.groups]):
                known = {v: bits | mixture if bits & mixture else bits for v, bits in known.items()}
            self._known = known
        return self._known

    def _propagated(self) -> dict[Var, int]:
        values = dict.fromkeys([*self.roots, *(v for group in self.groups for v in group)])
        for target, sources in self.sources.items():
            values.update(dict.fromkeys([target, *sources]))
        known = {v: 1 << i if v in self.roots or v not in self.sources else 0 for i, v in enumerate(values)}
        changed = True
        while changed:
            changed = False
            for target, sources in self.sources.items():
                bits = known[target] | _union(known[s] for s in sources)
                changed = changed or bits != known[target]
                known[target] = bits
        return known


def _union(sets: Iterable[int]) -> int:
    out = 0
    for bits in sets:
        out |= bits
    return out


def _joined(sets: list[int]) -> list[int]:
    """Overlapping sets as one."""
    out: list[int] = []
    for bits in sets:
        apart = [other for other in out if not other & bits]
        out = [*apart, bits | _union(other for other in out if other & bits)]
    return out
