"""Numba primals and hand-written Numba adjoints ("physical limit" reference).

Each kernel: make(size) -> args tuple; primal(*args) -> float;
hand(*args) -> (value, (grad wrt each differentiable arg, ...)).
`wrt` = indices of differentiable args.  No fastmath, default error model.
"""
import math
import os
import numpy as np
from numba import njit

HERE = os.path.dirname(os.path.abspath(__file__))


# ---------------------------------------------------------------- a) sum sin(x)*x
@njit
def sumsin(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += math.sin(x[i]) * x[i]
    return s


@njit
def sumsin_hand_ip(x, g):
    s = 0.0
    for i in range(x.shape[0]):
        xi = x[i]
        si = math.sin(xi)
        s += si * xi
        g[i] = si + xi * math.cos(xi)
    return s


@njit
def sumsin_hand(x):
    g = np.empty_like(x)
    v = sumsin_hand_ip(x, g)
    return v, (g,)


def make_sumsin(n):
    return (np.random.default_rng(0).uniform(-2, 2, n),)


# ---------------------------------------------------------------- b) logistic NLL
@njit
def logistic(w, X, y):
    n, d = X.shape
    s = 0.0
    for i in range(n):
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        m = y[i] * z
        if m > 0.0:
            s += math.log1p(math.exp(-m))
        else:
            s += math.log1p(math.exp(m)) - m
    return s


@njit
def logistic_hand(w, X, y):
    n, d = X.shape
    s = 0.0
    gw = np.zeros_like(w)
    for i in range(n):
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        m = y[i] * z
        if m > 0.0:
            e = math.exp(-m)
            s += math.log1p(e)
            dm = -e / (1.0 + e)
        else:
            e = math.exp(m)
            s += math.log1p(e) - m
            dm = -1.0 / (1.0 + e)
        c = dm * y[i]
        for j in range(d):
            gw[j] += c * X[i, j]
    return s, (gw,)


def make_logistic(n, d=10):
    r = np.random.default_rng(0)
    X = r.standard_normal((n, d))
    w = r.standard_normal(d) * 0.3
    y = np.where(r.uniform(size=n) < 1 / (1 + np.exp(-X @ w)), 1.0, -1.0)
    return (w, X, y)


# ---------------------------------------------------------------- c) Rosenbrock
@njit
def rosen(x):
    s = 0.0
    for i in range(x.shape[0] - 1):
        t = x[i + 1] - x[i] * x[i]
        u = 1.0 - x[i]
        s += 100.0 * t * t + u * u
    return s


@njit
def rosen_hand_fused(x):
    n = x.shape[0]
    g = np.empty_like(x)
    s = 0.0
    tp = 0.0
    for i in range(n - 1):
        t = x[i + 1] - x[i] * x[i]
        u = 1.0 - x[i]
        s += 100.0 * t * t + u * u
        g[i] = 200.0 * tp - 400.0 * t * x[i] - 2.0 * u
        tp = t
    g[n - 1] = 200.0 * tp
    return s, (g,)


@njit
def rosen_hand_gradonly(x):
    # no value: nothing sequential is left, LLVM vectorises the loop
    n = x.shape[0]
    g = np.empty_like(x)
    g[0] = -400.0 * (x[1] - x[0] * x[0]) * x[0] - 2.0 * (1.0 - x[0])
    for i in range(1, n - 1):
        g[i] = (200.0 * (x[i] - x[i - 1] * x[i - 1])
                - 400.0 * (x[i + 1] - x[i] * x[i]) * x[i] - 2.0 * (1.0 - x[i]))
    g[n - 1] = 200.0 * (x[n - 1] - x[n - 2] * x[n - 2])
    return (g,)


@njit
def rosen_hand(x):
    # value loop (latency-bound sum) then a vectorised gradient loop: beats the fused loop
    return rosen(x), rosen_hand_gradonly(x)


def make_rosen(n):
    return (np.random.default_rng(0).uniform(-1.5, 1.5, n),)


# ---------------------------------------------------------------- d) Lotka-Volterra RK4
@njit
def lv(p, u0, dt, n):
    a = p[0]; b = p[1]; c = p[2]; d = p[3]
    x = u0[0]; y = u0[1]
    s = 0.0
    h = 0.5 * dt
    w = dt / 6.0
    for i in range(n):
        k1x = a * x - b * x * y
        k1y = d * x * y - c * y
        x2 = x + h * k1x
        y2 = y + h * k1y
        k2x = a * x2 - b * x2 * y2
        k2y = d * x2 * y2 - c * y2
        x3 = x + h * k2x
        y3 = y + h * k2y
        k3x = a * x3 - b * x3 * y3
        k3y = d * x3 * y3 - c * y3
        x4 = x + dt * k3x
        y4 = y + dt * k3y
        k4x = a * x4 - b * x4 * y4
        k4y = d * x4 * y4 - c * y4
        x = x + w * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y = y + w * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
        s += dt * ((x - 1.0) * (x - 1.0) + (y - 1.0) * (y - 1.0))
    return s


@njit
def lv_hand(p, u0, dt, n):
    a = p[0]; b = p[1]; c = p[2]; d = p[3]
    h = 0.5 * dt
    w = dt / 6.0
    xs = np.empty(n + 1)
    ys = np.empty(n + 1)
    x = u0[0]; y = u0[1]
    xs[0] = x; ys[0] = y
    s = 0.0
    for i in range(n):
        k1x = a * x - b * x * y
        k1y = d * x * y - c * y
        x2 = x + h * k1x
        y2 = y + h * k1y
        k2x = a * x2 - b * x2 * y2
        k2y = d * x2 * y2 - c * y2
        x3 = x + h * k2x
        y3 = y + h * k2y
        k3x = a * x3 - b * x3 * y3
        k3y = d * x3 * y3 - c * y3
        x4 = x + dt * k3x
        y4 = y + dt * k3y
        k4x = a * x4 - b * x4 * y4
        k4y = d * x4 * y4 - c * y4
        x = x + w * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
        y = y + w * (k1y + 2.0 * k2y + 2.0 * k3y + k4y)
        xs[i + 1] = x; ys[i + 1] = y
        s += dt * ((x - 1.0) * (x - 1.0) + (y - 1.0) * (y - 1.0))
    ab = 0.0; bb = 0.0; cb = 0.0; db = 0.0
    xb = 0.0; yb = 0.0
    for i in range(n - 1, -1, -1):
        xb += 2.0 * dt * (xs[i + 1] - 1.0)
        yb += 2.0 * dt * (ys[i + 1] - 1.0)
        x = xs[i]; y = ys[i]
        k1x = a * x - b * x * y
        k1y = d * x * y - c * y
        x2 = x + h * k1x
        y2 = y + h * k1y
        k2x = a * x2 - b * x2 * y2
        k2y = d * x2 * y2 - c * y2
        x3 = x + h * k2x
        y3 = y + h * k2y
        k3x = a * x3 - b * x3 * y3
        k3y = d * x3 * y3 - c * y3
        x4 = x + dt * k3x
        y4 = y + dt * k3y
        # stage 4
        kxb = w * xb
        kyb = w * yb
        q = x4 * y4
        ab += kxb * x4; bb -= kxb * q; cb -= kyb * y4; db += kyb * q
        tx = kxb * (a - b * y4) + kyb * d * y4
        ty = -kxb * b * x4 + kyb * (d * x4 - c)
        nxb = xb + tx
        nyb = yb + ty
        # stage 3
        kxb = 2.0 * w * xb + dt * tx
        kyb = 2.0 * w * yb + dt * ty
        q = x3 * y3
        ab += kxb * x3; bb -= kxb * q; cb -= kyb * y3; db += kyb * q
        tx = kxb * (a - b * y3) + kyb * d * y3
        ty = -kxb * b * x3 + kyb * (d * x3 - c)
        nxb += tx
        nyb += ty
        # stage 2
        kxb = 2.0 * w * xb + h * tx
        kyb = 2.0 * w * yb + h * ty
        q = x2 * y2
        ab += kxb * x2; bb -= kxb * q; cb -= kyb * y2; db += kyb * q
        tx = kxb * (a - b * y2) + kyb * d * y2
        ty = -kxb * b * x2 + kyb * (d * x2 - c)
        nxb += tx
        nyb += ty
        # stage 1
        kxb = w * xb + h * tx
        kyb = w * yb + h * ty
        q = x * y
        ab += kxb * x; bb -= kxb * q; cb -= kyb * y; db += kyb * q
        nxb += kxb * (a - b * y) + kyb * d * y
        nyb += -kxb * b * x + kyb * (d * x - c)
        xb = nxb
        yb = nyb
    gp = np.empty(4)
    gp[0] = ab; gp[1] = bb; gp[2] = cb; gp[3] = db
    gu = np.empty(2)
    gu[0] = xb; gu[1] = yb
    return s, (gp, gu)


def make_lv(n):
    return (np.array([1.1, 0.4, 0.4, 0.1]), np.array([3.0, 2.0]), 1e-3, n)


# ---------------------------------------------------------------- e) reaction-diffusion stencil
@njit
def heat(u0, alpha, dt, steps):
    n, m = u0.shape
    u = u0.copy()
    v = u0.copy()
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                v[i, j] = u[i, j] + dt * (alpha[0] * lap + u[i, j] * (1.0 - u[i, j]))
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = v[i, j]
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j]
    return s


# best of the trials in tune.py: sqrt checkpointing (fresh 52 MB tape costs more in page faults than the recompute),
# row-vector accumulator for the scalar adjoint so the loop vectorises without fastmath
@njit
def heat_step(u, v, al, dt):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            v[i, j] = u[i, j] + dt * (al * lap + u[i, j] * (1.0 - u[i, j]))

@njit
def heat_back(u, w, z, g, acc, al, dt):
    n, m = u.shape
    c = dt * al
    for j in range(1, m - 1):
        g[0, j] += c * w[1, j]
        g[n - 1, j] += c * w[n - 2, j]
    for i in range(1, n - 1):
        g[i, 0] += c * w[i, 1]
        g[i, m - 1] += c * w[i, m - 2]
        for j in range(1, m - 1):
            lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            acc[j] += w[i, j] * lap
            z[i, j] = (w[i, j] * (1.0 - 4.0 * c + dt * (1.0 - 2.0 * u[i, j]))
                       + c * (w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1]))

@njit
def heat_fin(u, w, g):
    n, m = u.shape
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += u[i, j] * u[i, j]
            if 0 < i < n - 1 and 0 < j < m - 1:
                w[i, j] = 2.0 * u[i, j]
            else:
                g[i, j] = 2.0 * u[i, j]
    return s

@njit
def heat_hand_tape(u0, alpha, dt, steps):
    n, m = u0.shape
    al = alpha[0]
    tape = np.empty((steps + 1, n, m))
    tape[0] = u0
    for t in range(steps):
        u = tape[t]; v = tape[t + 1]
        v[0] = u[0]; v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i, 0] = u[i, 0]; v[i, m - 1] = u[i, m - 1]
        heat_step(u, v, al, dt)
    w = np.zeros((n, m)); z = np.zeros((n, m)); g = np.zeros((n, m)); acc = np.zeros(m)
    s = heat_fin(tape[steps], w, g)
    for t in range(steps - 1, -1, -1):
        heat_back(tape[t], w, z, g, acc, al, dt)
        w, z = z, w
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            g[i, j] = w[i, j]
    ga = np.empty(1)
    ga[0] = dt * acc.sum()
    return s, (g, ga)

@njit
def heat_hand(u0, alpha, dt, steps):
    n, m = u0.shape
    al = alpha[0]
    K = int(math.ceil(math.sqrt(steps)))
    ck = np.empty((K + 1, n, m))
    tape = np.empty((K + 1, n, m))
    u = u0.copy(); v = u0.copy()
    for t in range(steps):
        if t % K == 0:
            ck[t // K] = u
        heat_step(u, v, al, dt)
        u, v = v, u
    w = np.zeros((n, m)); z = np.zeros((n, m)); g = np.zeros((n, m)); acc = np.zeros(m)
    s = heat_fin(u, w, g)
    for b in range(K + 1):
        tape[b] = u0
    nb = (steps + K - 1) // K
    for b in range(nb - 1, -1, -1):
        t0 = b * K
        t1 = min(steps, t0 + K)
        tape[0] = ck[b]
        for t in range(t0, t1 - 1):
            heat_step(tape[t - t0], tape[t - t0 + 1], al, dt)
        for t in range(t1 - 1, t0 - 1, -1):
            heat_back(tape[t - t0], w, z, g, acc, al, dt)
            w, z = z, w
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            g[i, j] = w[i, j]
    ga = np.empty(1)
    ga[0] = dt * acc.sum()
    return s, (g, ga)

def make_heat(n, steps=100):
    return (np.random.default_rng(0).uniform(0, 1, (n, n)), np.array([0.2]), 0.1, steps)


# ---------------------------------------------------------------- f) N-body potential
@njit
def nbody(pos, mass, eps):
    n = pos.shape[0]
    e = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = pos[i, 0] - pos[j, 0]
            dy = pos[i, 1] - pos[j, 1]
            dz = pos[i, 2] - pos[j, 2]
            e -= mass[i] * mass[j] / math.sqrt(dx * dx + dy * dy + dz * dz + eps)
    return e


@njit
def nbody_hand(pos, mass, eps):
    n = pos.shape[0]
    e = 0.0
    gp = np.zeros_like(pos)
    gm = np.zeros_like(mass)
    for i in range(n):
        xi = pos[i, 0]; yi = pos[i, 1]; zi = pos[i, 2]; mi = mass[i]
        gx = 0.0; gy = 0.0; gz = 0.0; gmi = 0.0
        for j in range(i + 1, n):
            dx = xi - pos[j, 0]
            dy = yi - pos[j, 1]
            dz = zi - pos[j, 2]
            r2 = dx * dx + dy * dy + dz * dz + eps
            ir = 1.0 / math.sqrt(r2)
            mj = mass[j]
            e -= mi * mj * ir
            gmi -= mj * ir
            gm[j] -= mi * ir
            c = mi * mj * ir * ir * ir
            gx += c * dx; gy += c * dy; gz += c * dz
            gp[j, 0] -= c * dx; gp[j, 1] -= c * dy; gp[j, 2] -= c * dz
        gp[i, 0] += gx; gp[i, 1] += gy; gp[i, 2] += gz
        gm[i] += gmi
    return e, (gp, gm)


def make_nbody(n):
    r = np.random.default_rng(0)
    return (r.standard_normal((n, 3)), r.uniform(0.5, 1.5, n), 1e-2)


# ---------------------------------------------------------------- g) ADBench GMM
@njit
def gmm(alphas, means, icf, x, wgamma, wm, const):
    n, d = x.shape
    k = alphas.shape[0]
    qd = np.empty((k, d))
    sq = np.empty(k)
    main = np.empty(k)
    xc = np.empty(d)
    qx = np.empty(d)
    for ik in range(k):
        t = 0.0
        for i in range(d):
            t += icf[ik, i]
            qd[ik, i] = math.exp(icf[ik, i])
        sq[ik] = t
    slse = 0.0
    for ix in range(n):
        mx = -1e300
        for ik in range(k):
            for i in range(d):
                xc[i] = x[ix, i] - means[ik, i]
            for i in range(d):
                qx[i] = qd[ik, i] * xc[i]
            l = d
            for i in range(d):
                for j in range(i + 1, d):
                    qx[j] += icf[ik, l] * xc[i]
                    l += 1
            t = 0.0
            for i in range(d):
                t += qx[i] * qx[i]
            main[ik] = alphas[ik] + sq[ik] - 0.5 * t
            if main[ik] > mx:
                mx = main[ik]
        se = 0.0
        for ik in range(k):
            se += math.exp(main[ik] - mx)
        slse += math.log(se) + mx
    mx = -1e300
    for ik in range(k):
        if alphas[ik] > mx:
            mx = alphas[ik]
    se = 0.0
    for ik in range(k):
        se += math.exp(alphas[ik] - mx)
    lse = math.log(se) + mx
    prior = 0.0
    for ik in range(k):
        fro = 0.0
        for i in range(d):
            fro += qd[ik, i] * qd[ik, i]
        for l in range(d, icf.shape[1]):
            fro += icf[ik, l] * icf[ik, l]
        prior += 0.5 * wgamma * wgamma * fro - wm * sq[ik]
    return const + slse - n * lse + prior


@njit
def gmm_hand(alphas, means, icf, x, wgamma, wm, const):
    n, d = x.shape
    k = alphas.shape[0]
    qd = np.empty((k, d))
    sq = np.empty(k)
    main = np.empty(k)
    xc = np.empty((k, d))
    qx = np.empty((k, d))
    ga = np.zeros_like(alphas)
    gm = np.zeros_like(means)
    gi = np.zeros_like(icf)
    for ik in range(k):
        t = 0.0
        for i in range(d):
            t += icf[ik, i]
            qd[ik, i] = math.exp(icf[ik, i])
        sq[ik] = t
    slse = 0.0
    for ix in range(n):
        mx = -1e300
        for ik in range(k):
            for i in range(d):
                xc[ik, i] = x[ix, i] - means[ik, i]
            for i in range(d):
                qx[ik, i] = qd[ik, i] * xc[ik, i]
            l = d
            for i in range(d):
                t = xc[ik, i]
                for j in range(i + 1, d):
                    qx[ik, j] += icf[ik, l] * t
                    l += 1
            t = 0.0
            for i in range(d):
                t += qx[ik, i] * qx[ik, i]
            main[ik] = alphas[ik] + sq[ik] - 0.5 * t
            if main[ik] > mx:
                mx = main[ik]
        se = 0.0
        for ik in range(k):
            main[ik] = math.exp(main[ik] - mx)
            se += main[ik]
        slse += math.log(se) + mx
        for ik in range(k):
            r = main[ik] / se
            ga[ik] += r
            l = d
            for i in range(d):
                ci = -r * xc[ik, i]
                t = qd[ik, i] * qx[ik, i]
                gi[ik, i] += r + ci * t
                for j in range(i + 1, d):
                    gi[ik, l] += ci * qx[ik, j]
                    t += icf[ik, l] * qx[ik, j]
                    l += 1
                gm[ik, i] += r * t
    mx = -1e300
    for ik in range(k):
        if alphas[ik] > mx:
            mx = alphas[ik]
    se = 0.0
    for ik in range(k):
        main[ik] = math.exp(alphas[ik] - mx)
        se += main[ik]
    lse = math.log(se) + mx
    prior = 0.0
    g2 = wgamma * wgamma
    for ik in range(k):
        ga[ik] -= n * main[ik] / se
        fro = 0.0
        for i in range(d):
            q2 = qd[ik, i] * qd[ik, i]
            fro += q2
            gi[ik, i] += g2 * q2 - wm
        for l in range(d, icf.shape[1]):
            fro += icf[ik, l] * icf[ik, l]
            gi[ik, l] += g2 * icf[ik, l]
        prior += 0.5 * g2 * fro - wm * sq[ik]
    return const + slse - n * lse + prior, (ga, gm, gi)


def gmm_const(n, d, k, wgamma, wm):
    const = -n * d * 0.5 * math.log(2 * math.pi)
    nn = d + wm + 1
    lgd = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * nn + 0.5 * (1 - j)) for j in range(1, d + 1))
    C = nn * d * (math.log(wgamma) - 0.5 * math.log(2)) - lgd
    return const - k * C


def read_gmm(path):
    tok = open(path).read().split()
    d, k, n = map(int, tok[:3])
    v = np.array(tok[3:], dtype=float)
    o = 0
    alphas = v[o:o + k].copy(); o += k
    means = v[o:o + k * d].reshape(k, d).copy(); o += k * d
    m = d * (d + 1) // 2
    icf = v[o:o + k * m].reshape(k, m).copy(); o += k * m
    x = v[o:o + n * d].reshape(n, d).copy(); o += n * d
    wgamma, wm = float(v[o]), int(v[o + 1])
    return (alphas, means, icf, x, wgamma, float(wm), gmm_const(n, d, k, wgamma, wm))


def make_gmm(name):
    return read_gmm(os.path.join(HERE, "data", name + ".txt"))


# ---------------------------------------------------------------- h) ADBench BA (residuals; Jacobian)
@njit
def ba_residual(r0, r1, r2, c0, c1, c2, f, u0, v0, k1, k2, X0, X1, X2, w, fx, fy):
    p0 = X0 - c0; p1 = X1 - c1; p2 = X2 - c2
    sq = r0 * r0 + r1 * r1 + r2 * r2
    if sq != 0.0:
        th = math.sqrt(sq)
        co = math.cos(th)
        si = math.sin(th)
        it = 1.0 / th
        w0 = r0 * it; w1 = r1 * it; w2 = r2 * it
        tmp = (w0 * p0 + w1 * p1 + w2 * p2) * (1.0 - co)
        q0 = p0 * co + (w1 * p2 - w2 * p1) * si + w0 * tmp
        q1 = p1 * co + (w2 * p0 - w0 * p2) * si + w1 * tmp
        q2 = p2 * co + (w0 * p1 - w1 * p0) * si + w2 * tmp
    else:
        q0 = p0 + r1 * p2 - r2 * p1
        q1 = p1 + r2 * p0 - r0 * p2
        q2 = p2 + r0 * p1 - r1 * p0
    a = q0 / q2
    b = q1 / q2
    rs = a * a + b * b
    L = 1.0 + k1 * rs + k2 * rs * rs
    e0 = w * (a * L * f + u0 - fx)
    e1 = w * (b * L * f + v0 - fy)
    return e0, e1


@njit
def ba(cams, X, w, obs, feats):
    """All residuals (2p reprojection errors then p weight errors)."""
    p = obs.shape[0]
    out = np.empty(3 * p)
    for i in range(p):
        c = cams[obs[i, 0]]
        q = X[obs[i, 1]]
        e0, e1 = ba_residual(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10],
                             q[0], q[1], q[2], w[i], feats[i, 0], feats[i, 1])
        out[2 * i] = e0
        out[2 * i + 1] = e1
        out[2 * p + i] = 1.0 - w[i] * w[i]
    return out


@njit
def ba_hand(cams, X, w, obs, feats):
    """Residuals, Jacobian blocks J (p,2,15) and weight derivative (p,)."""
    p = obs.shape[0]
    out = np.empty(3 * p)
    J = np.empty((p, 2, 15))
    jw = np.empty(p)
    for i in range(p):
        c = cams[obs[i, 0]]
        Xi = X[obs[i, 1]]
        r0 = c[0]; r1 = c[1]; r2 = c[2]
        f = c[6]; k1 = c[9]; k2 = c[10]
        wi = w[i]
        p0 = Xi[0] - c[3]; p1 = Xi[1] - c[4]; p2 = Xi[2] - c[5]
        sq = r0 * r0 + r1 * r1 + r2 * r2
        if sq != 0.0:
            th = math.sqrt(sq)
            co = math.cos(th)
            si = math.sin(th)
            it = 1.0 / th
            w0 = r0 * it; w1 = r1 * it; w2 = r2 * it
            dot = w0 * p0 + w1 * p1 + w2 * p2
            omc = 1.0 - co
            tmp = dot * omc
            x0 = w1 * p2 - w2 * p1; x1 = w2 * p0 - w0 * p2; x2 = w0 * p1 - w1 * p0
            q0 = p0 * co + x0 * si + w0 * tmp
            q1 = p1 * co + x1 * si + w1 * tmp
            q2 = p2 * co + x2 * si + w2 * tmp
        else:
            th = 0.0; co = 1.0; si = 0.0; it = 0.0
            w0 = r0; w1 = r1; w2 = r2
            dot = 0.0; omc = 0.0; tmp = 0.0
            x0 = r1 * p2 - r2 * p1; x1 = r2 * p0 - r0 * p2; x2 = r0 * p1 - r1 * p0
            q0 = p0 + x0; q1 = p1 + x1; q2 = p2 + x2
        iq = 1.0 / q2
        a = q0 * iq
        b = q1 * iq
        rs = a * a + b * b
        L = 1.0 + k1 * rs + k2 * rs * rs
        m0 = a * L * f + c[7] - feats[i, 0]
        m1 = b * L * f + c[8] - feats[i, 1]
        out[2 * i] = wi * m0
        out[2 * i + 1] = wi * m1
        out[2 * p + i] = 1.0 - wi * wi
        jw[i] = -2.0 * wi
        wf = wi * f
        dL = k1 + 2.0 * k2 * rs
        for row in range(2):
            if row == 0:
                t = a; m = m0
                da = wf * (L + 2.0 * a * a * dL)
                db = wf * 2.0 * a * b * dL
            else:
                t = b; m = m1
                da = wf * 2.0 * a * b * dL
                db = wf * (L + 2.0 * b * b * dL)
            J[i, row, 6] = wi * t * L
            J[i, row, 7] = wi if row == 0 else 0.0
            J[i, row, 8] = 0.0 if row == 0 else wi
            J[i, row, 9] = wf * t * rs
            J[i, row, 10] = wf * t * rs * rs
            J[i, row, 14] = m
            g0 = da * iq
            g1 = db * iq
            g2 = -(da * a + db * b) * iq
            if sq != 0.0:
                # adjoint of rotation
                gw = g0 * w0 + g1 * w1 + g2 * w2      # d tmp
                # cross-product adjoint  x = w x p ; xb = g*si
                y0 = g0 * si; y1 = g1 * si; y2 = g2 * si
                # dp: co*g + (xb x w) + w*omc*gw
                P0 = co * g0 + (y1 * w2 - y2 * w1) + w0 * omc * gw
                P1 = co * g1 + (y2 * w0 - y0 * w2) + w1 * omc * gw
                P2 = co * g2 + (y0 * w1 - y1 * w0) + w2 * omc * gw
                # dw: (p x xb) + g*tmp + p*omc*gw
                W0 = (p1 * y2 - p2 * y1) + g0 * tmp + p0 * omc * gw
                W1 = (p2 * y0 - p0 * y2) + g1 * tmp + p1 * omc * gw
                W2 = (p0 * y1 - p1 * y0) + g2 * tmp + p2 * omc * gw
                # dtheta through cos, sin
                gth = (-si * (g0 * p0 + g1 * p1 + g2 * p2) + co * (g0 * x0 + g1 * x1 + g2 * x2)
                       + gw * dot * si)
                wd = W0 * w0 + W1 * w1 + W2 * w2
                # w = r/th ; dr = (W - w*(W.w))/th + gth*w
                J[i, row, 0] = (W0 - w0 * wd) * it + gth * w0
                J[i, row, 1] = (W1 - w1 * wd) * it + gth * w1
                J[i, row, 2] = (W2 - w2 * wd) * it + gth * w2
            else:
                P0 = g0 + (g1 * r2 - g2 * r1)
                P1 = g1 + (g2 * r0 - g0 * r2)
                P2 = g2 + (g0 * r1 - g1 * r0)
                J[i, row, 0] = p1 * g2 - p2 * g1
                J[i, row, 1] = p2 * g0 - p0 * g2
                J[i, row, 2] = p0 * g1 - p1 * g0
            J[i, row, 3] = -P0
            J[i, row, 4] = -P1
            J[i, row, 5] = -P2
            J[i, row, 11] = P0
            J[i, row, 12] = P1
            J[i, row, 13] = P2
    return out, (J, jw)


def make_ba(name):
    """ADBench file: n m p, then ONE camera, point, weight, feature, replicated (as ADBench does)."""
    tok = open(os.path.join(HERE, "data", name + ".txt")).read().split()
    n, m, p = map(int, tok[:3])
    v = np.array(tok[3:], dtype=float)
    cams = np.tile(v[:11], (n, 1))
    X = np.tile(v[11:14], (m, 1))
    w = np.full(p, v[14])
    feats = np.tile(v[15:17], (p, 1))
    obs = np.empty((p, 2), dtype=np.int64)
    ci = pi = 0
    for i in range(p):
        obs[i] = ci % n, pi % m
        ci = (ci + 1) % n
        pi = (pi + 1) % m
    return (cams, X, w, obs, feats)


# ---------------------------------------------------------------- i) BLAS chain and diagonal
@njit
def matchain(A, B, C):
    R = A @ B + np.sin(C)
    s = 0.0
    for i in range(R.shape[0]):
        for j in range(R.shape[1]):
            s += R[i, j] * R[i, j]
    return s


@njit
def matchain_hand(A, B, C):
    R = A @ B
    n, m = R.shape
    gC = np.empty_like(C)
    s = 0.0
    for i in range(n):
        for j in range(m):
            c = C[i, j]
            r = R[i, j] + math.sin(c)
            s += r * r
            r2 = 2.0 * r
            R[i, j] = r2
            gC[i, j] = r2 * math.cos(c)
    gA = R @ B.T
    gB = A.T @ R
    return s, (gA, gB, gC)


def make_matchain(n):
    r = np.random.default_rng(0)
    return (r.standard_normal((n, n)), r.standard_normal((n, n)), r.standard_normal((n, n)))


@njit
def diagmm(dg, M):
    """sum((diag(dg) @ M)**2), specialised primal"""
    s = 0.0
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            t = dg[i] * M[i, j]
            s += t * t
    return s


@njit
def diagmm_dense(dg, M):
    D = np.diag(dg)
    R = D @ M
    s = 0.0
    for i in range(R.shape[0]):
        for j in range(R.shape[1]):
            s += R[i, j] * R[i, j]
    return s


@njit
def diagmm_hand(dg, M):
    n, m = M.shape
    gd = np.empty_like(dg)
    gM = np.empty_like(M)
    s = 0.0
    for i in range(n):
        di = dg[i]
        acc = 0.0
        for j in range(m):
            mij = M[i, j]
            t = di * mij
            s += t * t
            t2 = 2.0 * t
            acc += t2 * mij
            gM[i, j] = t2 * di
        gd[i] = acc
    return s, (gd, gM)


@njit
def diagmm_dense_hand(dg, M):
    """generic dense-matmul adjoint followed by projection onto the diagonal"""
    D = np.diag(dg)
    R = D @ M
    s = 0.0
    for i in range(R.shape[0]):
        for j in range(R.shape[1]):
            s += R[i, j] * R[i, j]
            R[i, j] *= 2.0
    gD = R @ M.T
    gM = D.T @ R
    gd = np.empty_like(dg)
    for i in range(dg.shape[0]):
        gd[i] = gD[i, i]
    return s, (gd, gM)


def make_diag(n):
    r = np.random.default_rng(0)
    return (r.standard_normal(n), r.standard_normal((n, n)))


# ---------------------------------------------------------------- gradient-only hand adjoints (value not returned, dead primal work dropped)
@njit
def logistic_handg(w, X, y):
    n, d = X.shape
    gw = np.zeros_like(w)
    for i in range(n):
        z = 0.0
        for j in range(d):
            z += X[i, j] * w[j]
        m = y[i] * z
        if m > 0.0:
            e = math.exp(-m)
            c = -y[i] * e / (1.0 + e)
        else:
            c = -y[i] / (1.0 + math.exp(m))
        for j in range(d):
            gw[j] += c * X[i, j]
    return (gw,)


@njit(error_model="numpy")   # default error model: the zero-division check blocks vectorisation, 2.66x instead of ~0.53x
def nbody_handg(pos, mass, eps):
    n = pos.shape[0]
    gp = np.zeros_like(pos)
    gm = np.zeros_like(mass)
    X = np.empty(n); Y = np.empty(n); Z = np.empty(n)
    GX = np.zeros(n); GY = np.zeros(n); GZ = np.zeros(n)
    for i in range(n):
        X[i] = pos[i, 0]; Y[i] = pos[i, 1]; Z[i] = pos[i, 2]
    for i in range(n):      # all pairs, row-wise: twice the pairs, but every store is elementwise -> vectorised
        xi = X[i]; yi = Y[i]; zi = Z[i]; mi = mass[i]
        for j in range(n):
            dx = X[j] - xi; dy = Y[j] - yi; dz = Z[j] - zi
            ir = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + eps)
            gm[j] -= mi * ir
            c = mi * mass[j] * ir * ir * ir
            GX[j] += c * dx; GY[j] += c * dy; GZ[j] += c * dz
    s0 = 1.0 / math.sqrt(eps)
    for i in range(n):
        gm[i] += mass[i] * s0
        gp[i, 0] = GX[i]; gp[i, 1] = GY[i]; gp[i, 2] = GZ[i]
    return (gp, gm)


@njit
def diagmm_handg(dg, M):
    n, m = M.shape
    gd = np.empty_like(dg)
    gM = np.empty_like(M)
    for i in range(n):
        di = dg[i]
        acc = 0.0
        for j in range(m):
            mij = M[i, j]
            t2 = 2.0 * di * mij
            acc += t2 * mij
            gM[i, j] = t2 * di
        gd[i] = acc
    return (gd, gM)


@njit
def sumsin_handg(x):
    g = np.empty_like(x)
    for i in range(x.shape[0]):
        xi = x[i]
        g[i] = math.sin(xi) + xi * math.cos(xi)
    return (g,)


KERNELS = {
    "a_sumsin": dict(make=make_sumsin, primal=sumsin, hand=sumsin_hand, handg=sumsin_handg, wrt=(0,), size=100_000,
                     sizes=(1000, 10_000, 100_000, 1_000_000, 10_000_000)),
    "b_logistic": dict(make=make_logistic, primal=logistic, hand=logistic_hand, handg=logistic_handg, wrt=(0,), size=100_000),
    "c_rosen": dict(make=make_rosen, primal=rosen, hand=rosen_hand, handg=rosen_hand_gradonly, wrt=(0,), size=1_000_000),
    "d_lv": dict(make=make_lv, primal=lv, hand=lv_hand, wrt=(0, 1), size=100_000, small=1000),
    "e_heat": dict(make=make_heat, primal=heat, hand=heat_hand, wrt=(0, 1), size=256),
    "f_nbody": dict(make=make_nbody, primal=nbody, hand=nbody_hand, handg=nbody_handg, wrt=(0, 1), size=500),
    "g_gmm_d10k5": dict(make=make_gmm, primal=gmm, hand=gmm_hand, wrt=(0, 1, 2), size="gmm_d10_K5"),
    "g_gmm_d20k25": dict(make=make_gmm, primal=gmm, hand=gmm_hand, wrt=(0, 1, 2), size="gmm_d20_K25"),
    "h_ba": dict(make=make_ba, primal=ba, hand=ba_hand, wrt=(0, 1, 2), size="ba1_n49_m7776_p31843"),
    "i_matchain": dict(make=make_matchain, primal=matchain, hand=matchain_hand, wrt=(0, 1, 2), size=300),
    "i_diag": dict(make=make_diag, primal=diagmm, hand=diagmm_hand, handg=diagmm_handg, wrt=(0, 1), size=300),
}
