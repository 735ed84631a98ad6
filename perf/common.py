"""Timing and memory helpers of the benchmarks."""
import gc, json, os, resource, sys, time
import numpy as np

pc = time.perf_counter


def _reps(fn, target):
    t = pc(); fn(); dt = pc() - t
    t = pc(); fn(); dt = min(dt, pc() - t)
    return max(1, int(target / max(dt, 1e-9))), dt


def timings(fns, rounds=15, target=0.04, max_total=60.0):
    """Interleaved timing. fns: {name: thunk}. -> {name: [sec per call, one per round]}"""
    reps = {}
    cost = 0.0
    for k, f in fns.items():
        reps[k], dt = _reps(f, target)
        cost += reps[k] * dt
    rounds = max(3, min(rounds, int(max_total / max(cost, 1e-9))))
    out = {k: [] for k in fns}
    gc.disable()
    for _ in range(rounds):
        for k, f in fns.items():
            r = reps[k]
            t = pc()
            for _ in range(r):
                f()
            out[k].append((pc() - t) / r)
        gc.collect()
    gc.enable()
    return out


def summary(ts):
    a = np.sort(np.array(ts))
    return dict(min=float(a[0]), med=float(np.median(a)), max=float(a[-1]), rounds=len(a))


def ratio(num, den):
    """median of per-round ratios, with the full range"""
    r = np.array(num) / np.array(den)
    return dict(med=float(np.median(r)), lo=float(r.min()), hi=float(r.max()),
                of_min=float(min(num) / min(den)))


def _status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def peak_memory(fn):
    """Extra peak RSS (bytes) while fn runs, over RSS just before."""
    gc.collect()
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        return None
    before = _status("VmRSS")
    r = fn()
    peak = _status("VmHWM")
    del r
    return peak - before


def maxrss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def flat(gs):
    return [np.asarray(g, dtype=float) for g in gs]


def compare(ga, gb):
    """worst relative error, measured against the largest entry of each array"""
    w = 0.0
    for a, b in zip(ga, gb):
        a = np.asarray(a, dtype=float).reshape(np.shape(b)); b = np.asarray(b, dtype=float)
        s = np.max(np.abs(b)) or 1.0
        w = max(w, float(np.max(np.abs(a - b)) / s))
    return w
