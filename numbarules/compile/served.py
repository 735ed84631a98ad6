"""What a rule for a category needs of the structs that it serves, and the error where one lacks it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._numba import NumbaError, typed_ir
from ..errors import RuleError, message
from ..rules.patterns import names_type, show
from ..rules.table import Entry
from ..structs import StructType

__all__ = ["not_served"]


def not_served(entry: Entry, argument_types: Sequence[Any], half: str, error: NumbaError) -> RuleError | None:
    """The error of a half of a rule that does not compile for structs that it was not written for; None where it is for none of those.

    A struct counts where a category stands for it, and where it lacks what makes it an array and the rule takes it for one.
    """
    as_array = _AS_ARRAY.search(str(error)) is not None
    generic = list(dict.fromkeys(_generic(entry, argument_types, as_array)))
    if not generic:
        return None
    lacks = {t: names for t in generic if (names := _lacking(t))}
    cls = next(iter(lacks or generic)).struct.name
    return RuleError(
        message(
            f"{half} {entry.signature} cannot serve ({', '.join(map(str, argument_types))})",
            filename=entry.origin.filename,
            line=entry.origin.line,
            contract="a rule for a category serves a struct by what its body uses: `shape` and `to_dense()`, by which a struct of category"
            " AbstractMatrix or AbstractVector stands for an array, and the functions that it calls",
            found="; ".join(f"{t.struct.name} has no {' and no '.join(f'`{n}`' for n in names)}" for t, names in lacks.items())
            or _cause(error),
            instead=f"{_definitions(cls, next(iter(lacks.values()), ()))}or opt out, so that a method is differentiated:"
            f" numbarules.opt_out({_call(entry, argument_types)})",
        )
    )


_AS_ARRAY = re.compile("Unknown attribute '(shape|to_dense)'")


def _generic(entry: Entry, argument_types: Sequence[Any], as_array: bool) -> Iterator[StructType]:
    """The types of structs that the rule serves as arrays."""
    patterns = entry.at_arity(len(argument_types)) or ()
    return (t for t, p in zip(argument_types, patterns, strict=False) if isinstance(t, StructType) and (as_array or not names_type(p)))


def _shape(x: Any) -> Any:
    return x.shape


def _to_dense(x: Any) -> Any:
    return x.to_dense()


def _lacking(t: StructType) -> tuple[str, ...]:
    return tuple(name for name, use in (("shape", _shape), ("to_dense", _to_dense)) if not _compiles(use, t))


def _compiles(use: Any, t: StructType) -> bool:
    try:
        typed_ir(use, (t,), {})
    except NumbaError:
        return False
    return True


def _cause(error: NumbaError) -> str:
    """What Numba's error comes to, in a line."""
    text = str(error)
    if (unknown := re.search(r"Unknown attribute .*", text)) is not None:
        return unknown[0]
    called = re.findall(r"^\s*>>> (.*)$", text, re.MULTILINE)
    if called:
        return f"Numba has no implementation of {called[-1]}"
    return next((line for line in text.splitlines() if line.strip() and not line.startswith("Failed in")), text)


def _definitions(cls: str, names: Sequence[str]) -> str:
    """What to write for a struct class, as text."""
    made = {
        "shape": f'@numbarules.specialized(({cls}, "shape"), attribute=True) for a function that returns its shape',
        "to_dense": f'@numbarules.specialized(({cls}, "to_dense")) for one that returns an array',
    }
    return " and ".join(made[n] for n in names) + ", " * bool(names)


def _call(entry: Entry, argument_types: Sequence[Any]) -> str:
    """The arguments of the opt-out, as text."""
    patterns = entry.at_arity(len(argument_types)) or ()
    named = [t.struct.name if isinstance(t, StructType) else show(p) for t, p in zip(argument_types, patterns, strict=False)]
    key = entry.function
    function = f'"{key[0].__name__}.{key[1]}"' if isinstance(key, tuple) else entry.signature.partition("(")[0]
    return ", ".join([function, *named])
