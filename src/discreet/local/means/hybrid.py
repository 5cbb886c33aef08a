"""The hybrid mechanism for means: a coin decides between a window and Duchi's bit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.means.base import BoundedMeanRandomizer, bounds, on_grid, uniforms
from discreet.local.means.piecewise import BYTE, Duchi, PiecewiseMean, duchi, windows
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

_COIN_BITS = 16
_SIDES = 1 << _COIN_BITS


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridMean(BoundedMeanRandomizer):
    """A window with probability ``share / 65536``, else Duchi's bit. Made by `hybrid`."""

    kind: ClassVar[str] = "hybrid"

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    wide: PiecewiseMean
    bit: Duchi
    share: int

    @property
    def steps(self) -> int:
        return self.wide.steps

    @property
    def levels(self) -> Floats:
        return np.concatenate((self.wide.levels, self.bit.levels))

    @property
    def squares(self) -> Floats:
        s = self.share / _SIDES
        return s * self.wide.squares + (1 - s) * float(self.bit.squares[0])

    def draw(self, places: Floats, rng: RandomSource) -> Ints:
        # Everything is drawn for all, so that the time does not tell the coin's side.
        coins = rng.words(len(places)) >> np.uint64(rng.width - _COIN_BITS)
        rounding = uniforms(len(places), rng)
        wide = self.wide.window.draw(on_grid(places, self.steps, rounding), rng)
        bit = self.bit.window.draw(on_grid(places, 1, rounding), rng)
        return np.where(coins < np.uint64(self.share), wide, self.wide.size + bit)

    def parameters(self) -> dict[str, Any]:
        return {**self.wide.parameters(), "share": self.share}

    def certify(self) -> Certificate:
        """The ratio of the integer weights on both sides of the coin."""
        parts = (("window", self.wide), ("bit", self.bit))
        checks = tuple(part.window.check(self.epsilon, name) for name, part in parts)
        return Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=checks, drawn=self._looks()
        ).demand()

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        share = self.share / _SIDES
        sides = [
            part.window.weights(part.steps if last else 0) / part.window.total
            for part in (self.wide, self.bit)
        ]
        return np.concatenate((share * sides[0], (1 - share) * sides[1]))


def hybrid_mean(
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    steps: int | None = None,
    window: int | None = None,
    share: int | None = None,
) -> HybridMean:
    """Create the hybrid mechanism for a mean: a window or Duchi's bit, by a coin.

    Args:
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one.
        steps: Number of levels into which the bounds are cut. If None, as many as fit a short
            report.
        window: Number of levels of the window that reports are drawn from. If None, the one with
            the smallest largest variance.
        share: Probability of the window in units of 1/65536, from 0 to 65536. If None, the one with
            the smallest largest variance.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.hybrid_mean(epsilon=2, lower=0, upper=10, steps=16)
        >>> randomizer.guarantee.epsilon() <= 2
        True
    """
    # Theorem: each report is epsilon-DP in the local model; the estimate is unbiased.
    # Proof: the coin does not look at the number and the report tells its side; both sides are
    #   epsilon-DP and unbiased, given the side.
    # Source: Wang et al. 2019.
    # Needs: lower < upper; 0 <= share <= 65536; numbers outside count as the nearer bound.
    low, high = bounds(lower, upper)
    eps = positive("epsilon", epsilon)
    bit = duchi(epsilon=eps, lower=low, upper=high)
    parts = [
        (PiecewiseMean(epsilon=eps, lower=low, upper=high, window=w), side)
        for w in windows(eps, steps, window, alphabet=BYTE - 2)
        for side in (_sides(w.gain) if share is None else (_checked(share),))
    ]
    every = (
        HybridMean(epsilon=eps, lower=low, upper=high, wide=wide, bit=bit, share=side)
        for wide, side in parts
    )
    return min(every, key=lambda one: one.std)


def _sides(gain: float) -> tuple[int, ...]:
    """Where the worst variance can be least: both ends, and where it does not depend on the place.

    The variance is share (B + d^2 / gain) + (1 - share) K - d^2, linear in share at the middle
    and at the ends of the range, and the two are equal at share = gain.
    """
    even = min(max(round(gain * _SIDES), 0), _SIDES)
    return tuple(sorted({0, even, _SIDES}))


def _checked(share: int) -> int:
    if count("share", share, minimum=0) > _SIDES:
        raise InvalidArgument(f"share must be at most {_SIDES} (of {_SIDES}), got {share}.")
    return share
