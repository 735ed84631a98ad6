"""Which names are still wanted behind each `if` and loop of a tree."""

from __future__ import annotations

from typing import Any

from .._numba import nir
from .graph import RETURNED, Copy
from .structure import ControlTest, IfNode, LoopNode, SetControl, Tree

__all__ = ["Liveness", "assigned"]


class Liveness:
    """The names that are still wanted.

    `after[id(node)]`: behind an `IfNode` or `LoopNode`; `start[id(loop)]`: at the start of each iteration.
    """

    def __init__(self, tree: Tree) -> None:
        self.after: dict[int, frozenset[str]] = {}
        self.start: dict[int, frozenset[str]] = {}
        self._tree(tree, frozenset({RETURNED}))

    def _tree(self, tree: Tree, live: frozenset[str]) -> frozenset[str]:
        for item in reversed(tree.items):
            live = self._item(item, live)
        return live

    def _item(self, item: object, live: frozenset[str]) -> frozenset[str]:
        match item:
            case IfNode(condition, then, orelse):
                self.after[id(item)] = live
                both = self._tree(then, live if then.ends else frozenset()) | self._tree(orelse, live if orelse.ends else frozenset())
                return both | {condition.name if isinstance(condition, ControlTest) else str(condition)}
            case LoopNode(body, again, header):
                self.after[id(item)] = live if again else frozenset()
                start: frozenset[str] = frozenset()
                while True:  # what an iteration wants at its start, the one before must leave at its end
                    wanted = self._tree(body, start | ({again} | live if again else set()))
                    for stmt in reversed(header):
                        wanted = self._item(stmt, wanted | live)
                    if wanted <= start:
                        break
                    start |= wanted
                self.start[id(item)] = start
                return start
            case SetControl(name, _):
                return live - {name}
            case Copy(target, source, _):
                return (live - {target}) | {source}
        target, used = _names(item)
        return (live - {target}) | used


def _names(stmt: Any) -> tuple[str, set[str]]:
    if isinstance(stmt, nir.Assign):
        value = stmt.value
        used = {value.name} if isinstance(value, nir.Var) else {v.name for v in value.list_vars()} if isinstance(value, nir.Expr) else set()
        return stmt.target.name, used
    return "", {v.name for v in stmt.list_vars()}


def assigned(item: object) -> set[str]:
    """The names that a node of the tree assigns, inner nodes included."""
    match item:
        case Tree(items):
            return set().union(*map(assigned, items)) if items else set()
        case IfNode(_, then, orelse):
            return assigned(then) | assigned(orelse)
        case LoopNode(body, again, header):
            return assigned(body) | set().union(*map(assigned, header)) if header else assigned(body) | ({again} if again else set())
        case SetControl(name, _) | Copy(name, _, _):
            return {name}
    target, _ = _names(item)
    out = {target} if target else set()
    if isinstance(item, nir.Assign) and isinstance(item.value, nir.Expr) and item.value.op == "iternext":
        out.add("#")  # the position of some iterator
    return out
