"""What is refused where a derivative passes through it: each error says what, where and what to do, and the rewrite it suggests works.

A refused program marks the line that the error must name by a comment; `docs/limitations.md` has a row for each.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float64, guvectorize, literal_unroll, njit, objmode, types
from numba.experimental import jitclass

import numbarules as nr

pytestmark = pytest.mark.filterwarnings("ignore")

MARK = "# <-"
V = np.array([0.4, 1.3, 0.7, 2.1])


# ---------------------------------------------------------------------------------------------- refused, and in its place


@njit
def complex_numbers(x):
    z = complex(x[0], x[1])  # <-
    w = z * z
    return w.real


@njit
def complex_numbers_rewritten(x):
    re, im = x[0] * x[0] - x[1] * x[1], 2.0 * x[0] * x[1]
    return re + 0.0 * im


@njit
def complex_arrays(x):
    z = x * 1j  # <-
    return np.sum(np.abs(z * z))


@njit
def complex_arrays_rewritten(x):
    return np.sum(np.abs(-x * x))


@njit
def lists(x):
    values = [x[0]]  # <-
    for v in x:
        values.append(v * v)
    return values[1] * values[2]


@njit
def lists_rewritten(x):
    values = np.empty(x.shape[0] + 1)
    values[0] = x[0]
    for i in range(x.shape[0]):
        values[i + 1] = x[i] * x[i]
    return values[1] * values[2]


@njit
def mixed_lists(x):
    values = [x[0] ** 2, 1, "b"]  # <-
    return values[0] * x[values[1]]


@njit
def mixed_lists_rewritten(x):
    values = (x[0] ** 2, 1, "b")
    return values[0] * x[values[1]]


@njit
def unrolled(x):
    t, s = (x[0], 1, x[2]), 0.0
    for v in literal_unroll(t):  # <-
        s += v * v
    return s


@njit
def unrolled_rewritten(x):
    t = (x[0], 1, x[2])
    return t[0] * t[0] + t[1] * t[1] + t[2] * t[2]


@njit
def dictionaries(x):
    d = {0: x[0]}  # <-
    d[1] = x[1] * 2.0
    return d[0] * d[1]


@njit
def dictionaries_rewritten(x):
    d = np.empty(2)
    d[0] = x[0]
    d[1] = x[1] * 2.0
    return d[0] * d[1]


@jitclass([("scale", float64)])
class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def value(self, v):
        return self.scale * v * v


@njit
def classes(x):
    s = Scaled(x[0])  # <-
    return s.value(x[1])


@njit
def value_of(scale, v):
    return scale * v * v


@njit
def classes_rewritten(x):
    return value_of(x[0], x[1])


@njit
def trying(x):
    y = 0.0
    try:  # <-
        y = 2.0 * x[0]
        if y < 0.0:
            raise ValueError("negative")
    except Exception:
        y = 100.0
    return y * x[1]


@njit
def trying_rewritten(x):
    y = 2.0 * x[0]
    if y < 0.0:
        y = 100.0
    return y * x[1]


@njit
def squares(x):
    for v in x:
        yield v * v


@njit
def generators(x):
    s = 0.0
    for v in squares(x):  # <-
        s += v
    return s


@njit
def generators_rewritten(x):
    values = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        values[i] = x[i] * x[i]
    s = 0.0
    for v in values:
        s += v
    return s


@njit
def blocks(x):
    y = x[0] * 2.0
    with objmode(z="float64"):  # <-
        z = math.sin(y)
    return z * x[1]


@njit
def blocks_rewritten(x):
    y = x[0] * 2.0
    z = math.sin(y)
    return z * x[1]


@njit
def draws(x):
    np.random.seed(1)
    return np.random.normal(x[0], x[1]) * x[2]  # <-


@njit
def draws_rewritten(x):
    np.random.seed(1)
    return (x[0] + x[1] * np.random.standard_normal()) * x[2]


@guvectorize([(float64[:], float64[:])], "(n)->()")
def total(v, out):
    out[0] = 0.0
    for i in range(v.shape[0]):
        out[0] += v[i] * v[i]


@njit
def generalised(x):
    out = np.zeros(())
    total(x, out)  # <-
    return out[()] * x[0]


@njit
def generalised_rewritten(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s * x[0]


@njit
def nditer(x):
    s = 0.0
    for v in np.nditer(x):  # <-
        s += v[()] * v[()]
    return s


@njit
def nditer_rewritten(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@njit
def root_or_none(v):
    if v < 0.0:
        return None
    return v * v


@njit
def optional(x):
    y = root_or_none(x[0])
    if y is None:
        return x[1]
    return y * x[1]


@njit
def root_or_nan(v):
    if v < 0.0:
        return math.nan
    return v * v


@njit
def optional_rewritten(x):
    y = root_or_nan(x[0])
    if math.isnan(y):
        return x[1]
    return y * x[1]


RECORD = np.dtype([("a", np.float64), ("b", np.float64)])


@njit
def records(x):
    r = np.zeros(2, RECORD_TYPE)
    r[0].a = x[0] * 2.0  # <-
    return r[0].a * x[1]


RECORD_TYPE = RECORD


@njit
def records_rewritten(x):
    a = np.zeros(2)
    a[0] = x[0] * 2.0
    return a[0] * x[1]


@njit
def columns_in_fortran_order(x):
    A = np.asfortranarray(x.reshape(2, 2))
    s = 0.0
    for v in A.flat:  # <-
        s += v * v * x[0]
    return s


@njit
def columns_in_fortran_order_rewritten(x):
    A = np.asfortranarray(x.reshape(2, 2))
    s = 0.0
    for v in A.flatten():
        s += v * v * x[0]
    return s


REFUSED: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "complex numbers": (complex_numbers, complex_numbers_rewritten, "complex arithmetic"),
    "complex arrays": (complex_arrays, complex_arrays_rewritten, "complex arithmetic"),
    "lists": (lists, lists_rewritten, "a list of floats"),
    "mixed lists": (mixed_lists, mixed_lists_rewritten, "a list of values of different types"),
    "literal_unroll": (unrolled, unrolled_rewritten, "a tuple that is taken apart at run time, as by `literal_unroll`,"),
    "dictionaries": (dictionaries, dictionaries_rewritten, "a dictionary of floats"),
    "jitclasses": (classes, classes_rewritten, "an instance of a jitclass"),
    "try": (trying, trying_rewritten, "`try`"),
    "generators": (generators, generators_rewritten, "a generator"),
    "objmode": (blocks, blocks_rewritten, "a block `with objmode`"),
    "random draws": (draws, draws_rewritten, "a random draw by `np.random.normal`"),
    "guvectorize": (generalised, generalised_rewritten, "the generalised ufunc `total`"),
    "nditer": (nditer, nditer_rewritten, "`np.nditer`"),
    "optional": (optional, optional_rewritten, "a float that may be None"),
    "records": (records, records_rewritten, "a record"),
    "flat": (columns_in_fortran_order, columns_in_fortran_order_rewritten, "`.flat` of an array that is not in C order"),
}


def marked(f: Any) -> tuple[int, int, str]:
    """The first and last line of a function, and the text of the line that is marked in it."""
    lines, start = inspect.getsourcelines(f.py_func)
    text = next((line for line in lines if MARK in line), "")
    return start, start + len(lines) - 1, text.strip()


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusal(name: str) -> None:
    f, _, construct = REFUSED[name]
    f(V)  # Numba compiles it
    with pytest.raises(nr.NumbarulesError) as caught:
        nr.grad(f)(V)
    text = str(caught.value)
    first, _, _ = text.partition("\n")
    assert construct in first
    assert f.__name__ in first
    assert f'File "{__file__}", line ' in text
    line = int(text.partition(", line ")[2].split("\n")[0])
    shown = text.split("\n")[2].strip()
    assert Path(__file__).read_text(encoding="utf-8").split("\n")[line - 1].strip() == shown
    start, end, source = marked(f)
    if source:
        assert start <= line <= end
        assert shown == source
    assert "Instead: " in text


@pytest.mark.parametrize("name", list(REFUSED))
def test_rewrite(name: str) -> None:
    f, rewritten, _ = REFUSED[name]
    if name != "random draws":
        assert abs(f(V) - rewritten(V)) < 1e-12
    value, gradient = nr.value_and_grad(rewritten)(V)
    assert abs(value - rewritten(V)) < 1e-12
    wanted = [(rewritten(V + h) - rewritten(V - h)) / 2e-6 for h in 1e-6 * np.eye(len(V))]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-8)


def test_each_has_a_row() -> None:
    page = (Path(__file__).parent.parent / "docs" / "limitations.md").read_text(encoding="utf-8")
    for _, _, construct in REFUSED.values():
        assert construct in page, construct


# ---------------------------------------------------------------------------------------------- passive code of any kind passes


@njit
def passive(x, n):
    log = [1]
    counts = {0: 1}
    for i in range(n):
        log.append(i * i)
        counts[i] = log[-1]
    names = ["a", "b"]
    z = complex(n, 1.0)
    noise = np.random.normal(0.0, 1.0)
    print(len(names), n)
    print(x.shape[0], x[0])
    for k in np.ndindex(2, 2):
        log.append(k[0])
    seen = set(log)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i] * log[i % 2] * counts[0]
    text = "sum" + str(n)
    return s * len(seen) + len(text) * x[0] + z.imag * x[1] + 0.0 * noise


def test_passive_code(capsys: Any) -> None:
    value, gradient = nr.value_and_grad(passive)(V, 3)
    assert abs(value - passive(V, 3)) < 1e-12
    wanted = [(passive(V + h, 3) - passive(V - h, 3)) / 2e-6 for h in 1e-6 * np.eye(len(V))]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6)


def test_function_type() -> None:
    @njit
    def square(v):
        return v * v

    @njit
    def through(g, x):
        return g(x[0]) * x[1]

    first_class = njit(types.float64(types.FunctionType(types.float64(types.float64)), types.float64[::1]))(through.py_func)
    assert first_class.signatures
    with pytest.raises(nr.NumbarulesError, match="known only at run time"):
        nr.grad(first_class, argnums=1).compile(first_class.signatures[0])
    np.testing.assert_allclose(nr.grad(through, argnums=1)(square, V)[:2], [2 * V[0] * V[1], V[0] ** 2])
