"""The gradient of one function at one signature, as IR: forward sweep, reverse sweep, and the frame around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..analysis.activity import Activity
from ..errors import DifferentiationError, message
from ..ir.nodes import Const, Function, OpenRecord, Operand, Region, ShadowLike, Var, View
from ..ir.rewrite import Builder
from ..ir.types import NONE, POINTER, Array, NoneType, Opaque, Tuple, Type, is_float, is_float_array, leaves, writable
from ..tangents import tangent_type
from ..transform.adjoints import Adjoints, zero
from ..transform.forward import Forward
from ..transform.reverse import Reverse
from .body import Body, finished
from .capture import capture
from .isolation import isolate, owned
from .observer import SILENT, Observer

__all__ = ["Request", "gradient_function"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: the arguments to differentiate by, whether the value is wanted too, and the `njit` options of the primal."""

    argnums: int | tuple[int, ...]
    value: bool
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def positions(self) -> tuple[int, ...]:
        return (self.argnums,) if isinstance(self.argnums, int) else self.argnums


def gradient_function(function: Callable[..., Any], args: tuple[Any, ...], request: Request, observer: Observer = SILENT) -> Function:
    """The gradient of a Python function at Numba argument types."""
    primal = capture(function, args, dict(request.options))
    return _Gradient(primal, request, function.__name__, observer).build()


class _Gradient:
    def __init__(self, primal: Function, request: Request, name: str, observer: Observer = SILENT) -> None:
        self.primal = primal
        self.request = request
        self.name = name
        self.params = _by_argument(primal)
        self.check()
        wanted = {i for position in request.positions for i in range(*self.params[position])}
        inputs = tuple(i in wanted for i in range(len(primal.region.params)))
        self.body = Body(primal, dict(request.options), name, inputs, (True,), arrays_out=False, observer=observer)
        self.names = self.body.names

    # ------------------------------------------------------------------------------------------ contract

    def check(self) -> None:
        result, args = self.primal.result, self.primal.args
        where = {"filename": self.primal.loc.filename, "line": self.primal.loc.line} if self.primal.loc else {}
        for i in self.request.positions:
            name, t = args[i]
            if not any(is_float(x) or is_float_array(x) for x in leaves(t)):
                raise DifferentiationError(
                    message(
                        f"`{self.name}` cannot be differentiated by its argument `{name}`",
                        **where,  # type: ignore[arg-type]
                        contract="an argument to differentiate by has a float scalar or a float array in it",
                        found=f"`{name}` is of type {t}",
                        instead=f"pass a float, or leave {i} out of `argnums`",
                    )
                )
        if not is_float(result):
            raise DifferentiationError(
                message(
                    f"`{self.name}` has no gradient: its result is not a real scalar",
                    **where,  # type: ignore[arg-type]
                    contract="`grad` and `value_and_grad` need a function that returns one float",
                    found=f"a result of type {result}",
                    instead="return a float, or use `numbarules.vjp`, which takes a cotangent of the result",
                )
            )

    # ------------------------------------------------------------------------------------------ build

    def build(self) -> Function:
        b, body = Builder(self.names, self.primal.loc), self.body
        record = b.one(OpenRecord(), (), POINTER, "record")
        isolate(self.body, b)
        region, activity = body.region, body.activity
        forward = Forward(self.names, activity, record)
        outputs = self.shadows(region, activity, forward, b)
        tree = forward.region(region)
        body.rules.observer.paired(forward.pairs.values())  # type: ignore[arg-type]
        back = Builder(self.names, self.primal.loc)
        adj = Adjoints()
        if tree.yields is not None:
            (y,) = tree.yields
            if isinstance(y, Var) and activity(y):
                adj.set(y, Const(y.type, 1.0))
            Reverse(forward, body.rules, fast=body.fast).region(tree, adj, back, joint=True)
        result, gradient_leaves = self.gradients(region, adj, outputs, back)
        frozen = tree.freeze()
        statements = (*b.body, *frozen.body, *back.body)
        yields: tuple[Operand, ...] | None = None
        if tree.yields is not None:
            yields = (*(frozen.yields or ()), *gradient_leaves) if self.request.value else tuple(gradient_leaves)
        whole = Tuple((self.primal.result, result)) if self.request.value else result
        primal, whole_region = self.primal, Region(region.params, statements, yields)
        out = Function(f"{self.name}_grad", primal.args, whole_region, whole, primal.loc, primal.flags)
        return finished(out, body)

    def leaf_params(self, region: Region, i: int) -> list[Var]:
        """The parameters that are leaves of argument `i`."""
        start, stop = self.params[i]
        return list(region.params[start:stop])

    # ------------------------------------------------------------------------------------------ the frame

    def shadows(self, region: Region, activity: Activity, forward: Forward, b: Builder) -> dict[Var, Var]:
        """Makes the shadows of array arguments; returns those that become gradients, by parameter."""
        wanted = {p for i in self.request.positions for p in self.leaf_params(region, i) if is_float_array(p.type)}
        out: dict[Var, Var] = {}
        for p in region.params:
            if not is_float_array(p.type):
                continue
            assert isinstance(p.type, Array)
            used = self.body.inside.get(p, p)
            if p in wanted:
                t = tangent_type(p.type)
                out[p] = b.one(ShadowLike(owned=True), [p], t, f"{p.name.split('.')[0]}_bar")
                inside = writable(p.type)
                shadow = out[p] if inside == t else b.one(View("cast"), [out[p]], inside, "shadow")
                forward.give(p, shadow)
                forward.give(used, shadow)
            elif activity(used):
                forward.give(used, b.one(ShadowLike(), [forward.record, p], writable(p.type), "shadow"))
                forward.shadows[p] = forward.shadows[used]
        return out

    def gradients(self, region: Region, adj: Adjoints, outputs: dict[Var, Var], b: Builder) -> tuple[Type, list[Operand]]:
        """The type of the gradient and its leaves."""
        found: list[Operand] = []
        result: list[Type] = []

        def leaf(t: Type, params: Iterator[Var], kept: bool = False) -> None:
            if isinstance(t, Tuple):
                for item in t.items:
                    leaf(item, params, kept or t.struct)
            elif isinstance(t, NoneType) or (isinstance(t, Opaque) and t.constant):
                found.append(Const(NONE, None))
            else:
                p = next(params)
                if p in outputs:
                    found.append(outputs[p])
                elif is_float(t):
                    found.append(adj.get(p) or zero(t))
                elif kept:
                    found.append(owned(p, b))
                else:
                    found.append(Const(NONE, None))

        for i in self.request.positions:
            leaf(self.primal.args[i][1], iter(self.leaf_params(region, i)))
            result.append(tangent_type(self.primal.args[i][1]))
        if isinstance(self.request.argnums, int):
            return result[0], found
        return Tuple(tuple(result)), found


def _by_argument(function: Function) -> list[tuple[int, int]]:
    """For each argument the range of its leaves among the parameters."""
    out: list[tuple[int, int]] = []
    start = 0
    for _, t in function.args:
        n = sum(1 for x in leaves(t) if not isinstance(x, NoneType) and not (isinstance(x, Opaque) and x.constant))
        out.append((start, start + n))
        start += n
    return out
