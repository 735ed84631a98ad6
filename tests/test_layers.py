"""Imports go one way: each package of numbarules uses only those below it, and Numba's inside is touched in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import numbarules

ROOT = Path(numbarules.__file__).parent

# From the bottom to the top. A package may import those in rows above its own in this table, and itself.
FLOORS: list[set[str]] = [
    {"errors"},
    {"primitives"},
    {"ir"},
    {"tangents"},
    {"analysis"},
    {"transform"},
    {"rules"},
    {"_numba_lowering"},
    {"runtime", "structs"},
    {"_numba"},
    {"specialized"},
    {"structured"},
    {"library"},
    {"capture"},
    {"emit"},
    {"compile"},
    {"api", "reports"},
    {"testing"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: i for i, floor in enumerate(FLOORS) for name in floor}
WITHOUT_NUMBA = {"errors", "primitives", "ir", "tangents", "analysis", "transform"}
DOORS = {"_numba.py", "_numba_lowering.py"}

FILES = sorted(ROOT.rglob("*.py"))


def package(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path: Path) -> list[str]:
    """The modules that a file imports, relative ones resolved."""
    here = ["numbarules", *path.relative_to(ROOT).parts[:-1]]
    out: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            out += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            out += [f"{module}.{alias.name}" if module in ("numbarules", "numba") else module for alias in node.names]
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    own = package(path)
    if own == "__init__":
        return
    assert own in LEVEL, f"{own} has no floor"
    for module in imports(path):
        if module.startswith("numbarules."):
            other = module.split(".")[1]
            if other in LEVEL and other != own:
                assert LEVEL[other] < LEVEL[own], f"{own} imports {module}, which is not below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_numba_is_touched_in_one_place(path: Path) -> None:
    found = [m for m in imports(path) if m == "numba" or m.startswith(("numba.", "llvmlite"))]
    if package(path) in WITHOUT_NUMBA:
        assert not found, f"{package(path)} imports {found}"
    if path.name not in DOORS:
        inside = [m for m in found if m.startswith("numba.core")]
        assert not inside, f"only {' and '.join(sorted(DOORS))} import {inside}"
