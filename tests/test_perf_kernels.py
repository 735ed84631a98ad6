"""Gradients of the benchmark kernels at small sizes: against the hand-written adjoints, and against differences where there are none."""

from __future__ import annotations

import pytest

from perf import run_kernels

# The kernels are copied as they are: they leave the closing of their data files to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.mark.parametrize("name", list(run_kernels.ALL))
def test_gradient_of_kernel(name: str) -> None:
    run_kernels.check(name, run_kernels.small_arguments(name))
