"""What a gradient call takes and gives back: long loops, many calls, calls that raise, deep recursion."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba import njit

import numbarules as nr


@njit
def recurrence(x, n):
    y = x
    for _ in range(n):
        y = y + 1e-7 * math.sin(y)
    return y


@njit
def until(x, n):
    y = x
    i = 0
    while True:
        y = y + 1e-7 * math.sin(y)
        i += 1
        if i >= n or y > 100.0:
            break
    return y


@njit
def raises_late(x, n):
    y = x
    work = np.zeros(1000)
    for i in range(n):
        y = y + 1e-7 * math.sin(y)
        if i == n - 1:
            raise ValueError("late")
        work[i % 1000] += y
    return y + work.sum()


@njit
def product(x, n):
    if n == 0:
        return 1.0
    return x * product(x, n - 1)


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ["recurrence", "until"])
def test_ten_million_steps_in_less_than_a_gibibyte(name: str) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_memory as t, numbarules as nr\n"
        "g = nr.grad(getattr(t, sys.argv[2])); y = g(0.5, 10**7)\n"
        "print(repr(y), next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, os.path.dirname(__file__), name], capture_output=True, text=True, check=True)
    gradient, peak = done.stdout.split()
    # the flow of y' = sin y for t = 1: tan(y/2) grows by a factor e, and dy/dx = sin(y) / sin(x)
    y = 2.0 * math.atan(math.e * math.tan(0.25))
    assert float(gradient) == pytest.approx(math.sin(y) / math.sin(0.5), rel=1e-6)
    assert int(peak) < 1 << 20  # KiB; not ru_maxrss, which starts from the size of the parent


def test_a_thousand_calls_do_not_grow_the_process() -> None:
    gradient = nr.grad(recurrence)
    gradient(0.5, 10_000)
    before = resident()
    for _ in range(1000):
        gradient(0.5, 10_000)
    assert resident() - before < 4 << 20


def test_a_hundred_raising_calls_do_not_grow_the_process() -> None:
    gradient = nr.grad(raises_late)

    def call() -> None:
        with pytest.raises(ValueError, match="late"):
            gradient(0.5, 1_000_000)

    for _ in range(3):
        call()
    before = resident()
    for _ in range(100):
        call()
    assert resident() - before < 16 << 20


def test_recursion_to_the_documented_limit_and_beyond() -> None:
    gradient = nr.grad(product)
    result: list[object] = []

    def deep() -> None:
        result.append(gradient(1.0, 9_990))
        with pytest.raises(nr.NumbarulesError, match="deep"):
            gradient(1.0, 10_100)
        result.append(gradient(1.0, 100))

    threading.stack_size(64 << 20)
    try:
        thread = threading.Thread(target=deep)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert result == [9_990.0, 100.0]


def test_peak_is_per_call_not_per_process() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient = nr.grad(recurrence)
    for _ in range(5):
        gradient(0.5, 1_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10


def test_a_factor_without_derivative_keeps_nothing_of_the_other_one() -> None:
    def decay(x, n):
        for _ in range(n):
            x = 0.5 * x + 1.0
        return x

    def diffusion(u, rate, n):
        a, b = u.copy(), np.zeros_like(u)
        for _ in range(n):
            for i in range(1, u.size - 1):
                b[i] = a[i] * (1 - 2 * rate) + rate * a[i + 1] + a[i - 1] / (1.0 / rate)
            a, b = b, a
        return a.sum()

    assert nr.explain(decay, 0.3, 3).bytes_per_iteration() == {}
    per_step = nr.explain(diffusion, np.ones(50), 0.1, 3).bytes_per_iteration()
    assert sum(per_step.values()) <= 128  # where the two buffers are, whatever their size
