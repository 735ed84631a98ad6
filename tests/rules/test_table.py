"""The ranked table: registration, the order of entries, ties, scopes, look-up."""

from __future__ import annotations

import contextlib
import importlib
import math
import operator
import random
import sys
import threading
import time
import warnings

import numba
import numpy as np
import pytest
from numba import types

from numbarules.errors import AmbiguousRuleError, RuleError
from numbarules.rules import (
    AbstractArray,
    AbstractMatrix,
    AbstractVector,
    Any,
    Category,
    Entry,
    Number,
    Origin,
    Real,
    Table,
    Tail,
    alias,
    check_table,
    literal,
    lookup,
    no_entry,
    non_differentiable,
    opt_out,
    register_category,
    register_type,
    rrule,
    rule_scope,
    scalar_rule,
    table,
)
from numbarules.rules import patterns as pt
from numbarules.rules.patterns import as_pattern
from numbarules.rules.table import function_key, show_key

f8, f4, i8 = types.float64, types.float32, types.int64
vector, matrix = f8[::1], f8[:, ::1]
PACKAGE = __name__.partition(".")[0]


class MType(types.Type):
    """A structured matrix."""


class NType(types.Type):
    """Another one."""


class M:
    """The Python class of MType."""


register_category(AbstractMatrix, MType)
register_category(AbstractMatrix, NType)
register_type(M, MType)
m, n = MType("M"), NType("N")


@pytest.fixture(autouse=True)
def scope():
    with rule_scope():
        yield


def f(*args):
    """A function to have rules."""


def g(*args):
    """Another one."""


def made(function, *patterns, kind="rule", package=PACKAGE, line=1, name="r", required=None):
    written = tuple(p if isinstance(p, Tail) else as_pattern(p) for p in patterns)
    return Entry(
        function_key(function),
        written,
        kind,
        None,
        Origin(package, "somewhere.py", line, name),
        len(written) if required is None else required,
    )


# Registration


def test_a_rule_is_returned_unchanged_and_found_by_its_annotations():
    def rule(x: AbstractArray, axis: literal(0), y: M | Real = 1, *rest: types.Float):
        pass

    assert rrule(f)(rule) is rule
    found = lookup(f, vector, types.literal(0), m, f8, f4)
    assert found.entry.payload is rule
    assert found.entry.kind == "rule"
    assert found.entry.origin == Origin(PACKAGE, __file__, rule.__code__.co_firstlineno, rule.__qualname__)
    assert lookup(f, vector, types.literal(0)).entry is found.entry
    assert found.entry.signature.endswith(".f(AbstractArray, 0, MType | Real=..., *Float)")
    for call in [(vector,), (vector, i8), (vector, types.literal(0), vector), (vector, types.literal(0), f8, i8)]:
        assert lookup(f, *call).entry is None


def test_annotations_that_say_nothing_match_everything():
    @rrule(f)
    def rule(x, y):
        pass

    assert lookup(f, m, types.none).entry.payload is rule
    assert lookup(f, m).entry is None


def test_string_annotations_see_local_names():
    class Local(Category):
        pass

    register_category(Local, MType)

    @rrule(f)
    def rule(x: Local):
        pass

    assert lookup(f, m).entry.payload is rule


def test_bad_rules_are_refused():
    with pytest.raises(RuleError, match="keyword-only parameter k"):

        @rrule(f)
        def keyword(x, *, k=1):
            pass

    with pytest.raises(RuleError, match="cannot be evaluated"):

        @rrule(f)
        def unknown(x: NoSuchName):  # noqa: F821 - the unknown name is what is tested
            pass

    with pytest.raises(RuleError, match="cannot be for any function"):
        rrule(Any)
    with pytest.raises(RuleError, match="on_unstable"):
        rrule(f, on_unstable="maybe")
    with pytest.raises(RuleError, match="cannot have a rule"):
        opt_out(3)
    with pytest.raises(RuleError, match="needs one type"):
        opt_out(Any)
    with pytest.raises(RuleError, match="Tail stands before"):
        opt_out(f, Tail(Real), Real)


def test_bad_scalar_rules_are_refused():
    with pytest.raises(RuleError, match="inconsistent"):
        scalar_rule(f, lambda y, x: 1.0, at=((1.0, 2.0),))
    with pytest.raises(RuleError, match="inconsistent"):
        scalar_rule(f, lambda y, x: 1.0, guard=(True, False))
    with pytest.raises(RuleError, match="wrong parameters"):
        scalar_rule(f, lambda x: 1.0)


def test_a_scalar_rule_keeps_what_the_engine_needs():
    dx = lambda y, x, k: y  # noqa: E731 - a lambda is what is tested
    entry = scalar_rule(f, dx, None, at=((1.0, 2),), guard=True, doc="why")
    rule = lookup(f, f8, i8).entry.payload
    assert lookup(f, f8, i8).entry is entry
    assert (rule.partials, rule.guard, rule.at, rule.doc) == ((dx, None), (True, True), ((1.0, 2),), "why")
    assert lookup(f, vector, i8).entry is None


# Functions


def test_functions_are_known_by_identity():
    unhashable = type("Callable", (), {"__call__": lambda self: None, "__eq__": lambda self, other: True, "__hash__": None})
    a, b = unhashable(), unhashable()
    opt_out(a)
    assert lookup(a, f8).entry is not None
    assert lookup(b, f8).entry is None


def test_methods():
    entry = opt_out("Array.sum", AbstractVector)
    assert lookup((types.Array, "sum"), vector).entry is entry
    assert lookup("Array.sum", vector).entry is entry
    assert lookup((type(vector), "sum"), matrix).entry is None
    trace = opt_out((M, "trace"))
    assert lookup("M.trace", m).entry is trace
    assert show_key(function_key("M.trace")) == "MType.trace"

    class SubType(MType):
        pass

    assert lookup((SubType, "trace"), SubType("sub")).entry is trace
    own = opt_out((SubType, "trace"))
    assert lookup((SubType, "trace"), SubType("sub")).entry is own
    assert lookup((MType, "trace"), m).entry is trace
    for bad in ("sum", "NoSuch.sum"):
        with pytest.raises(RuleError, match="names no method"):
            opt_out(bad)


def test_aliases_use_the_entries_of_what_they_name():
    first = opt_out(f, Real)
    alias(g, f)
    later = opt_out(f, AbstractArray)
    assert lookup(g, f8).entry is first
    assert lookup(g, vector).entry is later
    own = non_differentiable(g, Real)
    assert lookup(g, f8).entry is own
    assert lookup(g, f8).runner_up is first
    narrower = opt_out(f, types.Float)  # arguments are compared before functions
    assert lookup(g, f8).entry is narrower
    assert lookup(f, f8).entry is narrower
    with pytest.raises(RuleError, match="circle"):
        alias(f, g)


def test_an_alias_made_in_a_scope_ends_with_it():
    opt_out(f)
    with rule_scope():
        alias(g, f)
        assert lookup(g, f8).entry is not None
    assert lookup(g, f8).entry is None


def test_a_method_may_be_an_alias_of_a_function():
    entry = opt_out(f, AbstractArray)
    alias("Array.f", f)
    assert lookup("Array.f", vector).entry is entry


# Order


def test_the_most_specific_entry_wins():
    broad = non_differentiable(f, Any, Any)
    middle = opt_out(f, AbstractMatrix, AbstractMatrix)
    narrow = non_differentiable(f, M, AbstractMatrix)
    exact = opt_out(f, m, matrix)
    assert lookup(f, m, matrix).entry is exact
    assert lookup(f, m, matrix).runner_up is narrow
    assert lookup(f, m, n).entry is narrow
    assert lookup(f, matrix, m).entry is middle
    assert lookup(f, vector, m).entry is broad
    assert lookup(f, m, n).reason.endswith("f(AbstractMatrix, AbstractMatrix)")


def test_a_literal_refines_its_type():
    whole = opt_out(f, Any, types.Integer)
    zero = opt_out(f, Any, 0)
    assert lookup(f, vector, types.literal(0)).entry is zero
    assert lookup(f, vector, types.literal(1)).entry is whole
    assert lookup(f, vector, i8).entry is whole


def test_fewer_arities_are_more_specific_where_the_types_are_equal():
    tail = opt_out(f, Tail(Real))
    optional = table.add(made(f, Real, Real, required=1, kind="opt_out"))
    fixed = opt_out(f, Real)
    assert lookup(f, f8).entry is fixed
    assert lookup(f, f8).runner_up is optional
    assert lookup(f, f8, f8).entry is optional
    assert lookup(f, f8, f8, f8).entry is tail
    assert lookup(f).entry is tail


def test_without_patterns_every_call_is_meant():
    entry = opt_out(f)
    assert lookup(f).entry is lookup(f, m, f8).entry is entry


# Any function


def test_an_entry_for_any_function_beats_those_that_do_not_name_the_type():
    generic = opt_out(f, AbstractMatrix, AbstractMatrix)
    by_type = opt_out(Any, M)
    assert lookup(f, m, matrix).entry is by_type
    assert lookup(f, matrix, m).entry is by_type
    assert lookup(f, matrix, m).runner_up is generic
    assert "does not name MType" in lookup(f, matrix, m).reason
    assert lookup(f, matrix, matrix).entry is generic
    assert lookup(g, f8, f8, m).entry is by_type
    named = non_differentiable(f, M, AbstractMatrix)
    assert lookup(f, m, matrix).entry is named
    assert "names MType" in lookup(f, m, matrix).reason
    assert lookup(f, matrix, m).entry is by_type


def test_a_union_or_a_narrower_type_names_the_type():
    by_type = opt_out(Any, AbstractMatrix)
    union = opt_out(f, (M, Real))
    exact = opt_out(g, m)
    assert lookup(f, m).entry is union
    assert lookup(g, m).entry is exact
    assert lookup(g, n).entry is by_type


def test_entries_for_any_function_never_tie():
    wide, one, two = opt_out(Any, AbstractMatrix), opt_out(Any, M), non_differentiable(Any, NType)
    assert lookup(f, m, n).entry is one  # leftmost
    assert lookup(f, n, m).entry is two
    assert lookup(f, m, matrix).entry is one  # narrower than `wide`
    assert lookup(f, matrix, m).entry is one
    assert lookup(f, matrix, f8).entry is wide


def test_an_entry_for_any_function_settles_between_those_above_and_below_it():
    below = table.add(made(f, AbstractMatrix, NType, package="p"))
    above = table.add(made(f, MType, AbstractMatrix, package="q"))
    with pytest.raises(AmbiguousRuleError):
        lookup(f, m, n)
    opt_out(Any, M)
    assert lookup(f, m, n).entry is above
    assert lookup(f, matrix, n).entry is below
    opt_out(Any, NType)  # above beats the first, that beats below, that beats the second, that beats above
    with pytest.raises(AmbiguousRuleError):
        lookup(f, m, n)


# Ties


def test_a_tie_in_one_package_is_an_error_when_it_is_written():
    first = opt_out(f, M, AbstractMatrix)
    with pytest.raises(AmbiguousRuleError) as e:
        opt_out(f, AbstractMatrix, M)
    for part in (
        "neither is more specific",
        "f(MType, AbstractMatrix)",
        f"{__file__}:{first.origin.line}",
        "f(AbstractMatrix, MType)",
        "f(MType, MType) first",
    ):
        assert part in str(e.value)
    assert lookup(f, matrix, m).entry is None
    both = opt_out(f, M, M)
    opt_out(f, AbstractMatrix, M)  # settled now
    assert lookup(f, m, m).entry is both


def test_disjoint_entries_do_not_tie():
    opt_out(f, AbstractVector, AbstractArray)
    opt_out(f, AbstractMatrix, AbstractVector)
    opt_out(f, M, NType)
    opt_out(f, AbstractVector)
    opt_out(f, Real, Tail(Real))


def test_a_tie_between_packages_is_an_error_at_the_call_that_meets_it():
    for order in (1, -1):
        with rule_scope():
            one, two = (
                made(f, M, AbstractMatrix, package="one", line=3, name="a"),
                made(f, AbstractMatrix, M, package="two", line=4, name="b"),
            )
            for e in (one, two)[::order]:
                table.add(e)
            assert lookup(f, m, matrix).entry is one
            assert lookup(f, matrix, m).entry is two
            with pytest.raises(AmbiguousRuleError) as error:
                lookup(f, m, m)
            for part in ("a (somewhere.py:3)", "b (somewhere.py:4)", "f(M, M)", "register an entry for", "f(MType, MType)"):
                assert part in str(error.value)
            assert [p.kind for p in table.check() if one in p.entries and p.kind != "no sample points"] == ["ambiguous"]
            both = table.add(made(f, M, M, package="one"))
            assert lookup(f, m, m).entry is both
            assert [p for p in table.check() if one in p.entries and p.kind != "no sample points"] == []


def test_an_equal_signature_needs_replace_within_a_package_and_is_a_tie_between_packages():
    first = opt_out(f, M)
    with pytest.raises(AmbiguousRuleError, match="replace=True") as e:
        non_differentiable(f, M)
    assert f":{first.origin.line}" in str(e.value)
    assert lookup(f, m).entry is first
    second = non_differentiable(f, M, replace=True)
    assert lookup(f, m).entry is second
    opt_out(g, M, replace=True)  # harmless with nothing to replace
    table.add(made(f, M, package="other"), replace=True)
    with pytest.raises(AmbiguousRuleError):
        lookup(f, m)
    assert any(p.kind == "ambiguous" and second in p.entries for p in check_table())


# Scopes


def test_a_scope_ends_with_everything_as_it_was():
    first = opt_out(f, M)
    with rule_scope():
        second = non_differentiable(f, M, replace=True)
        with rule_scope():
            third = opt_out(f, M, replace=True)
            opt_out(g)
            assert lookup(f, m).entry is third
        assert lookup(f, m).entry is second
        assert lookup(g, m).entry is None
    assert lookup(f, m).entry is first


def test_a_scope_ends_with_an_exception_too():
    with contextlib.suppress(ZeroDivisionError), rule_scope():
        opt_out(f)
        raise ZeroDivisionError
    assert lookup(f, f8).entry is None


def test_scopes_of_two_threads_may_end_in_any_order():
    first = opt_out(f, M)
    opened, close = threading.Event(), threading.Event()

    def other():
        with rule_scope():
            opt_out(f, M, replace=True)
            opened.set()
            close.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    opened.wait(10)
    with rule_scope():
        third = opt_out(f, M, replace=True)
        close.set()
        thread.join()
        assert lookup(f, m).entry is third
    assert lookup(f, m).entry is first


def test_random_changes_leave_the_table_of_what_is_left():
    rng = random.Random(1)
    patterns = [Any, Real, f8, AbstractArray, AbstractMatrix, M, literal(1)]
    calls = [(t,) for t in (f8, f4, types.literal(1), vector, matrix, m, n)]
    changing, alive = Table(), []
    for _ in range(200):
        if alive and rng.random() < 0.4:
            changing.remove(alive.pop(rng.randrange(len(alive))))
        else:
            entry = made(*rng.choice([(f, rng.choice(patterns)), (g, rng.choice(patterns)), (Any, rng.choice(patterns[1:]))]))
            alive = [e for e in alive if (e.function, e.patterns) != (entry.function, entry.patterns)] + [entry]
            changing.add(entry, replace=True)
        fresh = Table()
        for e in alive:
            fresh.add(e)
        assert set(changing.entries()) == set(alive)
        for function in (f, g):
            for call in calls:
                assert changing.lookup(function, call) == fresh.lookup(function, call)


# Listeners


def test_listeners_hear_of_every_change_and_touches_says_whom_it_concerns():
    heard = []
    end = table.subscribe(heard.append)
    with rule_scope():
        first = opt_out(f, AbstractMatrix)
        second = opt_out(f, AbstractMatrix, replace=True)
        alias(g, f)
        assert heard == [first, first, second, None]
        touched = [table.touches(second, function, [t]) for function, t in ((f, m), (g, m), (f, f8), (operator.add, m))]
        assert touched == [True, True, False, False]
        assert table.touches(opt_out(Any, M), operator.add, [f8, m])
        del heard[:]
    assert heard[1:] == [None, second, first, first]  # in reverse order
    end()
    opt_out(f)
    assert heard[-1] is first


def test_a_listener_may_look_up():
    seen = []
    end = table.subscribe(lambda entry: seen.append(lookup(f, m).entry))
    entry = opt_out(f, M)
    end()
    assert seen == [entry]


# Report and helpers


def test_check_reports_opt_outs_that_shadow_nothing():
    small = Table()
    idle, idle_type = (small.add(made(function, M, kind="opt_out")) for function in (f, Any))
    assert [(p.kind, p.entries) for p in small.check()] == [("shadows nothing", (idle,)), ("shadows nothing", (idle_type,))]
    assert "no rule matches a call" in str(small.check()[0])
    small.add(made(f, AbstractMatrix))
    assert {p.kind for p in small.check()} <= {"no sample points"}


def test_check_reports_what_cannot_be_reached_and_what_nothing_checks():
    class Nobody(Category):
        pass

    unreachable = non_differentiable(f, Nobody)
    unchecked = scalar_rule(g, lambda y, x: y)
    kinds = {(p.kind, p.entries[0]) for p in check_table()}
    assert {("unreachable", unreachable), ("no sample points", unchecked)} <= kinds


def test_a_rule_for_a_function_that_numba_inlines_first_is_said_to_be_useless():
    inlined = numba.njit(inline="always")(lambda x: x)
    with pytest.warns(UserWarning, match="inlines the function before typing"):
        entry = opt_out(inlined, Real)
    assert ("unreachable", entry) in {(p.kind, p.entries[0]) for p in check_table()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt_out(numba.njit(lambda x: x), Real)


def test_no_entry_and_opted_out_are_the_same_answer():
    assert no_entry(f, m)
    opt_out(f, M)
    assert no_entry(f, m)
    non_differentiable(f, n)
    assert not no_entry(f, n)
    assert "no entry matches" in lookup(f, f8).reason


def test_entries_name_their_function():
    assert show_key(np.sin) == "numpy.sin"
    assert show_key(math.sin) == "math.sin"
    assert show_key(operator.matmul) == "operator.matmul"
    assert show_key(max) == "max"
    assert str(opt_out(np.sin, Number)).startswith("opt out numpy.sin(Number), numpy.sin (")


# Speed: a thousand times what is measured on an idle machine


def test_look_up_among_ten_thousand_entries():
    big = Table()
    functions = [lambda x, i=i: i for i in range(1000)]
    patterns = [Any, Real, f8, f4, AbstractArray, AbstractVector, AbstractMatrix, MType, vector, matrix]
    for function in functions:
        for p in patterns:
            big.add(made(function, p))
    assert len(big.entries()) == 10_000
    for first in (True, False):
        start = time.perf_counter()
        assert all(big.lookup(function, (vector,)).entry.patterns == (vector,) for function in functions)
        assert (time.perf_counter() - start) / 1000 < (50e-3 if first else 1e-3)


def test_threads_may_register_and_look_up_at_once():
    errors = []

    def work(k):
        try:
            for _ in range(50):
                with rule_scope():
                    entry = table.add(made(f, M, package=f"p{k}"))
                    try:
                        found = lookup(f, m)
                        assert found.entry is not None
                    except AmbiguousRuleError:
                        pass
                    table.remove(entry)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert lookup(f, m).entry is None


def test_check_reports_what_is_shadowed_in_all_its_alternatives():
    @rrule(f)
    def either(x: types.Float | types.Integer):
        pass

    assert not [p for p in check_table() if "shadowed" in p.text and p.kind != "no sample points"]
    first, second = opt_out(f, types.Float), opt_out(f, types.Integer)
    (problem,) = [p for p in check_table() if p.kind == "unreachable" and "shadowed" in p.text]
    assert problem.entries[0].payload is either
    assert set(problem.entries[1:]) == {first, second}


def test_a_rule_for_a_number_of_arguments_that_no_call_has_is_reported():
    def two(x, y=1):
        pass

    with pytest.warns(UserWarning, match="it takes 3 arguments, and the function 1 to 2"):

        @rrule(two)
        def rule(x, y, z):
            pass

    opt_out(two, Real)
    assert [p.entries[0].payload for p in check_table() if p.kind == "unreachable" and p.entries[0].function is two] == [rule]


# Capabilities


def test_of_equal_patterns_the_one_that_requires_more_and_has_it_wins():
    @rrule(f)
    def plain(x: Real):
        pass

    @rrule(f, requires="debug")
    def checked(x: Real):
        pass

    @rrule(f, requires=("forward", "debug"))
    def forward(x: Real):
        pass

    @rrule(f)
    def narrow(x: types.Integer):
        pass

    assert lookup(f, f8).entry.payload is plain
    assert lookup(f, i8).entry.payload is narrow
    debug = Table(frozenset({"reverse", "debug"}))
    for e in table.entries(f):
        debug.add(e)
    assert debug.lookup(f, (f8,)).entry.payload is checked
    assert debug.lookup(f, (f8,)).reason.endswith("requires debug, which there is")
    assert debug.lookup(f, (i8,)).entry.payload is narrow  # patterns come first
    assert ["forward mode" in p.text for p in check_table() if p.entries[0].function is f and p.kind != "no sample points"] == [True]
    with pytest.raises(AmbiguousRuleError, match="has an entry already"):
        rrule(f, requires="debug")(checked)
    with pytest.raises(AmbiguousRuleError, match="neither is more specific"):
        rrule(f, requires="reverse")(checked)
    with pytest.raises(RuleError, match="some of debug, forward, reverse"):
        rrule(f, requires="speed")


# Packages

FIRST = """
import numbarules as nr
from shared_by_two import f

@nr.rrule(f)
def first_rule(x: nr.AbstractMatrix, y):
    return 0.0, lambda ybar: (None, None)
"""
SECOND = FIRST.replace("first_rule(x: nr.AbstractMatrix, y)", "second_rule(x, y: nr.AbstractMatrix)")


@pytest.mark.parametrize("order", [("first_package", "second_package"), ("second_package", "first_package")])
def test_two_packages_that_tie_can_be_imported_in_either_order(order, tmp_path, monkeypatch):
    sources = {"shared_by_two": "def f(x, y):\n    pass\n", "first_package": FIRST, "second_package": SECOND}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    for name in order:
        importlib.import_module(name)
    shared = sys.modules["shared_by_two"].f
    assert lookup(shared, matrix, f8).entry.origin.package == "first_package"
    assert lookup(shared, f8, matrix).entry.origin.package == "second_package"
    (problem,) = [p for p in check_table() if p.kind == "ambiguous"]
    with pytest.raises(AmbiguousRuleError) as caught:
        lookup(shared, matrix, matrix)
    for text in (problem.text, str(caught.value)):
        assert "first_rule" in text
        assert "second_rule" in text
        assert "f(AbstractMatrix, AbstractMatrix)" in text
    opt_out(shared, AbstractMatrix, AbstractMatrix)  # a third package settles it
    assert lookup(shared, matrix, matrix).entry.kind == "opt_out"
    for name in sources:
        monkeypatch.delitem(sys.modules, name)


def test_a_name_of_two_classes_names_no_method():
    first, second = (type("Twice", (), {"__module__": module}) for module in ("here", "there"))
    for python_class in (first, second):
        pt.register_type(python_class, types.Array)
    try:
        with pytest.raises(RuleError, match="names a method of several classes"):
            function_key("Twice.sum")
        assert function_key((second, "sum")) == (types.Array, "sum")
    finally:
        for python_class in (first, second):
            del pt._CLASSES[python_class]


def test_arrays_are_those_of_numba(monkeypatch):
    monkeypatch.setattr(pt, "_CLASSES", {**pt._CLASSES, type("Array", (), {}): MType})
    assert function_key("Array.sum") == (types.Array, "sum")
