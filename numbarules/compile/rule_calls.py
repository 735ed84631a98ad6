"""Calls that a rule answers, as `Rule` statements: the rule is asked at the types of the call, once, and says None or gives both halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._numba import NumbaError
from ..analysis.activity import carries_derivative
from ..capture.closures import OptedOut, Pair, convert
from ..capture.translate import translate
from ..errors import RuleError
from ..ir.nodes import Apply, Function, Named, Operand, Region, Rule, Stmt
from ..ir.rewrite import Builder, Names, substitute
from ..ir.types import Array, Scalar, Tuple, Type, has_parameters, leaves, parameters, tuples
from ..primitives import assign
from ..rules.patterns import names_type
from ..rules.table import Entry
from .branching import Branching
from .contracts import changes_or_shares, sharing_of
from .lookups import remembered
from .owned import memo_of
from .rule_arguments import Bound, given_types
from .rule_pullbacks import Half, carries, refuse, rule_name
from .rules import TableRules
from .served import not_served

__all__ = ["RuleCalls", "answer"]


def answer(entry: Entry, args: tuple[Any, ...], options: Mapping[str, Any]) -> OptedOut | Pair:
    """What the rule of an entry says at Numba argument types, under `njit` options; each question is asked once."""
    key = (args, tuple(sorted((k, repr(v)) for k, v in options.items())), entry.on_unstable)

    def make() -> OptedOut | Pair:
        try:
            return convert(entry.payload, args, options, branch=entry.on_unstable == "branch")
        except RuleError as error:
            cause = error.__cause__
            shorter = not_served(entry, given_types(args), "the rule", cause) if isinstance(cause, NumbaError) else None
            raise shorter or error from cause

    said: OptedOut | Pair = remembered(memo_of(entry.payload, "answers"), key, make, entry.origin.name)
    return said


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
                len(args) == n + 1 and isinstance(args[n].type, Array) and all(carries(a.type) for a in args)
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
        if call is None and stmt.op.keywords:  # type: ignore[union-attr]
            self.rules.refuse_keywords(stmt)
        entry = self.rules.entry(stmt)
        if (
            call is None
            or entry is None
            or entry.kind != "rule"
            or len(stmt.results) != 1
            or not any(carries_any(a.type) for a in call.args)
        ):
            return False
        bound = Bound.of(entry.payload, call.args)
        said = answer(entry, bound.types, self.options)
        if isinstance(said, OptedOut):
            return False
        _check_structs(entry, call.args, stmt)
        if (reason := changes_or_shares(stmt)) is not None:
            refuse(
                entry,
                f"is for a call that {reason}",
                "a call with a rule changes nothing and returns new memory",
                stmt=stmt,
                instead="opt out: stores and views are differentiated as they are",
            )
        value = translate(said.value, tuple(sorted(self.options.items())))
        result = stmt.results[0]
        kept = _Answer(entry, stmt, value, result.type, said.partial)
        args = [leaf for _, a in bound.operands for leaf in b.apart(a)]
        if isinstance(result.type, Tuple):
            results = [self.names.var(t, result.name) for t in leaves(result.type) if has_parameters(t)]
        else:
            results = [result]
        pullback = Half(
            rule_name(entry),
            entry,
            said,
            tuple(a.type for _, a in bound.operands),
            bound.slots,
            result.type,
            kept.captured,
            dict(self.options),
            stmt.loc,
        )
        params, starts = value.region.params, pullback.starts
        fields = [params[starts[i] + k] for i in pullback.structs for k in range(len(parameters(pullback.args[i])))]
        residuals = [*kept.residuals, *fields, *(kept.values[i] for i in pullback.kept_results)]
        pullback.refuse_missing_in(value.region)
        if kept.flag is not None:
            half = Branching(stmt, pullback, value.region, kept.flag, kept.values, residuals, args)
            half.emit(results, lambda y, inner: list(inner.apart(y)), b)
        else:
            region = substitute(Region(value.region.params, value.region.body, (*kept.values, *residuals)), {}, self.names)
            b.add(Stmt(Rule(pullback.name, pullback), tuple(args), tuple(results), (region,), stmt.loc))
        self.rules.observer.ruled(self.rules, stmt, branches=kept.flag is not None)
        if isinstance(result.type, Tuple):
            b.emit_alias(result, b.together(result.type, iter(results), "tuple"))
        return True


# ---------------------------------------------------------------------------------------------- the value half


class _Answer:
    """The leaves that a value half yields: the value, checked against the primal's type, and what it keeps."""

    def __init__(self, entry: Entry, stmt: Stmt, value: Function, wanted: Type, partial: bool) -> None:
        self.entry = entry
        self.stmt = stmt
        if value.region.yields is None:
            refuse(entry, "never returns: its value half always raises", "a rule returns `value, pullback`")
        assert isinstance(value.result, Tuple)
        pair, yields = value.result, value.region.yields
        self.flag = yields[0] if partial else None  # true where there are the others
        if partial:
            pair, yields = value.result.items[1], yields[1:]  # type: ignore[assignment]
        y, captured = pair.items
        self.check(y, wanted)
        n = sum(1 for _ in leaves(y))
        self.check_memory(value, range(partial, partial + n))
        self.values = [v for t, v in zip(leaves(y), yields[:n], strict=True) if has_parameters(t)]
        kept = [(t, v) for t, v in zip(leaves(captured), yields[n:], strict=True) if has_parameters(t)]
        self.residuals = [v for _, v in kept]
        self.captured = tuple(t for t, _ in kept)

    def check(self, y: Type, wanted: Type) -> None:
        """The value has the primal's type: downstream code was typed with it."""
        same = [_castable(a, b) for a, b in zip(leaves(y), leaves(wanted), strict=False)]
        if len(list(leaves(y))) != len(list(leaves(wanted))) or isinstance(y, Tuple) != isinstance(wanted, Tuple) or not all(same):
            refuse(
                self.entry,
                "returns a value of another type than the call",
                "the value has the dtype, dimensions and layout of the call's own result",
                found=f"a value of type {y}, and the call returns {wanted}",
                stmt=self.stmt,
            )

    def check_memory(self, value: Function, of_value: range) -> None:
        """Refuses a value half that writes into an argument or returns memory of one: the sweeps take the value to be new."""
        found = sharing_of(value)
        names = [name for name, t in value.args for _ in parameters(t)]
        for i, loc in found.written.items():
            refuse(
                self.entry,
                f"writes into its argument `{names[i]}`",
                "a rule leaves its arguments as they are",
                found=f"a write at {loc}" if loc else "",
                stmt=self.stmt,
                instead=f"copy it first; for a call whose purpose is to change `{names[i]}`, opt out",
            )
        for j, i in found.returned:
            if j in of_value:  # what is kept may share memory
                refuse(
                    self.entry,
                    f"returns a value that shares memory with its argument `{names[i]}`",
                    "the value of a rule is new memory: what is written into it later is written into nothing else",
                    stmt=self.stmt,
                    instead="copy the value, or opt out: views are differentiated as they are",
                )
        if any(j in of_value and k in of_value for j, k in found.twice):
            refuse(
                self.entry,
                "returns the same memory in two places of its value",
                "the value of a rule is new memory, part by part: what is written into one part later is written into no other",
                stmt=self.stmt,
                instead="copy one of them, or opt out: what shares memory is differentiated as it is",
            )


def _check_structs(entry: Entry, args: list[Operand], stmt: Stmt) -> None:
    """Refuses a rule for array-likes at a call that takes and gives structs: its cotangent would have to be an array."""
    patterns = entry.at_arity(len(args)) or ()
    generic = [a.type for a, p in zip(args, patterns, strict=True) if isinstance(a.type, Tuple) and a.type.struct and not names_type(p)]
    if generic and any(t.struct for t in tuples(stmt.result.type)):
        refuse(
            entry,
            f"is used for {', '.join(t.cls.name for t in generic)}, and the call returns a struct too",
            "a rule for a category takes the cotangent of its value as an array; that of a struct is a struct of its fields' cotangents",
            found=f"a call that returns {stmt.result.type}",
            stmt=stmt,
            instead="opt the signature out, so that its method is differentiated, or write a rule whose patterns name the type",
        )


def _castable(a: Type, b: Type) -> bool:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return b.kind.startswith("complex") or not a.kind.startswith("complex")
    if isinstance(a, Array) and isinstance(b, Array):
        return a.dtype == b.dtype and a.ndim == b.ndim and b.layout in (a.layout, "A") and (a.mutable or not b.mutable)
    return a == b


def carries_any(t: Type) -> bool:
    return any(map(carries_derivative, leaves(t)))
