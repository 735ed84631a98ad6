"""Which loads may be executed again: one situation a case."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numbarules.analysis.alias import Aliases, aliases_of
from numbarules.ir.nodes import Alloc, For, If, Load, Raw, Stmt, Store, Var, View, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, INT64, Array

VECTOR = Array(FLOAT64, 1, "C")
Case = Callable[[Builder, Var, Var], Stmt]


def load(b: Builder, a: Var) -> Stmt:
    b.one(Load(), [a, const(0)], FLOAT64)
    return b.body[-1]


def store(b: Builder, a: Var) -> None:
    b.emit(Store(), [a, const(0), const(1.0)])


def loop(b: Builder, body: Callable[[Builder], Stmt | None]) -> Stmt | None:
    inner = b.child()
    found = body(inner)
    b.emit(For(), [const(3)], regions=(inner.region([b.names.var(INT64, "k")]),))
    return found


def never_written(b: Builder, a: Var, c: Var) -> Stmt:
    store(b, c)
    return load(b, a)


def written_before(b: Builder, a: Var, c: Var) -> Stmt:
    store(b, a)
    return load(b, a)


def written_behind(b: Builder, a: Var, c: Var) -> Stmt:
    found = load(b, a)
    store(b, a)
    return found


def written_behind_through_a_view(b: Builder, a: Var, c: Var) -> Stmt:
    found = load(b, a)
    store(b, b.one(View("cast"), [a], VECTOR))
    return found


def written_in_the_next_iteration(b: Builder, a: Var, c: Var) -> Stmt:
    def body(inner: Builder) -> Stmt:
        store(inner, a)
        return load(inner, a)

    found = loop(b, body)
    assert found is not None
    return found


def written_in_an_earlier_loop(b: Builder, a: Var, c: Var) -> Stmt:
    loop(b, lambda inner: store(inner, a))
    found = loop(b, lambda inner: load(inner, a))
    assert found is not None
    return found


def new_in_each_iteration(b: Builder, a: Var, c: Var) -> Stmt:
    def body(inner: Builder) -> Stmt:
        fresh = inner.one(Alloc("zeros"), [const(3)], VECTOR)
        store(inner, fresh)
        return load(inner, fresh)

    found = loop(b, body)
    assert found is not None
    return found


def either_of_two_is_written(b: Builder, a: Var, c: Var) -> Stmt:
    found = load(b, a)
    either = b.names.var(VECTOR, "either")
    flag = b.names.var(BOOL, "flag")
    b.add(Stmt(If(), (flag,), (either,), (b.child().region((), [a]), b.child().region((), [c]))))
    store(b, either)
    return found


def swapped_with_one_that_is_written(b: Builder, a: Var, c: Var) -> Stmt:
    found = load(b, a)
    inner = b.child()
    p, q = (b.names.var(VECTOR, n) for n in "pq")
    store(inner, p)
    b.emit(For(), [const(3), c, a], VECTOR, VECTOR, regions=(inner.region([b.names.var(INT64, "k"), p, q], [q, p]),))
    return found


def handed_to_unknown_code_with_a_new_one(b: Builder, a: Var, c: Var) -> Stmt:
    """The new array is new in each iteration; the other one is not, and unknown code may write into it."""

    def body(inner: Builder) -> Stmt:
        fresh = inner.one(Alloc("zeros"), [const(3)], VECTOR)
        inner.emit(Raw(None, ("fresh", "a")), [fresh, a])
        return load(inner, a)

    found = loop(b, body)
    assert found is not None
    return found


CASES: list[tuple[Case, bool]] = [
    (never_written, False),
    (written_before, False),
    (written_behind, True),
    (written_behind_through_a_view, True),
    (written_in_the_next_iteration, True),
    (written_in_an_earlier_loop, False),
    (new_in_each_iteration, False),
    (either_of_two_is_written, True),
    (swapped_with_one_that_is_written, True),
    (handed_to_unknown_code_with_a_new_one, True),
]


@pytest.mark.parametrize(("case", "clobbered"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_clobbered(case: Case, clobbered: bool) -> None:
    b = Builder(Names())
    a, c = (b.names.var(VECTOR, n) for n in "ac")
    found = case(b, a, c)
    aliases: Aliases = aliases_of(b.region([a, c]))
    assert aliases.clobbered(found.args[0], found) == clobbered
