"""When the examples are private too: outputs at public anchors, released once, then public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core.check import finite, listed, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.ledger.account import Account, Receipt
from discreet.ledger.charged import charged
from discreet.mechanisms.laplace import laplace
from discreet.models.learned.metrics import Floats, Ints, Metric, tuples
from discreet.models.learned.ranges import anchored
from discreet.noise.bits import Bits, source_of

_FINE = 1 << 20  # steps between the bounds of an output
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateOutputs:
    """Outputs at anchors that `wrap` may take as public: what they cost is `guarantee`."""

    anchors: Floats
    outputs: Floats
    guarantee: Guarantee
    receipt: Receipt | None


def private_outputs(  # noqa: PLR0913 - as `wrap`
    inputs: ArrayLike,
    outputs: ArrayLike,
    *,
    anchors: ArrayLike,
    metric: Metric,
    bounds: tuple[Number, Number],
    epsilon: Number,
    account: Account | None = None,
    label: str = "examples for a learned mechanism",
    bits: Bits | None = None,
) -> PrivateOutputs:
    """Mean outputs of private examples around public anchors, with noise (A50.7).

    Each example counts at its nearest anchor. ``anchors`` and ``bounds``, between which outputs are
    clipped, must be chosen without looking at the examples. An anchor with few examples gets what
    all examples together say, by as much as its own count is noise.

    Theorem: the result is epsilon-DP for adding or removing one example (input and output).
    Proof: the anchor of an example and its clipped, rounded output are functions of it alone. So
        an example moves one count by one and one sum by at most half the steps between the bounds;
        each of the two vectors gets Laplace noise for half of epsilon. The rest reads nothing else.
    Source: Aoutouf 2021 asks for public examples; the guarantee for private ones is separate from
        that of the answers, and protects other people (A50).
    Needs: public anchors, metric and bounds. Answers of the mechanism that is made from the result
        protect the people of its private inputs only.

    >>> import discreet
    >>> made = private_outputs(
    ...     [[0.1], [0.9], [0.2]], [1, 9, 2], anchors=[[0], [1]], metric=discreet.learned.Records(),
    ...     bounds=(0, 10), epsilon=1, bits=discreet.seeded(1))
    >>> made.guarantee.epsilon()
    1.0
    """
    places = anchored(metric, anchors, len(tuples("anchors", anchors)))
    ends = tuple(float(finite("bounds", one)) for one in listed("bounds", bounds))
    if len(ends) != 2 or not 0 < ends[1] - ends[0] < math.inf:
        raise InvalidArgument("bounds must be a lower and an upper number, not too far apart.")
    low, high = ends
    half = positive("epsilon", epsilon) / 2
    reach = _FINE // 2
    counting = laplace(sensitivity=1, epsilon=half, relation=Relation.ADD_REMOVE)
    adding = laplace(sensitivity=reach, epsilon=half, relation=Relation.ADD_REMOVE)
    guarantee = counting.guarantee + adding.guarantee
    source = source_of(bits)
    # What a process has set for numbers too small or too large would tell of them.
    with charged(account, guarantee, label=label, bits=source) as held, np.errstate(all="ignore"):
        given = tuples("inputs", inputs)
        said = _steps(outputs, low=low, high=high)
        fits = given.shape[1:] == places.shape[1:] or len(given) == 0
        if not fits or len(given) != len(said):
            raise OutOfDomain("inputs must have the shape of the anchors, and one output each.")
        nearest = _nearest(given, places, metric)
        counts = np.bincount(nearest, minlength=len(places)).astype(np.int64)
        sums = np.zeros(len(places), dtype=np.int64)
        np.add.at(sums, nearest, said)
        noisy_counts = np.asarray(counting.release(counts, bits=source), dtype=np.float64)
        noisy_sums = np.asarray(adding.release(sums, bits=source), dtype=np.float64)
    means = _means(noisy_counts, noisy_sums, half=half)
    step = (high - low) / _FINE
    return PrivateOutputs(
        anchors=places,
        outputs=np.clip((low + high) / 2 + means * step, low, high),
        guarantee=guarantee,
        receipt=None if held is None else held.receipt,
    )


def _steps(outputs: ArrayLike, *, low: float, high: float) -> Ints:
    """Outputs in whole steps from the middle of the bounds; what is no number is the middle."""
    try:
        values = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise OutOfDomain("outputs must be numbers, one for each input.")
    middle = (low + high) / 2
    inside = np.clip(np.where(np.isnan(values), middle, values), low, high)
    steps = np.rint((inside - middle) / (high - low) * _FINE)
    return np.clip(steps, -(_FINE // 2), _FINE // 2).astype(np.int64)


def _nearest(given: Floats, places: Floats, metric: Metric) -> Ints:
    """The anchor of each example, found for each by itself; the first of several."""
    some = (given[at : at + _CHUNK] for at in range(0, len(given), _CHUNK))
    found = [metric.distances(few, places).argmin(axis=1) for few in some]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _means(counts: Floats, sums: Floats, *, half: Fraction) -> Floats:
    """Means by anchor, drawn towards the mean of all as if it were so many more examples."""
    doubt = math.sqrt(2) / float(half)  # standard deviation of the noise of a count
    overall = sums.sum() / max(float(counts.sum()), doubt)
    weights = np.maximum(counts, 0)
    means: Floats = (sums + overall * doubt) / (weights + doubt)
    reach = _FINE // 2
    return np.clip(means, -reach, reach)
