"""The gradient of an IR program through the whole engine, and through the engine without its simplification."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from numbarules.compile import body, gradient
from numbarules.ir.nodes import Function, MakeTuple, walk
from numbarules.ir.rewrite import Names
from numbarules.ir.verify import verify
from numbarules.testing.checks import Gradient
from numbarules.transform.simplify import simplify

__all__ = ["MODES", "simplified", "without_simplification"]


def simplified(function: Function, argnums: tuple[int, ...]) -> Function:
    """The function that returns value and gradient, as it is compiled."""
    derived = gradient._Gradient(function, gradient.Request(argnums, True), function.name).build()
    verify(derived)
    return derived


@contextmanager
def _simplification_off() -> Iterator[None]:
    with ExitStack() as stack:
        for module in (body, gradient):
            for name in ("simplify", "optimise"):
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, lambda code, *args, **kw: code))
        yield


def without_simplification(function: Function, argnums: tuple[int, ...]) -> Function:
    """The same before anything is cleared up, but for tuples: what the sweeps themselves make of the program."""
    if any(isinstance(s.op, MakeTuple) for s in walk(function.region)):
        function = simplify(function, Names(500_000))
    with _simplification_off():
        return simplified(function, argnums)


MODES: dict[str, Gradient] = {"simplified": simplified, "plain": without_simplification}
