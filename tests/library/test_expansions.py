"""The table of expansions: what it covers and what not."""

from __future__ import annotations

import importlib
import operator

import numpy as np
from numba import types

from numbarules.library.expansions import expansions, lookup_expansion


def test_every_expansion_has_a_case() -> None:
    """In the test module of the module that it stands in."""
    helpers = {key for key in expansions() if callable(key) and key.__module__.startswith("numbarules")}
    indexing = {operator.getitem, operator.setitem}  # in tests/test_language.py
    covered = set()
    for name in {builder.__module__.rpartition(".")[2] for key, builder in expansions().items() if key not in helpers | indexing}:
        cases = importlib.import_module(f".test_{name}", __package__).CASES
        covered |= {expansions()["Array", c.key] if isinstance(c.key, str) else expansions()[c.key] for c in cases}
    assert not [key for key, builder in expansions().items() if builder not in covered and key not in helpers | indexing]


def test_integers_and_unknown_forms_are_not_covered() -> None:
    ints = types.Array(types.int64, 1, "C")
    floats = types.Array(types.float64, 1, "C")
    assert lookup_expansion(np.sum, (ints,)) is None
    assert lookup_expansion(np.sum, (floats,), {"no_such": types.int64}) is None
    assert lookup_expansion(np.linalg.inv, (floats,)) is None
