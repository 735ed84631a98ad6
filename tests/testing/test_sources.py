"""Generated Python functions, compiled: gradients against forward mode on the captured IR and against differences."""

from __future__ import annotations

import pytest

from numbarules.testing.sources import Wrong, check_source, source

COUNT = 300
BATCH = 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_generated_sources(first: int) -> None:
    checked = 0
    for seed in range(first, first + BATCH):
        program = source(seed)
        try:
            checked += check_source(program, seed)
        except Wrong as error:
            pytest.fail(f"seed {seed}: {error}\n{program.text}")
    assert checked >= BATCH - 2
