"""Publishing a cost that depends on votes: smooth bounds on how much one owner moves it.

The noise of such a release is scaled by a bound that depends on the votes too, but slowly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import scipy.special as sp
from numpy.typing import ArrayLike

from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models.pate._data_dependent_cost import answer_cost, query_cost
from discreet.models.pate.teacher_assignment import UNITS
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import RoundedGaussian
from discreet.noise.random_source import RandomSource

Curve: TypeAlias = Callable[[Floats], Floats]
"""Cost at one order as a function of the logarithm of the error."""

_FINE = 16
_STEP = -40  # released numbers are multiples of 2**-40
_UP = 1 + 1e-9
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothBound:
    """A bound on how much one owner moves a function of one number, and smooth in that number."""

    # Theorem: let the number x move by at most `reach` when one owner changes. Then f(x) moves by
    #   at most `at(x)`, and `at` by at most a factor e^b.
    # Proof: `cells` bound what f does within a step from anywhere in a cell. `at` is the largest
    #   e^(-b distance / reach) times a cell's bound, over all cells; the own cell has distance 0,
    #   and no distance moves by more than `reach`.
    # Source: Nissim, Raskhodnikova, Smith 2007; Papernot et al. 2018, whose profile fails at large
    #   orders (M16').

    edges: Floats = field(repr=False)
    cells: Floats = field(repr=False)
    reach: float
    b: float

    def at(self, x: ArrayLike, *, whole_steps: bool = False) -> Floats:
        """The bound at each number; ``whole_steps`` rounds distances up to steps, as published."""
        places = np.atleast_1d(np.asarray(x, dtype=np.float64))
        found = np.empty(len(places))
        rows = max(1, _CHUNK // len(self.cells))
        for start in range(0, len(places), rows):
            part = places[start : start + rows, None]
            away = np.maximum(np.maximum(self.edges[:-1] - part, part - self.edges[1:]), 0.0)
            steps = away / self.reach
            if whole_steps:
                steps = np.ceil(steps - 1e-9)
            found[start : start + rows] = (self.cells * np.exp(-self.b * steps)).max(axis=1)
        return found


def place(log_error: ArrayLike, *, classes: int) -> Floats:
    """The number that moves by at most ``share / sigma``: erfcinv(2 q / (m - 1)).

    Theorem and proof: `costs.error_after`, in both directions.
    """
    found = np.asarray(log_error, dtype=np.float64) - math.log(classes - 1)
    return np.asarray(-sp.ndtri_exp(np.minimum(found, -1e-300)) / math.sqrt(2))


def error_at(x: ArrayLike, *, classes: int) -> Floats:
    """The logarithm of the error at a place."""
    return np.asarray(math.log(classes - 1) + sp.log_ndtr(-math.sqrt(2) * np.asarray(x)))


def votes_curve(*, classes: int, sigma: float, share: float, order: float) -> Curve:
    """The two-sided cost of an answer at one order."""

    def curve(log_error: Floats) -> Floats:
        return answer_cost(log_error, classes=classes, sigma=sigma, share=share, orders=[order])[
            ..., 0
        ]

    return curve


def votes_bound(
    curve: Curve, *, classes: int, sigma: float, most: float, total: float, b: float
) -> SmoothBound:
    """The smooth bound of a cost of answers (M16').

    ``most``: votes of the owner who moves most, whatever the level of the cost: the release must
    hide everybody. ``total``: all votes. ``curve`` must be constant from some error on, and not
    fall with the error: checked on the grid.
    """
    reach, end = most / sigma, float(total) / (2 * sigma)
    start = _flat(lambda x: curve(error_at(x, classes=classes)), end) - 2 * reach
    step = reach / _FINE
    number = max(1, math.ceil((end - start) / step))
    grid = start + step * np.arange(-_FINE, number + 1 + _FINE)
    cost = curve(error_at(grid, classes=classes))
    if (np.diff(cost) > 1e-15).any():
        raise NotCertified("The cost is not monotone on the grid; no smooth bound is known.")
    low, high = cost[:-1], cost[1:]
    inner = slice(_FINE, _FINE + number)
    # From anywhere in a cell to anywhere within a step: one side, then the other.
    up = cost[:number] - high[inner]
    down = low[inner] - cost[2 * _FINE + 1 :]
    cells = np.maximum(np.maximum(up, down), 0.0) * _UP
    return SmoothBound(
        edges=np.asarray(grid[_FINE : _FINE + number + 1], dtype=np.float64),
        cells=cells,
        reach=reach,
        b=b,
    )


def questions_bound(
    *,
    threshold: float,
    sigma: float,
    share: float,
    most: float,
    total: float,
    order: float,
    b: float,
) -> SmoothBound:
    """The smooth bound of the data-dependent cost of questions, by the largest count (M17).

    The cost peaks at the threshold, so a cell's bound is the range of the cost in a window around
    it, one grid step wider; the threshold is on the grid. In votes.
    """
    step = most / _FINE
    first = math.floor(-threshold / step) - _FINE - 2
    last = math.ceil((total - threshold) / step) + _FINE + 2
    grid = threshold + step * np.arange(first, last + 1)
    cost = query_cost(grid * UNITS, threshold=threshold, sigma=sigma, share=share, orders=[order])[
        :, 0
    ]
    window = np.lib.stride_tricks.sliding_window_view(cost, 2 * _FINE + 4)
    cells = (window.max(axis=1) - window.min(axis=1)) * _UP
    inner = _FINE + 1
    edges = np.asarray(grid[inner : inner + len(cells) + 1], dtype=np.float64)
    return SmoothBound(edges=edges, cells=cells, reach=most, b=b)


def release_cost(order: float, *, b: float, sigma: float) -> float:
    """The exact Rényi cost of a release with Gaussian noise `sigma` times a smooth bound."""
    # Theorem: max over |r| <= b of D_a(N(min(1, e^r), s^2) || N(0, e^(2r) s^2)).
    # Proof: in units of the bound, a neighbor's bound is e^r and the values differ by at most the
    #   smaller of the two; the divergence of two normal laws grows with their distance.
    # Needs: `a (1 - e^(-2b)) < 1`; otherwise it is infinite.
    r = np.linspace(-b, b, 4001)
    mixed = order * np.exp(2 * r) + (1 - order)
    if not (mixed > 0).all():
        return math.inf
    shift = np.minimum(1.0, np.exp(r)) / sigma
    found = order * shift**2 / (2 * mixed) + r + (2 * r - np.log(mixed)) / (2 * (order - 1))
    return float(found.max()) * (1 + 1e-6)


def published_release_cost(order: float, *, b: float, sigma: float) -> float:
    """The bound of Papernot et al. 2018 (Theorem 23) on `release_cost`, larger than needed."""
    if 2 * order * b >= 1:
        return math.inf
    spread = b * order - math.log1p(-2 * order * b) / 2
    return order * math.exp(2 * b) / sigma**2 + spread / (order - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRelease:
    """How a cost is published: an upper bound, wrong with probability at most ``failure`` (M18).

    All numbers are fixed before the votes are seen.
    """

    order: float
    b: float
    sigma: float
    """Noise in units of the smooth bound."""
    tau: float
    """Noise of the logarithm of the smooth bound, in units of ``b``."""
    failure: float

    def __post_init__(self) -> None:
        if not (self.order > 1 and self.b > 0 and self.sigma > 0 and self.tau > 0):
            raise InvalidArgument("order must exceed 1; b, sigma and tau must be positive.")
        probability("failure", self.failure, zero=False, one=False)

    def cost(self, order: float) -> float:
        """The Rényi cost of a release at an order, to every owner."""
        return release_cost(order, b=self.b, sigma=self.sigma) + order / (2 * self.tau**2)

    def draw(self, value: float, bound: float, rng: RandomSource) -> float:
        """A number above ``value`` with probability at least ``1 - failure``."""
        # Theorem: the release has Rényi cost `cost` for every owner, if `bound` is b-smooth and
        #   bounds how much an owner moves `value`.
        # Proof: the value gets Gaussian noise of `sigma * bound`; the logarithm of the bound moves
        #   by at most b and gets noise of `b tau`. What is returned is a function of the two.
        #   Each of the two noises is below its quantile but for half of `failure`, of which a
        #   little is kept back for rounding.
        least = max(bound, 2.0**-30)  # a maximum with a constant is as smooth
        z = float(-sp.ndtri(self.failure / 2 / _UP))
        noisy = _noisy(value, self.sigma * least, rng)
        log_bound = _noisy(math.log(least), self.b * self.tau, rng) + self.b * self.tau * z
        return noisy + self.sigma * z * math.exp(log_bound) * _UP


def _noisy(value: float, scale: float, rng: RandomSource) -> float:
    """A value with continuous Gaussian noise, rounded to the grid: exact, so nothing leaks."""
    square = (Fraction(scale) * (1 << -_STEP)) ** 2
    whole = RoundedGaussian(square, _STEP).add(np.array([value]), rng)
    return math.ldexp(int(whole[0]), _STEP)


def _flat(cost: Callable[[Floats], Floats], end: float) -> float:
    """The last place up to which the cost is what it is without a plurality."""
    top = float(cost(np.array([-1.0]))[0])
    low, high = -1.0, end
    if float(cost(np.array([end]))[0]) >= top:
        return end
    for _ in range(80):
        middle = (low + high) / 2
        if float(cost(np.array([middle]))[0]) >= top:
            low = middle
        else:
            high = middle
    return low
