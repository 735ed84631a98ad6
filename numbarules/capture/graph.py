"""Numba's blocks as a graph of statements: phis become copies on the edges, and the rest is left as it is."""

from __future__ import annotations

import linecache
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .._numba import TypedIR, nir, types
from .structure import Block, Branch, Jump, Return, Stop
from .uses import called_function

__all__ = ["RETURNED", "Copy", "blocks_of", "tries"]

RETURNED = "#returned"


@dataclass(frozen=True, slots=True)
class Copy:
    """`target = source`, both variable names."""

    target: str
    source: str
    line: int


def blocks_of(typed: TypedIR) -> tuple[dict[object, Block], object]:
    """The blocks of a function by label, and the label of the first.

    The copies of a phi belong to an edge: where the block in front branches, the edge gets a block of its own.
    """
    moves: dict[tuple[int, int], list[Copy]] = {}
    for label, block in typed.ir.blocks.items():
        for stmt in block.body:
            if _is(stmt, "phi"):
                for value, source in zip(stmt.value.incoming_values, stmt.value.incoming_blocks, strict=True):
                    if value is not nir.UNDEFINED:
                        moves.setdefault((source, label), []).append(Copy(stmt.target.name + "~", value.name, stmt.loc.line))
    shared = _shared_iterators(typed)
    out: dict[object, Block] = {label: _block(block, typed, shared) for label, block in typed.ir.blocks.items()}
    for (source, target), copies in moves.items():
        block = out[source]
        if isinstance(block.end, Jump):
            block.body += copies
        elif isinstance(block.end, Branch):
            edge = ("edge", source, target)
            out[edge] = Block(list[object](copies), Jump(target))
            block.end = Branch(block.end.condition, *(edge if t == target else t for t in (block.end.then, block.end.orelse)))
    entry = min(typed.ir.blocks)
    _join_headers(out, entry)
    return out, entry


def _join_headers(blocks: dict[object, Block], entry: object) -> None:
    """Joins a block that asks an iterator to the block of copies that alone leads to it, in place.

    Where a loop is long, its jump has an argument of more than a byte, and Numba makes a block of the EXTENDED_ARG in front
    of FOR_ITER: the copies of the loop stand there, and the jump back leads there.
    """
    sources: dict[object, list[object]] = {}
    for label, block in blocks.items():
        for target in block.targets:
            sources.setdefault(target, []).append(label)
    for label in [x for x, block in blocks.items() if block.loop_header and x != entry]:
        if len(sources.get(label, ())) != 1:
            continue
        before = blocks[sources[label][0]]
        if isinstance(before.end, Jump) and all(isinstance(s, Copy) for s in before.body):
            header = blocks.pop(label)
            before.body += header.body
            before.end, before.loop_header = header.end, True


def _shared_iterators(typed: TypedIR) -> set[str]:
    """The names of iterators whose position may move at more than one place: those that several loops, or `next`, take up."""
    statements = [s for block in typed.ir.blocks.values() for s in block.body if isinstance(s, nir.Assign)]
    same: dict[str, str] = {}  # an iterator that is another one by a second name
    taken: list[str] = []
    for stmt in statements:
        if isinstance(stmt.value, nir.Var):
            same[stmt.target.name] = stmt.value.name
        elif _is(stmt, "getiter"):
            taken.append(stmt.value.value.name)
            if isinstance(typed.typemap[taken[-1]], types.IteratorType):
                same[stmt.target.name] = taken[-1]
        elif _is(stmt, "call") and called_function(typed, stmt.value) is next:
            taken.append(stmt.value.args[0].name)

    def origin(name: str) -> str:
        return origin(same[name]) if name in same else name

    places = Counter(map(origin, taken))
    return {name for name in same if places[origin(name)] > 1}


def _is(stmt: Any, op: str) -> bool:
    return isinstance(stmt, nir.Assign) and isinstance(stmt.value, nir.Expr) and stmt.value.op == op


def _block(block: Any, typed: TypedIR, shared: set[str]) -> Block:
    body: list[Any] = []
    for stmt in block.body[:-1]:
        if _is(stmt, "phi"):
            body.append(Copy(stmt.target.name, stmt.target.name + "~", stmt.loc.line))
        elif not isinstance(stmt, nir.Del):
            body.append(stmt)
    header = any(
        _is(s, "iternext") and modelled_iterator(typed.typemap[s.value.value.name]) and s.value.value.name not in shared for s in body
    )
    last = block.body[-1]
    match last:
        case nir.Jump():
            return Block(body, Jump(last.target), header)
        case nir.Branch():
            return Block(body, Branch(last.cond.name, last.truebr, last.falsebr), header)
        case nir.Return():
            body.append(Copy(RETURNED, last.value.name, last.loc.line))
            return Block(body, Return())
    body.append(last)  # raise
    return Block(body, Stop())


def modelled_iterator(t: Any) -> bool:
    """True for iterators over ranges, arrays and their indices, homogeneous tuples, and `enumerate` and `zip` of these."""
    if isinstance(t, types.RangeIteratorType):
        return True
    if isinstance(t, types.NumpyFlatType):
        return bool(t.array_type.layout == "C")
    if isinstance(t, types.ArrayIterator):
        return isinstance(t.array_type, types.Array)
    if isinstance(t, types.UniTupleIter | types.NumpyNdIndexType):
        return True
    if isinstance(t, types.NumpyNdEnumerateType):
        return isinstance(t.array_type, types.Array)
    if isinstance(t, types.EnumerateType):
        return modelled_iterator(t.source_type)
    if isinstance(t, types.ZipType):
        return all(modelled_iterator(x) for x in t.source_types)
    return False


def tries(typed: TypedIR) -> int | None:
    """The line of the first `try`, if there is one."""
    for block in typed.ir.blocks.values():
        for stmt in block.body:
            if isinstance(stmt, nir.Assign) and isinstance(stmt.value, nir.Global) and stmt.value.name == "mark_try_block":
                line, first = int(stmt.loc.line), int(typed.ir.loc.line)  # that of the first statement inside
                while line > first and not linecache.getline(typed.ir.loc.filename, line).lstrip().startswith("try"):
                    line -= 1
                return line if line > first else int(stmt.loc.line)
    return None
