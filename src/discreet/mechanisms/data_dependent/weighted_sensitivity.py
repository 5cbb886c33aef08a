"""Weighted sensitivity: Laplace noise between the local and the global sensitivity.

Most of the noise may follow the data if a share of it does not. Smooth sensitivity needs less noise
for medians; this needs nothing but the local sensitivity, or a bound on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import as_tuple, count, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.data_dependent._smooth_noise import laplace_draw, laplace_log_density
from discreet.mechanisms.data_dependent._smooth_statistics import TrimmedMean, pad_with_bounds
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    Name,
    divergence,
    trimmed_statistic,
)
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

Weights: TypeAlias = tuple[Fraction, ...]

# The share is rounded up to a multiple of this.
_SHARES = 1 << 20
# Doubles know nothing of much smaller ones.
_SMALLEST_DELTA = Fraction(1, 1 << 1000)


def weighted_delta(epsilon: float, share: float) -> float:
    """The delta of scale ``((1 - share) local + share * global) / epsilon``.

    Theorem: it is ``(1 - b) exp(-b (epsilon + log(1/b)) / (1 - b))`` for the share b, and 0 at 1.
    Proof: docs/theory/smooth-sensitivity.md. The worst case is a local sensitivity that jumps
        between 0 and the global one where the statistic itself does not move.
    Source: B36 (corrected from the published ``exp(epsilon/2 - epsilon / (2 |log b|))``).
    """
    if share >= 1:
        return 0.0
    return (1 - share) * math.exp(-share * (epsilon - math.log(share)) / (1 - share))


def smallest_share(epsilon: float, delta: float) -> Fraction:
    """The smallest share of the global sensitivity that keeps delta, rounded up. B38."""
    low, high = 0, _SHARES  # weighted_delta falls from 1 to 0
    while high - low > 1:
        middle = (low + high) // 2
        keeps = weighted_delta(epsilon, middle / _SHARES) <= delta * (1 - 1e-12)
        low, high = (low, middle) if keeps else (middle, high)
    return Fraction(high, _SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSensitivity(Mechanism):
    """A statistic with noise of its weighted sensitivity. Made by `weighted`."""

    statistic: TrimmedMean
    column: SortedColumn
    epsilon: Fraction
    delta: Fraction
    share: Fraction
    ceilings: Weights
    """What stands for the global sensitivity, as multiples of it; one is drawn for each release."""
    name: str

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return Guarantee(
            events.ApproxEvent(self.epsilon, self.delta), NeighboringRelation.REPLACE_ONE
        )

    @property
    def _largest(self) -> float:
        return float(self._global * max(self.ceilings) / self.epsilon) * self.column.step

    @property
    def _global(self) -> Fraction:
        """The global sensitivity of the rounded statistic, in steps."""
        return self.statistic.largest(self.column.span) + (not self.statistic.whole)

    @property
    def std(self) -> float:
        """The largest standard deviation of the noise over all data; that at hand is private."""
        return math.sqrt(2) * self._largest

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the noise with probability at least ``confidence``, for all data."""
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = -math.log1p(-inside) * self._largest + self.column.step
        return -high, high

    def forecast(self, values: ArrayLike) -> float:
        """The standard deviation on public or made-up data; on private data it is private."""
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        local = self._local(codes)
        squares = [self._scale(local, ceiling) ** 2 for ceiling in self.ceilings]
        return math.sqrt(2 * float(sum(squares)) / len(squares)) * self.column.step

    def _local(self, codes: Ints) -> Fraction:
        """The local sensitivity of the rounded statistic, in steps."""
        reach = self.statistic.reach(pad_with_bounds(codes, self.column.span), 0)
        return Fraction(reach, self.statistic.kept) + (not self.statistic.whole)

    def _scale(self, local: Fraction, ceiling: Fraction) -> Fraction:
        return ((1 - self.share) * local + self.share * ceiling * self._global) / self.epsilon

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """The noisy statistic, between the bounds."""
        source = resolve_rng(rng)
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        which = (
            int(uniform_integers(len(self.ceilings), 1, source)[0]) if len(self.ceilings) > 1 else 0
        )
        scale = self._scale(self._local(codes), self.ceilings[which])
        noisy = math.floor(self.statistic.value(codes)) + laplace_draw(scale, source)
        return self.column.number(min(max(noisy, 0), self.column.span))

    def certify(self) -> Certificate:
        """Integrate the divergence over pairs of local sensitivities and shifts, both directions.

        The theorem is proved; this is a second route, on a grid that holds its worst case.
        """
        eps, b = float(self.epsilon), float(self.share)
        sizes = (0.0, 0.1, 0.5, 0.9, 1.0)
        worst = 0.0
        for one in sizes:
            for other in sizes:
                left, right = ((1 - b) * one + b) / eps, ((1 - b) * other + b) / eps
                for shift in {0.0, min(one, other)}:
                    pair = (0.0, left), (shift, right)
                    worst = max(worst, divergence(laplace_log_density, *pair, eps))
        check = CertificateCheck(
            part=f"share {b:.6g} of the global sensitivity",
            epsilon=eps,
            claimed=float(self.delta),
            exact=worst,
            route="integrals of the densities, both directions",
        )
        return Certificate(mechanism=repr(self), guarantee=self.guarantee, checks=(check,)).demand()

    def __repr__(self) -> str:
        return (
            f"weighted_sensitivity({self.name}, share {float(self.share):.4g}; {self.guarantee!r})"
        )


def weighted_sensitivity(  # noqa: PLR0913 - each has a default and a name
    statistic: Name = "median",
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number,
    quantile: Number | None = None,
    trim: int | None = None,
    blur: tuple[Number, ...] | None = None,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
) -> WeightedSensitivity:
    """A median, quantile, trimmed mean or mean with noise between local and global sensitivity.

    The share b of the global sensitivity is the smallest that keeps ``delta``: it depends on
    nothing private. ``blur`` replaces the global sensitivity by one of several multiples of it,
    drawn anew for each release (blurred sensitivity); each must be at least 1, so it never helps.

    Theorem: (epsilon, delta)-DP if one of ``public_rows`` rows is replaced.
    Proof: `weighted_delta` holds for every ceiling that is at least the global sensitivity, and a
        mixture over ceilings that do not depend on the data is no worse (joint convexity). The
        noise is continuous, of a rational scale, and rounded to the grid: post-processing.
    Source: B36-B38; the published constants are wrong, see the theory.
    Needs: bounds, rows and grid public; 2**-1000 <= delta < 1.
    """
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise InvalidArgument("Weighted sensitivity is for a public number of rows: REPLACE_ONE.")
    public = count("public_rows", public_rows)
    chosen, name = trimmed_statistic(statistic, public, quantile, trim)
    eps = positive("epsilon", epsilon)
    dlt = probability("delta", delta, zero=False, one=False)
    if dlt < _SMALLEST_DELTA:
        raise InvalidArgument(f"delta must be at least 2**-1000, got {delta}.")
    given = (Fraction(1),) if blur is None else as_tuple("blur", blur)
    ceilings = tuple(positive("blur", one) for one in given)
    if not ceilings or min(ceilings) < 1:
        raise InvalidArgument(
            "blur must hold multiples of the global sensitivity, each at least 1: with less than "
            "that there is no guarantee."
        )
    return WeightedSensitivity(
        statistic=chosen,
        column=SortedColumn.of(lower, upper, granularity),
        epsilon=eps,
        delta=dlt,
        share=smallest_share(float(eps), float(dlt)),
        ceilings=ceilings,
        name=name,
    )
