"""The page of supported functions is that of the tables."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from numbarules.rules.table import table
from numbarules.testing.functions import page

PAGE = Path(__file__).parent.parent.parent / "docs" / "functions.md"


@pytest.mark.skipif(sys.version_info < (3, 11) or np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="the page has the names of these")
def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(table.entries()), "run: python -m numbarules.testing.functions docs/functions.md"
