"""Entries of the rule table: what a row says, and how the function that it is about is named."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import FunctionType, GetSetDescriptorType, MethodDescriptorType
from typing import Any
from typing import Literal as OneOf

from numba import types

from numbarules.errors import RuleError, message
from numbarules.rules import patterns as pt
from numbarules.rules.patterns import Tail, matches, show

__all__ = ["CAPABILITIES", "Entry", "Found", "Kind", "Origin", "Problem", "ScalarRule", "function_key", "identity", "question", "show_key"]

CAPABILITIES = frozenset({"reverse", "forward", "debug"})
"""What a rule may require of the system that asks: that it differentiates in reverse or in forward mode, that it is in debug mode."""

Kind = OneOf["rule", "opt_out", "non_differentiable", "scalar"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry was written; `package` is the top-level module name."""

    package: str
    filename: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.filename}:{self.line})"


@dataclass(frozen=True, slots=True)
class ScalarRule:
    """The payload of a `scalar` entry.

    `partials[i](y, *args)` is dy/d(args[i]); None where that argument is discrete and contributes nothing. Where `guard[i]`, the partial
    may be infinite or NaN, and a cotangent that is exactly zero contributes exactly zero. `at` are sample points inside the domain, each a
    tuple of arguments.
    """

    partials: tuple[Callable[..., Any] | None, ...]
    guard: tuple[bool, ...]
    at: tuple[tuple[Any, ...], ...]
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One row of the table. The last pattern may be a `Tail`; arguments after the first `required` may be left out.

    The payload is the rule; for an opt-out that comes with an implementation, that; else None.
    """

    function: Any
    patterns: tuple[Any, ...]
    kind: Kind
    payload: Any
    origin: Origin
    required: int
    on_unstable: OneOf["error", "branch"] = "error"
    requires: frozenset[str] = frozenset()  # capabilities, see `CAPABILITIES`
    at: tuple[tuple[Any, ...], ...] = ()

    @property
    def points(self) -> tuple[tuple[Any, ...], ...]:
        """Sample points, each a tuple of arguments at which a test can check the entry."""
        return self.payload.at if self.kind == "scalar" else self.at

    @property
    def any_function(self) -> bool:
        """True for an entry that is about a type, whatever the function."""
        return self.function is Any

    @property
    def first(self) -> types.Type | None:
        """The one type that the first argument of every call has that the entry matches; None where there are several."""
        found = self.patterns[0] if self.patterns and self.required else None
        return found if isinstance(found, types.Type) and not self.any_function else None

    def at_arity(self, n: int) -> tuple[Any, ...] | None:
        """The patterns of a call with n arguments, None where there is no such call."""
        tail = self.patterns[-1] if self.patterns and isinstance(self.patterns[-1], Tail) else None
        fixed = len(self.patterns) - (tail is not None)
        if n < self.required or (n > fixed and tail is None):
            return None
        return self.patterns[:n] if n <= fixed else (*self.patterns[:fixed], *(tail.pattern,) * (n - fixed))  # type: ignore[union-attr]

    def matches(self, argument_types: Sequence[types.Type]) -> bool:
        """True where the entry describes arguments of these types, whatever the function."""
        if self.any_function:
            return any(matches(self.patterns[0], t) for t in argument_types)
        at = self.at_arity(len(argument_types))
        return at is not None and all(map(matches, at, argument_types))

    @property
    def signature(self) -> str:
        """The call that the entry describes, as text."""
        shown = [show(p) + ("=..." if i >= self.required and not isinstance(p, Tail) else "") for i, p in enumerate(self.patterns)]
        return f"{show_key(self.function)}({', '.join(shown)})"

    def __str__(self) -> str:
        needs = f" that requires {' and '.join(sorted(self.requires))}" if self.requires else ""
        return f"{self.kind.replace('_', ' ')} {self.signature}{needs}, {self.origin}"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of a look-up: the winner, or None; the strongest entry that it beat, or None; and why."""

    entry: Entry | None
    runner_up: Entry | None
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of `Table.check`."""

    kind: OneOf["ambiguous", "shadows nothing", "unreachable", "no sample points"]
    entries: tuple[Entry, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


_MEMBERS = (FunctionType, MethodDescriptorType, GetSetDescriptorType, property)


def function_key(function: Any) -> Any:
    """The key of a function: the callable itself, `Any`, or (Numba type class, name) for a method or attribute.

    A method may be written `"Array.sum"` (a class of `numba.types` or a registered Python class), `(SomeClass, "sum")`, or as the method
    or property itself, `np.ndarray.sum`, of a registered Python class.
    """
    if isinstance(function, _MEMBERS) and (method := pt.method_of_class(function)) is not None:
        function = method
    if isinstance(function, str):
        class_name, _, name = function.rpartition(".")
        return _class_by_name(class_name, function), name
    if isinstance(function, tuple) and len(function) == 2 and isinstance(function[1], str):
        owner = pt.as_pattern(function[0])
        if isinstance(owner, types.Type):
            owner = type(owner)
        if not (isinstance(owner, type) and issubclass(owner, types.Type)):
            raise RuleError(
                message(
                    f"{function!r} names no method",
                    contract="a method's key is (a Numba type class or a registered Python class, its name)",
                )
            )
        return owner, function[1]
    if function is not Any and not callable(function):
        raise RuleError(
            message(f"{function!r} cannot have a rule", contract='a rule is for a callable, a method such as "Array.sum", or Any')
        )
    return function


def show_key(key: Any) -> str:
    """The function of an entry, as text."""
    if key is Any:
        return "Any"
    if isinstance(key, tuple):
        return f"{key[0].__name__}.{key[1]}"
    module = getattr(key, "__module__", None) or ("numpy" if type(key).__name__ == "ufunc" else "")
    name = getattr(key, "__qualname__", None) or getattr(key, "__name__", None) or repr(key)
    module = {"_operator": "operator", "builtins": "", "__main__": ""}.get(module, module)
    return f"{module}.{name}" if module else str(name)


def question(function: Any, argument_types: Sequence[types.Type]) -> Hashable:
    """A look-up as a dictionary's key, good as long as the function lives."""
    return (identity(function), *argument_types)


def identity(key: Any) -> Hashable:
    """What tells functions apart in dictionaries: equal for one function as long as it lives."""
    if isinstance(key, tuple):
        return tuple(k if isinstance(k, str) else id(k) for k in key)
    return key if isinstance(key, str) else id(key)


def _class_by_name(owner: str, written: str) -> Any:
    if owner == "Array":  # Numba's, whatever others call their classes
        return types.Array
    named = {f"{c.__module__}.{c.__qualname__}": t for c, t in list(pt._CLASSES.items()) if c.__name__ == owner}
    if len(named) > 1:
        raise RuleError(
            message(
                f'"{written}" names a method of several classes',
                contract="a name stands for one registered class",
                found=", ".join(named),
                instead='write (TheClass, "name")',
            )
        )
    for numba_type in named.values():
        return numba_type if isinstance(numba_type, type) else type(numba_type)
    found = getattr(types, owner, None) if owner else None
    if not (isinstance(found, type) and issubclass(found, types.Type)):
        raise RuleError(
            message(
                f'"{written}" names no method',
                contract='a method is written "Class.name", with a class of numba.types or a registered Python class',
                instead='write (TheNumbaTypeClass, "name")',
            )
        )
    return found
