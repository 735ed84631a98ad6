"""Gradients against hand-written adjoints: time, latency and memory of every kernel. `make perf`, or `python -m perf.run_kernels --help`.

Time: one process; in each of at least nine rounds the primal, `value_and_grad`, `grad` and the hand-written adjoints are called in turn.
A ratio is the median of the rounds' ratios, with its range. Every gradient is first compared with the hand-written one (with central
differences along random directions where there is none).

Latency: the time to the first gradient (making `value_and_grad` and its first call, less a later call) over Numba's compile time of the
primal at the same types. Cold: each of the two in a fresh process that has imported its modules and compiled nothing, so that the gradient
has to compile all that it needs. Warm: in a process that has compiled another primal and its gradient, the primal is compiled, then the
gradient.

Memory: rise of the peak resident set in a fresh process during one call, compiled before by a call at a small size; the kernel counts
resident pages to within about a quarter of a MiB, so kernels with small records are run larger (`MEMORY_SIZE`). Recorded is the gradient's
rise, less the primal's, less the gradients returned.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from perf import common
from perf.kernels import KERNELS
from perf.own_kernels import OWN_KERNELS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "perf" / "results"
ALL: dict[str, dict[str, Any]] = {**KERNELS, **OWN_KERNELS}
JACOBIAN = "h_ba"  # its result is an array: judged by `vjp`, reported, not counted
SCALAR = [name for name in KERNELS if name != JACOBIAN]
# Targets of the project, printed next to what was measured.
MAX_OVER_HAND, MAX_WORST, MAX_COLD, MAX_WARM = 1.3, 2.0, 8.0, 5.0
COMPILES_LONG_ENOUGH = 0.1  # seconds; the latency means are over the primals that take at least this

# What an iteration of a yardstick kernel has to leave behind, beyond the primal's memory and the gradients returned: (iterations, bytes).
NEED: dict[str, Callable[[Any], tuple[float, float]]] = {
    "a_sumsin": lambda n: (n, 0.0),  # each term is a function of the arguments
    "b_logistic": lambda n: (n, 0.0),
    "c_rosen": lambda n: (n, 0.0),
    "d_lv": lambda n: (n, 16.0),  # the two states a step starts from
    "e_heat": lambda n: (100 * n * n, 1.6),  # checkpoints and one segment, twice sqrt(100) grids; 8.0 without doing steps again
    "f_nbody": lambda n: (n * (n - 1) / 2, 0.0),
    "g_gmm_d10k5": lambda _: (1000, 0.0),  # each point is a function of the arguments
    "g_gmm_d20k25": lambda _: (1000, 0.0),
    "h_ba": lambda _: (31843, 0.0),
    "i_matchain": lambda n: (n * n, 0.0),  # R is there, and its cotangent takes its place
    "i_diag": lambda n: (n * n, 0.0),
}


MEMORY_SIZE = {"d_lv": 1_000_000, "lstm": 10_000, "kalman": 100_000, "soft_dtw": 2000}


# ---------------------------------------------------------------- kernels and their arguments


def arguments(name: str, size: Any = None) -> tuple[Any, ...]:
    kernel = ALL[name]
    return tuple(kernel["make"](kernel["size"] if size is None else size))


def small_arguments(name: str) -> tuple[Any, ...]:
    """Arguments of the same types that take next to no memory."""
    kernel = ALL[name]
    if name.startswith("g_"):
        args = arguments(name)
        return (*args[:3], args[3][:4].copy(), *args[4:])
    if name == JACOBIAN:
        cams, X, w, obs, feats = arguments(name)
        return (cams, X, w[:4].copy(), obs[:4].copy(), feats[:4].copy())
    if name in OWN_KERNELS:
        return tuple(kernel["make"](kernel["small"]))
    return tuple(kernel["make"](8))


def iterations_and_need(name: str) -> tuple[float, float]:
    kernel = ALL[name]
    size = MEMORY_SIZE.get(name, kernel["size"])
    if name in OWN_KERNELS:
        return kernel["iterations"](size), kernel["need"](size)
    return NEED[name](size)


def gradient_call(name: str) -> Callable[..., Any]:
    """The gradient of a kernel as one call on its arguments: (value, gradients); for the Jacobian kernel one `vjp` with ones."""
    import numbarules as nr

    kernel = ALL[name]
    if name != JACOBIAN:
        call: Callable[..., Any] = nr.value_and_grad(kernel["primal"], argnums=kernel["wrt"])
        return call

    def vjp_call(*args: Any) -> Any:
        y, pullback = nr.vjp(kernel["primal"], *args)
        return y, pullback(np.ones_like(y))

    return vjp_call


# ---------------------------------------------------------------- right?


def jacobian_pulled_back(args: tuple[Any, ...], ybar: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The cotangents of cameras, points and weights, from the hand-written Jacobian blocks of the bundle adjustment kernel."""
    cams, X, w, obs, _ = args
    _, (J, jw) = KERNELS[JACOBIAN]["hand"](*args)
    p = len(w)
    blocks = np.einsum("pr,prk->pk", ybar[: 2 * p].reshape(p, 2), J)
    cbar, xbar = np.zeros_like(cams), np.zeros_like(X)
    np.add.at(cbar, obs[:, 0], blocks[:, :11])
    np.add.at(xbar, obs[:, 1], blocks[:, 11:14])
    return [cbar, xbar, blocks[:, 14] + jw * ybar[2 * p :]]


def worst_against_differences(name: str, args: tuple[Any, ...], grads: tuple[Any, ...]) -> float:
    """Worst relative error of directional derivatives along three random directions in all differentiated arguments."""
    kernel = ALL[name]
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(3):
        directions = [rng.standard_normal(np.shape(args[i])) for i in kernel["wrt"]]
        exact = sum(float(np.sum(d * g)) for d, g in zip(directions, grads, strict=True))
        step = 1e-6

        def at(sign: int, directions: list[Any] = directions, step: float = step) -> float:
            moved = list(args)
            for i, d in zip(kernel["wrt"], directions, strict=True):
                moved[i] = args[i] + sign * step * d
            return float(kernel["primal"](*moved))

        estimate = (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)
        worst = max(worst, abs(exact - estimate) / max(1.0, abs(exact)))
    return worst


def check(name: str, args: tuple[Any, ...]) -> float:
    """The worst relative error of the gradient; raises if the value or the gradient is wrong."""
    kernel = ALL[name]
    value, grads = gradient_call(name)(*args)
    if name == JACOBIAN:
        error = common.compare([g for g in grads if g is not None][:3], jacobian_pulled_back(args, np.ones_like(value)))
        tolerance = 1e-9
    elif "hand" in kernel:
        error, tolerance = common.compare(grads, kernel["hand"](*args)[1]), 1e-9
    else:
        error, tolerance = worst_against_differences(name, args, grads), 1e-5
    np.testing.assert_allclose(value, kernel["primal"](*args), rtol=1e-10)
    if not error <= tolerance:
        raise AssertionError(f"{name}: the gradient is wrong, relative error {error:.1e}")
    return error


# ---------------------------------------------------------------- time


def time_kernel(name: str, rounds: int, target: float) -> dict[str, Any]:
    """Medians and ratios of one kernel, all of its functions interleaved."""
    import numbarules as nr

    kernel = ALL[name]
    args = arguments(name)
    error = check(name, args)
    functions: dict[str, Callable[..., Any]] = {"primal": kernel["primal"], "value_and_grad": gradient_call(name)}
    if name != JACOBIAN:
        functions["grad"] = nr.grad(kernel["primal"], argnums=kernel["wrt"])
    for hand in ("hand", "handg"):
        if hand in kernel:
            functions[hand] = kernel[hand]
    thunks = {key: (lambda f=f: f(*args)) for key, f in functions.items()}
    seconds = common.timings(thunks, rounds=rounds, target=target, max_total=1e9)
    ratios = {"value_and_grad/primal": common.ratio(seconds["value_and_grad"], seconds["primal"])}
    if "grad" in seconds:
        ratios["grad/primal"] = common.ratio(seconds["grad"], seconds["primal"])
    if "hand" in seconds:
        ratios["value_and_grad/hand"] = common.ratio(seconds["value_and_grad"], seconds["hand"])
        ratios["hand/primal"] = common.ratio(seconds["hand"], seconds["primal"])
        if "grad" in seconds:
            ratios["grad/handg"] = common.ratio(seconds["grad"], seconds.get("handg", seconds["hand"]))
    return {"error": error, "seconds": {key: common.summary(s) for key, s in seconds.items()}, "ratios": ratios}


# ---------------------------------------------------------------- latency and memory: fresh processes


def in_fresh_process(task: str, name: str) -> Any:
    """What the function `task` of this module returns for a kernel, in a process of its own."""
    # A fixed threshold: by default glibc raises it after a large free, and later records would reuse memory already counted.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-m", "perf.run_kernels", "--task", task, name]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{task} of {name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compile_primal(name: str) -> float:
    from numba import typeof

    args = arguments(name)
    start = time.perf_counter()
    ALL[name]["primal"].compile(tuple(typeof(a) for a in args))
    return time.perf_counter() - start


def first_gradient(name: str) -> float:
    import numbarules  # noqa: F401 - importing is timed apart

    args = small_arguments(name)
    start = time.perf_counter()
    call = gradient_call(name)
    call(*args)
    first = time.perf_counter() - start
    start = time.perf_counter()
    call(*args)
    return first - (time.perf_counter() - start)


def warm(name: str) -> dict[str, float]:
    other = "d_lv" if name != "d_lv" else "c_rosen"
    compile_primal(other)
    first_gradient(other)
    return {"primal": compile_primal(name), "gradient": first_gradient(name)}


def import_time(_: str) -> float:
    import numba  # noqa: F401 - importing is what is measured

    start = time.perf_counter()
    import numbarules  # noqa: F401 - importing is what is measured

    return time.perf_counter() - start


def latency(name: str, rounds: int) -> dict[str, float]:
    """Seconds, medians over fresh processes."""
    primal, gradient, warms = [], [], []
    for _ in range(rounds):
        primal.append(in_fresh_process("compile_primal", name))
        gradient.append(in_fresh_process("first_gradient", name))
        warms.append(in_fresh_process("warm", name))
    return {
        "primal": float(np.median(primal)),
        "gradient": float(np.median(gradient)),
        "warm_primal": float(np.median([w["primal"] for w in warms])),
        "warm_gradient": float(np.median([w["gradient"] for w in warms])),
        "cold": float(np.median(gradient) / np.median(primal)),
        "warm": float(np.median([w["gradient"] / w["primal"] for w in warms])),
    }


def peak(name: str, call: Callable[..., Any]) -> int | None:
    call(*small_arguments(name))
    args = arguments(name, MEMORY_SIZE.get(name))
    ctypes.CDLL(None).malloc_trim(0)
    rise: int | None = common.peak_memory(lambda: call(*args))
    return rise


def peak_primal(name: str) -> int | None:
    return peak(name, ALL[name]["primal"])


def peak_gradient(name: str) -> int | None:
    return peak(name, gradient_call(name))


def peak_hand(name: str) -> int | None:
    return peak(name, ALL[name]["hand"])


def memory(name: str) -> dict[str, float | None]:
    """Bytes recorded by one call, and for each iteration, next to the hand-written adjoint and the need."""
    kernel = ALL[name]
    primal, gradient = in_fresh_process("peak_primal", name), in_fresh_process("peak_gradient", name)
    hand = in_fresh_process("peak_hand", name) if "hand" in kernel and name != JACOBIAN else None
    iterations, need = iterations_and_need(name)
    if primal is None or gradient is None:  # no /proc/self/clear_refs
        return {"recorded": None, "hand": None, "iterations": iterations, "need": need}
    args = arguments(name, MEMORY_SIZE.get(name))
    returned = sum(np.asarray(args[i]).nbytes for i in kernel["wrt"])
    return {
        "recorded": max(0, gradient - primal - returned),
        "hand": None if hand is None else max(0, hand - primal - returned),
        "iterations": iterations,
        "need": need,
    }


TASKS = {f.__name__: f for f in (compile_primal, first_gradient, warm, import_time, peak_primal, peak_gradient, peak_hand)}


# ---------------------------------------------------------------- report


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def machine() -> dict[str, str]:
    import numba

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")), cpu)
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "blas threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
    }


def spread(ratio: dict[str, float] | None) -> str:
    return f"{ratio['med']:.2f} ({ratio['lo']:.2f}-{ratio['hi']:.2f})" if ratio else "-"


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def time_table(rows: dict[str, dict[str, Any]]) -> list[str]:
    columns = ["value_and_grad/primal", "value_and_grad/hand", "grad/primal", "grad/handg", "hand/primal"]
    lines = ["| kernel | primal | " + " | ".join(columns) + " | error |", "|---" * (len(columns) + 3) + "|"]
    for name, row in rows.items():
        cells = [spread(row["ratios"].get(c)) for c in columns]
        lines.append(f"| {name} | {duration(row['seconds']['primal']['med'])} | " + " | ".join(cells) + f" | {row['error']:.0e} |")
    return lines


def latency_table(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| kernel | primal, cold | first gradient, cold | ratio | primal, warm | first gradient, warm | ratio |", "|---" * 7 + "|"]
    for name, row in rows.items():
        t = row["latency"]
        cold = f"{t['primal']:.2f} s | {t['gradient']:.2f} s | {t['cold']:.1f}"
        lines.append(f"| {name} | {cold} | {t['warm_primal']:.2f} s | {t['warm_gradient']:.2f} s | {t['warm']:.1f} |")
    return lines


def memory_table(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| kernel | iterations | recorded | per iteration | hand-written, per iteration | need, per iteration |", "|---" * 6 + "|"]
    for name, row in rows.items():
        m = row["memory"]
        each = ["-" if m[k] is None else f"{m[k] / m['iterations']:.1f} B" for k in ("recorded", "hand")]
        total = "-" if m["recorded"] is None else f"{m['recorded'] / 2**20:.2f} MiB"
        lines.append(f"| {name} | {m['iterations']:.0f} | {total} | {each[0]} | {each[1]} | {m['need']:.1f} B |")
    return lines


def verdict(good: bool) -> str:
    return "reached" if good else "NOT reached"


def acceptance(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The lines by which the project judges itself; each says over how many kernels it speaks."""
    lines = []
    over = {n: rows[n]["ratios"]["value_and_grad/hand"]["med"] for n in SCALAR if n in rows}
    if over:
        mean, worst = geometric_mean(list(over.values())), max(over, key=over.__getitem__)
        lines.append(
            f"value_and_grad / hand-written, geometric mean over {len(over)} of {len(SCALAR)} scalar kernels: {mean:.2f}"
            f" (at most {MAX_OVER_HAND}), worst {worst} {over[worst]:.2f} (at most {MAX_WORST}):"
            f" {verdict(mean <= MAX_OVER_HAND and over[worst] <= MAX_WORST)}"
        )
    timed = [row["latency"] for row in rows.values() if "latency" in row]
    if timed:
        cold = [t["cold"] for t in timed if t["primal"] >= COMPILES_LONG_ENOUGH]
        hot = [t["warm"] for t in timed if t["warm_primal"] >= COMPILES_LONG_ENOUGH]
        a, b = geometric_mean(cold), geometric_mean(hot)
        lines.append(
            f"time to first gradient / compile time of the primal, geometric means over primals of at least {COMPILES_LONG_ENOUGH} s:"
            f" cold {a:.1f} over {len(cold)} (at most {MAX_COLD}), warm {b:.1f} over {len(hot)} (at most {MAX_WARM}):"
            f" {verdict(a <= MAX_COLD and (not hot or b <= MAX_WARM))}"
        )
    return lines


def report(rows: dict[str, dict[str, Any]]) -> str:
    lines = ["Ratios are medians of the ratios of each round, with their range.", "", *time_table(rows)]
    with_latency = {n: r for n, r in rows.items() if "latency" in r}
    if with_latency:
        lines += ["", *latency_table(with_latency), "", *memory_table({n: r for n, r in rows.items() if "memory" in r})]
    return "\n".join([*lines, "", *acceptance(rows)])


def draw(rows: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(rows)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for shift, (key, colour) in zip((-0.2, 0.2), (("value_and_grad/hand", "C0"), ("value_and_grad/primal", "C1")), strict=True):
        at = [i + shift for i, n in enumerate(names) if key in rows[n]["ratios"]]
        r = [rows[n]["ratios"][key] for n in names if key in rows[n]["ratios"]]
        middle = np.array([x["med"] for x in r])
        whiskers = np.maximum(0.0, [middle - [x["lo"] for x in r], [x["hi"] for x in r] - middle])
        axes[0].bar(at, middle, 0.4, yerr=whiskers, color=colour, label=key)
    axes[0].axhline(MAX_OVER_HAND, color="C0", linestyle=":", label=f"target for the mean over hand-written, {MAX_OVER_HAND}")
    axes[0].set_title("time of a call (median and range of the rounds)")
    for shift, key, colour in ((-0.2, "cold", "C2"), (0.2, "warm", "C3")):
        at = [i + shift for i, n in enumerate(names) if "latency" in rows[n]]
        axes[1].bar(at, [rows[n]["latency"][key] for n in names if "latency" in rows[n]], 0.4, color=colour, label=key)
    axes[1].set_title("time to first gradient / compile time of the primal")
    for ax in axes:
        ax.set_xticks(range(len(names)), names, rotation=60, ha="right")
        ax.legend()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.run_kernels", description="Gradients against hand-written adjoints.")
    parser.add_argument("names", nargs="*", help="parts of kernel names; all kernels by default")
    parser.add_argument("--quick", action="store_true", help="short rounds, one fresh process a kernel")
    parser.add_argument("--no-cold", action="store_true", help="no fresh processes: neither latency nor memory")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(TASKS[options.task](options.names[0])))
        return 0
    chosen = [n for n in ALL if not options.names or any(part in n for part in options.names)]
    if not chosen:
        parser.error(f"no kernel matches; there are {', '.join(ALL)}")
    rows: dict[str, dict[str, Any]] = {}
    for name in chosen:
        rows[name] = time_kernel(name, rounds=9 if options.quick else 15, target=0.01 if options.quick else 0.04)
        print(name, spread(rows[name]["ratios"].get("value_and_grad/hand")), file=sys.stderr, flush=True)
    if not options.no_cold:
        for name in chosen:
            rows[name]["latency"] = latency(name, rounds=1 if options.quick else 3)
            rows[name]["memory"] = memory(name)
            print(name, f"cold {rows[name]['latency']['cold']:.1f}", file=sys.stderr, flush=True)
    text = report(rows)
    facts = machine()
    if not options.no_cold:
        facts["import numbarules, after numba"] = f"{in_fresh_process('import_time', chosen[0]):.2f} s"
    text = f"{text}\n\n" + "\n".join(f"- {key}: {value}" for key, value in facts.items())
    print(text)
    if options.names or options.quick or options.no_cold:
        print("\nA partial or quick run: perf/results is left as it is.")
        return 0
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "kernels.md").write_text(f"# Kernels\n\nWritten by `make perf`.\n\n{text}\n", encoding="utf-8")
    (RESULTS / "kernels.json").write_text(json.dumps({"machine": facts, "kernels": rows}, indent=1) + "\n", encoding="utf-8")
    draw(rows, RESULTS / "kernels.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
