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

from discreet.boundary.values import doubles
from discreet.core._validate import as_tuple, count, finite
from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.number_format import number, percent, short
from discreet.core.tabular import Record
from discreet.disclosure.generalization_hierarchy import (
    EquivalenceClasses,
    Floats,
    Ints,
    distinct,
    numbers,
    together,
)
from discreet.query.result import Result, records

# ── Utility
# ────────────────────────────────────────────────────────────────────────────────────────


_TOGETHER = "quasi-identifiers"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UtilityLoss(Result):
    """Errors of released values, record by record and as a sample.

    Attributes:
        bias: Mean of original minus released values.
        bias_error: Standard error of the bias.
        mse: Mean squared error.
        wasserstein: Wasserstein distance of the two samples.
        ks: Kolmogorov-Smirnov distance of the two samples.
        changed: Share of records in another bin than before, or None without edges.
        before: Original counts of the bins, or None without edges.
        after: Released counts of the bins, or None without edges.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.utility([1, 2, 3, 4], released=[2, 2, 3, 3]).rmse < 1
        True
    """

    bias: float
    bias_error: float
    mse: float
    wasserstein: float
    ks: float
    changed: float | None
    before: Ints | None = field(default=None, repr=False)
    after: Ints | None = field(default=None, repr=False)

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - bounds are not meant
        """List each measure of the error.

        Args:
            confidence: Without effect.

        Returns:
            One record for each: measure, value, std (of the bias), low and high, the last two
            None.

        Examples:
            >>> from discreet import disclosure
            >>> loss = disclosure.utility([1, 2, 3, 4], released=[2, 2, 3, 3])
            >>> loss["rmse"] == loss.rmse
            True
        """
        found = {
            "bias": self.bias,
            "rmse": self.rmse,
            "wasserstein": self.wasserstein,
            "ks": self.ks,
            "changed": self.changed,
        }
        std = (self.bias_error, None, None, None, None)
        return records(("measure",), ((name,) for name in found), value=found.values(), std=std)

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.mse)

    def __str__(self) -> str:
        bins = (
            "" if self.changed is None else f", {percent(self.changed)} of records change their bin"
        )
        return (
            f"bias {number(self.bias, error=self.bias_error)} (standard error "
            f"{short(self.bias_error, digits=2)}), rmse {short(self.rmse)}; "
            f"as samples: Wasserstein {short(self.wasserstein)}, Kolmogorov-Smirnov "
            f"{short(self.ks)}{bins}"
        )

    __repr__ = __str__


def utility(
    original: ArrayLike, *, released: ArrayLike, edges: Iterable[float] | None = None
) -> UtilityLoss:
    """Compare released values with the original values, record by record.

    Args:
        original: Original values.
        released: Released values, in the same order.
        edges: Edges of bins in which the values are compared, in increasing order.

    Returns:
        Bias, mean squared error and distances of the two samples.

    Raises:
        OutOfDomain: The lists have different lengths or contain values that are not finite numbers.
        InvalidArgument: The edges do not increase.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.utility([1, 2, 3, 4], released=[2, 2, 3, 3]).mse
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
    """Count values in public bins.

    A bin includes its lower edge, and the last bin includes both edges. Values outside the edges
    are not counted.

    Args:
        values: Values to count.
        edges: Edges of the bins, in increasing order.

    Returns:
        One exact count per bin.

    Raises:
        OutOfDomain: `values` is not a list of finite numbers.
        InvalidArgument: The edges do not increase.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.histogram([1, 5, 5, 10], edges=[0, 5, 10]).tolist()
        [1, 3]
    """
    bins = checked_edges(edges)
    place = places(sample("values", values), bins)
    inside = (place >= 0) & (place < len(bins) - 1)
    return np.bincount(place[inside], minlength=len(bins) - 1)


def wasserstein(values: ArrayLike, *, other: ArrayLike, order: int = 1) -> float:
    """Compute the Wasserstein distance of two samples.

    It is (mean of |difference of quantiles|^order)^(1/order), computed from the samples themselves.

    Args:
        values: First sample.
        other: Second sample. It may have another size.
        order: Order of the distance, a positive integer.

    Returns:
        The distance, in the unit of the values.

    Raises:
        OutOfDomain: A sample is empty or contains values that are not finite numbers.
        InvalidArgument: `order` is not a positive integer.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.wasserstein([0, 1, 2], other=[5, 6, 7])
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
    """Compute the Kolmogorov-Smirnov distance of two samples.

    It is the largest difference of the two distribution functions.

    Args:
        values: First sample.
        other: Second sample. It may have another size.

    Returns:
        The distance, between 0 and 1.

    Raises:
        OutOfDomain: A sample is empty or contains values that are not finite numbers.

    Examples:
        >>> from discreet import disclosure
        >>> disclosure.ks_distance([0, 1, 2, 3], other=[2, 3, 4, 5])
        0.5
    """
    x, y = np.sort(sample("values", values)), np.sort(sample("other", other))
    at = np.concatenate([x, y])
    below = np.searchsorted(x, at, side="right") / len(x)
    return float(np.abs(below - np.searchsorted(y, at, side="right") / len(y)).max())


def sample(name: str, values: ArrayLike) -> Floats:
    """A list of finite numbers, at least one; its content appears in no error and no warning."""
    flat = isinstance(values, Iterable) and getattr(values, "ndim", 1) == 1
    array = doubles(values) if flat else np.empty(0)
    if array.size == 0 or not np.isfinite(array).all():
        raise OutOfDomain(f"{name} must be a list of finite numbers, at least one.")
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
    """What an equivalence class reveals about a sensitive column, at worst.

    Attributes:
        distinct: Smallest number of different values in a class (l-diversity).
        entropy: Smallest exponential of the entropy of a class: an effective number of values.
        closeness: Largest earth mover's distance between a class and the whole table (t-closeness).
            Texts are all equally far apart, and numbers have the distance of their ranks.

    Examples:
        >>> import polars
        >>> from discreet import disclosure
        >>> frame = polars.DataFrame({"zip": ["10", "10", "20"], "ill": ["yes", "no", "no"]})
        >>> risk = disclosure.disclosure_risk(frame, quasi_identifiers=["zip"], sensitive=["ill"])
        >>> risk.sensitive["ill"].distinct
        1
    """

    distinct: int
    entropy: float
    closeness: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DisclosureRisk(Result):
    """Risk that a row is found by its quasi-identifiers, and what its class reveals.

    Attributes:
        row_count: Number of rows.
        classes: Number of equivalence classes: groups of rows that agree in all quasi-identifiers.
        k: Size of the smallest class, 0 for an empty table.
        unique: Number of rows that are alone in their class.
        sizes: Sizes of all classes, in increasing order.
        sensitive: Diversity of each sensitive column.

    Examples:
        >>> import polars
        >>> from discreet import disclosure
        >>> frame = polars.DataFrame({"zip": ["10", "10", "20"]})
        >>> risk = disclosure.disclosure_risk(frame, quasi_identifiers=["zip"])
        >>> risk.k, risk.unique, risk.highest
        (1, 1, 1.0)
    """

    row_count: int
    classes: int
    k: int
    unique: int
    sizes: Ints = field(repr=False)
    sensitive: Mapping[str, Diversity] = field(default_factory=lambda: _NOTHING)

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - it is exact
        """List each measure of the risk.

        Args:
            confidence: Without effect: the measures are exact for this table.

        Returns:
            One record for each: column (the sensitive one, or the quasi-identifiers), measure,
            value, std, low and high, the last three None.

        Examples:
            >>> risk["quasi-identifiers", "k"]
            1
        """
        found: dict[tuple[str, str], float] = {
            (_TOGETHER, name): getattr(self, name)
            for name in ("row_count", "classes", "k", "unique", "highest", "average")
        }
        for column, one in self.sensitive.items():
            for name in ("distinct", "entropy", "closeness"):
                found[column, name] = getattr(one, name)
        return records(("column", "measure"), found, value=found.values())

    @property
    def highest(self) -> float:
        """Probability of finding the right row in the smallest class."""
        return 1 / self.k if self.k else 0.0

    @property
    def average(self) -> float:
        """Probability of finding the right row in its class, averaged over rows."""
        return self.classes / self.row_count if self.row_count else 0.0

    def __str__(self) -> str:
        lines = [
            (
                f"{self.row_count:,} rows in {self.classes:,} classes, k = {self.k}, "
                f"{self.unique:,} unique"
            ),
            "chance to find a row, knowing its quasi-identifiers and nothing else:",
            (
                f"  at most {short(self.highest, digits=3)}, "
                f"on average {short(self.average, digits=3)}"
            ),
        ]
        lines += [
            f"{name}: fewest values in a class {one.distinct} (effectively "
            f"{short(one.entropy, digits=3)}), "
            f"largest distance from the whole table {short(one.closeness, digits=3)}"
            for name, one in self.sensitive.items()
        ]
        return "\n".join(lines)

    __repr__ = __str__


def disclosure_risk(
    frame: object, *, quasi_identifiers: Sequence[str], sensitive: Sequence[str] = ()
) -> DisclosureRisk:
    """Measure k-anonymity, l-diversity and t-closeness of a table.

    Args:
        frame: Table to measure: any data frame that narwhals supports, such as pandas, Polars or
            PyArrow.
        quasi_identifiers: Columns that an attacker may know together.
        sensitive: Columns that must not become known.

    Returns:
        The size of the smallest class, the number of unique rows, and the diversity of sensitive
        columns.

    Raises:
        InvalidArgument: `frame` is not a data frame, or a column does not exist.
        Unsupported: A column has a type that cannot be compared, such as lists.

    Privacy:
        This is a measurement, not a guarantee. It says nothing about attackers who know more than
        the quasi-identifiers, and the result depends on private data.

    Examples:
        >>> import polars
        >>> from discreet import disclosure
        >>> frame = polars.DataFrame({"zip": ["10", "10", "20"], "ill": ["yes", "no", "no"]})
        >>> risk = disclosure.disclosure_risk(frame, quasi_identifiers=["zip"], sensitive=["ill"])
        >>> risk.k, risk.sensitive["ill"].distinct
        (1, 1)

    See Also:
        `k_anonymize`, [disclosure control](../how-to/disclosure.md).

    References:
        Sweeney (2002). Machanavajjhala et al. (2007). Li, Li and Venkatasubramanian (2007).
    """
    # Source: Sweeney 2002; Machanavajjhala et al. 2007; Li, Li, Venkatasubramanian 2007.
    table = opened(frame)
    known, secret = named(table, "quasi", quasi_identifiers), named(table, "sensitive", sensitive)
    coded = [ranked(table[column]) for column in known]
    classes = together([codes for codes, _ in coded], [n for _, n in coded], items=len(table))
    return measured(classes, {column: table[column] for column in secret})


def measured(classes: EquivalenceClasses, sensitive: Mapping[str, Series]) -> DisclosureRisk:
    """The risk of rows in these classes."""
    sizes = classes.sizes
    return DisclosureRisk(
        row_count=int(sizes.sum()),
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
