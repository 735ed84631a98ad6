"""The pullback of a rule, typed for what is given and wanted at one call, and its cotangents matched with the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

from .._numba import NumbaError, numba_type, types
from ..capture.closures import Pair
from ..capture.translate import translate
from ..errors import RuleError, UnsupportedError, message
from ..ir.nodes import Function, Loc, Operand, Region, Stmt, called, walk
from ..ir.types import (
    Array,
    NoneType,
    Opaque,
    Scalar,
    Tuple,
    Type,
    has_parameters,
    is_float,
    is_float_array,
    leaves,
    parameters,
    tuples,
    writable,
)
from ..rules.missing import MissingType, not_implemented
from ..rules.table import Entry
from ..tangents import has_tangents, parts
from .contracts import sharing_of
from .projection import Dense, Missing, Target, dense_type, wrap
from .served import not_served

__all__ = ["Half", "carries", "refuse", "rule_name"]


@dataclass(frozen=True, slots=True)
class Typed:
    """See `transform.splice.Half`."""

    function: Function
    takes: tuple[int, ...]
    shadowed: tuple[int, ...]
    targets: tuple[int | None, ...]


@dataclass(eq=False, slots=True)
class Half:
    """`Rule.pullback`: types the pullback for what is given and wanted at one call."""

    name: str
    entry: Entry
    pair: Pair
    args: tuple[Type, ...]
    slots: int
    result: Type
    captured: tuple[Type, ...]
    options: dict[str, Any]
    loc: Loc | None
    made: dict[Any, Typed] = field(default_factory=dict)

    def half(self, given: tuple[bool, ...], wanted: tuple[bool, ...]) -> Typed:
        if (given, wanted) not in self.made:
            self.made[given, wanted] = self.make(given, wanted)
        return self.made[given, wanted]

    @property
    def accumulates(self) -> bool:
        """True for a pullback that adds into the shadows of array arguments."""
        return self.pair.pullback.parameters > 1

    def make(self, given: tuple[bool, ...], wanted: tuple[bool, ...]) -> Typed:
        shadows, owners = self.shadows(wanted) if self.accumulates else ([], [])
        attempts = [given] if all(given) or not isinstance(self.result, Tuple) else [given, (True,) * len(given)]
        if any(t.struct for t in tuples(self.result)):  # a part of a struct cannot be None
            attempts = attempts[-1:]
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
            self.check_writes(function, len(owners))
            used = tuple(i for i, (t, k) in enumerate(zip(self.result_leaves(), takes, strict=True)) if k and carries(t))
            return self.finished(function, used, owners, wanted)
        where = self.pair.pullback.function.__code__
        assert failure is not None
        types_of_call = tuple(map(numba_type, self.args))
        if (error := not_served(self.entry, types_of_call, f"the pullback `{where.co_name}` of the rule", failure)) is not None:
            raise error from failure
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

    def finished(self, function: Function, takes: tuple[int, ...], owners: list[int], wanted: tuple[bool, ...]) -> Typed:
        """The pullback as it is spliced: dense cotangents of structs projected, the leaves of structs among its parameters."""
        targets = self.implemented(function, self.targets(function.result, function), wanted)
        params = function.region.params
        first = len(params) - len(self.captured) - len(owners)
        shadows = dict(zip(owners, params[first : first + len(owners)], strict=True))
        starts = self.starts
        arrays = tuple(starts[i] for i in owners if not isinstance(self.args[i], Tuple))
        given = [part for part in parts(self.result) if part != "absent"]
        if self.structs or self.kept_results:
            function, targets = wrap(
                function,
                self.args,
                self.structs,
                kept=[p for p, part in zip(params, given, strict=False) if part == "kept"],
                shadows={i: p for i, p in shadows.items() if isinstance(self.args[i], Tuple)},
                targets=targets,
            )
        return Typed(function, takes, arrays, tuple(t for t in targets if not isinstance(t, Dense)))

    def implemented(self, function: Function, targets: tuple[Target | Missing, ...], wanted: tuple[bool, ...]) -> tuple[Target, ...]:
        """The targets without those of cotangents that the rule says it does not give, refused where one is wanted."""
        self.refuse_missing_in(function.region, set(function.region.yields or ()))
        out: list[Target] = []
        for target, y in zip(targets, function.region.yields or (), strict=True):
            if isinstance(target, Missing) and any(wanted[target.start : target.stop]):
                names = list(inspect.signature(self.entry.payload).parameters)
                self.refuse_missing(y.type, f" by the argument `{names[min(target.argument, len(names) - 1)]}`")
            out.append(None if isinstance(target, Missing) else target)
        return tuple(out)

    def refuse_missing_in(self, region: Region, returned: Collection[Operand] = ()) -> None:
        """Refuses a rule whose code at these types comes to a `not_implemented` that is not returned."""
        for stmt in walk(region):
            if called(stmt) is not_implemented and stmt.result not in returned:
                self.refuse_missing(stmt.result.type)

    def refuse_missing(self, t: Type, argument: str = "") -> NoReturn:
        assert isinstance(t, Opaque) and isinstance(t.payload, MissingType)
        raise UnsupportedError(
            message(
                f"a derivative{argument} is needed that {self.name} does not implement",
                filename=self.loc.filename if self.loc else None,
                line=self.loc.line if self.loc else None,
                contract="a rule may leave out a cotangent, and says why",
                found=f"{t.payload.reason} ({self.entry.origin.filename}:{self.entry.origin.line})",
                instead="leave the argument out of what is differentiated, or opt out of the rule for these types",
            )
        )

    @property
    def starts(self) -> list[int]:
        """The first leaf of each argument."""
        return list(accumulate((len(parameters(t)) for t in self.args), initial=0))[:-1]

    @property
    def structs(self) -> list[int]:
        """The arguments that are structs with a derivative: their leaves are kept for the projection."""
        return [i for i, t in enumerate(self.args) if isinstance(t, Tuple) and t.struct and has_tangents(t)]

    @property
    def kept_results(self) -> list[int]:
        """The leaves of the value that are parts of its cotangent as they are: a struct's shape, indices."""
        return [i for i, part in enumerate(parts(self.result)) if part == "kept"]

    def check_writes(self, function: Function, shadows: int) -> None:
        """Refuses a pullback that writes into anything but the shadows that it is handed: its cotangent is the shadow of the value, and
        what it captured may be an argument, and is read again when it is called again.

        A read-only array type would say so to Numba, and have it compile what the pullback calls once more.
        """
        first = len(function.region.params) - len(self.captured) - shadows
        for i, loc in sharing_of(function).written.items():
            if first <= i < first + shadows:
                continue
            code = self.pair.pullback.function.__code__
            what = "the cotangent that it is given" if i < first else f"`{function.region.params[i].name.split('.')[0]}`, which it captures"
            raise RuleError(
                message(
                    f"the pullback `{code.co_name}` of {self.name} writes into {what}",
                    filename=loc.filename if loc else code.co_filename,
                    line=loc.line if loc else code.co_firstlineno,
                    contract="the cotangent and what is captured are read-only to a pullback",
                    instead="copy it first",
                )
            )

    def result_leaves(self) -> list[Type]:
        return parameters(self.result)

    def cotangent(self, t: Type, given: Iterator[bool]) -> Any:
        """The Numba type of the cotangent of a value, None where there is none."""
        if isinstance(t, Tuple):
            if t.struct:
                for _ in parameters(t):
                    next(given)
                return numba_type(_shadow_type(t))
            return types.Tuple([self.cotangent(i, given) for i in t.items])
        if not has_parameters(t) or not next(given) or not carries(t):
            return types.none
        return numba_type(writable(t) if isinstance(t, Array) else t)

    def shadows(self, wanted: tuple[bool, ...]) -> tuple[list[Any], list[int]]:
        """The types of the shadows that the pullback is handed, one an argument, and the arguments that have one."""
        code = self.pair.pullback.function.__code__
        if self.slots == 0 or self.pair.pullback.parameters != 1 + self.slots:
            refuse(
                self.entry,
                f"has a pullback `{code.co_name}` with {self.pair.pullback.parameters} parameters",
                "a pullback takes the cotangent alone, or the cotangent and the shadow of each of the rule's parameters",
                found=f"{self.slots} parameters of the rule" if self.slots else "a rule with `*args`",
            )
        out: list[Any] = []
        owners: list[int] = []
        for i, (t, start) in enumerate(zip(self.args, self.starts, strict=True)):
            if not any(wanted[start : start + len(parameters(t))]) or is_float(t):
                out.append(types.none)
                continue
            dense = t if isinstance(t, Array) else dense_type(t)
            if dense is None:
                refuse(
                    self.entry,
                    f"has a pullback `{code.co_name}` that is handed the shadow of a value of type {t}",
                    "shadows are those of arrays, and of structs with `shape` and a method `to_dense`, which are handed a dense one",
                    instead="return the cotangents",
                )
            out.append(numba_type(writable(dense)))
            owners.append(i)
        out += [types.none] * (self.slots - len(self.args))
        return out, owners

    # ------------------------------------------------------------------------------------------ what it returns

    def targets(self, t: Type, function: Function) -> tuple[Target | Missing, ...]:
        """For each yielded leaf the argument leaf whose cotangent it is."""
        if function.region.yields is None:
            return ()
        args = list(self.args)
        if self.accumulates:
            return self.by_value(t)
        if len(args) == 1 and _bare(args[0], t):
            returned: list[Type] = [t]
        elif isinstance(t, Tuple) and len(t.items) in (len(args), self.slots):
            returned = list(t.items)
        else:
            refuse(
                self.entry,
                "returns the wrong number of cotangents",
                "a pullback returns one cotangent for each argument, None for no contribution; bare for one argument that is no tuple",
                found=f"cotangents of type {t} for arguments of types ({', '.join(map(str, args))})",
                instead="for what has no cotangent, an axis or a function, return None in its place",
            )
        out: list[Target | Missing] = []
        for i, (arg, bar, start) in enumerate(zip(args, returned, self.starts, strict=False)):
            out += self.match(i, arg, bar, start)
        out += [None] * sum(1 for bar in returned[len(args) :] for _ in leaves(bar))  # of arguments that the call left out
        return tuple(out)

    def by_value(self, t: Type) -> tuple[Target | Missing, ...]:
        """The cotangents that a pullback returns beside those that it adds into shadows: of the scalars, or one an argument."""
        starts = self.starts
        scalars = [i for i, arg in enumerate(self.args) if is_float(arg)]
        if isinstance(t, NoneType):
            return (None,)
        items = list(t.items) if isinstance(t, Tuple) else [t]
        places = list(range(len(self.args))) if len(items) == len(self.args) else scalars if len(items) == len(scalars) else None
        if places is None or any(is_float_array(self.args[i]) and not isinstance(x, NoneType) for i, x in zip(places, items, strict=True)):
            refuse(
                self.entry,
                "returns the wrong number of cotangents",
                "a pullback that is handed shadows adds into them, and returns the cotangents of the float scalars only",
                found=f"cotangents of type {t} for {len(scalars)} float scalars",
            )
        return tuple(x for i, bar in zip(places, items, strict=True) for x in self.match(i, self.args[i], bar, starts[i]))

    def match(self, i: int, arg: Type, bar: Type, start: int) -> list[Target | Missing]:
        """The targets of the leaves of one argument's cotangent."""
        if isinstance(bar, Opaque) and isinstance(bar.payload, MissingType):
            return [Missing(i, start, start + len(parameters(arg)))]
        if isinstance(bar, NoneType) or not any(map(carries, leaves(arg))):
            return [None] * sum(1 for _ in leaves(bar))
        if isinstance(arg, Tuple) and isinstance(bar, Array) and (dense := dense_type(arg)) is not None and bar.ndim == dense.ndim:
            return [Dense(i)]
        fields = len(arg.items) if isinstance(arg, Tuple) and (not arg.struct or arg.cls is getattr(bar, "cls", None)) else -1
        if isinstance(arg, Tuple) and isinstance(bar, Tuple) and len(bar.items) == fields:
            out: list[Target | Missing] = []
            for a, x in zip(arg.items, bar.items, strict=True):
                out += self.match(i, a, x, start)
                start += len(parameters(a))
            return out
        fits = (isinstance(arg, Scalar) and isinstance(bar, Scalar)) or (
            isinstance(arg, Array) and isinstance(bar, Array) and arg.ndim == bar.ndim
        )
        if not fits:
            refuse(
                self.entry,
                f"returns a cotangent of argument {i} that is none of its tangents",
                "a cotangent has the kind and the dimensions of its argument: a number for a number, an array for an array,"
                " for a struct one of its class, or an array where it has `shape` and a method `to_dense`",
                found=f"{bar} for {arg}",
            )
        return [start]


def _bare(arg: Type, bar: Type) -> bool:
    """True for the cotangent of a rule's only argument, which is not a 1-tuple with it."""
    return (not isinstance(bar, Tuple) or bar.struct) and (not isinstance(arg, Tuple) or arg.struct)


def _shadow_type(t: Type) -> Type:
    """The type of the cotangent of a struct that a pullback is given: the shadows of its leaves."""
    if isinstance(t, Tuple):
        return Tuple(tuple(map(_shadow_type, t.items)), t.cls)
    return writable(t) if isinstance(t, Array) and carries(t) else t


def carries(t: Type) -> bool:
    return is_float(t) or is_float_array(t)


def rule_name(entry: Entry) -> str:
    return f"the rule `{entry.origin.name}` for {entry.signature}"


def refuse(entry: Entry, what: str, contract: str, found: str = "", stmt: Stmt | None = None, instead: str = "") -> NoReturn:
    where = f" (called at {stmt.loc})" if stmt is not None and stmt.loc is not None else ""
    raise RuleError(
        message(
            f"{rule_name(entry)} {what}{where}",
            filename=entry.origin.filename,
            line=entry.origin.line,
            contract=contract,
            found=found,
            instead=instead,
        )
    )
