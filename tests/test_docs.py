"""Every Python block of the README and of the docs runs; those of one file share one name space, in order.

A block that is opened by ```` ```python no-run ```` is left out. Lines are kept: a traceback, or an error of numbarules, names the line of
the document.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python(?P<tags>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[str]:
    """The code of each block to run, moved down to the lines where it stands in `text`."""
    found = [m for m in BLOCK.finditer(text) if "no-run" not in m["tags"].split()]
    return ["\n" * text.count("\n", 0, m.start("code")) + m["code"] for m in found]


def with_blocks() -> list[Path]:
    return [path for path in FILES if blocks(path.read_text(encoding="utf-8"))]


def test_the_readme_has_a_first_example() -> None:
    assert ROOT / "README.md" in with_blocks()


def test_blocks_keep_their_lines_and_leave_out_no_run() -> None:
    text = "a\n```python\nx = 1\n```\n```python no-run\ny = 2\n```\n```\nz = 3\n```\n"
    assert blocks(text) == ["\n\nx = 1\n"]


@pytest.mark.parametrize("path", with_blocks(), ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_document_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"document_{path.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Numba looks functions up by their module
    for code in blocks(path.read_text(encoding="utf-8")):
        exec(compile(code, str(path), "exec"), module.__dict__)


LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    assert [t for t in targets if not (path.parent / t).exists()] == []
