"""What an operation does beside computing its results."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.nodes import (
    AddTo,
    Alloc,
    Apply,
    Attribute,
    Call,
    Cast,
    CloseRecord,
    Extend,
    For,
    Get,
    If,
    Invoke,
    Item,
    Load,
    MakeTuple,
    Method,
    Named,
    Offset,
    OpenRecord,
    PrivateCopy,
    Put,
    Raise,
    Raw,
    Region,
    Retain,
    Rule,
    ShadowLike,
    Shape,
    Slab,
    Snapshot,
    Stmt,
    Store,
    Summary,
    View,
    While,
)
from ..ir.types import Array, NoneType, Scalar, Tuple, is_integer
from ..primitives import GlobalArray, assign

__all__ = ["Effects", "effects", "hashable", "is_cheap", "region_effects"]


@dataclass(frozen=True, slots=True)
class Effects:
    """`writes`: positions of the arguments whose memory is written.

    `outside`: may print, draw random numbers or do something else that is seen outside. `opaque`: may do anything (that, and
    write anywhere it can reach).
    """

    reads: bool = False
    writes: tuple[int, ...] = ()
    may_raise: bool = False
    opaque: bool = False
    aliases: bool = False  # the result may share memory with an argument
    outside: bool = False

    @property
    def removable(self) -> bool:
        """True where the operation is dead once nobody uses its results."""
        return not (self.writes or self.may_raise or self.opaque or self.outside)

    @property
    def fresh(self) -> bool:
        """True where the results are new and nothing else changes: without an active argument they are constants."""
        return not (self.writes or self.opaque or self.aliases or self.outside)


PURE = Effects()
READS = Effects(reads=True)
WRITES = Effects(writes=(0,))
RAISES = Effects(may_raise=True)
ALIASES = Effects(aliases=True)
ANYTHING = Effects(reads=True, opaque=True, may_raise=True, aliases=True)
IN_PLACE = Effects(reads=True, writes=(0,), may_raise=True, aliases=True)  # `a += b` is `a`

# operations that always have the same effects; a rule changes none of its arguments, and its value is new
_FIXED: dict[type, Effects] = {
    **dict.fromkeys((Alloc, Shape, OpenRecord, Offset), PURE),
    **dict.fromkeys((Load, ShadowLike, PrivateCopy, Snapshot, Slab, Extend, Get), READS),
    **dict.fromkeys((Store, AddTo, Put, Retain, CloseRecord), WRITES),
    **dict.fromkeys((Cast, MakeTuple, Item), ALIASES),
    Raise: RAISES,
    Rule: Effects(reads=True, may_raise=True),
    Invoke: ANYTHING,
}

_DIVISIONS = {operator.truediv, operator.floordiv, operator.mod, np.floor_divide, divmod}
_INPLACE = {getattr(operator, "i" + n) for n in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()}
_BUILTINS = {getattr(builtins, n) for n in "abs min max round int float bool pow complex slice range len divmod".split()}
_VIEWS = set(
    "ravel reshape transpose asarray ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d expand_dims squeeze"
    " broadcast_to flip fliplr flipud real imag swapaxes moveaxis split array_split hsplit vsplit dsplit rot90 view T diagonal"
    " require as_strided sliding_window_view trim_zeros frombuffer nan_to_num flat".split()
)
_WRITERS = {"copyto", "put", "fill_diagonal", "shuffle", "place", "putmask", "fill", "sort", "partition", "itemset", "resize", "seed"}
_PURE_METHODS = set(
    "sum mean var std prod min max argmin argmax copy cumsum cumprod dot flatten astype argsort nonzero all any item conj"
    " conjugate ptp repeat take clip round tolist trace searchsorted".split()
)


def effects(stmt: Stmt) -> Effects:
    """The effects of one statement, inner regions included."""
    known = _FIXED.get(type(stmt.op))
    if known is not None:
        return known
    match stmt.op:
        case Apply(summary=Summary(writes, shares, outside)) | Call(summary=Summary(writes, shares, outside)):
            return Effects(reads=True, writes=writes, may_raise=True, aliases=bool(shares), outside=outside)
        case Apply(Named() as callee):
            return _scalar_call(callee) if _scalars(stmt) else _call(stmt, callee.obj)
        case View(kind=kind):
            return Effects(aliases=True, may_raise=kind == "reshape")
        case Raw(payload) if type(payload).__name__ == "Print":
            return Effects(reads=True, may_raise=True)
        case Raw():
            return ANYTHING
        case If() | For() | While():
            return region_effects(stmt.regions)
        case Apply(Attribute(name)):
            return Effects(aliases=name in _VIEWS or not all(isinstance(r.type, Scalar | NoneType) for r in stmt.results))
        case Apply(Method(name)):
            return _method(stmt, name)
    return ANYTHING


def region_effects(regions: tuple[Region, ...]) -> Effects:
    """Whether anything inside writes, may raise or is opaque (the positions written are not told)."""
    inner = [effects(s) for r in regions for s in r.body]
    return Effects(
        reads=any(e.reads for e in inner),
        writes=(-1,) if any(e.writes for e in inner) else (),
        may_raise=any(e.may_raise for e in inner) or any(r.yields is None for r in regions),
        opaque=any(e.opaque for e in inner),
        outside=any(e.outside for e in inner),
    )


def _scalars(stmt: Stmt) -> bool:
    for a in stmt.args:  # noqa: SIM110 - it is asked at every statement of every pass: a generator costs three times as much
        if not isinstance(a.type, Scalar | NoneType):
            return False
    return True


def _scalar_call(callee: Named) -> Effects:
    """The effects of a call whose arguments are scalars, which do not depend on what they are."""
    lasting = getattr(callee.obj, "__module__", None) in ("_operator", "math", "cmath", "builtins", "numpy")
    return _lasting_call(callee) if lasting else _scalar_effects(callee)


@functools.cache
def _lasting_call(callee: Named) -> Effects:
    """Remembered for what is never dropped: a user's function, or an array in a global, is not kept alive by this."""
    return _scalar_effects(callee)


def _scalar_effects(callee: Named) -> Effects:
    obj: Any = callee.obj
    if (said := _said(obj)) is not None:
        return said
    module = getattr(obj, "__module__", "") or ""
    if obj in _DIVISIONS:
        return RAISES
    if module in ("_operator", "math", "cmath") or obj in _BUILTINS or isinstance(obj, np.ufunc):
        return PURE
    if isinstance(obj, type) and issubclass(obj, np.generic):
        return PURE
    if getattr(obj, "__numbarules_pure__", False):
        return PURE
    return _by_module(obj, module)


def _said(obj: Any) -> Effects | None:
    """The effects that a function has whatever its arguments are."""
    if isinstance(obj, GlobalArray):
        return PURE
    if obj is assign or obj is operator.setitem:
        return Effects(reads=True, writes=(0,), may_raise=True)
    own = getattr(obj, "__numbarules_effects__", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    if not hashable(obj):
        return ANYTHING
    return IN_PLACE if obj in _INPLACE else None


def _call(stmt: Stmt, obj: Any) -> Effects:
    said = _said(obj)
    if any(isinstance(a.type, Tuple) and a.type.struct for a in stmt.args) and (said is None or said is IN_PLACE):
        return ANYTHING  # whoever made the struct says what an operator does
    if said is not None:
        return said
    if written := _outputs(stmt, obj):
        return Effects(reads=True, writes=written, may_raise=True, aliases=True)
    return _by_module(obj, getattr(obj, "__module__", "") or "")


def _by_module(obj: Any, module: str) -> Effects:
    if module == "_operator" or obj in _BUILTINS or isinstance(obj, np.ufunc):
        return Effects(reads=True, may_raise=True, aliases=obj is operator.getitem)
    if module.startswith("numpy") and not module.startswith("numpy.random") and "random" not in module:
        name = getattr(obj, "__name__", "")
        if name in _WRITERS:
            return Effects(reads=True, writes=(0,), may_raise=True)
        return Effects(reads=True, may_raise=True, aliases=name in _VIEWS)
    return ANYTHING


def _outputs(stmt: Stmt, obj: Any) -> tuple[int, ...]:
    """The positions of the arrays that a NumPy function is given to write its result into."""
    assert isinstance(stmt.op, Apply)
    split = len(stmt.args) - len(stmt.op.keywords)
    places = [split + i for i, name in enumerate(stmt.op.keywords) if name == "out"]
    if isinstance(obj, np.ufunc):
        places += range(obj.nin, split)
    elif (getattr(obj, "__module__", "") or "").startswith("numpy"):
        places += [i for i in (_out_position(obj),) if i is not None and i < split]
    return tuple(i for i in places if isinstance(stmt.args[i].type, Array))


@functools.cache
def _out_position(function: Any) -> int | None:
    """The place of the parameter `out` in the signature of a NumPy function."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 2 if function is np.dot else None
    return names.index("out") if "out" in names else None


def _method(stmt: Stmt, name: str) -> Effects:
    if stmt.args and isinstance(stmt.args[0].type, Array):
        if name in _PURE_METHODS:
            return Effects(reads=True, may_raise=True)
        if name in _VIEWS:
            return Effects(reads=True, may_raise=True, aliases=True)
        if name in _WRITERS:
            return Effects(reads=True, writes=(0,), may_raise=True)
    return ANYTHING


def hashable(obj: Any) -> bool:
    """True for what can be looked up in a set; a C function of ctypes only says that it can."""
    try:
        hash(obj)
    except TypeError:
        return False
    return True


_CHEAP_OPERATORS = "add sub mul neg pos lt le gt ge eq ne and_ or_ xor not_ invert lshift rshift truediv abs"
_CHEAP_OF_NUMPY = "fabs abs sqrt minimum maximum floor ceil square negative"
_CHEAP = {
    *(getattr(operator, n) for n in _CHEAP_OPERATORS.split()),
    *(getattr(np, n) for n in _CHEAP_OF_NUMPY.split()),
    *(math.fabs, math.sqrt, math.floor, math.ceil),
    *(abs, min, max, int, float, bool),
}


def is_cheap(stmt: Stmt) -> bool:
    """True for scalar operations that cost less to repeat than to write down and read back."""
    match stmt.op:
        case Cast() | Shape() | View() | Offset() | MakeTuple() | Item() | Load():
            return True
        case Apply(Named(obj)):
            if not hashable(obj) or not _scalars(stmt):
                return False
            if obj in (operator.floordiv, operator.mod):
                return all(is_integer(a.type) for a in stmt.args)
            return obj in _CHEAP or getattr(obj, "__numbarules_cheap__", False)
    return False


