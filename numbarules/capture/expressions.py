"""Numba's expressions as statements of our IR: what each means, type by type."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numba import prange, typed
from numba.np.unsafe.ndarray import empty_inferred  # what an array comprehension fills

from .._numba import INPLACE, TypedIR, index_result, nir, our_type, types
from ..errors import UnsupportedError, message
from ..ir.nodes import (
    UNDEFINED,
    Alloc,
    Apply,
    Attribute,
    Cast,
    Const,
    If,
    Item,
    Load,
    Loc,
    MakeTuple,
    Method,
    Named,
    Operand,
    Raise,
    Raw,
    Shape,
    Stmt,
    Store,
    Var,
    View,
    const,
)
from ..ir.rewrite import Builder
from ..ir.types import BOOL, INT64, NONE, Array, NoneType, Opaque, Scalar, Tuple, Type, is_integer
from ..primitives import Empty, GlobalArray, assign, call_value
from .values import (
    Aggregate,
    Bound,
    EnumerateValue,
    Iterator,
    ListLiteral,
    Pair,
    Pending,
    RangeValue,
    SliceValue,
    Struct,
    Value,
    ZipValue,
    aggregate,
)

__all__ = ["Expressions"]

_ALLOCATE = {np.zeros: "zeros", np.empty: "empty", np.zeros_like: "zeros", np.empty_like: "empty", empty_inferred: "empty"}
_CONTAINERS = (list, dict, set, typed.List, typed.Dict)
_FILL = (np.ones, np.full, np.ones_like, np.full_like)


class Expressions:
    """Translates expressions; `self.env` maps names to values, `self.b` collects statements."""

    def __init__(self, typed: TypedIR, builder: Builder) -> None:
        self.typed = typed
        self.b = builder
        self.env: dict[str, Value] = {}
        self.filename: str = typed.ir.loc.filename

    def at(self, line: int) -> None:
        self.b.loc = Loc(self.filename, line)

    def refuse(self, what: str, found: str) -> NoReturn:
        line = self.b.loc.line if self.b.loc else None
        raise UnsupportedError(
            message(
                f"{what}, in `{self.typed.ir.func_id.func_name}`",
                filename=self.filename,
                line=line,
                found=found,
                instead="write it with loops over `range` and array elements, or move it into a function that no derivative passes through",
            )
        )

    # ------------------------------------------------------------------------------------------ values

    def type_of(self, name: str) -> Type:
        return our_type(self.typed.typemap[name])

    def constant(self, value: Any, t: Type) -> Value:
        """A constant of the program."""
        if isinstance(t, Tuple) and isinstance(value, tuple):
            return Aggregate(t, tuple(self.constant(v, x) for v, x in zip(value, t.items, strict=True)))
        if isinstance(t, Tuple) and t.struct:
            return Struct(t, tuple(self.constant(getattr(value, f), x) for f, x in zip(t.fields, t.items, strict=True)))
        if isinstance(t, Array):
            table = self.b.one(Apply(Named(GlobalArray(value))), [], replace(t, mutable=False), "table")
            return self.b.one(View("cast"), [table], t, "table") if t.mutable else table  # in a struct nothing says that it is read-only
        if isinstance(t, Scalar) and isinstance(value, np.generic):
            value = value.item()
        return Const(t, value)

    def constant_type(self, t: Type) -> Const | None:
        """The only value of a type that has one: a function, a module, a class."""
        if isinstance(t, NoneType):
            return Const(t, None)
        if isinstance(t, Opaque):
            payload = t.payload
            if isinstance(payload, types.Dispatcher):
                return Const(t, payload.dispatcher)
            if isinstance(payload, types.Function) and payload.typing_key is not None and callable(payload.typing_key):
                return Const(t, payload.typing_key)
        return None

    def force(self, value: Value) -> Value:
        """Fetches a pending item."""
        return self.item(value.source, value.position) if isinstance(value, Pending) else value

    def operand(self, value: Value) -> Operand:
        """`value` as one operand; aggregates become values of the IR here."""
        value = self.force(value)
        match value:
            case Var() | Const():
                return value
            case Aggregate(t, items) | Struct(t, items):
                parts = [self.operand(i) for i in items]
                if any(p.type != x for p, x in zip(parts, t.items, strict=True)):  # an index with slices
                    t = Tuple(tuple(p.type for p in parts), t.cls)
                return self.b.one(MakeTuple(), parts, t, "tuple")
            case SliceValue(start, stop, step):
                given = [start, stop] if isinstance(step, Const) and step.value is None else [start, stop, step]
                name = "slice2_type" if len(given) == 2 else "slice3_type"
                return self.b.one(Apply(Named(slice)), given, our_type(getattr(types, name)), "slice")
            case RangeValue(start, stop, step, t):
                return self.b.one(Apply(Named(range)), [start, stop, step], t, "range")
            case Bound(receiver, name):
                return self.b.one(Apply(Attribute(name)), [self.operand(receiver)], Opaque("method"), name)
            case ListLiteral():
                if value.made is None:
                    value.made = self.raw_expression(value.expression, value.type)
                return value.made
        self.refuse("this use of an iterator is not supported", type(value).__name__)

    def spread(self, operand: Operand) -> Value:
        """A tuple or struct operand by its items."""
        if isinstance(operand.type, Tuple):
            t = operand.type
            return aggregate(t, [self.spread(self.b.one(Item(i), [operand], x, "item")) for i, x in enumerate(t.items)])
        return self.constant_type(operand.type) or operand

    def raw(self, payload: Any, t: Type | None, hint: str = "raw") -> Value:
        """Numba's own expression or statement, passed through."""
        names = tuple(dict.fromkeys(v.name for v in payload.list_vars()))
        args = [self.operand(self.env[n]) for n in names]
        if t is None:
            self.b.emit(Raw(payload, names), args)
            return Const(NONE, None)
        return self.spread(self.b.one(Raw(payload, names), args, t, hint))

    def raw_expression(self, expr: Any, t: Type) -> Var:
        names = tuple(dict.fromkeys(v.name for v in expr.list_vars()))
        return self.b.one(Raw(expr, names), [self.operand(self.env[n]) for n in names], t, "list")

    def binary(self, fn: Any, a: Operand, b: Operand, t: Type = INT64) -> Operand:
        """Integer arithmetic on operands, folded where both are known."""
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(t, fn(a.value, b.value))
        if fn is operator.add and isinstance(a, Const) and a.value == 0:
            return b
        if fn in (operator.add, operator.sub) and isinstance(b, Const) and b.value == 0:
            return a
        if fn is operator.mul and isinstance(b, Const) and b.value == 1:
            return a
        return self.b.one(Apply(Named(fn)), [a, b], t, "n")

    def compare_equal(self, a: Operand, b: Operand) -> Operand:
        return self.b.one(Apply(Named(operator.eq)), [a, b], BOOL, "is")

    def integer(self, value: Operand) -> Operand:
        if isinstance(value, Const):
            return Const(INT64, int(value.value))  # type: ignore[call-overload]
        return value if value.type == INT64 else self.b.one(Cast(), [value], INT64, "n")

    # ------------------------------------------------------------------------------------------ iteration

    def count(self, source: Value) -> Operand:
        """How many items an iterable has."""
        match source:
            case Var(type=Array()) | Const(type=Array()):
                return self.b.one(Shape(0), [source], INT64, "n")
            case Aggregate(_, items):
                return const(len(items))
            case EnumerateValue(inner, _):
                return self.count(inner)
            case ZipValue(sources):
                counts = [self.count(s) for s in sources]
                least = counts[0] if counts else const(0)
                for c in counts[1:]:
                    if isinstance(least, Const) and isinstance(c, Const):
                        least = const(min(least.value, c.value))  # type: ignore[call-overload]
                    else:
                        least = self.b.one(Apply(Named(min)), [least, c], INT64, "n")
                return least
            case RangeValue(start, stop, step, _):
                start, stop, step = self.integer(start), self.integer(stop), self.integer(step)
                if not isinstance(step, Const):
                    return self.dynamic_count(start, stop, step)
                s = step.value
                assert isinstance(s, int)
                up, span = s > 0, self.binary(operator.sub, stop, start) if s > 0 else self.binary(operator.sub, start, stop)
                if abs(s) == 1:
                    return span
                return self.binary(operator.floordiv, self.binary(operator.add, span, const((s if up else -s) - 1)), const(abs(s)))
        self.refuse("a loop over this is not supported", str(source))

    def dynamic_count(self, start: Operand, stop: Operand, step: Operand) -> Operand:
        zero = self.compare_equal(step, const(0))
        bad = self.b.child()
        bad.add(self.raising(ValueError, "range() arg 3 must not be zero"))
        self.b.add(Stmt(If(), (zero,), (), (bad.region((), None), self.b.child().region()), self.b.loc))
        up = self.b.one(Apply(Named(operator.gt)), [step, const(0)], BOOL, "up")
        sides = []
        for sign in (1, -1):
            outer, self.b = self.b, self.b.child()
            span = self.binary(operator.sub, stop, start) if sign > 0 else self.binary(operator.sub, start, stop)
            size = step if sign > 0 else self.b.one(Apply(Named(operator.neg)), [step], INT64, "n")
            n = self.binary(operator.floordiv, self.binary(operator.add, span, self.binary(operator.sub, size, const(1))), size)
            inner, self.b = self.b, outer
            sides.append(inner.region((), (n,)))
        result = self.b.names.var(INT64, "n")
        self.b.add(Stmt(If(), (up,), (result,), tuple(sides), self.b.loc))
        return result

    def raising(self, error: type[Exception], text: str) -> Stmt:
        """The statement that raises `error(text)`."""
        where = nir.Loc(self.filename, self.b.loc.line if self.b.loc else 0)
        return Stmt(Raise(nir.StaticRaise(error, (text,), where)), (), (), (), self.b.loc)

    def item(self, source: Value, k: Operand) -> Value:
        """Item `k` of an iterable."""
        match source:
            case Var(type=Array(ndim=1) as t) | Const(type=Array(ndim=1) as t):
                return self.b.one(Load(wrap=False), [source, k], t.dtype, "item")
            case Var(type=Array() as t) | Const(type=Array() as t):
                return self.b.one(View("index", "i" + "f" * (t.ndim - 1)), [source, k], index_result(t, "i"), "row")
            case Aggregate():
                return self.tuple_item(source, k)
            case EnumerateValue(inner, start):
                index = self.binary(operator.add, self.integer(start), k)
                t = Tuple((INT64, INT64))
                return Aggregate(t, (index, self.item(inner, k)))
            case ZipValue(sources):
                items = tuple(self.item(s, k) for s in sources)
                return Aggregate(Tuple(tuple(INT64 for _ in items)), items)
            case RangeValue(start, _, step, t):
                value = self.binary(operator.add, self.integer(start), self.binary(operator.mul, k, self.integer(step)))
                return value if t == INT64 else self.b.one(Cast(), [value], t, "i")
        self.refuse("a loop over this is not supported", str(source))

    def tuple_item(self, source: Aggregate, k: Operand) -> Value:
        """An item of a homogeneous tuple at an index known at run time: a chain of tests."""
        if isinstance(k, Const):
            return source.items[int(k.value)]  # type: ignore[call-overload]
        from .values import leaves_of, rebuild

        n = len(source.items)
        negative = self.b.one(Apply(Named(operator.lt)), [k, const(0)], BOOL, "neg")
        shifted = self.binary(operator.add, self.integer(k), const(n))
        wrapped = self.b.names.var(INT64, "k")
        sides = (self.b.child().region((), (shifted,)), self.b.child().region((), (self.integer(k),)))
        self.b.add(Stmt(If(), (negative,), (wrapped,), sides, self.b.loc))
        types_ = [leaf.type for leaf in leaves_of(source.items[0])]

        def chain(i: int) -> list[Operand]:
            test = self.compare_equal(wrapped, const(i))
            results = tuple(self.b.names.var(t, "item") for t in types_)
            then = self.b.child().region((), leaves_of(source.items[i]))
            outer, self.b = self.b, self.b.child()
            if i + 1 < n:
                rest = self.b.region((), chain(i + 1))
                rest = self.b.region((), rest.yields)
            else:
                self.b.add(self.raising(IndexError, "tuple index out of range"))
                rest = self.b.region((), None)
            self.b = outer
            self.b.add(Stmt(If(), (test,), results, (then, rest), self.b.loc))
            return list(results)

        found = iter(chain(0))
        return rebuild(source.items[0], lambda: next(found))

    # ------------------------------------------------------------------------------------------ expressions

    def expression(self, target: str, expr: Any) -> Value:
        """The value of an expression that is assigned to `target`."""
        handler = getattr(self, f"expr_{expr.op}", None)
        if handler is None:
            return self.raw(expr, self.type_of(target), target.lstrip("$"))
        return handler(target, expr)  # type: ignore[no-any-return]

    def expr_cast(self, target: str, expr: Any) -> Value:
        return self.convert(self.force(self.env[expr.value.name]), self.type_of(target), "cast")

    def convert(self, value: Value, t: Type, hint: str) -> Value:
        raise NotImplementedError

    def expr_getiter(self, target: str, expr: Any) -> Value:
        from .graph import modelled_iterator

        source = self.force(self.env[expr.value.name])
        if not modelled_iterator(self.typed.typemap[target]):
            return self.raw(expr, self.type_of(target), "iter")
        if isinstance(source, Iterator):
            return source
        slot = f"#slot:{target}"
        self.env[slot] = const(0)
        return Iterator(source, self.integer(self.count(source)), slot)

    def expr_iternext(self, target: str, expr: Any) -> Value:
        iterator = self.env[expr.value.name]
        if not isinstance(iterator, Iterator):
            return self.raw(expr, self.type_of(target), "next")
        k = self.env[iterator.slot]
        assert isinstance(k, Var | Const)
        valid = self.b.one(Apply(Named(operator.lt)), [k, iterator.count], BOOL, "valid")
        self.env[iterator.slot] = self.binary(operator.add, k, const(1))
        return Pair(Pending(iterator.source, k), valid)

    def expr_pair_first(self, target: str, expr: Any) -> Value:
        pair = self.env[expr.value.name]
        return pair.first if isinstance(pair, Pair) else self.raw(expr, self.type_of(target), "item")

    def expr_pair_second(self, target: str, expr: Any) -> Value:
        pair = self.env[expr.value.name]
        return pair.second if isinstance(pair, Pair) else self.raw(expr, BOOL, "valid")

    def expr_build_tuple(self, target: str, expr: Any) -> Value:
        t = self.type_of(target)
        assert isinstance(t, Tuple)
        return Aggregate(t, tuple(self.force(self.env[v.name]) for v in expr.items))

    def expr_exhaust_iter(self, target: str, expr: Any) -> Value:
        value = self.force(self.env[expr.value.name])
        return value if isinstance(value, Aggregate) else self.raw(expr, self.type_of(target))

    def expr_build_list(self, target: str, expr: Any) -> Value:
        if not expr.items:  # the type of its items is found later than the list: it is made by it
            return self.empty(target, "list")
        numba_type = self.typed.typemap[target]
        constants = getattr(numba_type, "initial_value", None) is not None  # they are part of the type of a display
        if constants and not self.display_only(target):
            made = self.b.one(Apply(Named(Empty(types.unliteral(numba_type)))), [], self.type_of(target), "list")
            for v in expr.items:
                self.b.emit(Apply(Method("append")), [made, self.b.cast(self.operand(self.env[v.name]), our_type(numba_type.dtype))])
            return made
        value = ListLiteral(tuple(self.force(self.env[v.name]) for v in expr.items), expr, self.type_of(target))
        return value if self.display_only(target) else self.operand(value)

    def expr_build_set(self, target: str, expr: Any) -> Value:
        return self.raw(expr, self.type_of(target), "set") if expr.items else self.empty(target, "set")

    def empty(self, target: str, hint: str) -> Var:
        """A new empty container, made at the type that its later use gave it."""
        return self.b.one(Apply(Named(Empty(types.unliteral(self.typed.typemap[target])))), [], self.type_of(target), hint)

    def expr_build_map(self, target: str, expr: Any) -> Value:
        numba_type = types.unliteral(self.typed.typemap[target])
        if not isinstance(numba_type, types.DictType):
            return self.raw(expr, self.type_of(target), "map")
        made = self.empty(target, "map")
        for key, value in expr.items:
            typed = ((key, our_type(numba_type.key_type)), (value, our_type(numba_type.value_type)))
            pair = [self.operand(self.convert(self.force(self.env[v.name]), t, "item")) for v, t in typed]
            self.b.emit(Apply(Named(operator.setitem)), [made, *pair])
        return made

    def display_only(self, name: str) -> bool:
        """True for a list that is only ever an argument of `np.array` or an item of such a list: it need not be made."""
        for block in self.typed.ir.blocks.values():
            for stmt in block.body:
                if isinstance(stmt, nir.Del) or all(v.name != name or v is getattr(stmt, "target", None) for v in stmt.list_vars()):
                    continue
                value = getattr(stmt, "value", None)
                match value:
                    case nir.Var():
                        fine = isinstance(stmt, nir.Assign) and self.display_only(stmt.target.name)
                    case nir.Expr(op="build_list" | "build_tuple"):
                        fine = self.display_only(stmt.target.name)
                    case nir.Expr(op="call"):
                        function = self.typed.typemap[value.func.name]
                        fine = isinstance(function, types.Function) and function.typing_key in (np.array, np.asarray)
                    case _:
                        fine = False
                if not fine:
                    return False
        return True

    def expr_unary(self, target: str, expr: Any) -> Value:
        return self.apply(target, Named(expr.fn), [self.env[expr.value.name]])

    def expr_binop(self, target: str, expr: Any) -> Value:
        a, b = self.force(self.env[expr.lhs.name]), self.force(self.env[expr.rhs.name])
        if isinstance(a, Aggregate) and isinstance(b, Aggregate) and expr.fn is operator.add:
            t = self.type_of(target)
            assert isinstance(t, Tuple)
            return Aggregate(t, a.items + b.items)
        return self.apply(target, Named(expr.fn), [a, b])

    def expr_inplace_binop(self, target: str, expr: Any) -> Value:
        lhs = self.force(self.env[expr.lhs.name])
        if isinstance(lhs, Var | Const) and isinstance(lhs.type, Array):
            rhs_value = self.operand(self.env[expr.rhs.name])
            self.b.emit(Apply(Named(expr.fn)), [lhs, rhs_value], self.type_of(target), hint="self")
            return lhs
        immutable = isinstance(lhs, Aggregate | Struct) or (isinstance(lhs, Var | Const) and isinstance(lhs.type, Scalar))
        fn = INPLACE[expr.fn] if immutable else expr.fn
        if isinstance(lhs, Aggregate):
            rhs = self.force(self.env[expr.rhs.name])
            t = self.type_of(target)
            assert isinstance(rhs, Aggregate) and isinstance(t, Tuple)
            return Aggregate(t, lhs.items + rhs.items)
        return self.apply(target, Named(fn), [lhs, self.env[expr.rhs.name]])

    def apply(self, target: str, callee: Named | Method | Attribute, args: list[Value], keywords: tuple[str, ...] = ()) -> Value:
        """A call that stays a call; a tuple that it returns is spread."""
        t = self.type_of(target)
        ops = [self.operand(a) for a in args]
        fixed = self.constant_type(t)
        if fixed is not None and not isinstance(t, NoneType):
            return fixed
        return self.spread(self.b.one(Apply(callee, keywords), ops, t, target.lstrip("$")))

    # ------------------------------------------------------------------------------------------ attributes

    def expr_getattr(self, target: str, expr: Any) -> Value:
        value = self.force(self.env[expr.value.name])
        t = self.typed.typemap[target]
        if isinstance(t, types.BoundFunction):
            return Bound(value, expr.attr)
        if isinstance(value, Const) and isinstance(value.type, Opaque) and value.value is not UNDEFINED and hasattr(value.value, expr.attr):
            return self.constant(getattr(value.value, expr.attr), our_type(t))
        if isinstance(value, Aggregate | Struct) and expr.attr in value.type.fields:
            return value.items[value.type.fields.index(expr.attr)]
        if isinstance(value, Var | Const) and isinstance(value.type, Array):
            match expr.attr:
                case "shape":
                    tt = our_type(t)
                    assert isinstance(tt, Tuple)
                    return Aggregate(tt, tuple(self.b.one(Shape(i), [value], INT64, "n") for i in range(value.type.ndim)))
                case "ndim":
                    return const(value.type.ndim)
                case "T":
                    result = our_type(t)
                    return value if value.type.ndim < 2 else self.b.one(View("transpose"), [value], result, "T")
                case "flat" if value.type.layout == "C":
                    n: Operand = const(1)
                    for i in range(value.type.ndim):
                        n = self.binary(operator.mul, self.b.one(Shape(i), [value], INT64, "n"), n)
                    flat = Array(value.type.dtype, 1, "C", value.type.mutable, value.type.aligned)
                    return self.b.one(View("reshape"), [value, n], flat, "flat")
                case "real" if value.type.dtype.kind.startswith("float"):
                    return value
        if expr.attr == "real" and isinstance(value, Var | Const) and isinstance(value.type, Scalar):
            if not value.type.kind.startswith("complex"):
                return value
        return self.apply(target, Attribute(expr.attr), [value])

    # ------------------------------------------------------------------------------------------ items

    def expr_getitem(self, target: str, expr: Any) -> Value:
        return self.get_item(target, expr, self.force(self.env[expr.index.name]))

    def expr_static_getitem(self, target: str, expr: Any) -> Value:
        if isinstance(self.typed.typemap[expr.value.name], types.LiteralStrKeyDict | types.LiteralList):
            return self.raw(expr, self.type_of(target), "item")  # its type depends on the index
        if expr.index_var is not None and expr.index_var.name in self.env:
            return self.get_item(target, expr, self.force(self.env[expr.index_var.name]))
        if isinstance(expr.index, int):
            return self.get_item(target, expr, const(expr.index))
        t = our_type(types.unliteral(types.literal(expr.index)))
        return self.get_item(target, expr, self.constant(expr.index, t))

    def get_item(self, target: str, expr: Any, index: Value) -> Value:
        value = self.force(self.env[expr.value.name])
        if isinstance(value, Aggregate):
            if isinstance(index, Const):
                return value.items[int(index.value)]  # type: ignore[call-overload]
            if isinstance(index, SliceValue):
                parts: list[Any] = [p.value if isinstance(p, Const) else None for p in (index.start, index.stop, index.step)]
                t = self.type_of(target)
                assert isinstance(t, Tuple)
                return Aggregate(t, value.items[slice(*parts)])
            return self.tuple_item(value, self.operand(index))
        if isinstance(value, Var | Const) and isinstance(value.type, Array):
            spec = self.basic_index(value.type, index)
            if spec is not None:
                letters, operands = spec
                if letters == "i" * value.type.ndim and not isinstance(self.type_of(target), Array):
                    return self.b.one(Load(), [value, *operands], self.type_of(target), target.lstrip("$"))
                return self.b.one(View("index", letters), [value, *operands], self.type_of(target), target.lstrip("$"))
            value, index = self.advanced_index(value, index)
        return self.apply(target, Named(operator.getitem), [value, index])

    def advanced_index(self, array: Operand, index: Value) -> tuple[Operand, Value]:
        """An array and a key of integers, whole axes and arrays in place of an index that has slices, new axes or an ellipsis too."""
        assert isinstance(array.type, Array)
        items = [self.force(i) for i in index.items] if isinstance(index, Aggregate) else [index]
        mixed = any(isinstance(i, SliceValue) or self._is_none(i) or self._is_ellipsis(i) for i in items)
        if not isinstance(index, Aggregate) or not mixed:
            return array, index
        none = Const(NONE, None)
        whole = SliceValue(none, none, none)
        used = sum(1 for i in items if not self._is_none(i) and not self._is_ellipsis(i))
        basic: list[Value] = []
        key: list[Value] = []
        for item in items:
            if self._is_ellipsis(item):
                basic += [whole] * (array.type.ndim - used)
                key += [whole] * (array.type.ndim - used)
            elif self._is_none(item) or isinstance(item, SliceValue):
                basic.append(item)
                key.append(whole)
            else:
                basic.append(whole)
                key.append(item)
        if not all(map(self._is_whole, basic)):
            found = self.basic_index(array.type, Aggregate(Tuple(()), tuple(basic)))
            assert found is not None
            letters, operands = found
            part = index_result(array.type, self.index_spec(letters, operands))
            array = self.b.one(View("index", letters), [array, *operands], part, "part")
        return array, Aggregate(Tuple(tuple(INT64 for _ in key)), tuple(key))

    def basic_index(self, array: Array, index: Value) -> tuple[str, list[Operand]] | None:
        """The index as letters (one an axis of the result of normalising) and operands; None where it is not basic."""
        items = list(index.items) if isinstance(index, Aggregate) else [index]
        letters, operands, used = "", [], sum(1 for i in items if not self._is_none(i) and not self._is_ellipsis(i))
        out: list[Operand] = []
        for item in items:
            item = self.force(item)
            if self._is_ellipsis(item):
                letters += "f" * (array.ndim - used)
            elif self._is_none(item):
                letters += "n"
            elif isinstance(item, SliceValue):
                letters += "s"
                out += [item.start, item.stop, item.step]
            elif isinstance(item, Var | Const) and is_integer(item.type) and item.type != BOOL:
                letters += "i"
                out.append(item)
            else:
                return None
        operands = out
        letters += "f" * (array.ndim - sum(1 for c in letters if c in "isf"))
        return letters, operands

    def index_spec(self, letters: str, operands: list[Operand]) -> str:
        """The letters as `index_result` wants them: a slice without a step is `t`."""
        spec, rest = "", iter(operands)
        for c in letters:
            if c == "s":
                step = [next(rest) for _ in range(3)][2]
                c = "t" if isinstance(step, Const) and step.value is None else "s"
            elif c == "i":
                next(rest)
            spec += "t" if c == "f" else c
        return spec

    def _is_whole(self, value: Value) -> bool:
        if not isinstance(value, SliceValue):
            return False
        return all(isinstance(p, Const) and p.value is None for p in (value.start, value.stop, value.step))

    def _is_none(self, value: Value) -> bool:
        return isinstance(value, Const) and isinstance(value.type, NoneType)

    def _is_ellipsis(self, value: Value) -> bool:
        return isinstance(value, Const) and value.value is Ellipsis

    def set_item(self, target: Value, index: Value, value: Value) -> None:
        target, index, value = self.force(target), self.force(index), self.force(value)
        if isinstance(target, Var | Const) and isinstance(target.type, Array):
            spec = self.basic_index(target.type, index)
            if spec is not None:
                letters, operands = spec
                source = self.operand(value)
                if letters == "i" * target.type.ndim and isinstance(source.type, Scalar):
                    if source.type != target.type.dtype:
                        source = self.b.one(Cast(), [source], target.type.dtype, "v")
                    self.b.emit(Store(), [target, *operands, source])
                    return
                view = target
                if letters.replace("f", "") or "s" in letters:
                    if set(letters) == {"i"}:  # an array of no dimensions stored into an element
                        self.b.emit(Store(), [target, *operands, self.b.one(Load(), [source], target.type.dtype, "v")])
                        return
                    t = index_result(target.type, self.index_spec(letters, operands))
                    view = self.b.one(View("index", letters), [target, *operands], t, "part")
                if not self._same_view(view, source):
                    self.b.emit(Apply(Named(assign)), [view, source])
                return
            target, index = self.advanced_index(target, index)
        self.b.emit(Apply(Named(operator.setitem)), [self.operand(target), self.operand(index), self.operand(value)])

    def _same_view(self, view: Operand, source: Operand) -> bool:
        """True for `a[i] = a[i]`, which is what is left of `a[i] += v` once the addition was made in place."""
        if view is source:
            return True
        made = {s.results[0]: s for s in self.b.body if s.results}
        a, b = made.get(view), made.get(source)  # type: ignore[arg-type]
        if a is None or b is None or not isinstance(a.op, View) or a.op != b.op:
            return False
        pairs = zip(a.args, b.args, strict=True)
        return all(x is y or (isinstance(x, Const) and isinstance(y, Const) and x.value == y.value) for x, y in pairs)

    # ------------------------------------------------------------------------------------------ calls

    def expr_call(self, target: str, expr: Any) -> Value:
        func = self.env[expr.func.name]
        args = [self.force(self.env[v.name]) for v in expr.args]
        if expr.vararg is not None:
            rest = self.force(self.env[expr.vararg.name])
            if not isinstance(rest, Aggregate):
                self.refuse("a call with `*args` is not supported", str(expr))
            args += rest.items
        keywords = tuple(k for k, _ in expr.kws)
        args += [self.force(self.env[v.name]) for _, v in expr.kws]
        if isinstance(func, Bound):
            receiver = func.receiver
            if func.name == "item" and not args and isinstance(receiver, Var | Const) and isinstance(receiver.type, Array):
                if receiver.type.ndim == 0:
                    return self.b.one(Load(), [receiver], receiver.type.dtype, "item")
            if func.name == "transpose" and (view := self.permuted(target, np.transpose, [receiver, *args], keywords)) is not None:
                return view
            return self.apply(target, Method(func.name), [func.receiver, *args], keywords)
        if isinstance(func, Const) and func.value is not UNDEFINED:
            special = self.special_call(target, func.value, args, keywords)
            if special is not None:
                return special
            return self.apply(target, Named(func.value), args, keywords)
        return self.apply(target, Named(call_value), [func, *args], keywords)

    def special_call(self, target: str, obj: Any, args: list[Value], keywords: tuple[str, ...]) -> Value | None:
        """Calls that build iterables, ask for lengths, convert or allocate; None for all others."""
        t = self.type_of(target)
        if (obj is range or obj is prange) and not keywords:  # run one after the other, the iterations of `prange` give what it promises
            ops = [self.operand(a) for a in args]
            start, stop, step = (const(0), ops[0], const(1)) if len(ops) == 1 else (ops[0], ops[1], ops[2] if len(ops) == 3 else const(1))
            if isinstance(step, Const) and step.value == 0:
                return None
            numba_t = self.typed.typemap[target]
            return RangeValue(start, stop, step, our_type(numba_t.dtype))
        if obj is slice:
            none = Const(NONE, None)
            parts = [self.operand(a) for a in args]
            if len(parts) == 1:
                return SliceValue(none, parts[0], none)
            return SliceValue(parts[0], parts[1], parts[2] if len(parts) == 3 else none)
        if obj is enumerate and self._iterable(args[0]):
            return EnumerateValue(args[0], self.operand(args[1]) if len(args) > 1 else const(0))
        if obj is zip and all(map(self._iterable, args)):
            return ZipValue(tuple(args))
        if obj is len and len(args) == 1:
            if isinstance(args[0], Aggregate):
                return const(len(args[0].items))
            if isinstance(args[0], Var | Const) and isinstance(args[0].type, Array):
                return self.b.one(Shape(0), [args[0]], INT64, "n")
        if obj is sum and len(args) == 1 and isinstance(args[0], Aggregate) and isinstance(t, Scalar) and args[0].items:
            items = [self.operand(i) for i in args[0].items]
            if all(i.type == t for i in items):
                total: Operand = Const(t, 0.0 if t.kind.startswith("float") else 0)
                for i in items:
                    total = self.b.one(Apply(Named(operator.add)), [total, i], t, "sum")
                return total
        if obj is bool and isinstance(args[0], Var | Const) and args[0].type == BOOL:
            return args[0]
        if isinstance(t, Scalar) and t.kind.startswith("float") and len(args) == 1 and self._number_class(obj):
            (x,) = args
            if isinstance(x, Var | Const) and isinstance(x.type, Scalar) and not x.type.kind.startswith("complex"):
                return x if x.type == t else self.b.one(Cast(), [x], t, "cast")
        if isinstance(t, Tuple) and self._constructor(obj, t):
            positional, named = args[: len(args) - len(keywords)], dict(zip(keywords, args[len(args) - len(keywords) :], strict=True))
            return aggregate(t, (*positional, *(named[n] for n in t.fields[len(positional) :])))
        if obj is tuple and len(args) == 1 and isinstance(args[0], Aggregate):
            return args[0]
        if any(obj is f for f in (np.transpose, np.swapaxes, np.moveaxis)):
            return self.permuted(target, obj, args, keywords)
        if not args and any(obj is c for c in _CONTAINERS):
            return self.empty(target, obj.__name__.lower())
        return self.allocation(obj, args, t, keywords)

    def _constructor(self, obj: Any, t: Tuple) -> bool:
        """True for what makes a named tuple or a struct from all its fields."""
        if t.struct:
            return obj is t.cls.make or (obj is t.cls.python_class and t.cls.from_fields)
        return t.cls is not None and obj is t.cls

    def _number_class(self, obj: Any) -> bool:
        return obj is float or (isinstance(obj, type) and issubclass(obj, np.floating))

    def _iterable(self, value: Value) -> bool:
        if isinstance(value, Var | Const):
            return isinstance(value.type, Array)
        return isinstance(value, Aggregate | RangeValue | EnumerateValue | ZipValue)

    def permuted(self, target: str, obj: Any, args: list[Value], keywords: tuple[str, ...]) -> Value | None:
        """A call of a function that exchanges axes as a view; None where the axes are not all known."""
        if len(args) == len(keywords):
            return None
        source, given, t = args[0], [self.axes(a) for a in args[1:]], self.type_of(target)
        if not given or None in given or not isinstance(source, Var) or not isinstance(source.type, Array):
            return None
        split = len(given) - len(keywords)
        named = dict(zip(keywords, given[split:], strict=True))
        given = given[:split]
        if obj is np.transpose and len(given) > 1:
            given = [tuple(given)]
        try:  # on an empty array whose lengths name its axes
            shape = obj(np.empty(tuple(range(source.type.ndim)), np.bool_), *given, **named).shape
        except (TypeError, ValueError):
            return None
        if not isinstance(t, Array) or t.layout != "A":
            return None
        return self.b.one(View("permute", "".join(map(str, shape))), [source], t, "turned")

    def axes(self, value: Value) -> Any:
        """The axis or the axes that a value is known to name, else None."""
        if isinstance(value, Aggregate):
            axes = [self.axes(v) for v in value.items]
            return None if None in axes else tuple(axes)
        return value.value if isinstance(value, Const) and is_integer(value.type) and isinstance(value.value, int) else None

    def allocation(self, obj: Any, args: list[Value], t: Type, keywords: tuple[str, ...]) -> Value | None:
        """New arrays: `np.zeros`, `np.empty`, their `_like` forms, filled ones, and `np.array` of a display."""
        if not isinstance(t, Array):
            return None
        if obj in (np.array, np.asarray) and self._display(args[0]):
            return self.display(args[0], t)
        fill = next((f for f in (*_ALLOCATE, *_FILL) if f is obj), None)
        if fill is None:
            return None
        first = args[0]
        if fill in (np.zeros_like, np.empty_like, np.ones_like, np.full_like):
            if not isinstance(first, Var | Const) or not isinstance(first.type, Array):
                return None
            shape: list[Operand] = [self.b.one(Shape(i), [first], INT64, "n") for i in range(first.type.ndim)]
        else:
            shape = [self.integer(self.operand(i)) for i in (first.items if isinstance(first, Aggregate) else (first,))]
        positional = args[: len(args) - len(keywords)]
        if fill in (np.full, np.full_like) and len(positional) < 2:
            return None
        array = self.b.one(Alloc(_ALLOCATE.get(fill, "empty")), shape, t, "array")
        if fill in _FILL:
            value: Operand = const(1) if fill in (np.ones, np.ones_like) else self.operand(args[1])
            if value.type != t.dtype:
                if isinstance(value, Var):
                    value = self.b.one(Cast(), [value], t.dtype, "v")
                else:
                    value = Const(t.dtype, np.dtype(t.dtype.kind).type(value.value).item())
            self.b.emit(Apply(Named(assign)), [array, value])
        return array

    def _display(self, value: Value) -> bool:
        if isinstance(value, Var | Const):
            return isinstance(value.type, Scalar)
        return isinstance(value, Aggregate) or (isinstance(value, ListLiteral) and value.made is None)

    def display(self, value: Value, t: Array) -> Value | None:
        """`np.array` of nested displays of scalars."""

        def shape(v: Value) -> tuple[int, ...]:
            if isinstance(v, ListLiteral | Aggregate):
                inner = {shape(i) for i in v.items}
                return (len(v.items), *inner.pop()) if len(inner) == 1 else (-1,)
            return () if isinstance(v, Var | Const) and isinstance(v.type, Scalar) else (-1,)

        dims = shape(value)
        if -1 in dims or len(dims) != t.ndim:
            return None
        array = self.b.one(Alloc("empty"), [const(d) for d in dims], t, "array")

        def store(v: Value, index: list[Operand]) -> None:
            if isinstance(v, ListLiteral | Aggregate):
                for i, item in enumerate(v.items):
                    store(item, [*index, const(i)])
            else:
                x = self.operand(v)
                if x.type != t.dtype:
                    x = self.b.one(Cast(), [x], t.dtype, "v")
                self.b.emit(Store(wrap=False), [array, *index, x])

        store(value, [])
        return array
