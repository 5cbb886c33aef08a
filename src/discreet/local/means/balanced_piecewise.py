"""The piecewise client with better levels: what a symbol stands for is the server's choice.

Many levels make the estimate unbiased. With a window as wide as the grid, each client in effect
draws a threshold and tells, by randomized response, on which side of it the number lies; evenly
spaced levels are the piecewise mechanism, two levels are Duchi's, and the best lie in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import positive
from discreet.local._window_channel import WindowChannel
from discreet.local.means.base import bounds
from discreet.local.means.piecewise import BYTE, PiecewiseMean, best
from discreet.noise.distribution import Floats

_ROUNDS = 200
_SHIFTS = (-7, -5, -3, -1, 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BalancedPiecewise(PiecewiseMean):
    """A window whose levels even out the variance over the range. Made by `balanced`."""

    kind: ClassVar[str] = "balanced"

    @property
    def size(self) -> int:
        return self.window.symbols

    @property
    def levels(self) -> Floats:
        return 0.5 + _levels(self.window)

    @property
    def squares(self) -> Floats:
        return self.window.back(_levels(self.window) ** 2)


def balanced_piecewise(
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    steps: int | None = None,
    window: int | None = None,
) -> BalancedPiecewise:
    """Create a piecewise randomizer for a mean, with balanced levels.

    Its levels have the smallest largest variance. By default a report is one byte.

    Args:
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one.
        steps: Number of levels into which the bounds are cut. If None, as many as fit a short
            report.
        window: Number of levels of the window that reports are drawn from. If None, the one with
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
        >>> randomizer = local.balanced_piecewise(epsilon=2, lower=0, upper=10, steps=16)
        >>> randomizer.guarantee.epsilon() <= 2
        True
    """
    # Theorem: each report is epsilon-DP in the local model; the estimate is unbiased.
    # Proof: the client is that of `piecewise`. For the levels see `levels`.
    # Source: the client Wang et al. 2019. The levels are least squares for a worst distribution.
    # Needs: lower < upper; numbers outside count as the nearer bound.
    low, high = bounds(lower, upper)
    eps = positive("epsilon", epsilon)
    tried = _tried(eps, steps) if window is None else [best(eps, steps, window)]
    chosen = min(tried, key=_worst)
    return BalancedPiecewise(epsilon=eps, lower=low, upper=high, window=chosen)


def _tried(epsilon: Fraction, steps: int | None) -> list[WindowChannel]:
    """Windows that go into the grid a whole number of times, about as often as evenly leveled.

    There, or a little below, the variance has its dips: all classes of symbols have about equally
    many members.
    """
    even = best(epsilon, steps, None)
    often = round((even.inputs - 1) / even.width)
    widths = {
        (BYTE // (times + 1) if steps is None else steps // times) + shift
        for times in range(max(1, often - 1), often + 2)
        for shift in _SHIFTS
    }
    most = BYTE // 2 if steps is None else steps
    return [best(epsilon, steps, width) for width in sorted(widths) if 1 <= width <= most]


def levels(window: WindowChannel, shares: Floats) -> Floats:
    """Levels about the middle of a range of length one, best if grid points have these shares."""
    # Theorem: with delta = total / ((near - far) steps), levels whose difference over `width`
    #   symbols is delta, and that are antisymmetric, make the mean level of grid point i equal to
    #   i / steps - 1/2. Among them, these have the least mean square over symmetric `shares`.
    # Proof: from grid point i to i + 1 the window loses symbol i and gains symbol i + width, so the
    #   mean moves by (near - far) / total times their difference, which is 1 / steps; by symmetry
    #   it is zero in the middle. Symbols that are multiples of `width` apart share one free
    #   number; the mean square is a sum over these classes, each least if the class has mean zero
    #   under the probabilities of its symbols. Symmetric shares make that antisymmetric.
    delta = window.total / ((window.near - window.far) * (window.inputs - 1))
    chances = window.shares(shares)
    turn, member = np.divmod(np.arange(window.symbols), window.width)
    means = np.bincount(member, chances * turn) / np.bincount(member, chances)
    found: Floats = delta * (turn - means[member])
    return found


@lru_cache(maxsize=512)
def _levels(window: WindowChannel) -> Floats:
    """The best levels found against shares that move toward where the variance is large.

    Multiplicative weights for the game of levels against shares. Whatever it finds is unbiased,
    and its variance is computed, not assumed.
    """
    steps = window.inputs - 1
    squares = (np.arange(window.inputs) / steps - 0.5) ** 2
    shares = np.full(window.inputs, 1 / window.inputs)
    least, lasting = np.inf, levels(window, shares)
    for turn in range(_ROUNDS):
        found = levels(window, shares)
        variance = window.back(found**2) - squares
        if variance.max() < least:
            least, lasting = float(variance.max()), found
        pull = (variance - variance.mean()) / variance.max()
        shares = shares * np.exp(3 * pull / (1 + turn / 40))
        shares = (shares + shares[::-1]) / (2 * shares.sum())
    lasting.setflags(write=False)
    return lasting


def _worst(window: WindowChannel) -> float:
    places = np.arange(window.inputs) / (window.inputs - 1) - 0.5
    return float(np.max(window.back(_levels(window) ** 2) - places**2))
