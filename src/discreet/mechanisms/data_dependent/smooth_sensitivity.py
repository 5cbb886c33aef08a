"""Smooth sensitivity: noise that follows the data at hand instead of the worst data there could be.

For a median, a quantile, a trimmed mean, a mean or a variance of one column with a public number
of rows. The scale of the noise is private and is not told: what can be told before and after a
release holds for all data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, one_of, positive, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import moves, releases_follow
from discreet.mechanisms.data_dependent._smooth_noise import (
    LARGEST_STEPS,
    SMALLEST_BETA,
    Cauchy,
    Lomax,
    NoiseFamily,
    SmoothGaussian,
    SmoothLaplace,
)
from discreet.mechanisms.data_dependent._smooth_statistics import (
    SmoothStatistic,
    SmoothVariance,
    TrimmedMean,
)
from discreet.mechanisms.mechanism import (
    Certificate,
    CertificateCheck,
    DrawCheck,
    Mechanism,
    target_guarantee,
)
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng

# ── The certificate ──────────────────────────────────────────────────────────────────────────────
# Divergences of pairs of laws of different scale and center, by integrating their densities.
#
# A route that the calibration does not use: it finds where the ratio of two densities passes
# e^epsilon on a fine grid, and integrates there.


LogDensity: TypeAlias = Callable[[Floats], Floats]

# A ratio this much above e^epsilon is rounding.
_ROUNDING = 1e-11
_POINTS = 4000
# Where the density is below the exponential of this, nothing is left to count.
_FURTHEST = -200.0
_GAUSS = np.polynomial.legendre.leggauss(20)


def worst_divergence(family: NoiseFamily) -> float:
    """The largest divergence over ratios of scales and distances of centers, both directions."""
    epsilon = float(family.epsilon)
    ratios = np.exp(family.beta * np.array([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]))
    shifts = np.array([0.0, 0.5, 1.0]) / float(family.multiplier)
    worst = 0.0
    for ratio in ratios:
        for shift in shifts:
            narrow, wide = (0.0, 1.0), (shift, float(ratio))
            worst = max(
                worst,
                divergence(family.log_density, narrow, wide, epsilon),
                divergence(family.log_density, wide, narrow, epsilon),
            )
    return worst


def divergence(
    log_density: LogDensity, p: tuple[float, float], q: tuple[float, float], epsilon: float
) -> float:
    """The hockey-stick divergence of one shape at two (center, scale), at ``epsilon``."""

    def log_p(x: Floats) -> Floats:
        return log_density((x - p[0]) / p[1]) - math.log(p[1])

    def loss(x: Floats) -> Floats:
        return log_p(x) - log_density((x - q[0]) / q[1]) + math.log(q[1]) - epsilon - _ROUNDING

    far = np.geomspace(1e-6, 1e8, _POINTS)
    grid = np.unique(np.concatenate((p[0] - far, p[0] + far, q[0] - far, q[0] + far, [p[0], q[0]])))
    grid = grid[log_p(grid) > _FURTHEST]
    above = loss(grid) > 0
    turns = np.flatnonzero(above[1:] != above[:-1])
    edges = [_root(loss, grid[i], grid[i + 1]) for i in turns]
    ends = np.array([grid[0], *edges, grid[-1]])
    total = 0.0
    for number, (low, high) in enumerate(pairwise(ends)):
        if above[0] == (number % 2 == 0):  # signs alternate from the first on
            nodes, weights = _nodes(low, high, (p[0], q[0], *edges), p[1])
            excess = np.exp(log_p(nodes)) * -np.expm1(-loss(nodes))
            total += float(weights @ excess)
    return total


def _root(loss: LogDensity, low: float, high: float) -> float:
    return float(optimize.brentq(lambda x: float(loss(np.array([x]))[0]), low, high, xtol=1e-14))


def _nodes(
    low: float, high: float, marks: tuple[float, ...], scale: float
) -> tuple[Floats, Floats]:
    """Nodes and weights of an integral from ``low`` to ``high``: pieces grow away from the marks.

    Between them the integrands are analytic.
    """
    steps = scale * np.concatenate(([0.0], np.geomspace(0.125, 1e8, 80)))
    ends = np.concatenate([np.concatenate((mark - steps, mark + steps)) for mark in marks])
    ends = np.unique(np.clip(np.concatenate((ends, [low, high])), low, high))
    half = np.diff(ends)[:, None] / 2
    nodes = ends[:-1, None] + half * (_GAUSS[0] + 1)
    return nodes.ravel(), (half * _GAUSS[1]).ravel()


# ── The mechanism ────────────────────────────────────────────────────────────────────────────────


Noise: TypeAlias = Literal["laplace", "gaussian", "cauchy", "lomax"]
Name: TypeAlias = Literal["median", "quantile", "trimmed_mean", "mean", "variance"]

# A bound is computed in doubles to a relative 2**-40. It is raised by the first of these, and its
# smoothness lowered by the second, which is more than twice as much: proof at
# `SmoothSensitivity.bound`.
_RAISED = 1 + Fraction(1, 1 << 38)
_SLACK = 2.0**-36
# Noise is never below this many steps of the grid.
_FEWEST_STEPS = 16
_ORDER = 4
_LARGEST_EPSILON = 100


# A certificate looks at columns of so many rows, at most, and at noise of so many steps; draws are
# clamped to 62 bits, and adding up a density moves it by less than the last.
MOST_ROWS = 1 << 14
_DRAWN_STEPS = 1 << 10
_FAR = 1 << 62
_ADDED_UP = 2e-3


def neighboring_columns(column: SortedColumn, rows: int) -> list[tuple[Floats, Floats]]:
    """Made-up columns at the bounds and between, and the same with one row at either bound."""
    low, high = column.number(0), column.number(column.span)
    found = []
    for share in sorted({0, 1, rows // 2, (rows + 1) // 2, rows - 1, rows}):
        ends = np.repeat([low, high], [rows - share, share])
        found.append(ends)
    found.append(np.linspace(low, high, rows))
    found.append(np.full(rows, column.number(column.span // 2)))
    pairs = []
    for values in found:
        for place in {0, rows // 2, rows - 1}:
            for moved in (low, high):
                other = values.copy()
                other[place] = moved
                pairs.append((values, other))
    return pairs


class _NotedFamily:
    """A family that adds no noise, and notes the scale that it was asked for."""

    def __init__(self, family: NoiseFamily) -> None:
        self._family = family
        self._scale: Fraction | None = None

    @property
    def scale(self) -> Fraction:
        """The scale of the last draw; NotCertified if there was none."""
        if self._scale is None:
            raise NotCertified("The release does not use the noise that its guarantee names.")
        return self._scale

    def draw(self, scale: Fraction, rng: RandomSource) -> int:  # noqa: ARG002 - nothing is drawn
        """No noise."""
        self._scale = scale
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothSensitivity(Mechanism):
    """A statistic with noise of its smooth sensitivity. Made by `smooth_sensitivity`."""

    statistic: SmoothStatistic
    column: SortedColumn
    family: NoiseFamily
    name: str

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release, if one row is replaced."""
        family = self.family
        return target_guarantee(
            family.epsilon, family.delta, relation=NeighboringRelation.REPLACE_ONE
        )

    @property
    def smoothness(self) -> float:
        """By what factor, as a logarithm, the noise may differ between neighbors."""
        return self.family.beta

    @property
    def _unit(self) -> float:
        """Size of a step of an answer."""
        return self.column.step**self.statistic.power

    @property
    def largest_steps(self) -> Fraction:
        """The largest scale of the noise over all data, in steps of an answer."""
        raised = self.statistic.largest(self.column.span) * _RAISED + (not self.statistic.whole)
        return max(raised, self._least) * self.family.multiplier

    @property
    def _largest(self) -> float:
        return float(self.largest_steps) * self._unit

    @property
    def _least(self) -> Fraction:
        """The smallest bound in use, in steps: public."""
        return max(Fraction(1), _FEWEST_STEPS / self.family.multiplier)

    @property
    def std(self) -> float:
        """Largest standard deviation of the noise over all data.

        That for given private data is private.
        """
        return self.family.std * self._largest

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise, for all data.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.smooth_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1
            ... )
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        high = self.family.tail(inside) * self._largest + self._unit
        return -high, high

    def forecast(self, values: ArrayLike) -> float:
        """Compute the standard deviation of the noise on public or simulated data.

        Args:
            values: Public or simulated values. For private values the result is private.

        Returns:
            The standard deviation.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.smooth_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1
            ... )
            >>> mechanism.forecast([10, 20, 30, 40, 50]) <= mechanism.std
            True
        """
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        return self.family.std * float(self.bound(codes) * self.family.multiplier) * self._unit

    def bound(self, codes: Ints) -> Fraction:
        """A smooth bound on the local sensitivity of what is released, in steps: private."""
        # Theorem: it is at least the local sensitivity of the rounded statistic, and between
        #   neighbors it changes by a factor of at most `e^smoothness`.
        # Proof: let S be the statistic's smooth bound for a smoothness lower by s = 2**-36, and T
        #   what doubles make of it, between (1 - r) S and (1 + r) S with r = 2**-40. Raised by
        #   2**-38, T is at least S; its ratio between neighbors is at most `e^(-s) (1 + r) /
        #   (1 - r) < 1` times e^smoothness. Rounding the statistic down to a step adds at most
        #   one step to the local sensitivity; adding a constant to a smooth bound, and taking the
        #   larger of it and a constant, leaves it smooth.
        least = float(self._least)
        lowered = self.family.beta - _SLACK
        raw = self.statistic.smooth_bound(codes, self.column.span, beta=lowered, least=least)
        return Fraction(raw) * _RAISED + (not self.statistic.whole)

    def release(self, values: ArrayLike, *, rng: RandomSource | None = None) -> float:
        """Release the statistic of a column.

        Args:
            values: Private values. They are clipped to the bounds.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy statistic, within the range that it can have.

        Raises:
            OutOfDomain: The column does not have `public_rows` values.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.smooth_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1
            ... )
            >>> isinstance(mechanism.release([12, 37, 41, 58, 93]), float)
            True
        """
        codes = self.column.sorted(values, rows=self.statistic.public_rows)
        scale = self.bound(codes) * self.family.multiplier
        exact = math.floor(self.statistic.value(codes))
        noisy = exact + self.family.draw(scale, resolve_rng(rng))
        low, high = self.statistic.domain(self.column.span)
        steps = min(max(noisy, low), high)
        return self.column.number(steps) if self.statistic.power == 1 else steps * self._unit

    def certify(self) -> Certificate:
        """Recompute the guarantee by integrating pairs of distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.smooth_sensitivity(
            ...     lower=0, upper=100, public_rows=5, epsilon=1
            ... )
            >>> mechanism.certify().holds
            True
        """
        epsilon, delta = float(self.family.epsilon), float(self.family.delta)
        check = CertificateCheck(
            part=f"scales within a factor {short(math.exp(self.family.beta))}",
            epsilon=epsilon,
            claimed=delta,
            exact=worst_divergence(self.family),
            route="integrals of the densities, both directions",
        )
        return Certificate(
            mechanism=repr(self),
            guarantee=self.guarantee,
            checks=(check,),
            drawn=(*self._moved(), self._drawn()),
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        """Columns at the bounds and between, each with one row moved to either bound."""
        if self.statistic.public_rows > MOST_ROWS:
            return ()
        apart = ratio = 0.0
        for rows in neighboring_columns(self.column, self.statistic.public_rows):
            (one, narrow), (other, wide) = (self._noted(values) for values in rows)
            allowed = min(narrow, wide) / self.family.multiplier
            apart = max(apart, float(abs(one - other) / allowed))
            ratio = max(ratio, abs(math.log(wide / narrow)))
        return (
            moves("statistic, in what the scale of its noise allows", apart, 1.0),
            moves("logarithm of the scale of the noise", ratio, self.family.beta),
        )

    def _noted(self, values: Floats) -> tuple[int, Fraction]:
        """What a release without noise answers, in steps, and the scale that it asks for."""
        noted = _NotedFamily(self.family)
        found = replace(self, family=noted).release(values)  # type: ignore[arg-type]
        step = Fraction(2) ** self.column.exponent
        if self.statistic.power == 1:
            return round(Fraction(found) / step) - self.column.first, noted.scale
        return round(Fraction(found) / step**self.statistic.power), noted.scale

    def _drawn(self) -> DrawCheck:
        """Noise of a thousand steps, against its density, added up."""
        z = np.concatenate(([0.0], np.geomspace(1e-3, 1e9, _POINTS)))
        density = np.exp(self.family.log_density(z))
        # By the trapezoid rule on a fine scale of powers; what lies beyond counts as reached.
        inside = np.concatenate(([0.0], np.cumsum(np.diff(z) * (density[1:] + density[:-1]) / 2)))
        half = np.minimum(inside, 0.5)

        def cdf(k: Ints) -> Floats:
            at = (np.asarray(k, dtype=np.float64) + 0.5) / _DRAWN_STEPS
            return 0.5 + np.sign(at) * np.interp(np.abs(at), z, half)

        return releases_follow(
            "noise",
            lambda rng: max(-_FAR, min(self.family.draw(Fraction(_DRAWN_STEPS), rng), _FAR)),
            cdf,
            slack=_ADDED_UP,
        )

    def __repr__(self) -> str:
        noise = type(self.family).__name__.removeprefix("Smooth").lower()
        return f"smooth_sensitivity({self.name}, {noise} noise; {self.guarantee!r})"


def smooth_sensitivity(  # noqa: PLR0913 - each has a default and a name
    statistic: Name | SmoothStatistic = "median",
    *,
    lower: Number,
    upper: Number,
    public_rows: int,
    epsilon: Number,
    delta: Number = 0,
    noise: Noise | None = None,
    quantile: Number | None = None,
    trim: int | None = None,
    smoothness: float | None = None,
    order: int = _ORDER,
    granularity: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
) -> SmoothSensitivity:
    """Create a mechanism whose noise adapts to the data (smooth sensitivity).

    Args:
        statistic: `"median"` (the lower one of an even number of rows), `"quantile"`,
            `"trimmed_mean"`, `"mean"`, `"variance"`, or an object with a smooth bound of its own.
        lower: Public lower bound of the values. Values are clipped.
        upper: Public upper bound.
        public_rows: Public number of rows.
        epsilon: Privacy loss, at most 100.
        delta: Probability parameter of (epsilon, delta)-DP. With 0 the mechanism is epsilon-DP.
        noise: `"lomax"` or `"cauchy"` without `delta`, `"laplace"` or `"gaussian"` with it. By
            default `"lomax"` or `"laplace"`.
        quantile: Level of the quantile. Required for `"quantile"` only.
        trim: Number of rows that are dropped at each end. Required for `"trimmed_mean"` only.
        smoothness: Largest log-ratio of the noise scales of neighbors, between 0 and epsilon. By
            default it is chosen for small noise. Not for `"lomax"`.
        order: Order of Lomax noise, at least 2. A larger order gives lighter tails and a smaller
            smoothness.
        granularity: Spacing to which values are rounded, a power of two.
        relation: Must be `NeighboringRelation.REPLACE_ONE`.

    Returns:
        A mechanism with `release(values)`, `forecast(values)` for public data, and `guarantee`.

    Raises:
        InvalidArgument: An argument is outside its range, or does not fit the statistic or the
            noise.

    Privacy:
        (epsilon, delta)-DP if one of `public_rows` rows is replaced. The scale of the noise is
        private.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.smooth_sensitivity(lower=0, upper=100, public_rows=5, epsilon=1)
        >>> 0 <= mechanism.release([12, 37, 41, 58, 93]) <= 100
        True

    See Also:
        `private_quantile`, [median](../how-to/median.md).

    References:
        Nissim, Raskhodnikova and Smith (2007). Bun and Steinke (2019).
        [Theory](../theory/smooth-sensitivity.md).
    """
    # Theorem: (epsilon, delta)-DP if one of `public_rows` rows is replaced; epsilon-DP without
    #   delta.
    # Proof: neighbors' centers differ by at most the smaller of the two smooth bounds and their
    #   scales by a factor of at most e^smoothness (`SmoothSensitivity.bound`); the family's
    #   multiplier keeps
    #   (epsilon, delta) for any such pair. Rounding to the grid and clipping is post-processing.
    # Source: Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019; B29-B34, B47.
    # Needs: bounds, rows and grid public. The number of rows must not be secret.
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise InvalidArgument(
            "Smooth sensitivity is for a public number of rows (relation REPLACE_ONE); "
            "private_quantile takes both relations."
        )
    if positive("epsilon", epsilon) > _LARGEST_EPSILON:
        raise InvalidArgument(f"epsilon must be at most 100, got {epsilon}: more is no privacy.")
    public = count("public_rows", public_rows)
    chosen, name = _statistic(statistic, public, quantile, trim)
    family = _family(
        noise,
        positive("epsilon", epsilon),
        probability("delta", delta, one=False),
        smoothness=smoothness,
        order=order,
    )
    if family.beta < SMALLEST_BETA:
        raise InvalidArgument("epsilon is too small: the smoothness must be at least 2**-20.")
    made = SmoothSensitivity(
        statistic=chosen,
        column=SortedColumn.of(lower, upper, granularity),
        family=family,
        name=name,
    )
    if made.largest_steps > LARGEST_STEPS[type(family)]:
        raise InvalidArgument("The noise may have too many steps of the grid: use a coarser grid.")
    return made


def trimmed_statistic(
    statistic: Name, public_rows: int, quantile: Number | None, trim: int | None
) -> tuple[TrimmedMean, str]:
    """The trimmed mean that a median, a quantile or a mean is, and what to call it."""
    if not isinstance(statistic, str):
        raise _unknown(statistic)
    if (quantile is not None) != (statistic == "quantile"):
        raise InvalidArgument("quantile is for, and needed by, the statistic 'quantile'.")
    if (trim is not None) != (statistic == "trimmed_mean"):
        raise InvalidArgument("trim is for, and needed by, the statistic 'trimmed_mean'.")
    if quantile is not None:
        return TrimmedMean.quantile(public_rows, quantile), f"quantile {float(quantile):g}"
    if trim is not None:
        cut = count("trim", trim, minimum=0)
        return TrimmedMean(
            public_rows=public_rows, below=cut, above=cut
        ), f"trimmed mean without 2 x {cut}"
    if statistic == "median":
        return TrimmedMean.quantile(public_rows, Fraction(1, 2)), "median"
    if statistic == "mean":
        return TrimmedMean(public_rows=public_rows, below=0, above=0), "mean"
    raise _unknown(statistic)


def _unknown(statistic: object) -> InvalidArgument:
    return InvalidArgument(
        "statistic must be 'median', 'quantile', 'trimmed_mean', 'mean' or, with smooth noise, "
        f"'variance' or an object with a smooth bound; got {statistic!r}."
    )


def _statistic(
    statistic: Name | SmoothStatistic, public_rows: int, quantile: Number | None, trim: int | None
) -> tuple[SmoothStatistic, str]:
    if isinstance(statistic, str) and statistic != "variance":
        return trimmed_statistic(statistic, public_rows, quantile, trim)
    if quantile is not None or trim is not None:
        raise InvalidArgument("quantile is for 'quantile', trim for 'trimmed_mean'.")
    if isinstance(statistic, str):
        return SmoothVariance(public_rows=public_rows), "variance"
    if not isinstance(getattr(statistic, "public_rows", None), int):
        raise _unknown(statistic)
    if statistic.public_rows != public_rows:
        raise InvalidArgument(
            f"public_rows={public_rows} must be those of the statistic, {statistic.public_rows}."
        )
    return statistic, type(statistic).__name__.removeprefix("Smooth").lower()


def _family(
    noise: Noise | None,
    epsilon: Fraction,
    delta: Fraction,
    *,
    smoothness: float | None,
    order: int,
) -> NoiseFamily:
    if smoothness is not None and not 0 < smoothness < epsilon:
        raise InvalidArgument(f"smoothness must lie between 0 and epsilon, got {smoothness}.")
    chosen = "laplace" if delta else "lomax"
    kind = chosen if noise is None else one_of("noise", noise, get_args(Noise))
    if kind in ("lomax", "cauchy") and delta:
        raise InvalidArgument(f"{kind} noise needs no delta: leave it out.")
    match kind:
        case "laplace":
            return SmoothLaplace.calibrated(epsilon, delta, smoothness)
        case "gaussian":
            return SmoothGaussian.calibrated(epsilon, delta, smoothness)
        case "cauchy":
            return Cauchy.calibrated(epsilon, smoothness)
        case _:
            if smoothness is not None:
                raise InvalidArgument("Lomax noise has smoothness epsilon / order: give order.")
            return Lomax.calibrated(epsilon, count("order", order, minimum=2))
