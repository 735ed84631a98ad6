"""One copy of an array in place of several values written down per element.

A stencil reads each element of an array several times in each sweep over it, a product of a matrix and a vector reads the
vector once for each row, and the array is overwritten afterwards. Writing down what the reverse sweep needs then costs
more than the array itself. A copy of the whole array, made in front of the loops that sweep over it, lets every read be
executed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..analysis.linear import Linear, linear
from ..ir.nodes import Alloc, For, Load, Operand, Shape, Snapshot, Stmt, Var, walk
from ..ir.types import Array, writable
from .forward import Forward
from .residuals import Plan
from .tree import Node

__all__ = ["Snapshots"]

FEWEST = 2
"""Values written down per iteration from which a copy of the array is the smaller record."""


class Snapshots:
    """The copies made for one forward sweep. `made`: the variables that hold them, which nothing ever overwrites."""

    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        self.made: set[Operand] = set()
        self.loops: list[Node] = []  # around the statement whose reverse is being built, the outermost first

    @contextmanager
    def inside(self, loop: Node) -> Iterator[None]:
        self.loops.append(loop)
        yield
        self.loops.pop()

    def take(self, loop: Node, plan: Plan) -> bool:
        """Replaces what `plan` would write down in each iteration of `loop` by copies, where they are smaller; True if so."""
        if not plan.recorded:
            return False
        loads = [n for n in loop.trees[0].nodes if isinstance(n.op, Load) and n.primal is not None and self._unstable(n)]
        arrays = dict.fromkeys(n.args[0] for n in loads)
        nest = [*self.loops, loop]
        changed = False
        for array in arrays:
            mine = [n for n in loads if n.args[0] is array]
            start = self._start(array, nest)
            if start is not None and self._saves(mine, nest[start:], plan):
                self._copy(array, mine, nest[start])
                changed = True
        return changed

    def _unstable(self, load: Node) -> bool:
        assert load.primal is not None
        return load.args[0] not in self.made and self.forward.active.aliases.clobbered(load.args[0], load.primal)

    def _start(self, array: Operand, nest: list[Node]) -> int | None:
        """The outermost loop of the nest, counted, in which nothing writes into the array and which does not define it."""
        writes = self.forward.active.aliases.writes_to(array)
        start: int | None = None
        for i in range(len(nest) - 1, -1, -1):
            stmt = nest[i].primal
            assert stmt is not None
            defines = array in stmt.regions[0].params or any(array in s.results for s in walk(stmt.regions[0]))
            if not isinstance(nest[i].op, For) or defines or any(stmt in w.loops for w in writes):
                break
            start = i
        return start

    def _saves(self, loads: list[Node], nest: list[Node], plan: Plan) -> bool:
        """True where a copy of the array that the loads read is smaller than what is written down without it."""
        sweeps = [self._sweep(n, nest) for n in loads]
        if any(s is None for s in sweeps):
            return False
        if len(loads) >= FEWEST and len(plan.recorded) >= FEWEST:
            return True
        return all(n.results[0] in plan.recorded and self._again(s, nest) for n, s in zip(loads, sweeps, strict=True) if s is not None)

    def _again(self, sweep: set[Var], nest: list[Node]) -> bool:
        """True where the array is swept over again and again: some loop counts to a size, and takes no part in the sweep."""
        return any(n.trees[0].params[0] not in sweep and self._is_size(n.args[0]) for n in nest)

    def _is_size(self, n: Operand) -> bool:
        """True for multiples of lengths, which are zero only where there is little else to do."""
        form = linear(n, self.forward.definitions)
        lengths = [s for v, s in self.forward.definitions.items() if form is not None and v in dict(form.terms)]
        return form is not None and 0 < len(form.terms) == len(lengths) and all(isinstance(s.op, Shape) for s in lengths)

    def _sweep(self, load: Node, nest: list[Node]) -> set[Var] | None:
        """The counters that index the array, if these loops run over about as many elements as it has, each along an axis of its own."""
        array, *index = load.args
        if not isinstance(array.type, Array) or array.type.layout not in "CF" or len(index) > len(nest):
            return None
        made = self._definitions(nest)
        counters = {n.trees[0].params[0]: n.args[0] for n in nest}
        used: set[Var] = set()
        for axis, x in enumerate(index):
            form = linear(x, made)
            own = [v for v, c in form.terms if v in counters] if form is not None else []
            if form is None or len(own) != 1 or abs(form.slope(own[0])) != 1 or own[0] in used:
                return None
            used.add(own[0])
            if not self._about(counters[own[0]], array, axis):
                return None
        return used

    def _definitions(self, nest: list[Node]) -> dict[Var, Stmt]:
        return {s.results[0]: s for n in nest if n.primal for s in walk(n.primal.regions[0]) if len(s.results) == 1 and not s.regions}

    def _about(self, n: Operand, array: Operand, axis: int) -> bool:
        """True where a trip count is the length of an axis, give or take a constant."""
        count = linear(n, self.forward.definitions)
        size = self._length(array, axis)
        if count is None or size is None or not count.terms:
            return False
        return count.terms == size.terms and abs(count.offset - size.offset) <= 8

    def _length(self, array: Operand, axis: int) -> Linear | None:
        """The length of an axis as a linear form."""
        made = self.forward.definitions.get(array) if isinstance(array, Var) else None
        if made is not None and isinstance(made.op, Alloc):
            return linear(made.args[axis], self.forward.definitions)
        for v, s in self.forward.definitions.items():
            if isinstance(s.op, Shape) and s.op.axis == axis and s.args[0] is array:
                return Linear(((v, 1),), 0)
        return None

    def _copy(self, array: Operand, loads: list[Node], start: Node) -> None:
        assert isinstance(array.type, Array) and isinstance(array, Var)
        copy = self.forward.names.var(writable(array.type), array.name)
        self.made.add(copy)
        start.before.append(Stmt(Snapshot(), (self.forward.record, array), (copy,), (), start.primal.loc if start.primal else None))
        for load in loads:
            assert load.primal is not None
            load.args[0] = copy
            load.primal = Stmt(load.primal.op, (copy, *load.primal.args[1:]), load.primal.results, (), load.primal.loc)
