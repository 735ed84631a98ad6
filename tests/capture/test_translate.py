"""Captured functions are well formed: programs that were not, once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof

from numbarules.compile.capture import capture
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
