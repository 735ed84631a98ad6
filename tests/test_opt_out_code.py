"""An opted-out gradient is the code of a program with the special method pasted in by hand: nothing of the rule or the decision is left.

The optimised LLVM code of the two is compared after this normalisation: the module's gradient function alone, without the wrappers for
Python; every local and global name numbered in order of appearance; labels of blocks, metadata and comments left out. What remains are the
instructions, with their order, types, constants and flags.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from numba import njit

import numbarules as nr
from perf.scenarios import OPTED_OUT, SCENARIOS, Scenario, registered


def normalised(gradient: Any) -> str:
    """The optimised code of a gradient with one signature."""
    (text,) = gradient.inspect_llvm().values()
    body = text[text.index("define") :].split("\n}\n")[0]
    names: dict[str, str] = {}
    body = re.sub(r"[%@](?:\"[^\"]*\"|[-\w.$]+)", lambda m: names.setdefault(m.group(0), f"%{len(names)}"), body)
    body = re.sub(r"(?m)^(?:\"[^\"]*\"|[-\w.$]+):.*$", ":", body)
    return re.sub(r"(?m)\s*;.*$|, ![\w.]+ .*$|[!#]\d+", "", body)


def code_of(program: Any, scenario: Scenario) -> str:
    gradient = nr.value_and_grad(njit(program.py_func), argnums=scenario.argnums)
    gradient(*scenario.arguments(8))
    return normalised(gradient)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_opted_out_code_is_the_pasted_methods(scenario: Scenario) -> None:
    by_hand = code_of(scenario.pasted, scenario)
    for way in OPTED_OUT:
        with registered(scenario, way):
            assert code_of(scenario.program, scenario) == by_hand, way
    with registered(scenario, "generic"):  # the comparison can fail
        try:
            under_the_rule = code_of(scenario.program, scenario)
        except nr.RuleError:  # a number for which the generic rule would be wrong has no gradient without the opt-out
            under_the_rule = ""
    assert under_the_rule != by_hand
