"""What values take in the record is what the back end writes."""

from __future__ import annotations

import pytest
from numba import types
from numba.core.registry import cpu_target

from numbarules._numba import our_type
from numbarules.transform.residuals import has_size, size_of

MATRIX, VECTOR = types.float64[:, ::1], types.float32[::1]


@pytest.mark.parametrize(
    "t",
    [
        types.float64,
        types.float32,
        types.int64,
        types.int16,
        types.boolean,
        types.complex128,
        types.complex64,
        VECTOR,
        MATRIX,
        types.float64[:, :, :],
        types.Tuple((MATRIX, VECTOR, MATRIX)),
        types.UniTuple(VECTOR, 5),
        types.Tuple((types.boolean, types.float64, types.int16, MATRIX, types.none)),
        types.Tuple((types.Tuple((types.boolean, MATRIX)), types.complex128)),
    ],
    ids=str,
)
def test_a_value_has_room(t):
    context = cpu_target.target_context
    ours = our_type(t)
    assert has_size(ours)
    written = context.get_abi_sizeof(context.get_value_type(t))
    assert written <= -(-size_of(ours) // 8) * 8 <= written + 8 * 8


@pytest.mark.parametrize("t", [types.unicode_type, types.Tuple((types.unicode_type, types.float64)), types.List(types.float64)], ids=str)
def test_types_that_are_not_modelled_say_so(t):
    assert not has_size(our_type(t))
