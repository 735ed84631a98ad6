"""Numba's typed IR, structured, as a function of our IR.

From here on top-down: the tree of statements (this module), what crosses the border of a region (`regions`), expressions by
their kind (`expressions`, and from there `calls`, `indexing`, `displays`, `attributes`, `iterators`), values as operands
(`operands`, `iterables`), and the state that all of them work on (`frame`, `values`).
"""

from __future__ import annotations

import operator
from typing import Any

from .._numba import TypedIR, nir, our_type, types
from ..ir.nodes import Cast, Const, For, Function, If, Loc, Operand, Raise, Region, Stmt, Var, While, const
from ..ir.rewrite import Builder
from ..ir.types import BOOL, INT64, NONE, Tuple, Type
from .expressions import expression
from .frame import STATE, Frame
from .graph import RETURNED, Copy, blocks_of, tries
from .indexing import set_item
from .iterables import grid_item
from .liveness import Liveness, assigned
from .operands import constant, constant_type, convert, force, operand, raw
from .regions import Crossing, carried, fresh, handed_on
from .structure import ControlTest, IfNode, LoopNode, SetControl, Tree, structure
from .values import GridValue, Iterator, Pending, Value, aggregate, leaves_of
from .whole import whole

__all__ = ["translate"]


def translate(typed: TypedIR, options: tuple[tuple[str, object], ...] = ()) -> Function:
    """The function whose typed IR is given, with the leaves of its arguments as parameters.

    A function with a `try` becomes a call of itself. Raises UnsupportedError for generators.
    """
    line = tries(typed)
    if line is not None:
        instead = "test for the condition beforehand, or move the `try` into a function of its own that no derivative passes through"
        return whole(typed, options, "`try`", line, instead)
    blocks, entry = blocks_of(typed)
    return _Translator(typed, structure(blocks, entry)).function(options)


class _Translator:
    """Walks the tree, and makes what the statements mean in the frame."""

    def __init__(self, typed: TypedIR, tree: Tree) -> None:
        self.frame = Frame(typed)
        self.tree = tree
        self.liveness = Liveness(tree)
        self.arguments: list[Value] = []

    def function(self, options: tuple[tuple[str, object], ...]) -> Function:
        frame, ir = self.frame, self.frame.typed.ir
        params: list[Var] = []
        args: list[tuple[str, Type]] = []

        def leaves(t: Type, hint: str) -> Value:
            if isinstance(t, Tuple):
                return aggregate(t, [leaves(x, hint) for x in t.items])
            known = constant_type(t)
            if known is not None:
                return known
            params.append(frame.b.names.var(t, hint))
            return params[-1]

        for name in ir.arg_names:
            numba_type, t = frame.typed.typemap[f"arg.{name}"], frame.type_of(f"arg.{name}")
            omitted = isinstance(numba_type, types.Omitted)
            args.append((name, NONE if omitted else t))
            self.arguments.append(constant(frame, numba_type.value, t) if omitted else leaves(t, name))
        ends = self.run(self.tree)
        value = frame.env.get(RETURNED)
        yields = tuple(leaves_of(force(frame, value))) if ends and value is not None else None
        region, result = frame.b.region(params, yields), our_type(frame.typed.return_type)
        return Function(ir.func_id.func_name, tuple(args), region, result, Loc(ir.loc.filename, ir.loc.line), options)

    def run(self, tree: Tree) -> bool:
        """Translates a tree; False where its end is never reached."""
        for item in tree.items:
            match item:
                case IfNode():
                    if not self.branch(item):
                        return False
                case LoopNode(again="", header=[_, *_]):
                    self.for_loop(item)
                case LoopNode():
                    if not self.while_loop(item):
                        return False
                case _:
                    self.statement(item)
        return tree.ends

    # ------------------------------------------------------------------------------------------ statements

    def statement(self, stmt: Any) -> None:
        frame = self.frame
        if isinstance(stmt, SetControl):
            frame.env[stmt.name] = const(stmt.value)
            return
        frame.at(stmt.line if isinstance(stmt, Copy) else stmt.loc.line)
        match stmt:
            case Copy(target, source):
                self.assign(target, frame.env.get(source))
            case nir.Assign(target=target, value=nir.Arg(index=index)):
                frame.env[target.name] = self.arguments[index]
            case nir.Assign(target=target, value=nir.Var(name=name)):
                self.assign(target.name, frame.env.get(name))
            case nir.Assign(target=target, value=nir.Const() | nir.Global() | nir.FreeVar() as value):
                frame.env[target.name] = constant(frame, value.value, frame.type_of(target.name))
            case nir.Assign(target=target, value=nir.Expr() as expr):
                frame.env[target.name] = expression(frame, target.name, expr)
            case nir.SetItem(target=target, index=index, value=value) | nir.StaticSetItem(target=target, index_var=index, value=value):
                set_item(frame, *(frame.env[v.name] for v in (target, index, value)))
            case nir.StaticRaise() | nir.DynamicRaise():
                self.raising(stmt)
            case nir.Print() | nir.SetAttr() | nir.DelItem() | nir.StoreMap():
                raw(frame, stmt, None)
            case _:
                frame.refuse(f"the construct `{type(stmt).__name__}` is not supported", str(stmt))

    def assign(self, target: str, value: Value | None) -> None:
        """`target = value`, converted to the type that inference gave the target."""
        frame = self.frame
        if value is None:  # never defined on this path
            frame.env.pop(target, None)
            return
        name = target.removesuffix("~")
        if not name.startswith("$") and name != RETURNED:
            value = force(frame, value)
        if name in frame.typed.typemap:
            value = convert(frame, value, frame.type_of(name), name.lstrip("$"))
        frame.env[target] = value

    def raising(self, stmt: Any) -> None:
        frame = self.frame
        used = [v.name for v in stmt.list_vars()]
        if isinstance(stmt, nir.DynamicRaise):
            used += [a.name for a in stmt.exc_args or () if isinstance(a, nir.Var)]
        names = tuple(dict.fromkeys(used))
        frame.b.add(Stmt(Raise(stmt, names), tuple(operand(frame, frame.env[n]) for n in names), (), (), frame.b.loc))

    # ------------------------------------------------------------------------------------------ branches

    def branch(self, node: IfNode) -> bool:
        frame, condition = self.frame, self.condition(node.condition)
        start = dict(frame.env)
        then, env_then, ends_then = self.side(node.then, start)
        orelse, env_else, ends_else = self.side(node.orelse, start)
        frame.env = start
        crossing, live = Crossing(frame), self.liveness.after[id(node)]

        def wanted(name: str) -> bool:
            return name in live or name.startswith(STATE)

        if ends_then and ends_else:
            slots = {n for n in (*env_then, *env_else) if n.startswith(STATE)}
            for name in filter(wanted, sorted(assigned(node.then) | assigned(node.orelse) | slots)):
                crossing.both(name, env_then.get(name), env_else.get(name))
        elif ends_then or ends_else:
            env, yields = (env_then, crossing.then) if ends_then else (env_else, crossing.orelse)
            for name in filter(wanted, sorted(env)):
                if env[name] is not start.get(name):
                    crossing.only(name, env[name], yields)
        regions = (then.region((), crossing.then if ends_then else None), orelse.region((), crossing.orelse if ends_else else None))
        frame.b.add(Stmt(If(), (condition,), tuple(crossing.results), regions, frame.b.loc))
        return ends_then or ends_else

    def side(self, tree: Tree, start: dict[str, Value]) -> tuple[Builder, dict[str, Value], bool]:
        """One side of a branch: its statements, what the names stand for at its end, and whether that is reached."""
        self.frame.env = dict(start)
        with self.frame.nested() as builder:
            ends = self.run(tree)
        return builder, self.frame.env, ends

    def condition(self, condition: object) -> Operand:
        frame = self.frame
        if isinstance(condition, ControlTest):
            return self.control(condition.name, condition.value)
        value = operand(frame, frame.env[str(condition)])
        return value if value.type == BOOL else frame.b.one(Cast(), [value], BOOL, "test")

    def control(self, name: str, wanted: int) -> Operand:
        """Whether a control variable has the value."""
        value = self.frame.env[name]
        assert isinstance(value, Var | Const)
        return const(value.value == wanted) if isinstance(value, Const) else self.frame.equal(value, const(wanted))

    # ------------------------------------------------------------------------------------------ loops

    def for_loop(self, node: LoopNode) -> None:
        frame, iterator = self.frame, self.header_iterator(node.header)
        names, inits = carried(frame, node, self.liveness, iterator.slot)
        first = frame.env[iterator.slot]
        assert isinstance(first, Var | Const)
        lengths = [frame.arithmetic(operator.sub, iterator.count, first)]
        if isinstance(iterator.source, GridValue) and iterator.source.lengths and isinstance(first, Const):
            lengths = list(iterator.source.lengths)  # a loop an axis
        self.nest(node, iterator, lengths, [], names, inits)
        frame.env[iterator.slot] = iterator.count
        for stmt in node.header:  # the header runs once more before it leaves the loop
            if isinstance(stmt, Copy):
                self.assign(stmt.target, frame.env.get(stmt.source))

    def nest(
        self, node: LoopNode, iterator: Iterator, lengths: list[Operand], outer: list[Operand], names: list[str], inits: list[Value]
    ) -> None:
        """The loops of these lengths inside those whose indices are `outer`; the body stands in the innermost."""
        frame, start = self.frame, dict(self.frame.env)
        params = fresh(frame, names, inits)
        k = frame.b.names.var(INT64, "k")
        ends = True
        with frame.nested() as body:
            if len(lengths) > 1:
                self.nest(node, iterator, lengths[1:], [*outer, k], names, [frame.env[n] for n in names])
            else:
                item = self.next_item(iterator, [*outer, k])
                for stmt in node.header:
                    self.header_statement(stmt, item)
                self.run(node.body)
                ends = node.body.ends
            yields = handed_on(frame, names, inits) if ends else None
        self.finish(For(), [lengths[0]], body.region([k, *params], yields), names, inits, start)

    def next_item(self, iterator: Iterator, indices: list[Operand]) -> Value:
        """The item of this iteration, behind which the iterator now stands."""
        frame = self.frame
        if len(indices) > 1:
            assert isinstance(iterator.source, GridValue)
            return grid_item(frame, iterator.source, indices)
        first = frame.env[iterator.slot]
        assert isinstance(first, Var | Const)
        position = frame.env[iterator.slot] = frame.arithmetic(operator.add, first, indices[0])
        return Pending(iterator.source, position)

    def header_iterator(self, header: list[object]) -> Iterator:
        for stmt in header:
            if isinstance(stmt, nir.Assign) and isinstance(stmt.value, nir.Expr) and stmt.value.op == "iternext":
                value = self.frame.env[stmt.value.value.name]
                assert isinstance(value, Iterator)
                return value
        raise AssertionError("a loop header without iternext")

    def header_statement(self, stmt: Any, item: Value) -> None:
        if not isinstance(stmt, Copy):
            self.frame.at(stmt.loc.line)
        match stmt:
            case nir.Assign(value=nir.Expr(op="iternext")):
                pass
            case nir.Assign(target=target, value=nir.Expr(op="pair_first")):
                self.frame.env[target.name] = item
            case nir.Assign(target=target, value=nir.Expr(op="pair_second")):
                self.frame.env[target.name] = const(True)
            case _:
                self.statement(stmt)

    def while_loop(self, node: LoopNode) -> bool:
        frame = self.frame
        names, inits = carried(frame, node, self.liveness, "")
        start = dict(frame.env)
        params = fresh(frame, names, inits)
        with frame.nested() as body:
            ends = self.run(node.body)
            yields: list[Operand] | None = None
            if ends:
                again = self.control(node.again, 1) if node.again in frame.env else const(False)
                yields = [again, *handed_on(frame, names, inits)]
        self.finish(While(), [], body.region(params, yields), names, inits, start)
        return ends

    def finish(
        self, op: For | While, args: list[Operand], region: Region, names: list[str], inits: list[Value], start: dict[str, Value]
    ) -> None:
        """The loop as a statement, and its results in the names."""
        frame = self.frame
        frame.env = start
        results = fresh(frame, names, inits)
        given = (*args, *(leaf for init in inits for leaf in leaves_of(init)))
        frame.b.add(Stmt(op, given, tuple(results), (region,), frame.b.loc))
