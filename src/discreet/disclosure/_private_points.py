"""Points drawn around noisy counts of public bins: what looks like k-noise and is private.

There are about as many points as values, spread evenly inside bins. In contrast to k-noise the
release is differentially private.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, one_of
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.disclosure._disclosure_risk import checked_edges, places
from discreet.disclosure._k_noise import between
from discreet.disclosure.generalization_hierarchy import Floats, Ints
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.noise.random_source import RandomSource, resolve_rng

Small: TypeAlias = Literal["keep", "drop", "merge"]
_MOST_POINTS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedPoints:
    """Released points and the noisy counts they were drawn from."""

    values: Floats = field(repr=False)
    edges: Floats = field(repr=False)
    counts: Ints
    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"Points({len(self.values):,} points in {len(self.counts)} bins; {self.guarantee!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatePoints(Mechanism):
    """Noisy counts of public bins, and as many uniform points. Made by `private_points`."""

    edges: tuple[float, ...] = field(repr=False)
    noise: AdditiveMechanism
    minimum: int
    small: Small

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: that of the noisy histogram."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the count of a bin."""
        return self.noise.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise of one bin with this probability."""
        return self.noise.interval(confidence)

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> BinnedPoints:
        """Points that stand for the values; those outside the edges count in the bin next to them.

        Empty bins get noise, too: it is not revealed that they are empty.
        """
        edges = np.array(self.edges)
        source = resolve_rng(rng)
        noisy = self.noise.release(_counted(values, edges), rng=source)
        counts, kept = _tidied(np.maximum(noisy, 0), edges, self.minimum, self.small)
        if counts.sum() > _MOST_POINTS:
            raise Unsupported("there would be too many points: take a larger epsilon.")
        low, high = (np.repeat(ends, counts) for ends in (kept[:-1], kept[1:]))
        drawn = between(low, high, source)
        return BinnedPoints(values=drawn, edges=kept, counts=counts, guarantee=self.guarantee)

    def certify(self) -> Certificate:
        """Recompute the divergence of the noise from its exact distribution."""
        return self.noise.certify()

    def __repr__(self) -> str:
        rule = "" if self.small == "keep" else f", bins below {self.minimum}: {self.small}"
        return f"private_points({len(self.edges) - 1} bins{rule}; {self.noise!r})"


def private_points(
    *,
    edges: Iterable[float],
    epsilon: Number,
    minimum: int = 0,
    small: Small = "keep",
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PrivatePoints:
    """Release uniform points inside public bins, as many as each bin's noisy count.

    ``small`` says what becomes of bins whose *noisy* count is below ``minimum``: "keep", "drop"
    (no points) or "merge" (with the bins to their right until the sum is large enough).

    Theorem: epsilon-DP under ``relation``.
    Proof: one row moves one count by one, or two if it is replaced. Discrete Laplace noise of scale
        1/epsilon (2/epsilon) on *every* bin makes the histogram epsilon-DP; what follows reads
        the noisy counts and fresh randomness only.
    Source: B53; Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    Needs: edges chosen without looking at the data; one row for each person.
    """
    bins = checked_edges(edges)
    one_of("small", small, ("keep", "drop", "merge"))
    if relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")
    moved = 2 if relation is NeighboringRelation.REPLACE_ONE else 1
    return PrivatePoints(
        edges=tuple(bins.tolist()),
        noise=laplace(sensitivity=moved, epsilon=epsilon, domain="integers", relation=relation),
        minimum=count("minimum", minimum, minimum=0),
        small=small,
    )


def _counted(values: ArrayLike, edges: Floats) -> Ints:
    """Rows in each bin: every row in one."""
    x = np.asarray(values)
    if x.ndim != 1 or (x.size and x.dtype.kind not in "iuf") or np.isnan(x).any():
        raise OutOfDomain("values must be a list of numbers without NaN.")
    place = np.clip(places(x.astype(np.float64), edges), 0, len(edges) - 2)
    return np.bincount(place, minlength=len(edges) - 1)


def _tidied(counts: Ints, edges: Floats, minimum: int, small: Small) -> tuple[Ints, Floats]:
    """Noisy counts after the public rule, with the edges of what is left."""
    if small == "keep":
        return counts, edges
    if small == "drop":
        return np.where(counts < minimum, 0, counts), edges
    sums, ends = [], [edges[0]]
    total = 0
    for number, end in zip(counts.tolist(), edges[1:], strict=True):
        total += number
        if total >= minimum:
            sums.append(total)
            ends.append(end)
            total = 0
    if ends[-1] != edges[-1]:  # the rest joins the last bin, or is the only one
        sums = [*sums[:-1], sums[-1] + total] if sums else [total]
        ends = [*ends[:-1], edges[-1]] if len(ends) > 1 else [*ends, edges[-1]]
    return np.array(sums, dtype=np.int64), np.array(ends)
