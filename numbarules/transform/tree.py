"""The forward sweep while it is being made: the statements of the primal, and what the reverse sweep asks it to add.

A tree that can be changed, because what must be written down is known only when the reverse sweep has been built.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.nodes import Loc, Op, Operand, Region, Rule, Stmt, Var

__all__ = ["Node", "Tree"]


@dataclass(slots=True, eq=False)
class Node:
    """A statement of the forward sweep. `primal` is the statement that it comes from; None for one that was added, at `loc`."""

    op: Op
    args: list[Operand]
    results: list[Var]
    trees: list[Tree]
    primal: Stmt | None
    loc: Loc | None = None
    before: list[Stmt] = field(default_factory=list)
    after: list[Stmt] = field(default_factory=list)

    def freeze(self) -> list[Stmt]:
        if isinstance(self.op, Rule):  # its value half stands in front of it
            return [*self.before, *self.after]
        return [*self.before, self.statement(), *self.after]

    def statement(self) -> Stmt:
        """The statement alone, without those in front of it and behind it."""
        trees = tuple(t.freeze() for t in self.trees)
        return Stmt(self.op, tuple(self.args), tuple(self.results), trees, self.primal.loc if self.primal else self.loc)


@dataclass(slots=True, eq=False)
class Tree:
    """A region of the forward sweep; `tail` holds statements that run at its end."""

    params: list[Var]
    nodes: list[Node]
    yields: list[Operand] | None
    tail: list[Stmt] = field(default_factory=list)

    def freeze(self) -> Region:
        body = [s for n in self.nodes for s in n.freeze()]
        if self.yields is not None:
            body += self.tail
        return Region(tuple(self.params), tuple(body), None if self.yields is None else tuple(self.yields))

    def defined(self) -> dict[Var, Node | None]:
        """The variables defined at this level, with the node that makes them; None for parameters."""
        out: dict[Var, Node | None] = dict.fromkeys(self.params)
        for node in self.nodes:
            for stmt in (*node.before, *node.after):
                added = Node(stmt.op, list(stmt.args), list(stmt.results), [], None)
                out.update(dict.fromkeys(stmt.results, added))
            out.update(dict.fromkeys(node.results, node))
        return out
