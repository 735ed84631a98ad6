"""The long run of random Python functions, whose compiled gradients are checked.

    python -m numbarules.testing.sources --count 10000 --jobs 2
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .source_checks import Wrong, check_source, compiled
from .writer import Source, source

__all__ = ["Source", "Wrong", "check_source", "compiled", "source"]

BATCH = 500
"""Programs that the same processes check: each program leaves its compiled code behind."""

CHUNK = 4
"""Programs that a process takes at a time."""


def _one(seed: int) -> tuple[int, str]:
    try:
        return seed, "" if check_source(source(seed), seed) else "skipped"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return seed, f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''} ({where.name}:{where.lineno})"


def _alone(seed: int) -> tuple[int, str]:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(_one, seed).result()
        except BrokenProcessPool:
            return seed, "the process that compiled and ran it died"


def _batch(seeds: Sequence[int], jobs: int) -> Iterator[tuple[int, str]]:
    """Each seed with what is wrong with it. A process that dies takes the programs in work with it: they are checked again, each alone."""
    while seeds:
        answered = 0
        try:
            with ProcessPoolExecutor(jobs) as pool:
                for answer in pool.map(_one, seeds, chunksize=CHUNK):
                    yield answer
                    answered += 1
        except BrokenProcessPool:
            in_work = answered + 2 * jobs * CHUNK
            yield from map(_alone, seeds[answered:in_work])
            answered = in_work
        seeds = seeds[answered:]


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the gradients of random functions.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    start, done, failures, skipped = time.time(), 0, 0, 0
    end = options.first + options.count
    for first in range(options.first, end, BATCH):
        for seed, answer in _batch(range(first, min(first + BATCH, end)), options.jobs):
            done += 1
            if answer == "skipped":
                skipped += 1
            elif answer:
                failures += 1
                print(f"{seed}: {answer}", flush=True)
        print(f"{done} programs after {time.time() - start:.0f} s", flush=True)
    print(f"{options.count} programs, {skipped} too large, {failures} wrong, {time.time() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
