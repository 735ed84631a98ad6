"""Structured control flow against the graph it was made from: both are run and must do the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from numbarules.capture.structure import (
    Block,
    Branch,
    ControlTest,
    IfNode,
    Irreducible,
    Jump,
    LoopNode,
    Return,
    SetControl,
    Stop,
    Tree,
    structure,
)

STEPS = 300


class Ended(Exception):
    """Control stopped for good: out of steps, or a raise."""


class Trace:
    """What was executed, with conditions decided by the number of times that they were asked."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.events: list[object] = []

    def do(self, event: object) -> None:
        self.events.append(event)
        if len(self.events) > STEPS:
            raise Ended

    def ask(self, condition: object) -> bool:
        self.do(("ask", condition))
        return random.Random(f"{self.seed} {condition} {len(self.events)}").random() < 0.5


def run_graph(blocks: dict[object, Block], trace: Trace) -> None:
    label: object = 0
    while True:
        block = blocks[label]
        for item in block.body:
            trace.do(item)
        match block.end:
            case Jump(target):
                label = target
            case Branch(condition, then, orelse):
                label = then if then == orelse else then if trace.ask(condition) else orelse
            case Return():
                return
            case Stop():
                raise Ended


def run_tree(tree: Tree, trace: Trace, control: dict[str, int]) -> None:
    for item in tree.items:
        match item:
            case SetControl(name, value):
                control[name] = value
            case IfNode(condition, then, orelse):
                taken = control[condition.name] == condition.value if isinstance(condition, ControlTest) else trace.ask(condition)
                run_tree(then if taken else orelse, trace, control)
            case LoopNode(body, again):
                while True:
                    run_tree(body, trace, control)
                    if not control[again]:
                        break
            case _:
                trace.do(item)
    if not tree.ends:
        raise Ended


def random_graph(rng: random.Random) -> dict[object, Block]:
    """A reducible graph, and sometimes one that is not: edges go forward, or back to one that dominates."""
    n = rng.randint(2, 9)
    blocks: dict[object, Block] = {}
    for i in range(n):

        def target(i: int = i) -> int:
            return rng.randint(i + 1, n - 1) if rng.random() < 0.7 or i == 0 else rng.randint(0, i)

        kind = rng.random()
        if i == n - 1 or kind < 0.07:
            end: object = Return()
        elif kind < 0.14:
            end = Stop()
        elif kind < 0.4:
            end = Jump(i + 1)
        else:
            end = Branch(f"c{i}", target(), target())
        blocks[i] = Block([f"s{i}"], end)  # type: ignore[arg-type]
    return blocks


def reducible(blocks: dict[object, Block]) -> bool:
    try:
        structure(blocks, 0)
    except Irreducible:
        return False
    return True


def reachable(blocks: dict[object, Block]) -> dict[object, Block]:
    seen: dict[object, Block] = {}
    todo: list[object] = [0]
    while todo:
        label = todo.pop()
        if label not in seen:
            seen[label] = blocks[label]
            match blocks[label].end:
                case Jump(target):
                    todo.append(target)
                case Branch(_, then, orelse):
                    todo += [then, orelse]
    return seen


def outcome(run: Callable[..., object], *args: object) -> str:
    try:
        run(*args)
    except Ended:
        return "ended"
    return "returned"


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_random_graphs(first: int) -> None:
    structured = 0
    for seed in range(first, first + 100):
        blocks = reachable(random_graph(random.Random(seed)))
        try:
            tree = structure(blocks, 0)
        except Irreducible:
            continue
        structured += 1
        for decisions in range(6):
            wanted, found = Trace(decisions), Trace(decisions)
            assert outcome(run_graph, blocks, wanted) == outcome(run_tree, tree, found, {}), f"seed {seed}: {blocks}"
            assert found.events == wanted.events, f"seed {seed}: {blocks}"
    assert structured >= 40


def test_two_entries_of_a_loop_are_refused() -> None:
    blocks: dict[object, Block] = {
        0: Block([], Branch("c", 1, 2)),
        1: Block(["a"], Jump(2)),
        2: Block(["b"], Branch("d", 1, 3)),
        3: Block([], Return()),
    }
    assert not reducible(blocks)
