"""Publish means of a panel with noise designed for it, and smooth what has been published.

The noise may be correlated and is exact on integers. Smoothing with the model is post-processing
and reduces the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from discreet.accounting.guarantee import Guarantee
from discreet.audit.series._leakage import covariances, largest
from discreet.audit.series._private_fit import grid_of, private_panel, shape_of
from discreet.audit.series.model import VAR, Floats, numbers
from discreet.audit.series.threat_model import SeriesReleases
from discreet.core._rational import Number
from discreet.core._validate import finite, probability
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.ledger.account import Account, Receipt, reserve_if_charged
from discreet.mechanisms.additive import AdditiveMechanism, gaussian
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

# ── Publication
# ────────────────────────────────────────────────────────────────────────────────────


Ints = NDArray[np.int64]

# Bits of a whitened total, bits of the noise, and the fewest of the whitening that will do.
_ROOM = 58
_NOISE = 46
_FEWEST = 16
# Floats only bound the sensitivity, and are given this much more.
_OUTWARD = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whitening:
    """Whole numbers W: ``W totals`` plus independent noise of ``2**digits``, and back."""

    rows: Ints
    digits: int
    column: SortedColumn
    people: int

    @property
    def sigma(self) -> int:
        """Of the noise on each whitened total."""
        return 1 << self.digits

    @property
    def covariance(self) -> Floats:
        """Of the noise on the means, as it is drawn."""
        back = self._back
        result: Floats = back @ back.T
        return result

    @property
    def _back(self) -> Floats:
        """From whitened noise of deviation 1 to means."""
        inverse: Floats = np.linalg.inv(np.ldexp(self.rows.astype(np.float64), -self.digits))
        return inverse * (self.column.step / self.people)

    def moved(self, *, times: int | None = None) -> int:
        """The largest squared move of the whitened totals: of a whole row, or of one value."""
        # Theorem: an upper bound for a person's values that each move by at most the range.
        # Proof: the moves form a box and the square is convex: `largest`. One value: one column.
        rows = self.rows.astype(np.float64) * self.column.span
        top = float((rows**2).sum(axis=0).max()) if times == 1 else largest(rows).upper ** 2
        return math.ceil(top * _OUTWARD)

    def means(self, noisy: Floats) -> Floats:
        """The means that noisy whitened totals stand for."""
        column = self.column
        middle = (column.first + column.span / 2) * column.step
        # Totals are counted from the middle of the range, in half steps.
        return middle + self._back @ np.ldexp(noisy, -self.digits) / 2


class _NormalSeries(Result):
    """Numbers, one for each release, with normal errors of known covariance."""

    __slots__ = ()

    values: Floats
    covariance: Floats

    @property
    def std(self) -> Floats:
        """The standard deviation of each."""
        return np.sqrt(np.diag(self.covariance))

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the number of each release with its interval.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            One record for each: release, value, std, low and high.
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        reach = NormalDist().inv_cdf((1 + inside) / 2) * self.std
        keys = ((place,) for place in range(len(self.values)))
        low, high = self.values - reach, self.values + reach
        return records(("release",), keys, value=self.values, std=self.std, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PublishedSeries(_NormalSeries):
    """Means that may be published."""

    values: Floats
    """One for each release."""
    covariance: Floats = field(repr=False)
    """Of the noise in them."""
    guarantee: Guarantee
    """If one person's whole row is replaced: all their values, at all published times."""
    one_value: Guarantee
    """If one value of one person is replaced."""
    private: bool
    """False if the noise came from seeded bits: then there is no guarantee."""
    receipt: Receipt | None = None


def publish(
    panel: ArrayLike,
    *,
    releases: SeriesReleases,
    bounds: tuple[Number, Number],
    account: Account | None = None,
    label: str = "means of a series",
    rng: RandomSource | None = None,
) -> PublishedSeries:
    """Publish the means of a panel with designed noise.

    Args:
        panel: Private values, an array or a frame of people x times, whose numbers are public. A
            value that is missing, or no number, counts as the middle of the bounds.
        releases: What to publish, with the noise, for example from `design`.
        bounds: Public lower and upper bound to which values are clipped. Their distance must be the
            width of `releases`.
        account: Ledger account that pays. It is charged the guarantee for a whole row.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    Returns:
        The noisy means with the covariance of the noise, `guarantee` (one person's row is replaced)
        and `one_value` (one value is replaced).

    Raises:
        BudgetExceeded: The account cannot pay. Nothing was read.
        NotCertified: The noise was chosen by a model that depends on private values.
        InvalidArgument: The releases do not fit the panel or the bounds.
        OutOfDomain: The panel has gaps.

    Privacy:
        The release satisfies `guarantee` for one person's row. The account is charged before the
        values are read. Under the model, the leakage of single values is that of `cells`.

    Examples:
        >>> import numpy
        >>> import discreet
        >>> from discreet.audit import series
        >>> means = series.releases(times=[0, 1], width=8, people=3, std=2)
        >>> panel = numpy.array([[1, 2], [3, 5], [4, 4]])
        >>> published = series.publish(panel, releases=means, bounds=(0, 8))
        >>> len(published.values)
        2

    See Also:
        `smooth`, [releases about the same people](../how-to/series.md).

    References:
        [Proof](../theory/theorems.md#audit.series._publish.publish).
    """
    # Theorem: costs `guarantee` if one person's row is replaced by any other; under the model the
    #   leakage of a value is that of `cells`, up to the rounding of the noise's covariance.
    # Proof: values are clipped and rounded one by one, and totals are whole. `W totals` gets
    #   independent discrete Gaussian noise for its L2 sensitivity; the way back is
    #   post-processing, and makes the noise's covariance `(W'W)^-1`.
    # Needs: bounds that are public, and as wide as `releases` says; noise that was chosen without
    #   the panel, or by a private fit of it.
    source = resolve_rng(rng)
    if not releases.public:
        raise NotCertified(
            "The noise in releases was chosen by a model fitted to private values: it tells of "
            "them itself. Design it for a public model, or for one of private_fit."
        )
    people, times = shape_of(panel)
    whitening = _whitening(releases, grid_of(bounds), people)
    if releases.times[-1] >= times:
        raise InvalidArgument(f"releases must be of the panel's {times} times.")
    low, high = map(float, bounds)
    if abs(releases.width - (high - low)) > 1e-9 * releases.width:
        raise InvalidArgument(f"bounds must be {releases.width:g} wide, as releases says.")
    noise = _noise(whitening)
    with reserve_if_charged(account, noise.guarantee, label=label, rng=source) as held:
        values = private_panel(panel, column=whitening.column)
        totals = _totals(values[:, list(releases.times)], whitening.column)
        noisy = noise.release(whitening.rows @ totals, rng=source).astype(np.float64)
    return PublishedSeries(
        values=whitening.means(noisy),
        covariance=whitening.covariance,
        guarantee=noise.guarantee,
        one_value=_noise(whitening, times=1).guarantee,
        private=source.private,
        receipt=None if held is None else held.receipt,
    )


def _noise(whitening: Whitening, *, times: int | None = None) -> AdditiveMechanism:
    # A squared distance N is that of N coordinates which move by one: no root is rounded. Totals
    # are in half steps, twice as many: so is the noise.
    return gaussian(
        sensitivity=2,
        norm="linf",
        dimension=whitening.moved(times=times),
        sigma=2 * whitening.sigma,
        domain="integers",
        relation=NeighboringRelation.REPLACE_ONE,
    )


def _totals(values: Floats, column: SortedColumn) -> Ints:
    """Of all people, from the middle of the range, in half steps."""
    result: Ints = (2 * column.places(values) - column.span).sum(axis=0)
    return result


def _whitening(releases: SeriesReleases, column: SortedColumn, people: int) -> Whitening:
    """The whitening of the totals' noise, rounded to whole numbers that cannot overflow."""
    weights = releases.weights
    if len(weights) != people or np.abs(weights * people - 1).max() > 1e-9:
        raise InvalidArgument(f"releases must be means of the panel's {people} people.")
    scale = people / column.step
    inverse = np.linalg.inv(np.linalg.cholesky(releases.covariance)) / scale
    size = math.frexp(float(np.abs(inverse).max()))[1]
    room = _ROOM - (len(inverse) * people * column.span).bit_length()
    digits = min(room - size, _NOISE)
    if digits + size < _FEWEST:
        raise OutOfDomain("panel must be smaller, or the noise: too many people for exact totals.")
    rows = np.rint(np.ldexp(inverse, digits)).astype(np.int64)
    if digits < 1 or not np.diag(rows).all():
        raise InvalidArgument("releases must have noise of comparable size at all times.")
    return Whitening(rows=rows, digits=digits, column=column, people=people)


# ── Smoothing
# ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SmoothedSeries(_NormalSeries):
    """Estimates of the releases without noise."""

    values: Floats
    covariance: Floats = field(repr=False)
    """Of their errors, under the model."""


def smooth(
    published: ArrayLike, *, model: VAR, releases: SeriesReleases, level: float | None = None
) -> SmoothedSeries:
    """Estimate the means without noise from all published means together.

    This is post-processing and costs no budget. With a wrong model the estimates are biased, and
    their errors are wrong.

    Args:
        published: Published means, in the order of `releases.times`.
        model: Model of the values.
        releases: What was published, with the noise.
        level: Value around which the series varies. By default one constant is estimated.

    Returns:
        The best linear estimates, with the covariance of their errors.

    Raises:
        InvalidArgument: The numbers of means or people do not fit.

    Examples:
        >>> from discreet.audit import series
        >>> model = series.VAR(lags=[[0.5, 0], [0, 0.5]], noise=[[1, 0], [0, 1]])
        >>> means = series.releases(times=[0, 1], width=8, people=2, std=2)
        >>> smoothed = series.smooth([1.0, 3.0], model=model, releases=means)
        >>> smoothed.values.round(2).tolist()
        [1.92, 2.08]

    References:
        Kalman (1960). Le Ny and Pappas (2014).
        [Proof](../theory/theorems.md#audit.series._publish.smooth).
    """
    # Theorem: with C the covariance of the releases without noise and `V = C + S`, the estimates
    #   `l + C V^-1 (q - l)` have errors with covariance `C - C V^-1 C`. For an unknown level, l
    #   is `1'V^-1 q / 1'V^-1 1` and `d d' / 1'V^-1 1`, `d = 1 - C V^-1 1`, is added.
    # Proof: regression in a joint normal law; generalized least squares for the level, whose error
    #   is independent of the residuals.
    # Source: Kalman 1960; Le Ny, Pappas 2014.
    q = numbers("published", published)
    size = len(releases.times)
    if q.shape != (size,):
        raise InvalidArgument(f"published must be {size} numbers, one for each release.")
    if len(releases.weights) != model.people:
        raise InvalidArgument(
            f"releases must be of the model's {model.people} people, got {len(releases.weights)}."
        )
    C = covariances(model, releases=releases, horizon=releases.times[-1] + 1).total
    factor = cho_factor(C + releases.covariance)
    error = C - C @ cho_solve(factor, C)
    ones = cho_solve(factor, np.ones(size))
    if level is None:
        weight = float(ones.sum())
        middle = float(ones @ q) / weight
        d = 1 - C @ ones
        error = error + np.outer(d, d) / weight
    else:
        middle = float(finite("level", level))
    values = middle + C @ cho_solve(factor, q - middle)
    return SmoothedSeries(values=values, covariance=(error + error.T) / 2)
