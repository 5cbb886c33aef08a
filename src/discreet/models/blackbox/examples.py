"""Examples that are private too, and estimates from noisy numbers.

Outputs at public anchors are released once, then they are public. Estimates are free of cost: they
read released numbers and public pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.rows import matrix
from discreet.boundary.values import doubles, listed, numeric_array
from discreet.core._rational import Number
from discreet.core._validate import as_tuple, finite, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.ledger.account import Account, Receipt, reserve_if_charged
from discreet.mechanisms.additive import laplace
from discreet.models.blackbox.metrics import Floats, Ints, Metric, tuples
from discreet.models.blackbox.output_ranges import check_anchors
from discreet.noise.distribution import Distribution
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

# ── Private examples ─────────────────────────────────────────────────────────────────────────────


_FINE = 1 << 20  # steps between the bounds of an output
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PrivateExamples(Result):
    """Noisy outputs at public anchors, made from private examples.

    Attributes:
        anchors: Public inputs.
        outputs: Noisy mean output of the examples near each anchor.
        guarantee: Privacy guarantee of the release.
        receipt: Receipt of the charge, or None.

    Examples:
        >>> from discreet import blackbox
        >>> made = blackbox.release_examples(
        ...     [[0.1], [0.9], [0.2]],
        ...     [1, 9, 2],
        ...     anchors=[[0], [1]],
        ...     metric=blackbox.Records(),
        ...     bounds=(0, 10),
        ...     epsilon=1,
        ... )
        >>> made.outputs.shape
        (2,)
    """

    anchors: Floats
    outputs: Floats
    guarantee: Guarantee
    receipt: Receipt | None

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the output at each anchor.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each: a column for each number of the anchor, then value, std, low and
            high, the last three None.

        Examples:
            >>> from discreet import blackbox
            >>> made = blackbox.release_examples(
            ...     [[0.1], [0.9], [0.2]],
            ...     [1, 9, 2],
            ...     anchors=[[0], [1]],
            ...     metric=blackbox.Records(),
            ...     bounds=(0, 10),
            ...     epsilon=1,
            ... )
            >>> [list(row) for row in made.rows()]
            [['input 1', 'value', 'std', 'low', 'high'], ['input 1', 'value', 'std', 'low', 'high']]
        """
        anchors = self.anchors.reshape(len(self.outputs), -1)
        names = [f"input {place + 1}" for place in range(anchors.shape[1])]
        return records(names, anchors.tolist(), value=self.outputs)


def release_examples(  # noqa: PLR0913 - as `make_private`
    inputs: ArrayLike,
    outputs: ArrayLike,
    *,
    anchors: ArrayLike,
    metric: Metric,
    bounds: tuple[Number, Number],
    epsilon: Number,
    account: Account | None = None,
    label: str = "examples for a learned mechanism",
    rng: RandomSource | None = None,
) -> PrivateExamples:
    """Release noisy outputs of private examples, to be used as public examples.

    Each example counts at its nearest anchor. An anchor with few examples mostly receives the mean
    of all examples.

    Args:
        inputs: Private inputs, one per example.
        outputs: Private output of each example.
        anchors: Public inputs, chosen without looking at the examples.
        metric: Distance of inputs.
        bounds: Public lower and upper bound of the outputs. Outputs are clipped.
        epsilon: Privacy loss of the release.
        account: Ledger account that pays for the release.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    Returns:
        Anchors and noisy outputs, for `make_private(public_inputs=..., public_outputs=...)`.

    Raises:
        BudgetExceeded: The account cannot pay. Nothing was read.
        InvalidArgument: `bounds` or another argument is not valid.

    Privacy:
        epsilon-DP if one example is added or removed. This protects the people of the examples;
        answers of a mechanism made from them need a guarantee of their own.

    Examples:
        >>> from discreet import blackbox
        >>> made = blackbox.release_examples(
        ...     [[0.1], [0.9], [0.2]],
        ...     [1, 9, 2],
        ...     anchors=[[0], [1]],
        ...     metric=blackbox.Records(),
        ...     bounds=(0, 10),
        ...     epsilon=1,
        ... )
        >>> made.guarantee.epsilon()
        1.0

    References:
        [Proof](../theory/theorems.md#models.blackbox.examples.release_examples).
    """
    # Theorem: the result is epsilon-DP for adding or removing one example (input and output).
    # Proof: the anchor of an example and its clipped, rounded output are functions of it alone. So
    #   an example moves one count by one and one sum by at most half the steps between the bounds;
    #   each of the two vectors gets Laplace noise for half of epsilon. The rest reads nothing else.
    # Source: Aoutouf 2021 asks for public examples; the guarantee for private ones is separate from
    #   that of the answers, and protects other people (A50).
    # Needs: public anchors, metric and bounds. Answers of the mechanism that is made from the
    #   result protect the people of its private inputs only.
    places = check_anchors(metric, anchors, len(tuples("anchors", anchors)))
    ends = tuple(float(finite("bounds", one)) for one in as_tuple("bounds", bounds))
    if len(ends) != 2 or not 0 < ends[1] - ends[0] < math.inf:
        raise InvalidArgument("bounds must be a lower and an upper number, not too far apart.")
    low, high = ends
    half = positive("epsilon", epsilon) / 2
    reach = _FINE // 2
    counting = laplace(sensitivity=1, epsilon=half, relation=NeighboringRelation.ADD_REMOVE)
    adding = laplace(sensitivity=reach, epsilon=half, relation=NeighboringRelation.ADD_REMOVE)
    guarantee = counting.guarantee + adding.guarantee
    source = resolve_rng(rng)
    # What a process has set for numbers too small or too large would tell of them.
    with (
        reserve_if_charged(account, guarantee, label=label, rng=source) as held,
        np.errstate(all="ignore"),
    ):
        given = _inputs(inputs, positions=places.shape[1], attributes=places.shape[2])
        said = _steps(outputs, low=low, high=high)
        if given is None or len(given) != len(said):
            raise OutOfDomain("inputs must have the shape of the anchors, and one output each.")
        nearest = _nearest(given, places, metric)
        counts = np.bincount(nearest, minlength=len(places)).astype(np.int64)
        sums = np.zeros(len(places), dtype=np.int64)
        np.add.at(sums, nearest, said)
        noisy_counts = np.asarray(counting.release(counts, rng=source), dtype=np.float64)
        noisy_sums = np.asarray(adding.release(sums, rng=source), dtype=np.float64)
    means = _means(noisy_counts, noisy_sums, half=half)
    step = (high - low) / _FINE
    return PrivateExamples(
        anchors=places,
        outputs=np.clip((low + high) / 2 + means * step, low, high),
        guarantee=guarantee,
        receipt=None if held is None else held.receipt,
    )


def _inputs(inputs: ArrayLike, *, positions: int, attributes: int) -> Floats | None:
    """Examples of this shape, each read by itself; None for an array of another shape.

    In a list, an example that has another shape is one of missing entries.
    """
    array = numeric_array(inputs)
    if array is not None and len(array) == 0:
        return np.empty((0, positions, attributes))
    if array is not None:
        table = np.asarray(array, dtype=np.float64)
        cubes = table[:, :, None] if table.ndim == 2 else table
        return cubes if cubes.shape[1:] == (positions, attributes) else None
    if not hasattr(inputs, "__len__") or isinstance(inputs, str | bytes):
        return None
    if attributes == 1 and hasattr(inputs, "columns"):  # a frame, column by column
        flat = matrix(inputs, columns=positions)
        return flat[:, :, None] if flat.shape[1] == positions else None
    found = [_example(one, positions=positions, attributes=attributes) for one in listed(inputs)]
    return np.array(found).reshape(len(found), positions, attributes)


def _example(given: object, *, positions: int, attributes: int) -> Floats:
    rows = matrix([given], columns=positions).reshape(-1, 1)
    if attributes == 1 and not np.isnan(rows).all():
        return rows
    try:
        nested = listed(given)
    except Exception:  # noqa: BLE001 - code of its own: what cannot be read is missing
        nested = []
    if len(nested) != positions:
        return np.full((positions, attributes), np.nan)
    return matrix(nested, columns=attributes)


def _steps(outputs: ArrayLike, *, low: float, high: float) -> Ints:
    """Outputs in whole steps from the middle of the bounds; what is no number is the middle."""
    array = numeric_array(outputs)
    flat = array.ndim == 1 if array is not None else hasattr(outputs, "__len__")
    if not flat or isinstance(outputs, str | bytes):
        raise OutOfDomain("outputs must be numbers, one for each input.")
    values = doubles(outputs)
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
    """Means by anchor, drawn toward the mean of all as if it were so many more examples."""
    doubt = math.sqrt(2) / float(half)  # standard deviation of the noise of a count
    overall = sums.sum() / max(float(counts.sum()), doubt)
    weights = np.maximum(counts, 0)
    means: Floats = (sums + overall * doubt) / (weights + doubt)
    reach = _FINE // 2
    return np.clip(means, -reach, reach)


# ── Estimates from noisy numbers ─────────────────────────────────────────────────────────────────
# Before the noise stood a clipped answer, and public inputs show which clipped answers there are
# and what the function itself said. The estimate is the weighted median of what it said, each
# weighed by how well the noise explains the difference (A47).


Mask: TypeAlias = NDArray[np.bool_]

NODES = 32
"""The noise stands for its quantiles at so many equal steps where an error is expected."""
_PLACES = 256  # noisy numbers for which estimates are made to expect an error
_PARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NoisyValuePosterior:
    """Public pairs: a clipped answer, in steps, and what the function said."""

    clipped: Ints
    said: Floats
    distribution: Distribution

    def __post_init__(self) -> None:
        if len(self.clipped) != len(self.said) or not len(self.said):
            raise InvalidArgument("A posterior needs public pairs of clipped answers and outputs.")
        order = np.argsort(self.said, kind="stable")
        object.__setattr__(self, "clipped", np.asarray(self.clipped, dtype=np.int64)[order])
        object.__setattr__(self, "said", np.asarray(self.said, dtype=np.float64)[order])

    def estimate(self, noisy: Ints) -> Floats:
        """The weighted median of what was said, for each noisy number."""
        # Theorem: costs nothing. Proof: a function of the released number and of public data.
        weights = self._weights(np.asarray(noisy, dtype=np.int64))
        return _median(weights, self.said)

    def expected_error(self) -> float:
        """Mean absolute error over the public pairs, each estimated from others."""
        nodes = noise_nodes(self.distribution)
        places = np.unique(
            np.linspace(self.clipped.min() + nodes[0], self.clipped.max() + nodes[-1], _PLACES)
            .round()
            .astype(np.int64)
        )
        total = 0.0
        for own, rest in _parts(len(self.said)):
            others = NoisyValuePosterior(
                clipped=self.clipped[rest], said=self.said[rest], distribution=self.distribution
            )
            found = others.estimate(places)
            noisy = self.clipped[own, None] + nodes
            at = np.minimum(np.searchsorted(places, noisy), len(places) - 1)
            total += float(np.abs(found[at] - self.said[own, None]).mean(axis=1).sum())
        return total / len(self.said)

    def _weights(self, noisy: Ints) -> Floats:
        logs = self.distribution.log_pmf(noisy[:, None] - self.clipped)
        most = logs.max(axis=1, keepdims=True)
        # Noise of bounded reach explains nothing far away: there all are alike.
        heard = np.isfinite(most)
        weights: Floats = np.exp(np.where(heard, logs, 0.0) - np.where(heard, most, 0.0))
        return weights


def constant_error(said: Floats) -> float:
    """The same expected error for a median that hears nothing: split alike, so they compare."""
    ordered = np.sort(said)
    errors = [
        np.abs(ordered[own] - np.median(ordered[rest])).sum() for own, rest in _parts(len(said))
    ]
    return float(sum(errors) / len(said))


def _parts(size: int) -> list[tuple[Mask, Mask]]:
    """Outputs to judge by, and the others; a single one has no others."""
    part = np.arange(size) % min(_PARTS, size)
    return [(part == one, (part != one) | (size == 1)) for one in range(min(_PARTS, size))]


def _median(weights: Floats, said: Floats) -> Floats:
    """Weighted medians along the last axis; ``said`` is in order."""
    sums = np.cumsum(weights, axis=1)
    half = sums[:, -1:] / 2
    medians: Floats = said[np.argmax(sums >= half, axis=1)]
    return medians


@lru_cache(maxsize=64)
def noise_nodes(distribution: Distribution) -> Ints:
    """Quantiles of the noise in the middle of equal shares."""
    return np.array(
        [distribution.quantile((i + 0.5) / NODES) for i in range(NODES)], dtype=np.int64
    )
