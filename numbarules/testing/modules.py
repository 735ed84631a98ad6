"""The checks of whole modules, as `numbarules check` runs them: functions decided by types, rules at their sample points, the table.

A module says at which types its functions are used in one of two ways: an `@njit_grad` function has signatures, or the module has a list
`__numbarules_check__` of pairs (function, arguments), or a function of that name that returns one:

    __numbarules_check__ = [(loss, (np.ones(3), np.ones((5, 3))))]

A third item is the `argnums` of a function that is not decorated with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from numba import typeof

from ..compile.capture import python_function
from ..compile.dispatchers import DifferentiableDispatcher
from ..errors import CheckError, NumbarulesError
from ..rules.register import check_table
from ..rules.table import Entry, table
from .rules import caller, site_of, with_floats
from .stable import stable_report

__all__ = ["Finding", "check_modules", "find_object", "load"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check has found. A `note` is no fault: something that nothing checks."""

    kind: Literal["fault", "note"]
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: {self.text}"


# ---------------------------------------------------------------------------------------------- names and files


def load(target: str) -> list[ModuleType]:
    """The module of a dotted name or of a file; with those inside it, for a package or a folder. Raises ImportError."""
    path = Path(target)
    if path.is_dir() and not _is_module(target):
        return [_from_file(p) for p in sorted(path.glob("*.py"))]
    if path.suffix == ".py":
        return [_from_file(path)]
    module = importlib.import_module(target)
    inside = getattr(module, "__path__", None)
    names = [m.name for m in pkgutil.walk_packages(inside, f"{target}.")] if inside is not None else []
    return [module, *(importlib.import_module(n) for n in names if not n.endswith("__main__"))]


def _is_module(target: str) -> bool:
    try:
        return importlib.util.find_spec(target) is not None
    except (ImportError, ValueError):
        return False


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ImportError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Numba looks functions up by their module
    spec.loader.exec_module(module)
    return module


def find_object(target: str) -> tuple[Any, ModuleType]:
    """What `module:name` or `file.py:name` names, and its module. Raises ImportError."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise ImportError(f"{target!r} is not of the form module:name or file.py:name")
    found: Any = (module := load(place)[0])
    for part in name.split("."):
        if not hasattr(found, part):
            raise ImportError(f"{place} has no {name}")
        found = getattr(found, part)
    return found, module


# ---------------------------------------------------------------------------------------------- checks


def check_modules(modules: Iterable[ModuleType]) -> list[Finding]:
    """All findings in some modules, and in the table about the rules of their packages; without modules, in the whole table."""
    modules = list(modules)
    packages = {m.__name__.partition(".")[0] for m in modules}
    files = {getattr(m, "__file__", None) for m in modules}
    found = [f for m in modules for f in _functions(m)]
    rules = [e for e in table.entries() if e.kind == "rule" and e.origin.filename in files]
    found += [f for e in rules for point in e.points for f in _rule(e, point)]
    for problem in check_table():
        if not modules or any(e.origin.package in packages for e in problem.entries):
            origin = problem.entries[-1].origin
            kind: Literal["fault", "note"] = "note" if problem.kind == "no sample points" else "fault"
            found.append(Finding(kind, f"{origin.filename}:{origin.line}", str(problem)))
    return list(dict.fromkeys(found))


def _functions(module: ModuleType) -> Iterator[Finding]:
    """The functions of a module at the types that it names."""
    examples = getattr(module, "__numbarules_check__", [])
    cases = [(e[0], tuple(map(typeof, e[1])), e[2] if len(e) > 2 else None) for e in (examples() if callable(examples) else examples)]
    told = {id(f) for f, _, _ in cases}
    for f in vars(module).values():
        if isinstance(f, DifferentiableDispatcher) and f.__module__ == module.__name__:
            cases += [(f, tuple(signature), None) for signature in f.signatures if not f._can_compile]
            if not f.signatures and id(f) not in told:
                text = f"`{f.__name__}` is not checked: it has no signature, and stands not in `__numbarules_check__`"
                yield Finding("note", _place(f), text)
    for f, types, argnums in cases:
        yield from _decided(f, types, argnums)


def _decided(f: Any, types: tuple[Any, ...], argnums: Any) -> list[Finding]:
    try:
        stable_report(f, types, argnums)
    except NumbarulesError as error:
        return [Finding("fault", _place(f), str(error))]
    return []


def _place(f: Any) -> str:
    code = python_function(getattr(f, "primal", f)).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _rule(entry: Entry, point: tuple[Any, ...]) -> list[Finding]:
    """A rule at a sample point: it is the one that is used, and does not decide by value."""
    types = tuple(map(typeof, point))
    try:
        call = caller(entry.function, len(point))
        site = site_of(stable_report(call, types, with_floats(point)), entry.function)
        if site.entry is not entry or site.how != "rule":
            raise CheckError(f"it is not used at its sample point ({', '.join(map(str, types))}): {site.how}, {site.entry}")
    except NumbarulesError as error:
        return [Finding("fault", f"{entry.origin.filename}:{entry.origin.line}", f"{entry.signature}: {error}")]
    return []
