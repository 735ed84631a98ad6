"""Stubs: Python functions whose compiled code comes from a generator in place of their own body."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._numba import GeneratedCompiler, jit_dispatcher

__all__ = ["make_stub", "stub_dispatcher"]

Generator = Callable[[Any, tuple[Any, ...]], Any]


def stub_dispatcher(
    name: str,
    parameters: list[inspect.Parameter],
    generator: Generator,
    options: dict[str, Any],
    module: str,
    doc: str = "",
    pipeline: Any = GeneratedCompiler,
) -> Any:
    """A dispatcher with its own Python function of the given parameters; `generator(func_id, numba_types)` makes its IR."""
    return jit_dispatcher(make_stub(name, parameters, generator, module, doc), options, pipeline)


def make_stub(name: str, parameters: list[inspect.Parameter], generator: Generator, module: str, doc: str = "") -> FunctionType:
    """A function of the given name and parameters that does nothing, and carries the generator of its code.

    A parameter by keyword only becomes an ordinary one, as Numba has it. A lambda's name is made an identifier.
    """
    name = re.sub(r"\W+", "", name)
    namespace: dict[str, Any] = {"__name__": module}
    shown = []
    for i, p in enumerate(parameters):
        text = f"*{p.name}" if p.kind is inspect.Parameter.VAR_POSITIONAL else p.name
        if p.default is not inspect.Parameter.empty:
            namespace[f"_default{i}"] = p.default
            text += f"=_default{i}"
        shown.append(text)
    exec(compile(f"def {name}({', '.join(shown)}):\n    return None\n", f"<numbarules {name}>", "exec"), namespace)
    stub = namespace[name]
    assert isinstance(stub, FunctionType)
    stub.__module__ = module
    stub.__doc__ = doc
    stub.__numbarules_generator__ = generator  # type: ignore[attr-defined]
    return stub
