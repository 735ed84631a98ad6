"""The forward sweep: the primal's own statements, and beside each array that carries a derivative its shadow."""

from __future__ import annotations

from typing import Protocol

from ..analysis.activity import Activity
from ..analysis.alias import aliases_of, holds_memory
from ..errors import RuleError, message
from ..ir.nodes import (
    UNDEFINED,
    Alloc,
    Apply,
    Call,
    Cast,
    Const,
    For,
    If,
    Invoke,
    Loc,
    Operand,
    PrivateCopy,
    Region,
    Rule,
    ShadowLike,
    Stmt,
    Var,
    View,
    While,
)
from ..ir.rewrite import Names, substitute
from ..ir.types import POINTER, Array, Opaque, Type, writable
from .tree import Node, Tree

__all__ = ["Forward", "Pair", "shadow_type"]


def shadow_type(t: Type) -> Type:
    """The type of the shadow of a value."""
    return writable(t) if isinstance(t, Array) else t


class Pair(Protocol):
    """The two halves of a call, with the positions of the arguments and results that carry derivatives."""

    shadowed: tuple[int, ...]
    scalars: tuple[int, ...]
    shadows_out: tuple[int, ...]
    cotangents: tuple[int, ...]
    forward: object
    reverse: object


class Forward:
    """Builds the forward sweep. `shadows` maps each active array to its shadow, which later statements of the same scope see."""

    def __init__(self, names: Names, activity: Activity, record: Var) -> None:
        self.names = names
        self.active = activity
        self.record = record
        self.shadows: dict[Var, Operand] = {}
        self.definitions: dict[Var, Stmt] = {}  # of the primal
        self.owners: dict[Operand, Var] = {}  # the array that a shadow belongs to
        self.pairs: dict[int, Pair] = {}  # by call statement
        self.residuals: dict[int, list[Operand]] = {}  # what a rule's value half keeps, by statement

    def has_shadow(self, v: Operand) -> bool:
        return isinstance(v, Var) and isinstance(v.type, Array) and self.active(v)

    def give(self, v: Var, shadow: Operand) -> None:
        """Makes `shadow` the shadow of `v`."""
        self.shadows[v] = shadow
        self.owners[shadow] = v

    def shadow(self, v: Operand) -> Operand:
        """The shadow of an active array."""
        if isinstance(v, Const):
            assert v.value is UNDEFINED, v
            return Const(shadow_type(v.type), UNDEFINED)
        return self.shadows[v]

    def new_shadow(self, v: Var) -> Var:
        out = self.names.var(shadow_type(v.type), f"{v.name.split('.')[0]}_bar")
        self.give(v, out)
        return out

    def region(self, region: Region) -> Tree:
        nodes: list[Node] = []
        for stmt in region.body:
            self.statement(stmt, nodes)
        return Tree(list(region.params), nodes, None if region.yields is None else list(region.yields))

    def statement(self, stmt: Stmt, nodes: list[Node]) -> None:
        if len(stmt.results) == 1 and not stmt.regions:
            self.definitions[stmt.results[0]] = stmt
        match stmt.op:
            case If():
                self.branch(stmt, nodes)
            case For() | While():
                self.loop(stmt, nodes)
            case Rule():
                self.rule(stmt, nodes)
            case Call():
                self.call(stmt, nodes)
            case _:
                nodes.append(Node(stmt.op, list(stmt.args), list(stmt.results), [], stmt))
                self.beside(stmt, nodes)

    def beside(self, stmt: Stmt, nodes: list[Node]) -> None:
        """The shadow of what a plain statement defines."""
        for result in stmt.results:
            if not self.has_shadow(result):
                continue
            match stmt.op:
                case View():
                    args: list[Operand] = [self.shadow(stmt.args[0]), *stmt.args[1:]]
                    nodes.append(Node(stmt.op, args, [self.new_shadow(result)], [], None))
                case Cast():
                    nodes.append(Node(View("cast"), [self.shadow(stmt.args[0])], [self.new_shadow(result)], [], None))
                case Alloc() | Apply() | PrivateCopy():
                    nodes.append(Node(ShadowLike(), [self.record, result], [self.new_shadow(result)], [], None))

    def call(self, stmt: Stmt, nodes: list[Node]) -> None:
        """A call of a function with sweeps of its own: its forward half, if a derivative passes through the call."""
        inputs, outputs = tuple(map(self.active, stmt.args)), tuple(map(self.active, stmt.results))
        op = stmt.op
        assert isinstance(op, Call)
        pair = op.unit.pair(inputs, outputs, self.sharing(stmt.args))  # type: ignore[attr-defined]
        self.pairs[id(stmt)] = pair
        shadows = [self.shadow(stmt.args[i]) for i in pair.shadowed]
        results = [*stmt.results, *(self.new_shadow(stmt.results[i]) for i in pair.shadows_out), self.names.var(POINTER, "frame")]
        nodes.append(Node(Invoke(f"{op.name}_forward", pair.forward), [self.record, *stmt.args, *shadows], results, [], stmt))

    def sharing(self, args: tuple[Operand, ...]) -> tuple[tuple[int, int], ...]:
        """The pairs of arguments that may share memory."""
        classes = [self.active.aliases.of(a) if holds_memory(a.type) else None for a in args]
        return tuple((i, j) for i, c in enumerate(classes) for j in range(i) if c is not None and classes[j] is c)

    def rule(self, stmt: Stmt, nodes: list[Node]) -> None:
        """The value half of a rule in place of the call; its statements are nobody's business but its own pullback's."""
        (inner,) = stmt.regions
        body = substitute(Region((), inner.body, inner.yields), dict(zip(inner.params, stmt.args, strict=True)), self.names)
        loc = stmt.loc and Loc(stmt.loc.filename, stmt.loc.line, stmt.loc)  # code of the rule, at the call
        nodes += [Node(s.op, list(s.args), list(s.results), [_frozen(r) for r in s.regions], None, loc) for s in body.body]
        values = (body.yields or ())[: len(stmt.results)]
        self.residuals[id(stmt)] = self.keep(stmt, body, nodes)
        for result, value in zip(stmt.results, values, strict=True):
            nodes.append(Node(Cast(), [value], [result], [], None))
        for result in stmt.results:
            if self.has_shadow(result):
                nodes.append(Node(ShadowLike(), [self.record, result], [self.new_shadow(result)], [], None))
        nodes.append(Node(stmt.op, list(stmt.args), [], [], stmt))

    def keep(self, stmt: Stmt, body: Region, nodes: list[Node]) -> list[Operand]:
        """What the value half keeps for its pullback; arrays that may be overwritten after the call are copied."""
        n = len(stmt.results)
        values, kept = (body.yields or ())[:n], (body.yields or ())[n:]
        inside, outside = aliases_of(body), self.active.aliases
        known = [*zip(stmt.args, stmt.args, strict=True), *zip(stmt.results, values, strict=True)]
        unsafe = {inside.of(v) for seen, v in known if holds_memory(seen.type) and outside.clobbered(seen, stmt)}
        out: list[Operand] = []
        for v in kept:
            if isinstance(v, Var) and holds_memory(v.type) and inside.of(v) in unsafe:
                v = self.private(stmt, v, nodes)
            out.append(v)
        return out

    def private(self, stmt: Stmt, v: Var, nodes: list[Node]) -> Operand:
        if isinstance(v.type, Opaque) and getattr(v.type.payload, "private", False):
            return v  # a pullback: nobody else can write into what it owns
        if not isinstance(v.type, Array):
            rule = getattr(stmt.op, "name", "a rule")
            raise RuleError(
                message(
                    f"{rule} keeps `{v.name}` for its pullback, and it may be changed before the pullback runs",
                    filename=stmt.loc.filename if stmt.loc else None,
                    line=stmt.loc.line if stmt.loc else None,
                    contract="a value that a rule keeps and that is written into after the call is an array, which is then copied",
                    found=f"a value of type {v.type}",
                    instead="copy in the rule what its pullback needs",
                )
            )
        copy = self.names.var(writable(v.type), v.name)
        nodes.append(Node(PrivateCopy(), [v], [copy], [], None))
        if copy.type == v.type:
            return copy
        seen = self.names.var(v.type, v.name)
        nodes.append(Node(View("cast"), [copy], [seen], [], None))
        return seen

    def branch(self, stmt: Stmt, nodes: list[Node]) -> None:
        trees = [self.region(r) for r in stmt.regions]
        results = list(stmt.results)
        for i, result in enumerate(stmt.results):
            if self.has_shadow(result):
                for tree, region in zip(trees, stmt.regions, strict=True):
                    if tree.yields is not None and region.yields is not None:
                        tree.yields.append(self.shadow(region.yields[i]))
                results.append(self.new_shadow(result))
        nodes.append(Node(stmt.op, list(stmt.args), results, trees, stmt))

    def loop(self, stmt: Stmt, nodes: list[Node]) -> None:
        (region,) = stmt.regions
        skip = 1 if isinstance(stmt.op, For) else 0
        carried = [i for i, p in enumerate(region.params[skip:]) if self.has_shadow(p)]
        inits = [self.shadow(stmt.args[skip + i]) for i in carried]
        params = [self.new_shadow(region.params[skip + i]) for i in carried]
        tree = self.region(region)
        tree.params += params
        if tree.yields is not None and region.yields is not None:
            offset = 0 if skip else 1
            tree.yields += [self.shadow(region.yields[offset + i]) for i in carried]
        results = [*stmt.results, *(self.new_shadow(stmt.results[i]) for i in carried)]
        nodes.append(Node(stmt.op, [*stmt.args, *inits], results, [tree], stmt))


def _frozen(region: Region) -> Tree:
    nodes = [Node(s.op, list(s.args), list(s.results), [_frozen(r) for r in s.regions], s) for s in region.body]
    return Tree(list(region.params), nodes, None if region.yields is None else list(region.yields))


