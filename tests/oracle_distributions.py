"""Exact moments of an oracle from the law of one report, by enumeration."""

import numpy as np


def moments(oracle, law, weights, shares):
    """Mean and variance times n of the estimate of sum(weights * shares).

    ``law(value)`` maps each report's supports (a tuple) to its probability; the estimator is the
    oracle's own: supports less ``other``, over keep - other. Conditional on the data.
    """
    mean = variance = 0.0
    for value, share in enumerate(shares):
        terms = [
            (float(p), sum(w * (x - oracle.other) for w, x in zip(weights, s, strict=True)))
            for s, p in law(value).items()
        ]
        scale = oracle.keep - oracle.other
        first = sum(p * x for p, x in terms) / scale
        second = sum(p * x * x for p, x in terms) / scale**2
        mean += share * first
        variance += share * (second - first**2)
    return mean, variance


def ranges(size):
    """All ranges as weights, with their bounds."""
    for low in range(size):
        for high in range(low, size):
            weights = np.zeros(size)
            weights[low : high + 1] = 1
            yield low, high, weights


class CountedBits:
    """Counts the words that a client draws."""

    width = 64
    private = False

    def __init__(self, inner):
        self.inner, self.drawn = inner, []

    def words(self, count):
        self.drawn.append(count)
        return self.inner.words(count)


def every_row(width):
    """All byte strings of a width."""
    numbers = np.arange(256**width)
    return np.stack([(numbers >> 8 * place) & 255 for place in range(width)], axis=1).astype(
        np.uint8
    )
