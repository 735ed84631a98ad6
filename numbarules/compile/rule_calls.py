"""Calls that a rule answers, as `Rule` statements: the rule is asked at the types of the call, once, and says None or gives both halves."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from .._numba import NumbaError, numba_type, types
from ..analysis.activity import carries_derivative
from ..analysis.alias import aliases_of, holds_memory
from ..analysis.effects import effects
from ..capture.closures import OptedOut, Pair, convert
from ..capture.translate import translate
from ..errors import RuleError, message
from ..ir.nodes import Apply, Const, Function, Item, MakeTuple, Named, Operand, Region, Rule, Stmt, Var, walk
from ..ir.rewrite import Builder, Names, substitute
from ..ir.types import Array, NoneType, Opaque, Scalar, Tuple, Type, is_float, is_float_array, leaves, writable
from ..primitives import assign
from ..rules.table import Entry
from .rules import TableRules, argument_type

__all__ = ["RuleCalls", "answer", "bound_types"]

_answers: weakref.WeakKeyDictionary[Any, dict[Any, OptedOut | Pair]] = weakref.WeakKeyDictionary()


def answer(rule: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> OptedOut | Pair:
    """What a rule says at Numba argument types, under `njit` options; each question is asked once."""
    known = _answers.setdefault(rule, {})
    key = (args, tuple(sorted((k, repr(v)) for k, v in options.items())))
    if key not in known:
        known[key] = convert(rule, args, options)
    return known[key]


class RuleCalls:
    """Replaces the calls in a region that have a rule. `active` tells which statements a derivative passes through."""

    def __init__(self, rules: TableRules, options: dict[str, Any], names: Names, active: Callable[[Stmt], bool]) -> None:
        self.rules = rules
        self.options = options
        self.names = names
        self.active = active
        self.changed = False

    def region(self, region: Region) -> Region:
        b = Builder(self.names)
        for stmt in region.body:
            b.loc = stmt.loc
            if isinstance(stmt.op, Apply) and self.active(stmt) and (self.separate(stmt, b) or self.replace(stmt, b)):
                self.changed = True
            elif stmt.regions and not isinstance(stmt.op, Rule):
                b.add(Stmt(stmt.op, stmt.args, stmt.results, tuple(map(self.region, stmt.regions)), stmt.loc))
            else:
                b.add(stmt)
        return b.region(region.params, region.yields)

    def separate(self, stmt: Stmt, b: Builder) -> bool:
        """`np.dot(a, b, out)` and `np.add(a, b, out)` as a new array and an assignment."""
        match stmt:
            case Stmt(op=Apply(Named(np.ufunc(nin=n, nout=1) as ufunc), ()), args=args) if (
                len(args) == n + 1 and isinstance(args[n].type, Array) and all(_carries(a.type) for a in args)
            ):
                inputs = [a.type.dtype.kind if isinstance(a.type, Array) else a.type.kind for a in args[:n]]  # type: ignore[union-attr]
                ndim = max(getattr(a.type, "ndim", 0) for a in args[:n])
                if ndim == 0:
                    return False
                new = b.one(Apply(Named(ufunc)), args[:n], Array(Scalar(str(np.result_type(*inputs))), ndim, "C"), "new")
                b.emit(Apply(Named(assign)), [args[n], new])
                for result in stmt.results:
                    b.emit_alias(result, args[n])
                return True
            case Stmt(op=Apply(Named(np.dot), () | ("out",)), args=(x, y, out)) if isinstance(out.type, Array):
                t = Array(out.type.dtype, out.type.ndim, "C")
                b.emit(Apply(Named(assign)), [out, b.one(Apply(Named(np.dot)), [x, y], t, "product")])
                for result in stmt.results:
                    b.emit_alias(result, out)
                return True
        return False

    def replace(self, stmt: Stmt, b: Builder) -> bool:
        """Puts a `Rule` in the place of a call whose entry is a rule that does not opt out."""
        call = self.rules.call(stmt)
        entry = self.rules.entry(stmt)
        if (
            call is None
            or entry is None
            or entry.kind != "rule"
            or len(stmt.results) != 1
            or not any(_carries_any(a.type) for a in call.args)
        ):
            return False
        rule = entry.payload
        bound = _Bound.of(rule, call.args)
        said = answer(rule, bound.types, self.options)
        if isinstance(said, OptedOut):
            return False
        value = translate(said.value, tuple(sorted(self.options.items())))
        result = stmt.results[0]
        kept = _Answer(entry, stmt, value, result.type)
        args = [leaf for _, a in bound.operands for leaf in _spread(a, b)]
        if isinstance(result.type, Tuple):
            results = [self.names.var(t, result.name) for t in leaves(result.type) if _has_params(t)]
            found = iter(results)
        else:
            results = [result]
        pullback = _Half(
            _name(entry), entry, said, tuple(a.type for _, a in bound.operands), bound.slots, result.type, kept.captured, dict(self.options)
        )
        region = substitute(Region(value.region.params, value.region.body, (*kept.values, *kept.residuals)), {}, self.names)
        b.add(Stmt(Rule(pullback.name, pullback), tuple(args), tuple(results), (region,), stmt.loc))
        if isinstance(result.type, Tuple):

            def build(t: Type) -> Operand:
                if isinstance(t, Tuple):
                    return b.one(MakeTuple(), [build(i) for i in t.items], t, "tuple")
                return next(found) if _has_params(t) else Const(t, None)

            b.emit_alias(result, build(result.type))
        return True


def _name(entry: Entry) -> str:
    return f"the rule `{entry.origin.name}` for {entry.signature}"


def _has_params(t: Type) -> bool:
    if isinstance(t, Tuple):
        return any(map(_has_params, t.items))
    return not isinstance(t, NoneType) and not (isinstance(t, Opaque) and t.constant)


def _spread(operand: Operand, b: Builder) -> Iterator[Operand]:
    """The leaves of an operand that a function has parameters for."""
    if isinstance(operand.type, Tuple):
        for i, t in enumerate(operand.type.items):
            if _has_params(t):
                yield from _spread(b.one(Item(i), [operand], t, "item"), b)
    elif _has_params(operand.type):
        yield operand


# ---------------------------------------------------------------------------------------------- arguments


@dataclass(frozen=True, slots=True)
class _Bound:
    """The arguments of a call as a rule's parameters: Numba types, the operands, and the parameter of each operand."""

    types: tuple[Any, ...]
    operands: tuple[tuple[str, Operand], ...]
    slots: int  # how many parameters the rule has; 0 with `*args`, where each operand is its own

    @staticmethod
    def of(rule: Callable[..., Any], args: list[Operand]) -> _Bound:
        parameters = list(inspect.signature(rule).parameters.values())
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        names = [p.name for p in parameters[: len(args)]]
        names += [parameters[-1].name] * (len(args) - len(names))
        return _Bound(
            bound_types(rule, [argument_type(a) for a in args]), tuple(zip(names, args, strict=True)), 0 if variadic else len(parameters)
        )


def bound_types(rule: Callable[..., Any], given: list[Any]) -> tuple[Any, ...]:
    """The types of a rule's parameters in a call with these: omitted ones by their default, `*args` as one tuple."""
    out: list[Any] = []
    rest = list(given)
    for p in inspect.signature(rule).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            out.append(types.StarArgTuple.from_types(tuple(map(types.unliteral, rest))))
        else:
            out.append(rest.pop(0) if rest else types.Omitted(p.default))
    return tuple(out)


# ---------------------------------------------------------------------------------------------- the value half


class _Answer:
    """The leaves that a value half yields: the value, checked against the primal's type, and what it keeps."""

    def __init__(self, entry: Entry, stmt: Stmt, value: Function, wanted: Type) -> None:
        self.entry = entry
        self.stmt = stmt
        if value.region.yields is None:
            _refuse(entry, "never returns: its value half always raises", "a rule returns `value, pullback`")
        assert isinstance(value.result, Tuple)
        y, captured = value.result.items
        self.check(y, wanted)
        n = sum(1 for _ in leaves(y))
        yields = value.region.yields
        self.values = [v for t, v in zip(leaves(y), yields[:n], strict=True) if _has_params(t)]
        kept = [(t, v) for t, v in zip(leaves(captured), yields[n:], strict=True) if _has_params(t)]
        self.residuals = [v for _, v in kept]
        self.captured = tuple(t for t, _ in kept)

    def check(self, y: Type, wanted: Type) -> None:
        """The value has the primal's type: downstream code was typed with it."""
        same = [_castable(a, b) for a, b in zip(leaves(y), leaves(wanted), strict=False)]
        if len(list(leaves(y))) != len(list(leaves(wanted))) or isinstance(y, Tuple) != isinstance(wanted, Tuple) or not all(same):
            _refuse(
                self.entry,
                "returns a value of another type than the call",
                "the value has the dtype, dimensions and layout of the call's own result",
                found=f"a value of type {y}, and the call returns {wanted}",
                stmt=self.stmt,
            )


def _castable(a: Type, b: Type) -> bool:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return b.kind.startswith("complex") or not a.kind.startswith("complex")
    if isinstance(a, Array) and isinstance(b, Array):
        return a.dtype == b.dtype and a.ndim == b.ndim and b.layout in (a.layout, "A") and (a.mutable or not b.mutable)
    return a == b


def _refuse(entry: Entry, what: str, contract: str, found: str = "", stmt: Stmt | None = None, instead: str = "") -> NoReturn:
    where = f" (called at {stmt.loc})" if stmt is not None and stmt.loc is not None else ""
    raise RuleError(
        message(
            f"{_name(entry)} {what}{where}",
            filename=entry.origin.filename,
            line=entry.origin.line,
            contract=contract,
            found=found,
            instead=instead,
        )
    )


# ---------------------------------------------------------------------------------------------- the pullback half


@dataclass(frozen=True, slots=True)
class _Typed:
    """See `transform.splice.Half`."""

    function: Function
    takes: tuple[int, ...]
    shadowed: tuple[int, ...]
    targets: tuple[int | None, ...]


@dataclass(eq=False, slots=True)
class _Half:
    """`Rule.pullback`: types the pullback for what is given and wanted at one call."""

    name: str
    entry: Entry
    pair: Pair
    args: tuple[Type, ...]
    slots: int
    result: Type
    captured: tuple[Type, ...]
    options: dict[str, Any]
    made: dict[Any, _Typed] = field(default_factory=dict)

    def half(self, given: tuple[bool, ...], wanted: tuple[bool, ...]) -> _Typed:
        if (given, wanted) not in self.made:
            self.made[given, wanted] = self.make(given, wanted)
        return self.made[given, wanted]

    @property
    def accumulates(self) -> bool:
        """True for a pullback that adds into the shadows of array arguments."""
        return self.pair.pullback.parameters > 1

    def make(self, given: tuple[bool, ...], wanted: tuple[bool, ...]) -> _Typed:
        shadows, shadowed = self.shadows(wanted) if self.accumulates else ([], [])
        attempts = [given] if all(given) or not isinstance(self.result, Tuple) else [given, (True,) * len(given)]
        failure: NumbaError | None = None
        for takes in attempts:
            flags = iter(takes)
            ybar = self.cotangent(self.result, flags)
            try:
                typed = self.pair.pullback.typed((ybar, *shadows), {**self.options, "error_model": "numpy"})
            except NumbaError as e:
                failure = failure or e
                continue
            function = translate(typed, (("error_model", "numpy"),))
            self.check_reads(function, len(shadowed))
            used = tuple(i for i, (t, k) in enumerate(zip(self.result_leaves(), takes, strict=True)) if k and _carries(t))
            return _Typed(function, used, tuple(shadowed), self.targets(function.result, function))
        where = self.pair.pullback.function.__code__
        raise RuleError(
            message(
                f"the pullback `{where.co_name}` of {self.name} does not compile"
                f" for a cotangent of type {self.cotangent(self.result, iter(given))}",
                filename=where.co_filename,
                line=where.co_firstlineno,
                contract="a pullback takes the cotangent of the value, and None for a part that has none",
                found=str(failure),
            )
        ) from failure

    def check_reads(self, function: Function, shadows: int) -> None:
        """Refuses a pullback that writes into its cotangent, which is the shadow of the value.

        A read-only array type would say so to Numba, and have it compile what the pullback calls once more.
        """
        aliases = aliases_of(function.region)
        ybars = function.region.params[: len(function.region.params) - len(self.captured) - shadows]
        theirs = {aliases.of(p) for p in ybars if holds_memory(p.type)}
        for stmt in walk(function.region):
            e = effects(stmt)
            if not e.opaque and any(isinstance(stmt.args[i], Var) and aliases.of(stmt.args[i]) in theirs for i in e.writes if i >= 0):
                code = self.pair.pullback.function.__code__
                raise RuleError(
                    message(
                        f"the pullback `{code.co_name}` of {self.name} writes into the cotangent that it is given",
                        filename=stmt.loc.filename if stmt.loc else code.co_filename,
                        line=stmt.loc.line if stmt.loc else code.co_firstlineno,
                        contract="the cotangent is read-only to a pullback",
                        instead="copy it first",
                    )
                )

    def result_leaves(self) -> list[Type]:
        return [t for t in leaves(self.result) if _has_params(t)]

    def cotangent(self, t: Type, given: Iterator[bool]) -> Any:
        """The Numba type of the cotangent of a value, None where there is none."""
        if isinstance(t, Tuple):
            return types.Tuple([self.cotangent(i, given) for i in t.items])
        if not _has_params(t) or not next(given) or not _carries(t):
            return types.none
        return numba_type(writable(t) if isinstance(t, Array) else t)

    def shadows(self, wanted: tuple[bool, ...]) -> tuple[list[Any], list[int]]:
        """The types of the shadows that the pullback is handed, one an argument, and the leaves that they belong to."""
        code = self.pair.pullback.function.__code__
        if self.slots == 0 or self.pair.pullback.parameters != 1 + self.slots:
            _refuse(
                self.entry,
                f"has a pullback `{code.co_name}` with {self.pair.pullback.parameters} parameters",
                "a pullback takes the cotangent alone, or the cotangent and the shadow of each of the rule's parameters",
                found=f"{self.slots} parameters of the rule" if self.slots else "a rule with `*args`",
            )
        out: list[Any] = []
        shadowed: list[int] = []
        i = 0
        for t in self.args:
            count = sum(1 for x in leaves(t) if _has_params(x))
            if isinstance(t, Tuple):
                if any(wanted[i : i + count]):
                    _refuse(
                        self.entry,
                        f"has a pullback `{code.co_name}` that is handed the shadow of a tuple",
                        "shadows are those of arrays",
                        instead="return the cotangents",
                    )
                out.append(types.none)
            elif is_float_array(t) and wanted[i]:
                out.append(numba_type(writable(t)))  # type: ignore[arg-type]
                shadowed.append(i)
            else:
                out.append(types.none)
            i += count
        out += [types.none] * (self.slots - len(self.args))
        return out, shadowed

    # ------------------------------------------------------------------------------------------ what it returns

    def targets(self, t: Type, function: Function) -> tuple[int | None, ...]:
        """For each yielded leaf the argument leaf whose cotangent it is."""
        if function.region.yields is None:
            return ()
        args = list(self.args)
        if self.accumulates:
            return self.by_value(t)
        if len(args) == 1 and not isinstance(args[0], Tuple) and not isinstance(t, Tuple):
            returned: list[Type] = [t]
        elif (
            isinstance(t, Tuple) and len(t.items) in (len(args), self.slots) and all(isinstance(x, NoneType) for x in t.items[len(args) :])
        ):
            returned = list(t.items)
        else:
            _refuse(
                self.entry,
                "returns the wrong number of cotangents",
                "a pullback returns one cotangent for each argument, None for no contribution; bare for one argument that is no tuple",
                found=f"cotangents of type {t} for arguments of types ({', '.join(map(str, args))})",
            )
        out: list[int | None] = []
        start = 0
        for i, (arg, bar) in enumerate(zip(args, returned, strict=False)):
            out += self.match(i, arg, bar, start)
            start += sum(1 for x in leaves(arg) if _has_params(x))
        out += [None] * (len(returned) - len(args))
        return tuple(out)

    def by_value(self, t: Type) -> tuple[int | None, ...]:
        """The cotangents that a pullback returns beside those that it adds into shadows: of the scalars, or one an argument."""
        starts: list[int] = []
        start = 0
        for arg in self.args:
            starts.append(start)
            start += sum(1 for x in leaves(arg) if _has_params(x))
        scalars = [i for i, arg in enumerate(self.args) if is_float(arg)]
        if isinstance(t, NoneType):
            return (None,)
        items = list(t.items) if isinstance(t, Tuple) else [t]
        places = list(range(len(self.args))) if len(items) == len(self.args) else scalars if len(items) == len(scalars) else None
        if places is None or any(is_float_array(self.args[i]) and not isinstance(x, NoneType) for i, x in zip(places, items, strict=True)):
            _refuse(
                self.entry,
                "returns the wrong number of cotangents",
                "a pullback that is handed shadows adds into them, and returns the cotangents of the float scalars only",
                found=f"cotangents of type {t} for {len(scalars)} float scalars",
            )
        return tuple(x for i, bar in zip(places, items, strict=True) for x in self.match(i, self.args[i], bar, starts[i]))

    def match(self, i: int, arg: Type, bar: Type, start: int) -> list[int | None]:
        """The targets of the leaves of one argument's cotangent."""
        if isinstance(bar, NoneType) or not any(map(_carries, leaves(arg))):
            return [None] * sum(1 for _ in leaves(bar))
        if isinstance(arg, Tuple) and isinstance(bar, Tuple) and len(arg.items) == len(bar.items):
            out: list[int | None] = []
            for a, x in zip(arg.items, bar.items, strict=True):
                out += self.match(i, a, x, start)
                start += sum(1 for leaf in leaves(a) if _has_params(leaf))
            return out
        fits = (isinstance(arg, Scalar) and isinstance(bar, Scalar)) or (
            isinstance(arg, Array) and isinstance(bar, Array) and arg.ndim == bar.ndim
        )
        if not fits:
            _refuse(
                self.entry,
                f"returns a cotangent of argument {i} that is none of its tangents",
                "a cotangent has the kind and the dimensions of its argument: a number for a number, an array for an array",
                found=f"{bar} for {arg}",
            )
        return [start]


def _carries_any(t: Type) -> bool:
    return any(map(carries_derivative, leaves(t)))


def _carries(t: Type) -> bool:
    return is_float(t) or is_float_array(t)
