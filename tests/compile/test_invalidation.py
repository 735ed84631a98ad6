"""Rules that come and go: exactly what they touch is compiled again, at its next call; jitted callers too, and what cannot be is named."""

from __future__ import annotations

import gc
import math
import threading

import numpy as np
import pytest
from numba import cfunc, float64, njit, types, vectorize
from numba.extending import overload

import numbarules as nr
from numbarules.compile.owned import memo_of

f4, f8 = types.float32, types.float64
X = np.array([1.0, 2.0, 3.0])


def times(k):
    """A rule's body whose answer tells that it was used: the pullback gives k times the cotangent."""

    def rule(x):
        def pullback(ybar):
            return k * ybar

        return x, pullback

    return rule


def put(f, k, *annotations, **options):
    rule = times(k)
    rule.__annotations__.update(zip("x", annotations))
    nr.rrule(f, **options)(rule)


def codes(f):
    return {args: c.entry_point for args, c in f.overloads.items()}


@njit
def p(x):
    return x * x


@njit
def q(x):
    return x * x * x


@njit
def of_p(x):
    return p(x) + 1.0


@njit
def of_q(x):
    return q(x) + 1.0


def test_a_registered_rule_resets_what_it_touches_and_nothing_else():
    a, b = nr.grad(of_p), nr.value_and_grad(of_q)
    assert a(2.0) == 4.0 and b(2.0) == (9.0, 12.0)
    before = codes(a), codes(b)
    with nr.rule_scope():
        put(p, 7.0)
        assert codes(a) == {} and codes(b) == before[1]
        assert a(2.0) == 7.0 and b(2.0) == (9.0, 12.0)
        assert nr.grad(of_p) is a
        inside = codes(a)
        put(p, 11.0, types.float32)
        assert codes(a) == inside, "an entry that matches no call of it"
        put(p, 13.0, f8)
        assert a(2.0) == 13.0
    assert a(2.0) == 4.0 and codes(b) == before[1]
    with nr.rule_scope():
        put(p, 5.0, types.Array)
        nr.opt_out(p, f8)  # as without an entry, but said
        assert a(2.0) == 4.0
        after = codes(a)
        nr.opt_out(nr.Any, types.Array)
        put(p, 5.0, nr.Number)  # weaker than the opt-out
        assert codes(a) == after, "an entry that loses changes no answer"


def test_signatures_are_reset_one_by_one():
    a = nr.grad(of_p)
    assert isinstance(a(np.float32(2.0)), float) and a(2.0) == 4.0
    single, double = codes(a)[(f4,)], codes(a)[(f8,)]
    with nr.rule_scope():
        put(p, 7.0, f4)
        assert codes(a) == {(f8,): double}
        assert a(np.float32(2.0)) == 7.0 and a(2.0) == 4.0
        assert codes(a)[(f8,)] is double and codes(a)[(f4,)] is not single
        put(p, 9.0, f8)
        assert a(np.float32(2.0)) == 7.0, "not answered by the other signature"
    assert a(2.0) == 4.0 and a(np.float32(3.0)) == 6.0
    assert set(codes(a)) == {(f4,), (f8,)}


def test_compiled_once_for_a_change():
    a = nr.grad(of_p)
    a(2.0)
    count = a.stats.cache_misses[(f8,)]
    with nr.rule_scope():
        put(p, 7.0)
        assert a.stats.cache_misses[(f8,)] == count, "nothing is compiled before the call"
        assert [a(2.0) for _ in range(3)] == [7.0] * 3
        assert a.stats.cache_misses[(f8,)] == count + 1


def test_the_last_word_counts():
    a = nr.grad(of_p)
    with nr.rule_scope():
        put(p, 7.0)
        put(p, 8.0, replace=True)
        assert a(2.0) == 8.0
        with nr.rule_scope():
            nr.opt_out(p, f8)
            assert a(2.0) == 4.0
        assert a(2.0) == 8.0


def test_aliases_and_categories():
    class Mine(nr.rules.patterns.Category):
        pass

    a, b = nr.grad(of_p), nr.grad(of_q)
    a(2.0), b(2.0)
    other = codes(b)
    with nr.rule_scope():
        put(math.cos, 7.0, f8)
        nr.alias(p, math.cos)
        assert a(2.0) == 7.0
    with nr.rule_scope():
        put(p, 9.0, Mine)
        assert a(2.0) == 4.0
        nr.rules.register_category(Mine, f8)
        assert a(2.0) == 9.0
    assert a(2.0) == 4.0 and codes(b) == other


def test_a_rule_that_asks_for_a_category():
    class Ours(nr.rules.patterns.Category):
        pass

    a = nr.grad(of_p)
    with nr.rule_scope():

        @nr.rrule(p)
        def rule(x):
            if nr.is_a(x, Ours):
                return None
            return x, lambda ybar: 7.0 * ybar

        assert a(2.0) == 7.0
        nr.rules.register_category(Ours, f8)
        assert a(2.0) == 4.0
    assert a(2.0) == 4.0


@njit
def twice(x, n):
    if n == 0:
        return p(x)
    return 2.0 * twice(x, n - 1)


@njit
def of_twice(x):
    return twice(x, 3)


def test_recursion_and_sweeps_of_their_own():
    a, b = nr.grad(of_twice), nr.grad(twice)
    assert a(1.0) == 16.0 and b(1.0, 2) == 8.0
    with nr.rule_scope():
        put(p, 7.0)
        assert a(1.0) == 56.0 and b(1.0, 2) == 28.0
    assert a(1.0) == 16.0 and b(1.0, 2) == 8.0


@nr.njit_grad
def decorated(x):
    return p(x) + 1.0


@nr.njit_grad("float64(float64)")
def fixed(x):
    return p(x) + 1.0


@njit
def caller(x):
    return decorated.grad(x)


@njit
def far_caller(x):
    return caller(x) + 100.0


@njit(["float64(float64)"])
def fixed_caller(x):
    return fixed.value_and_grad(x)[1]


@njit
def neighbour(x):
    return x + decorated(x)


def test_explicit_signatures():
    with nr.rule_scope():
        put(p, 7.0)
        assert fixed.grad(2.0) == 7.0 and fixed.value_and_grad(2.0) == (3.0, 7.0)
        assert fixed.grad(2) == 7.0, "no other signature is compiled"
        assert len(fixed.grad.signatures) == 1
        with pytest.raises(TypeError, match="No matching definition"):
            fixed.grad(X)
        assert fixed_caller(2.0) == 7.0
    with pytest.raises(TypeError, match="No matching definition"):
        fixed.grad(X)
    assert fixed.grad(2.0) == 4.0 and fixed_caller(2) == 4.0
    with nr.rule_scope():

        @nr.rrule(p)
        def wrong(x):
            return x, lambda ybar: (ybar, ybar)

        for _ in range(2):
            with pytest.raises(nr.RuleError):
                fixed.grad(2.0)
    assert fixed.grad(2.0) == 4.0 and fixed.grad(2) == 4.0


def test_jitted_callers_and_their_callers():
    assert far_caller(2.0) == 104.0 and neighbour(1.0) == 3.0
    kept = codes(neighbour)
    with nr.rule_scope():
        put(p, 7.0)
        assert far_caller(2.0) == 107.0 and caller(2.0) == 7.0
        assert codes(neighbour) == kept
    assert far_caller(2.0) == 104.0
    assert caller(2.0) == 4.0

    @njit
    def late(x):  # compiled when its callee is already
        return far_caller(x)

    assert late(2.0) == 104.0
    with nr.rule_scope():
        put(p, 7.0)
        assert late(2.0) == 107.0
    assert late(2.0) == 104.0


def test_a_gradient_of_a_function_that_calls_a_gradient():
    @njit
    def outer(x, k):
        return k * caller(2.0) * x

    a = nr.grad(outer)
    assert a(1.0, 3.0) == 12.0
    with nr.rule_scope():
        put(p, 7.0)
        assert a(1.0, 3.0) == 21.0
    assert a(1.0, 3.0) == 12.0


def test_a_gradient_passed_as_an_argument():
    @njit
    def apply(g, x):
        return g(x)

    a = nr.grad(of_p)
    assert apply(a, 2.0) == 4.0
    with nr.rule_scope():
        put(p, 7.0)
        assert apply(a, 2.0) == 7.0
    assert apply(a, 2.0) == 4.0


@njit
def scaled(x):
    return p(x) * X


def test_vjp_from_python_and_in_jitted_code():
    @njit
    def in_code(x):
        y, pullback = nr.vjp(of_p, x)
        return y + pullback(1.0)[0]

    _, old = nr.vjp(of_p, 2.0)
    assert in_code(2.0) == 9.0
    with nr.rule_scope():
        put(p, 7.0)
        assert old(1.0) == (4.0,), "a pullback stays what it was made as"
        assert nr.vjp(of_p, 2.0)[1](1.0) == (7.0,)
        assert in_code(2.0) == 3.0 + 7.0
    assert in_code(2.0) == 9.0 and nr.vjp(of_p, 2.0)[1](1.0) == (4.0,)


def test_jitted_vjp_of_a_function_that_is_gone():
    """What Numba keeps for it must not stand in the way of what changes for others."""

    def used_and_dropped():
        f = njit(lambda x: x * x)
        assert nr.vjp(f, 2.0)[0] == 4.0

        @njit
        def in_code(x):
            return nr.vjp(f, x)[1](1.0)[0]

        assert in_code(2.0) == 4.0

    @njit
    def in_code(x):
        return nr.vjp(of_p, x)[1](1.0)[0]

    assert in_code(2.0) == 4.0
    used_and_dropped()
    gc.collect()
    with nr.rule_scope():
        put(p, 7.0)
        assert in_code(2.0) == 7.0


def test_what_cannot_be_compiled_again_is_named():
    @cfunc(float64(float64))
    def callback(x):
        return caller(x)

    @vectorize([float64(float64)])
    def elementwise(x):
        return caller(x)

    with nr.rule_scope():
        with pytest.warns(nr.NumbarulesWarning) as caught:
            put(p, 7.0)
        texts = sorted(str(w.message) for w in caught)
        assert len(texts) == 2
        assert "`test_what_cannot_be_compiled_again_is_named.<locals>.callback`" in texts[0] and "elementwise" in texts[1]
        assert all(__file__ in t and "@" in t for t in texts), "with the place and the source line"
        assert caller(2.0) == 7.0 and callback.ctypes(2.0) == 4.0
    assert caller(2.0) == 4.0


def test_a_failed_compilation_is_tried_again():
    @njit
    def failing(x):
        return p(x)

    a = nr.grad(failing)

    @njit
    def around(x):
        return a(x)

    with nr.rule_scope():

        @nr.rrule(p)
        def wrong(x):
            return x, lambda ybar: (ybar, ybar)

        for f in (a, around):
            with pytest.raises(nr.RuleError):
                f(2.0)
    assert around(2.0) == 4.0 and a(2.0) == 4.0


def test_ambiguity_comes_and_goes():
    @njit
    def two(x, y):
        return x * y

    @njit
    def of_two(x):
        return two(x, x)

    a = nr.grad(of_two)
    assert a(2.0) == 4.0
    with nr.rule_scope():
        exec("opt_out(two, f8, Any)", {"opt_out": nr.opt_out, "two": two, "f8": f8, "Any": nr.Any, "__name__": "one.a"})
        assert a(2.0) == 4.0
        exec("opt_out(two, Any, f8)", {"opt_out": nr.opt_out, "two": two, "f8": f8, "Any": nr.Any, "__name__": "other.b"})
        with pytest.raises(nr.AmbiguousRuleError):
            a(2.0)
    assert a(2.0) == 4.0


def test_recompile_reaches_everything_below():
    scale = 1.0
    space = {"njit": njit, "nr": nr, "scale": scale}
    exec(
        "@nr.njit_grad(boundscheck=True)\ndef inner(x):\n    return scale * x\n@njit\ndef outer(x):\n    return inner(x)\n",
        space,
    )
    a = nr.grad(space["outer"])
    assert a(1.0) == 1.0
    space["scale"] = 3.0
    assert a(1.0) == 1.0, "a global is a constant, as in Numba"
    space["inner"].recompile()
    assert a(1.0) == 3.0, "of another dispatcher's gradient"
    space["scale"] = 5.0
    a.recompile()
    assert a(1.0) == 5.0


def test_registering_while_compiling():
    @njit
    def asks(x):
        return p(x)

    a = nr.grad(asks)
    done = []

    def rule(x):
        return x, lambda ybar: 7.0 * ybar

    def noted(x):
        raise NotImplementedError

    @overload(noted)
    def _noted(x):
        if not done:
            done.append(1)
            nr.rrule(p)(rule)
        return lambda x: p(x)

    @njit
    def of_noted(x):
        return noted(x) + p(x)

    with nr.rule_scope():
        assert a(2.0) == 4.0
        b = nr.grad(of_noted)
        b(2.0)  # the old or the new answer
        assert b(2.0) == 14.0 and a(2.0) == 7.0
    assert b(2.0) == 8.0 and a(2.0) == 4.0


def applied(f, x):
    raise NotImplementedError


@overload(applied)
def _applied(f, x):
    return lambda f, x: f(x) + f(x)


@njit
def twice_p(x):
    return 2.0 * p(x)


@njit
def of_applied(x):
    return applied(twice_p, x)


def test_the_method_that_is_differentiated_and_a_rule_that_differentiates():
    a = nr.grad(of_applied)
    assert a(3.0) == 24.0
    with nr.rule_scope():
        put(p, 7.0)
        assert a(3.0) == 28.0, "what an overload's implementation calls"
    with nr.rule_scope():

        @nr.rrule(applied)
        def rule(f, x):
            y, pull = nr.vjp(f, x)

            def applied_pullback(ybar):
                return None, 10.0 * pull(ybar)[0]

            return y + y, applied_pullback

        assert a(3.0) == 120.0
        with nr.rule_scope():
            put(p, 7.0)
            assert a(3.0) == 140.0, "what is differentiated in the body of a rule"
        assert a(3.0) == 120.0
    assert a(3.0) == 24.0


def test_callers_that_call_each_other():
    a = nr.grad(of_p)

    @njit
    def even(x, n):
        return a(x) if n == 0 else odd(x, n - 1)

    @njit
    def odd(x, n):
        return 0.0 if n == 0 else even(x, n - 1)

    assert even(3.0, 2) == odd(3.0, 1) == 6.0
    with nr.rule_scope():
        put(p, 7.0)
        assert even(3.0, 2) == odd(3.0, 1) == 7.0
    assert odd(3.0, 1) == even(3.0, 2) == 6.0


def test_memos_are_emptied():
    nr.grad(of_twice)(1.0)
    units = memo_of(twice, "units")
    assert len(units) == 1
    with nr.rule_scope():
        put(p, 7.0)
        assert len(units) == 0


@njit(nogil=True)
def long(x, n):
    s = 0.0
    for _ in range(n):
        s += math.sin(p(x) + s)
    return s


def test_threads_that_call_meanwhile():
    a, slow, stop, seen, failures = nr.grad(of_p), nr.grad(long), threading.Event(), set(), []

    def call():
        try:
            while not stop.is_set():
                seen.add(a(2.0))
                seen.add(caller(2.0))
                slow(2.0, 20_000)  # the table of Numba changes while the code runs without the lock of the interpreter
                seen.add(nr.vjp(of_p, 2.0)[1](1.0)[0])
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=call) for _ in range(3)]
    a(2.0), caller(2.0), slow(2.0, 1)
    for t in threads:
        t.start()
    try:
        for k in (7.0, 11.0, 13.0):
            with nr.rule_scope():
                put(p, k)
                assert a(2.0) == k and caller(2.0) == k
            assert a(2.0) == 4.0 and caller(2.0) == 4.0
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failures and seen <= {4.0, 7.0, 11.0, 13.0}
