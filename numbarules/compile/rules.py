"""The rule table, asked by the transform: what the rule of a call is at the types of this call."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .. import library as _library  # noqa: F401  (registers the rules)
from .._numba import numba_type, types
from ..analysis.activity import carries_derivative
from ..errors import UnsupportedError, message
from ..ir.nodes import Apply, Attribute, Const, Function, Item, MakeTuple, Method, Named, Operand, Raw, Stmt, Var, called
from ..ir.types import Array, Opaque, Scalar, Type, is_float
from ..primitives import Empty, GlobalArray, Whole, call_value
from ..rules.table import Entry, Found, question, show_key, table
from ..transform.residuals import Plan
from .capture import capture
from .keywords import positional
from .lookups import Lookup, note
from .observer import SILENT, Observer

__all__ = ["ScalarPartial", "TableRules", "argument_type", "container", "describe"]


@dataclass(frozen=True, slots=True)
class ScalarPartial:
    """A partial derivative as IR."""

    function: Function
    guarded: bool


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call as the table knows it: the key of what is called, and the arguments by position."""

    key: Any
    args: list[Operand]


def argument_type(operand: Operand) -> Any:
    """The Numba type of an operand, a literal one where its value is known."""
    if isinstance(operand, Const) and type(operand.value) in (bool, int, str) and not is_float(operand.type):
        return _literal(operand.value)
    return numba_type(operand.type)


@functools.lru_cache(512, typed=True)
def _literal(value: bool | int | str) -> Any:
    return types.literal(value)


class TableRules:
    """The rules for one compiled gradient. `name` is the user's function, for errors.

    Each question is asked once: the answer stays the same until the gradient is made, whatever other threads register meanwhile.
    """

    def __init__(self, name: str, observer: Observer = SILENT) -> None:
        self.name = name
        self.observer = observer
        self._calls: dict[int, Stmt] = {}  # by the location object, which the statement holds
        self._found: dict[Any, Found] = {}
        self._asked: dict[Stmt, Found | None] = {}

    def entry(self, stmt: Stmt) -> Entry | None:
        """The entry that answers for a call of a function or method, or for an attribute."""
        found = self.found(stmt)
        return found.entry if found is not None else None

    def found(self, stmt: Stmt) -> Found | None:
        """What the table says of a call; None for what is no question to it."""
        if stmt not in self._asked:
            self._asked[stmt] = self._ask(stmt)
        return self._asked[stmt]

    def _ask(self, stmt: Stmt) -> Found | None:
        call = self.call(stmt)
        if call is None or stmt.op.method:  # type: ignore[union-attr]
            return None
        try:
            args = tuple(argument_type(a) for a in call.args)
        except NotImplementedError:
            return None
        asked = question(call.key, args)
        if asked not in self._found:
            self._found[asked] = table.lookup(call.key, args)
        note(Lookup(call.key, args, self._found[asked], stmt.loc, self.name))
        return self._found[asked]

    def call(self, stmt: Stmt) -> KeyedCall | None:
        """The call by the table's key, keyword arguments in their places; None where that is not known."""
        if not isinstance(stmt.op, Apply):
            return None
        split = len(stmt.args) - len(stmt.op.keywords)
        match stmt.op.callee:
            case Named(Whole() | Empty() | GlobalArray()):
                return None
            case Named(obj):
                key: Any = obj
            case Method(name) | Attribute(name):
                key = (type(types.unliteral(numba_type(stmt.args[0].type))), name)
        if not stmt.op.keywords:
            return KeyedCall(key, list(stmt.args))
        args = positional(key, list(stmt.args[:split]), dict(zip(stmt.op.keywords, stmt.args[split:], strict=True)))
        return None if args is None else KeyedCall(key, args)

    def refuse_keywords(self, stmt: Stmt) -> None:
        """Refuses a call whose keywords have no known places, where there are entries that it might meet."""
        assert isinstance(stmt.op, Apply)
        match stmt.op.callee:
            case Method(name):
                key: Any = (type(types.unliteral(numba_type(stmt.args[0].type))), name)
            case Named(obj):
                key = obj
            case _:
                return
        if not callable(key) and not isinstance(key, tuple):
            return
        if any(e.kind in ("rule", "opt_out") for e in table.entries(key)):
            raise UnsupportedError(
                message(
                    f"the rules of `{show_key(key)}` cannot be asked for this call, in `{self.name}`",
                    filename=stmt.loc.filename if stmt.loc else None,
                    line=stmt.loc.line if stmt.loc else None,
                    contract="rules are matched by position, and the places of the keywords must be known",
                    found=f"keywords {', '.join(stmt.op.keywords)}, and no signature that says where they stand",
                    instead="pass the arguments by position",
                )
            )

    def differentiable(self, stmt: Stmt) -> bool:
        """False for calls that no derivative passes through, whatever their types."""
        entry = self.entry(stmt)
        return not (entry is not None and entry.kind == "non_differentiable")

    def partials(self, stmt: Stmt) -> tuple[ScalarPartial | None, ...] | None:
        entry = self.entry(stmt)
        if entry is None or entry.kind not in ("scalar", "non_differentiable"):
            return None
        if entry.kind == "non_differentiable":
            return (None,) * len(stmt.args)
        y = numba_type(stmt.result.type)
        args = tuple(types.unliteral(numba_type(a.type)) for a in stmt.args)
        rule: Any = entry.payload
        out: list[ScalarPartial | None] = []
        for i, _ in enumerate(stmt.args):
            partial = rule.partials[i] if i < len(rule.partials) else None
            guard = bool(rule.guard[i]) if i < len(rule.guard) else False
            if partial is None or not is_float(stmt.args[i].type):
                out.append(None)
                continue
            given = len(inspect.signature(partial).parameters) - 1
            out.append(ScalarPartial(capture(partial, (y, *args[:given]), {"error_model": "numpy"}), guard))
        return tuple(out)

    def repeated(self, plan: Plan, values: Iterable[Var]) -> None:
        self.observer.repeated(plan, values)

    def inlined(self, stmt: Stmt) -> None:
        """Is told of a call whose code has taken its place."""
        if stmt.loc is not None:
            self._calls[id(stmt.loc)] = stmt

    def call_from(self, stmt: Stmt) -> Stmt | None:
        """The user's call of a library function that a statement is part of; None for the user's own."""
        at, found = stmt.loc, None
        while at is not None and at.inlined_at is not None and at.inlined_at == at:  # library code stands at the line of its call
            at = at.inlined_at
            found = self._calls.get(id(at), found)
        return found

    def refuse(self, stmt: Stmt) -> NoReturn:
        call = self.call_from(stmt)
        if call is not None and not any(container(a.type) or _kind(a.type).startswith("complex") for a in call.args):
            part, (what, instead) = describe(stmt)[0], _call(call)
            stmt, found = call, f"in its implementation {part}; "
        else:
            what, instead = describe(stmt)
            found = ""
        raise UnsupportedError(
            message(
                f"{what} is not supported where a derivative passes through it, in `{self.name}`",
                filename=stmt.loc.filename if stmt.loc else None,
                line=stmt.loc.line if stmt.loc else None,
                found=found + "arguments of types " + ", ".join(str(a.type) for a in stmt.args),
                instead=instead,
            )
        )


def describe(stmt: Stmt) -> tuple[str, str]:
    """What a statement is in the user's words, and what to write in its place."""
    kinds = [*(a.type for a in stmt.args), *(r.type for r in stmt.results)]
    callee = stmt.op.callee if isinstance(stmt.op, Apply) else None
    if isinstance(callee, Named) and isinstance(callee.obj, Whole):
        return callee.obj.construct, callee.obj.instead
    if any(_kind(t).startswith("complex") for t in kinds):
        return "complex arithmetic", "compute with the real and the imaginary part, as two floats or two arrays"
    for t in kinds:
        found = container(t)
        if found is None:
            continue
        if isinstance(stmt.op, Apply) and _is_numpy(stmt) and all(container(a.type) is None for a in stmt.args):
            what, instead = _call(stmt)
            return f"{what}, which returns {found[0]},", instead
        return found
    match stmt.op:
        case Apply(Named(obj)) if obj is operator.getitem or obj is operator.setitem:
            return (
                "indexing by this index",
                "index with integers, slices, integer arrays or one-dimensional masks, in a loop over `range` where needed",
            )
        case Apply(Named(obj)) if obj is call_value:
            return (
                "a call of a function that is known only at run time",
                "call the jitted function by its name, or pass the jitted function itself as the argument",
            )
        case Apply(Named(obj)) if is_derivative(obj):
            return (
                f"a second derivative, through `{_name(obj)}`,",
                "compute the first derivative outside what is differentiated, or take differences of `numbarules.grad`",
            )
        case Apply(Named(obj)) if type(obj).__name__ == "GUFunc":
            return f"the generalised ufunc `{_name(obj)}`", "call the function under `@njit` in a loop over the core arrays"
        case Apply(Named(obj)) if type(obj).__name__ == "ObjModeLiftedWith":
            return (
                "a block `with objmode`",
                "compute it in jitted code, or outside the differentiated function and pass the result as an argument",
            )
        case Apply(Named(obj)) if isinstance(getattr(obj, "__self__", None), np.random.RandomState):
            return (
                f"a random draw by `np.random.{_name(obj)}`",
                "draw from the standard distribution and shift and scale the draw: `loc + scale * np.random.standard_normal()`",
            )
        case Apply():
            return _call(stmt)
        case Raw(payload):
            kind = getattr(payload, "op", type(payload).__name__)
            return (
                f"the construct `{kind}`",
                "keep floats in arrays and tuples; lists, dictionaries and sets may hold what no derivative passes through",
            )
        case MakeTuple() | Item():
            return (
                "a tuple that is taken apart at run time, as by `literal_unroll`,",
                "name the items, `t[0]` and `t[1]`, or loop over a tuple whose items are of one type",
            )
    return f"the operation `{type(stmt.op).__name__.lower()}`", "write it with scalars and array elements"


def _is_numpy(stmt: Stmt) -> bool:
    """True for a call of a function of NumPy's."""
    obj = called(stmt)
    return callable(obj) and (getattr(obj, "__module__", None) or "").partition(".")[0] == "numpy"


def _call(stmt: Stmt) -> tuple[str, str]:
    """A call of a function or method, or an attribute, in the user's words, and what to write in its place."""
    match stmt.op:
        case Apply(Named(obj)) if _is_numpy(stmt) and _name(obj) in _VIEWS:
            return f"a call of `{Named(obj)}`", _VIEWS[_name(obj)]
        case Apply(Named(obj)):
            name = str(Named(obj)).removeprefix("operator.")
            args = ", ".join(_pattern(a.type) for a in stmt.args)
            return (
                f"a call of `{name}`",
                f"register a rule, `@numbarules.rrule({name})` for ({args}), or write the computation with loops over array elements",
            )
        case Apply(Method("transpose")):
            return "the method `.transpose()` with these axes", _AXES
        case Apply(Method(name)):
            return f"the method `.{name}()`", "write it with a loop over array elements, or use the NumPy function of that name"
        case Apply(Attribute(name)):
            return f"the attribute `.{name}`", "pass what it holds as an argument of its own"
    raise AssertionError(stmt.op)


def _name(obj: object) -> str:
    return str(getattr(obj, "__name__", obj))


_SLICES = "take slices, `a[:k]` and `a[k:]`, which share memory with `a` as well"
_AXES = "give the axes as literals, as in `np.transpose(a, (1, 0, 2))`, index with None for a new one, or loop over the elements"
_VIEWS = {
    **dict.fromkeys(("split", "array_split", "hsplit", "vsplit", "dsplit"), _SLICES),
    **dict.fromkeys(("transpose", "moveaxis", "swapaxes", "expand_dims", "rot90", "atleast_3d"), _AXES),
    "broadcast_to": "let an operation broadcast, `a + np.zeros(shape)`, or index the smaller array in a loop",
    "broadcast_arrays": "let an operation broadcast, `a + np.zeros(shape)`, or index the smaller arrays in a loop",
}
"""What to write in place of functions that return views, for which a rule would be refused."""

_CONTAINERS: tuple[tuple[Any, str, str], ...] = (
    (types.LiteralList, "a list of values of different types", "use a tuple, `(a, b)` in place of `[a, b]`"),
    (
        types.ClassInstanceType,
        "an instance of a jitclass",
        "keep the values in a named tuple or in arrays, and pass those to a jitted function",
    ),
    (types.Record, "a record", "use one array for each field"),
    (types.Generator, "a generator", "fill an array with the values and loop over it"),
    (
        (types.List, types.ListType, types.ListIter, types.ListTypeIteratorType),
        "a list of floats",
        "store the values in an array, `np.empty(n)`, and keep count",
    ),
    ((types.DictType, types.DictIteratorType), "a dictionary of floats", "use an array and integer positions for the keys"),
    ((types.Set, types.SetIter), "a set of floats", "use an array"),
    (types.NumpyNdIterType, "`np.nditer`", "write loops over `range` for each axis"),
    (types.NumpyFlatType, "`.flat` of an array that is not in C order", "use `.flatten()`, or loops over `range` for each axis"),
    (types.Optional, "a float that may be None", "return a number on every path, NaN for example, or a flag beside it"),
)


def container(t: Type) -> tuple[str, str] | None:
    """The description of a type that holds floats and has no cotangents."""
    if not carries_derivative(t):
        return None
    payload = t.payload if isinstance(t, Opaque) else None
    if isinstance(payload, types.Array):
        payload = payload.dtype
    if isinstance(payload, types.Pair):
        payload = payload.first_type
    if isinstance(payload, types.IteratorType) and isinstance(getattr(payload, "container", None), types.Type):
        payload = payload.container
    for cls, what, instead in _CONTAINERS:
        if isinstance(payload, cls):
            return what, instead
    return None


def _kind(t: Type) -> str:
    scalar = t.dtype if isinstance(t, Array) else t
    return scalar.kind if isinstance(scalar, Scalar) else ""


def _pattern(t: Type) -> str:
    if isinstance(t, Array):
        return f"{'Vector' if t.ndim == 1 else 'Matrix' if t.ndim == 2 else 'Array'}"
    return str(t)


def is_derivative(obj: Any) -> bool:
    """True for what `grad`, `value_and_grad` and `vjp` make or are: code that is generated, or that calls such code."""
    return hasattr(getattr(obj, "py_func", None), "__numbarules_generator__") or getattr(obj, "__numbarules_derivative__", False)
