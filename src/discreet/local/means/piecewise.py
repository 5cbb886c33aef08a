"""Means of bounded numbers from windows: Duchi's two symbols, and the piecewise mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local._window_channel import WindowChannel, window
from discreet.local.means.base import BoundedMeanRandomizer, bounds, on_grid, uniforms
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource

BYTE = 256
_TRIED = 256  # widths of a window: all of them if there are no more


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PiecewiseMean(BoundedMeanRandomizer):
    """A symbol from a window around the number's grid point. Made by `piecewise`."""

    kind: ClassVar[str] = "piecewise"

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    window: WindowChannel

    @property
    def steps(self) -> int:
        return self.window.inputs - 1

    @property
    def levels(self) -> Floats:
        symbols = np.arange(self.window.symbols, dtype=np.float64)
        middle = (self.window.symbols - 1) / 2
        return 0.5 + (symbols - middle) / (self.window.gain * self.steps)

    @property
    def squares(self) -> Floats:
        d = np.arange(self.steps + 1) - self.steps / 2
        gain = self.window.gain
        return (self.window.moment / gain + d * d) / (gain * self.steps**2)

    def draw(self, places: Floats, rng: RandomSource) -> Ints:
        return self.window.draw(on_grid(places, self.steps, uniforms(len(places), rng)), rng)

    def parameters(self) -> dict[str, Any]:
        shape = {"steps": self.steps, "window": self.window.width}
        return {**BoundedMeanRandomizer.parameters(self), **shape}

    def _stated(self, last: bool) -> Floats | None:  # noqa: FBT001 - one of two values
        return self.window.weights(self.steps if last else 0) / self.window.total

    def certify(self) -> Certificate:
        """The ratio of the integer weights."""
        check = self.window.check(self.epsilon, f"{self.window.symbols} symbols")
        certificate = Certificate(
            mechanism=self.kind, guarantee=self.guarantee, checks=(check,)
        ).demand()
        return replace(certificate, drawn=self._looks()).demand()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Duchi(PiecewiseMean):
    """One of two symbols: a grid of one step, a window of one symbol. Made by `duchi`."""

    kind: ClassVar[str] = "duchi"

    def parameters(self) -> dict[str, Any]:
        return BoundedMeanRandomizer.parameters(self)

    def mean_variance(self, place: float) -> float:
        """The level's square is constant, so the average variance is largest if all agree."""
        # Proof: it is the constant less the mean square of the places, which is at least the square
        #   of their mean.
        return float(self._variance(np.array([place]))[0])


def duchi(*, epsilon: Number, lower: Number, upper: Number) -> Duchi:
    """Create Duchi's one-bit randomizer for a mean, best for small epsilon.

    Args:
        epsilon: Privacy loss of one report.
        lower: Public lower bound. Smaller numbers count as this one.
        upper: Public upper bound. Larger numbers count as this one.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.duchi(epsilon=0.5, lower=0, upper=10).guarantee.epsilon() <= 0.5
        True
    """
    # Theorem: each report is epsilon-DP in the local model, and the estimate is unbiased with
    #   variance (c^2 - x^2) / n, c = (e^eps + 1) / (e^eps - 1), on bounds -1 and 1.
    # Proof: a number is rounded to one of its bounds so that its mean stays, and the bound goes
    #   through randomized response, whose levels -c and c undo the shrinking by 1 / c.
    # Source: Duchi, Jordan, Wainwright 2018, in the form of Wang et al. 2019.
    # Needs: lower < upper; numbers outside count as the nearer bound.
    low, high = bounds(lower, upper)
    eps = positive("epsilon", epsilon)
    bit = window(inputs=2, width=1, epsilon=eps)
    return Duchi(epsilon=eps, lower=low, upper=high, window=bit)


def piecewise_mean(
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    steps: int | None = None,
    window: int | None = None,
) -> PiecewiseMean:
    """Create the piecewise mechanism for a mean, for large epsilon.

    The default window has the smallest largest variance. Wang et al. use a window of `steps *
    exp(-epsilon / 2)`, which is best for small epsilon only.

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
        >>> local.piecewise_mean(epsilon=2, lower=0, upper=10).guarantee.epsilon() <= 2
        True
    """
    # Theorem: each report is epsilon-DP in the local model; the estimate is unbiased.
    # Proof: the report depends on the number through its grid point only, and `Window` is
    #   epsilon-DP; the mean of the symbol is linear in the grid point (`Window.moment`), whose
    #   mean is the number.
    # Source: Wang et al. 2019 (the mechanism on reals); Zhao et al. 2020 (the narrower window).
    # Needs: lower < upper; numbers outside count as the nearer bound.
    low, high = bounds(lower, upper)
    eps = positive("epsilon", epsilon)
    return PiecewiseMean(epsilon=eps, lower=low, upper=high, window=best(eps, steps, window))


def best(epsilon: Fraction, steps: int | None, width: int | None) -> WindowChannel:
    """The window of least variance at the ends of the range, among those allowed."""
    return min(windows(epsilon, steps, width, alphabet=BYTE), key=_end)


def windows(
    epsilon: Fraction, steps: int | None, width: int | None, *, alphabet: int
) -> list[WindowChannel]:
    """All windows with these steps and width; without steps, those that fill the alphabet."""
    if steps is not None:
        count("steps", steps)
    if width is not None:
        count("window", width)
    most = steps if steps is not None else alphabet // 2
    widths = [width] if width is not None else _spread(most)
    shapes = [(alphabet - w if steps is None else steps, w) for w in widths]
    if shapes[0][0] < 1:
        raise InvalidArgument(f"window must be below {alphabet}, got {width}: or give steps too.")
    return [window(inputs=s + 1, width=w, epsilon=epsilon) for s, w in shapes]


def _spread(most: int) -> list[int]:
    """Whole numbers up to ``most``: all of them, or enough of them at equal ratios."""
    if most <= _TRIED:
        return list(range(1, most + 1))
    ratios: list[int] = np.unique(np.rint(np.geomspace(1, most, _TRIED)).astype(int)).tolist()
    return ratios


def _end(candidate: WindowChannel) -> float:
    """Variance at the end of the range of length one."""
    gain, steps = candidate.gain, candidate.inputs - 1
    return (candidate.moment / gain**2) / steps**2 + (1 / gain - 1) / 4
