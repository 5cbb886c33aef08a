"""Which keys may be shown when the keys themselves are private: counts of units above a threshold.

A key that one unit alone has must stay hidden but with probability delta. Noise on the counts of
keys that occur, and a threshold on the noisy counts, do it; docs/theory/keys.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.calibrate import smallest_scale
from discreet.accounting.conversion import gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import steps
from discreet.core import events
from discreet.core._rational import Number, exp_minus, round_up
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms import _exact_divergence as divergence
from discreet.mechanisms._drawn import MANY, EvenWords, draws_follow
from discreet.mechanisms._inputs import LARGEST_INPUT, add_clamped, check_column
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import LARGEST_TABLE, DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian
Method: TypeAlias = Literal["laplace", "gaussian"]
_PRECISION = 256
# Tails are known to 2**-256: no threshold would be shown to keep less than this for a key.
_SMALLEST_DELTA = Fraction(1, 1 << 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection(Mechanism):
    """Keys whose noisy count passes a threshold, with that count. See `partition_selection`.

    A key is shown if ``count - (minimum - 1) + noise > threshold`` and ``count >= minimum``.
    """

    noise: Noise
    threshold: int
    groups: int
    minimum: int
    relation: NeighboringRelation
    target: tuple[Fraction, Fraction] | None = None

    @property
    def mass(self) -> Fraction:
        """The probability that some key of one unit alone is shown, at most."""
        return Fraction(round_up(self.groups * _at_least(self.noise, self.threshold)))

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: the noise on keys that stay, and delta for keys that come."""
        failure = events.ApproxEvent(Fraction(0), self.mass)
        return Guarantee(events.compose([self._noise_event, failure]), self.relation)

    @property
    def _noise_event(self) -> events.DiscreteLaplaceEvent | events.DiscreteGaussianEvent:
        return _event(self.noise, _moved(self.groups, self.relation))

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one count (before the selection)."""
        return self.noise.std

    def release(
        self, counts: ArrayLike, *, rng: RandomSource | None = None
    ) -> tuple[NDArray[np.intp], Ints]:
        """The places of the keys that are shown, and their noisy counts.

        ``counts`` holds the number of units of each key that occurs, in an order that depends on
        the names of the keys only. Each is read by itself: what is no number counts nobody.
        """
        check_column(counts)
        units = steps(counts, exponent=0, lower=0, upper=LARGEST_INPUT, misfit=0)
        source = resolve_rng(rng)
        above = units - (self.minimum - 1)
        noisy = add_clamped(above, self.noise.sample(len(above), source))
        # Above, not at: delta was computed for exceeding the threshold.
        places = np.flatnonzero((above >= 1) & (noisy > self.threshold))
        return places, noisy[places] + (self.minimum - 1)

    def chance(self, units: int) -> float:
        """The probability that a key with so many units is shown."""
        above = count("units", units, minimum=0) - (self.minimum - 1)
        return float(self.noise.sf(self.threshold - above)) if above >= 1 else 0.0

    def certify(self) -> Certificate:
        """Recompute both parts from the law of the noise.

        New keys: ``1 - (1 - p)**groups`` with p summed from the mass function. Keys that stay: the
        divergence of the noise. Together ``d + (1 - d) * divergence``.
        """
        p = float(self.noise.sf(self.threshold - 1))
        new = -math.expm1(self.groups * math.log1p(-p))
        checks = []
        for epsilon, claimed in self._points():
            stay, route = divergence.exact_delta(self._noise_event, epsilon)
            checks.append(
                CertificateCheck(
                    part=f"threshold {self.threshold}, {self.groups} keys of a unit",
                    epsilon=epsilon,
                    claimed=self.guarantee.delta(epsilon) if claimed is None else claimed,
                    exact=new + (1 - new) * stay,
                    route=f"tail of the noise, and {route}",
                )
            )
        return Certificate(
            mechanism="partition_selection",
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=self._drawn(),
        ).demand()

    def _drawn(self) -> tuple[DrawCheck, ...]:
        """Keys at the threshold, where every bit of noise decides, and keys that must not show."""
        at = self.threshold + self.minimum - 1

        def noisy(rng: RandomSource) -> Ints:
            found = np.zeros(MANY, dtype=np.int64)  # hidden keys count as no noise above zero
            places, shown = self.release(np.full(MANY, at), rng=rng)
            above = shown - at
            found[places] = np.where(above > 0, above, -1)  # what must not show has no law
            return found

        def cdf(k: Ints) -> Floats:
            return np.where(np.asarray(k) < 0, 0.0, self.noise.cdf(k))

        hidden = draws_follow("keys at the threshold", noisy, cdf)
        looks = [hidden]
        for units, chance in ((1, float(self.mass / self.groups)), (self.minimum - 1, 0.0)):
            if units < 1 or self.minimum - 1 > units:
                continue
            shown = len(self.release(np.full(MANY, units), rng=EvenWords())[0]) / MANY
            allowed = EvenWords().allowed(MANY) if chance else 0.0
            looks.append(
                DrawCheck(
                    part=f"keys of {units} unit(s)",
                    found=shown,
                    allowed=chance + allowed,
                    route=f"share of {MANY} keys that the release shows",
                )
            )
        return tuple(looks)

    @property
    def _beside(self) -> float:
        """A delta somewhat above what new keys take of it."""
        mass = float(self.mass)
        return min(2 * mass + 1e-6, (1 + mass) / 2)

    def _points(self) -> list[tuple[float, float | None]]:
        if self.target is None:
            worth = self.guarantee.epsilon(self._beside)
            shares = (0.0, 0.5, 1.0) if math.isfinite(worth) else ()
            return [(worth * share, None) for share in shares] or [(0.0, None)]
        epsilon, delta = map(float, self.target)
        return [(0.0, None), (epsilon / 2, None), (epsilon, delta)]

    def __repr__(self) -> str:
        kind = "laplace" if isinstance(self.noise, DiscreteLaplace) else "gaussian"
        least = "" if self.minimum == 1 else f", keys of fewer than {self.minimum} units never"
        return (
            f"partition_selection({self.guarantee!r}; {kind} noise with std {short(self.std)}, "
            f"shown above {self.threshold + self.minimum - 1}{least})"
        )


def partition_selection(
    *,
    groups: int,
    delta: Number,
    epsilon: Number | None = None,
    rho: Number | None = None,
    minimum: int = 1,
    method: Method | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> PartitionSelection:
    """Show keys by a threshold on noisy counts of units, each unit having at most ``groups`` keys.

    Give ``epsilon`` and ``delta`` (Laplace or Gaussian noise, by default the one with the lower
    threshold), or ``rho`` and ``delta`` (Gaussian noise). Keys of fewer than ``minimum`` units are
    never shown, whatever the noise.
    """
    # Theorem: (epsilon, delta)-DP; with rho, delta apart from a rho-zCDP mechanism. Precisely: no
    #   easier to attack than the noise on a vector that moves by `groups` (`2 * groups` under
    #   replace-one) next to an event that gives everything away with probability
    #   `groups * P(noise >= threshold)`.
    # Proof: counts of keys that exist on both sides move by one each, and thresholding is
    #   post-processing. A key on one side only has count 1 there, and is shown with probability
    #   P(1 + noise > threshold); all keys of the unit together by the union bound. The noise of
    #   different keys is independent, so both compose. See theory/keys.
    # Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Wilson et al. 2020; Google 2020 for the
    #   number of groups of a unit.
    # Needs: counts of different units, at most `groups` keys of each unit; the noise is drawn for
    #   each key that occurs, in an order that its name decides.
    many, least = count("groups", groups), count("minimum", minimum)
    dlt = probability("delta", delta, zero=False, one=False)
    if (epsilon is None) == (rho is None) or method not in (None, "laplace", "gaussian"):
        raise InvalidArgument(
            "partition_selection takes epsilon or rho, and method 'laplace' or 'gaussian'."
        )
    if dlt < many * _SMALLEST_DELTA:
        raise InvalidArgument(f"delta must be at least 2**-200 for each group, got {delta}.")
    moved = _moved(many, relation)

    def make(noise: Noise, share: Fraction, target: Fraction | None) -> PartitionSelection:
        return PartitionSelection(
            noise=noise,
            threshold=_threshold(noise, share / many),
            groups=many,
            minimum=least,
            relation=relation,
            target=None if target is None else (target, dlt),
        )

    if rho is not None:
        if method == "laplace":
            raise InvalidArgument("rho buys Gaussian noise: give epsilon for Laplace noise.")
        square = moved / (2 * positive("rho", rho))
        return make(DiscreteGaussian(square=square), dlt, None)
    eps = positive("epsilon", epsilon)
    made = []
    if method != "gaussian":
        made.append(make(DiscreteLaplace(moved / eps), dlt, eps))
    if method != "laplace":
        # Half of delta for the threshold; the exact composition decides how much noise it takes.
        made.append(make(_gaussian(moved, eps, dlt), dlt / 2, eps))
    return min(made, key=lambda one: one.threshold)


def _moved(groups: int, relation: NeighboringRelation) -> int:
    """How many counts one step of the relation moves, each by one."""
    return 2 * groups if central_relation(relation) is NeighboringRelation.REPLACE_ONE else groups


def _event(noise: Noise, moved: int) -> events.DiscreteLaplaceEvent | events.DiscreteGaussianEvent:
    if isinstance(noise, DiscreteLaplace):
        return events.DiscreteLaplaceEvent(noise.scale, moved)
    return events.DiscreteGaussianEvent(noise.square, Fraction(moved), moved)


def _gaussian(moved: int, epsilon: Fraction, delta: Fraction) -> DiscreteGaussian:
    """The smallest certified noise beside an event of probability delta / 2."""
    failure = events.ApproxEvent(Fraction(0), delta / 2)
    target = float(epsilon), float(delta)
    start = Fraction(gaussian_sigma(target[0], delta=target[1] / 2) * math.sqrt(moved))
    sigma = smallest_scale(
        lambda width: events.compose(
            [events.DiscreteGaussianEvent(width**2, Fraction(moved), moved), failure]
        ),
        target=target,
        start=start,
    )
    return DiscreteGaussian(square=sigma**2)


def _at_least(noise: Noise, threshold: int) -> Fraction:
    """P(noise >= threshold), rounded up."""
    if isinstance(noise, DiscreteGaussian) and noise.square > LARGEST_TABLE**2:
        # At most that of a rounded normal: P(N > t - 1) <= exp(-(t - 1)^2 / (2 sigma^2)).
        _, high = exp_minus(Fraction((threshold - 1) ** 2) / (2 * noise.square), _PRECISION)
    else:
        _, high = noise.at_least(threshold, _PRECISION)
    return Fraction(high, 1 << _PRECISION)


def _threshold(noise: Noise, mass: Fraction) -> int:
    """The smallest threshold (from 1 on) which one plus noise exceeds with at most this chance."""
    low, high = 0, 1
    while _at_least(noise, high) > mass:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _at_least(noise, middle) > mass else (low, middle)
    return high
