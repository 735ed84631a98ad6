"""Rules in gradients: the question to type inference, both halves spliced, opting out in each way, and what a rule may not do."""

from __future__ import annotations

import functools
import operator
import re

import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload

import numbarules as nr
from numbarules.compile.gradient import Request, gradient_function
from numbarules.ir.nodes import Alloc, ShadowLike, called, walk

f8 = types.float64
V = np.array([1.0, 2.0, 3.0])


def total(x):
    raise NotImplementedError


@overload(total)
def _total(x):
    def total_impl(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * x[i]
        return s

    return total_impl


@njit
def cube(x):
    return x * x * x


@njit
def use_cube(x):
    return cube(x) + x


@njit
def use_total(x):
    return total(x) * 2.0


def test_a_rule_is_used_and_goes_with_its_scope():
    with nr.rule_scope():

        @nr.rrule(cube)
        def cube_rule(x):
            def cube_pullback(ybar):
                return 1000.0 * ybar

            return cube(x), cube_pullback

        assert nr.grad(use_cube)(2.0) == 1001.0
        assert not nr.no_rrule(cube, f8)
    assert nr.no_rrule(cube, f8)
    assert nr.grad(use_cube)(2.0) == 13.0


def test_a_later_rule_takes_effect_in_gradients_made_later():
    old = nr.grad(use_cube)
    assert old(2.0) == 13.0
    with nr.rule_scope():

        @nr.rrule(cube)
        def cube_rule(x):
            return x * x * x, lambda ybar: -ybar

        assert nr.grad(use_cube)(2.0) == 0.0
        assert old(2.0) in (13.0, 0.0)  # never a crash


@pytest.mark.parametrize("way", ["returns None", "entry", "by type"])
def test_opting_out(way):
    with nr.rule_scope():
        if way == "by type":

            @nr.rrule(total)
            def _(x: nr.AbstractArray):
                if nr.is_a(x, nr.AbstractVector):
                    return None
                return 0.0, lambda ybar: ybar * x

        else:

            @nr.rrule(total)
            def _(x: nr.AbstractArray):
                return total(x), lambda ybar: 50.0 * ybar * x

            assert nr.grad(use_total)(V).tolist() == [100.0, 200.0, 300.0]
            if way == "entry":
                nr.opt_out(total, nr.AbstractVector)
            else:

                @nr.rrule(total)
                def _(x: nr.AbstractVector):
                    return None

        assert nr.no_rrule(total, types.float64[::1])
        np.testing.assert_allclose(nr.grad(use_total)(V), 4 * V)


# The opted-out gradient has no trace of the rule


@njit
def pasted(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s * 2.0


def llvm(f):
    """The gradient's optimised code, names aside."""
    g = nr.grad(f)
    g(V)
    (text,) = g.inspect_llvm().values()
    body = text[text.index("define") :].split("\n}\n")[0]  # the function itself, without the wrappers
    names: dict[str, str] = {}
    body = re.sub(r"[%@][-\w.$\"]+", lambda m: names.setdefault(m.group(0), f"%{len(names)}"), body)
    body = re.sub(r"(?m)^[-\w.$\"]+:.*$", ":", body)
    return re.sub(r"(?m)[!#]\d+|\s*;.*$|, !\w+ .*$", "", body)


def opt_out_code(way):
    """The code of the gradient of `use_total` with a rule for all arrays, opted out for vectors in some way."""
    with nr.rule_scope():

        @nr.rrule(total)
        def _(x: nr.AbstractArray):
            if way == "by type" and nr.is_a(x, nr.AbstractVector):
                return None
            return total(x), lambda ybar: 2.0 * ybar * x

        if way == "entry":
            nr.opt_out(total, nr.AbstractVector)
        if way == "returns None":

            @nr.rrule(total)
            def _(x: nr.AbstractVector):
                return None

        return llvm(use_total)


def test_an_opted_out_gradient_has_no_trace_of_the_rule():
    by_hand = llvm(pasted)
    for way in ("entry", "returns None", "by type"):
        assert opt_out_code(way) == by_hand, way
    assert opt_out_code("not at all") != by_hand  # the comparison can fail


# What pullbacks may look like


def test_shadows_wanted_and_not():
    def scaled(x, y, a):
        raise NotImplementedError

    @overload(scaled)
    def _scaled(x, y, a):
        return lambda x, y, a: a * np.sum(x * y)

    with nr.rule_scope():

        @nr.rrule(scaled)
        def _(x: nr.AbstractVector, y: nr.AbstractVector, a: nr.Real):
            s = np.sum(x * y)

            def scaled_pullback(ybar, xbar, sbar, abar):
                if xbar is not None:
                    xbar += ybar * a * y
                if sbar is not None:
                    sbar += ybar * a * x
                return ybar * s

            return a * s, scaled_pullback

        @njit
        def f(x, y, a):
            return scaled(x, y, a) + scaled(y, x, 1.0)

        W = np.array([4.0, 5.0, 6.0])
        gx, gy, ga = nr.grad(f, argnums=(0, 1, 2))(V, W, 3.0)
        np.testing.assert_allclose(gx, 4 * W)
        np.testing.assert_allclose(gy, 4 * V)
        assert ga == 32.0
        np.testing.assert_allclose(nr.grad(f, argnums=1)(V, W, 3.0), 4 * V)


def test_float32_complex_and_tuples_are_projected():
    def pair(p):
        raise NotImplementedError

    @overload(pair)
    def _pair(p):
        return lambda p: p[0] * p[1]

    with nr.rule_scope():

        @nr.rrule(pair)
        def _(p):
            a, b = p

            def pair_pullback(ybar):
                return ((ybar * b + 2j, ybar * a),)

            return a * b, pair_pullback

        @njit
        def f(x, y):
            return pair((x, y))

        g = nr.grad(f, argnums=(0, 1))(np.float32(2), np.float32(3))
        assert g == (3.0, 2.0)


def test_results_overwritten_after_the_call():
    @njit
    def double(x):
        return 2.0 * x

    @njit
    def f(x):
        y = double(x)
        y[0] = 10.0
        return np.sum(y * y)

    with nr.rule_scope():

        @nr.rrule(double)
        def _(x: nr.AbstractVector):
            y = 2.0 * x

            def double_pullback(ybar):
                return ybar * y / x

            return y, double_pullback

        np.testing.assert_allclose(nr.grad(f)(V), [0.0, 16.0, 24.0])


def test_any_number_of_arguments_and_defaults():
    def many(*xs):
        raise NotImplementedError

    @overload(many)
    def _many(*xs):
        return lambda *xs: xs[0] * xs[1]

    with nr.rule_scope():

        @nr.rrule(many)
        def _(*xs):
            def many_pullback(ybar):
                return ybar * xs[1], ybar * xs[0]

            return xs[0] * xs[1], many_pullback

        @njit
        def f(x, y):
            return many(x, y)

        assert nr.grad(f, argnums=(0, 1))(2.0, 5.0) == (5.0, 2.0)


# What a rule may not do


def bad_value_dependent(x):
    if x > 0:
        return None
    return x, lambda ybar: ybar


def bad_two_closures(x):
    if x > 0:

        def up(ybar):
            return ybar * x

    else:

        def down(ybar):
            return -ybar * x

        return x, down
    return x, up


def bad_forgotten_return(x):
    cube(x)


def bad_always_raises(x):
    raise ValueError("no")


def bad_default(x):
    def pullback(ybar, a=1.0):
        return ybar

    return x, pullback


def bad_reassigned(x):
    z = x * 2.0

    def pullback(ybar):
        return ybar * z

    z = x * 3.0
    return z, pullback


def bad_nested_closure(x):
    def inner(t):
        return t * x

    def pullback(ybar):
        return inner(ybar)

    return x, pullback


def bad_nonlocal(x):
    n = 0.0

    def pullback(ybar):
        nonlocal n
        n = n + 1.0
        return ybar * n

    return x, pullback


def bad_try(x):
    try:
        z = 2.0 * x
    except Exception:
        z = 0.0
    return z, lambda ybar: ybar


def bad_try_in_pullback(x):
    def pullback(ybar):
        try:
            z = 2.0 * x
        except Exception:
            z = 0.0
        return z

    return x, pullback


def bad_generator(x):
    yield x, lambda ybar: ybar


def bad_forgotten_return_of_pullback(x):
    def pullback(ybar):
        ybar * x

    return x, pullback


def bad_star(x):
    def pullback(*ybar):
        return ybar[0]

    return x, pullback


def bad_other_use(x):
    def pullback(ybar):
        return ybar

    return pullback(x), pullback


def bad_captured_write(x):
    z = np.ones(1)

    def pullback(ybar):
        z[0] += 1.0
        return ybar * z[0]

    return x, pullback


def bad_value_type(x):
    return np.ones(3), lambda ybar: x


def bad_count(x):
    def pullback(ybar):
        return ybar, ybar

    return x, pullback


def bad_kind(x):
    def pullback(ybar):
        return np.ones(3)

    return x, pullback


def bad_not_a_pair(x):
    return x


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (bad_value_dependent, nr.UnstableRuleError, "decides by value"),
        (bad_two_closures, nr.UnstableRuleError, "`up`"),
        (bad_forgotten_return, nr.RuleError, "without a return"),
        (bad_always_raises, nr.RuleError, "never returns"),
        (bad_default, nr.RuleError, "default"),
        (bad_reassigned, nr.RuleError, "assigns `z` again"),
        (bad_nested_closure, nr.RuleError, "captures the function `inner`"),
        (bad_nonlocal, nr.RuleError, "assigns the captured variable `n`"),
        (bad_try, nr.RuleError, "has a `try`"),
        (bad_try_in_pullback, nr.RuleError, "with a `try`"),
        (bad_generator, nr.RuleError, "has a `yield`"),
        (bad_forgotten_return_of_pullback, nr.RuleError, "returns nothing"),
        (bad_star, nr.RuleError, r"`\*` parameters"),
        (bad_other_use, nr.RuleError, "in another way than to return it"),
        (bad_captured_write, nr.RuleError, "writes into `z`, which it captures"),
        (bad_value_type, nr.RuleError, "value of another type"),
        (bad_count, nr.RuleError, "wrong number of cotangents"),
        (bad_kind, nr.RuleError, "none of its tangents"),
        (bad_not_a_pair, nr.RuleError, "a value and a pullback"),
    ],
)
def test_broken_rules_are_named(rule, error, text):
    with nr.rule_scope():
        nr.rrule(cube)(rule)
        with pytest.raises(error, match=text) as caught:
            nr.grad(use_cube)(2.0)
    assert type(caught.value) is error
    assert rule.__name__ in str(caught.value)
    assert __file__ in str(caught.value)


def test_a_pullback_may_not_write_into_its_cotangent():
    @njit
    def double(x):
        return 2.0 * x

    @njit
    def f(x):
        return np.sum(double(x))

    with nr.rule_scope():

        @nr.rrule(double)
        def _(x: nr.AbstractVector):
            def double_pullback(ybar):
                ybar *= 2.0
                return ybar

            return 2.0 * x, double_pullback

        with pytest.raises(nr.RuleError, match="writes into the cotangent"):
            nr.grad(f)(V)


def test_a_rule_is_plain_python_too():
    def rule(x):
        if nr.is_a(x, nr.AbstractVector):
            return None
        return x, lambda ybar: ybar

    assert rule(V) is None
    assert rule(np.eye(2))[1](3.0) == 3.0


def test_methods_and_operators():
    @njit
    def f(x):
        return np.sum(x @ x) + x.sum()

    M = np.array([[1.0, 2.0], [3.0, 4.0]])
    with nr.rule_scope():

        @nr.rrule("Array.sum")
        def _(x: nr.AbstractMatrix):
            return x.sum(), lambda ybar: np.full(x.shape, 9.0 * ybar)

        @nr.rrule(operator.matmul)
        def _(x: types.Array(f8, 2, "C"), y: types.Array(f8, 2, "C")):
            return x @ y, lambda ybar: (np.zeros(x.shape), None)

        np.testing.assert_allclose(nr.grad(f)(M), 9.0 * np.ones((2, 2)))


# Functions that are given: `vjp` in rules


@njit
def square(x):
    return x * x


@njit
def mapped(f, xs):
    s = 0.0
    for i in range(xs.shape[0]):
        s += f(xs[i])
    return s


def mapped_rule(f, xs: nr.AbstractVector):
    def mapped_pullback(ybar):
        xbar = np.empty_like(xs)
        for i in range(xs.shape[0]):
            _, pullback = nr.vjp(f, xs[i])
            xbar[i] = 10.0 * pullback(ybar)[0]  # ten times too much: it shows that the rule was used
        return None, xbar

    return mapped(f, xs), mapped_pullback


@njit
def map_given(f, xs):
    return mapped(f, xs)


@njit
def map_known(xs):
    return mapped(square, xs)


def test_a_rule_may_differentiate_the_function_it_is_given():
    with nr.rule_scope():
        nr.rrule(mapped)(mapped_rule)
        np.testing.assert_allclose(nr.grad(map_known)(V), 20.0 * V)
        np.testing.assert_allclose(nr.grad(map_given, argnums=1)(square, V), 20.0 * V)
    y, pullback = mapped_rule(square, V)  # plain Python
    assert y == 14.0
    np.testing.assert_allclose(pullback(1.0)[1], 20.0 * V)


@njit
def applied(f, x):
    return f(x)


@njit
def iterate(x):
    for _ in range(4):
        x = applied(square, x)
    return x


def test_the_value_half_may_keep_a_pullback_also_in_a_loop():
    with nr.rule_scope():

        @nr.rrule(applied)
        def _(f, x):
            y, pullback = nr.vjp(f, x)

            def applied_pullback(ybar):
                return None, 2.0 * pullback(ybar)[0]

            return y, applied_pullback

        assert nr.grad(iterate)(1.1) == pytest.approx(2**4 * 16 * 1.1**15)


# What a rule knows from the types, its pullback knows too


def test_literals_and_none_stay_known_in_the_pullback():
    def scaled(x, power, shift=None):
        raise NotImplementedError

    @overload(scaled)
    def _scaled(x, power, shift=None):
        return lambda x, power, shift=None: x

    with nr.rule_scope():

        @nr.rrule(scaled)
        def _(x, power, shift=None):
            def scaled_pullback(ybar):
                if shift is None:
                    return (ybar * power, None)
                return ybar * power + shift[0], None, None  # does not compile for None

            return x, scaled_pullback

        @njit
        def f(x):
            return scaled(x, 3)

        assert nr.grad(f)(2.0) == 3.0


# Traps: memory of the arguments


@njit
def identity(x):
    return x[:]


@njit
def clear(x):
    x[0] = 10.0
    return x[1]


def bad_view(x):
    return x[:], lambda ybar: ybar


def bad_view_by_a_call(x):
    return identity(x), lambda ybar: ybar


def bad_write(x):
    x[0] = 10.0
    return x[:].copy(), lambda ybar: ybar


def bad_write_by_a_call(x):
    clear(x)
    return x.copy(), lambda ybar: ybar


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (bad_view, "shares memory with its argument `x`"),
        (bad_view_by_a_call, "shares memory with its argument `x`"),
        (bad_write, "writes into its argument `x`"),
        (bad_write_by_a_call, "writes into its argument `x`"),
    ],
)
def test_rules_do_nothing_to_the_memory_of_their_arguments(rule, text):
    def g(x):
        raise NotImplementedError

    @overload(g)
    def _g(x):
        return lambda x: x.copy()

    @njit
    def f(x):
        return np.sum(g(x))

    with nr.rule_scope():
        nr.rrule(g)(rule)
        with pytest.raises(nr.RuleError, match=text) as caught:
            nr.grad(f)(V)
    assert rule.__name__ in str(caught.value)


@njit
def pair_of_one(x):
    y = 2.0 * x
    return y, y


@njit
def pair_of_two(x):
    return 2.0 * x, 2.0 * x


@pytest.mark.parametrize(("g", "text"), [(pair_of_one, "may return the same memory twice"), (pair_of_two, "in two places of its value")])
def test_the_parts_of_a_value_share_no_memory(g, text):
    def twice_rule(x):
        y = 2.0 * x
        return (y, y), lambda ybar: 2.0 * (ybar[0] + ybar[1])

    @njit
    def f(x):
        a, b = g(x)
        a[0] = 5.0 * x[1]  # where `b` is the same array it changes too
        return np.sum(a * b)

    expected = [0.0, 50.0 * V[1] + 8.0 * V[1], 8.0 * V[2]] if g is pair_of_one else [10.0 * V[1], 10.0 * V[0] + 8.0 * V[1], 8.0 * V[2]]
    np.testing.assert_allclose(nr.grad(f)(V), expected, rtol=1e-14)
    with nr.rule_scope():
        nr.rrule(g)(twice_rule)
        with pytest.raises(nr.RuleError, match=text):
            nr.grad(f)(V)


def test_comprehensions_in_both_halves():
    @njit
    def double(x):
        return 2.0 * x

    @njit
    def f(x):
        return np.sum(double(x))

    with nr.rule_scope():

        @nr.rrule(double)
        def _(x: nr.AbstractVector):
            k = x[1]
            weights = np.array([i * k for i in range(3)])

            def double_pullback(ybar):
                return ybar * weights + np.array([i + k for i in range(3)])

            return 2.0 * x, double_pullback

        np.testing.assert_allclose(nr.grad(f)(V), [2.0, 5.0, 8.0])


@pytest.mark.parametrize(
    ("condition", "opted_out"),
    [
        ("nr.is_a(x, types.float64[::1])", True),
        ("nr.is_a(x, types.float64[:, ::1])", False),
        ("nr.is_a(x, (types.Array, types.Integer))", True),
        ("nr.is_a(x, nr.AbstractMatrix | types.Integer)", False),
        ("nr.is_a(k, nr.literal(3))", True),
        ("nr.is_a(k, nr.literal(4))", False),
        ("nr.is_a(x, np.ndarray) and x.ndim == 1", True),
        ("k == 4", False),
        ("k is None", False),
    ],
)
def test_opting_out_by_type_inside_the_body(condition, opted_out, tmp_path):
    path = tmp_path / "rule.py"
    path.write_text(f"def rule(x, k):\n    if {condition}:\n        return None\n    return x * 2.0, lambda ybar: (7.0 * ybar, None)\n")
    names = {"nr": nr, "types": types, "np": np, "__name__": __name__}
    exec(compile(path.read_text(), str(path), "exec"), names)

    def multiplied(x, k):
        raise NotImplementedError

    with nr.rule_scope():
        nr.rrule(multiplied)(names["rule"])
        assert nr.no_rrule(multiplied, types.float64[::1], types.literal(3)) == opted_out


# What is opted out


def test_opt_outs_are_listed_for_others():
    with nr.rule_scope():
        nr.opt_out(operator.pow, nr.AbstractVector, nr.Real)

        @nr.rrule(total)
        def total_rule(x: nr.AbstractArray):
            if nr.is_a(x, nr.AbstractVector):
                return None
            return 0.0, lambda ybar: ybar * x

        def listed():
            return [(o.function, o.patterns, o.by) for o in nr.opted_out() if o.function in (operator.pow, total)]

        entry = (operator.pow, (nr.AbstractVector, nr.Real), "entry")
        assert listed() == [entry]  # the rule was not asked yet
        nr.grad(use_total)(V)
        assert not nr.no_rrule(total, types.float64[:, ::1])
        assert listed() == [entry, (total, (types.float64[::1],), "rule")]
        said = next(o for o in nr.opted_out() if o.function is total)
        assert said.origin.filename == __file__
        assert said.origin.line == total_rule.__code__.co_firstlineno + 3
        assert "total" in str(said)
    assert not any(o.function is total for o in nr.opted_out())


# A pullback knows its own closure


def test_closures_with_equal_captures_are_told_apart():
    def added(x):
        def added_pullback(ybar):
            return 3.0 * ybar * x

        return x * x, added_pullback

    def taken(x):
        def taken_pullback(ybar):
            return 5.0 * ybar * x

        return x * x, taken_pullback

    @njit
    def first(x):
        return x * x

    @njit
    def second(x):
        return x * x

    @njit
    def both(x):
        return first(x) + 100.0 * second(x)

    with nr.rule_scope():
        nr.rrule(first)(added)
        nr.rrule(second)(taken)
        assert nr.grad(both)(2.0) == 6.0 + 1000.0


# What nobody wants costs nothing


@njit
def weighted(x, w):
    return np.sum(x * w)


@njit
def by_first(x, w):
    return weighted(x, w)


def test_unwanted_cotangents_are_not_computed():
    with nr.rule_scope():

        @nr.rrule(weighted)
        def _(x: nr.AbstractVector, w: nr.AbstractVector):
            def weighted_pullback(ybar):
                wbar = np.zeros(w.shape)
                for i in range(w.shape[0]):
                    wbar[i] = np.exp(x[i]) * ybar  # wrong, and costly
                return ybar * w, wbar

            return np.sum(x * w), weighted_pullback

        both = gradient_function(by_first.py_func, (types.float64[::1],) * 2, Request((0, 1), False))
        first = gradient_function(by_first.py_func, (types.float64[::1],) * 2, Request(0, False))
        assert any(called(s) is np.exp for s in walk(both.region))
        assert not any(called(s) is np.exp for s in walk(first.region))
        arrays = [s for s in walk(first.region) if isinstance(s.op, Alloc | ShadowLike)]
        assert len(arrays) == 1  # the gradient itself


def test_what_is_no_plain_function_is_no_rule():
    for rule in (njit(bad_not_a_pair), functools.partial(bad_not_a_pair, 1.0)):
        with pytest.raises(nr.RuleError, match="plain Python function"):
            nr.rrule(cube)(rule)
