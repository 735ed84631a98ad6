"""What a function computes, as a digest: its code, the values that the code refers to, and the functions it calls, in turn.

Two functions of equal digest compile to the same code. A value whose content cannot be told raises `Unidentifiable`.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np

from .._numba import Dispatcher, types
from ..rules.patterns import Category, show
from ..rules.table import Entry, ScalarRule, show_key, table

__all__ = ["Unidentifiable", "digest", "engine_digest", "rules_digest"]

# Their content is given by their version.
_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_VERSIONED = frozenset({"numpy", "scipy", "numba", "llvmlite", "numbarules", *sys.stdlib_module_names, *sys.builtin_module_names})
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), np.generic, np.dtype, range, slice)


class Unidentifiable(Exception):
    """A value that code refers to has no content that could be compared."""


def digest(*values: Any) -> str:
    """The digest of values: functions, dispatchers, numbers, strings, arrays, tuples, types and modules."""
    walk = _Walk()
    for value in values:
        walk.value(value)
    return walk.hash.hexdigest()


@cache
def engine_digest() -> str:
    """The digest of what makes the code: the sources of this package and the versions below it."""
    root = Path(__file__).resolve().parent.parent
    found = hashlib.sha256(repr((sys.version, numba.__version__, llvmlite.__version__, np.__version__)).encode())
    for path in sorted(root.rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def rules_digest() -> str:
    """The digest of the rules that are not of this package (those that are belong to `engine_digest`), of aliases and of categories."""
    entries = [e for e in table.entries() if e.origin.package != "numbarules"]
    aliases = sorted(f"{show_key(new)} = {show_key(old)}" for new, old in table.aliases())
    members = sorted(f"{c.__name__}: {', '.join(sorted(map(show, c._members)))}" for c in _categories(Category))
    return digest(*sorted(map(_entry_digest, entries)), aliases, members)


def _categories(base: type[Category]) -> Iterator[type[Category]]:
    for c in base.__subclasses__():
        yield c
        yield from _categories(c)


def _entry_digest(entry: Entry) -> str:
    payload = entry.payload
    if isinstance(payload, ScalarRule):
        payload = (*payload.partials, *payload.guard)
    return digest(show_key(entry.function), *map(show, entry.patterns), entry.kind, entry.required, entry.on_unstable, payload)


class _Walk:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, int] = {}  # by identity, the place in the walk
        self.held: list[Any] = []  # so that no identity is used again

    def add(self, *parts: object) -> None:
        self.hash.update(repr(parts).encode())

    def value(self, value: Any) -> None:
        if isinstance(value, _PLAIN):
            return self.add(type(value).__name__, value)
        place = self.seen.get(id(value))
        if place is not None:
            return self.add("again", place)
        self.seen[id(value)] = len(self.seen)
        self.held.append(value)
        if isinstance(value, Dispatcher):
            self.dispatcher(value)
        elif isinstance(value, FunctionType) and value.__code__.co_filename.startswith(_PACKAGE):
            self.own_function(value)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.add("array", value.dtype.str, value.shape, value.strides, value.flags.writeable)
            self.hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, tuple | list | frozenset | set):
            self.add(type(value).__qualname__, len(value))
            for item in sorted(value, key=repr) if isinstance(value, frozenset | set) else value:
                self.value(item)
        elif isinstance(value, Mapping):
            self.add("mapping", len(value))
            for key, item in value.items():
                self.value(key)
                self.value(item)
        elif isinstance(value, type):
            self.class_(value)
        elif isinstance(value, ModuleType):
            self.add("module", value.__name__)
        elif isinstance(value, types.Type) and not isinstance(value, types.WeakType):
            self.add("type", str(value))
        elif isinstance(getattr(value, "__qualname__", getattr(value, "__name__", None)), str) and _top(value) in _VERSIONED:
            self.add("named", getattr(value, "__module__", ""), getattr(value, "__qualname__", getattr(value, "__name__", "")))
        elif isinstance(getattr(value, "__wrapped__", None), FunctionType):  # an intrinsic
            self.add("wrapped", type(value).__qualname__)
            self.function(value.__wrapped__)
        elif _top(type(value)) == "numbarules":  # the table, what is known of a struct class: `engine_digest` stands for what they do
            self.add("instance", type(value).__qualname__)
        else:
            raise Unidentifiable(f"a value of type `{type(value).__qualname__}`")

    def dispatcher(self, f: Any) -> None:
        request = getattr(f, "identity", None)  # of a derivative: what it is the derivative of, and which
        self.add("dispatcher", request is not None)
        self.value(f.py_func if request is None else request)
        self.value({k: v for k, v in sorted(f.targetoptions.items()) if not callable(v)})
        self.value({k: str(v) for k, v in sorted(f.locals.items())})

    def own_function(self, f: FunctionType) -> None:
        """A function of this package, whose code belongs to `engine_digest`; what it was made with is not."""
        self.add("own", f.__module__, f.__qualname__)
        for cell in f.__closure__ or ():
            with suppress(ValueError):  # not filled yet
                self.value(cell.cell_contents)

    def function(self, f: FunctionType) -> None:
        self.add("function", f.__module__, f.__qualname__)
        self.value(f.__defaults__)
        self.value(f.__kwdefaults__)
        self.code(f.__code__)
        names = set(_names(f.__code__))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self.add("free", name)
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self.referred(content, names)
        for name in sorted(names & f.__globals__.keys()):
            self.add("global", name)
            self.referred(f.__globals__[name], names)

    def referred(self, value: Any, names: set[str]) -> None:
        """A value that code with these names refers to; of a module, the attributes that it may take."""
        self.value(value)
        if isinstance(value, ModuleType) and _top(value) not in _VERSIONED:
            for name in sorted(names & vars(value).keys()):
                self.add("attribute", name)
                if id(vars(value)[name]) not in self.seen:
                    self.referred(vars(value)[name], names)
        derivative = getattr(value, "argnums", None)
        if derivative is not None:
            self.value(derivative)

    def code(self, code: CodeType) -> None:
        self.add("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.code(constant)
            else:
                self.value(constant)

    def class_(self, cls: type) -> None:
        self.add("class", cls.__module__, cls.__qualname__, getattr(cls, "_fields", ()))
        if _top(cls) in _VERSIONED:
            return
        compiled = getattr(cls, "class_type", None)  # of a jitclass
        members = getattr(compiled, "methods", None) or vars(cls)
        for name in sorted(members):
            if isinstance(members[name], FunctionType):
                self.add("member", name)
                self.function(members[name])
            elif isinstance(members[name], int | float | str):
                self.add(name, members[name])
        if compiled is not None:
            self.add(str(compiled.struct))


def _names(code: CodeType) -> Iterator[str]:
    """The names by which code, and the code in it, takes globals and attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _top(value: Any) -> str:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if module is None and isinstance(value, np.ufunc):
        return "numpy"
    return (module or ("builtins" if inspect.isbuiltin(value) else "")).partition(".")[0]
