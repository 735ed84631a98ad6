"""What the rule table costs: `python -m perf.dispatch [--quick]`, part of `make perf`.

- Latency: the time from a new jitted function to its first gradient with 0, 10, 100 and 1000 opt-outs registered for the function that it
  calls (for types that do not occur), interleaved; and the time of a call of a compiled gradient.
- Registration: the time to register and to remove a rule that touches none, and one that touches one, of 100 compiled gradients.
- Look-up: the time of a question that was not asked before, and of one that was, with 10, 1000 and 10^4 entries for one function.
"""

from __future__ import annotations

import argparse
import itertools
import json
import operator
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types

import numbarules as nr
from numbarules.rules.table import table

RESULTS = Path(__file__).resolve().parent / "results"
OPT_OUTS = (0, 10, 100, 1000)
ENTRIES = (10, 1000, 10_000)
_tags = itertools.count()


def tags(n: int) -> list[types.Type]:
    """Numba types that no program has."""
    return [types.Opaque(f"tag{next(_tags)}") for _ in range(n)]


def timed(function: Callable[[], Any]) -> float:
    """The seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def new_gradient() -> tuple[Callable[[], Any], Any]:
    """What makes and calls the gradient of a new function, which multiplies a matrix with a vector, and the gradient."""

    def loss(A, x):  # type: ignore[no-untyped-def]
        y = A @ x
        return (y * y).sum()

    primal = njit(loss)
    gradient = nr.grad(primal)
    A, x = np.ones((3, 3)), np.ones(3)
    primal(A, x)
    return lambda: gradient(A, x), gradient


def latency(rounds: int) -> list[dict[str, float]]:
    """First gradients and later calls under more and more opt-outs."""
    first: dict[int, list[float]] = {n: [] for n in OPT_OUTS}
    later: dict[int, list[float]] = {n: [] for n in OPT_OUTS}
    registered: dict[int, float] = {}
    new_gradient()[0]()  # what every process compiles once
    for _ in range(rounds):
        for n in OPT_OUTS:
            with nr.rule_scope():
                registered[n] = timed(lambda n=n: [nr.opt_out(operator.matmul, t, nr.AbstractVector) for t in tags(n)])  # type: ignore[misc]
                call, _ = new_gradient()
                first[n].append(timed(call))
                later[n].append(timed(lambda call=call: [call() for _ in range(2000)]) / 2000)  # type: ignore[misc]
    return [
        {
            "opt_outs": n,
            "first gradient [s]": statistics.median(first[n]),
            "over none": statistics.median(a / b for a, b in zip(first[n], first[0], strict=True)),
            "later call [us]": 1e6 * statistics.median(later[n]),
            "registering all [s]": registered[n],
        }
        for n in OPT_OUTS
    ]


def registration(gradients: int, rounds: int) -> list[dict[str, Any]]:
    """Registering and removing one entry while so many gradients are alive."""
    alive = [new_gradient() for _ in range(gradients)]
    for call, _ in alive:
        call()
    (tag,) = tags(1)
    found: list[dict[str, Any]] = []
    patterns = {"touches none": (tag, nr.AbstractVector), "touches all": (types.Array, types.Array)}
    for name, written in patterns.items():
        add, remove = [], []
        for _ in range(rounds):
            with ExitStack() as stack:
                stack.enter_context(nr.rule_scope())
                add.append(timed(lambda written=written: nr.opt_out(operator.matmul, *written)))  # type: ignore[misc]
                remove.append(timed(stack.close))
        found.append(
            {
                "gradients": gradients,
                "entry": name,
                "register [us]": 1e6 * statistics.median(add),
                "remove [us]": 1e6 * statistics.median(remove),
            }
        )
    return found


def lookups(rounds: int) -> list[dict[str, float]]:
    """Questions to a table with many entries for one function."""
    found = []
    for n in ENTRIES:
        with nr.rule_scope():
            for t in tags(n):
                nr.opt_out(operator.matmul, t, nr.AbstractVector)
            questions = [(t, types.float64[::1]) for t in tags(rounds)]
            new = [timed(lambda q=q: table.lookup(operator.matmul, q)) for q in questions]  # type: ignore[misc]
            again = [timed(lambda q=q: table.lookup(operator.matmul, q)) for q in questions]  # type: ignore[misc]
        found.append({"entries": n, "new question [us]": 1e6 * statistics.median(new), "asked before [us]": 1e6 * statistics.median(again)})
    return found


def measured(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """All three tables."""
    return {
        "latency": latency(2 if quick else 7),
        "registration": [*registration(0, 5), *registration(10 if quick else 100, 5 if quick else 15)],
        "look-up": lookups(20 if quick else 200),
    }


def as_text(rows: list[dict[str, Any]]) -> str:
    """A Markdown table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plot(tables: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Latency over opt-outs, look-ups over entries."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    rows = tables["latency"]
    left.plot([r["opt_outs"] for r in rows], [r["first gradient [s]"] for r in rows], marker="o")
    left.set_xscale("symlog", linthresh=10)
    left.set(xlabel="opt-outs registered for the function", ylabel="time to first gradient [s]", ylim=(0, None))
    rows = tables["look-up"]
    for column in ("new question [us]", "asked before [us]"):
        right.loglog([r["entries"] for r in rows], [r[column] for r in rows], marker="o", label=column)
    right.set(xlabel="entries for the function", ylabel="time [us]")
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Prints the tables; a full run keeps them in `perf/results`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds; nothing is written")
    options = parser.parse_args()
    tables = measured(options.quick)
    text = "\n\n".join(f"## {name}\n\n{as_text(rows)}" for name, rows in tables.items())
    print(text)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "dispatch.md").write_text(text + "\n", encoding="utf-8")
        (RESULTS / "dispatch.json").write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
        plot(tables, RESULTS / "dispatch.png")


if __name__ == "__main__":
    main()
