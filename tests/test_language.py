"""The language: each construct where a derivative passes through it, against central differences and the primal's own value.

A program groups several uses of one kind, to be compiled once.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, vectorize

import numbarules as nr
from cases import judge

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(5)
V = np.array([0.4, 1.3, -0.7, 2.1, 0.9])
M = RNG.uniform(0.5, 2.0, (4, 3))
T = RNG.uniform(0.5, 2.0, (2, 4, 3))
Pair = namedtuple("Pair", "a b")
WEIGHTS = np.array([0.5, -1.0, 2.0, 0.25, 1.5])
OFFSETS = (0.5, 2.0)


def float_leaves(args: tuple[Any, ...]) -> list[tuple[tuple[int, ...], Any]]:
    return list(judge.leaves(args))


def replaced(value: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    items = list(value)
    items[path[0]] = replaced(items[path[0]], path[1:], new)
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def strided_like(a: np.ndarray, values: np.ndarray) -> np.ndarray:
    """An array with the values given and the strides and flags of `a`."""
    base = np.zeros(tuple(2 * n + 1 for n in a.shape), a.dtype) if a.ndim else np.zeros((), a.dtype)
    if a.flags.c_contiguous or a.flags.f_contiguous:
        out = np.array(values, dtype=a.dtype, order="F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C")
    else:
        out = base[tuple(slice(None, 2 * n, 2) if s > 0 else slice(2 * n - 1, None, -2) for n, s in zip(a.shape, a.strides, strict=True))]
        out[...] = values
    out.flags.writeable = a.flags.writeable
    return out


def differences(f: Any, args: tuple[Any, ...], path: tuple[int, ...], leaf: Any, step: float) -> Any:
    def at(values: Any) -> float:
        mine = tuple(judge.clone(a) if not isinstance(a, np.ndarray) else strided_like(a, a) for a in args)
        new = strided_like(leaf, values) if isinstance(leaf, np.ndarray) else type(leaf)(values)
        return float(f(*replaced(mine, path, new)))

    if not isinstance(leaf, np.ndarray):
        return (at(leaf + step) - at(leaf - step)) / (2 * step)
    out = np.zeros(leaf.shape)
    for i in np.ndindex(leaf.shape):
        values = np.array(leaf)
        values[i] += step
        up = at(values)
        values[i] -= 2 * step
        out[i] = (up - at(values)) / (2 * step)
    return out


def check(f: Any, *args: Any, step: float = 1e-6, rtol: float = 2e-6) -> Any:
    """Compares value and gradients by all float arguments; returns the gradient function."""
    active = tuple(i for i, a in enumerate(args) if any(True for _ in judge.leaves(a)))
    call = nr.value_and_grad(f, argnums=active)
    before = judge.clone(args)
    value, gradients = call(*args)
    assert judge.equal_tree(args, before), "arguments were changed"
    assert judge.near_tree(value, f(*judge.clone(args)))
    by = dict(zip(active, gradients, strict=True))
    for path, leaf in float_leaves(args):
        got = judge.pick(by[path[0]], path[1:])
        wanted = differences(f, args, path, leaf, step)
        assert np.shape(got) == np.shape(leaf)
        assert np.asarray(got).dtype == np.asarray(leaf).dtype
        atol = rtol * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=str(path))
    again = call(*args)
    assert judge.equal_tree(again[1], gradients), "second call"
    return call


# ---------------------------------------------------------------------------------------------- indexing by arrays


@njit
def gathers(x, A, B, idx, i2, mask):
    s = 0.0
    for v in x[idx] * x[idx]:
        s += v
    s += np.sum(np.sin(A[idx])) + np.sum(A[:, idx] ** 2) + np.sum(A[1, idx]) * A[0, 0]
    s += np.sum(np.exp(0.3 * A[1:, idx])) + np.sum(B[0, :, idx] ** 3) + np.sum(B[..., idx] ** 2)
    s += np.sum(x[i2] ** 2) + np.sum(x[mask] ** 3) + np.sum(A[idx, idx] ** 2) + np.sum(A[i2, idx] * 2.0 * A[0, 1])
    return s + np.sum(A[None, idx] ** 2)


@njit
def scatters(x, A, v, idx, i2, mask):
    z = x * x
    z[idx] = v[:3] * x[0]
    z[idx] += v[0]
    z[mask] *= x[1]
    z[mask] = v[1] ** 2
    C = A * A
    C[idx] = v[:3]
    C[:, idx] = 2.0 * C[:, idx] * v[2]
    C[1, idx] = v[2:5]
    C[i2, 0] = v[3]
    z[idx] = z[::-1][:3]
    y = np.zeros((2, 3))
    y[:, idx] = v[:3]
    return np.sum(z**2) + np.sum(C**3) + np.sum(np.sin(y))


IDX = np.array([2, 0, 2])
I2 = np.array([[0, 1, 2], [2, 1, -1]])
MASK = np.array([True, False, True, False, True])


def test_gather() -> None:
    check(gathers, V, M, T, IDX, I2, MASK)


def test_scatter() -> None:
    check(scatters, V, M, V[::-1].copy(), IDX, I2, MASK)


# ---------------------------------------------------------------------------------------------- ufuncs of the user's own


@vectorize
def bump(x, a):
    if x < 0.5:
        return a * x * x
    return math.sin(x) / a


@vectorize(["float64(float64, int64)"])
def lift(x, n):
    return x**n


@njit
def vectorized(x, A, a):
    s = bump(a, 2.0) + np.sum(bump(x, a) * x) + np.sum(bump(A, x[:3])) + np.sum(lift(x, 3)) + lift(a, 2)
    y = np.empty_like(x)
    y[:] = bump(x, 1.5)
    return s + np.sum(y * y)


def test_vectorize() -> None:
    check(vectorized, V, M, 0.7)


# ---------------------------------------------------------------------------------------------- making arrays


@njit
def constructors(x, a, b, shape, n):
    p = np.ones_like(x) * a
    q = np.full(3, a * b)
    r = np.full((2, n), b)
    u = np.array([a, b, a * b])
    w = np.array([[a, 1.0], [b * b, x[0]]])
    t = np.array((a, x[1]))
    z = np.zeros(shape)
    z[1, 2] = a * x[2]
    z += b
    e = np.empty((n, 2))
    e.fill(a)
    e[0, 0] += x[3]
    o = np.ones((n, 2)) * b
    c = np.empty(x.shape[0])
    c[:] = x
    c[1] *= a
    f = np.full_like(x, b)
    g = np.zeros_like(x)
    g[:] = a
    k = x.copy()
    k[0] = k[0] * 3.0
    rows = [[a, b], [b, a * a]]
    m = np.array(rows)
    total = np.sum(p * x) + np.sum(q**2) + np.sum(r**3) + np.sum(u * u) + np.sum(w * w) + t[0] * t[1]
    return total + np.sum(z**2) + np.sum(e * o) + np.sum(c**2) + np.sum(f * x) + np.sum(g * g) + np.sum(k**2) + np.sum(m @ m)


def test_constructors() -> None:
    check(constructors, V, 0.7, 1.2, (2, 3), 3)


@njit
def attributes(x, A, s0):
    y = np.asarray(x)
    s = y.size * y[0] + y.real[1] ** 2 + np.sum(A.T[1] ** 2) + np.sum(A.T @ A)
    for v in A.flat:
        s += v * v
    s += x.ndim * A[0, 0] + len(A) * A[1, 1] + A.shape[1] * x[1]
    s += np.ascontiguousarray(A.T)[1, 0] ** 2 + A.ravel()[3] ** 2 + A.reshape(3, 4)[1, 1] ** 3 + A.flatten()[4] ** 2
    s += s0[()] ** 2 + s0.item() * x[0]
    z = np.array(x[0])
    z[()] = z[()] * x[1]
    return s + z[()] ** 2 + A.reshape(-1)[2] ** 2 + np.transpose(A)[0, 0] ** 2


def test_attributes_and_zero_dimensions() -> None:
    check(attributes, V, M, np.array(0.8))


# ---------------------------------------------------------------------------------------------- scalars


@njit
def scalars(x, a, b, n):
    s = float(n) * a + int(2.7) * b + np.float64(n) * a
    q, r = divmod(a * 7.3, b)
    s += q * a + r * r
    s += (a > 0.1) * b + (0.0 < a < b < 10.0) * a * b
    s += min(a, b, x[0]) * 2.0 + max(a, b, x[1]) ** 2
    t = (a, b, a * b)
    s += sum(t) * t[0] + len(t) * t[2] + abs(-a) + a // 0.3 + a % 0.3 + (-b) % 0.7
    s += a if a < b else b * b
    s += (a and b) + (0.0 or b) * a
    s += a**3 + a**n + 2.0**b + a**b + a**0.5 + a**-2
    if not a > b or (n == 3 and b > 0):
        s *= a
    return s + round(a, 1) + bool(n) * a - (+b)


@njit
def single(x, a):
    y = np.float32(2.0) * x + a
    s = np.float32(0.0)
    for i in range(len(y)):
        s += y[i] * y[i] * np.float32(0.5)
    return s + np.sum(np.sqrt(x * x)) * np.float32(a)


@njit
def mixed(x, a):
    s = 0.0
    for i in range(x.shape[0]):
        s += np.float64(x[i]) * a + np.float32(a) * x[i]
    z = np.zeros(2, np.float32)
    z[0] = a * x[0]
    return s + z[0]


def test_scalars() -> None:
    check(scalars, V, 0.7, 1.2, 3)


def test_float32() -> None:
    x = np.array([0.5, 1.5, 2.0], np.float32)
    call = nr.grad(single, argnums=(0, 1))
    dx, da = call(x, np.float32(0.25))
    assert dx.dtype == np.float32
    y = 2 * x.astype(np.float64) + 0.25
    np.testing.assert_allclose(dx, 2 * y + 0.25, rtol=1e-6)
    assert abs(da - (np.sum(y) + np.sum(x))) < 1e-5
    dx, da = nr.grad(mixed, argnums=(0, 1))(x, 0.25)
    assert dx.dtype == np.float32 and isinstance(da, float)
    np.testing.assert_allclose(dx, [0.75, 0.5, 0.5], rtol=1e-6)
    assert abs(da - (2 * np.sum(x, dtype=np.float64) + 0.5)) < 1e-6


# ---------------------------------------------------------------------------------------------- iteration


@njit
def iterates(x, A, t, p):
    s = 0.0
    for v in x:
        s += v * v
    for row in A:
        s += row[0] * row[2]
        for v in row:
            s += v**3
    for i, v in enumerate(x):
        s += i * v * x[0]
    for i, row in enumerate(A, 1):
        s += i * np.sum(row * row)
    for u, v in zip(x, x[::-1]):
        s += u * v * v
    for row, v in zip(A, x):
        s += row[1] * v
    for v in t:
        s *= 1.0 + 0.01 * v
    for i, v in enumerate(t):
        s += i * v**2
    for u, v in zip(t, x):
        s += u * v
    for i, (u, v) in enumerate(zip(t, A)):
        s += i * u * v[0]
    for a, b in p:
        s += a * b * b
    for k in range(3):
        s += t[k] * k
    return s


def test_iteration() -> None:
    check(iterates, V, M, (0.3, 0.8, -0.2), ((0.5, 1.5), (0.7, -0.4)))


@njit
def nested(p, t, q):
    (a, b), c = t
    s = p.a * p.b[1] + a * b * c
    for v in p.b:
        s += v**2
    new = Pair(s * 0.1, (a, b))
    r = swap(new, c)
    u = (s, (a * b, c))
    s += u[1][0] * u[0] * 0.01 + u[-1][-1]
    x = q[0]
    for v in q[1:]:
        s += v * x
    both = q + (a, b)
    return s + r.a * r.b[0] + both[3] ** 2 + np.sum(np.array(both[1:3]))


@njit
def swap(p, c):
    return Pair(p.b[0] * c, (p.a, p.b[1]))


def test_tuples() -> None:
    check(nested, Pair(0.4, (0.3, 1.2)), ((0.5, 1.5), 0.7), (0.2, 0.3, 0.9))


@njit
def tuples_in_loops(x, n):
    state = (x[0], x[1] * x[2])
    p = Pair(x[0], x[1])
    for _ in range(n):
        state = (state[1] * 0.5, state[0] + math.sin(state[1]))
        p = Pair(p.b, p.a * p.b)
    views = (x, x[1:], x[::2])
    s = 0.0
    for v in views[1:2]:
        s += v[0] * v[1]
    return state[0] * state[1] + p.a * p.b + s + views[2][1] ** 2


def test_tuples_in_loops() -> None:
    check(tuples_in_loops, V, 4)


# ---------------------------------------------------------------------------------------------- functions and constants


def closure(scale: float, table: np.ndarray) -> Any:
    @njit
    def inner(x):
        return scale * np.sum(x * table) + x[0] * WEIGHTS[1] + OFFSETS[1] * x[1]

    return inner


@njit
def cube(v):
    return v**3


@njit
def tenth(v, k=0.1):
    return math.exp(k * v)


@njit
def apply_all(f, g, x):
    s = 0.0
    for v in x:
        s += f(v) * g(v)
    return s


@njit
def functions(x):
    return apply_all(cube, tenth, x) + apply_all(tenth, cube, x[1:]) + tenth(x[0], k=x[1])


def test_closures_and_globals() -> None:
    check(closure(1.5, np.array([1.0, 2.0, -1.0, 0.5, 0.25])), V)


def test_functions_as_arguments() -> None:
    check(functions, V)


@njit
def powers(x, n):
    if n == 0:
        return x
    return powers(x * x[0], n - 1)


@njit
def recursion_with_arrays(x):
    y = powers(x, 3)
    y[0] *= y[1]
    return np.sum(y)


def test_recursion_with_arrays() -> None:
    check(recursion_with_arrays, V)


def test_jitted_function_as_outer_argument() -> None:
    value, gradient = nr.value_and_grad(apply_all, argnums=2)(cube, tenth, V)
    assert abs(value - apply_all(cube, tenth, V)) < 1e-12
    np.testing.assert_allclose(gradient, (3 * V**2 + 0.1 * V**3) * np.exp(0.1 * V), rtol=1e-12)


# ---------------------------------------------------------------------------------------------- layouts


@njit
def layouts(A):
    B = A * 2.0
    B[0] += A[1]
    B[:, 0] *= A[:, 1]
    s = np.sum(B * A.T.copy().T)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            s += A[i, j] ** 2 * (i + 2 * j)
    return s + np.sum(A[::-1] * A) + np.sum(A[:, ::2])


def test_layouts() -> None:
    read_only = M.copy()
    read_only.flags.writeable = False
    for array in (M, np.asfortranarray(M), np.repeat(np.repeat(M, 2, 0), 2, 1)[::2, ::2], M[::-1, ::-1], read_only):
        check(layouts, array)


@njit
def sizes(x, A):
    y = x * 2.0
    z = np.concatenate((x, y)) if False else y
    s = np.sum(x) + np.sum(z * z) + np.sum(A)
    for row in A:
        s += np.sum(row)
    for v in x:
        s *= v
    return s


def test_zero_size() -> None:
    value, (dx, dA) = nr.value_and_grad(sizes, argnums=(0, 1))(np.zeros(0), np.zeros((0, 3)))
    assert value == 0.0 and dx.shape == (0,) and dA.shape == (0, 3)
    check(sizes, V[:2], M)


# ---------------------------------------------------------------------------------------------- overlapping stores


@njit
def forward_add(x):
    x[1:] += x[:-1]
    return x


@njit
def backward_add(x):
    x[:-1] += x[1:]
    return x


@njit
def shift(x):
    x[1:] = x[:-1]
    return x


@njit
def flip(x):
    x[::-1] = x
    return x


@njit
def flip_multiply(x):
    x *= x[::-1]
    return x


@njit
def shift_expression(x):
    x[1:] = 2.0 * x[:-1] + x[1:]
    x[:-1] -= 0.5 * x[1:]
    return x


@njit
def turn(A):
    A[:, :] = A.T
    A += A.T
    A[1:] = A[:-1]
    A[:, 1:] *= A[:, :-1]
    return A


@njit
def row_over_all(A):
    A[:] = A[1]
    A += A[0]
    return A


OVERLAPS = [forward_add, backward_add, shift, flip, flip_multiply, shift_expression, turn, row_over_all]


@pytest.mark.parametrize("f", OVERLAPS, ids=lambda f: f.__name__)
def test_overlap(f: Any) -> None:
    weights = np.array([[0.3, 1.1, -0.7], [0.2, 0.9, 1.7], [-1.0, 0.4, 0.6]])

    @njit
    def loss(x, w):
        y = f(x * 1.0)
        s = 0.0
        for i in range(w.shape[0]):
            s += np.sum(w[i] * y[i] * y[i])
        return s

    check(loss, V[:3] if f not in (turn, row_over_all) else M[:3], weights)


# ---------------------------------------------------------------------------------------------- passive containers


@njit
def displays(x):
    ks, ms, by, s = [1, 2, 3], [0, 1], {"a": 1, "b": [2, 3]}, 0.0
    for k in ks:
        s += k * x[k] ** 2
    for n in range(2):
        for k in ms if n else ks:
            s += x[k] ** 3
    for m, k in enumerate(ks):
        s += x[m] * x[k]
    for k in {1, 4}:
        s += k * x[k]
    return s * x[by["a"]] * x[by["b"][1]]


@njit
def grown(x):
    """Containers whose items Numba finds after it has seen them made."""
    seen = set()
    chosen = list()  # noqa: C408
    first = dict()  # noqa: C408
    order = numba.typed.List()
    last = numba.typed.Dict()
    s = 0.0
    for i in range(5):
        if i % 4 in seen:
            s += x[i] ** 2
        seen.add(i % 3)
        chosen.append(i // 2)
        first[i] = i // 3
        order.append((i, 4 - i))
        last[i % 2] = i
    for k in chosen:
        s += x[k] ** 3
    for i, k in first.items():
        s += i * x[k]
    for i, k in order:
        s += i * x[i] * x[k]
    for k in last.values():
        s += x[k] ** 2
    for _ in range(2):
        new = set()
        new.add(3)
        for k in new:
            s += x[k] ** 3
    return s


def test_passive_containers() -> None:
    check(displays, V)
    check(grown, V)


# ---------------------------------------------------------------------------------------------- `*args`


@njit
def scaled(x, power=2, *others):
    return x**power * (1 + len(others))


@njit
def product(x, *others):
    out = x
    for v in others:
        out *= v
    return out


@njit(error_model="numpy")
def combined(x, *others):
    """Has sweeps of its own: its options are others than those of its caller."""
    return x * np.sum(others[0]) * others[1][0] + len(others)


@njit
def descend(n, *pair):
    return pair[0] * pair[1] if n == 0 else pair[0] * descend(n - 1, *pair)


@njit
def variadic(x):
    pair = (x[1], x[2])
    s = scaled(x[0]) + scaled(x[1], 3) + scaled(x=x[4]) + scaled(x[3], 3, *pair) + product(x[0], x[3], *pair)
    return s + combined(x[0], x[1:3], pair) + descend(2, *pair)


def test_arguments_in_a_tuple() -> None:
    check(variadic, V)


# ---------------------------------------------------------------------------------------------- exchanged axes


@njit
def permutes(T):
    a, b, c = np.transpose(T, (2, 0, 1)), T.transpose(1, 2, 0), T.transpose((0, -1, 1))
    s = np.sum(a[1] ** 2) + b[3, 1, 1] * c[1, 2, 0] + np.sum(np.swapaxes(a=T, axis1=0, axis2=1)[2] ** 3)
    w = T * T
    np.moveaxis(w, 0, -1)[1] *= 3.0
    out = np.zeros((3, 2, 4))
    turned = np.transpose(out, axes=(1, 2, 0))
    turned[...] = w
    for i in range(3):
        s += i * out[i, 1, 2] * a[i, 0, 3] + np.sum(out[i])
    return s


def test_permuted_axes() -> None:
    check(permutes, T)
