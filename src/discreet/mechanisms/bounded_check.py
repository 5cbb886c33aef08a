"""The certificate of bounded noise: divergences from its laws, by a route of their own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.mechanisms.bounded_pair import Outputs
from discreet.noise.bounded import BoundedLaplace
from discreet.noise.law import Floats

# Up to so many outputs all pairs of laws are compared point by point.
_LARGEST_TABLE = 400
_NODES = 24


def worst_divergence(outputs: Outputs, scale: Fraction, epsilon: float) -> tuple[float, str]:
    """The largest divergence of two centres, both orders, and how it was found."""
    if outputs.span < _LARGEST_TABLE:
        return _all_pairs(outputs, scale, epsilon), "sum over the outputs, all pairs of centres"
    found = _some_pairs(outputs, scale, epsilon)
    return found, "tails of the laws, centres near both edges and the worst one"


def table(span: int, scale: Fraction) -> Floats:
    """All laws: row q, column output."""
    every = np.arange(span + 1)
    return np.array(
        [BoundedLaplace(scale, lower=-q, upper=span - q).pmf(every - q) for q in every.tolist()]
    )


def _all_pairs(outputs: Outputs, scale: Fraction, epsilon: float) -> float:
    laws = table(outputs.span, scale)
    factor = math.exp(epsilon) * (1 + 1e-13)  # rounding of doubles is not a loss
    worst = 0.0
    for shift in range(1, outputs.shift + 1):
        for one, other in ((laws[:-shift], laws[shift:]), (laws[shift:], laws[:-shift])):
            excess = np.maximum(one - factor * other, 0).sum(axis=1)
            worst = max(worst, float(excess.max(initial=0.0)))
    return worst


def _some_pairs(outputs: Outputs, scale: Fraction, epsilon: float) -> float:
    """Centres near both edges and where the search found the worst, shifts whole and halved."""
    last = outputs.span - outputs.shift
    suspect = outputs.worst(float(scale), epsilon)[1]
    spread = np.rint(np.geomspace(1, last + 1, _NODES)).astype(np.int64) - 1
    centres = np.unique(np.clip(np.append(np.append(spread, last - spread), suspect), 0, last))
    worst = 0.0
    for q in centres.tolist():
        for shift in (outputs.shift, max(1, outputs.shift // 2)):
            for one, other in ((q, q + shift), (q + shift, q)):
                worst = max(worst, _half_line(outputs.span, scale, (one, other), epsilon))
    return worst


def _half_line(span: int, scale: Fraction, pair: tuple[int, int], epsilon: float) -> float:
    """The excess of the worst half-line, among those that end between the two centres."""
    laws = [BoundedLaplace(scale, lower=-q, upper=span - q) for q in pair]
    low, high = min(pair), max(pair)
    # The loss is monotone between the centres: find where it passes epsilon, and look around it.
    falling = pair[0] < pair[1]
    first, last = low - 1, high
    while last - first > 1:
        middle = (first + last) // 2
        logs = [float(law.log_pmf(middle - q)) for law, q in zip(laws, pair, strict=True)]
        beyond = (logs[0] - logs[1] > epsilon) == falling
        first, last = (middle, last) if beyond else (first, middle)
    ends = np.arange(first - 2, first + 3, dtype=np.float64)
    own, its = (
        law.cdf(ends - q) if falling else law.sf(ends - q)
        for law, q in zip(laws, pair, strict=True)
    )
    return max(0.0, float(np.max(own - math.exp(epsilon) * its * (1 + 1e-13))))
