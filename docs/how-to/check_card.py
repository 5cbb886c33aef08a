"""Prove the epsilon of a release card without the software that wrote it: CARD.json

Composes the events, rounding in the safe direction. Exits with 1 if that gives over 5 % more.
"""

import json
import sys
from fractions import Fraction as F
import numpy as np
from scipy.signal import fftconvolve
from scipy.special import log_ndtr

STEP, TAIL, LONGEST = 1e-4, 1e-15, 1 << 21  # of losses; of what counts as infinite; of a table
PURE = {
    "pure": lambda event: F(event["epsilon"]),
    "bounded_range": lambda event: F(event["epsilon"]),
    "laplace_noise": lambda event: 1 / F(event["scale"]),
    "discrete_laplace": lambda event: event["shift"] / F(event["scale"]),
}


def leaves(event, count=1):
    if event["kind"] != "composed":
        return [(event, count)]
    return [one for part, many in event["parts"] for one in leaves(part, count * many)]


def masses(event):
    """Losses of one event against its neighbor, with probabilities; both directions are alike."""
    if event["kind"] == "discrete_gaussian":
        v, s = float(F(event["variance"])), float(F(event["shift_squared"])) ** 0.5 // 1
        y = np.arange(-np.ceil(40 * v**0.5), np.ceil(40 * v**0.5) + 1)
        weight, loss = np.exp(-y * y / (2 * v)), s * (s - 2 * y) / (2 * v)
    elif event["kind"] == "discrete_laplace" and F(event["scale"]) < 10_000:
        b, s = float(F(event["scale"])), event["shift"]  # a vector's worst case is one coordinate
        y = np.arange(-np.ceil(40 * b) - s, np.ceil(40 * b) + s + 1)
        weight, loss = np.exp(-abs(y) / b), (abs(y - s) - abs(y)) / b
    elif event["kind"] in PURE:  # randomized response: the worst of all with this epsilon
        e = float(PURE[event["kind"]](event))
        weight, loss = np.array([np.exp(e), 1.0]), np.array([e, -e])
    else:
        sys.exit(f"This script does not know events of kind {event['kind']!r}.")
    at = np.ceil((loss + abs(loss) * 1e-12) / STEP).astype(np.int64)  # rounded up to the grid
    return trimmed(at.min(), np.bincount(at - at.min(), weight / weight.sum()), 0.0)


def trimmed(first, p, infinite):
    """Leave out the tails: high losses count as infinite, low ones as the lowest that is kept."""
    low = int(np.searchsorted(np.cumsum(p), TAIL))
    last = min(p.size - int(np.searchsorted(np.cumsum(p[::-1]), TAIL)), low + LONGEST)
    kept = p[low:last].copy()
    kept[0] += p[:low].sum()
    return first + low, kept, infinite + p[last:].sum() + 1e-15


def compose(a, b):
    """The sum of two independent losses; what the transform may have lost is infinite."""
    p = np.maximum(fftconvolve(a[1], b[1]), 0)
    return trimmed(a[0] + b[0], p, a[2] + b[2] + 1e-16 * p.size**0.5)


def epsilon(events, delta):
    if delta == 0:
        return float(sum(count * PURE[event["kind"]](event) for event, count in events))
    mu2, slack, total = 0.0, 0.0, (0, np.ones(1), 0.0)
    for event, count in events:
        kind, v = event["kind"], F(event.get("variance", 0))
        if kind in ("gaussian_noise", "gdp"):
            mu2 += count * float(F(event["mu"]) if kind == "gdp" else 1 / F(event["sigma"])) ** 2
        elif kind == "discrete_gaussian" and (event["dimension"] > 1 or v > 10_000):
            if v < 20:
                sys.exit("This script does not know vectors with so little discrete noise.")
            mu2 += count * float(F(event["shift_squared"]) / (v - 4))  # it is a function of one of
            slack += 2 * count * event["dimension"] * 1e-33  # variance v - 4, nearly (theorem T2)
        else:
            power = masses(event)
            while count:
                total = compose(total, power) if count & 1 else total
                power, count = compose(power, power) if count > 1 else power, count >> 1
    mu, loss = (mu2 * (1 + 1e-12)) ** 0.5, (total[0] + np.arange(total[1].size)) * STEP
    def profile(e):
        t = e - slack - loss
        if mu == 0:
            return total[2] + float(total[1] @ np.maximum(-np.expm1(np.minimum(t, 0)), 0))
        gaussian = np.exp(log_ndtr(mu / 2 - t / mu)) - np.exp(t + log_ndtr(-mu / 2 - t / mu))
        return total[2] + float(total[1] @ np.maximum(gaussian, 0)) + 1e-14

    ends = [0.0, 1e4]
    for _ in range(60):
        ends[int(profile(sum(ends) / 2) <= delta)] = sum(ends) / 2
    return ends[1]


if __name__ == "__main__":
    card = json.load(open(sys.argv[1], encoding="utf-8"))
    parts = [one for measured in card["measurements"] for one in leaves(measured["event"])]
    stated, delta = (float(card["privacy"][name]["text"]) for name in ("epsilon", "delta"))
    found = epsilon(parts, delta)
    print(f"stated {stated:.6g}, proved here {found:.6g} at delta {delta:g}")
    sys.exit(found > stated * 1.05)
