"""The disk cache of gradients: processes share it, and it notices what changed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from small_structs import Diag

import numbarules as nr
from numbarules.compile.identity import Unidentifiable, digest, engine_digest, rules_digest

ROOT = Path(__file__).resolve().parent.parent

MODEL = """
import numpy as np
from numba import njit
import numbarules as nr
import helper

@njit(cache=True)
def inner(v):
    return helper.outer(v) * helper.SCALE

@nr.njit_grad(cache=True)
def loss(x):
    total = 0.0
    for i in range(x.size):
        total = total * 0.5 + inner(x[i])
    return total
"""
HELPER = """
from numba import njit
SCALE = 1.0
@njit
def outer(v):
    return v * v
"""
X = "np.array([1.0, 2.0])"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def write(path: Path, code: str) -> None:
    path.write_text(textwrap.dedent(code))


def run(project: Path, code: str) -> list[str]:
    """What a new process prints, one that has the project's modules and cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(project / "cache"), "PYTHONPATH": f"{project}{os.pathsep}{ROOT}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # two versions of a file within a second
    code = f"import numpy as np, numbarules as nr\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=project)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


HITS = "print(sum(model.loss.grad.stats.cache_hits.values()), sum(model.loss.grad.stats.cache_misses.values()))"
COUNT = "print(sum({}.stats.cache_hits.values()))"
GRADIENT = f"import model\nprint(model.loss.grad({X}).tolist())\n{HITS}"


@pytest.mark.parametrize("first", ["primal", "gradient"])
def test_primal_and_gradient_in_both_orders(project: Path, first: str) -> None:
    calls = [f"print(model.loss({X}))", f"print(model.loss.grad({X}).tolist())", f"print(model.loss.value_and_grad({X})[0])"]
    if first == "gradient":
        calls.reverse()
    code = "\n".join(["import model", *calls])
    expected = ["4.5", "[1.0, 4.0]", "4.5"]
    for order in (code, code, "\n".join(["import model", *reversed(calls)])):
        assert sorted(run(project, order)) == sorted(expected)
    counts = "print([sum(d.stats.cache_hits.values()) for d in (model.loss, model.loss.grad, model.loss.value_and_grad)])"
    assert run(project, f"{code}\n{counts}")[-1] == "[1, 1, 1]"


def test_a_second_process_loads(project: Path) -> None:
    assert run(project, GRADIENT) == ["[1.0, 4.0]", "0 1"]
    assert run(project, GRADIENT) == ["[1.0, 4.0]", "1 0"]
    by_grad = f"import model\ng = nr.grad(model.loss)\nprint(g({X}).tolist())\nprint(g is model.loss.grad)\n{HITS}"
    assert run(project, by_grad)[1:] == ["True", "1 0"]


def test_a_cached_gradient_in_jitted_code(project: Path) -> None:
    caller = "@njit\ndef caller(x):\n    return model.loss.grad(x)[1] + model.loss(x)"
    code = f"import model\nfrom numba import njit\n{caller}\nprint(caller({X}))\n{HITS}"
    assert run(project, code) == ["8.5", "0 1"]
    assert run(project, code) == ["8.5", "1 0"]


CHANGES = {
    "the code of a callee's callee": (("helper.py", "return v * v", "return v * v * v"), "[1.5, 12.0]"),
    "a value in another module": (("helper.py", "SCALE = 1.0", "SCALE = 2.0"), "[2.0, 8.0]"),
    "the code of the primal": (("model.py", "total * 0.5", "total * 0.25"), "[0.5, 4.0]"),
    "the code of a callee": (("model.py", "helper.outer(v) *", "v + helper.outer(v) *"), "[1.5, 5.0]"),
}


@pytest.mark.parametrize("change", CHANGES, ids=list(CHANGES))
def test_what_changed_is_compiled_again(project: Path, change: str) -> None:
    (name, old, new), expected = CHANGES[change]
    assert run(project, GRADIENT) == ["[1.0, 4.0]", "0 1"]
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new))
    assert run(project, GRADIENT) == [expected, "0 1"]
    assert run(project, GRADIENT) == [expected, "1 0"]


def test_a_changed_rule_compiles_again(project: Path) -> None:
    write(project / "ruled.py", """
        import math
        import numbarules as nr
        @nr.njit_grad(cache=True)
        def f(x):
            return math.erf(x)
    """)
    call = f"import ruled\nprint(ruled.f.grad(0.0))\n{COUNT.format('ruled.f.grad')}"
    rule = "scalar_rule(math.erf, lambda y, x: {}, at=(0.5,), patterns=(types.float64,))"
    ruled = f"import math\nfrom numba import types\nfrom numbarules.rules import scalar_rule\n{rule}\n{call}"
    plain = run(project, call)
    assert float(plain[0]) == pytest.approx(2.0 / np.pi**0.5)
    assert run(project, call) == [plain[0], "1"]
    assert run(project, ruled.format(5.0)) == ["5.0", "0"]
    assert run(project, ruled.format(6.0)) == ["6.0", "0"]
    assert run(project, ruled.format(5.0)) == ["5.0", "1"]
    assert run(project, call) == [plain[0], "1"]


def test_a_rule_that_changes_after_a_gradient_was_loaded(project: Path) -> None:
    write(project / "later.py", """
        import numbarules as nr
        from numba import njit, types
        @njit
        def g(x):
            return x * x
        @nr.njit_grad(cache=True)
        def f(x):
            return g(x)
        def rule(x):
            return x * x, lambda ybar: 7.0 * ybar
    """)
    counts = "hits, misses = f.grad.stats.cache_hits.total(), f.grad.stats.cache_misses.total()"
    code = f"""
from later import *
print(f.grad(1.0))
with nr.rule_scope():
    nr.rrule(g)(rule)
    print(f.grad(1.0))
print(f.grad(1.0))
class Mine(nr.rules.patterns.Category): pass
nr.rules.register_category(Mine, types.float64)
print(f.grad(1.0))
{counts}
print(hits, misses)
"""
    assert run(project, code) == ["2.0", "7.0", "2.0", "2.0", "1 3"], "back from the rule, the first code is there"
    assert run(project, code) == ["2.0", "7.0", "2.0", "2.0", "4 0"]


def test_a_cached_caller_is_named_and_right(project: Path) -> None:
    write(project / "calls.py", """
        import numbarules as nr
        from numba import njit
        @njit
        def g(x):
            return x * x
        @nr.njit_grad
        def f(x):
            return g(x)
        @njit(cache=True)
        def caller(x):
            return f.grad(x)
        def rule(x):
            return x * x, lambda ybar: 7.0 * ybar
    """)
    code = """
import warnings
from calls import *
print(caller(1.0))
with nr.rule_scope(), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nr.rrule(g)(rule)
    print(caller(1.0), [w.category.__name__ for w in caught], "`caller`" in str(caught[0].message))
print(caller(1.0))
"""
    assert run(project, code) == ["2.0", "7.0 ['NumbarulesWarning'] True", "2.0"]


def test_closures_have_entries_of_their_own(project: Path) -> None:
    write(project / "closures.py", """
        import numbarules as nr
        def make(k):
            @nr.njit_grad(cache=True)
            def f(x):
                return k * x * x
            return f
    """)
    hits = "print([sum(f.grad.stats.cache_hits.values()) for f in fs])"
    code = f"import closures\nfs = [closures.make(k) for k in {{}}]\nprint([f.grad(1.0) for f in fs])\n{hits}"
    assert run(project, code.format("(1.0, 2.0)")) == ["[2.0, 4.0]", "[0, 0]"]
    assert run(project, code.format("(2.0, 3.0, 1.0)")) == ["[4.0, 6.0, 2.0]", "[1, 0, 1]"]


def test_argnums_and_options_have_entries_of_their_own(project: Path) -> None:
    write(project / "two.py", """
        import numbarules as nr
        def f(x, y):
            return x / y
    """)
    code = f"import two\nf = nr.njit_grad(cache=True{{}})(two.f)\ng = nr.grad(f, {{}})\nprint(g(1.0, 2.0))\n{COUNT.format('g')}"
    assert run(project, code.format("", 0)) == ["0.5", "0"]
    assert run(project, code.format("", 1)) == ["-0.25", "0"]
    assert run(project, code.format("", (0, 1))) == ["(0.5, -0.25)", "0"]
    assert run(project, code.format(", error_model='numpy'", 0)) == ["0.5", "0"]
    assert run(project, code.format("", 0)) == ["0.5", "1"]


def test_a_function_as_an_argument_is_not_cached_and_right(project: Path) -> None:
    write(project / "apply.py", """
        import numbarules as nr
        from numba import njit
        @njit
        def square(x):
            return x * x
        @nr.njit_grad(cache=True, argnums=1)
        def f(g, x):
            return g(x)
    """)
    for _ in range(2):
        assert run(project, "import apply\nprint(apply.f.grad(apply.square, 3.0))") == ["6.0"]


def test_recursion_with_a_cache(project: Path) -> None:
    write(project / "recursive.py", """
        import numbarules as nr
        @nr.njit_grad(cache=True)
        def power(x, n):
            if n == 0:
                return 1.0
            return x * power(x, n - 1)
    """)
    code = f"from recursive import power\nprint(power.grad(2.0, 3), power(2.0, 3))\n{COUNT.format('power.grad')}"
    assert run(project, code) == ["12.0 8.0", "0"]
    assert run(project, code) == ["12.0 8.0", "1"]


def test_exceptions_of_cached_gradients(project: Path) -> None:
    write(project / "raising.py", """
        import numbarules as nr
        @nr.njit_grad(cache=True)
        def f(x):
            if x[0] < 0:
                raise ValueError('negative', 3)
            return x[0] * x[0]
    """)
    failing = "try:\n    f.grad(np.array([-1.0]))\nexcept ValueError as e:\n    print(e.args)"
    code = f"from raising import f\n{failing}\nprint(f.grad(np.array([2.0])))"
    for _ in range(2):
        assert run(project, code) == ["('negative', 3)", "[4.]"]


# ---------------------------------------------------------------------------------------------- what the key is made of


@njit
def called(x):
    return CONSTANT * x


CONSTANT = 2.0
TABLE = np.arange(3.0)


def calling(x):
    return called(x) + TABLE[0]


def of(code: str, **values: Any) -> str:
    space: dict[str, Any] = {"__name__": "somewhere", "njit": njit, "np": np, **values}
    exec(code, space)
    return digest(space["f"])


def test_a_digest_is_that_of_content() -> None:
    code = "def f(x):\n    return k * x\n"
    assert of(code, k=2.0) == of("\n\n" + code, k=2.0) != of(code, k=3.0)
    assert of(code, k=2.0) != of(code, k=2)
    assert of(code, k=2.0, unused=1) == of(code, k=2.0)
    assert of(code, k=np.arange(3)) == of(code, k=np.arange(3)) != of(code, k=np.arange(4))
    assert of(code, k=(1, "a", (2.0,))) != of(code, k=(1, "b", (2.0,)))


def test_a_digest_follows_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(calling)
    assert digest(calling) == before
    monkeypatch.setitem(globals(), "CONSTANT", 3.0)
    changed = digest(calling)
    monkeypatch.setitem(globals(), "TABLE", np.ones(3))
    assert len({before, changed, digest(calling)}) == 3
    assert digest(njit(calling)) != digest(njit(fastmath=True)(calling))
    assert digest(nr.grad(calling)) != digest(nr.value_and_grad(calling))


def test_a_digest_of_functions_that_call_each_other() -> None:
    code = "@njit\ndef g(x):\n    return f(x)\n@njit\ndef f(x):\n    return {} if x < 0 else g(x - 1)\n"
    assert of(code.format("1.0")) == of(code.format("1.0")) != of(code.format("2.0"))


def test_what_has_no_content_is_said() -> None:
    with pytest.raises(Unidentifiable, match="`object`"):
        of("def f(x):\n    return k\n", k=object())


def test_engine_and_rules() -> None:
    assert engine_digest() == engine_digest()
    before = rules_digest()
    from numbarules.rules import opt_out, rule_scope

    with rule_scope():
        opt_out(called)
        assert rules_digest() != before
    assert rules_digest() == before


def test_rules_for_structs_have_a_digest() -> None:
    before = rules_digest()
    with nr.rule_scope():

        @nr.rrule(called)
        def _(x: Diag):
            return None

        with_struct = rules_digest()
        assert with_struct != before

        @nr.rrule(called, replace=True)
        def _(x: Diag):
            return Diag(x.diag), lambda ybar: ybar

        assert rules_digest() not in (before, with_struct)
