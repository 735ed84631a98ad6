"""Derivatives as dispatchers: options, signatures, arguments, identity, pickling, threads."""

from __future__ import annotations

import concurrent.futures
import functools
import gc
import importlib.util
import inspect
import io
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import cloudpickle, float32, float64, int64, njit, types
from numba.core.dispatcher import Dispatcher

import numbarules as nr


def cubic(x, y=2.0, n=3):
    total = 0.0
    for _ in range(n):
        total += x * x * y
    return total


@nr.njit_grad
def decorated(x, y):
    return x * x * y


@nr.njit_grad(argnums=(0, -1), nogil=True)
def decorated_by_both(x, y):
    return x * x * y


@njit
def jitted(x):
    return 3.0 * x * x


# ---------------------------------------------------------------------------------------------- the decorator


def test_a_decorated_function_is_an_ordinary_dispatcher() -> None:
    assert isinstance(decorated, Dispatcher)
    assert decorated(3.0, 2.0) == 18.0
    assert decorated.py_func(3.0, 2.0) == 18.0
    assert decorated.__name__ == "decorated"
    assert (float64, float64) in decorated.signatures

    @njit
    def caller(x):
        return decorated(x, 2.0) + 1.0

    assert caller(3.0) == 19.0


def test_gradients_of_a_decorated_function() -> None:
    assert decorated.grad(3.0, 2.0) == 12.0
    assert decorated.value_and_grad(3.0, 2.0) == (18.0, 12.0)
    assert decorated_by_both.grad(3.0, 2.0) == (12.0, 9.0)
    assert decorated_by_both.value_and_grad(3.0, 2.0) == (18.0, (12.0, 9.0))


def test_gradients_of_a_decorated_function_in_jitted_code() -> None:
    @njit
    def caller(x):
        value, (dx, dy) = decorated_by_both.value_and_grad(x, y=2.0)
        return value, dx, dy, decorated.grad(x, 2.0)

    assert caller(3.0) == (18.0, 12.0, 9.0, 12.0)


def test_a_decorated_function_as_an_argument_of_jitted_code() -> None:
    @njit
    def newton(f, x):
        for _ in range(50):
            value, slope = f.value_and_grad(x, 1.0)
            x -= (value - 2.0) / slope
        return x

    assert newton(decorated, 1.0) == pytest.approx(2.0**0.5)


def test_gradients_of_other_dispatchers_are_not_attributes() -> None:
    with pytest.raises(AttributeError):
        jitted.grad  # noqa: B018 - the access raises


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fastmath": True},
        {"fastmath": {"contract"}},
        {"error_model": "numpy"},
        {"boundscheck": True},
        {"nogil": True},
        {"inline": "always"},
    ],
)
def test_options_of_numba(options: dict[str, Any]) -> None:
    @nr.njit_grad(**options)
    def mean_square(x):
        total = 0.0
        for i in range(x.size):
            total += x[i] * x[i]
        return total / x.size

    x = np.array([1.0, 2.0, 5.0, 6.0])
    assert mean_square.grad(x) == pytest.approx(x / 2.0)
    for name, value in options.items():
        assert mean_square.targetoptions[name] == value
        if name != "inline":
            assert mean_square.grad.targetoptions[name] == value


def test_boundscheck_holds_for_the_gradient() -> None:
    @nr.njit_grad(boundscheck=True)
    def beyond(x):
        return x[3] * x[3]

    with pytest.raises(IndexError):
        beyond.grad(np.ones(3))


def test_error_model_holds_for_the_gradient() -> None:
    def ratio(x, y):
        return x / y

    with pytest.raises(ZeroDivisionError):
        nr.grad(ratio)(1.0, 0.0)
    assert nr.grad(njit(error_model="numpy")(ratio))(1.0, 0.0) == np.inf


TEXT = "float64(float64, float64)"


@pytest.mark.parametrize("signature", [TEXT, float64(float64, float64), (float64, float64), [TEXT]])
def test_explicit_signatures_compile_at_once_and_no_others(signature: Any) -> None:
    @nr.njit_grad(signature, argnums=1)
    def eager(x, y):
        return x * y * y

    for dispatcher in (eager, eager.grad, eager.value_and_grad):
        assert dispatcher.signatures == [(float64, float64)]
    assert eager.grad(2.0, 3.0) == 12.0
    assert eager.grad(np.float32(2.0), 3) == 12.0
    assert eager.grad.signatures == [(float64, float64)]


def test_two_signatures() -> None:
    @nr.njit_grad([float64(float64), float32(float32)])
    def square(x):
        return x * x

    assert square.grad.signatures == [(float64,), (float32,)]
    assert square.grad.overloads[(float32,)].signature.return_type == float32


@pytest.mark.parametrize("wrong", [3, decorated, jitted, np.sin])
def test_the_decorator_is_for_python_functions(wrong: Any) -> None:
    with pytest.raises(TypeError, match="Python function"):
        nr.njit_grad(wrong)


# ---------------------------------------------------------------------------------------------- gradients as dispatchers


def test_a_gradient_is_a_dispatcher() -> None:
    gradient = nr.grad(cubic, argnums=(0, 1))
    assert gradient(3.0, 2.0, 3) == (36.0, 27.0)
    assert isinstance(gradient, Dispatcher)
    assert gradient.signatures == [(float64, float64, int64)]
    assert gradient.nopython_signatures
    assert "define" in gradient.inspect_llvm(gradient.signatures[0])
    assert gradient.inspect_asm(gradient.signatures[0])
    shown = io.StringIO()
    gradient.inspect_types(file=shown)
    assert "cubic_grad" in shown.getvalue()
    assert gradient.stats.cache_hits == {}
    assert gradient.__name__ == "cubic_grad"
    assert "gradient" in (gradient.__doc__ or "")
    assert str(inspect.signature(gradient)) == "(x, y=2.0, n=3)"


@pytest.mark.parametrize(
    ("args", "keywords"), [((3.0,), {}), ((3.0, 2.0), {}), ((3.0,), {"n": 3}), ((3.0,), {"n": 3, "y": 2.0}), ((), {"y": 2.0, "x": 3.0})]
)
def test_positional_keyword_and_default_arguments(args: Any, keywords: Any) -> None:
    for f in (cubic, njit(cubic), nr.njit_grad(cubic)):
        assert nr.grad(f)(*args, **keywords) == 36.0
        assert nr.value_and_grad(f, argnums=0)(*args, **keywords) == (54.0, 36.0)


def test_calls_from_jitted_code() -> None:
    gradient = nr.grad(cubic)

    @njit
    def caller(x):
        return gradient(x) + gradient(x, n=1) + gradient(y=1.0, x=x)

    assert caller(3.0) == 36.0 + 12.0 + 18.0


def test_argnums() -> None:
    for argnums, expected in [(0, 36.0), (-3, 36.0), (1, 27.0), (-2, 27.0), ((1, 0), (27.0, 36.0)), ([0], (36.0,)), (np.int64(1), 27.0)]:
        assert nr.grad(cubic, argnums)(3.0, 2.0, 3) == expected
        assert nr.value_and_grad(cubic, argnums=argnums)(3.0, 2.0, 3) == (54.0, expected)


def test_a_function_with_any_number_of_arguments() -> None:
    def total(x, *rest):
        for r in rest:
            x = x * r
        return x

    assert nr.grad(total)(2.0, 3.0, 4.0) == 12.0
    assert nr.grad(total, argnums=1)(2.0, 3.0, 4.0) == (8.0, 6.0)


def test_an_argument_by_keyword_only() -> None:
    def scaled(x, *, k=2.0):
        return k * x

    assert nr.grad(scaled)(1.0) == 2.0
    assert nr.grad(scaled)(1.0, k=3.0) == 3.0


def test_another_jitted_function_as_an_argument() -> None:
    @njit
    def double(v):
        return 2.0 * v

    @njit
    def square(v):
        return v * v

    def apply(f, x):
        return f(x) * x

    gradient = nr.grad(apply, argnums=1)
    assert gradient(double, 3.0) == 12.0
    assert gradient(square, 3.0) == 27.0
    assert gradient(decorated_of_one, 3.0) == 27.0

    @njit
    def caller(x):
        return gradient(square, x)

    assert caller(3.0) == 27.0


@nr.njit_grad
def decorated_of_one(x):
    return x * x


class Point(NamedTuple):
    x: float
    n: int


def test_structure_of_gradients() -> None:
    def f(p, w):
        return p.x * p.n + w[0].sum()

    g, h = nr.grad(f, argnums=(0, 1))(Point(1.5, 3), (np.ones(2, np.float32), 1))
    assert g == Point(3.0, None)
    assert h[0].dtype == np.float32
    assert h[0].tolist() == [1.0, 1.0]
    assert h[1] is None


def test_recompile_sees_what_changed() -> None:
    module = ModuleType("test_api_recompile")
    exec("k = 2.0\ndef f(x):\n    return k * x\n", module.__dict__)
    f = nr.njit_grad(module.f)
    assert f.grad(1.0) == 2.0
    module.k = 5.0
    assert f.grad(1.0) == 2.0
    f.grad.recompile()
    assert f.grad(1.0) == 5.0
    module.k = 7.0
    f.recompile()
    assert (f(1.0), f.grad(1.0)) == (7.0, 7.0)


# ---------------------------------------------------------------------------------------------- each gradient once


def test_the_same_gradient_is_one_dispatcher() -> None:
    for f in (cubic, jitted, decorated):
        assert nr.grad(f) is nr.grad(f, 0)
        assert nr.grad(f) is nr.grad(f, argnums=0)
        assert nr.grad(f) is not nr.value_and_grad(f)
        assert nr.grad(f) is not nr.grad(f, (0,))
    assert nr.grad(cubic, -3) is nr.grad(cubic, 0)
    assert nr.grad(decorated) is decorated.grad
    assert nr.grad(njit(cubic)) is not nr.grad(cubic)


def test_a_copied_attribute_is_not_taken_for_ones_own() -> None:
    nr.grad(cubic)

    @functools.wraps(cubic)
    def other(x, y=2.0, n=3):
        return 5.0 * x

    assert nr.grad(other)(1.0) == 5.0
    assert nr.grad(njit(other))(1.0) == 5.0


def test_gradients_go_with_their_function() -> None:
    def make() -> tuple[weakref.ref[Any], ...]:
        def f(x):
            return x * x

        jitted = njit(f)
        found = (nr.grad(f), nr.grad(jitted))
        for gradient in found:
            assert gradient(2.0) == 4.0
        return (weakref.ref(f), weakref.ref(jitted), *map(weakref.ref, found))

    refs = make()
    gc.collect()
    assert [r() for r in refs] == [None] * len(refs)


def test_a_gradient_keeps_its_function() -> None:
    gradient = nr.grad(lambda x: x * x)
    gc.collect()
    assert gradient(2.0) == 4.0


# ---------------------------------------------------------------------------------------------- identity


def test_functions_of_one_name_do_not_collide() -> None:
    def make(k):
        def f(x):
            return k * x

        return f

    two, three = nr.grad(make(2.0)), nr.grad(make(3.0))

    @njit
    def both(x):
        return two(x), three(x)

    assert (two(1.0), three(1.0), both(1.0)) == (2.0, 3.0, (2.0, 3.0))
    names = {d.overloads[d.signatures[0]].fndesc.mangled_name for d in (two, three, nr.value_and_grad(jitted)) if d.signatures}
    assert len(names) == 2


def test_functions_of_one_name_in_two_modules(tmp_path: Path) -> None:
    found = []
    for name, k in (("one", 2.0), ("two", 3.0)):
        path = tmp_path / name / "model.py"
        path.parent.mkdir()
        path.write_text(f"import numbarules as nr\n@nr.njit_grad\ndef loss(x):\n    return {k} * x\n")
        spec = importlib.util.spec_from_file_location("model", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(module.loss.grad(1.0))
    assert found == [2.0, 3.0]


def test_a_stub_is_not_the_primal() -> None:
    gradient = nr.grad(decorated)
    assert gradient.py_func is not decorated.py_func
    assert gradient.overloads is not decorated.overloads
    assert (gradient(3.0, 2.0), decorated(3.0, 2.0)) == (12.0, 18.0)


@nr.njit_grad
def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


def test_a_function_that_calls_itself() -> None:
    assert power.grad(2.0, 3) == 12.0
    assert power(2.0, 3) == 8.0
    assert nr.value_and_grad(power)(3.0, 2) == (9.0, 6.0)


# ---------------------------------------------------------------------------------------------- pickling


def copies(value: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(value)), cloudpickle.loads(cloudpickle.dumps(value))]


def test_pickled_gradients_are_the_same_here() -> None:
    for f in (nr.grad(decorated), nr.value_and_grad(jitted), decorated, nr.grad(cubic, (0, 1))):
        for copy in copies(f):
            assert copy is f


def in_new_process(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOAD = """
    import pickle, sys
    from pathlib import Path
    f = pickle.loads(Path(sys.argv[1]).read_bytes())
    again = pickle.loads(Path(sys.argv[1]).read_bytes())
    print(f is again, f(3.0))
"""


def test_pickled_closures_in_another_process(tmp_path: Path) -> None:
    k = 2.0

    def local(x):
        return k * x * x

    path = tmp_path / "f.pickle"
    path.write_bytes(pickle.dumps(nr.grad(local)))
    assert in_new_process(LOAD, str(path)) == "True 12.0"
    f = nr.njit_grad(local, fastmath=True)
    path.write_bytes(pickle.dumps(f.value_and_grad))
    assert in_new_process(LOAD, str(path)) == "True (18.0, 12.0)"
    path.write_bytes(pickle.dumps(f))
    assert in_new_process(LOAD.replace("f(3.0)", "f(3.0), f.grad(3.0)"), str(path)) == "True 18.0 12.0"


def test_a_spawned_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spawned_model.py").write_text("import numbarules as nr\n@nr.njit_grad\ndef loss(x):\n    return x * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    model = importlib.import_module("spawned_model")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(model.loss.grad, [1.0, 3.0])) == [2.0, 6.0]
        assert pool.submit(model.loss, 3.0).result() == 9.0
        assert pool.submit(nr.value_and_grad(model.loss.py_func), 3.0).result() == (9.0, 6.0)


# ---------------------------------------------------------------------------------------------- threads


def test_threads() -> None:
    @nr.njit_grad(nogil=True)
    def product(x, n):
        total = 1.0
        for i in range(n):
            total = total * x[i % x.size] + x[0] * total * 1e-3
        return total

    n = 20_000
    inputs = [np.full(3, 1.0) + 1e-6 * i for i in range(8)]
    expected = [product.grad(x, n) for x in inputs]
    start = threading.Barrier(4)

    def work(k: int) -> list[bool]:
        start.wait()
        return [bool(np.array_equal(product.grad(inputs[(i + k) % 8], n), expected[(i + k) % 8])) for i in range(40)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(all(found) for found in pool.map(work, range(4)))


def test_threads_that_compile_at_once() -> None:
    def f(x):
        return x * x * x

    start = threading.Barrier(4)

    def work(_: int) -> tuple[Any, float]:
        start.wait()
        gradient = nr.grad(f)
        return gradient, gradient(2.0)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert {value for _, value in found} == {12.0}
    assert len({id(gradient) for gradient, _ in found}) == 1


# ---------------------------------------------------------------------------------------------- pullbacks


def test_a_pullback_outlives_its_arguments_and_is_called_again() -> None:
    def f(x, k, n):
        x = x * x
        for i in range(n):
            x = x * k
        return x, k

    x = np.array([1.0, 2.0])
    (y, _), pullback = nr.vjp(f, x, 3.0, 2)
    assert y.tolist() == [9.0, 36.0]
    y[:] = x[:] = -1.0
    for _ in range(2):
        xbar, kbar, nbar = pullback((np.array([1.0, 1.0]), 0.5))
        assert xbar.tolist() == [18.0, 36.0]
        assert kbar == 6.0 + 24.0 + 0.5
        assert nbar is None
        xbar[:] = 0.0


def test_cotangents_are_cast_and_not_changed() -> None:
    def f(x):
        return x * np.float32(2.0)

    _, pullback = nr.vjp(f, np.ones((2, 2), np.float32, order="F"))
    ybar = np.array([[1.0, 2.0], [3.0, 4.0]])[::-1]
    kept = ybar.copy()
    (xbar,) = pullback(ybar)
    assert xbar.dtype == np.float32
    assert np.array_equal(xbar, 2.0 * kept)
    assert np.array_equal(ybar, kept)
    assert np.array_equal(pullback([[1, 1], [1, 1]])[0], np.full((2, 2), 2.0))


def test_default_arguments_of_vjp() -> None:
    y, pullback = nr.vjp(cubic, 3.0)
    assert y == 54.0
    assert pullback(1.0) == (36.0, 27.0, None)


def test_types_are_importable() -> None:
    assert isinstance(decorated._numba_type_, types.Dispatcher)
