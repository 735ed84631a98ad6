"""The examples in the docstrings of what users call."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

from numbarules import api


@pytest.mark.parametrize("name", api.__all__)
def test_example_runs(name: str) -> None:
    found = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(getattr(api, name)), name, globs={})
    assert [t.name for t in found if t.examples] == [name], "a public name has an example"
    failures: list[Any] = []
    for test in found:
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=failures.append)
    assert not failures, "".join(failures)
