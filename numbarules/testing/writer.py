"""Random Python functions, as text with arguments.

A function takes a float, arrays of several layouts and an integer, and returns a float. It may call `blend`, `bump` and `pair`
(`numbarules.testing.source_checks`).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Source", "source"]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a function `f`, arguments, and the tolerance that its precision asks for."""

    text: str
    args: tuple[Any, ...]
    tolerance: float


# statements of a program beside its frame: compilation takes one second at 4 of them and more than two at 9
SIZES = (2, 3, 4, 4, 5, 9)


def source(seed: int) -> Source:
    """The function of a seed."""
    rng = random.Random(seed)
    return _Writer(rng, rng.choice(SIZES)).write()


@dataclass(frozen=True, slots=True)
class Name:
    """An array variable and its shape; `plain`: a C-ordered float64 vector of its own type."""

    name: str
    shape: tuple[int, ...]
    plain: bool = False


class _Writer:
    """The state of a function that is being written: its lines so far, and the names in scope."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.left = size
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.arrays: list[Name] = []
        self.floats = ["v0", "v1", "v2", "s"]
        self.ints = ["i0", "i1", "n"]
        self.count = 0

    def write(self) -> Source:
        rng = self.rng
        single = rng.random() < 0.2
        x = self.strided((4,), rng.choice("CCA"), np.float32 if single else np.float64)
        y = self.strided((3, 4), rng.choice("CFA"), np.float64)
        self.arrays = [Name("x", (4,)), Name("y", (3, 4)), Name("b0", (4,), True), Name("b1", (4,), True)]
        self.line(f"v0 = s * {self.number()}")
        self.line("v1 = x[1] * y[0, 2]")
        self.line("v2 = 0.5")
        self.line("i0 = n % 3")
        self.line("i1 = 2")
        self.line(rng.choice(["b0 = np.zeros(4)", "b0 = np.ones(4)", "b0 = np.full(4, v1)"]))
        self.line("b1 = np.empty(4)")
        self.line("for k in range(4):")
        self.line(f"    b1[k] = x[k] * {self.number()}")
        while self.left > 0:
            self.statement()
        self.line("r = 0.1 * v0 + 0.2 * v1 + 0.3 * v2 + 0.05 * i0")
        self.line("for k in range(4):")
        self.line("    r += (0.3 + 0.1 * k) * (b0[k] - b1[k] * x[k]) + 0.07 * k * y[k % 3, k]")
        self.line("return r")
        text = "@njit\ndef f(s, x, y, n):\n" + "\n".join(self.lines) + "\n"
        return Source(text, (rng.uniform(-1.2, 1.2), x, y, rng.randint(1, 5)), 2e-3 if single or "float32" in text else 1e-8)

    def strided(self, shape: tuple[int, ...], layout: str, dtype: Any) -> Any:
        values = np.array([self.rng.uniform(-1.2, 1.2) for _ in range(math.prod(shape))], dtype).reshape(shape)
        if layout == "A":
            base = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
            base[..., ::2] = values
            return base[..., ::2] if self.rng.random() < 0.6 else base[..., -2::-2]
        return np.array(values, order=layout)  # type: ignore[call-overload]

    # ------------------------------------------------------------------------------------------ text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def number(self) -> str:
        return f"{self.rng.uniform(0.2, 1.6):.2f}"

    def index(self, n: int) -> str:
        kind = self.rng.random()
        if kind < 0.3:
            return str(self.rng.randint(-n, n - 1))
        i = self.rng.choice(self.ints)
        return f"({i} + {self.rng.randint(0, 3)}) % {n}" if kind < 0.8 else f"({i} * 3 + i0) % {n}"

    def element(self, a: Name | None = None) -> str:
        a = a or self.rng.choice(self.arrays)
        return f"{a.name}[{', '.join(self.index(n) for n in a.shape)}]"

    def atom(self) -> str:
        kind = self.rng.random()
        if kind < 0.45:
            return self.rng.choice(self.floats)
        return self.element() if kind < 0.9 else self.number()

    def expression(self) -> str:
        r = self.rng
        a, b = self.atom(), self.atom()
        return r.choice(
            [
                f"math.sin({a})",
                f"math.tanh({a} * {b})",
                f"{a} * {b} * 0.5",
                f"{a} + {b} * {self.number()}",
                f"{a} - {b}",
                f"{a} / (1.5 + math.cos({b}))",
                f"math.sin({a}) ** {r.randint(0, 3)}",
                f"({a} if {self.test()} else {b})",
                f"blend({a}, {b})",
                f"max({a}, {b})",
                f"abs({a}) * 0.9",
                f"math.exp(-{a} * {a})",
                f"math.sin({a}) * float({r.choice(self.ints)} % 4)",
                f"np.float32({a}) * {b}" if r.random() < 0.1 else f"{a} * {b}",
            ]
        )

    def test(self) -> str:
        r = self.rng
        return r.choice(
            [
                f"{r.choice(self.floats)} > {r.uniform(-0.5, 0.5):.2f}",
                f"{r.choice(self.ints)} % 2 == 0",
                f"-0.4 < {r.choice(self.floats)} < 0.8",
                f"{self.element()} < 0.1 and n > 0",
            ]
        )

    # ------------------------------------------------------------------------------------------ statements

    def statement(self) -> None:
        self.left -= 1
        simple = [self.assign, self.assign, self.augment, self.store, self.store, self.add, self.slice_store]
        simple += [self.view, self.exchange, self.swap, self.make, self.integer, self.tuple_, self.helper, self.sums]
        simple += [self.pair_, self.broadcast, self.edge]
        nested = [self.branch, self.branch, self.for_loop, self.for_loop, self.while_loop, self.leave]
        if self.depth < 4 and self.left > 1 and self.rng.random() < 0.45:
            self.rng.choice(nested)()
        else:
            self.rng.choice(simple)()

    def block(self, most: int = 4) -> None:
        self.depth += 1
        arrays = list(self.arrays)
        for _ in range(self.rng.randint(1, most)):
            self.statement()
        self.arrays = arrays
        self.depth -= 1

    def assign(self) -> None:
        self.line(f"{self.rng.choice(self.floats[:3])} = {self.expression()}")

    def augment(self) -> None:
        v = self.rng.choice(self.floats[:3])
        self.line(f"{v} {self.rng.choice(['+=', '-=', '*='])} math.sin({self.expression()})")

    def store(self) -> None:
        self.line(f"{self.element()} = {self.expression()}")

    def add(self) -> None:
        self.line(f"{self.element()} {self.rng.choice(['+=', '+=', '-=', '*='])} math.tanh({self.expression()})")

    def part(self, a: Name, length: int) -> str:
        n = a.shape[0]
        start = self.rng.randint(0, n - length)
        if self.rng.random() < 0.25 and start + length < n:
            return f"{a.name}[{start + length}:{start}:-1]"
        return f"{a.name}[{start}:{start + length}]" if length < n or self.rng.random() < 0.5 else f"{a.name}[:]"

    def slice_store(self) -> None:
        r = self.rng
        flat = [a for a in self.arrays if len(a.shape) == 1]
        a, b = r.choice(flat), r.choice(flat)
        length = r.randint(1, min(a.shape[0], b.shape[0]))
        target = self.part(a, length)
        kind = r.random()
        if kind < 0.3:
            self.line(f"{target} {r.choice(['*=', '+=', '-='])} math.sin({self.atom()})")
        elif kind < 0.5:
            self.line(f"{target} = {self.atom()}")
        elif kind < 0.75:
            self.line(f"{target} = {self.part(b, length)} * math.sin({self.atom()})")
        elif kind < 0.9:
            self.line(f"{target} = {self.part(b, length)}")
        else:
            self.line(f"{target} += np.sin({self.part(b, length)})")

    def view(self) -> None:
        r = self.rng
        a = r.choice(self.arrays)
        name = self.new("w")
        if len(a.shape) == 2:
            text, shape = r.choice(
                [
                    (f"{a.name}[{self.index(a.shape[0])}]", a.shape[1:]),
                    (f"{a.name}[:, {self.index(a.shape[1])}]", a.shape[:1]),
                    (f"{a.name}.T", a.shape[::-1]),
                    (f"{a.name}[1:]", (a.shape[0] - 1, a.shape[1])),
                ]
            )
            if shape[0] < 1:
                return
        else:
            text, shape = r.choice(
                [
                    (f"{a.name}[1:]", (a.shape[0] - 1,)),
                    (f"{a.name}[::-1]", a.shape),
                    (f"{a.name}[::2]", ((a.shape[0] + 1) // 2,)),
                    (a.name, a.shape),
                ]
            )
            if shape[0] < 1:
                return
        self.line(f"{name} = {text}")
        self.arrays.append(Name(name, shape))

    def exchange(self) -> None:
        a = self.rng.choice(self.arrays)
        i, j, t = self.element(a), self.element(a), self.rng.choice(self.floats[:3])
        if self.rng.random() < 0.5:
            self.line(f"{i}, {j} = {j}, {i}")
        else:
            self.line(f"{t} = {i}")
            self.line(f"{i} = {j}")
            self.line(f"{j} = {t}")

    def swap(self) -> None:
        self.line("b0, b1 = b1, b0")

    def make(self) -> None:
        r = self.rng
        flat = [a for a in self.arrays if a.shape == (4,)]
        a = r.choice(flat)
        name = r.choice(["b0", "b1"])
        values = [
            "np.zeros(4)",
            f"{a.name} * math.sin({self.atom()}) + 0.0",
            "b1.copy()",
            f"b0 - {a.name} * 0.5",
            f"np.sin({a.name}) * 1.0",
        ]
        self.line(f"{name} = {r.choice(values)}")

    def integer(self) -> None:
        i = self.rng.choice(["i0", "i1"])
        lines = [
            f"{i} = ({i} * 5 + 3) % 7",
            f"{i} += 1",
            f"{i} = int(abs(v0) * 10.0) % 5",
            f"{i} = i1 + i0 + 1",
            f"{i} = (i0 if {self.test()} else 4)",
        ]
        self.line(self.rng.choice(lines))

    def tuple_(self) -> None:
        a, b = self.rng.sample(self.floats[:3], 2)
        if self.rng.random() < 0.5:
            self.line(f"{a}, {b} = pair({self.atom()}, {self.atom()})")
        else:
            t = self.new("t")
            self.line(f"{t} = ({self.expression()}, math.sin({self.expression()}))")
            self.line(f"{a} = {t}[0] - {t}[1]")

    def pair_(self) -> None:
        """A tuple that goes through a loop or a branch."""
        a, b = self.rng.sample(self.floats[:3], 2)
        t, k = self.new("t"), self.new("k")
        self.line(f"{t} = (math.sin({self.atom()}), {self.atom()})")
        if self.rng.random() < 0.5:
            self.line(f"for {k} in range({self.rng.choice(['3', 'n % 3', '0'])}):")
            self.line(f"    {t} = (math.tanh({t}[1]), {t}[0] + {self.element()})")
        else:
            self.line(f"if {self.test()}:")
            self.line(f"    {t} = ({t}[1], {t}[0] * {self.number()})")
        self.line(f"{a}, {b} = {t}")

    def broadcast(self) -> None:
        """Whole arrays of different shapes."""
        b, v = self.rng.choice(["b0", "b1"]), self.atom()
        values = [
            f"y += np.sin({b}) * 0.3",
            f"y[:, 0:1] *= {self.number()}",
            f"{b} = (y[:, {self.rng.randint(0, 3)}:][:, 0:1] * {b})[{self.rng.randint(0, 2)}]",
            f"{b} = {b} * {b}[2:3] + {v}",
            f"y[1:] = {b} * y[0, 1]",
            f"{b}[1:] = {b}[:-1]",
        ]
        self.line(self.rng.choice(values))

    def edge(self) -> None:
        """A function where its derivative is infinite, with a cotangent that is zero; or a power of a positive number."""
        v = self.rng.choice(self.floats[:3])
        z, p = f"{self.rng.choice(self.floats)} * 0.0", f"(1.5 + math.sin({self.atom()}))"
        values = [f"math.sqrt({z})", f"math.acos(1.0 - {z})", f"abs({z}) ** 0.4"]
        if self.rng.random() < 0.5:
            self.line(f"{v} += {self.rng.choice(values)} * 0.0")
        else:
            self.line(f"{v} = {self.rng.choice([f'{p} ** math.sin({self.atom()})', f'math.sqrt({p})', f'math.log({p})'])}")

    def helper(self) -> None:
        flat = [a for a in self.arrays if len(a.shape) == 1]
        a = self.rng.choice(flat)
        self.line(f"{self.rng.choice(self.floats[:3])} = bump({a.name}, {self.index(a.shape[0])}, math.sin({self.atom()}))")

    def sums(self) -> None:
        """A loop that only sums, where a sum may read another one's partial values, an array may keep them, or neither."""
        r = self.rng
        v, w = r.sample(self.floats[:3], 2)
        a, b = r.choice([x for x in self.arrays if len(x.shape) == 1]), r.choice(["b0", "b1"])
        k = self.new("k")
        self.line(f"for {k} in range({r.choice(['4', '3', '1, 4', '3, -1, -1'])}):")
        term = f"{a.name}[{k} % {a.shape[0]}]"
        self.line(f"    {v} += {r.choice([term, f'math.sin({term})', f'{term} * {b}[{k}]'])} * {self.number()}")
        more = [f"{w} += math.sin({v}) * 0.3", f"{w} += {term} * {self.number()}", f"{w} -= {v} * 0.2", f"{b}[{k}] = {v} * 0.5"]
        for line in r.sample(more, r.randint(0, 2)):
            self.line(f"    {line}")

    # ------------------------------------------------------------------------------------------ control

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        self.block(3)
        if self.rng.random() < 0.3:
            self.line(f"elif {self.test()}:")
            self.block(2)
        if self.rng.random() < 0.6:
            self.line("else:")
            self.block(3)

    def for_loop(self) -> None:
        r = self.rng
        k = self.new("k")
        ranges = ["{n}", "1, {n}", "{n}, -1, -1", "{n}, 0, -2", "0, 5, n % 2 + 1", "n % 2, 0", "i0, i0 + 3"]
        step = r.choice(ranges).format(n=r.randint(1, 4))
        kind = r.random()
        if kind < 0.75:
            self.line(f"for {k} in range({step}):")
            self.ints.append(k)
        else:
            flat = [a for a in self.arrays if len(a.shape) == 1]
            a = r.choice(flat)
            e = self.new("e")
            self.line(f"for {k}, {e} in enumerate({a.name}):" if kind < 0.88 else f"for {k}, {e} in zip(range(3), {a.name}):")
            self.ints.append(k)
            self.floats.append(e)
        self.loops += 1
        self.block()
        if r.random() < 0.4:
            self.depth += 1
            self.line(f"if {self.test()}:")
            self.line("    " + r.choice(["break", "continue"]))
            self.assign()
            self.depth -= 1
        self.loops -= 1
        if kind >= 0.75:
            self.floats.pop()
        self.ints.pop()
        if r.random() < 0.2:
            self.line("else:")
            self.block(2)

    def while_loop(self) -> None:
        r = self.rng
        c = self.new("c")
        self.line(f"{c} = 0")
        self.line(f"while {c} < {r.randint(1, 4)}" + (f" and {self.test()}:" if r.random() < 0.6 else ":"))
        self.ints.append(c)
        self.line(f"    {c} += 1")
        self.block()
        if r.random() < 0.4:
            self.depth += 1
            self.line(f"if {self.test()}:")
            self.line("    " + r.choice(["break", "continue"]))
            self.assign()
            self.depth -= 1
        self.ints.pop()

    def leave(self) -> None:
        """A return in the middle, or a raise that is not taken."""
        if self.rng.random() < 0.7:
            self.line(f"if {self.rng.choice(['v0', 'v1', 'v2'])} > {self.rng.uniform(0.6, 1.2):.2f}:")
            self.line(f"    return {self.expression()}")
        else:
            self.line("if n > 100:")
            self.line("    raise ValueError('large')")
