"""Exact intervals for a proportion: binomial sampling and whole-number noise, inverted together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.intervals import interval as laws
from discreet.intervals.interval import IntervalAnswers, IntervalForecast, IntervalPlan
from discreet.mechanisms._drawn import EvenWords, Handed, charges, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Distribution, Floats
from discreet.noise.random_source import RandomSource

_ROUNDING = 1e-7
_HALVINGS = 34
_POINTS = 33
# Rows that a certificate makes up, at most.
_MOST_ROWS = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionInterval(IntervalPlan):
    """A noisy share of yes with its interval. Made by `proportion_interval`."""

    public_rows: int
    noise: AdditiveMechanism
    confidence: float

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise on the share."""
        return self.noise.std / self.public_rows

    @property
    def guaranteed(self) -> float | None:
        """The level: for every share, and any number of rows."""
        return self.confidence

    @property
    def needs(self) -> str:
        """What the coverage rests on."""
        return "independent rows, for every share"

    @property
    def misfit(self) -> float:
        """No: what is missing did not say yes."""
        return 0.0

    def answers(self, tables: Floats, rng: RandomSource) -> IntervalAnswers:
        """Intervals of private columns; a number counts as yes from one half on."""
        counts = (tables >= 0.5).sum(axis=1, dtype=np.int64)
        noisy = np.asarray(self.noise.release(counts, rng=rng))
        low, high = self.ends(noisy)
        share = noisy / self.public_rows
        return IntervalAnswers(low=low, high=high, value=share, released=(share,))

    def ends(self, noisy: ArrayLike) -> tuple[Floats, Floats]:
        """The interval for noisy counts: post-processing."""
        # Theorem: covers the share p with probability at least `level`, for every p and n.
        # Proof: the noisy count grows with p (stochastically), so the p at which a count as large
        #   as this has a probability of at most (1 - level) / 2 lie below one point, and are
        #   refused; likewise above. The probabilities are those of the exact convolution; what is
        #   left out of it and what doubles round counts as not refused.
        # Source: Clopper, Pearson 1934, for the law with noise.
        seen, back = np.unique(np.asarray(noisy, dtype=np.int64), return_inverse=True)
        low = np.array([_lowest(self, int(count)) for count in seen])
        high = np.array([1 - _lowest(self, self.public_rows - int(count)) for count in seen])
        return low[back], high[back]

    def forecast(self, share: float) -> IntervalForecast:
        """The width before release, if this is the share of yes: a public guess."""
        about = float(check.probability("share", share))
        deviation = math.hypot(self.noise.std, math.sqrt(self.public_rows * about * (1 - about)))
        counts = np.rint(self.public_rows * about + deviation * laws.normal_points(_POINTS))
        low, high = self.ends(counts)
        middle = self.ends([self.public_rows // 2])
        return IntervalForecast(
            width=float((high - low).mean()),
            largest=min(
                1.0, float(middle[1][0] - middle[0][0]) * (1 + 1e-6) + 1 / self.public_rows
            ),
            plain=self._plain(about),
            guess=f"the share is {short(about)}",
            nominal=self.confidence,
            guaranteed=self.guaranteed,
            needs=self.needs,
        )

    def _plain(self, share: float) -> float:
        """Clopper and Pearson's width without noise."""
        count, tail = self.public_rows * share, (1 - self.confidence) / 2
        low = betaincinv(count, self.public_rows - count + 1, tail) if count > 0 else 0.0
        high = (
            betaincinv(count + 1, self.public_rows - count, 1 - tail)
            if count < self.public_rows
            else 1.0
        )
        return float(high - low)

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise, and how far one row moves what it is added to."""
        inner = self.noise.certify()
        many = min(self.public_rows, _MOST_ROWS)
        small = replace(self, public_rows=many)
        worst = 0
        for share in (0, many // 2, many - 1):
            rows = np.repeat([1.0, 0.0], [share, many - share])
            seen = []
            for last in (0.0, 1.0):
                rows[-1] = last
                noted = Handed(self.noise)
                with_stand_in(small, noise=noted).answers(rows[None, :], EvenWords())
                seen.append(int(noted.handed[0]))
            worst = max(worst, abs(seen[0] - seen[1]))
        drawn = (
            *inner.drawn,
            moves(f"{many} rows", worst, float(self.noise.sensitivity) ** self._power),
            charges("what is charged", self.guarantee, self.noise.guarantee),
        )
        return replace(
            inner, mechanism="proportion_interval", guarantee=self.guarantee, drawn=drawn
        ).demand()

    @property
    def _power(self) -> float:
        """Gaussian noise names the square of its sensitivity."""
        return 1.0 if self.noise.name == "laplace" else 0.5


@lru_cache(maxsize=1 << 14)
def _lowest(plan: ProportionInterval, count: int) -> float:
    """The largest share at which a noisy count of ``count`` or more is refused; 0 if none is."""
    assert plan.noise.integers is not None  # noqa: S101 - made on integers
    noise = plan.noise.integers.noise
    assert isinstance(noise, Distribution)  # noqa: S101 - integer noise is a law
    allowed = (1 - plan.confidence) / 2 * (1 - _ROUNDING)
    low, high = 0.0, 1.0

    def tail(share: float) -> float:
        counts, law, left = laws.binomial(plan.public_rows, share)
        return float(law @ noise.sf(count - 1 - counts)) + left

    if tail(high) <= allowed:
        return 1.0  # even all of them do not make so many: only the largest share is left
    if tail(low) > allowed:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if tail(middle) <= allowed:
            low = middle
        else:
            high = middle
    return low


def proportion_interval(
    *, public_rows: int, epsilon: Number, delta: Number = 0, confidence: float = 0.95
) -> ProportionInterval:
    """Plan a confidence interval for the share of rows that are true.

    Args:
        public_rows: Public number of rows, at least 1.
        epsilon: Privacy loss of the interval.
        delta: Probability parameter of (epsilon, delta)-DP. With it the noise is Gaussian noise.
        confidence: Confidence level, between 0 and 1.

    Returns:
        A plan with `forecast(share)`, `release(values)` and `guarantee`. It covers for every share
        and every number of rows.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        (epsilon, delta)-DP if one row is replaced. If you pass `account` to `release`, it is
        charged before the data are read.

    Examples:
        >>> import discreet
        >>> plan = discreet.intervals.proportion(public_rows=1_000, epsilon=1)
        >>> interval = plan.release([True] * 400 + [False] * 600)
        >>> interval.low < 0.4 < interval.high
        True

    References:
        Clopper and Pearson (1934).
        [Proof](../theory/theorems.md#intervals._proportion.proportion_interval).
    """
    # Theorem: the release is (epsilon, delta)-DP if one row is replaced, and covers with
    #   probability at least `confidence` for every share and every number of rows.
    # Proof: a replaced row moves the count by at most 1, and whole-number noise for that is added;
    #   the interval is post-processing (`ProportionInterval.ends`).
    # Source: Clopper, Pearson 1934; Ghosh, Roughgarden, Sundararajan 2009. C11 (rare events).
    # Needs: a public number of rows, at least 1; independent rows.
    size = check.count("public_rows", public_rows)
    allowed = check.probability("delta", delta, one=False)
    options = {"sensitivity": 1, "epsilon": epsilon, "domain": "integers"}
    if allowed:
        noise = gaussian(**options, delta=allowed, relation=NeighboringRelation.REPLACE_ONE)  # type: ignore[arg-type]
    else:
        noise = laplace(**options, relation=NeighboringRelation.REPLACE_ONE)  # type: ignore[arg-type]
    return ProportionInterval(
        public_rows=size,
        noise=noise,
        confidence=float(check.probability("confidence", confidence, zero=False, one=False)),
    )
