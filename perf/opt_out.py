"""What opting out is worth: `python -m perf.opt_out [--quick] [names ...]`, part of `make perf`.

Each scenario of `perf/scenarios/` is measured over sizes from 16 as `value_and_grad` under the generic rule (its dense cotangents
projected), under the same rule with the decision made at run time, opted out by type inference, without any rule, and as the derivative
written by hand. One process; in each round all variants are called in turn; the figures are medians of the rounds' ratios to the
hand-written derivative, with their range. All gradients are first compared with the hand-written one. A variant whose call takes longer
than the budget at one size is not measured at larger ones.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.core.errors import NumbaPerformanceWarning

import numbarules as nr
from perf import common
from perf.scenarios import SCENARIOS, WAYS, Scenario, registered

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = (16, 64, 256, 1024)
MEASURED = ("generic", "branch", "opt_out", "no rule")
BUDGET = 2.0  # seconds a call
assert set(MEASURED) <= set(WAYS)


def leaves(value: Any) -> list[Any]:
    """The numbers and arrays that a gradient is made of."""
    made = getattr(value, "__numbarules_struct__", None)
    items = value if isinstance(value, tuple) else [getattr(value, f) for f in made.fields] if made is not None else None
    return [np.asarray(value, float)] if items is None else [leaf for item in items for leaf in leaves(item)]


def variants(scenario: Scenario) -> dict[str, Any]:
    """The compiled gradients by variant; the reason where there is none."""
    found: dict[str, Any] = {}
    args = scenario.arguments(SIZES[0])
    expected = leaves(scenario.hand(*args))
    for way in MEASURED:
        with registered(scenario, way):
            gradient = nr.value_and_grad(njit(scenario.program.py_func), argnums=scenario.argnums)
            try:
                found[way] = compiled(gradient, args)
            except nr.NumbarulesError as error:
                found[way] = str(error).splitlines()[0].replace(f"{RESULTS.parent.parent}/", "")
                continue
        error = common.compare(leaves(found[way](*args)), expected)
        assert error < 1e-8, f"{scenario.name}, {way}: off by {error}"
    found["hand"] = compiled(scenario.hand, args)
    return found


def compiled(function: Any, args: tuple[Any, ...]) -> Any:
    """The code of a jitted function at the types of these arguments, called past its dispatcher: a gradient's is reset with the table."""
    function(*args)
    made = function.overloads[tuple(map(numba.typeof, args))]
    return made.entry_point


def measured(scenario: Scenario, rounds: int, target: float) -> list[dict[str, Any]]:
    """One row a size."""
    calls = variants(scenario)
    too_slow: set[str] = set()
    rows = []
    for n in (size for size in SIZES if size <= scenario.largest):
        args = scenario.arguments(n)
        thunks = {k: partial(f, *args) for k, f in calls.items() if not isinstance(f, str) and k not in too_slow}
        times = common.timings(thunks, rounds=rounds, target=target, max_total=30.0)
        row: dict[str, Any] = {"scenario": scenario.name, "n": n, "hand [us]": 1e6 * common.summary(times["hand"])["med"]}
        for k, seconds in times.items():
            if k != "hand":
                row[k] = common.ratio(seconds, times["hand"])
            if min(seconds) > BUDGET / 4:  # four times as long, or more, at the next size
                too_slow.add(k)
        rows.append(row)
    for k, reason in calls.items():
        if isinstance(reason, str):
            rows[-1][f"{k} refused"] = reason
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """A Markdown table of the ratios, with their ranges."""

    def cell(ratio: dict[str, float] | None) -> str:
        return "-" if ratio is None else f"{ratio['med']:.3g} ({ratio['lo']:.3g}-{ratio['hi']:.3g})"

    lines = [f"| scenario | n | hand [us] | {' | '.join(MEASURED)} |", "|---|---|---|" + "---|" * len(MEASURED)]
    lines += [f"| {r['scenario']} | {r['n']} | {r['hand [us]']:.3g} | {' | '.join(cell(r.get(k)) for k in MEASURED)} |" for r in rows]
    return "\n".join(lines)


def summary(rows: list[dict[str, Any]]) -> str:
    """The geometric mean at the largest sizes, and where opting out loses."""
    last = {r["scenario"]: r for r in rows}
    paying = [s.name for s in SCENARIOS if s.pays and s.name in last]
    mean = math.exp(sum(math.log(last[k]["opt_out"]["med"]) for k in paying) / len(paying)) if paying else math.nan
    everything = math.exp(sum(math.log(r["opt_out"]["med"]) for r in last.values()) / len(last))
    means = f"{everything:.2f} over all {len(last)} scenarios (at most 1.1), {mean:.2f} over the {len(paying)} that are meant to pay"
    lines = [f"Opted out over hand-written at the largest size, geometric means: {means}."]
    for name, row in last.items():
        if "generic" in row and row["opt_out"]["med"] > 1.5 * row["generic"]["med"]:
            lines.append(f"Opting out loses by {row['opt_out']['med'] / row['generic']['med']:.2g} in `{name}`.")
        lines += [f"`{name}`, {k}: {v}" for k, v in row.items() if k.endswith("refused")]
    return "\n\n".join(lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """The ratios over the sizes, one panel a scenario."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r["scenario"] for r in rows))
    figure, axes = plt.subplots(math.ceil(len(names) / 4), 4, figsize=(15, 3.2 * math.ceil(len(names) / 4)), squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        own = [r for r in rows if r["scenario"] == name]
        for k in MEASURED:
            points = [(r["n"], r[k]["med"]) for r in own if k in r]
            if points:
                ax.loglog(*zip(*points, strict=True), marker="o", label=k)
        ax.axhline(1.0, color="grey", linewidth=0.8)
        ax.set_title(name, fontsize=9)
    for ax in list(axes.flat)[len(names) :]:
        ax.set_axis_off()
    axes.flat[0].legend(fontsize=7)
    figure.supxlabel("n")
    figure.supylabel("time over the hand-written derivative")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Prints the table; a full run keeps it in `perf/results`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of scenario names; all by default")
    parser.add_argument("--quick", action="store_true", help="few and short rounds; nothing is written")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NumbaPerformanceWarning)
    rows: list[dict[str, Any]] = []
    for scenario in SCENARIOS:
        if not options.names or any(n in scenario.name for n in options.names):
            rows += measured(scenario, *((3, 0.005) if options.quick else (11, 0.02)))
            print(as_text(rows[-1:]).splitlines()[-1], flush=True)
    text = f"{as_text(rows)}\n\n{summary(rows)}\n"
    print(text)
    if not options.quick and not options.names:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "opt_out.md").write_text(text, encoding="utf-8")
        (RESULTS / "opt_out.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        plot(rows, RESULTS / "opt_out.png")


if __name__ == "__main__":
    main()
