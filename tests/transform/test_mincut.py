"""The minimum cut against every cut of small graphs."""

from __future__ import annotations

import itertools
import random

import pytest

from numbarules.transform.mincut import minimum_cut


def separates(cut: set[int], needed: list[int], operands: dict[int, list[int]], roots: set[int]) -> bool:
    """True where every needed value can be computed from `cut` without touching a root."""
    todo, seen = [n for n in needed if n not in cut], set()
    while todo:
        node = todo.pop()
        if node in roots:
            return False
        if node not in seen:
            seen.add(node)
            todo += [o for o in operands.get(node, ()) if o not in cut]
    return True


@pytest.mark.parametrize("seed", range(150))
def test_against_every_cut(seed: int) -> None:
    rng = random.Random(seed)
    nodes = range(rng.randint(1, 8))
    operands = {n: [m for m in range(n) if rng.random() < 0.4] for n in nodes}
    roots = {n for n in nodes if (not operands[n] and rng.random() < 0.8) or rng.random() < 0.15}
    operands = {n: o for n, o in operands.items() if n not in roots}
    weight = {n: rng.choice([1, 4, 8, 8]) for n in nodes}
    needed = rng.sample(nodes, rng.randint(1, len(nodes)))
    cut = minimum_cut(needed, operands, roots, weight)
    assert separates(set(cut), needed, operands, roots)
    sets = (set(c) for size in range(len(nodes) + 1) for c in itertools.combinations(nodes, size))
    best = min(sum(weight[n] for n in c) for c in sets if separates(c, needed, operands, roots))
    assert sum(weight[n] for n in cut) == best


def test_a_tie_is_cut_next_to_the_needed_value() -> None:
    assert minimum_cut(["y"], {"y": ["x"]}, ["x"], {"x": 8, "y": 8}) == ["y"]


def test_two_values_of_one_root_are_cut_at_the_root() -> None:
    assert minimum_cut(["y", "z"], {"y": ["x"], "z": ["x"]}, ["x"], {"x": 8, "y": 8, "z": 8}) == ["x"]


def test_what_needs_no_root_is_not_written_down() -> None:
    assert minimum_cut(["y"], {"y": ["x"], "x": []}, [], {"x": 8, "y": 8}) == []
