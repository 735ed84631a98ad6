"""The caller's arguments stay as they were: what a function writes into is copied first."""

from __future__ import annotations

from ..analysis.alias import aliases_of
from ..errors import AliasingError, message
from ..ir.nodes import Apply, If, Named, Operand, PrivateCopy, Raise, Region, Stmt, Var, View
from ..ir.rewrite import Builder, substitute
from ..ir.types import BOOL, Array, writable
from ..primitives import Failure
from ..runtime.arrays import overlaps
from ..tangents import incoming_type
from .body import Body

__all__ = ["isolate", "owned"]


def isolate(body: Body, b: Builder, everything: bool = False) -> None:
    """Emits copies of the array arguments that `body` writes into (of all, with `everything`), and makes it work on the copies.

    The code refuses, when it runs, a written argument that overlaps another one.
    """
    region = body.region
    aliases = aliases_of(region)
    arrays = [p for p in region.params if isinstance(p.type, Array)]
    written = [p for p in arrays if aliases.written(p)]
    for i, p in enumerate(arrays):
        for q in arrays[i + 1 :]:
            if p in written or q in written:
                _refuse_overlap(body.name, *((p, q) if p in written else (q, p)), b)
    env: dict[Var, Operand] = {}
    inside: dict[Var, Var] = {}
    for p in arrays if everything else written:
        assert isinstance(p.type, Array)
        copy = b.one(PrivateCopy(), [p], writable(p.type), p.name)
        env[p] = inside[p] = copy if copy.type == p.type else b.one(View("cast"), [copy], p.type, p.name)
    if env:
        inner = substitute(Region((), region.body, region.yields), env, body.names)
        body.replace(Region(region.params, inner.body, inner.yields), inside)


def owned(x: Operand, b: Builder) -> Operand:
    """A value for the caller that shares no memory with anything."""
    if not isinstance(x.type, Array):
        return x
    copy, t = b.one(PrivateCopy(), [x], writable(x.type), "own"), incoming_type(x.type)
    return copy if copy.type == t else b.one(View("cast"), [copy], t, "own")


def _refuse_overlap(function: str, p: Var, q: Var, b: Builder) -> None:
    first, second = (v.name.split(".")[0] for v in (p, q))
    text = message(
        f"arguments `{first}` and `{second}` of `{function}` overlap in memory",
        contract=f"an argument that the function writes into (`{first}`) shares no memory with another one",
        instead=f"pass a copy of `{second}`",
    )
    shared = b.one(Apply(Named(overlaps)), [p, q], BOOL, "overlap")
    fail = b.child()
    fail.add(Stmt(Raise(Failure(AliasingError, text)), (), (), (), b.loc))
    b.add(Stmt(If(), (shared,), (), (fail.region((), None), b.child().region()), b.loc))
