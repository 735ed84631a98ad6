"""Access to elements of arrays of any layout."""

from __future__ import annotations

import numpy as np

from numbarules.library.elements import flat_get, flat_set

from .same_as_numba import A1, A3, F2, copied, jitted


def test_flat_access_is_in_c_order() -> None:
    get = jitted("get", lambda a, k: flat_get(a, k))
    put = jitted("put", lambda a, k, v: flat_set(a, k, v))
    for a in (np.array(2.0), A1, F2, A3):
        a = copied(a)
        assert [get(a, k) for k in range(a.size)] == list(a.flat)
        put(a, a.size - 1, 7.0)
        assert list(a.flat)[-1] == 7.0
