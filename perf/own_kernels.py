"""Kernels whose gradients must record: an LSTM, a Kalman filter and a soft-DTW table, with what each has to keep.

Each entry has `make(size)` (the arguments), `primal`, `wrt`, the `size` to time, a `small` size, `iterations(size)`, and `need(size)`:
the bytes an iteration has to leave behind for the reverse sweep, beyond the memory of the primal itself and the gradients returned.
The need is that of a sweep which recomputes what is cheap (at most the work of the primal's own elementwise part) and records the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

# ---------------------------------------------------------------- LSTM, squared error of a sequence
#
# Gates of step t: z = W x_t + U h_{t-1} + b;  i, f, o = sigmoid(z),  g = tanh(z);  c_t = f c_{t-1} + i g;  h_t = o tanh(c_t).
# Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000.
#
# Need, for H hidden units: the gates (4H) and the cell (H) of each step, 40 H bytes. h_t is o tanh(c_t), one elementwise product; without
# the gates the two matrix-vector products of the step, nearly all of its work, would be done again (16 H bytes then: c and h).


@njit
def lstm(W, U, b, x, target):
    """Mean squared distance of the hidden states to `target` (T, H); x is (T, D), W (4H, D), U (4H, H), b (4H)."""
    steps, hidden = target.shape
    inputs = x.shape[1]
    h = np.zeros(hidden)
    c = np.zeros(hidden)
    z = np.empty(4 * hidden)
    loss = 0.0
    for t in range(steps):
        for r in range(4 * hidden):
            a = b[r]
            for k in range(inputs):
                a += W[r, k] * x[t, k]
            for k in range(hidden):
                a += U[r, k] * h[k]
            z[r] = a
        for k in range(hidden):
            i = 1.0 / (1.0 + math.exp(-z[k]))
            f = 1.0 / (1.0 + math.exp(-z[hidden + k]))
            g = math.tanh(z[2 * hidden + k])
            o = 1.0 / (1.0 + math.exp(-z[3 * hidden + k]))
            c[k] = f * c[k] + i * g
            h[k] = o * math.tanh(c[k])
            e = h[k] - target[t, k]
            loss += e * e
    return loss / (steps * hidden)


LSTM_HIDDEN = 32


def make_lstm(steps: int, hidden: int = LSTM_HIDDEN, inputs: int = 8) -> tuple[Any, ...]:
    r = np.random.default_rng(0)
    scale = 1.0 / math.sqrt(hidden)
    weights = [r.uniform(-scale, scale, shape) for shape in ((4 * hidden, inputs), (4 * hidden, hidden), 4 * hidden)]
    return (*weights, r.standard_normal((steps, inputs)), r.uniform(-0.5, 0.5, (steps, hidden)))


# ---------------------------------------------------------------- Kalman filter, log-likelihood of a trajectory
#
# Prediction m = A m, P = A P A' + Q; innovation v = y - H m, S = H P H' + R; gain K = P H' S^-1; update m += K v, P -= K H P.
# Every matrix is overwritten in place. Need, for n states: the mean and the covariance that a step starts from, 8 (n + n^2) bytes (symmetry
# would save n (n - 1) / 2 words); all else of the step follows from them by small products.


@njit
def kalman(A, q, r, H, y):
    """Log-likelihood of y (T, 2) under x' = A x + noise(q), y = H x + noise(r); q (n) and r (2) are log variances; H is (2, n)."""
    n = A.shape[0]
    m = np.zeros(n)
    P = np.zeros((n, n))
    mp = np.empty(n)
    AP = np.empty((n, n))
    PH = np.empty((n, 2))
    S = np.empty((2, 2))
    K = np.empty((n, 2))
    for i in range(n):
        P[i, i] = 1.0
    loglik = 0.0
    for t in range(y.shape[0]):
        for i in range(n):
            s = 0.0
            for k in range(n):
                s += A[i, k] * m[k]
            mp[i] = s
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += A[i, k] * P[k, j]
                AP[i, j] = s
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += AP[i, k] * A[j, k]
                P[i, j] = s
            P[i, i] += math.exp(q[i])
        for i in range(n):
            for j in range(2):
                s = 0.0
                for k in range(n):
                    s += P[i, k] * H[j, k]
                PH[i, j] = s
        for i in range(2):
            for j in range(2):
                s = 0.0
                for k in range(n):
                    s += H[i, k] * PH[k, j]
                S[i, j] = s
            S[i, i] += math.exp(r[i])
        det = S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0]
        v0 = y[t, 0]
        v1 = y[t, 1]
        for k in range(n):
            v0 -= H[0, k] * mp[k]
            v1 -= H[1, k] * mp[k]
        w0 = (S[1, 1] * v0 - S[0, 1] * v1) / det
        w1 = (S[0, 0] * v1 - S[1, 0] * v0) / det
        loglik -= 0.5 * (v0 * w0 + v1 * w1 + math.log(det)) + math.log(2.0 * math.pi)
        for i in range(n):
            K[i, 0] = (PH[i, 0] * S[1, 1] - PH[i, 1] * S[1, 0]) / det
            K[i, 1] = (PH[i, 1] * S[0, 0] - PH[i, 0] * S[0, 1]) / det
        for i in range(n):
            m[i] = mp[i] + K[i, 0] * v0 + K[i, 1] * v1
            for j in range(i + 1):  # one triangle and its mirror image: an asymmetry would grow from step to step
                P[i, j] -= K[i, 0] * PH[j, 0] + K[i, 1] * PH[j, 1]
                P[j, i] = P[i, j]
    return loglik


KALMAN_STATES = 4


def make_kalman(steps: int) -> tuple[Any, ...]:
    """A point in the plane with damped velocity, observed in its position; the observations are drawn from the model."""
    rng = np.random.default_rng(0)
    dt = 0.1
    A = np.eye(KALMAN_STATES)
    A[0, 2] = A[1, 3] = dt
    A[2, 2] = A[3, 3] = 0.98
    q = np.log(np.array([1e-4, 1e-4, 1e-2, 1e-2]))
    r = np.log(np.array([0.05, 0.05]))
    H = np.eye(2, KALMAN_STATES)
    x = np.zeros(KALMAN_STATES)
    y = np.empty((steps, 2))
    for t in range(steps):
        x = A @ x + np.exp(0.5 * q) * rng.standard_normal(KALMAN_STATES)
        y[t] = H @ x + np.exp(0.5 * r) * rng.standard_normal(2)
    return (A, q, r, H, y)


# ---------------------------------------------------------------- soft-DTW
#
# R[i, j] = |x_i - y_j|^2 + softmin(R[i-1, j], R[i, j-1], R[i-1, j-1]), softmin(a, b, c) = -gamma log(e^{-a/gamma} + ...).
# Cuturi and Blondel 2017, equation 2 and algorithm 2. Every cell of the table is written once, so the primal's own table is the record, and
# the three weights of a cell are exponentials of differences of its entries (that paper's backward recursion). Need: the cotangents of the
# table, 8 bytes a cell, and nothing recorded (two rows of cotangents would do, with what the recursion alone knows).


@njit
def soft_dtw(x, y, gamma):
    """Soft dynamic time warping discrepancy of x (n, d) and y (m, d)."""
    n, d = x.shape
    m = y.shape[0]
    R = np.full((n + 1, m + 1), 1e10)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0.0
            for k in range(d):
                e = x[i - 1, k] - y[j - 1, k]
                cost += e * e
            a = R[i - 1, j]
            b = R[i, j - 1]
            c = R[i - 1, j - 1]
            low = min(a, b, c)
            s = math.exp((low - a) / gamma) + math.exp((low - b) / gamma) + math.exp((low - c) / gamma)
            R[i, j] = cost + low - gamma * math.log(s)
    return R[n, m]


def make_soft_dtw(n: int) -> tuple[Any, ...]:
    r = np.random.default_rng(0)
    t = np.linspace(0.0, 4.0, n)[:, None] + np.array([0.0, 1.5])
    return (np.sin(t) + 0.1 * r.standard_normal((n, 2)), np.sin(1.1 * t - 0.2) + 0.1 * r.standard_normal((n, 2)), 0.5)


OWN_KERNELS: dict[str, dict[str, Any]] = {
    "lstm": {
        "make": make_lstm,
        "primal": lstm,
        "wrt": (0, 1, 2),
        "size": 2000,
        "small": 5,
        "iterations": lambda steps: steps,
        "need": lambda steps: 40.0 * LSTM_HIDDEN,
    },
    "kalman": {
        "make": make_kalman,
        "primal": kalman,
        "wrt": (0, 1, 2),
        "size": 20_000,
        "small": 6,
        "iterations": lambda steps: steps,
        "need": lambda steps: 8.0 * (KALMAN_STATES + KALMAN_STATES**2),
    },
    "soft_dtw": {
        "make": make_soft_dtw,
        "primal": soft_dtw,
        "wrt": (0, 1),
        "size": 600,
        "small": 7,
        "iterations": lambda n: n * n,
        "need": lambda n: 8.0,
    },
}
