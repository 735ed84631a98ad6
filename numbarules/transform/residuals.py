"""What the reverse sweep still needs from the forward one: computed again where that is cheap and safe, else written down.

For one region at a time, a minimum cut chooses the values to write down: every needed value must be computable from
written ones, from the loop's counter, and from values defined further out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..analysis.effects import effects, is_cheap
from ..ir.nodes import Apply, For, If, Load, Named, Operand, Stmt, Var, View, While
from ..ir.rewrite import Builder, free_vars, substitute_stmt
from ..ir.types import BOOL, Array, NoneType, Pointer, Scalar, Tuple, Type, is_float, leaves
from ..primitives import ieee_divide
from .mincut import minimum_cut
from .tree import Node, Tree

__all__ = ["Plan", "forgiving", "has_size", "plan_residuals", "recompute", "size_of"]


@dataclass(slots=True)
class Plan:
    """`recorded`: variables to write down. `defined`: what defines each variable of the region."""

    recorded: list[Var]
    defined: dict[Var, Node | None] = field(default_factory=dict)


def plan_residuals(needed: Iterable[Var], tree: Tree, given: set[Var], stable: Callable[[Stmt], bool], fast: bool = False) -> Plan:
    """Chooses what to write down so that `needed`, variables defined in `tree`, can be had in the reverse sweep.

    `given` are parameters that the reverse sweep computes by itself (the counter). `stable(load)` tells whether a load
    may be executed again; with `fast` no comparison of floats may.
    """
    defined = tree.defined()
    wanted = [v for v in needed if v in defined and v not in given]
    operands: dict[Var, list[Var]] = {}
    roots: set[Var] = set()
    weight: dict[Var, int] = {}
    todo = list(wanted)
    while todo:
        v = todo.pop()
        if v in weight:
            continue
        node = defined[v]
        weight[v] = size_of(v.type)
        if node is None or not repeatable(node, stable, fast):
            roots.add(v)
            continue
        operands[v] = [a for a in _sources(node) if a in defined and a not in given]
        todo += operands[v]
    return Plan(minimum_cut(wanted, operands, roots, weight), defined)


def _sources(node: Node) -> list[Var]:
    """The variables a node reads, those of the regions inside it included."""
    found = [a for a in node.args if isinstance(a, Var)]
    for tree in node.trees:
        found += [v for v in free_vars(tree.freeze()) if v not in found]
    return found


_SMALL = 6  # statements of a branch that is worth executing again


def repeatable(node: Node, stable: Callable[[Stmt], bool], fast: bool) -> bool:
    """True where executing a statement again, in the reverse sweep, gives the same values at little cost."""
    if fast and any(r.type == BOOL for r in node.results) and any(is_float(a.type) for a in node.args):
        return False
    if isinstance(node.op, Load):
        return node.primal is not None and stable(node.primal)
    if isinstance(node.op, If):
        inner = [n for t in node.trees for n in t.nodes]
        return (
            len(inner) <= _SMALL
            and not any(t.tail for t in node.trees)
            and all(t.yields is not None for t in node.trees)
            and all(not isinstance(n.op, For | While | If) and not n.before and not n.after and repeatable(n, stable, fast) for n in inner)
        )
    if node.trees or (isinstance(node.op, View) and node.op.kind == "reshape"):
        return False
    stmt = Stmt(node.op, tuple(node.args), tuple(node.results))
    return is_cheap(stmt) and not effects(stmt).writes


def recompute(plan: Plan, needed: Iterable[Var], given: dict[Var, Operand], b: Builder) -> dict[Var, Operand]:
    """Emits what gives `needed` from `given` (written values and the counter); returns where each variable is then found."""
    env: dict[Var, Operand] = dict(given)

    def have(v: Var) -> None:
        if v in env or v not in plan.defined:
            return
        node = plan.defined[v]
        assert node is not None, v
        for source in _sources(node):
            have(source)
        b.add(forgiving(substitute_stmt(node.statement(), env, b.names)))

    for v in needed:
        have(v)
    return env


def forgiving(stmt: Stmt) -> Stmt:
    """The statement with float divisions that follow IEEE 754: the forward sweep has raised what there was to raise."""
    match stmt.op:
        case Apply(Named(obj)) if obj is operator.truediv and stmt.results:
            if all(is_float(v.type) for v in (stmt.results[0], *stmt.args)):
                return Stmt(Apply(Named(ieee_divide)), stmt.args, stmt.results, (), stmt.loc)
    if stmt.regions:
        regions = tuple(type(r)(r.params, tuple(map(forgiving, r.body)), r.yields) for r in stmt.regions)
        return Stmt(stmt.op, stmt.args, stmt.results, regions, stmt.loc)
    return stmt


def has_size(t: Type) -> bool:
    """True for types whose values take `size_of` bytes or less; of other types only the back end knows."""
    return all(isinstance(x, Scalar | Array | Pointer | NoneType) for x in leaves(t))


def size_of(t: Type) -> int:
    """Bytes that a value of the type takes in the record; a guess for types that are not modelled."""
    match t:
        case Tuple(items):
            return sum(-(-size_of(item) // 8) * 8 for item in items)
        case NoneType():
            return 8
        case Scalar(kind):
            return 1 if kind in ("bool", "int8", "uint8") else 4 if kind.endswith("32") else 16 if kind == "complex128" else 8
        case Array(ndim=ndim):
            return 8 * (5 + 2 * ndim)
        case Pointer():
            return 8
    return 128
