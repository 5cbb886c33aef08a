"""Disclosure risk of a table as it is, and utility of released microdata.

These are measurements, not guarantees: they say nothing about an attacker who knows more than the
quasi-identifiers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from discreet.core._validate import as_tuple, count, finite
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.disclosure.generalization_hierarchy import (
    EquivalenceClasses,
    Floats,
    Ints,
    distinct,
    numbers,
    together,
)

# ── Utility
# ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityLoss:
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
) -> UtilityLoss:
    """Compare released values with the original ones, record by record.

    >>> print(utility([1, 2, 3, 4], released=[2, 2, 3, 3]).mse)
    0.5
    """
    x, y = sample("original", original), sample("released", released)
    if len(x) != len(y):
        raise OutOfDomain("original and released must have the same number of values.")
    difference = x - y
    bins = None if edges is None else checked_edges(edges)
    return UtilityLoss(
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
    found = np.array([float(finite("edges", edge)) for edge in as_tuple("edges", edges)])
    if len(found) < 2 or not (np.diff(found) > 0).all():
        raise InvalidArgument("edges must be at least two numbers in increasing order.")
    return found


def places(values: Floats, edges: Floats) -> Ints:
    """The bin of each value; -1 below, the number of bins above (B10: an edge goes right)."""
    place = np.searchsorted(edges, values, side="right") - 1
    place[values == edges[-1]] = len(edges) - 2
    return place


# ── Disclosure risk
# ────────────────────────────────────────────────────────────────────────────────


Frame: TypeAlias = "nw.DataFrame[Any]"
Series: TypeAlias = "nw.Series[Any]"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """How much a class still tells about one sensitive column, in the worst class.

    ``distinct``: the fewest different values in a class. ``entropy``: the smallest exponential of
    the entropy of a class, "effectively so many values". ``closeness``: the largest earth mover's
    distance between a class and the whole table, with all values equally far apart (texts), or
    with the distance of ranks (numbers).
    """

    distinct: int
    entropy: float
    closeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureRisk:
    """Chances to find a row by its quasi-identifiers, and what its class then tells."""

    rows: int
    classes: int
    k: int
    """Size of the smallest class; 0 for an empty table."""
    unique: int
    """Rows that are alone in their class."""
    sizes: Ints = field(repr=False)
    sensitive: Mapping[str, Diversity] = field(default_factory=lambda: _NOTHING)

    @property
    def highest(self) -> float:
        """The chance to pick the right row of the smallest class."""
        return 1 / self.k if self.k else 0.0

    @property
    def average(self) -> float:
        """The same, averaged over rows."""
        return self.classes / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.rows:,} rows in {self.classes:,} classes, k = {self.k}, {self.unique:,} unique",
            "chance to find a row, knowing its quasi-identifiers and nothing else:",
            f"  at most {self.highest:.3g}, on average {self.average:.3g}",
        ]
        lines += [
            f"{name}: fewest values in a class {one.distinct} (effectively {one.entropy:.2f}), "
            f"largest distance from the whole table {one.closeness:.3f}"
            for name, one in self.sensitive.items()
        ]
        return "\n".join(lines)


def disclosure_risk(
    frame: object, *, quasi_identifiers: Sequence[str], sensitive: Sequence[str] = ()
) -> DisclosureRisk:
    """Measure k-anonymity, l-diversity and t-closeness of a table as it is.

    ``quasi_identifiers`` are the columns that an attacker may know together, ``sensitive`` those
    that must not become known. Any frame that narwhals speaks will do.

    Heuristic: no theorem about privacy. k is the size of the smallest class of rows that agree in
        *all* quasi-identifiers together; B8, M7.
    Source: Sweeney 2002; Machanavajjhala et al. 2007; Li, Li, Venkatasubramanian 2007.
    """
    table = opened(frame)
    known, secret = named(table, "quasi", quasi_identifiers), named(table, "sensitive", sensitive)
    coded = [ranked(table[column]) for column in known]
    classes = together([codes for codes, _ in coded], [n for _, n in coded], items=len(table))
    return measured(classes, {column: table[column] for column in secret})


def measured(classes: EquivalenceClasses, sensitive: Mapping[str, Series]) -> DisclosureRisk:
    """The risk of rows in these classes."""
    sizes = classes.sizes
    return DisclosureRisk(
        rows=int(sizes.sum()),
        classes=len(sizes),
        k=int(sizes.min()) if len(sizes) else 0,
        unique=int((sizes == 1).sum()),
        sizes=np.sort(sizes),
        sensitive={name: _diversity(classes, series) for name, series in sensitive.items()},
    )


def opened(frame: object) -> Frame:
    """A frame in memory."""
    table = nw.from_native(frame, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if not isinstance(table, nw.DataFrame):
        raise InvalidArgument(
            f"frame must be a data frame that narwhals speaks, got {type(frame).__name__}."
        )
    return table


def named(table: Frame, argument: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The names, all of them columns of the table; whatever can be read once is read here."""
    names = as_tuple(argument, columns)
    given: tuple[object, ...] = names
    missing = [one for one in given if not isinstance(one, str) or one not in table.columns]
    if missing:
        raise InvalidArgument(f"{argument} names {missing}, which the frame does not have.")
    return names


def ranked(series: Series) -> tuple[Ints, int]:
    """Codes of a column in the order of its values, and how many there are."""
    # Doubles would make one of two, and NumPy has no integers so long.
    if series.dtype in (nw.Decimal, nw.Int128, nw.UInt128):
        values = series.to_list()
        present = {value for value in values if value is not None}
        order = {value: i for i, value in enumerate([*sorted(present), None])}
        places = np.array([order[value] for value in values], dtype=np.int64)
        return places, len(present) + (None in values)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        plain = series.cast(nw.Float64) if series.dtype == nw.Boolean else series
        known, _, codes = numbers(plain)
        return codes.astype(np.int64, copy=False), len(known)
    if series.dtype in (nw.List, nw.Struct, nw.Array, nw.Binary):
        raise Unsupported(f"a column of {series.dtype} cannot be compared: leave it out.")
    names, codes = distinct(series)
    return codes, len(names)


def _diversity(classes: EquivalenceClasses, series: Series) -> Diversity:
    codes, many = ranked(series)
    if len(codes) != len(classes.of):
        raise OutOfDomain("a sensitive column must have a value for each row.")
    if not len(codes):
        return Diversity(distinct=0, entropy=0.0, closeness=0.0)
    pairs = together([classes.of, codes], [len(classes.sizes), many])
    owner, value = classes.of[pairs.head], codes[pairs.head]
    share = pairs.sizes / classes.sizes[owner]
    entropy = np.bincount(owner, weights=-share * np.log(share), minlength=len(classes.sizes))
    whole = np.bincount(codes, minlength=many) / len(codes)
    if series.dtype.is_numeric():
        far = _ordered(owner, share, value, whole)
    else:
        # Half the sum of |p - q|, where values outside the class count with q alone.
        inside = np.bincount(owner, weights=np.abs(share - whole[value]) - whole[value])
        far = (inside + 1) / 2
    return Diversity(
        distinct=int(np.bincount(owner).min()),
        entropy=math.exp(max(float(entropy.min()), 0.0)),
        closeness=float(far.max()),
    )


def _ordered(owner: Ints, share: Floats, value: Ints, whole: Floats) -> Floats:
    """Earth mover's distance of ranks: the mean of |F_class - F| over all values but the last.

    F_class is constant between the values of the class. On such a stretch F crosses the constant
    once, so the sum is a difference of prefix sums: O(n log n) for all classes together.
    """
    many = len(whole)
    if many == 1:
        return np.zeros(int(owner.max()) + 1)
    # F at every value but the last, where all are 1.
    cdf = np.cumsum(whole)[:-1]
    sums = np.concatenate([[0.0], np.cumsum(cdf)])
    order = np.lexsort((value, owner))
    owner, value, share = owner[order], value[order], share[order]
    begins = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    running = np.cumsum(share)
    level = running - np.repeat((running - share)[begins], np.diff([*begins, len(owner)]))
    ends = np.concatenate([value[1:], [many - 1]])
    ends[[*(begins[1:] - 1), len(owner) - 1]] = many - 1
    far = np.bincount(owner, weights=_stretch(value, ends, level, cdf, sums))
    # Before the first value of a class its F is zero.
    far += sums[value[begins]]
    return far / (many - 1)


def _stretch(start: Ints, stop: Ints, level: Floats, cdf: Floats, sums: Floats) -> Floats:
    """The sum of |level - cdf| over start .. stop - 1."""
    stop = np.minimum(stop, len(cdf))
    start = np.minimum(start, stop)
    cross = np.clip(np.searchsorted(cdf, level), start, stop)
    below = level * (cross - start) - (sums[cross] - sums[start])
    above = sums[stop] - sums[cross] - level * (stop - cross)
    return below + above
