"""The record, the arrays in it, and the lowering that closes it."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core.codegen import CodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.runtime import _nrt_python, rtsys
from numba.core.typed_passes import NativeLowering

from numbarules.errors import RecursionDepthError
from numbarules.runtime import arena
from numbarules.runtime.arrays import (
    element_add,
    element_get,
    element_set,
    gradient_like,
    ieee_divide,
    overlaps,
    private_copy,
    retype,
    shadow_like,
)
from numbarules.runtime.lowering import RecordLower, RecordNativeLowering
from numbarules.runtime.record import (
    MAX_DEPTH,
    record_close,
    record_enter,
    record_get,
    record_leave,
    record_open,
    record_put,
    record_reserve,
    record_retain,
    record_slab,
)

MEGABYTE = 1 << 20
VECTOR = types.Array(types.float64, 1, "C")
get_float64, slab_float64 = record_get(types.float64), record_slab(types.float64)
get_vector, slab_vector = record_get(VECTOR), record_slab(VECTOR)
slab_voidptr, get_voidptr = record_slab(types.voidptr), record_get(types.voidptr)


class NamedRecordLower(RecordLower):
    record_variable = "record"  # a name that Python source can have


@register_pass(mutates_CFG=True, analysis_only=False)
class NamedRecordNativeLowering(RecordNativeLowering):
    _name = "numbarules_test_lowering"

    @property
    def lowering_class(self) -> type[RecordLower]:
        return NamedRecordLower


class RecordCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        replaced = {NativeLowering: NamedRecordNativeLowering}
        manager.passes = [(replaced.get(each, each), text) for each, text in manager.passes]
        manager.finalize()
        return [manager]


record_njit = njit(pipeline_class=RecordCompiler)


@pytest.fixture(autouse=True)
def allocation_stats() -> Iterator[None]:
    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not enabled:
        _nrt_python.memsys_disable_stats()


def slot() -> int:
    """The address of the record that waits for the next call."""
    return int(ctypes.c_int64.from_address(arena.load().get_global_value_address(arena.SLOT)).value)


def resident() -> int:
    """Bytes of this process that stand in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def live_objects() -> int:
    stats = rtsys.get_allocation_stats()
    return int(stats.mi_alloc - stats.mi_free)


# --- memory


@njit(nogil=True)
def fill_and_sum(sizes, stamp):
    """Reserve a slab for each size, fill all, then sum all; returns that the slabs kept their values and alignment."""
    record = record_open()
    slabs = slab_voidptr(record, len(sizes))
    for k in range(len(sizes)):
        slab = slab_float64(record, sizes[k])
        record_put(slabs, k, slab)
        for i in range(sizes[k]):
            record_put(slab, i, stamp * k + i)
    good = True
    for k in range(len(sizes)):
        slab = get_voidptr(slabs, k)
        for i in range(sizes[k]):
            good &= get_float64(slab, i) == stamp * k + i
    record_close(record)
    return good


@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 30_000,
        [0, -1, -(2**62), 3, 0, 5],
        [10_000, 1, 300_000, 2, 2_000_000, 7, 7, 100_000],
        [8191, 1, 8192, 1, 8193, 1],
    ],
    ids=["many small", "nothing", "growing", "chunk edge"],
)
def test_slabs_keep_their_values_across_chunks(sizes: list[int]) -> None:
    for stamp in (1.0, 2.0, 3.0):
        assert fill_and_sum(np.array(sizes), stamp)


def test_threads_do_not_share_a_record() -> None:
    fill_and_sum(np.array([1]), 1.0)
    bad: list[float] = []

    def work(stamp: float) -> None:
        sizes = np.arange(300)
        bad.extend(stamp for _ in range(60) if not fill_and_sum(sizes, stamp))

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


@njit
def reserve_and_touch(nbytes, times):
    record = record_open()
    for _ in range(times):
        slab = record_reserve(record, nbytes)
        for i in range(0, nbytes, 4096):
            record_put(slab, i // 8, 1.0)
    record_close(record)


def test_memory_is_reused_and_limited() -> None:
    def grows_by(nbytes: int, times: int, calls: int) -> int:
        for _ in range(3):
            reserve_and_touch(nbytes, times)
        before = resident()
        for _ in range(calls):
            reserve_and_touch(nbytes, times)
        return resident() - before

    assert grows_by(0, 1, 1000) < MEGABYTE
    assert grows_by(8 * MEGABYTE, 4, 300) < 4 * MEGABYTE
    before = resident()
    reserve_and_touch(40 * MEGABYTE, 10)
    assert resident() - before < arena.KEPT_BYTES + 4 * MEGABYTE
    reserve_and_touch(400 * MEGABYTE, 1)
    assert resident() - before < arena.KEPT_BYTES + 4 * MEGABYTE


@pytest.mark.parametrize("nbytes", [2**45, 2**62, 2**63 - 1])
def test_no_memory_is_a_memory_error(nbytes: int) -> None:
    with pytest.raises(MemoryError, match="what the gradient records"):
        reserve_in_owner(nbytes)


@record_njit
def reserve_in_owner(nbytes):
    record = record_open()
    record_reserve(record, nbytes)


def test_a_request_of_more_than_the_address_space_is_a_memory_error() -> None:
    @record_njit
    def slab_of(n):
        record = record_open()
        slab_float64(record, n)

    with pytest.raises(MemoryError):
        slab_of(2**61 + 1)


# --- values


@njit
def round_trip(a, b, c, d, e, f, vector):
    record = record_open()
    slab_a, slab_b, slab_c = slab_float64(record, 2), slab_32(record, 2), slab_bool(record, 2)
    slab_d, slab_e, slab_f = slab_int(record, 2), slab_complex(record, 2), slab_pair(record, 2)
    slab_v = slab_vector(record, 2)
    for i in range(2):
        record_put(slab_a, i, a)
        record_put(slab_b, i, b)
        record_put(slab_c, i, c)
        record_put(slab_d, i, d)
        record_put(slab_e, i, e)
        record_put(slab_f, i, f)
        record_put(slab_v, i, vector)
    result = (
        get_float64(slab_a, 1),
        get_32(slab_b, 1),
        get_bool(slab_c, 1),
        get_int(slab_d, 1),
        get_complex(slab_e, 1),
        get_pair(slab_f, 1),
        get_vector(slab_v, 1),
    )
    record_close(record)
    return result


PAIR = types.Tuple((types.float32, types.boolean))
slab_32, get_32 = record_slab(types.float32), record_get(types.float32)
slab_bool, get_bool = record_slab(types.boolean), record_get(types.boolean)
slab_int, get_int = record_slab(types.int64), record_get(types.int64)
slab_complex, get_complex = record_slab(types.complex128), record_get(types.complex128)
slab_pair, get_pair = record_slab(PAIR), record_get(PAIR)


def test_values_of_every_kind_come_back() -> None:
    vector = np.arange(3.0)
    scalars = (1.5, np.float32(0.1), True, -(2**60), 1 - 2j, (np.float32(0.2), True))
    before = live_objects()
    *back, got = round_trip(*scalars, vector)
    assert tuple(back) == (1.5, float(np.float32(0.1)), True, -(2**60), 1 - 2j, (float(np.float32(0.2)), True))
    np.testing.assert_array_equal(got, vector)
    assert np.shares_memory(got, vector)
    del got, back
    assert live_objects() == before


def test_factories_are_memoized() -> None:
    assert record_get(types.float64) is get_float64
    assert record_slab(types.Array(types.float64, 1, "C")) is slab_vector
    assert retype(types.Array(types.float64, 1, "C")) is retype(VECTOR)


@njit
def retain_many(n, length):
    """Drop n arrays that only the record keeps; returns their sum."""
    record = record_open()
    slab = slab_vector(record, n)
    for k in range(n):
        made = np.full(length, float(k))
        record_retain(record, (made, 1.0, (made[1:],)))
        record_put(slab, k, made)
    np.full(length, -1.0)
    total = 0.0
    for k in range(n):
        total += get_vector(slab, k)[length - 1]
    record_close(record)
    return total


def test_retained_arrays_live_until_the_record_is_closed() -> None:
    before = live_objects()
    assert retain_many(5000, 16) == 5000 * 4999 / 2
    assert live_objects() == before


@njit
def retain_null(array):
    record = record_open()
    record_retain(record, shadow_like(record, array))
    record_close(record)


def test_a_shadow_has_nothing_to_retain() -> None:
    retain_null(np.ones(3))


def test_put_and_get_are_plain_memory() -> None:
    @njit
    def copy_through(x, y):
        record = record_open()
        slab = slab_float64(record, x.size)
        for i in range(x.size):
            record_put(slab, i, x[i])
        for i in range(x.size):
            y[i] = get_float64(slab, i)
        record_close(record)

    x, y = np.arange(100.0), np.zeros(100)
    copy_through(x, y)
    np.testing.assert_array_equal(x, y)
    text = copy_through.inspect_llvm(copy_through.signatures[0])
    assert "memcpy" in text or "<4 x double>" in text or "<2 x double>" in text or "<8 x double>" in text


# --- depth


@record_njit
def recursion_levels(n):
    record = record_open()
    for _ in range(n):
        record_enter(record)
    for _ in range(n):
        record_leave(record)
    for _ in range(n):
        record_enter(record)
    return n


def test_depth_is_limited() -> None:
    assert recursion_levels(MAX_DEPTH) == MAX_DEPTH
    with pytest.raises(RecursionDepthError, match=f"at most {MAX_DEPTH} levels"):
        recursion_levels(MAX_DEPTH + 1)
    assert recursion_levels(MAX_DEPTH) == MAX_DEPTH  # closing resets the count


# --- the lowering that closes


@njit
def raises(x):
    if x > 0.5:
        raise ValueError("too large")
    return x


@record_njit
def owner(x, kind):
    """Fill 8 MiB of a record, retain an array, and leave in one of many ways."""
    if kind == 0:
        return 0.0
    record = record_open()
    kept = np.ones(8)
    record_retain(record, kept)
    slab = slab_float64(record, x.size)
    for i in range(x.size):
        record_put(slab, i, x[i])
    if kind == 1:
        raise ValueError("here")
    if kind == 2:
        return raises(1.0)
    if kind == 3:
        return 1.0 / (x[0] - 1.0)
    if kind == 4:
        return x[3:4][0] + np.dot(x[:2], x[:3])
    if kind == 5:
        record_close(record)
        raise ValueError("after closing")
    return get_float64(slab, x.size - 1)


@pytest.mark.parametrize(
    ("kind", "error"),
    [(0, None), (1, ValueError), (2, ValueError), (3, ZeroDivisionError), (4, ValueError), (5, ValueError), (6, None)],
)
def test_the_record_is_closed_on_every_way_out(kind: int, error: type[Exception] | None) -> None:
    x = np.ones(MEGABYTE)

    def leave() -> None:
        if error is None:
            owner(x, kind)
        else:
            with pytest.raises(error):
                owner(x, kind)

    for _ in range(3):
        leave()
    before = resident()
    address = slot()
    for _ in range(200):
        leave()
        assert slot() == address
    assert resident() - before < 4 * MEGABYTE


def test_retained_objects_are_released_when_the_owner_raises() -> None:
    @record_njit
    def retain_and_raise(x):
        record = record_open()
        record_retain(record, x)
        record_retain(record, x)
        raise ValueError("here")

    x = np.ones(4)
    before = live_objects()
    with pytest.raises(ValueError, match="here"):
        retain_and_raise(x)
    # The argument's own reference may be left behind by Numba; the record's two may not.
    assert live_objects() == before


def test_a_function_without_a_record_is_lowered_as_ever() -> None:
    @record_njit
    def double(x):
        return 2 * x

    assert double(4) == 8
    assert "numbarules_record" not in double.inspect_llvm(double.signatures[0])


# --- arrays

SHADOWED = {
    "C": np.arange(6.0).reshape(2, 3),
    "F": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "A": np.arange(24.0).reshape(4, 6)[::2, ::3],
    "negative": np.arange(5.0)[::-2],
    "0-d": np.array(3.0),
    "empty": np.zeros((0, 3)),
    "float32": np.arange(4, dtype=np.float32),
    "complex": np.arange(4) * 1j,
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "bool": np.array([True, False]),
}


@njit
def shadows(array):
    record = record_open()
    dirty = record_reserve(record, 1000)
    for i in range(100):
        record_put(dirty, i, 1.5)
    record_close(record)
    record = record_open()
    shadow = shadow_like(record, array)
    shadow_copy = private_copy(shadow)
    record_close(record)
    return shadow_copy, gradient_like(array), private_copy(array)


@pytest.mark.parametrize("name", SHADOWED)
def test_shadows_and_copies(name: str) -> None:
    array = SHADOWED[name]
    before = array.copy()
    shadow, gradient, copied = shadows(array)
    layout = "F" if name == "F" else "C"
    for made, expected in ((shadow, np.zeros_like(array)), (gradient, np.zeros_like(array)), (copied, array)):
        assert made.dtype == array.dtype
        assert made.shape == array.shape
        np.testing.assert_array_equal(made, expected)
        assert made.flags[f"{layout}_CONTIGUOUS"]
        assert made.flags.writeable
        assert made.flags.aligned
        if made.size:
            made[...] = 1
    np.testing.assert_array_equal(array, before)
    signature = shadows.overloads[(typeof(array),)].signature
    letter = signature.args[0].layout
    assert [each.layout for each in signature.return_type] == [letter, layout, letter]
    assert all(each.mutable and each.aligned for each in signature.return_type)


def test_shadows_and_copies_do_not_leak() -> None:
    before = live_objects()
    for array in SHADOWED.values():
        shadows(array)
    assert live_objects() == before


@njit
def typed_c(array):
    return retyped_c(array)


retyped_c = retype(types.Array(types.float64, 2, "C"))


def test_retype_shares_memory_and_counts_the_reference() -> None:
    array = np.broadcast_to(np.arange(6.0).reshape(2, 3), (2, 3))
    before = live_objects()
    result = typed_c(array)
    assert np.shares_memory(result, array)
    np.testing.assert_array_equal(result, array)
    del result
    assert live_objects() == before


# --- elements


@njit
def touch_1(x, i, v):
    element_add(x, i, v)
    element_set(x, i + 1, element_get(x, i))
    return element_get(x, i)


@njit
def touch_3(x, i, j, k, v):
    element_add(x, i, j, k, v)
    element_set(x, 0, j, k, 7)
    return element_get(x, i, j, k)


@njit
def touch_0(x, v):
    element_add(x, v)
    element_set(x, element_get(x) * 2)
    return element_get(x)


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """C, F and strided arrays equal to x."""
    wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    wide[tuple(slice(None, None, -2) for _ in x.shape)] = x
    return [x.copy(), np.asfortranarray(x), wide[tuple(slice(None, None, -2) for _ in x.shape)]]


def test_elements() -> None:
    for x in layouts(np.arange(5.0)) + layouts(np.arange(5, dtype=np.float32)):
        assert touch_1(x, 2, 0.5) == 2.5
        np.testing.assert_array_equal(x, [0, 1, 2.5, 2.5, 4])
    for x in layouts(np.arange(24.0).reshape(2, 3, 4)):
        expected = x.copy()
        expected[1, 2, 3] += 0.5
        expected[0, 2, 3] = 7
        assert touch_3(x, 1, 2, np.uint8(3), 0.5) == 23.5
        np.testing.assert_array_equal(x, expected)
    x = np.array(1.0 + 1j)
    assert touch_0(x, 2.0) == 6 + 2j == x


def test_ieee_divide() -> None:
    @njit
    def divide(a, b):
        return ieee_divide(a, b)

    assert divide(1.0, 0.0) == np.inf
    assert np.isnan(divide(0.0, 0.0))
    assert divide(np.float32(1), np.float32(3)) == float(np.float32(1) / np.float32(3))
    assert divide.overloads[(types.float32, types.float32)].signature.return_type == types.float32


# --- overlap


@njit
def overlap(a, b):
    return overlaps(a, b)


BASE = np.arange(24.0)
VIEWS: dict[str, np.ndarray] = {
    "all": BASE,
    "first": BASE[:12],
    "second": BASE[12:],
    "middle": BASE[6:18],
    "backwards first": BASE[11::-1],
    "backwards second": BASE[:11:-1],
    "even": BASE[::2],
    "odd": BASE[1::2],
    "empty": BASE[6:6],
    "one": BASE[5:6],
    "corner": BASE.reshape(4, 6)[:2, ::-1],
    "columns": BASE.reshape(4, 6).T[2:4],
    "last rows": BASE.reshape(4, 6)[:1:-1],
    "0-d": BASE[7:8].reshape(()),
    "ints": BASE.view(np.int32)[15:16],
    "other": np.arange(3.0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_overlap_is_that_of_address_ranges(name: str) -> None:
    a = VIEWS[name]
    for b in VIEWS.values():
        assert overlap(a, b) == np.may_share_memory(a, b)


def test_overlap_is_never_missed() -> None:
    for a, b in itertools.combinations(VIEWS.values(), 2):
        assert overlap(a, b) or not np.shares_memory(a, b)


@pytest.mark.skipif("_reload_init" not in inspect.getsource(CodeLibrary), reason="this Numba's cache has no hook for called code")
def test_numba_loads_the_functions_before_code_from_its_cache(tmp_path: Path) -> None:
    """A jitted function that calls a gradient is cached with the gradient's code, and knows nothing of numbarules."""
    (tmp_path / "cached.py").write_text(
        "import numba\n"
        "from numbarules.runtime.record import record_close, record_open, record_reserve\n"
        "def inner(n):\n"
        "    record = record_open()\n"
        "    record_reserve(record, n)\n"
        "    record_close(record)\n"
        "    return n + 1\n"
        "inner = numba.njit(inner)\n"
        "@numba.njit(cache=True)\n"
        "def outer(n):\n"
        "    return inner(n)\n"
        "assert outer(3) == 4\n"
        "print(sum(outer.stats.cache_hits.values()))\n"
    )
    paths = os.pathsep.join([str(Path(arena.__file__).parents[2]), str(tmp_path)])
    for hits in (0, 1):
        run = [sys.executable, "-W", "ignore", "-c", "import cached"]
        done = subprocess.run(run, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(hits)
