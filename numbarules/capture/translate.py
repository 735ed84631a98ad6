"""Numba's typed IR, structured, as a function of our IR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba import njit

from .._numba import TypedIR, nir, our_type, types
from ..ir.nodes import (
    UNDEFINED,
    Apply,
    Cast,
    Const,
    For,
    Function,
    If,
    Item,
    Loc,
    MakeTuple,
    Named,
    Operand,
    Raise,
    Region,
    Stmt,
    Var,
    While,
    const,
    same_operand,
)
from ..ir.rewrite import Builder, Names
from ..ir.types import BOOL, INT64, NONE, Array, Opaque, Tuple, Type
from ..primitives import Whole
from .expressions import Expressions
from .graph import RETURNED, Copy, blocks_of, tries
from .liveness import Liveness, assigned
from .structure import ControlTest, IfNode, LoopNode, SetControl, Tree, structure
from .values import Aggregate, Iterator, Pending, Struct, Value, aggregate, leaves_of, rebuild, same_shape, undefined

__all__ = ["translate"]

_SECOND_CLASS = (
    types.SliceType,
    types.RangeType,
    types.RangeIteratorType,
    types.BoundFunction,
    types.IteratorType,
    types.Pair,
    types.Module,
)


def translate(typed: TypedIR, options: tuple[tuple[str, object], ...] = ()) -> Function:
    """The function whose typed IR is given, with the leaves of its arguments as parameters.

    A function with a `try` becomes a call of itself. Raises UnsupportedError for generators.
    """
    code = typed.ir.func_id
    line = tries(typed)
    if line is not None:
        instead = "test for the condition beforehand, or move the `try` into a function of its own that no derivative passes through"
        return _whole(typed, options, "`try`", line, instead)
    blocks, entry = blocks_of(typed)
    tree = structure(blocks, entry)
    return _Translator(typed, tree).function(code.func_name, options)


def _whole(typed: TypedIR, options: tuple[tuple[str, object], ...], construct: str, line: int, instead: str) -> Function:
    """A function that only calls the function it stands for."""
    loc = Loc(typed.ir.loc.filename, line)
    names = Names()
    translator = _Translator(typed, Tree([]))
    args = tuple((a, our_type(typed.typemap[f"arg.{a}"])) for a in typed.ir.arg_names)
    if any(isinstance(typed.typemap[f"arg.{a}"], types.Omitted) for a in typed.ir.arg_names):
        translator.at(line)
        translator.refuse(f"{construct} in a function that is called with default arguments is not supported", "an omitted argument")
    b = Builder(names, loc)
    params: list[Var] = []

    def parameter(t: Type, hint: str) -> Operand:
        if isinstance(t, Tuple):
            return b.one(MakeTuple(), [parameter(x, hint) for x in t.items], t, hint)
        known = translator.constant_type(t)
        if known is None:
            params.append(names.var(t, hint))
        return known if known is not None else params[-1]

    given = [parameter(t, a) for a, t in args]
    result = our_type(typed.return_type)
    callee = Whole(njit(**dict(options))(typed.function), construct, instead, loc.filename, line)
    value = b.one(Apply(Named(callee)), given, result, "value")
    yields: list[Operand] = []

    def spread(v: Operand) -> None:
        if isinstance(v.type, Tuple):
            for i, t in enumerate(v.type.items):
                spread(b.one(Item(i), [v], t, "item"))
        else:
            yields.append(v)

    spread(value)
    return Function(typed.ir.func_id.func_name, args, b.region(params, yields), result, Loc(loc.filename, typed.ir.loc.line), options)


class _Translator(Expressions):
    """Walks the tree with an environment from names to values; `self.b` collects the statements of the current region."""

    def __init__(self, typed: TypedIR, tree: Tree) -> None:
        super().__init__(typed, Builder(Names()))
        self.tree = tree
        self.liveness = Liveness(tree)
        self.params: dict[int, Value] = {}

    def function(self, name: str, options: tuple[tuple[str, object], ...]) -> Function:
        params: list[Var] = []
        args: list[tuple[str, Type]] = []
        for i, arg in enumerate(self.typed.ir.arg_names):
            t = our_type(self.typed.typemap[f"arg.{arg}"])

            def leaf(t: Type, hint: str = arg) -> Value:
                if isinstance(t, Tuple):
                    return aggregate(t, map(leaf, t.items))
                if self.constant_type(t) is not None:
                    return self.constant_type(t)  # type: ignore[return-value]
                params.append(self.b.names.var(t, hint))
                return params[-1]

            omitted = self.typed.typemap[f"arg.{arg}"]
            args.append((arg, NONE if isinstance(omitted, types.Omitted) else t))
            self.params[i] = self.constant(omitted.value, our_type(omitted)) if isinstance(omitted, types.Omitted) else leaf(t)
        ends = self.run(self.tree)
        result = our_type(self.typed.return_type)
        value = self.env.get(RETURNED)
        yields = tuple(leaves_of(self.force(value))) if ends and value is not None else None
        loc = Loc(self.typed.ir.loc.filename, self.typed.ir.loc.line)
        return Function(name, tuple(args), self.b.region(params, yields), result, loc, options)

    # ------------------------------------------------------------------------------------------ the tree

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
                    if not self.loop(item):
                        return False
                case SetControl(name, value):
                    self.env[name] = const(value)
                case Copy(target, source, line):
                    self.at(line)
                    self.assign(target, self.env.get(source))
                case _:
                    self.statement(item)
        return tree.ends

    def assign(self, target: str, value: Value | None) -> None:
        """`target = value`, converted to the type that inference gave the target."""
        if value is None:  # never defined on this path
            self.env.pop(target, None)
            return
        name = target.removesuffix("~")
        if not name.startswith("$") and name != RETURNED:
            value = self.force(value)
        if name in self.typed.typemap:
            value = self.convert(value, our_type(self.typed.typemap[name]), name.lstrip("$"))
        self.env[target] = value

    def convert(self, value: Value, t: Type, hint: str) -> Value:
        """`value` as a `t`."""
        if isinstance(value, Aggregate | Struct) and isinstance(t, Tuple):
            return aggregate(t, [self.convert(v, x, hint) for v, x in zip(value.items, t.items, strict=True)])
        if isinstance(t, Opaque) and isinstance(t.payload, types.NumpyFlatType):
            if isinstance(value, Var) and isinstance(value.type, Array):
                return value  # a flat view stands for itself
        if isinstance(value, Var | Const) and value.type != t and t != NONE:
            if self.constant_type(t) is not None or (isinstance(value, Const) and value.value is UNDEFINED):
                return value
            return self.b.one(Cast(), [value], t, hint)
        return value

    # ------------------------------------------------------------------------------------------ branches

    def branch(self, node: IfNode) -> bool:
        condition = self.condition(node.condition)
        start = dict(self.env)
        sides = [self.side(t, start) for t in (node.then, node.orelse)]
        (then, env_then, ends_then), (orelse, env_else, ends_else) = sides
        yields_then: list[Operand] = []
        yields_else: list[Operand] = []
        results: list[Var] = []
        if ends_then and ends_else:
            self.env = start
            live = self.liveness.after[id(node)]
            for name in sorted(assigned(node.then) | assigned(node.orelse) | {n for n in (*env_then, *env_else) if n.startswith("#slot")}):
                if name in live or name.startswith("#slot"):
                    self.merge(name, env_then.get(name), env_else.get(name), yields_then, yields_else, results)
        else:  # one side raises: what the other leaves holds
            env, ends, yields = (env_then, ends_then, yields_then) if ends_then else (env_else, ends_else, yields_else)
            self.env = start
            if ends:
                live = self.liveness.after[id(node)]
                for name in sorted(env):
                    if (name in live or name.startswith("#slot")) and env[name] is not start.get(name):
                        self.env[name] = rebuild(env[name], self.exporter(leaves_of(env[name]), yields, results, name))
        regions = (then.region((), yields_then if ends_then else None), orelse.region((), yields_else if ends_else else None))
        self.b.add(Stmt(If(), (condition,), tuple(results), regions, self.b.loc))
        return ends_then or ends_else

    def side(self, tree: Tree, start: dict[str, Value]) -> tuple[Builder, dict[str, Value], bool]:
        outer, self.b, self.env = self.b, self.b.child(), dict(start)
        ends = self.run(tree)
        inner, self.b = self.b, outer
        return inner, self.env, ends

    def exporter(self, leaves: list[Operand], yields: list[Operand], results: list[Var], hint: str) -> Any:
        queue = iter(leaves)

        def leaf() -> Operand:
            old = next(queue)
            if isinstance(old, Const):
                return old
            yields.append(old)
            results.append(self.b.names.var(old.type, hint.lstrip("$#")))
            return results[-1]

        return leaf

    def merge(self, name: str, a: Value | None, b: Value | None, ya: list[Operand], yb: list[Operand], results: list[Var]) -> None:
        if a is b:
            if a is not None:
                self.env[name] = a
            return
        if a is None and b is None:
            self.env.pop(name, None)
            return
        model = a if a is not None else b
        assert model is not None
        if a is None or b is None:
            missing = iter([Const(leaf.type, UNDEFINED) for leaf in leaves_of(model)])
            other = rebuild(model, lambda: next(missing))
            a, b = a or other, b or other
        if not same_shape(a, b):
            self.refuse(
                "values of different kinds meet after a branch",
                f"`{name}` is bound to a different kind of iterator, slice or method on each side",
            )
        pairs = iter(list(zip(leaves_of(a), leaves_of(b), strict=True)))

        def leaf() -> Operand:
            x, y = next(pairs)
            if same_operand(x, y):
                return x
            t = y.type if isinstance(x, Const) and x.value is UNDEFINED else x.type
            ya.append(x)
            yb.append(y)
            results.append(self.b.names.var(t, name.lstrip("$#")))
            return results[-1]

        self.env[name] = rebuild(a, leaf)

    def condition(self, condition: object) -> Operand:
        if isinstance(condition, ControlTest):
            value = self.env[condition.name]
            if isinstance(value, Const):
                return const(value.value == condition.value)
            return self.compare_equal(value, const(condition.value))  # type: ignore[arg-type]
        value = self.operand(self.env[str(condition)])
        if value.type != BOOL:
            return self.b.one(Cast(), [value], BOOL, "test")
        return value

    # ------------------------------------------------------------------------------------------ loops

    def carried(self, node: LoopNode) -> tuple[list[str], list[Value]]:
        """The names that change from one iteration to the next, and their values at the start."""
        inner = assigned(node)
        wanted = self.liveness.start[id(node)] | self.liveness.after[id(node)] | ({node.again} if node.again else set())
        names = sorted(inner & wanted)
        if "#" in inner:
            names += [n for n in self.env if n.startswith("#slot")]
        kept: list[str] = []
        inits: list[Value] = []
        for name in names:
            value = self.env.get(name)
            if value is None:
                t = self.type_at_start(name, node)
                if t is None:
                    continue
                value = undefined(t)
            kept.append(name)
            inits.append(value)
        return kept, inits

    def type_at_start(self, name: str, node: LoopNode) -> Type | None:
        """The type of a name without a value in front of its loop; None where no iteration can hand it to the next."""
        if name == node.again:
            return BOOL
        known = name.removesuffix("~")
        if name.startswith("$") and known not in self.typed.typemap:
            return INT64
        numba_t = self.typed.return_type if name == RETURNED else self.typed.typemap[known]
        t = our_type(numba_t)
        return t if self.constant_type(t) is None and self.first_class(numba_t) else None

    def open_region(self, names: Iterable[str], inits: Iterable[Value]) -> tuple[Builder, list[Var]]:
        params: list[Var] = []
        for name, init in zip(names, inits, strict=True):
            leaves = iter(leaves_of(init))

            def leaf(leaves: Any = leaves, name: str = name) -> Operand:
                params.append(self.b.names.var(next(leaves).type, name.lstrip("$#")))
                return params[-1]

            self.env[name] = rebuild(init, leaf)
        outer, self.b = self.b, self.b.child()
        return outer, params

    def close_region(self, names: list[str], inits: list[Value]) -> list[Operand]:
        out: list[Operand] = []
        for name, init in zip(names, inits, strict=True):
            value = self.env.get(name, None)
            if value is None:
                value = init
            if not same_shape(init, value):
                self.refuse(
                    "a loop rebinds a name to another kind of value",
                    f"`{name}` is bound to a different kind of iterator, slice or method in each iteration",
                )
            out += leaves_of(value)
        return out

    def for_loop(self, node: LoopNode) -> None:
        iterator = self.header_iterator(node.header)
        names, inits = self.carried(node)
        names_inits = [(n, v) for n, v in zip(names, inits, strict=True) if n != iterator.slot]
        names, inits = [n for n, _ in names_inits], [v for _, v in names_inits]
        start = dict(self.env)
        outer, params = self.open_region(names, inits)
        k = self.b.names.var(INT64, "k")
        self.env[iterator.slot] = k
        for stmt in node.header:
            self.header_statement(stmt, iterator, k)
        self.run(node.body)
        yields = self.close_region(names, inits) if node.body.ends else None
        region, self.b = self.b.region([k, *params], yields), outer
        flat = [leaf for init in inits for leaf in leaves_of(init)]
        self.finish(For(), (iterator.count, *flat), region, names, inits, start)
        self.env[iterator.slot] = iterator.count
        for stmt in node.header:  # the header runs once more before it leaves the loop
            if isinstance(stmt, Copy):
                self.assign(stmt.target, self.env.get(stmt.source))

    def header_iterator(self, header: list[object]) -> Iterator:
        for stmt in header:
            if isinstance(stmt, nir.Assign) and isinstance(stmt.value, nir.Expr) and stmt.value.op == "iternext":
                value = self.env[stmt.value.value.name]
                assert isinstance(value, Iterator)
                return value
        raise AssertionError("a loop header without iternext")

    def header_statement(self, stmt: object, iterator: Iterator, k: Var) -> None:
        if isinstance(stmt, Copy):
            self.assign(stmt.target, self.env.get(stmt.source))
        elif isinstance(stmt, nir.Assign) and getattr(stmt.value, "op", None) in ("iternext", "pair_first", "pair_second"):
            self.at(stmt.loc.line)
            if stmt.value.op == "pair_first":
                self.env[stmt.target.name] = Pending(iterator.source, k)
            elif stmt.value.op == "pair_second":
                self.env[stmt.target.name] = const(True)
        else:
            self.statement(stmt)

    def loop(self, node: LoopNode) -> bool:
        names, inits = self.carried(node)
        names_inits = [(n, v) for n, v in zip(names, inits, strict=True) if n != node.again]
        names, inits = [n for n, _ in names_inits], [v for _, v in names_inits]
        start = dict(self.env)
        outer, params = self.open_region(names, inits)
        ends = self.run(node.body)
        again: Operand = const(True)
        if ends:
            value = self.env.get(node.again, const(0))
            again = const(bool(value.value)) if isinstance(value, Const) else self.compare_equal(value, const(1))  # type: ignore[arg-type]
        yields = [again, *self.close_region(names, inits)] if ends else None
        region, self.b = self.b.region(params, yields), outer
        flat = [leaf for init in inits for leaf in leaves_of(init)]
        self.finish(While(), tuple(flat), region, names, inits, start)
        return ends

    def finish(
        self, op: For | While, args: tuple[Operand, ...], region: Region, names: list[str], inits: list[Value], start: dict[str, Value]
    ) -> None:
        results: list[Var] = []
        self.env = start
        for name, init in zip(names, inits, strict=True):
            leaves = iter(leaves_of(init))

            def leaf(leaves: Any = leaves, name: str = name) -> Operand:
                results.append(self.b.names.var(next(leaves).type, name.lstrip("$#")))
                return results[-1]

            self.env[name] = rebuild(init, leaf)
        self.b.add(Stmt(op, args, tuple(results), (region,), self.b.loc))

    # ------------------------------------------------------------------------------------------ statements

    def statement(self, stmt: Any) -> None:
        self.at(stmt.loc.line)
        match stmt:
            case nir.Assign(target=target, value=nir.Arg(index=index)):
                self.env[target.name] = self.params[index]
            case nir.Assign(target=target, value=nir.Var(name=name)):
                self.assign(target.name, self.env.get(name))
            case nir.Assign(target=target, value=nir.Const() | nir.Global() | nir.FreeVar() as value):
                self.env[target.name] = self.constant(value.value, our_type(self.typed.typemap[target.name]))
            case nir.Assign(target=target, value=nir.Expr() as expr):
                self.env[target.name] = self.expression(target.name, expr)
            case nir.SetItem(target=target, index=index, value=value):
                self.set_item(self.env[target.name], self.env[index.name], self.env[value.name])
            case nir.StaticSetItem(target=target, index_var=index, value=value):
                self.set_item(self.env[target.name], self.env[index.name], self.env[value.name])
            case nir.StaticRaise() | nir.DynamicRaise():
                names = list(dict.fromkeys(v.name for v in stmt.list_vars()))
                if isinstance(stmt, nir.DynamicRaise):
                    names = list(dict.fromkeys([*names, *(a.name for a in stmt.exc_args or () if isinstance(a, nir.Var))]))
                self.b.add(Stmt(Raise(stmt, tuple(names)), tuple(self.operand(self.env[n]) for n in names), (), (), self.b.loc))
            case nir.Print() | nir.SetAttr() | nir.DelItem() | nir.StoreMap():
                self.raw(stmt, None)
            case _:
                self.refuse(f"the construct `{type(stmt).__name__}` is not supported", str(stmt))

    def first_class(self, t: Any) -> bool:
        """True for types whose values the IR can carry from one iteration to the next."""
        return not isinstance(t, _SECOND_CLASS)

