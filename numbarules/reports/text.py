"""A report as text for a terminal: the lines of the function that have something to tell, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..rules.table import Entry
from .names import SYMBOLS
from .report import CallSite, Kept, Place, Repeated, Report

__all__ = ["answer_text", "inner_sites", "kept_text", "library_text", "places", "repeated_at", "report_text", "scalar_text", "totals"]


def report_text(report: Report) -> str:
    """All of a report."""
    given = ", ".join(f"{name}: {t}" for name, t in report.arguments)
    lines = [f"{report.function}({given}), differentiated by {', '.join(report.by)}", f"  {report.place}"]
    for place in places(report):
        lines += ["", f"{place.line:5}  {place.source}" + (f"    ({place.filename})" if place.filename != report.place.filename else "")]
        lines += _sites([s for s in report.sites if s.place == place], 7)
        lines += [f"       recorded: {kept_text(k)}" for k in report.kept if k.place == place]
        lines += [f"       {r.what} again: {r.name}" for r in repeated_at(report, place)]
    lines += ["", *totals(report)]
    if report.refusal:
        lines += ["", "There is no gradient:", report.refusal]
    return "\n".join(lines)


def _sites(sites: list[CallSite], indent: int) -> Iterator[str]:
    pad = " " * indent
    for site in dict.fromkeys(s for s in sites if s.how != "scalar rule"):
        yield f"{pad}{site.call}({', '.join(site.types)})"
        yield from (f"{pad}  {line}" for line in answer_text(site))
        inside = inner_sites(site)
        for place in sorted({s.place for s in inside}, key=lambda p: (p.filename, p.line)):
            if site.method is not None and site.method.origin == "yours":
                yield f"{pad}  {place.line:5}  {place.source}"
            yield from _sites([s for s in inside if s.place == place], indent + 9)
    if any(s.how == "scalar rule" for s in sites):
        yield f"{pad}{scalar_text(sites)}"


# ---------------------------------------------------------------------------------------------- sentences, for both renderings


def places(report: Report) -> list[Place]:
    """The lines that something stands at, those of the function's own file first; library code is left out."""
    told = [*(s.place for s in report.sites), *(k.place for k in report.kept), *(r.place for r in report.repeated)]
    found = {p for p in told if p.line and not p.is_library}
    return sorted(found, key=lambda p: (p.filename != report.place.filename, p.filename, p.line))


def inner_sites(site: CallSite) -> list[CallSite]:
    """The calls inside a call that a reader wants to know of: all of a function of the user's, of a library's those with a rule."""
    if site.method is None:
        return []
    if site.method.origin == "yours":
        return list(site.inside)
    found: list[CallSite] = []
    for inner in site.inside:
        found += [inner] if inner.how == "rule" or inner.opted_out else inner_sites(inner)
    return found


def scalar_text(sites: Iterable[CallSite]) -> str:
    """The scalar functions among some calls, on one line."""
    names = {s.call: SYMBOLS.get(s.call.removeprefix("operator."), s.call) for s in sites if s.how == "scalar rule"}
    return f"by scalar rules: {'  '.join(names.values())}"


def answer_text(site: CallSite) -> Iterator[str]:
    """What becomes of a call, in sentences."""
    match site.how:
        case "passive":
            yield "passive: no derivative passes through it"
        case "zero":
            yield f"derivative zero: {entry_text(site.entry)}"
        case "rule" | "scalar rule":
            yield f"{site.how}: {entry_text(site.entry)}"
            if site.branches:
                yield "decides when it runs: both ways are compiled, with a branch"
        case "none":
            said = f"opted out {site.opted_out}, {entry_text(site.entry)}" if site.opted_out else "no entry"
            yield f"none: {said}"
            if site.method is not None:
                yield f"differentiated instead: {_method(site)}"
    if site.runner_up is not None:
        yield f"runner-up: {entry_text(site.runner_up)}"
        yield f"because {site.reason}"


def _method(site: CallSite) -> str:
    method = site.method
    assert method is not None
    whose = {"yours": "", "numba": "Numba's ", "numbarules": "this library's "}[method.origin]
    how = "with sweeps of its own" if method.separate else "inlined"
    return f"{whose}`{method.name}` ({Path(method.place.filename).name}:{method.place.line}), {how}"


def entry_text(entry: Entry | None) -> str:
    """An entry of the table, with where it stands."""
    if entry is None:
        return "no entry"
    return f"{entry.signature}, `{entry.origin.name.rpartition('.')[2]}` ({Path(entry.origin.filename).name}:{entry.origin.line})"


def kept_text(kept: Kept) -> str:
    """A value on the record, with what it takes."""
    what = {"value": kept.type, "array header": f"where the {kept.type} is", "copy": f"a copy of the {kept.type}", "address": "an address"}
    size = f"{kept.bytes} bytes" if kept.bytes is not None else "all its elements"
    when = f"per iteration of the loop at line {kept.loop.line}" if kept.loop else "once in a call"
    return f"{kept.name} ({what[kept.what]}), {size} {when}"


def repeated_at(report: Report, place: Place) -> list[Repeated]:
    """What is done again at a line, the insides of library functions left out."""
    return [r for r in report.repeated if r.place == place and not r.name.endswith("inside the call")]


def totals(report: Report) -> list[str]:
    """What the record takes, loop by loop, and what library functions write down."""
    lines = [
        f"In the record: {n} bytes per iteration of the loop at {_where(p, report)}."
        for p, n in report.bytes_per_iteration().items()
        if not p.is_library
    ]
    for k in dict.fromkeys(k for k in report.kept if k.what == "copy"):
        when = f"in each iteration of the loop at {_where(k.loop, report)}" if k.loop else "once in a call"
        lines.append(f"Copied as a whole: {k.name} of type {k.type}, {when}.")
    lines += library_text(report)
    return lines or ["Nothing is recorded."]


def library_text(report: Report) -> list[str]:
    """What functions of libraries with sweeps of their own write down, one line each."""
    out = []
    for name in dict.fromkeys(k.function for k in report.kept if k.place.is_library):
        own = [k for k in report.kept if k.function == name and k.place.is_library]
        once = sum(k.bytes or 0 for k in own if k.loop is None)
        each = sum(k.bytes or 0 for k in own if k.loop is not None)
        sizes = [f"{once} bytes in each call"] if once else []
        sizes += [f"{each} bytes in each iteration of its loops"] if each else []
        if sizes:
            out.append(f"In the record of the library function `{name}`: {' and '.join(sizes)}.")
    return out


def _where(place: Place, report: Report) -> str:
    return f"line {place.line}" if place.filename == report.place.filename else str(place)
