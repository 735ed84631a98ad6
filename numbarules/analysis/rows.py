"""Parts of an array that a loop cannot confuse: elements whose places along an axis differ by a constant.

Such as the rows `u[i-1, j]` and `u[i+1, j]` of a loop over `j`. LLVM compares where the rows of a loop lie at run time,
and compares wrongly where another loop stands around it: for all of `i` at once, so that the rows seem to overlap and the
vectorised code is never run (`-hoist-runtime-checks`, LLVM 17 to 20).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.nodes import AddTo, For, Load, Region, Stmt, Store, Var, While, walk
from ..ir.types import Array
from .linear import linear

__all__ = ["Row", "Rows", "rows_of"]

MOST = 8
"""A loop with more rows of one array than this has none told apart: the metadata of an access is as long."""


@dataclass(frozen=True, slots=True)
class Row:
    """The part `index` of the `total` disjoint parts that a group of accesses meets."""

    group: int
    index: int
    total: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The row of an access, and the rows that start with an execution of a loop; by the identity of the statement."""

    accesses: dict[int, Row]
    loops: dict[int, tuple[Row, ...]]


def rows_of(region: Region) -> Rows:
    """The rows of each innermost counted loop of `region`, for as long as the loop runs."""
    made = {s.results[0]: s for s in walk(region) if len(s.results) == 1 and not s.regions}
    accesses: dict[int, Row] = {}
    loops: dict[int, tuple[Row, ...]] = {}
    group = 0
    for loop in walk(region):
        if not isinstance(loop.op, For) or any(isinstance(s.op, For | While) for s in walk(loop.regions[0])):
            continue
        started: list[Row] = []
        for parts in _groups(loop.regions[0], made):
            if any(id(s) in accesses for part in parts for s in part):
                continue  # told apart along another axis already
            rows = [Row(group, i, len(parts)) for i in range(len(parts))]
            accesses.update((id(s), row) for row, part in zip(rows, parts, strict=True) for s in part)
            started += rows
            group += 1
        if started:
            loops[id(loop)] = tuple(started)
    return Rows(accesses, loops)


def _groups(region: Region, made: dict[Var, Stmt]) -> Iterator[list[list[Stmt]]]:
    """Accesses to one array whose places along one axis stay in `region` and differ by constants: a list for each place."""
    inside = {*region.params, *(v for s in walk(region) for v in (*s.results, *(p for r in s.regions for p in r.params)))}
    found: dict[object, dict[int, list[Stmt]]] = {}
    for s in walk(region):
        # an index that counts from the end may be the same place as one that does not; strides of other layouts may be zero
        if not isinstance(s.op, Load | Store | AddTo) or s.op.wrap:
            continue
        array = s.args[0]
        if not isinstance(array, Var) or array in inside or not isinstance(array.type, Array) or array.type.layout == "A":
            continue
        for axis, index in enumerate(s.args[1 : 1 + array.type.ndim]):
            place = linear(index, made)
            if place is not None and not any(v in inside for v, _ in place.terms):
                found.setdefault((array, axis, frozenset(place.terms)), {}).setdefault(place.offset, []).append(s)
    for places in found.values():
        written = any(isinstance(s.op, Store | AddTo) for part in places.values() for s in part)
        if written and 2 <= len(places) <= MOST:
            yield list(places.values())
