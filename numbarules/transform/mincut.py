"""The cheapest set of values to write down: a minimum vertex cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["minimum_cut"]

_INFINITE = 1 << 60
N = TypeVar("N", bound=Hashable)


def minimum_cut(needed: Iterable[N], operands: Mapping[N, Iterable[N]], roots: Iterable[N], weight: Mapping[N, int]) -> list[N]:
    """The nodes of least total weight that separate `needed` from `roots`.

    `operands` are the edges from a value to those it can be computed from. Among cuts of equal weight the one nearest
    to `needed` is chosen: it leaves least to compute again. Edmonds and Karp (1972), on a graph with split nodes.
    """
    graph: dict[object, dict[object, int]] = {}

    def edge(a: object, b: object, capacity: int) -> None:
        graph.setdefault(a, {})[b] = graph.get(a, {}).get(b, 0) + capacity
        graph.setdefault(b, {}).setdefault(a, 0)

    source, sink = object(), object()
    needed = list(needed)
    nodes = dict.fromkeys(needed)
    todo = list(needed)
    while todo:
        node = todo.pop()
        for operand in operands.get(node, ()):
            if operand not in nodes:
                nodes[operand] = None
                todo.append(operand)
    for node in nodes:
        edge((node, "in"), (node, "out"), weight[node])
        for operand in operands.get(node, ()):
            edge((node, "out"), (operand, "in"), _INFINITE)
    for node in needed:
        edge(source, (node, "in"), _INFINITE)
    for node in set(roots) & nodes.keys():
        edge((node, "out"), sink, _INFINITE)
    while True:
        previous = _search(graph, source)
        if sink not in previous:
            break
        path, at = [], sink
        while at is not source:
            path.append((previous[at], at))
            at = previous[at]
        flow = min(graph[a][b] for a, b in path)
        for a, b in path:
            graph[a][b] -= flow
            graph[b][a] += flow
    reached = _search(graph, source)
    return [n for n in nodes if (n, "in") in reached and (n, "out") not in reached]


def _search(graph: Mapping[object, Mapping[object, int]], source: object) -> dict[object, object]:
    previous: dict[object, object] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for target, capacity in graph.get(node, {}).items():
            if capacity > 0 and target not in previous:
                previous[target] = node
                queue.append(target)
    return previous
