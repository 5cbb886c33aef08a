"""Points drawn around noisy counts of public bins: what looks like k-noise and is private.

There are about as many points as values, spread evenly inside bins. In contrast to k-noise the
release is differentially private.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core._rational import Number
from discreet.core._validate import count, one_of
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.disclosure._disclosure_risk import checked_edges, places
from discreet.disclosure._k_noise import between
from discreet.disclosure.generalization_hierarchy import Floats, Ints
from discreet.mechanisms._drawn import (
    EvenWords,
    Handed,
    charges,
    moves,
    tells_nothing_else,
    with_stand_in,
)
from discreet.mechanisms._inputs import read_column
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

Small: TypeAlias = Literal["keep", "drop", "merge"]
_MOST_POINTS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedPoints(Result):
    """Released points, and the noisy counts from which they were drawn.

    Attributes:
        values: Released points.
        edges: Edges of the bins that remain.
        counts: Noisy counts of these bins, not negative.
        guarantee: Privacy guarantee of the release.

    Examples:
        >>> from discreet import disclosure
        >>> points = disclosure.private_points(edges=[0, 5, 10], epsilon=1).release([1, 2, 7])
        >>> len(points.values) == int(points.counts.sum())
        True
    """

    values: Floats = field(repr=False)
    edges: Floats = field(repr=False)
    counts: Ints
    guarantee: Guarantee

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - points have no error
        """List the released points.

        Args:
            confidence: Without effect: a point has no interval.

        Returns:
            One record for each: point, value, std, low and high, the last three None.

        Examples:
            >>> len(points.rows()) == len(points.values)
            True
        """
        keys = ((place,) for place in range(len(self.values)))
        return records(("point",), keys, value=self.values)

    def __repr__(self) -> str:
        cost = describe_epsilon(self.guarantee)
        return f"{len(self.values):,} points in {len(self.counts)} bins ({cost})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatePoints(Mechanism):
    """A mechanism that releases points instead of values. Made by `private_points`.

    Attributes:
        edges: Public edges of the bins.
        noise: Mechanism that adds noise to the counts.
        minimum: Noisy count below which a bin is small.
        small: What happens to small bins: `"keep"`, `"drop"` or `"merge"`.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.private_points(edges=[0, 5, 10], epsilon=1).guarantee.epsilon()
        1.0
    """

    edges: tuple[float, ...] = field(repr=False)
    noise: AdditiveMechanism
    minimum: int
    small: Small

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release: that of the noisy histogram."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one count."""
        return self.noise.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise of one count.

        Args:
            confidence: Probability with which the noise lies between the bounds.

        Returns:
            Lower and upper bound.

        Examples:
            >>> from discreet import disclosure
            >>> disclosure.private_points(edges=[0, 5, 10], epsilon=1).interval(0.95)
            (-3.0, 3.0)
        """
        return self.noise.interval(confidence)

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> BinnedPoints:
        """Release points that represent the values.

        Args:
            values: Private values. Values outside the edges count in the nearest bin. Missing
                values, NaN and values that are not numbers count in no bin.
            rng: Random source. By default the operating system's.

        Returns:
            The points with the noisy counts and the guarantee.

        Raises:
            Unsupported: There would be too many points, because epsilon is very small.

        Privacy:
            The release satisfies `guarantee` for one value. Empty bins receive noise too.

        Examples:
            >>> from discreet import disclosure
            >>> points = disclosure.private_points(edges=[0, 5, 10], epsilon=1).release([1, 2, 7])
            >>> all(0 <= point <= 10 for point in points.values)
            True
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
        """Recompute the guarantee of the noise, and how far one value moves the counts.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: The exact distribution does not satisfy the guarantee.

        Examples:
            >>> from discreet import disclosure
            >>> disclosure.private_points(edges=[0, 5, 10], epsilon=1).certify().holds
            True
        """
        inner = self.noise.certify()
        low, high = self.edges[0], self.edges[-1]
        replaced = self.noise.relation is NeighboringRelation.REPLACE_ONE
        data = [[low, low], [low, high] if replaced else [low, low, high]]
        handed, answers = [], []
        for values in data:
            noted = Handed(self.noise)
            told = Handed(self.noise, answer=np.ones(len(self.edges) - 1, dtype=np.int64))
            with_stand_in(self, noise=noted).release(values, rng=EvenWords())
            handed.append(noted.handed)
            answers.append(with_stand_in(self, noise=told).release(values, rng=EvenWords()).counts)
        found = np.abs(handed[0] - handed[1]).sum()
        drawn = (
            *inner.drawn,
            moves("counts of the bins", found, float(self.noise.sensitivity)),
            tells_nothing_else("counts of the bins", answers),
            charges("what is charged", self.guarantee, self.noise.guarantee),
        )
        return replace(inner, guarantee=self.guarantee, drawn=drawn).demand()

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
    """Create a mechanism that replaces values by random points in public bins.

    It draws as many uniform points in each bin as the noisy count says.

    Args:
        edges: Public edges of the bins, in increasing order.
        epsilon: Privacy loss of a release.
        minimum: Noisy count below which a bin is small.
        small: What happens to small bins: `"keep"` them, `"drop"` their points, or `"merge"` them
            with the bins to their right.
        relation: Neighboring relation: one value is added or removed, or one value is replaced.

    Returns:
        A mechanism with `release(values)`.

    Raises:
        InvalidArgument: The edges do not increase, or another argument is outside its range.

    Privacy:
        epsilon-DP for one value. The edges must not depend on the data, and each person may have
        one value only.

    Examples:
        >>> from discreet import disclosure
        >>> mechanism = disclosure.private_points(edges=range(0, 101, 10), epsilon=1)
        >>> points = mechanism.release([12, 37, 41, 58, 93])
        >>> len(points.counts)
        10

    References:
        Dwork, McSherry, Nissim and Smith (2006). Ghosh, Roughgarden and Sundararajan (2009).
        [Proof](../theory/theorems.md#disclosure._private_points.private_points).
    """
    # Theorem: epsilon-DP under `relation`.
    # Proof: one row moves one count by one, or two if it is replaced. Discrete Laplace noise of
    #   scale 1/epsilon (2/epsilon) on *every* bin makes the histogram epsilon-DP; what follows
    #   reads the noisy counts and fresh randomness only.
    # Source: B53; Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    # Needs: edges chosen without looking at the data; one row for each person.
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
    """Rows in each bin, each read by itself: one that is no number is in none."""
    x = read_column(values)
    place = np.clip(places(x[~np.isnan(x)], edges), 0, len(edges) - 2)
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
