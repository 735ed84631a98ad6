"""Programs whose call has a generic rule and a cheaper method: what `perf/opt_out.py` measures and `tests/test_opt_out_code.py` compares.

Each scenario has the program, the same program with the special method pasted in by hand, the derivative written by hand, arguments of a
size, and the generic rule. A rule is made for `kind`, the pattern of its first argument, for `special`, the pattern for which its body opts
out, and for `at_run_time`, whether it opts out by a test of values. `registered` puts one of them into the table.
"""

from perf.scenarios.functions import DIAGONAL_SLOGDET, FILL_LOOP, SKEW_SUM, TRIANGULAR_NORM
from perf.scenarios.losing import LOOPS_PRODUCT, ROOTS
from perf.scenarios.others import F_ORDER, SUM_OF_FUNCTION, TAYLOR
from perf.scenarios.products import CSR_MATRIX, DIAGONAL_MATRIX, DIAGONAL_VECTOR, LOW_RANK_VECTOR
from perf.scenarios.scenario import OPTED_OUT, WAYS, Scenario, registered

__all__ = ["OPTED_OUT", "SCENARIOS", "WAYS", "Scenario", "registered"]

SCENARIOS = (
    DIAGONAL_VECTOR,
    DIAGONAL_MATRIX,
    SKEW_SUM,
    FILL_LOOP,
    TRIANGULAR_NORM,
    DIAGONAL_SLOGDET,
    CSR_MATRIX,
    LOW_RANK_VECTOR,
    F_ORDER,
    TAYLOR,
    SUM_OF_FUNCTION,
    LOOPS_PRODUCT,
    ROOTS,
)
