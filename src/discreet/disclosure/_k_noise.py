"""k-noise: uniform noise, wide enough that k records could have been near every point.

The noise is bounded, so every released value excludes all originals that are farther away: this is
not differentially private, at any epsilon. `private_points` looks alike and is private. Adaptive
jitter adds more noise where there are fewer records. Its widths are computed from the data and leak
through the noise, so it is experimental: compare it, do not use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import short
from discreet.core.tabular import Record
from discreet.disclosure._disclosure_risk import UtilityLoss, sample, utility
from discreet.disclosure.generalization_hierarchy import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers
from discreet.query.result import Result, records

STEPS = 1 << 52
"""Uniform draws on an interval are exact on a grid of so many steps."""


def symmetric(size: int, rng: RandomSource) -> Floats:
    """Uniform on the multiples of 2**-51 in [-1, 1], both ends included: the mean is exactly 0."""
    return np.ldexp((uniform_integers(STEPS + 1, size, rng) - STEPS // 2).astype(np.float64), -51)


def between(low: Floats, high: Floats, rng: RandomSource) -> Floats:
    """Uniform on the centers of 2**52 equal parts of each [low, high), rounded, never past high."""
    unit = np.ldexp((2 * uniform_integers(STEPS, len(low), rng) + 1).astype(np.float64), -53)
    return np.clip(low + (high - low) * unit, low, np.nextafter(high, low))


# ── k-noise ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class KNoiseRelease(Result):
    """Values with uniform noise, and how well each record is hidden.

    Attributes:
        values: Released values.
        half_width: Half-width of the noise.
        window: Distance within which records are counted.
        anonymity_set_size: Expected number of released values within `window` of each original
            value.
        anonymity: Number of original values from which each released value could come.
        utility: Errors of the released values.

    Examples:
        >>> from discreet import disclosure
        >>> release = disclosure.k_noise([1, 2, 3, 4, 5], k=2)
        >>> len(release.values)
        5
    """

    values: Floats = field(repr=False)
    half_width: float
    window: float
    anonymity_set_size: Floats = field(repr=False)
    anonymity: Ints = field(repr=False)
    utility: UtilityLoss

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no interval is meant
        """List the released values.

        Args:
            confidence: Without effect: the noise is uniform within `half_width`.

        Returns:
            One record for each: record, value, std (of the noise), low and high, the last two
            None.

        Examples:
            >>> from discreet import disclosure
            >>> len(disclosure.k_noise([1, 2, 6, 7, 9], k=2).rows())
            5
        """
        keys = ((place,) for place in range(len(self.values)))
        std = np.full(len(self.values), self.half_width / math.sqrt(3))
        return records(("record",), keys, value=self.values, std=std)

    def __repr__(self) -> str:
        alone = int((self.anonymity == 1).sum())
        return (
            f"{len(self.values):,} values with noise that is uniform within ±{self.half_width:g}\n"
            f"  {self.utility}\n"
            f"  expected crowd within ±{self.window:g} of a record: at least "
            f"{short(self.anonymity_set_size.min(), digits=3)}, "
            f"{short(self.anonymity_set_size.mean(), digits=3)} on average\n"
            f"  originals that a released value could come from: at least "
            f"{self.anonymity.min()}; {alone:,} values have one only\n"
            "  Not differentially private: a second release narrows every record down."
        )


def k_noise(
    values: ArrayLike,
    *,
    k: int | None = None,
    delta: Number | None = None,
    half_width: Number | None = None,
    rng: RandomSource | None = None,
) -> KNoiseRelease:
    """Add independent uniform noise to each value (k-noise).

    Give `delta`, or `k` for the smallest delta with k records near every point.

    Args:
        values: Values to release.
        k: Number of records that shall be nearer than 2 delta to every point of the range.
        delta: Distance that defines neighborhoods, in the unit of the values.
        half_width: Half-width of the uniform noise. By default `delta`.
        rng: Random source. By default the operating system's.

    Returns:
        The released values with their anonymity sets and utility.

    Raises:
        InvalidArgument: Not exactly one of `k` and `delta` is given, or a number is not positive.
        OutOfDomain: `values` is not a list of finite numbers, or has fewer than k.

    Privacy:
        Not differentially private, at any epsilon: noise is bounded, so each released value rules
        out all original values that are farther away. Repeated releases narrow a record down.

    Examples:
        >>> from discreet import disclosure
        >>> release = disclosure.k_noise([1, 2, 3, 4, 5], k=2)
        >>> int(release.anonymity.min()) >= 1
        True

    See Also:
        `private_points`: a similar method that is differentially private.

    References:
        Biswal (2024), corrected. [Proof](../theory/theorems.md#disclosure._k_noise.k_noise).
    """
    # Theorem: if k records lie within 2 delta of x, then the expected number of released values
    #   within 2 delta of x is at least k/2. The factor is best possible.
    # Proof: `expected_anonymity_set_size` gives a record at distance d < 2 delta the probability
    #   min(1, (2 delta + a - d) / (2a)) > 1/2 if the half-width a is at most 2 delta.
    # Source: Biswal 2024, Theorem 3.5.1, corrected. B12, M10.
    # Needs: half_width at most 2 delta for the theorem. Not differentially private: x and x' are
    #   distinguished with certainty in a share min(1, |x - x'| / (2a)) of cases, at any epsilon.
    x = sample("values", values)
    if (k is None) == (delta is None):
        raise InvalidArgument("k_noise takes either k or delta.")
    near = float(positive("delta", delta)) if k is None else k_noise_half_width(x, k=k)
    a = near if half_width is None else float(positive("half_width", half_width))
    drawn = x + a * symmetric(len(x), resolve_rng(rng))
    return KNoiseRelease(
        values=drawn,
        half_width=a,
        window=2 * near,
        anonymity_set_size=expected_anonymity_set_size(x, at=x, half_width=a, window=2 * near),
        anonymity=anonymity_sets(x, released=drawn, half_width=a),
        utility=utility(x, released=drawn),
    )


def expected_anonymity_set_size(
    values: ArrayLike, *, at: ArrayLike, half_width: Number, window: Number
) -> Floats:
    """Compute the expected number of released values near each point, exactly.

    Args:
        values: Original values.
        at: Points around which released values are counted.
        half_width: Half-width of the uniform noise, in the unit of the values.
        window: Distance within which released values are counted.

    Returns:
        One expected number per point.

    Raises:
        OutOfDomain: `values` or `at` is not a list of finite numbers.
        InvalidArgument: A width is not positive.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.expected_anonymity_set_size([0, 1], at=[0], half_width=1, window=1).tolist()
        [1.5]

    References:
        [Proof](../theory/theorems.md#disclosure._k_noise.expected_anonymity_set_size).
    """
    # Theorem: with noise uniform on ±a and window r, record j counts with probability
    #   ((r + a - |d|)^+ - (|r - a| - |d|)^+) / (2a), d its distance from the point.
    # Proof: the length of [-r - d, r - d] within [-a, a], over 2a. Sums of (w - |d|)^+ are second
    #   differences of the integral of the empirical distribution, which prefix sums give:
    #   O((n + q) log n) for n records and q points, up to rounding (n 10^-15 of the range / a).
    # Source: B12.
    x = np.sort(sample("values", values))
    points, back = _sorted(sample("at", at))
    a, r = float(positive("half_width", half_width)), float(positive("window", window))
    # Centered, so that prefix sums stay small.
    center = float(x[len(x) // 2])
    x, points = x - center, points - center
    sums = np.concatenate([[0.0], np.cumsum(x)])

    def tent(reach: float) -> Floats:
        """Sum of (reach - |x_j - point|)^+."""
        low, middle, high = (
            np.searchsorted(x, points + side * reach, side="right") for side in (-1, 0, 1)
        )
        left = (sums[middle] - sums[low]) - (middle - low) * (points - reach)
        right = (high - middle) * (points + reach) - (sums[high] - sums[middle])
        sums_of: Floats = left + right
        return sums_of

    return (np.maximum(tent(r + a) - tent(abs(r - a)), 0) / (2 * a))[back]


def anonymity_set_size(values: ArrayLike, *, at: ArrayLike, window: Number) -> Ints:
    """Count the values near each point.

    Args:
        values: Values to count.
        at: Points around which values are counted.
        window: Largest distance that counts, in the unit of the values.

    Returns:
        One number per point.

    Raises:
        OutOfDomain: `values` or `at` is not a list of finite numbers.
        InvalidArgument: `window` is not positive.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.anonymity_set_size([1, 2, 5], at=[1, 5], window=1).tolist()
        [2, 1]
    """
    x, r = np.sort(sample("values", values)), float(positive("window", window))
    points, back = _sorted(sample("at", at))
    upper = np.searchsorted(x, points + r, side="right")
    return (upper - np.searchsorted(x, points - r, side="left"))[back].astype(np.int64)


def _sorted(points: Floats) -> tuple[Floats, Ints]:
    """Points in order, and the place of each: looking up neighbors in turn is ten times faster."""
    order = np.argsort(points)
    back = np.empty(len(points), dtype=np.int64)
    back[order] = np.arange(len(points))
    return points[order], back


def k_noise_half_width(values: ArrayLike, *, k: int) -> float:
    """Find the smallest delta for which k records lie near every point.

    Args:
        values: Original values.
        k: Number of records that shall be nearer than 2 delta to every point between the smallest
            and the largest value.

    Returns:
        The distance delta, in the unit of the values. It depends on private data.

    Raises:
        OutOfDomain: There are fewer than k values, or they are not finite numbers.
        InvalidArgument: `k` is not a positive integer.

    Examples:
        >>> from discreet import disclosure
        >>> round(disclosure.k_noise_half_width([0, 1, 2, 3], k=2), 6)
        0.5

    References:
        [Proof](../theory/theorems.md#disclosure._k_noise.k_noise_half_width).
    """
    # Theorem: 2 delta must exceed the largest of x_k - x_1, x_n - x_(n-k+1) and
    #   (x_(i+k) - x_i)/2 over all i, and that is enough.
    # Proof: the distance d(x) to the k-th nearest record has slopes ±1. At the ends it is the first
    #   two numbers. At an inner maximum x with d(x) = r a record i lies at x - r (the last one
    #   there), and at most k - 1 lie nearer than r, so x_(i+k) >= x + r. Conversely the middle of
    #   x_i and x_(i+k) has at most k - 1 records nearer than half their distance.
    # Source: B12. O(n log n).
    x = np.sort(sample("values", values))
    many = count("k", k)
    if many > len(x):
        raise OutOfDomain("k must be at most the number of values.")
    ends = [x[many - 1] - x[0], x[-1] - x[len(x) - many]]
    inner = (x[many:] - x[: len(x) - many]) / 2
    largest = float(max(*ends, inner.max(initial=0.0)))
    # Strictly nearer, and the differences above were rounded.
    return math.nextafter(math.nextafter(largest, math.inf) / 2, math.inf)


def guaranteed_anonymity_set_size(
    values: ArrayLike, *, at: ArrayLike, delta: Number, half_width: Number
) -> Ints:
    """Compute how many released values are certainly near each point.

    Args:
        values: Original values.
        at: Points around which released values are counted.
        delta: Distance that defines neighborhoods, as in `k_noise`.
        half_width: Half-width of the uniform noise.

    Returns:
        A lower bound, per point, of the number of released values within `2 * delta + half_width`.

    Raises:
        OutOfDomain: `values` or `at` is not a list of finite numbers.
        InvalidArgument: A width is not positive.

    Examples:
        >>> from discreet import disclosure
        >>> values = [0, 1, 9]
        >>> disclosure.guaranteed_anonymity_set_size(values, at=[0], delta=1, half_width=1).tolist()
        [2]
    """
    # Theorem: at least the number of records within 2 delta.
    # Proof: noise moves no record by more than half_width.
    # Source: B12, deterministic companion.
    positive("half_width", half_width)
    return anonymity_set_size(values, at=at, window=2 * positive("delta", delta))


def probable_anonymity_set_size(expected: ArrayLike, *, confidence: Number = 0.95) -> Floats:
    """Compute a lower bound of an anonymity set that holds with high probability.

    Args:
        expected: Expected sizes, from `expected_anonymity_set_size`.
        confidence: Probability with which the bound holds, between 0 and 1.

    Returns:
        One bound per expected size, zero if nothing can be claimed.

    Raises:
        OutOfDomain: `expected` contains values that are not numbers, or negative numbers.
        InvalidArgument: `confidence` is not between 0 and 1.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.probable_anonymity_set_size([100.0]).round(2).tolist()
        [75.52]

    References:
        [Proof](../theory/theorems.md#disclosure._k_noise.probable_anonymity_set_size).
    """
    # Theorem: a sum of independent indicators with mean m is above m - sqrt(2 m ln(1/alpha)) with
    #   probability at least 1 - alpha.
    # Proof: Chernoff, P(count <= (1 - t) m) <= exp(-t^2 m / 2), at t = sqrt(2 ln(1/alpha) / m); for
    #   m below 2 ln(1/alpha) nothing is claimed.
    # Source: B12, high-probability companion.
    try:
        mean = np.asarray(expected, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise OutOfDomain("expected must hold numbers.") from None
    if not (np.isfinite(mean) & (mean >= 0)).all():
        raise OutOfDomain("expected must hold numbers that are not negative.")
    alpha = 1 - float(probability("confidence", confidence, zero=False, one=False))
    return np.maximum(mean - np.sqrt(2 * mean * math.log(1 / alpha)), 0)


def anonymity_sets(values: ArrayLike, *, released: ArrayLike, half_width: Number) -> Ints:
    """Count from how many original values each released value could come.

    Args:
        values: Original values.
        released: Released values.
        half_width: Half-width of the uniform noise.

    Returns:
        One number per released value.

    Raises:
        OutOfDomain: An argument is not a list of finite numbers.
        InvalidArgument: `half_width` is not positive.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.anonymity_sets([0, 1, 9], released=[0.5, 9.2], half_width=1).tolist()
        [2, 1]
    """
    return anonymity_set_size(values, at=released, window=half_width)


def width_after_releases(releases: int, *, half_width: Number) -> float:
    """Compute how far several releases with uniform noise narrow a record down.

    Args:
        releases: Number of releases.
        half_width: Half-width of the noise of each release.

    Returns:
        The expected width of the interval that remains possible for the record.

    Raises:
        InvalidArgument: An argument is not positive.

    Examples:
        >>> from discreet import disclosure
        >>> round(disclosure.width_after_releases(10, half_width=2.5), 3)
        0.909

    References:
        [Proof](../theory/theorems.md#disclosure._k_noise.width_after_releases).
    """
    # Theorem: 4 a / (m + 1) after m releases with noise uniform on ±a.
    # Proof: the originals that fit all releases form an interval of width 2a minus the range of m
    #   uniform draws, which is 2a (m - 1)/(m + 1) on average.
    # Source: M10.
    return 4 * float(positive("half_width", half_width)) / (count("releases", releases) + 1)


# ── Adaptive jitter ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveJitter:
    """Values with noise of different widths (experimental).

    Attributes:
        experimental: True: do not use it for releases.
        values: Released values.
        widths: Half-width of the noise of each value. It depends on the data; do not publish it.
        cap: Largest half-width.
        utility: Errors of the released values.

    Examples:
        >>> from discreet import disclosure
        >>> release = disclosure.adaptive_jitter([1, 2, 9], half_width=1, window=2, cap=5)
        >>> release.experimental
        True
    """

    experimental: ClassVar[bool] = True
    values: Floats = field(repr=False)
    widths: Floats = field(repr=False)
    cap: float
    utility: UtilityLoss

    def __repr__(self) -> str:
        return (
            f"AdaptiveJitter({len(self.values):,} values, noise at most ±{self.cap:g}; "
            f"experimental)\n  {self.utility}\n"
            "  Not differentially private: even the widths are made of the data."
        )


def adaptive_jitter(
    values: ArrayLike,
    *,
    half_width: Number,
    window: Number,
    cap: Number,
    rng: RandomSource | None = None,
) -> AdaptiveJitter:
    """Add more noise where there are fewer records (experimental).

    The half-width is the mean anonymity set size divided by that of the record, at most `cap`.
    Compare it with other methods, but do not use it for releases.

    Args:
        values: Values to release.
        half_width: Half-width of the k-noise for which anonymity sets are computed.
        window: Distance within which released values are counted.
        cap: Largest half-width of the noise.
        rng: Random source. By default the operating system's.

    Returns:
        The released values with their widths and utility.

    Raises:
        OutOfDomain: `values` is not a list of finite numbers.
        InvalidArgument: A width is not positive.

    Privacy:
        Not differentially private. There is no theorem, and the widths themselves depend on the
        data.

    Examples:
        >>> from discreet import disclosure
        >>> release = disclosure.adaptive_jitter([1, 2, 9], half_width=1, window=2, cap=5)
        >>> float(release.widths.max()) <= 5
        True

    References:
        Biswal (2024).
    """
    # Source: Biswal 2024, listings. B13.
    x, most = sample("values", values), float(positive("cap", cap))
    size = expected_anonymity_set_size(x, at=x, half_width=half_width, window=window)
    with np.errstate(divide="ignore"):
        widths = np.minimum(most, size.mean() / size)
    drawn = x + widths * symmetric(len(x), resolve_rng(rng))
    return AdaptiveJitter(values=drawn, widths=widths, cap=most, utility=utility(x, released=drawn))
