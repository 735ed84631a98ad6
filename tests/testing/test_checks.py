"""The checks of derivatives find what is planted, say what and where, and pass what is right."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest
from numba import njit, types

import numbarules as nr
from numbarules.testing import OptOutLosesWarning, check_gradient, check_opt_out, check_rule, check_stable, opt_out
from perf.scenarios import SCENARIOS, registered

VECTOR = types.float64[::1]
V = np.array([0.3, -1.2, 0.7])


@njit
def cube(x):
    return x * x * x


@njit
def scaled(x, k):
    return k * x


@pytest.fixture(autouse=True)
def scope():
    with nr.rule_scope():
        yield


# ---------------------------------------------------------------------------------------------- check_rule


def test_a_right_rule_passes_and_names_its_entry():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * ybar

        return x * x * x, cube_pullback

    found = check_rule(cube, 1.3)
    assert found.entry.payload is cube_rule
    assert found.gradient.error < 1e-9
    assert found.gradient.entries == 1
    assert str(found).startswith(found.entry.signature)


def wrong_derivative():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * ybar

        return x * x * x, cube_pullback


def wrong_value():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * ybar

        return x * x * x + 1e-3, cube_pullback


def not_linear():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * abs(ybar)

        return x * x * x, cube_pullback


def decides_by_value():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * ybar

        if x > 0.0:
            return None
        return x * x * x, cube_pullback


def branches():
    @nr.rrule(cube, on_unstable="branch")
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * ybar

        if x > 0.0:
            return None
        return x * x * x, cube_pullback


def says_none():
    nr.opt_out(cube, nr.Real)


def nothing():
    pass


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (wrong_derivative, "a wrong cotangent of argument 0"),
        (wrong_value, "a wrong value"),
        (not_linear, "not linear|a wrong cotangent"),
        (decides_by_value, "is not stable"),
        (says_none, "opted out by an entry"),
        (nothing, "no entry"),
    ],
)
def test_a_planted_fault_is_found(plant, says):
    plant()
    with pytest.raises(nr.CheckError, match=says) as caught:
        check_rule(cube, -1.3)
    assert isinstance(caught.value, AssertionError)
    assert "cube" in str(caught.value)
    if plant in (wrong_derivative, wrong_value, not_linear):  # of the rule, not of the code that calls it
        line = plant.__code__.co_firstlineno + 1
        what, where = str(caught.value).splitlines()[:2]
        assert f"of the rule `{plant.__name__}.<locals>.cube_rule` for {cube.__module__}.cube(Real)" in what
        assert where == f'  File "{__file__}", line {line}'
        assert "call_of" not in str(caught.value)


@pytest.mark.parametrize(
    ("overwrites", "alone"),
    [
        pytest.param(False, False, id="right"),
        pytest.param(True, False, id="overwrites"),
        pytest.param(False, True, id="wrong when the scalar is not wanted"),
    ],
)
def test_shadows_are_added_into_whatever_is_wanted(overwrites, alone):
    @nr.rrule(scaled)
    def scaled_rule(x: VECTOR, k: nr.Real):
        def scaled_pullback(ybar, xbar, kbar):
            slope = 0.0
            for i in range(x.shape[0]):
                slope += ybar[i] * x[i]
            if xbar is not None:
                for i in range(x.shape[0]):
                    if overwrites:
                        xbar[i] = k * ybar[i]
                    else:
                        xbar[i] += k * ybar[i]
            if alone and xbar is None:
                slope = 0.0
            return slope

        return k * x, scaled_pullback

    if not overwrites and not alone:
        assert check_rule(scaled, V, 1.5).gradient.entries == 4
        return
    with pytest.raises(nr.CheckError, match="wrong cotangent of argument 1, wanted alone" if alone else "adds to the shadow of an array"):
        check_rule(scaled, V, 1.5)


@pytest.mark.slow
def test_rules_of_methods_and_operators_and_in_single_precision():
    assert check_rule("Array.dot", V, V).entry.function is np.dot
    single = check_rule(np.dot, V.astype(np.float32), V.astype(np.float32))
    assert 1e-12 < single.gradient.error < 1e-5


# ---------------------------------------------------------------------------------------------- check_gradient


def test_gradients_of_tuples_and_arrays_in_any_order():
    def f(pair, A):
        x, k = pair
        return np.sum(x * x) * k, k * A

    found = check_gradient(f, (V, 0.7), np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert found.entries == 3 + 1 + 6
    assert found.error < 1e-9


def test_many_arguments_are_tested_along_random_directions():
    def f(x):
        return np.sum(np.sin(x) * x)

    found = check_gradient(f, np.linspace(0.0, 1.0, 1000))
    assert found.entries == 0
    assert 0.0 <= found.error < 1e-8


def test_a_kink_and_a_domain_are_told():
    def f(x):
        return abs(x)

    with pytest.raises(nr.CheckError, match="wrong cotangent"):
        check_gradient(lambda x: abs(x) + x * abs(x - 1e-9), 0.0)

    def g(x):
        return math.nan * x

    with pytest.raises(nr.CheckError, match="inside the domain"):
        check_gradient(g, 1.0)
    assert check_gradient(f, 2.0).entries == 1


# ---------------------------------------------------------------------------------------------- check_opt_out


def the_right_rule():
    @nr.rrule(cube)
    def cube_rule(x: nr.Real):
        def cube_pullback(ybar):
            return 3.0 * x * x * ybar

        return x * x * x, cube_pullback

    return cube_rule


@pytest.mark.parametrize(
    ("opted_out", "generic", "says"),
    [
        (3.0e-6, 1.0e-6, r"cube\(float64\): opting out loses: 3.00 times the time of the rule \(3 us opted out by .*, 1 us by .*\)"),
        (1.0e-6, 3.0e-6, "opting out wins: 3.00 times as fast as the rule"),
        (1.05e-6, 1.0e-6, "both take the same time"),
    ],
)
def test_opting_out_where_it_loses_is_told_with_a_factor(opted_out, generic, says, monkeypatch, recwarn):
    rule = the_right_rule()
    nr.opt_out(cube, types.float64)
    times = iter([opted_out, generic])

    def best_time(run, repeat):
        run()
        return next(times)

    monkeypatch.setattr(opt_out, "best_time", best_time)
    found = check_opt_out(cube, 1.7)
    assert re.search(says, str(found))
    assert found.factor == pytest.approx(opted_out / generic)
    assert found.loses == (opted_out == 3.0e-6)
    assert [str(w.message) for w in recwarn if w.category is OptOutLosesWarning] == ([str(found)] if found.loses else [])
    assert found.generic.payload is rule
    assert found.entry.kind == "opt_out"
    assert nr.no_rrule(cube, types.float64)  # the table is as it was


def test_the_time_of_something_is_the_least_of_several():
    lasts = iter([0.0, 0.0, 0.05, 0.01, 0.03])
    assert 0.01 <= opt_out.best_time(lambda: time.sleep(next(lasts) + 2e-3), 3) < 0.03


@pytest.mark.filterwarnings("ignore::numbarules.testing.OptOutLosesWarning")  # so short a time is any factor of another
def test_the_generic_rule_is_the_next_one_that_does_not_opt_out():
    rule = the_right_rule()
    nr.opt_out(cube, nr.Number)
    nr.opt_out(cube, nr.Any)

    @nr.rrule(cube)
    def says_none(x: types.Float):
        return None

    nr.opt_out(cube, types.float64)
    found = check_opt_out(cube, 1.7, repeat=1)
    assert found.generic.payload is rule
    assert found.entry.patterns == (types.float64,)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numbarules.testing.OptOutLosesWarning")
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if not s.pays], ids=lambda s: s.name)
def test_scenarios_in_which_opting_out_loses(scenario):
    """By 1.5 and more on a machine with nothing else to do; a BLAS whose threads have to wait loses some of that."""
    args = scenario.call(*scenario.arguments(scenario.largest))
    with registered(scenario, "opt_out"), pytest.warns(OptOutLosesWarning, match="opting out loses"):
        assert check_opt_out(scenario.function, *args).loses


def test_a_generic_rule_that_disagrees_is_told():
    @nr.rrule(cube)
    def generic_rule(x: nr.Real):
        def generic_pullback(ybar):
            return 3.0 * x * ybar

        return x * x * x, generic_pullback

    nr.opt_out(cube, types.float64)
    with pytest.raises(nr.CheckError, match="disagree"):
        check_opt_out(cube, 1.7)


def test_what_cannot_be_compared():
    with pytest.raises(nr.CheckError, match="does not opt out"):
        check_opt_out(cube, 1.7)
    nr.opt_out(cube, types.float64)
    with pytest.raises(nr.CheckError, match="no rule to compare with"):
        check_opt_out(cube, 1.7)


# ---------------------------------------------------------------------------------------------- check_stable


def test_a_stable_function_tells_how_many_calls():
    def f(x):
        return cube(x) * x

    found = check_stable(f, 1.0)
    assert found.types == ("float64",)
    assert found.sites >= 3


def test_a_rule_that_decides_by_value_is_found_from_the_function():
    decides_by_value()

    def f(x):
        return cube(x) * x

    with pytest.raises(nr.CheckError, match="decides by value") as caught:
        check_stable(f, 1.0)
    assert "cube_rule" in str(caught.value)


def test_a_branch_at_run_time_is_found_and_shown():
    branches()

    def f(x):
        return cube(x) * x

    with pytest.raises(nr.CheckError, match="decides by value, at run time"):
        check_stable(f, 1.0)
    assert "both ways are compiled" in str(nr.explain(f, 1.0))
    assert check_gradient(f, -1.1).error < 1e-9


def test_a_value_of_two_types_is_found_with_its_line():
    @njit
    def maybe(n):
        if n > 3:
            return n
        return None

    def f(x, n):
        k = maybe(n)
        if k is None:
            return x
        return x * x

    with pytest.raises(nr.CheckError, match="value of more than one type") as caught:
        check_stable(f, 1.0, 2)
    assert "OptionalType" in str(caught.value) or "Optional" in str(caught.value) or "none" in str(caught.value)
    assert "maybe(n)" in str(caught.value)


def test_a_function_without_gradient_is_not_stable():
    def f(x):
        found = [x]
        found.append(x * x)
        return found[1]

    with pytest.raises(nr.CheckError, match="has no gradient"):
        check_stable(f, 1.0)
