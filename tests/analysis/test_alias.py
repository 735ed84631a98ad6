"""Which loads may be executed again, which parameters are written, and what a function's callers see of it: one situation a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from numbarules.analysis.alias import Aliases, aliases_of
from numbarules.ir.nodes import Alloc, Call, For, If, Load, MakeTuple, Operand, Raw, Stmt, Store, Summary, Var, View, const
from numbarules.ir.rewrite import Builder, Names
from numbarules.ir.types import BOOL, FLOAT64, INT64, Array, Opaque, Tuple

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


def rebound_to_a_new_one_that_is_written(b: Builder, a: Var, c: Var) -> Stmt:
    found = load(b, a)
    rebound(b, a)
    return found


CASES: list[tuple[Case, bool]] = [
    (rebound_to_a_new_one_that_is_written, False),
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


# ---------------------------------------------------------------------------------------------- which parameters are written


def carried(b: Builder, inits: list[Operand], body: Callable[[Builder, list[Var]], Sequence[Operand]]) -> list[Var]:
    """A loop that carries arrays; `body` gets them and returns the next ones."""
    inner = b.child()
    params = [b.names.var(VECTOR, "p") for _ in inits]
    results = [b.names.var(VECTOR, "r") for _ in inits]
    yields = body(inner, params)
    b.add(Stmt(For(), (const(3), *inits), tuple(results), (inner.region([b.names.var(INT64, "k"), *params], yields),)))
    return results


def new(b: Builder) -> Var:
    return b.one(Alloc("zeros"), [const(3)], VECTOR)


def rebound(b: Builder, a: Var) -> Var:
    """`a = a * 0.5; a[0] = 1.0` in a loop: the new array is written."""

    def body(inner: Builder, params: list[Var]) -> list[Operand]:
        half = new(inner)
        store(inner, half)
        return [half]

    return carried(b, [a], body)[0]


def either(b: Builder, a: Var, c: Var) -> Var:
    out = b.names.var(VECTOR, "either")
    b.add(Stmt(If(), (b.names.var(BOOL, "flag"),), (out,), (b.child().region((), [a]), b.child().region((), [c]))))
    return out


def listed(b: Builder, *arrays: Var) -> Var:
    """A list, and unknown code that puts arrays into it."""
    made = b.one(Raw(None), [], Opaque("list"))
    for a in arrays:
        b.emit(Raw(None, ("list", "a")), [made, a])
    return made


def taken_out(b: Builder, container: Var) -> Var:
    return b.one(Raw(None, ("list",)), [container], VECTOR)


Body = Callable[[Builder, Var, Var], object]

WRITTEN: list[tuple[str, Body, str]] = [
    ("the parameter itself", lambda b, a, c: store(b, a), "a"),
    ("a new array in its place", lambda b, a, c: rebound(b, a), ""),
    ("what it is before it is replaced", lambda b, a, c: carried(b, [a], lambda i, p: (store(i, p[0]), [new(i)])[1]), "a"),
    ("the result of a loop that may not run", lambda b, a, c: store(b, rebound(b, a)), "a"),
    ("swapped with a new one, from the second iteration on", lambda b, a, c: carried(b, [new(b), a], swapped), "a"),
    ("moved along by one place each iteration", lambda b, a, c: carried(b, [new(b), a, c], moved_along), "ac"),
    ("only the new ones of a rotation", lambda b, a, c: carried(b, [a, c], lambda i, p: (store(i, n := new(i)), [p[1], n])[1]), ""),
    ("one of two swapped new ones", lambda b, a, c: carried(b, [new(b), new(b)], swapped), ""),
    ("either of both", lambda b, a, c: store(b, either(b, a, c)), "ac"),
    ("a new one or the second", lambda b, a, c: store(b, either(b, new(b), c)), "c"),
    ("a view of a view", lambda b, a, c: store(b, b.one(View("cast"), [b.one(View("cast"), [a], VECTOR)], VECTOR)), "a"),
    ("an item of a tuple", lambda b, a, c: store(b, taken_out(b, b.one(MakeTuple(), [a, c], Tuple((VECTOR, VECTOR))))), "ac"),
    ("what is taken out of a list", lambda b, a, c: store(b, taken_out(b, listed(b, a))), "a"),
    ("what is taken out of a list by an older name of it", lambda b, a, c: through_an_older_name(b, a), "a"),
    ("both, by unknown code", lambda b, a, c: b.emit(Raw(None, ("a", "c")), [a, c]), "ac"),
    ("the first, by a function", lambda b, a, c: called(b, Summary(writes=(0,)), a, c), "a"),
    ("what a function may have returned of the second", lambda b, a, c: store(b, called(b, Summary(shares=((1, 2),)), a, c)[0]), "c"),
    ("what a function returns that is new", lambda b, a, c: store(b, called(b, Summary(), a, c)[0]), ""),
    ("what a function writes and what it returns", lambda b, a, c: store(b, called(b, Summary((0,), ((1, 2),)), a, c)[0]), "ac"),
]


def swapped(b: Builder, arrays: list[Var]) -> list[Var]:
    store(b, arrays[0])
    return arrays[::-1]


def moved_along(b: Builder, arrays: list[Var]) -> list[Var]:
    store(b, arrays[0])
    return [*arrays[1:], new(b)]


def through_an_older_name(b: Builder, a: Var) -> None:
    """`old = l; l.append(a); old[0][0] = 1.0`"""
    made = b.one(Raw(None), [], Opaque("list"))
    old = b.one(View("cast"), [made], Opaque("list"))
    b.emit(Raw(None, ("list", "a")), [made, a])
    store(b, taken_out(b, old))


def called(b: Builder, summary: Summary, *args: Var, results: int = 1) -> list[Var]:
    made = [b.names.var(VECTOR, "y") for _ in range(results)]
    b.add(Stmt(Call("f", None, summary), args, tuple(made)))
    return made


@pytest.mark.parametrize(("body", "written"), [(body, written) for _, body, written in WRITTEN], ids=[name for name, _, _ in WRITTEN])
def test_written_parameters(body: Body, written: str) -> None:
    b = Builder(Names())
    a, c = (b.names.var(VECTOR, n) for n in "ac")
    body(b, a, c)
    aliases = aliases_of(b.region([a, c]))
    assert "".join(name for name, v in zip("ac", (a, c), strict=True) if aliases.written(v)) == written


# ---------------------------------------------------------------------------------------------- what callers see

SUMMARIES: list[tuple[str, Callable[[Builder, Var, Var], Sequence[Operand]], Summary]] = [
    ("nothing", lambda b, a, c: [new(b)], Summary()),
    ("returns an argument", lambda b, a, c: [c], Summary(shares=((1, 2),))),
    ("returns one and writes into the other", lambda b, a, c: (store(b, a), [c])[1], Summary((0,), ((1, 2),))),
    ("returns a new array twice", lambda b, a, c: [n := new(b), n], Summary(shares=((2, 3),))),
    ("returns what it was handed or, after a round, a new one", lambda b, a, c: [rebound(b, a)], Summary(shares=((0, 2),))),
    ("puts one into a list that the other may be", lambda b, a, c: (listed(b, a, c), [new(b)])[1], Summary((0, 1), ((0, 1),), True)),
    (
        "hands on what another one shares",
        lambda b, a, c: called(b, Summary(shares=((0, 2), (2, 3))), a, c, results=2),
        Summary((), ((0, 2), (0, 3), (2, 3))),
    ),
    ("hands on a new array twice", lambda b, a, c: called(b, Summary(shares=((2, 3),)), a, c, results=2), Summary((), ((2, 3),))),
    ("prints by another one", lambda b, a, c: called(b, Summary(outside=True), a, c), Summary(outside=True)),
]


@pytest.mark.parametrize(("body", "expected"), [(body, s) for _, body, s in SUMMARIES], ids=[name for name, _, _ in SUMMARIES])
def test_summary(body: Callable[[Builder, Var, Var], Sequence[Operand]], expected: Summary) -> None:
    b = Builder(Names())
    a, c = (b.names.var(VECTOR, n) for n in "ac")
    region = b.region([a, c], body(b, a, c))
    assert aliases_of(region).summary(region) == expected
