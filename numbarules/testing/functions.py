"""The page of supported functions, `docs/functions.md`, from the table of rules and the table of methods to differentiate.

$ python -m numbarules.testing.functions docs/functions.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..library.expansions import expansions
from ..rules.table import Entry, show_key, table

__all__ = ["page"]

HEAD = """\
# Supported functions

Functions that a derivative passes through, beside the language itself (see [reference.md](reference.md)). Made from the tables of the
package by `python -m numbarules.testing.functions docs/functions.md`; a test keeps it up to date. `np` is NumPy. Names are those of
Python 3.11 or newer and NumPy 2; a function is supported where the installed Numba supports it.

Not listed is what makes arrays and views and is taken as part of the language: `np.zeros` and its like, `np.array`, indexing, `.reshape`,
`.ravel`, `.T`, `np.transpose`, `np.swapaxes` and `np.moveaxis` with literal axes.

A function that is not here is differentiated where Numba implements it in Python (by `@overload`) and that code is supported; else it is
refused by name when a derivative passes through it. Where none does, anything that Numba compiles may be called.
"""

SCALAR = """\
## Scalar functions

Each has a rule: the partial derivatives by its real arguments. NumPy's ufuncs among them take arrays too, with broadcasting. The last
column is the convention at a kink, tie or edge; without one, the derivative there is what IEEE arithmetic gives. Where a partial is
infinite or NaN and the cotangent is exactly zero, the functions marked * contribute exactly zero.

| function | the same rule | convention |
|---|---|---|"""

RULES = """\
## Functions with a rule of value and pullback

`cholesky`, `eigh` and `eigvalsh` read the lower triangle: the gradient is zero in the upper one, and an element below the diagonal stands
for both places. Matrix products and factorisations go through BLAS and LAPACK, in the pullback too.

| function | arguments |
|---|---|"""

ARRAYS = """\
## Array functions

Each is differentiated through an implementation in plain loops, for arguments of the types that Numba takes. A call with other parameters
than those shown is not covered. A function that has a rule too is differentiated by its rule, unless that is opted out.

| function | what holds |
|---|---|"""

STEPS = """\
## Derivative zero everywhere

Piecewise constant functions and predicates, jumps included:
"""


def page(entries: Iterable[Entry]) -> str:
    """The text of the page for those entries that come with the package."""
    own = [e for e in entries if e.origin.package == "numbarules" and _is_public(e.function)]
    return "\n\n".join(
        (
            HEAD.rstrip(),
            "\n".join((SCALAR, *_scalar_rows([e for e in own if e.kind == "scalar"]))),
            "\n".join((RULES, *_rule_rows([e for e in own if e.kind == "rule"]))),
            "\n".join((ARRAYS, *_array_rows())),
            STEPS + "\n" + ", ".join(sorted(f"`{_name(e.function)}`" for e in own if e.kind == "non_differentiable")) + ".\n",
        )
    )


def _name(key: Any) -> str:
    if isinstance(key, tuple):
        return f".{key[1]}"
    return show_key(key).replace("numpy.", "np.", 1)


def _users(key: Any) -> list[str]:
    return sorted(_name(user) for user in table.aliases_of(key))


def _grouped(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    groups: dict[str, list[Entry]] = {}
    for e in entries:
        groups.setdefault(_name(e.function), []).append(e)
    return sorted(groups.items())


def _scalar_rows(entries: Iterable[Entry]) -> list[str]:
    rows = []
    for name, group in _grouped(entries):
        star = " *" if any(any(e.payload.guard) for e in group) else ""
        also = ", ".join(f"`{user}`" for user in _users(group[0].function))
        docs = dict.fromkeys(e.payload.doc for e in group if e.payload.doc)
        rows.append(f"| `{name}`{star} | {also} | {'; '.join(docs)} |")
    return rows


def _rule_rows(entries: Iterable[Entry]) -> list[str]:
    rows = []
    for name, group in _grouped(entries):
        names = ", ".join(f"`{n}`" for n in (name, *_users(group[0].function)))
        calls = ", ".join(f"`{e.signature.partition('(')[2][:-1]}`" for e in group)
        rows.append(f"| {names} | {calls} |")
    return rows


def _array_rows() -> list[str]:
    groups: dict[Callable[..., Any], list[str]] = {}
    for key, builder in expansions().items():
        if _is_public(key):
            groups.setdefault(builder, []).append(_name(key))
    rows = []
    for builder, names in groups.items():
        parameters = ", ".join(p.name + _default(p) for p in inspect.signature(builder).parameters.values())
        shown = [f"`{names[0]}({parameters})`", *(f"`{n}`" for n in names[1:])]
        doc = " ".join(inspect.getdoc(builder).split()) if builder.__doc__ else ""  # type: ignore[union-attr]
        rows.append(f"| {', '.join(shown)} | {doc} |")
    return sorted(rows, key=str.lower)


def _default(p: inspect.Parameter) -> str:
    return "" if p.default is p.empty else f"={p.default!r}"


def _is_public(key: Any) -> bool:
    return not _name(key).startswith(("numbarules.", "numba."))


def main() -> None:
    Path(sys.argv[1]).write_text(page(table.entries()), encoding="utf-8")


if __name__ == "__main__":
    main()
