"""Which rules catch a type that they do not name."""

from __future__ import annotations

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


def test_a_type_that_nothing_catches():
    assert nr.capture_audit(types.unicode_type).captures == ()
    assert "No rule catches" in str(nr.capture_audit(types.unicode_type))


def test_what_is_no_type():
    with pytest.raises(nr.RuleError):
        nr.capture_audit(object())
