"""Structs of named fields: made and read in Python and in jitted code, passed in and out without leaks."""

from __future__ import annotations

import copy
import doctest
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import numbarules as nr
from numbarules.rules.patterns import as_pattern, covers, matches
from numbarules.structs import StructType, struct_of


@nr.struct(category=nr.AbstractMatrix, ndim=2)
class Banded:
    data: np.ndarray
    n: int


@nr.struct()
class Model:
    matrix: Banded
    parts: tuple[Any, ...]
    scale: float


@nr.struct()
class Doubled:
    data: np.ndarray

    def __new__(cls, x: Any) -> Any:
        return struct_of(typeof_class(cls)).make(2 * x)  # type: ignore[union-attr]


def typeof_class(cls: type) -> Any:
    return as_pattern(cls)((types.float64[::1],))


@njit
def identity(x):  # type: ignore[no-untyped-def]
    return x


@njit
def changed(m):  # type: ignore[no-untyped-def]
    return Model(Banded(n=m.matrix.n + 1, data=m.matrix.data * m.scale), (m.parts[0] + 1, m.parts[1]), m.scale)


def model() -> Model:
    return Model(Banded(np.arange(6.0)[::2], 3), (1, np.ones(2)), 2.0)


@pytest.fixture
def counted() -> Iterator[None]:
    was = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not was:
        _nrt_python.memsys_disable_stats()


def test_fields_are_read_and_values_made_in_jitted_code() -> None:
    m = model()
    out = changed(m)
    assert isinstance(out, Model) and isinstance(out.matrix, Banded)
    assert (out.matrix.data.tolist(), out.matrix.n, out.scale) == ([0.0, 4.0, 8.0], 4, 2.0)
    assert out.parts[0] == 2 and out.parts[1] is m.parts[1]


def test_fields_keep_their_types() -> None:
    x = np.zeros((2, 2), np.float32, order="F")
    x.flags.writeable = False
    value = Model(Banded(x, 1), (True,), np.float32(1))
    t = typeof(value)
    assert t.items[0].items[0] == types.Array(types.float32, 2, "F", readonly=True)
    assert t.items[2] == types.float32
    back = identity(value)
    assert back == value and back.matrix.data is x and not back.matrix.data.flags.writeable


def test_no_memory_and_no_reference_is_lost(counted: None) -> None:
    m = model()
    identity(m), changed(m)
    held: list[Any] = [m, m.matrix, m.matrix.data, m.parts, m.parts[1], Model, Banded]

    def references() -> list[int]:
        return [sys.getrefcount(x) for x in held]

    before, stats = references(), rtsys.get_allocation_stats()
    for _ in range(50):
        identity(m)
        changed(m)
    after = rtsys.get_allocation_stats()
    assert references() == before
    assert after.alloc - stats.alloc == after.free - stats.free > 0
    assert after.mi_alloc - stats.mi_alloc == after.mi_free - stats.mi_free > 0


def test_a_field_without_a_numba_type_is_a_typing_error() -> None:
    with pytest.raises(TypingError):
        identity(Banded(np.ones(2), object()))  # type: ignore[arg-type]


def test_a_global_struct_is_a_constant() -> None:
    table = Banded(np.array([1.0, 2.0]), 3)

    @njit
    def f() -> float:
        return table.data[1] * table.n  # type: ignore[no-any-return]

    assert f() == 6.0


def test_python_values_are_immutable_and_equal_by_fields() -> None:
    m = model()
    with pytest.raises(AttributeError):
        m.scale = 3.0
    assert m == model() and m != Model(m.matrix, m.parts, 3.0) and m != 1
    assert Banded(np.ones(2), 1) != Banded(np.ones(3), 1)
    assert hash(Model(1, (), 2.0)) == hash(Model(1, (), 2.0))  # type: ignore[arg-type]
    assert repr(m.matrix) == "Banded(data=array([0., 2., 4.]), n=3)"
    assert pickle.loads(pickle.dumps(m)) == m and copy.deepcopy(m) == m
    with pytest.raises(TypeError):
        Banded(np.ones(2))  # type: ignore[call-arg]


def test_types_pickle_and_are_their_own_patterns() -> None:
    t = typeof(model().matrix)
    assert isinstance(t, StructType) and pickle.loads(pickle.dumps(t)) is t
    made = struct_of(t)
    assert made is not None and (made.name, made.fields, made.python_class) == ("Banded", ("data", "n"), Banded)
    assert made.make.struct is made and made.numba_type((types.float64[::1], types.literal(3))).items[1] == types.int64
    assert struct_of(types.float64) is None
    assert matches(as_pattern(Banded), t) and matches(nr.AbstractMatrix, t) and not matches(nr.AbstractVector, t)
    assert covers(nr.AbstractMatrix, as_pattern(Banded)) and t.ndim == 2


def test_a_class_with_its_own_constructor_has_no_other() -> None:
    assert Doubled(np.ones(2)).data.tolist() == [2.0, 2.0]
    make = typeof_class(Doubled).struct.make

    @njit
    def made(x):  # type: ignore[no-untyped-def]
        return make(x)

    @njit
    def constructed(x):  # type: ignore[no-untyped-def]
        return Doubled(x)

    assert made(np.ones(2)).data.tolist() == [1.0, 1.0]
    with pytest.raises(TypingError):
        constructed(np.ones(2))


def test_structs_of_equal_names_have_different_types() -> None:
    @nr.struct()
    class Banded:
        data: np.ndarray
        n: int

    here, there = typeof(Banded(np.ones(1), 1)), typeof(model().matrix)
    assert here != there and as_pattern(Banded) is type(here)
    assert isinstance(identity(Banded(np.ones(1), 1)), Banded)


def test_no_fields_is_an_error() -> None:
    with pytest.raises(nr.RuleError, match="at least one annotated field"):
        nr.struct()(type("Empty", (), {}))


def test_the_docstring_example_runs() -> None:
    (example,) = doctest.DocTestFinder().find(nr.struct, "struct", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


def test_the_type_of_a_value_follows_its_arrays() -> None:
    x = Banded(np.arange(6.0), 3)
    first = typeof(x)
    assert typeof(x) is first
    x.data.flags.writeable = False
    assert not typeof(x).items[0].mutable
    x.data.flags.writeable = True
    assert typeof(x) == first


def test_struct_without_parentheses():
    @nr.struct
    class Point:
        x: float
        y: float

        def length(self) -> float:
            return (self.x**2 + self.y**2) ** 0.5

    @nr.specialized((Point, "norm1"))
    def norm1(p: Point) -> float:
        return abs(p.x) + abs(p.y)

    @njit
    def moved(p: Any) -> Any:
        return Point(p.x + p.norm1(), p.y)

    assert moved(Point(1.0, 2.0)) == Point(4.0, 2.0)
    assert (Point(3.0, 4.0).length(), Point(3.0, 4.0).norm1()) == (5.0, 7.0)
    with pytest.raises(nr.RuleError, match=r"7 cannot be a struct\n.*made of a class"):
        nr.struct(7)  # type: ignore[call-overload]
