"""A report as one page of HTML: the source of each function, annotated; it needs no other file."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from html import escape
from inspect import getblock

from .report import CallSite, Method, Place, Report
from .text import answer_text, inner_sites, kept_text, places, repeated_at, scalar_text, totals

__all__ = ["report_page"]

STYLE = """
:root { color-scheme: light dark; --fg: #1c1c1e; --bg: #fdfdfc; --dim: #6c6c70; --line: #e3e2de; --code: #f5f4f0;
  --rule: #2f6f4f; --none: #8a4b08; --kept: #a02c2c; --again: #2a5db0; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6e4df; --bg: #191a1c; --dim: #96958f; --line: #34353a; --code: #222428;
  --rule: #7fce9f; --none: #e5b06a; --kept: #f08a8a; --again: #8ab4f8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
code, pre, .line { font-family: ui-monospace, monospace; font-size: 13px; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; } .dim { color: var(--dim); }
.line { white-space: pre; overflow-x: auto; padding: 0 .5rem; }
.line b { color: var(--dim); font-weight: normal; display: inline-block; width: 4em; text-align: right; margin-right: 1.5em; }
.line.told { background: var(--code); }
.notes { margin: .1rem 0 .5rem 7.5em; font-size: 13px; border-left: 2px solid var(--line); padding-left: .8em; }
.notes p, .notes ul { margin: 0; } ul { padding-left: 1.2em; list-style: none; }
.rule { color: var(--rule); } .none { color: var(--none); } .kept { color: var(--kept); } .again { color: var(--again); }
.passive, .zero { color: var(--dim); } pre.refusal { border: 1px solid var(--kept); padding: .7rem; white-space: pre-wrap; }
summary { cursor: pointer; }
"""


def report_page(report: Report) -> str:
    """The whole page."""
    title = f"{report.function}, differentiated by {', '.join(report.by)}"
    given = "".join(f"<li><code>{escape(name)}: {escape(t)}</code></li>" for name, t in report.arguments)
    refusal = f'<h2>There is no gradient</h2><pre class="refusal">{escape(report.refusal)}</pre>' if report.refusal else ""
    sums = "".join(f"<li>{escape(line)}</li>" for line in totals(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f'<h1><code>{escape(report.function)}</code>, differentiated by {escape(", ".join(report.by))}</h1>'
        f'<p class="dim">{escape(str(report.place))}</p><ul>{given}</ul>{refusal}'
        '<p class="dim">Colours: <span class="rule">by a rule</span>, <span class="none">no rule: the method is differentiated</span>, '
        '<span class="kept">recorded</span>, <span class="again">computed or loaded again</span>.</p>'
        f"{''.join(_functions(report))}<h2>The record</h2><ul>{sums}</ul></body></html>\n"
    )


def _functions(report: Report) -> Iterator[str]:
    """The annotated source of the function, and of each other one of the user's that has something to tell."""
    told = set(places(report))
    started = dict.fromkeys([report.place, *(m.place for m in _methods(report) if m.origin == "yours")])
    shown: set[Place] = set()
    for start in started:
        lines = _block(start)
        if start == report.place or told.intersection(place for place, _ in lines):
            name = "" if start == report.place else f'<h2 class="dim">{escape(str(start))}</h2>'
            yield name + "".join(_line(place, text, report) for place, text in lines)
            shown.update(place for place, _ in lines)
    rest = [p for p in places(report) if p not in shown]
    if rest:
        yield "<h2>Elsewhere</h2>" + "".join(_line(p, p.source, report) for p in rest)


def _methods(report: Report) -> Iterator[Method]:
    for site in report.walk():
        if site.method is not None:
            yield site.method


def _block(start: Place) -> list[tuple[Place, str]]:
    """The lines of the function that starts there."""
    lines = linecache.getlines(start.filename)[start.line - 1 :]
    try:
        block = getblock(lines)
    except (SyntaxError, IndexError):
        block = lines[:1]
    return [(Place(start.filename, start.line + i), text.rstrip("\n")) for i, text in enumerate(block)]


def _line(place: Place, text: str, report: Report) -> str:
    notes = [
        *_sites([s for s in report.sites if s.place == place]),
        *(f'<p class="kept">recorded: {escape(kept_text(k))}</p>' for k in report.kept if k.place == place),
        *(f'<p class="again">{r.what} again: {escape(r.name)}</p>' for r in repeated_at(report, place)),
    ]
    told = f'<div class="notes">{"".join(notes)}</div>' if notes else ""
    return f'<div class="line{" told" if notes else ""}"><b>{place.line}</b>{escape(text)}</div>{told}'


def _sites(sites: list[CallSite]) -> Iterator[str]:
    for site in dict.fromkeys(s for s in sites if s.how != "scalar rule"):
        first, *more = (escape(line) for line in answer_text(site))
        head = f'<code>{escape(site.call)}({escape(", ".join(site.types))})</code> <span class="{site.how}">{first}</span>'
        body = "".join(f"<br>{line}" for line in more)
        inside = inner_sites(site)
        inner = "".join(
            (f'<p class="line">{p.line:5}  {escape(p.source)}</p>' if site.method and site.method.origin == "yours" else "")
            + "".join(_sites([s for s in inside if s.place == p]))
            for p in sorted({s.place for s in inside}, key=lambda p: (p.filename, p.line))
        )
        yield f"<details open><summary>{head}{body}</summary><ul>{inner}</ul></details>" if inner else f"<p>{head}{body}</p>"
    if any(s.how == "scalar rule" for s in sites):
        yield f'<p class="rule">{escape(scalar_text(sites))}</p>'
