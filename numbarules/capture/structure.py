"""Control flow graphs to trees: the inverse of compiling `if`, `for` and `while`.

The method is that of Bahmann et al. (2015), "Perfect reconstructability of control flow from demand dependence
graphs": loops first (each strongly connected component becomes one node; several exits leave through one, which
sets a control variable), then branches (what only one side reaches becomes that side; where the two sides have
several continuations, a control variable chooses among them). It succeeds on every reducible graph, and Python
compiles to no other.

Statements are opaque here: the graph may come from anywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = [
    "Block",
    "Branch",
    "ControlTest",
    "IfNode",
    "Irreducible",
    "Jump",
    "LoopNode",
    "Return",
    "SetControl",
    "Stop",
    "Tree",
    "structure",
]

Label = object


@dataclass(frozen=True, slots=True)
class Jump:
    target: Label


@dataclass(frozen=True, slots=True)
class Branch:
    """`condition` is opaque, or a `ControlTest`."""

    condition: object
    then: Label
    orelse: Label


@dataclass(frozen=True, slots=True)
class Return:
    """Leaves the function; the returned value is a statement of the block."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends without leaving: the last statement of the block raises."""


Terminator = Jump | Branch | Return | Stop


@dataclass(slots=True)
class Block:
    body: list[object]
    end: Terminator
    loop_header: bool = False  # the header of a `for`: its branch asks for the next item

    @property
    def targets(self) -> tuple[Label, ...]:
        """Where it leads."""
        match self.end:
            case Jump(target):
                return (target,)
            case Branch(_, then, orelse):
                return (then, orelse)
        return ()


@dataclass(frozen=True, slots=True)
class SetControl:
    """Assigns an integer to a control variable."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class ControlTest:
    """True where the control variable has the value."""

    name: str
    value: int


@dataclass(slots=True)
class IfNode:
    condition: object
    then: Tree
    orelse: Tree


@dataclass(slots=True)
class LoopNode:
    """Runs `body`, then again while the control variable `again` is 1.

    For a `for` loop that leaves only when its items are used up, `header` holds the statements of the header (they
    fetch the item) and `again` is empty.
    """

    body: Tree
    again: str = ""
    header: list[object] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """A sequence; `ends` is false where control never reaches the end of it."""

    items: list[object]
    ends: bool = True


class Irreducible(Exception):
    """The graph has a loop with two entries."""


_EXIT = "exit"


def structure(blocks: Mapping[Label, Block], entry: Label) -> Tree:
    """The tree of the graph that starts at `entry`."""

    def with_one_exit(b: Block) -> Block:
        return Block(list(b.body), Jump(_EXIT) if isinstance(b.end, Return) else b.end, b.loop_header)

    graph = _Graph({label: with_one_exit(b) for label, b in blocks.items()})
    graph.duplicate_dead_ends()
    return _region(graph, entry, _EXIT)


class _Graph:
    def __init__(self, blocks: dict[Label, Block], counter: Iterator[int] | None = None) -> None:
        self.blocks = blocks
        self.counter = counter if counter is not None else itertools.count()

    def successors(self, label: Label) -> tuple[Label, ...]:
        return self.blocks[label].targets if label in self.blocks else ()

    def new(self, body: list[object], end: Terminator) -> Label:
        label = ("new", next(self.counter))
        self.blocks[label] = Block(body, end)
        return label

    def control(self, hint: str) -> str:
        return f"${hint}{next(self.counter)}"

    def reachable(self, start: Label) -> set[Label]:
        seen: set[Label] = set()
        todo = [start]
        while todo:
            label = todo.pop()
            if label not in seen:
                seen.add(label)
                todo.extend(self.successors(label))
        return seen

    def redirect(self, label: Label, old: Label, new: Label) -> None:
        block = self.blocks[label]
        match block.end:
            case Jump(target) if target == old:
                block.end = Jump(new)
            case Branch(c, then, orelse):
                block.end = Branch(c, new if then == old else then, new if orelse == old else orelse)

    def duplicate_dead_ends(self) -> None:
        """Gives each edge into blocks that only raise a copy of its own, so that a raise never joins two paths."""
        alive = {label for label in self.blocks if _EXIT in self.reachable(label)}
        # an endless loop without a return or raise is alive as well: only what ends in Stop is a dead end
        for label in list(self.blocks):
            if label not in alive and any(label in self.reachable(s) for s in self.successors(label)):
                alive |= {x for x in self.blocks if label in self.reachable(x)}
        for label in [x for x in self.blocks if x in alive]:
            for target in set(self.successors(label)):
                if target != _EXIT and target not in alive:
                    self.redirect(label, target, self._clone(target))

    def _clone(self, label: Label) -> Label:
        block = self.blocks[label]
        copy = self.new(list(block.body), block.end)
        for target in set(self.successors(copy)):
            self.redirect(copy, target, self._clone(target))
        return copy


def _region(graph: _Graph, entry: Label, stop: Label) -> Tree:
    """The tree of everything between `entry` and `stop`."""
    entry = _collapse_loops(graph, entry)
    return _sequence(graph, entry, stop)


# ---------------------------------------------------------------------------------------------- loops


def _collapse_loops(graph: _Graph, entry: Label) -> Label:
    for component in _cycles(graph, entry):
        headers = {t for s in graph.reachable(entry) - component if s in graph.blocks for t in graph.successors(s) if t in component}
        if entry in component:
            headers.add(entry)
        if len(headers) != 1:
            raise Irreducible
        (header,) = headers
        _collapse(graph, component, header)
    return entry


def _collapse(graph: _Graph, component: set[Label], header: Label) -> None:
    """Replaces a loop by one block at its header's label, which holds the loop's tree."""
    inside = set(component)
    for label in component:  # blocks that raise leave the loop without ever rejoining: they belong to its body
        for target in graph.successors(label):
            if target in component or target == _EXIT:
                continue
            rest = graph.reachable(target)
            if _EXIT not in rest and not (rest & component) and all(x in graph.blocks for x in rest):
                inside |= rest
    exits: list[Label] = []
    for label in sorted(component, key=_order):
        for target in graph.successors(label):
            if target not in inside and target not in exits:
                exits.append(target)
    body = _Graph({label: graph.blocks[label] for label in inside}, graph.counter)
    end = ("end", next(graph.counter))
    head = graph.blocks[header]
    leaving = [x for x in component if exits[0] in graph.successors(x)] if len(exits) == 1 else []
    if head.loop_header and leaving == [header] and isinstance(head.end, Branch):
        first = head.end.then
        if first == header:  # an empty body
            first = body.new([], Jump(header))
        for label in [x for x in body.blocks if x != header]:
            body.redirect(label, header, end)
        del body.blocks[header]
        node = LoopNode(_region(body, first, end), header=head.body)
        graph.blocks[header] = Block([node], Jump(exits[0]))
    else:
        again, chosen = graph.control("again"), graph.control("exit")
        for label in list(body.blocks):
            for target in set(body.successors(label)):
                if target == header:
                    body.redirect(label, target, body.new([SetControl(again, 1)], Jump(end)))
                elif target not in inside:
                    sets: list[object] = [SetControl(again, 0)]
                    if len(exits) > 1:
                        sets.append(SetControl(chosen, exits.index(target)))
                    body.redirect(label, target, body.new(sets, Jump(end)))
        # the header keeps its label inside: back edges no longer reach it
        node = LoopNode(_region(body, header, end), again)
        graph.blocks[header] = Block([node], _switch(graph, chosen, exits))
    for label in inside - {header}:
        graph.blocks.pop(label, None)


def _switch(graph: _Graph, name: str, targets: list[Label]) -> Terminator:
    if not targets:
        return Stop()
    if len(targets) == 1:
        return Jump(targets[0])
    rest = _switch(graph, name, targets[:-1])
    other = rest.target if isinstance(rest, Jump) else graph.new([], rest)
    return Branch(ControlTest(name, len(targets) - 1), targets[-1], other)


def _cycles(graph: _Graph, entry: Label) -> list[set[Label]]:
    """The outermost strongly connected components with a cycle (Tarjan, without recursion)."""
    index: dict[Label, int] = {}
    low: dict[Label, int] = {}
    stack: list[Label] = []
    on_stack: set[Label] = set()
    found: list[set[Label]] = []
    work: list[tuple[Label, Iterator[Label]]] = []

    def visit(label: Label) -> None:
        index[label] = low[label] = len(index)
        stack.append(label)
        on_stack.add(label)
        work.append((label, iter(graph.successors(label))))

    visit(entry)
    while work:
        label, targets = work[-1]
        for target in targets:
            if target not in graph.blocks:
                continue
            if target not in index:
                visit(target)
                break
            if target in on_stack:
                low[label] = min(low[label], index[target])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[label])
            if low[label] == index[label]:
                component: set[Label] = set()
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.add(member)
                    if member == label:
                        break
                if len(component) > 1 or label in graph.successors(label):
                    found.append(component)
    return found


def _order(label: Label) -> tuple[int, str]:
    return (0, f"{label:012d}") if isinstance(label, int) else (1, str(label))


# ---------------------------------------------------------------------------------------------- branches


def _sequence(graph: _Graph, entry: Label, stop: Label) -> Tree:
    items: list[object] = []
    current = entry
    while current != stop:
        block = graph.blocks[current]
        items += block.body
        match block.end:
            case Stop():
                return Tree(items, ends=False)
            case Jump(target):
                current = target
            case Branch(_, then, orelse) if then == orelse:
                current = then
            case Branch(condition, then, orelse):
                node, join = _branch(graph, current, condition, then, orelse, stop)
                items.append(node)
                if join is None:
                    return Tree(items, ends=False)
                current = join
    return Tree(items)


def _branch(graph: _Graph, head: Label, condition: object, then: Label, orelse: Label, stop: Label) -> tuple[IfNode, Label | None]:
    left, right = graph.reachable(then), graph.reachable(orelse)
    shared = left & right
    only_left, only_right = left - shared, right - shared
    if stop in left and stop not in right:
        only_left, shared = only_left - {stop}, {stop}
    elif stop in right and stop not in left:
        only_right, shared = only_right - {stop}, {stop}
    joins: list[Label] = [t for t in (then, orelse) if t in shared]
    for label in sorted((only_left | only_right) & set(graph.blocks), key=_order):
        joins += [t for t in graph.successors(label) if t in shared]
    joins = list(dict.fromkeys(joins))
    if not joins:
        return IfNode(condition, _sequence(graph, then, stop), _sequence(graph, orelse, stop)), None
    if len(joins) == 1:
        return IfNode(condition, _sequence(graph, then, joins[0]), _sequence(graph, orelse, joins[0])), joins[0]
    # several continuations: each edge into one of them says which, and a switch behind the branch takes it
    name = graph.control("go")
    meet: Label = ("meet", next(graph.counter))

    def enter(target: Label) -> Label:
        return graph.new([SetControl(name, joins.index(target))], Jump(meet))

    for label in (only_left | only_right) & set(graph.blocks):
        for target in set(graph.successors(label)):
            if target in shared:
                graph.redirect(label, target, enter(target))
    start_left = enter(then) if then in shared else then
    start_right = enter(orelse) if orelse in shared else orelse
    node = IfNode(condition, _sequence(graph, start_left, meet), _sequence(graph, start_right, meet))
    return node, graph.new([], _switch(graph, name, joins))
