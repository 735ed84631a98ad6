"""Which rules catch a type that they do not name."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numba import types

import numbarules as nr
from numbarules.rules import register_category


class BandedType(types.Type):
    ndim = 2


register_category(nr.AbstractArray, BandedType)
BANDED = BandedType("banded")


@pytest.mark.parametrize("asked", [BANDED, BandedType])
def test_abstract_patterns_catch_and_names_do_not(asked):
    found = {(c.entry.function, c.positions) for c in nr.capture_audit(asked).captures}
    assert (np.linalg.det, (0,)) in found
    assert (np.dot, (0, 1)) in found
    assert (np.dot, (1,)) in found
    assert not any(c.entry.function is np.vdot for c in nr.capture_audit(asked).captures)  # of vectors
    with nr.rule_scope():

        @nr.rrule(np.trace)
        def trace_rule(x: BandedType):
            return None

        @nr.rrule(np.diag)
        def diag_rule(x: nr.AbstractMatrix):
            return None

        now = {c.entry.function for c in nr.capture_audit(asked).captures}
    assert np.diag in now
    assert np.trace not in now


def test_what_is_opted_out_is_told_apart():
    with nr.rule_scope():
        everything = nr.opt_out(nr.Any, BandedType)
        audit = nr.capture_audit(BANDED)
        assert audit.captures
        assert audit.open == ()
        assert all(everything in c.opted_out for c in audit.captures)
        assert "but opt out Any(BandedType)" in str(audit)
    assert len(nr.capture_audit(BANDED).open) == len(nr.capture_audit(BANDED).captures)


def test_an_opt_out_covers_a_rule_only_for_the_signatures_that_it_matches():
    def products():
        captures = [c for c in nr.capture_audit(BandedType).captures if c.entry.function is operator.matmul]
        found = {c.entry.signature.partition("(")[2]: c for c in captures}
        by_vector = found.pop("AbstractMatrix, AbstractVector)")
        from_left, by_matrix = found.pop("AbstractVector, AbstractMatrix)"), found.pop("AbstractMatrix, AbstractMatrix)")
        assert not found
        return by_vector, from_left, by_matrix

    with nr.rule_scope():
        entry = nr.opt_out(operator.matmul, BandedType, nr.AbstractVector)
        by_vector, from_left, by_matrix = products()
        assert (by_vector.opted_out, by_vector.open) == ((entry,), False)
        assert (from_left.opted_out, from_left.open) == ((), True)
        assert (by_matrix.opted_out, by_matrix.open) == ((), True)
        from_the_left = nr.opt_out(operator.matmul, BandedType, nr.AbstractMatrix)
        by_vector, from_left, by_matrix = products()
        assert (by_matrix.opted_out, by_matrix.open) == ((from_the_left,), True)  # a banded matrix on the right is still caught
        assert f"but for some calls {from_the_left}" in str(by_matrix)


def test_a_type_that_nothing_catches():
    assert nr.capture_audit(types.unicode_type).captures == ()
    assert "No rule catches" in str(nr.capture_audit(types.unicode_type))


def test_what_is_no_type():
    with pytest.raises(nr.RuleError):
        nr.capture_audit(object())
