"""From our IR to Numba's, and to compiled code."""
