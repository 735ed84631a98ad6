"""A dense cotangent is projected to a structured matrix's fields by the adjoint of the derivative of `to_dense`, for each kind."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

import numbarules as nr

from .kinds import KINDS, N, of_dtype

G = np.cos(np.arange(N * N)).reshape(N, N)


def adjoint(A, field):
    """<dD/dp, G> for each number p in a field, by central differences of `to_dense`, which is a polynomial of degree at most 2 in them."""
    made = A.__numbarules_struct__

    def dense(value):
        return np.sum(made.make(*(value if f == field else getattr(A, f) for f in made.fields)).to_dense() * G)

    stored = np.asarray(getattr(A, field))
    out = np.empty(stored.shape)
    for index in np.ndindex(stored.shape):
        step = np.zeros(stored.shape)
        step[index] = 0.5
        above, below = stored + step, stored - step
        out[index] = dense(above if stored.ndim else float(above)) - dense(below if stored.ndim else float(below))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_projection(kind):
    A, _ = KINDS[kind]
    found = nr.project_to(A)(G)
    assert type(found) is type(A)
    for field in A.__numbarules_struct__.fields:
        stored = getattr(A, field)
        if np.asarray(stored).dtype.kind == "f":
            np.testing.assert_allclose(getattr(found, field), adjoint(A, field), rtol=1e-10, atol=1e-12, err_msg=field)
        else:
            np.testing.assert_array_equal(getattr(found, field), stored)


def test_projections_keep_the_precision():
    A, _ = KINDS["Diagonal"]
    assert nr.project_to(of_dtype(A, np.float32))(G).diag.dtype == np.float32
