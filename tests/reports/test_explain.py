"""Reports of derivatives: what they say is what the compiled gradient does, and making one changes nothing."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from html.parser import HTMLParser
from inspect import getsourcelines

import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload

import numbarules as nr
from numbarules.compile.gradient import Request, gradient_function
from numbarules.compile.observer import SILENT
from numbarules.ir.text import function_text
from numbarules.reports.listener import Listener

VECTOR = types.float64[::1]
V, M = np.array([0.3, -1.2, 0.7]), np.arange(6.0).reshape(2, 3)


@njit
def helper(a, b):
    return np.sin(a) * np.dot(b, b)


@nr.njit_grad
def loss(w, X):
    total = 0.0
    s = 1.0
    for i in range(X.shape[0]):
        z = np.dot(X[i], w)
        s = s * helper(z, w) + np.tanh(s)
        total += np.floor(z) + s
    total *= np.argmax(X[0])
    return total


def line_of(f, text):
    """The line of a function with `text` in it."""
    lines, start = getsourcelines(f)
    (n,) = [start + i for i, line in enumerate(lines) if text in line]
    return n


@pytest.fixture(scope="module")
def report():
    return nr.explain(loss, V, M)


def sites(report, call):
    return [s for s in report.walk() if s.call == call]


def test_a_call_with_a_rule_names_entry_and_line(report):
    inside, outside = sorted(sites(report, "np.dot"), key=lambda s: s.place.line)
    for site in (inside, outside):
        assert site.how == "rule"
        assert site.entry is not None
        assert site.entry.function is np.dot
    assert outside.place.line == line_of(loss.py_func, "np.dot(X[i], w)")
    assert outside.types == ("array(float64, 1d, C)",) * 2
    assert inside.place.line == line_of(helper.py_func, "np.dot(b, b)")


def test_calls_of_an_inlined_function_stand_under_its_call(report):
    (site,) = sites(report, "helper")
    assert site.how == "none"
    assert site.opted_out == ""
    assert site.method is not None
    assert (site.method.name, site.method.origin) == ("helper", "yours")
    assert site.method.place.line == getsourcelines(helper.py_func)[1]
    assert {s.call for s in site.inside} == {"np.sin", "np.dot", "operator.mul"}
    assert site in report.sites
    assert not any(s.call == "np.sin" for s in report.sites)


def test_scalar_rules_zero_derivatives_and_passive_calls(report):
    (tanh,) = sites(report, "np.tanh")
    assert tanh.how == "scalar rule"
    (floor,) = sites(report, "np.floor")
    assert floor.how == "zero"
    assert floor.entry is not None
    assert floor.entry.kind == "non_differentiable"
    (largest,) = sites(report, "np.argmax")
    assert largest.how == "passive"


def test_what_is_recorded_is_what_the_reverse_sweep_reads_back(report):
    loop = line_of(loss.py_func, "for i in range")
    by_name = {k.name: k for k in report.kept}
    assert by_name["s"].loop is not None
    assert by_name["s"].loop.line == loop
    assert (by_name["s"].bytes, by_name["s"].what) == (8, "value")
    (total,) = [n for place, n in report.bytes_per_iteration().items() if place.line == loop]
    assert total == sum(k.bytes for k in report.kept if k.loop is not None)


def test_a_sum_of_independent_terms_records_nothing_and_says_so():
    def plain(x):
        total = 0.0
        for v in x:
            total += v * v
        return total

    told = nr.explain(plain, V)
    assert told.kept == ()
    assert "Nothing is recorded." in str(told)


def test_values_that_are_computed_and_loaded_again():
    def product(x, y):
        p = 1.0
        for i in range(x.size):
            t = 2.0 * x[i]
            p = p * np.cos(t)
        return p

    again = {(r.name, r.what) for r in nr.explain(product, V, V).repeated}
    assert ("x[...]", "loaded") in again
    assert ("t", "computed") in again


def opted(x):
    return np.dot(x, x)


@pytest.mark.parametrize("by_rule", [False, True])
def test_an_opted_out_call_names_who_opted_out_and_the_method(by_rule):
    with nr.rule_scope():
        if by_rule:

            @nr.rrule(np.dot)
            def no_rule(a: VECTOR, b: VECTOR):
                return None

        else:
            nr.opt_out(np.dot, VECTOR, VECTOR)
        report = nr.explain(opted, V)
    (site,) = sites(report, "np.dot")
    assert site.how == "none"
    assert site.opted_out == ("by its rule" if by_rule else "by an entry")
    assert site.method is not None
    assert site.method.origin == "numbarules"
    assert site.runner_up is not None
    assert "AbstractVector" in site.runner_up.signature
    assert "more specific" in site.reason
    text = str(report)
    assert f"none: opted out {site.opted_out}" in text
    assert "runner-up: numpy.dot(AbstractVector, AbstractVector)" in text


def doubled(x):
    raise NotImplementedError


@overload(doubled)
def _doubled(x):
    return lambda x: 2.0 * x


def test_an_overload_that_is_differentiated_is_named_with_its_line():
    def f(x):
        return doubled(x) * x

    (site,) = sites(nr.explain(f, 1.5), f"{__name__}.doubled")
    assert site.method is not None
    assert site.method.place.filename == __file__
    assert site.method.place.line == line_of(_doubled, "return lambda")


def damped(x):
    raise NotImplementedError


@overload(damped)
def _damped(x):
    def damped_vector(x):
        y = 2.0 * x
        return np.exp(-y)

    return damped_vector


def test_the_calls_of_an_overload_of_ones_own_stand_at_its_own_lines():
    def f(x):
        return damped(x) * damped(x)

    report = nr.explain(f, 1.5)
    site, _ = sites(report, f"{__name__}.damped")
    assert site.place.line == line_of(f, "return damped")
    lines = {s.call: s.place.line for s in site.inside}
    assert lines["np.exp"] == lines["operator.neg"] == line_of(_damped, "return np.exp(-y)")
    assert lines["operator.mul"] == line_of(_damped, "y = 2.0 * x")
    assert "return np.exp(-y)" in str(report)


@njit
def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


def test_a_recursive_function_has_sweeps_of_its_own_and_is_told_once():
    def f(x):
        return power(x, 3)

    report = nr.explain(f, 2.0)
    (outer,) = report.sites
    assert outer.method is not None
    assert outer.method.separate
    (inner,) = [s for s in outer.inside if s.call == "power"]
    assert inner.inside == ()
    assert any(k.function == "power" for k in report.kept)


def test_a_refusal_is_part_of_the_report():
    def f(x):
        found = [x[0]]
        found.append(np.dot(x, x))
        return found[1]

    report = nr.explain(f, V)
    assert "a list of floats" in report.refusal
    assert "There is no gradient" in str(report)
    assert [s.how for s in sites(report, "np.dot")] == ["rule"]


def test_explaining_changes_no_code_and_compiles_nothing():
    def f(x):
        return np.sum(x * helper(x[0], x))

    def code(observer):
        return function_text(gradient_function(f, (VECTOR,), Request(0, True), observer))

    listener = Listener()
    assert code(SILENT) == code(listener)
    assert listener.drafts
    report = nr.explain(f, V)
    assert code(SILENT) == code(Listener())
    assert nr.explain(f, V) == report
    assert nr.grad(f).signatures == []


def test_by_which_argument_and_for_which_function(report):
    assert report.by == ("w",)
    assert nr.explain(loss.grad, V, M) == report
    assert nr.explain(loss, V, M, argnums=(0, -1)).by == ("w", "X")
    assert nr.explain(nr.value_and_grad(loss.py_func, argnums=1), V, M).by == ("X",)
    with pytest.raises(nr.DifferentiationError, match="argnums=7"):
        nr.explain(loss, V, M, argnums=7)
    with pytest.raises(nr.DifferentiationError, match="cannot be differentiated"):
        nr.explain(3, V)


def test_a_function_that_returns_an_array_is_explained_by_its_pullback():
    def f(x):
        return np.exp(x) * x

    report = nr.explain(f, V)
    assert [s.how for s in sites(report, "np.exp")] == ["scalar rule"]


def test_the_report_is_frozen(report):
    with pytest.raises(FrozenInstanceError):
        report.function = "other"


def test_the_text_shows_lines_in_order_with_what_is_told_of_them(report):
    text = str(report)
    shown = [int(n) for n in re.findall(r"^(?=.{5}  \S) *(\d+)  ", text, re.M)]
    assert shown == sorted(shown)
    at = text.index("z = np.dot(X[i], w)")
    assert "rule: numpy.dot(AbstractVector, AbstractVector)" in text[at : text.index("s = s * helper")]
    assert "bytes per iteration of the loop at line" in text


class Page(HTMLParser):
    """Checks that tags are balanced, and collects what a page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.references, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.references += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_self_contained_and_has_the_whole_source(report, tmp_path):
    path = tmp_path / "loss.html"
    html = report.to_html(path)
    assert path.read_text(encoding="utf-8") == html
    page = Page()
    page.feed(html)
    assert page.open == []
    assert page.references == []
    assert "url(" not in html
    assert "prefers-color-scheme: dark" in html
    for line in getsourcelines(loss.py_func)[0]:
        assert line.strip() in page.text
    assert "recorded: s (f64), 8 bytes" in page.text
