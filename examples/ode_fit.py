"""Fit an epidemic model to noisy case counts: the jitted gradient against finite differences, with the same optimiser.

The model is an SEIR epidemic in three age groups with seasonal transmission, integrated by the classical Runge-Kutta method. Its 13
parameters are the symmetric contact matrix between the groups (6), the strength and the phase of the seasons (2), the latent and the
infectious period (2), and the share of each group that carries the infection at the start (3). The data are two years of weekly new cases.

Run it with `make demo`; it prints the times and the fit, and saves `ode_fit.png` beside this file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.optimize import minimize

mpl.use("Agg")
import matplotlib.pyplot as plt
from numba import njit

import numbarules as nr

GROUPS = 3
NAMES = "contact 11,contact 12,contact 22,contact 13,contact 23,contact 33,season,phase,latent,infectious,seed 1,seed 2,seed 3".split(",")
TRUE = np.array([0.42, 0.10, 0.26, 0.06, 0.08, 0.16, 0.22, 0.9, 3.0, 5.0, 6e-4, 3e-4, 8e-4])
# Positive parameters are fitted by their logarithms; the phase, in radians, as it is.
LOGARITHMIC = np.array([name != "phase" for name in NAMES])
POPULATION = np.array([2.0e6, 5.0e6, 3.0e6])
WEEKS, STEPS_PER_DAY, WANING = 104, 4, 1.0 / 120.0


@njit
def flow(t, u, p, du):
    """Writes du/dt; u holds the shares S, E, I of each group and its cases so far."""
    season = 1.0 + p[6] * math.cos(2.0 * math.pi * t / 365.0 - p[7])
    for a in range(3):
        force = 0.0
        for b in range(3):
            i, j = max(a, b), min(a, b)
            force += p[i * (i + 1) // 2 + j] * u[b, 2]
        infected = season * force * u[a, 0]
        onset = u[a, 1] / p[8]
        immune = 1.0 - u[a, 0] - u[a, 1] - u[a, 2]
        du[a, 0] = WANING * immune - infected
        du[a, 1] = infected - onset
        du[a, 2] = onset - u[a, 2] / p[9]
        du[a, 3] = onset


@njit
def step(t, h, u, p, k, v):
    """One Runge-Kutta step of u in place; k (4, groups, 4) and v are work arrays."""
    flow(t, u, p, k[0])
    for s in range(1, 4):
        w = h if s == 3 else 0.5 * h
        for a in range(u.shape[0]):
            for c in range(u.shape[1]):
                v[a, c] = u[a, c] + w * k[s - 1, a, c]
        flow(t + w, v, p, k[s])
    for a in range(u.shape[0]):
        for c in range(u.shape[1]):
            u[a, c] += h / 6.0 * (k[0, a, c] + 2.0 * k[1, a, c] + 2.0 * k[2, a, c] + k[3, a, c])


@njit
def weekly_cases(p, weeks, population, cases):
    """Writes the expected new cases of each week and group."""
    groups = population.shape[0]
    u = np.zeros((groups, 4))
    v = np.empty_like(u)
    k = np.empty((4, groups, 4))
    for a in range(groups):
        u[a, 2] = p[10 + a]
        u[a, 0] = 1.0 - p[10 + a]
    h = 1.0 / STEPS_PER_DAY
    for week in range(weeks):
        for a in range(groups):
            u[a, 3] = 0.0
        for s in range(7 * STEPS_PER_DAY):
            step(7.0 * week + h * s, h, u, p, k, v)
        for a in range(groups):
            cases[week, a] = population[a] * u[a, 3]


@nr.njit_grad
def loss(theta, logarithmic, observed, population):
    """Mean squared distance of the square roots of expected and observed cases: counts have nearly constant variance there."""
    p = np.empty_like(theta)
    for i in range(theta.shape[0]):
        p[i] = math.exp(theta[i]) if logarithmic[i] else theta[i]
    weeks, groups = observed.shape
    cases = np.empty((weeks, groups))
    weekly_cases(p, weeks, population, cases)
    total = 0.0
    for week in range(weeks):
        for a in range(groups):
            total += (2.0 * math.sqrt(cases[week, a]) - 2.0 * math.sqrt(observed[week, a])) ** 2
    return total / (weeks * groups)


# At which types `numbarules check` looks at the loss.
__numbarules_check__ = [(loss, (TRUE, LOGARITHMIC, np.ones((WEEKS, GROUPS)), POPULATION))]


@dataclass(frozen=True)
class Fit:
    """What an optimiser found, how often it evaluated the model, and how long it took."""

    theta: np.ndarray[Any, Any]
    loss: float
    iterations: int
    evaluations: int
    seconds: float
    history: list[tuple[float, float]]


def fit(fun: Callable[..., Any], start: np.ndarray[Any, Any], args: tuple[Any, ...], *, jac: bool | str) -> Fit:
    """Minimises `fun` by BFGS; `jac` is True if `fun` returns (value, gradient), "2-point" for SciPy's finite differences."""
    history: list[tuple[float, float]] = []
    began = time.perf_counter()
    evaluations = 0

    def counted(theta: np.ndarray[Any, Any]) -> Any:
        nonlocal evaluations
        evaluations += 1
        result = fun(theta, *args)
        value = result[0] if jac is True else result
        history.append((time.perf_counter() - began, min(value, history[-1][1] if history else math.inf)))
        return result

    found = minimize(counted, start, jac=jac, method="BFGS", options={"maxiter": 400, "gtol": 1e-5})
    return Fit(found.x, float(found.fun), int(found.nit), evaluations, time.perf_counter() - began, history)


def parameters(theta: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(LOGARITHMIC, np.exp(theta), theta)


def timed(call: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call(*args)
    return result, time.perf_counter() - start


def draw(observed: np.ndarray[Any, Any], fits: dict[str, Fit], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    expected = np.empty_like(observed)
    weekly_cases(parameters(fits["jitted gradient"].theta), WEEKS, POPULATION, expected)
    for a in range(GROUPS):
        left.plot(observed[:, a], ".", color=f"C{a}", markersize=4)
        left.plot(expected[:, a], color=f"C{a}", label=f"age group {a + 1}")
    left.set(xlabel="week", ylabel="new cases", title="data and fit", yscale="log")
    left.legend()
    for name, f in fits.items():
        right.plot(*np.array(f.history).T, label=f"{name}, {f.seconds:.2f} s")
    right.set(xlabel="seconds", ylabel="loss", title="the same optimiser", xscale="log", yscale="log")
    right.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    rng = np.random.default_rng(7)
    expected = np.empty((WEEKS, GROUPS))
    weekly_cases(TRUE, WEEKS, POPULATION, expected)
    observed = rng.poisson(expected).astype(np.float64)
    truth = np.where(LOGARITHMIC, np.log(np.where(LOGARITHMIC, TRUE, 1.0)), TRUE)
    start = truth + rng.uniform(-0.25, 0.25, len(truth))
    args = (LOGARITHMIC, observed, POPULATION)
    print(f"SEIR in {GROUPS} age groups, {WEEKS} weeks of cases, {WEEKS * 7 * STEPS_PER_DAY} Runge-Kutta steps, {len(TRUE)} parameters\n")

    first_value, compile_loss = timed(loss, start, *args)
    _, compile_gradient = timed(loss.value_and_grad, start, *args)
    _, run_loss = timed(loss, start, *args)
    _, run_gradient = timed(loss.value_and_grad, start, *args)
    print(f"compile the loss          {compile_loss:8.2f} s      one call {run_loss * 1e3:8.2f} ms")
    print(f"compile its gradient      {compile_gradient:8.2f} s      one call {run_gradient * 1e3:8.2f} ms\n")

    fits = {
        "jitted gradient": fit(loss.value_and_grad, start, args, jac=True),
        "finite differences": fit(loss, start, args, jac="2-point"),
    }
    print(f"{'':20s} {'seconds':>9s} {'calls':>7s} {'iterations':>11s} {'loss':>12s}   (loss at the start {first_value:.3g})")
    for name, f in fits.items():
        print(f"{name:20s} {f.seconds:9.3f} {f.evaluations:7d} {f.iterations:11d} {f.loss:12.6f}")
    exact, differences = fits["jitted gradient"], fits["finite differences"]
    print(f"\nThe jitted gradient is {differences.seconds / exact.seconds:.1f} times as fast, its compilation apart.\n")
    columns = (TRUE, parameters(start), parameters(exact.theta), parameters(differences.theta))
    print(f"{'parameter':12s} {'true':>10s} {'start':>10s} {'gradient':>10s} {'differences':>12s}")
    for name, *row in zip(NAMES, *columns, strict=True):
        print(f"{name:12s} {row[0]:10.5f} {row[1]:10.5f} {row[2]:10.5f} {row[3]:12.5f}")
    path = Path(__file__).with_suffix(".png")
    draw(observed, fits, path)
    print(f"\nplot: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
