"""Judges the gradients of a case program: argument trees, tolerances, shapes and dtypes against an independent reference.

A case is a module with `f`, `args()` and `reference(*args)`, and perhaps `TOL`, `accept`, `cotangent`, `MUTATES`,
`property_holds` and `MAX_FIRST_CALL_SECONDS`; its first lines name the public code or the bug report that it comes from.
An argument is a tree: real and complex scalars and arrays, tuples and named tuples of these; the rest is inactive.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

CASES = Path(__file__).parent / "open"


def load(path: str | Path) -> ModuleType:
    """The case module at `path`, registered under its own name: Numba's self-recursion needs the module to be found."""
    path = Path(path)
    name = f"case_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def is_active(value: Any) -> bool:
    """True for a float or complex scalar and for an array of them."""
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, float | complex | np.floating | np.complexfloating):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def leaves(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """(path, leaf) of each active leaf of an argument tree."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    elif is_active(value):
        yield path, value


def pick(value: Any, path: tuple[int, ...]) -> Any:
    """The leaf at `path`; None where the tree is None on the way."""
    for i in path:
        if value is None:
            return None
        value = value[i]
    return value


def clone(value: Any) -> Any:
    """A copy of an argument tree that shares no memory with it and keeps the layouts of its arrays."""
    if isinstance(value, tuple):
        items = [clone(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, np.ndarray):
        return np.copy(value, order="K")
    return value if np.isscalar(value) else copy.copy(value)


def equal_tree(a: Any, b: Any) -> bool:
    """True if two trees are the same to the last bit (NaN equals NaN); what cannot be compared counts as the same."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(equal_tree(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    try:
        return bool(a == b) or (a != a and b != b)
    except Exception:
        return True


def near_tree(a: Any, b: Any) -> bool:
    """True if two results agree to rounding of their precision."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(near_tree(x, y) for x, y in zip(a, b, strict=True))
    rtol = 1e-5 if np.asarray(a).dtype == np.float32 else 1e-9
    return bool(np.allclose(a, b, rtol=rtol, atol=1e-10, equal_nan=True))


def close(a: Any, b: Any, rtol: float, atol: float) -> tuple[bool, float]:
    """(within tolerance everywhere, largest absolute error); equal entries, NaN and infinities included, have no error."""
    a, b = np.asarray(a), np.asarray(b)
    if a.size == 0:
        return True, 0.0
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        relative = np.where(same, 0.0, error / (atol + rtol * np.maximum(np.abs(a), np.abs(b))))
    worst = float(np.max(np.where(np.isnan(relative), np.inf, relative)))
    return worst <= 1.0, float(np.nanmax(np.where(same, 0.0, error)))


def compare(case: ModuleType, got: Any) -> list[str]:
    """Complaints about the gradients `got`, one entry per argument of the case (anything for an inactive one); empty if right.

    Shapes and dtypes of array gradients must be those of the arguments. `case.accept` judges points where several answers
    are right; otherwise `case.TOL` (rtol 1e-8, atol 1e-10 times the scale) holds against `case.reference`.
    """
    args = case.args()
    bad = []
    for path, leaf in leaves(args):
        g = pick(got, path)
        if g is None:
            bad.append(f"{path}: missing")
        elif isinstance(leaf, np.ndarray) and (np.shape(g) != leaf.shape or np.asarray(g).dtype != leaf.dtype):
            bad.append(f"{path}: {np.shape(g)}/{np.asarray(g).dtype} for {leaf.shape}/{leaf.dtype}")
        elif not np.isfinite(np.asarray(g)).all() and np.isfinite(np.asarray(leaf)).all():
            bad.append(f"{path}: not finite")
    if bad:
        return bad
    if hasattr(case, "accept"):
        return [] if case.accept(got) else ["accept() is False"]
    reference = case.reference(*clone(args))
    rtol, atol = getattr(case, "TOL", (1e-8, 1e-10))
    for path, _ in leaves(args):
        wanted = np.asarray(pick(reference, path))
        scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
        good, error = close(pick(got, path), wanted, rtol, atol * scale)
        if not good:
            bad.append(f"{path}: max abs err {error:.2e}")
    return bad
