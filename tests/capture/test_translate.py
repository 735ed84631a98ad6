"""Captured functions are well formed: programs that were not, once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof

from numbarules.compile.capture import capture
from numbarules.ir.text import function_text
from numbarules.ir.verify import verify


def conditional_expression_with_break(x: Any, n: int) -> float:
    z = 0.0
    for k, e in enumerate(x):
        z += 1.28 if -0.4 < e < 0.8 and n > 0 else e
        if z > 2.0:
            break
    return z


def test_a_conditional_expression_in_a_loop_with_two_exits_keeps_its_type() -> None:
    verify(capture(conditional_expression_with_break, (typeof(np.ones(3)), typeof(1)), {}))


def test_a_long_loop_is_a_counted_loop() -> None:
    """A body of more than 255 code units has an EXTENDED_ARG in front of FOR_ITER, a block of its own to Numba."""
    body = "\n".join(f"        s += x[t] * {k}.5" for k in range(40))
    scope: dict[str, Any] = {}
    exec(f"def f(x, n):\n    s = 0.0\n    for t in range(n):\n{body}\n    return s", scope)
    text = function_text(capture(scope["f"], (typeof(np.ones(3)), typeof(1)), {}))
    assert "while" not in text
    assert text.count(" = for ") == 1
