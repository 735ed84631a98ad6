"""Nodes of the IR: immutable, typed, structured SSA.

A function is a region; a region is a list of statements that ends by yielding values. Control flow is three
statements that hold regions (`If`, `For`, `While`), so a pass is a walk over a tree and never a walk over a graph.

    If     args (condition,)      regions (then, orelse), no parameters   results: what the taken region yields
    For    args (n, *inits)       region (k, *carried) yields *carried     results: the last carried values
    While  args (*inits)          region (*carried) yields (again, *carried); runs once, then while `again` is true

A region whose `yields` is None never reaches its end: it raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .types import BOOL, FLOAT64, INT64, Type

__all__ = [
    "UNDEFINED",
    "AddTo",
    "Alloc",
    "Apply",
    "Attribute",
    "Call",
    "Cast",
    "CloseRecord",
    "Const",
    "Extend",
    "For",
    "Function",
    "Get",
    "If",
    "Invoke",
    "Item",
    "Load",
    "Loc",
    "MakeTuple",
    "Method",
    "Named",
    "Offset",
    "Op",
    "OpenRecord",
    "Operand",
    "PrivateCopy",
    "Put",
    "Raise",
    "Raw",
    "Region",
    "Retain",
    "Rule",
    "ShadowLike",
    "Shape",
    "Slab",
    "Snapshot",
    "Stmt",
    "Store",
    "Summary",
    "Var",
    "View",
    "While",
    "called",
    "const",
    "same_operand",
    "walk",
]


@dataclass(frozen=True, slots=True)
class Loc:
    """Where a statement stands in the user's source; `inlined_at` is the call whose function it comes from, once that is inlined."""

    filename: str
    line: int
    inlined_at: Loc | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value that is defined once. Two variables are the same only if they are the same object."""

    name: str
    type: Type

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant operand: a number, None, a string, or any Python object that the back end knows as a global."""

    type: Type
    value: object

    def __repr__(self) -> str:
        if isinstance(self.value, int | float | complex | str | None | _Undefined):
            return repr(self.value)
        return f"<{getattr(self.value, '__name__', type(self.value).__name__)}>"


Operand = Var | Const


def const(value: bool | int | float, type: Type | None = None) -> Const:
    """A constant of `type`; by default bool, int64 or float64 after the Python type of `value`."""
    if type is None:
        type = BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else FLOAT64
    return Const(type, value)


def same_operand(x: Operand, y: Operand) -> bool:
    """True where both stand for the same value: one variable, or constants that nothing tells apart."""
    if x is y:
        return True
    if not isinstance(x, Const) or not isinstance(y, Const) or x.type != y.type:
        return False
    if x.value is y.value:
        return True
    return isinstance(x.value, int | float) and type(x.value) is type(y.value) and repr(x.value) == repr(y.value)


# ---------------------------------------------------------------------------------------------- callees


@dataclass(frozen=True, slots=True)
class Named:
    """A callable Python object: a function, an operator of `operator`, a ufunc, a dispatcher, a type."""

    obj: object

    def __str__(self) -> str:
        module = getattr(self.obj, "__module__", None) or ""
        name = str(getattr(self.obj, "__qualname__", None) or getattr(self.obj, "__name__", repr(self.obj)))
        return f"{module.lstrip('_')}.{name}" if module and module != "builtins" else name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.obj is other.obj

    def __hash__(self) -> int:
        return id(self.obj)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the first argument."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}()"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the only argument."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


Callee = Named | Method | Attribute


# ---------------------------------------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class Summary:
    """What a function does beside computing its results, as its callers see it.

    `writes`: the positions of the arguments whose memory it may write into. `shares`: pairs of positions that may share
    memory when it has returned, the results counted behind the arguments. `outside`: it may print, draw random numbers or
    do something else that is seen outside.
    """

    writes: tuple[int, ...] = ()
    shares: tuple[tuple[int, int], ...] = ()
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """`callee(*args)`; the last `len(keywords)` arguments are passed by these names. `method`: its rule has opted out when it ran.

    `summary`: what the called code was seen to do, where it was looked into; an argument that is a tuple counts as one.
    """

    callee: Callee
    keywords: tuple[str, ...] = ()
    method: bool = False
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """The argument converted to the type of the result."""


@dataclass(frozen=True, slots=True)
class Load:
    """args (array, *indices): one element, a scalar. `wrap`: a negative index counts from the end, and bounds are checked if asked for."""

    wrap: bool = True


@dataclass(frozen=True, slots=True)
class Store:
    """args (array, *indices, value)."""

    wrap: bool = True


@dataclass(frozen=True, slots=True)
class AddTo:
    """args (array, *indices, value): adds to one element. `cotangent`: a step of a sum of cotangents, whose order is free."""

    wrap: bool = True
    cotangent: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A view that shares memory with args[0].

    `kind` is `index` (basic indexing), `transpose`, `permute`, `reshape` (args: array, *shape) or `cast` (the same memory
    under another array type). For `permute`, `spec` has a digit an axis: which one of the source it is. For `index`, it
    has one letter an axis: `i` an integer (one operand), `s` a slice (three operands: start, stop, step, None where left
    out), `n` a new axis.
    """

    kind: str
    spec: str = ""


@dataclass(frozen=True, slots=True)
class Alloc:
    """args (*shape): a new array, `zeros` or `empty`."""

    fill: str


@dataclass(frozen=True, slots=True)
class Shape:
    """args (array,): its length along `axis`."""

    axis: int


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """A tuple of the arguments."""


@dataclass(frozen=True, slots=True)
class Item:
    """args (tuple,): its item `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class Raise:
    """Raises; ends its region. `payload` is the back end's own statement, whose variables are the arguments, in the order of `names`."""

    payload: object
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "raise"


@dataclass(frozen=True, slots=True)
class Raw:
    """A construct that is not modelled: the back end's own expression or statement.

    Its variables are the arguments, in the order of `names`.
    """

    payload: object
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShadowLike:
    """args (record, array): zeros of the array's shape, in the record; or with `owned` an array of their own, args (array,)."""

    owned: bool = False


@dataclass(frozen=True, slots=True)
class PrivateCopy:
    """args (array,): a copy that nobody else can see."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """args (record, array): a copy of a contiguous array, in the record."""


@dataclass(frozen=True, slots=True)
class Slab:
    """args (record, n): room in the record for n values of type `of`."""

    of: Type


@dataclass(frozen=True, slots=True)
class Extend:
    """args (record, slab, old, new): room for `new` values of type `of`, with the first `old` copied over."""

    of: Type


@dataclass(frozen=True, slots=True)
class Put:
    """args (slab, k, value): writes the value down. `memory` names what the value may share memory with, see `Get`."""

    memory: object = None


@dataclass(frozen=True, slots=True)
class Get:
    """args (slab, k): reads the value back. It may share memory with every other value written or read under the same `memory`."""

    memory: object = None


@dataclass(frozen=True, slots=True)
class Retain:
    """args (record, value): keeps the value's memory until the record is closed."""


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """The record of one outermost gradient call; it is closed when the function is left, or with `kept` only if that is by an exception."""

    kept: bool = False


@dataclass(frozen=True, slots=True)
class CloseRecord:
    """args (record,): gives it back, with everything in it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function that is differentiated on its own, once for all its calls. args and results are leaves.

    `unit` knows the function, `summary` tells what it does, where it was looked into.
    """

    name: str
    unit: object
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class Invoke:
    """A call of generated code (the forward or reverse half of a `Call`) that returns a tuple of the results."""

    name: str
    callee: object


@dataclass(frozen=True, slots=True)
class Offset:
    """args (address,): the address `bytes` further on."""

    bytes: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A call that a rule differentiates: the region is the rule's value half and yields the value and what the pullback keeps.

    `pullback` is the rule's other half, as the transform wants it; without one no derivative passes through. `name` says whose it is.
    """

    name: str
    pullback: object


@dataclass(frozen=True, slots=True)
class If:
    """See the module's docstring."""


@dataclass(frozen=True, slots=True)
class For:
    """See the module's docstring."""


@dataclass(frozen=True, slots=True)
class While:
    """See the module's docstring."""


_Record = OpenRecord | CloseRecord | Slab | Extend | Offset | Put | Get | Retain
_Memory = Load | Store | AddTo | View | Alloc | Shape | ShadowLike | PrivateCopy | Snapshot
Op = Apply | Call | Invoke | Rule | Cast | MakeTuple | Item | Raise | Raw | If | For | While | _Memory | _Record


# ---------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, eq=False)
class Stmt:
    """`results = op(args) regions`."""

    op: Op
    args: tuple[Operand, ...] = ()
    results: tuple[Var, ...] = ()
    regions: tuple[Region, ...] = ()
    loc: Loc | None = None

    @property
    def result(self) -> Var:
        """The only result."""
        (var,) = self.results
        return var

    def __repr__(self) -> str:
        from .text import statement_text

        return statement_text(self)


def called(stmt: Stmt) -> object:
    """The Python object that a statement applies; None where it applies none."""
    return stmt.op.callee.obj if isinstance(stmt.op, Apply) and isinstance(stmt.op.callee, Named) else None


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Statements with parameters in front and yielded values behind; `yields` is None where the end is never reached."""

    params: tuple[Var, ...]
    body: tuple[Stmt, ...]
    yields: tuple[Operand, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function: one region, with the flags it is compiled under.

    `args` are the names and types of the arguments, `result` is the type of the whole return value. The region's
    parameters are the leaves of the arguments, and it yields the leaves of the result: tuples are taken apart.
    Arguments that are constants of their type (functions, None) have no parameter. `sharing` are the pairs of
    parameters that may share memory: None where nothing is known, and any two may.
    """

    name: str
    args: tuple[tuple[str, Type], ...]
    region: Region
    result: Type
    loc: Loc | None = None
    flags: tuple[tuple[str, object], ...] = field(default=())
    sharing: tuple[tuple[Var, Var], ...] | None = None

    def __repr__(self) -> str:
        from .text import function_text

        return function_text(self)


def walk(region: Region) -> Iterator[Stmt]:
    """Each statement of `region` and of the regions inside it, in order, the outer one first."""
    for stmt in region.body:
        yield stmt
        for inner in stmt.regions:
            yield from walk(inner)
