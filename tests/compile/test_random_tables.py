"""Rules registered, replaced, opted out and removed in random order: live gradients always answer as a fresh process would."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from population import BASES, CHAIN, OPT_OUT, PRIMES, Model, Slot, expected, population, register, values

import numbarules as nr
from numbarules.rules.table import table

ROOT = Path(__file__).resolve().parents[2]


class Walk:
    """A random walk of the table and of its model. Everything that it registers goes with it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()
        self.entries: dict[Slot, object] = {}
        self.number = 0
        self.scope: ExitStack | None = None
        self.before: dict[Slot, object] = {}

    def step(self) -> str:
        """One change; returns what it was."""
        kind = self.random.choice(["rule", "rule", "rule", "opt_out", "opt_out", "remove", "remove", "scope"])
        if kind == "scope":
            return self.enter() if self.scope is None else self.leave()
        if kind == "remove":
            return self.remove()
        slot = self.random.choice([*BASES]), self.random.choice([*CHAIN])
        answer = OPT_OUT if kind == "opt_out" else self.random.choice(PRIMES)
        if self.scope is not None and slot in self.model.inside:
            return "nothing"
        self.entries[slot] = register(slot, answer)
        self.number += 1
        (self.model.outside if self.scope is None else self.model.inside)[slot] = self.number, answer
        return f"{kind} {slot} {answer}"

    def remove(self) -> str:
        there = self.model.outside if self.scope is None else self.model.inside
        if not there:
            return "nothing"
        slot = self.random.choice([*there])
        table.remove(self.entries.pop(slot))  # type: ignore[arg-type]
        if self.scope is not None and slot in self.before:
            self.entries[slot] = self.before[slot]
        del there[slot]
        return f"remove {slot}"

    def enter(self) -> str:
        self.before = dict(self.entries)
        self.scope = ExitStack()
        self.scope.enter_context(nr.rule_scope())
        return "enter a scope"

    def leave(self) -> str:
        assert self.scope is not None
        self.scope.close()
        self.scope = None
        self.entries = self.before
        self.model.inside.clear()
        return "leave the scope"

    def close(self) -> None:
        """Takes out all that is there."""
        if self.scope is not None:
            self.leave()
        for entry in self.entries.values():
            table.remove(entry)  # type: ignore[arg-type]


def run(steps: int, seed: int) -> int:
    """Walks and compares; returns how often something was compiled again."""
    members = population()
    assert len(members) == 20
    model = Model()
    assert values(members) == expected(members, model)
    walk = Walk(seed)
    compiled = 0
    try:
        for i in range(steps):
            asked = [walk.model.asked(m) for m in members]
            codes = [[c.entry_point for c in m.code.overloads.values()] if m.code is not None else None for m in members]
            what = walk.step()
            found, wanted = values(members), expected(members, walk.model)
            assert found == wanted, (i, what, [m.name for m, a, b in zip(members, found, wanted, strict=True) if a != b])
            for m, before, code in zip(members, asked, codes, strict=True):
                same = code is None or any(c.entry_point is code[-1] for c in m.code.overloads.values())
                if m.code is not None and m.name != "grad of b0":  # which has a second signature
                    assert same == (before == walk.model.asked(m)), (i, what, m.name)
                compiled += not same
    finally:
        walk.close()
    assert values(members) == expected(members, model)
    return compiled


def test_random_changes_of_the_table() -> None:
    assert run(60, seed=1) > 20


@pytest.mark.slow
def test_random_changes_of_the_table_at_length() -> None:
    assert run(200, seed=2) > 100


FRESH = """
import json, sys
from population import Model, population, register, values
for slot, answer in json.loads(sys.argv[1]):
    register(tuple(slot), answer)
print(json.dumps(values(population())))
"""


@pytest.mark.slow
def test_a_fresh_process_agrees() -> None:
    members = population()
    values(members)
    walk = Walk(3)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    try:
        for _ in range(3):
            for _ in range(25):
                walk.step()
            now = {**walk.model.outside, **walk.model.inside}
            entries = json.dumps([(slot, answer) for slot, (_, answer) in now.items()])
            done = subprocess.run(
                [sys.executable, "-c", FRESH, entries], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
            )
            assert values(members) == json.loads(done.stdout)
    finally:
        walk.close()
