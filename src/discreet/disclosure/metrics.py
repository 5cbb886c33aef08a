"""How far released microdata are from the original: errors, histograms, distances of samples."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.check import count, finite, listed
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.disclosure.classes import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """Errors of released values, record by record and as a sample (B14)."""

    bias: float
    """Mean of original minus released."""
    bias_error: float
    """Standard error of the bias: a bias of less than three of these is no news."""
    mse: float
    wasserstein: float
    ks: float
    changed: float | None
    """Share of records in another bin than before; None without edges."""
    before: Ints | None = field(default=None, repr=False)
    after: Ints | None = field(default=None, repr=False)

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.mse)

    def __str__(self) -> str:
        bins = "" if self.changed is None else f", {self.changed:.1%} of records change their bin"
        return (
            f"bias {self.bias:.4g} (standard error {self.bias_error:.2g}), rmse {self.rmse:.4g}; "
            f"as samples: Wasserstein {self.wasserstein:.4g}, Kolmogorov-Smirnov {self.ks:.4g}"
            f"{bins}"
        )


def utility(
    original: ArrayLike, *, released: ArrayLike, edges: Iterable[float] | None = None
) -> Utility:
    """Compare released values with the original ones, record by record.

    >>> print(utility([1, 2, 3, 4], released=[2, 2, 3, 3]).mse)
    0.5
    """
    x, y = sample("original", original), sample("released", released)
    if len(x) != len(y):
        raise OutOfDomain("original and released must have the same number of values.")
    difference = x - y
    bins = None if edges is None else checked_edges(edges)
    return Utility(
        bias=float(difference.mean()),
        bias_error=float(difference.std(ddof=1) / math.sqrt(len(x))) if len(x) > 1 else math.inf,
        mse=float((difference**2).mean()),
        wasserstein=wasserstein(x, other=y),
        ks=ks_distance(x, other=y),
        changed=None if bins is None else float((places(x, bins) != places(y, bins)).mean()),
        before=None if bins is None else histogram(x, edges=bins),
        after=None if bins is None else histogram(y, edges=bins),
    )


def histogram(values: ArrayLike, *, edges: Iterable[float]) -> Ints:
    """Counts in public bins: an edge belongs to the bin on its right, the last to the last bin.

    Values outside are not counted.
    """
    bins = checked_edges(edges)
    place = places(sample("values", values), bins)
    inside = (place >= 0) & (place < len(bins) - 1)
    return np.bincount(place[inside], minlength=len(bins) - 1)


def wasserstein(values: ArrayLike, *, other: ArrayLike, order: int = 1) -> float:
    """The Wasserstein distance of two samples: (mean of |quantile difference|^order)^(1/order).

    Computed on the samples themselves; distances of smoothed curves mean something else (M11).

    >>> wasserstein([0, 1, 2], other=[5, 6, 7])
    5.0
    """
    x, y = np.sort(sample("values", values)), np.sort(sample("other", other))
    p = count("order", order)
    n, m = len(x), len(y)
    if n == m:
        return float((np.abs(x - y) ** p).mean() ** (1 / p))
    # Quantile functions are constant between the multiples of 1/n and 1/m.
    ends = np.unique(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]))
    widths = np.diff(ends, prepend=0) / (n * m)
    gaps = np.abs(x[(ends - 1) // m] - y[(ends - 1) // n])
    return float((widths @ gaps**p) ** (1 / p))


def ks_distance(values: ArrayLike, *, other: ArrayLike) -> float:
    """The largest difference of the two samples' distribution functions."""
    x, y = np.sort(sample("values", values)), np.sort(sample("other", other))
    at = np.concatenate([x, y])
    below = np.searchsorted(x, at, side="right") / len(x)
    return float(np.abs(below - np.searchsorted(y, at, side="right") / len(y)).max())


def sample(name: str, values: ArrayLike) -> Floats:
    """A list of finite numbers, at least one; its content appears in no error."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise OutOfDomain(f"{name} must be a list of numbers.") from None
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise OutOfDomain(f"{name} must be a list of at least one number, all finite.")
    return array


def checked_edges(edges: Iterable[float]) -> Floats:
    """Increasing edges of bins."""
    found = np.array([float(finite("edges", edge)) for edge in listed("edges", edges)])
    if len(found) < 2 or not (np.diff(found) > 0).all():
        raise InvalidArgument("edges must be at least two numbers in increasing order.")
    return found


def places(values: Floats, edges: Floats) -> Ints:
    """The bin of each value; -1 below, the number of bins above (B10: an edge goes right)."""
    place = np.searchsorted(edges, values, side="right") - 1
    place[values == edges[-1]] = len(edges) - 2
    return place
