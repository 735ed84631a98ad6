"""From Numba's typed IR to ours."""
