"""Each rule of the library is checked at its sample points: by differences, by itself as plain Python, and by what type inference says."""

from __future__ import annotations

import pytest

from numbarules.rules import table
from numbarules.testing import check_rule

RULES = [e for e in table.entries() if e.origin.package == "numbarules" and e.kind == "rule"]
SLOW = {
    "cholesky_rule", "det_rule", "eigh_rule", "eigvals_rule", "eigvalsh_rule", "inv_rule", "qr_rule", "solve_rule", "solve_many_rule",
    "svd_rule",
}  # fmt: skip
"""Compiled for many seconds, and checked in every run by functions of their own."""


def cases():
    for entry in RULES:
        slow = [pytest.mark.slow] if entry.origin.name in SLOW else []
        for i, point in enumerate(entry.points):
            yield pytest.param(entry, point, id=f"{entry.signature}-{i}", marks=slow)


@pytest.mark.parametrize(("entry", "point"), list(cases()))
def test_a_rule_at_its_sample_points(entry, point):
    found = check_rule(entry.function, *point)
    assert found.entry is entry
    assert found.gradient.error < 1e-8
    assert found.gradient.entries > 0


def test_no_rule_lacks_sample_points():
    assert len(RULES) >= 18
    assert [str(e) for e in RULES if not e.points] == []


def test_the_marks_name_rules():
    assert {e.origin.name for e in RULES} >= SLOW
