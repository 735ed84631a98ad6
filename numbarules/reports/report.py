"""What a report of a derivative holds: its calls, what is recorded and what is done again, each at its place in the source."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numba

from ..rules.table import Entry

__all__ = ["CallSite", "Kept", "Method", "Place", "Repeated", "Report"]


Origin = Literal["yours", "numba", "numbarules"]

_HERE = Path(__file__).parent.parent
_NUMBA = Path(numba.__file__).parent


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source."""

    filename: str
    line: int

    @property
    def source(self) -> str:
        """The text of the line, without the white space around it; empty where the file cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    @property
    def origin(self) -> Origin:
        """Whose file it is."""
        parents = Path(self.filename).parents
        return "numbarules" if _HERE in parents else "numba" if _NUMBA in parents else "yours"

    @property
    def is_library(self) -> bool:
        """True in the source of Numba or of this library."""
        return self.origin != "yours"

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


@dataclass(frozen=True, slots=True)
class Method:
    """A function that is differentiated in place of a call: the user's own, Numba's implementation, or this library's.

    `origin` says which. `separate`: it has sweeps of its own, which all its calls share, instead of being inlined.
    """

    name: str
    place: Place
    origin: Origin
    separate: bool


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call, and what becomes of it.

    `how`: `rule`, its rule is used; `scalar rule`, its partial derivatives are; `none`, there is no rule for it at these types and
    `method` is differentiated; `zero`, an entry says that its derivative is zero; `passive`, no derivative passes through it.

    `entry` is the entry of the table that won, or None; `opted_out` tells who said `none`: an entry, or what the rule's return type
    is inferred to be. `runner_up` is the strongest entry that it beat, and `reason` why. `inside` are the calls of `method`.
    `branches`: the rule decides when it runs, and both ways are compiled.
    """

    place: Place
    call: str
    types: tuple[str, ...]
    how: Literal["rule", "scalar rule", "none", "zero", "passive"]
    entry: Entry | None = None
    opted_out: Literal["", "by an entry", "by its rule"] = ""
    method: Method | None = None
    runner_up: Entry | None = None
    reason: str = ""
    inside: tuple[CallSite, ...] = ()
    branches: bool = False

    def walk(self) -> Iterator[CallSite]:
        """This call and those inside it."""
        yield self
        for site in self.inside:
            yield from site.walk()


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that the forward sweep writes down for the reverse sweep.

    `what`: a `value`, an `array header` (where an array is, not what is in it), a whole `copy` of an array, or an `address` of what a
    called function or an inner loop has written down. `bytes` is the size of one, None where it depends on a shape. `loop` is the line
    of the innermost loop that does it in each iteration, None where it is done once in a call of `function`.
    """

    place: Place
    name: str
    type: str
    what: Literal["value", "array header", "copy", "address"]
    bytes: int | None
    loop: Place | None
    function: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """A value of the forward sweep that the reverse sweep does not need written down: it is `computed` or `loaded` again."""

    place: Place
    name: str
    what: Literal["computed", "loaded"]


@dataclass(frozen=True, slots=True)
class Report:
    """How a function is differentiated at the types of one call: see `explain`.

    `str(report)` is the report as text, `to_html()` as a page. `refusal` is the text of the error that stops the gradient, or empty.
    """

    function: str
    place: Place
    arguments: tuple[tuple[str, str], ...]
    by: tuple[str, ...]
    sites: tuple[CallSite, ...]
    kept: tuple[Kept, ...]
    repeated: tuple[Repeated, ...]
    refusal: str = ""

    def __str__(self) -> str:
        from .text import report_text

        return report_text(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as a page of HTML that needs no other file; written to `path` too, if one is given."""
        from .page import report_page

        page = report_page(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def walk(self) -> Iterator[CallSite]:
        """All calls, each before those inside it."""
        for site in self.sites:
            yield from site.walk()

    def bytes_per_iteration(self) -> dict[Place, int]:
        """For each loop that writes values down, by its line: how many bytes an iteration takes in the record."""
        total: dict[Place, int] = {}
        for kept in self.kept:
            if kept.loop is not None and kept.bytes is not None:
                total[kept.loop] = total.get(kept.loop, 0) + kept.bytes
        return total
