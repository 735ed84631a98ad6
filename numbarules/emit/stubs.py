"""Stubs: Python functions whose compiled code comes from a generator in place of their own body."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._numba import GeneratedCompiler, jit_dispatcher

__all__ = ["stub_dispatcher"]

Generator = Callable[[Any, tuple[Any, ...]], Any]


def stub_dispatcher(name: str, parameters: list[inspect.Parameter], generator: Generator, options: dict[str, Any], module: str, doc: str = "", pipeline: Any = GeneratedCompiler) -> Any:
    """A dispatcher with its own Python function of the given parameters; `generator(func_id, numba_types)` makes its IR."""
    stub = make_stub(name, parameters, module, doc)
    stub.__numbarules_generator__ = generator  # type: ignore[attr-defined]
    return jit_dispatcher(stub, options, pipeline)


def make_stub(name: str, parameters: list[inspect.Parameter], module: str, doc: str) -> FunctionType:
    """A function of the given name and parameters that does nothing."""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    defaults = {f"_default{i}": p.default for i, p in enumerate(plain) if p.default is not inspect.Parameter.empty}
    shown = []
    for i, p in enumerate(plain):
        shown.append(p.name + (f"=_default{i}" if p.default is not inspect.Parameter.empty else ""))
    namespace: dict[str, Any] = {"__name__": module, **defaults}
    exec(compile(f"def {name}({', '.join(shown)}):\n    return None\n", f"<numbarules {name}>", "exec"), namespace)
    stub = namespace[name]
    stub.__module__ = module
    stub.__doc__ = doc
    assert isinstance(stub, FunctionType)
    return stub
