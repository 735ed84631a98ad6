"""Case programs after public code and bug reports: each is differentiated in this process and judged against its reference."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numbarules as nr
from cases import judge

# These need parts of the language or of the library that come later: they must be right, or refused with a NumbarulesError.
MAY_REFUSE = frozenset("a20 a30 a32 a35 b26 b56 b57 b58 b59 b60 b61 b62 b63 b64 b77 b78 b88 b91".split())
# Properties that measure fresh processes.
SLOW_PROPERTIES = frozenset({"b79"})
# Programs warn as their authors left them; what numbarules itself must not warn about is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore")

PATHS = sorted(judge.CASES.glob("*.py"))


def prefix(name: str) -> str:
    return name.split("_")[0]


def cases(*, slow_properties: bool = False) -> list[Any]:
    """The cases as parameters; with `slow_properties` only those that state a property, the expensive ones marked slow."""
    if not slow_properties:
        return [pytest.param(path, id=path.stem) for path in PATHS]
    stating = [path for path in PATHS if "def property_holds" in path.read_text(encoding="utf-8")]
    return [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if prefix(p.stem) in SLOW_PROPERTIES else []) for p in stating]


def active_arguments(case: ModuleType) -> tuple[int, ...]:
    return tuple(i for i, a in enumerate(case.args()) if any(True for _ in judge.leaves(a)))


def by_gradient(case: ModuleType, args: tuple[Any, ...]) -> tuple[Any, list[Any], list[Any]]:
    """(value, gradients, gradients of a second call), one entry per argument."""
    active = active_arguments(case)
    call = nr.value_and_grad(case.f, argnums=active)
    value, first = call(*args)
    first = dict(zip(active, judge.clone(first), strict=True))
    second = dict(zip(active, call(*args)[1], strict=True))
    return value, [first.get(i) for i in range(len(args))], [second.get(i) for i in range(len(args))]


def by_pullback(case: ModuleType, args: tuple[Any, ...]) -> tuple[Any, list[Any], list[Any]]:
    """The same for a result that is no scalar: the second pullback is called twice, after its arguments were overwritten."""
    value, pullback = nr.vjp(case.f, *args)
    kept = judge.clone(value)
    first = list(pullback(case.cotangent(value)))
    assert judge.equal_tree(value, kept), "the pullback changed the value"
    mine = tuple(judge.clone(a) for a in args)
    pullback = nr.vjp(case.f, *mine)[1]
    for a in mine:
        if isinstance(a, np.ndarray) and a.flags.writeable and a.dtype.kind == "f":
            a[...] = 0.123
    pullback(case.cotangent(value))
    return value, first, list(pullback(case.cotangent(value)))


def or_refused(name: str, error: nr.NumbarulesError) -> None:
    """Returns if the case may be refused; a refusal says something in its first line."""
    if prefix(name) not in MAY_REFUSE:
        raise error
    assert str(error).strip()


def test_there_are_cases() -> None:
    assert len(PATHS) == 64
    assert {prefix(p.stem) for p in PATHS} >= MAY_REFUSE | SLOW_PROPERTIES


@pytest.mark.parametrize("path", cases())
def test_the_judge_takes_the_reference_and_not_a_wrong_answer(path: Any) -> None:
    case = judge.load(path)
    args = case.args()
    reference = case.reference(*(judge.clone(a) for a in args))
    assert judge.compare(case, reference) == []
    for i in active_arguments(case):
        wrong = list(reference)
        wrong[i] = None
        assert judge.compare(case, wrong)


@pytest.mark.parametrize("path", cases())
def test_case(path: Any) -> None:
    case = judge.load(path)
    args = case.args()
    start = time.perf_counter()
    try:
        value, first, second = by_pullback(case, args) if hasattr(case, "cotangent") else by_gradient(case, args)
    except nr.NumbarulesError as error:
        return or_refused(path.stem, error)
    seconds = time.perf_counter() - start
    changed = [i for i, (a, b) in enumerate(zip(args, case.args(), strict=True)) if not judge.equal_tree(a, b)]
    assert not changed, f"arguments {changed} were changed"
    assert judge.near_tree(value, case.f(*case.args()))
    assert judge.compare(case, first) == []
    assert judge.compare(case, second) == [], "second call"
    assert seconds < getattr(case, "MAX_FIRST_CALL_SECONDS", 1e9)


@pytest.mark.parametrize("path", cases(slow_properties=True))
def test_property_of_case(path: Any) -> None:
    case = judge.load(path)
    try:
        gradient = nr.grad(case.f, argnums=active_arguments(case))
        gradient(*case.args())
    except nr.NumbarulesError as error:
        return or_refused(path.stem, error)
    case.property_holds(gradient)
