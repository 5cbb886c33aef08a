"""Safe k-anonymity: a secret sample, generalized by public maps, without small groups.

Of all that this room offers, this and `points` alone are differentially private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import special

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import as_double, as_whole
from discreet.core import events
from discreet.core._rational import Number, exp_minus
from discreet.core._validate import as_mapping, count, positive, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.disclosure._disclosure_risk import named, opened
from discreet.disclosure.generalization_hierarchy import Floats, HierarchyLevel, together
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, Mechanism
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import bernoulli

# Logarithms of factorials up to 2**15 are good to 10^-10; what underflows is rounded up.
_ROUNDING = 1e-9
_SMALLEST = 1e-300
_LONGEST = 1 << 15
_EXACT = 2**53
"""Whole numbers up to here are doubles."""
# Beyond it 1 - (1 - rate) e^-epsilon is one in double precision.
_LARGEST_EPSILON = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeKAnonymousTable(Mechanism):
    """A mechanism that releases a generalized sample. Made by `safe_k_anonymity`.

    Attributes:
        columns: Public map of each column.
        rate: Probability that a row is in the sample.
        k: Smallest size of a group that is released.
        epsilon: Privacy loss.
        delta: Probability parameter that follows from `rate`, `k` and `epsilon`.
        relation: Neighboring relation.

    Examples:
        >>> from discreet import disclosure
        >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
        >>> age = disclosure.hierarchy_level(ages, 1)
        >>> table = disclosure.safe_k_anonymity(columns={"age": age}, rate=0.2, k=20, epsilon=1)
        >>> float(table.delta) < 1e-3
        True
    """

    columns: Mapping[str, HierarchyLevel] = field(repr=False)
    rate: Fraction
    k: int
    epsilon: Fraction
    delta: Fraction
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        one = events.ApproxEvent(self.epsilon, self.delta)
        steps = 2 if self.relation is NeighboringRelation.REPLACE_ONE else 1
        return Guarantee(events.repeat(one, steps), self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of an estimated group size, divided by the root of the size."""
        return math.sqrt((1 - self.rate) / self.rate)

    def release(self, frame: object, *, rng: RandomSource | None = None) -> Any:
        """Draw a sample, generalize it, and release groups of at least k rows.

        Args:
            frame: Table with exactly the mapped columns: any data frame that narwhals supports.
            rng: Random source. By default the operating system's.

        Returns:
            The generalized rows as the same kind of data frame, sorted by their labels.

        Raises:
            InvalidArgument: The table has a column without a public map, or lacks a mapped column.

        Privacy:
            The release satisfies `guarantee` for one row. Sample and number of dropped rows stay
            private.

        Examples:
            >>> import polars
            >>> from discreet import disclosure
            >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
            >>> age = disclosure.hierarchy_level(ages, 1)
            >>> table = disclosure.safe_k_anonymity(columns={"age": age}, rate=0.2, k=20, epsilon=1)
            >>> table.release(polars.DataFrame({"age": [30, 35] * 300})).columns
            ['age']
        """
        table = opened(frame)
        unmapped = len(set(table.columns) - set(self.columns))
        if unmapped:
            raise InvalidArgument(
                f"frame has {unmapped} columns without a public map. An exact column beside the "
                "generalized ones voids the theorem: map or drop them."
            )
        named(table, "columns", list(self.columns))
        source = resolve_rng(rng)
        taken = bernoulli(self.rate, len(table), source)
        labels, codes = {}, []
        for name, step in self.columns.items():
            texts, places = step.labels(_settled(table[name]))
            known = sorted(set(texts))
            order = {text: i for i, text in enumerate(known)}
            rank = np.array([order[text] for text in texts], dtype=np.int64)
            labels[name] = known
            codes.append(rank[places][taken])
        groups = together(codes, [max(len(one), 1) for one in labels.values()])
        sizes = np.where(groups.sizes >= self.k, groups.sizes, 0)
        heads = np.repeat(groups.head, sizes)
        shown = {
            name: nw.new_series(
                name, [known[i] for i in code[heads]], nw.String, backend=table.implementation
            )
            for (name, known), code in zip(labels.items(), codes, strict=True)
        }
        return nw.from_dict(shown, backend=table.implementation).to_native()

    def certify(self) -> Certificate:
        """Recompute delta by summing over all possible counts of a group.

        Returns:
            A certificate with the claimed and the exact delta.

        Raises:
            NotCertified: The exact delta exceeds the claimed delta.

        Examples:
            >>> from discreet import disclosure
            >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
            >>> age = disclosure.hierarchy_level(ages, 1)
            >>> table = disclosure.safe_k_anonymity(columns={"age": age}, rate=0.2, k=20, epsilon=1)
            >>> table.certify().holds
            True
        """
        exact = _summed(self.k, float(self.rate), float(self.epsilon))
        check = CertificateCheck(
            part=f"a group of any size, one row more or less, rate {float(self.rate):g}",
            epsilon=float(self.epsilon),
            claimed=float(self.delta),
            exact=exact,
            route="binomial laws with small counts merged, term by term",
        )
        return Certificate(
            mechanism="sampled_table", guarantee=self.guarantee, checks=(check,)
        ).demand()

    def __repr__(self) -> str:
        return (
            f"sampled_table({self.guarantee!r}; {len(self.columns)} columns, rate "
            f"{float(self.rate):g}, groups of at least {self.k})"
        )


def _settled(series: nw.Series[Any]) -> nw.Series[Any]:
    """A column as NumPy would hold it beside a missing number, in pandas.

    There one row without a number makes doubles of everybody's integers, and those beyond 2**53
    get the labels of doubles. So they have these labels in columns of integers and objects as well.
    """
    native = series.to_native()
    if not series.implementation.is_pandas_like() or not isinstance(native.dtype, np.dtype):
        return series
    if native.dtype.kind in "iu":
        return nw.from_native(native.astype(np.float64), series_only=True)
    if native.dtype.kind != "O":
        return series
    held = native.copy()
    for place, value in enumerate(native.tolist()):
        whole = as_whole(value) if isinstance(value, int | np.integer) else None
        if whole is not None and abs(whole) >= _EXACT:
            held.iloc[place] = as_double(whole)
    return nw.from_native(held, series_only=True)


def safe_k_anonymity(
    *,
    columns: Mapping[str, HierarchyLevel],
    rate: Number,
    k: int,
    epsilon: Number,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> SafeKAnonymousTable:
    """Create a mechanism for k-anonymous tables that are differentially private.

    It draws a secret sample, generalizes every column by a public map, and drops groups of fewer
    than k rows.

    Args:
        columns: Public map of each column, made by `hierarchy_level`.
        rate: Probability that a row is in the sample, between 0 and 1.
        k: Smallest size of a group that is released.
        epsilon: Privacy loss, at least -ln(1 - rate) and at most 30.
        relation: Neighboring relation: one row is added or removed, or one row is replaced.

    Returns:
        A mechanism with `release(frame)`. Its delta follows from the arguments.

    Raises:
        InvalidArgument: An argument is outside its range, or epsilon is too small for the rate.

    Privacy:
        (epsilon, delta)-DP with the exact delta of `safe_k_delta`; under replace-one, twice epsilon
        and delta. Each person may have one row only, and the maps must not depend on the data.

    Examples:
        >>> from discreet import disclosure
        >>> ages = disclosure.interval_hierarchy(range(0, 101, 20))
        >>> age = disclosure.hierarchy_level(ages, 1)
        >>> table = disclosure.safe_k_anonymity(columns={"age": age}, rate=0.2, k=20, epsilon=1)
        >>> float(table.delta) < 1e-3
        True

    See Also:
        `k_anonymize`: without sampling and without a guarantee.

    References:
        Li, Qardaji and Su (2012).
        [Proof](../theory/theorems.md#disclosure._safe_k_anonymity.safe_k_anonymity).
    """
    # Theorem: (epsilon, delta)-DP under add/remove, with delta the largest over N >= k of the sum,
    #   over c >= k with c > g N, of Bin(N, rate)(c) (c - g N) / (N (1 - g)), where
    #   g = 1 - (1 - rate) e^-epsilon. Under replace-one it is the composition of two of these.
    # Proof: groups are drawn independently, and one row belongs to one group, of N rows with it and
    #   N - 1 without. Its released count c >= k has the ratio
    #   Bin(N, rate)(c) / Bin(N - 1, rate)(c) = (1 - rate) N / (N - c), which exceeds e^epsilon iff
    #   c > g N; "left out" is less likely with the row. In the other direction no ratio exceeds
    #   1 / (1 - rate) <= e^epsilon, since P(Bin(N) < k) >= (1 - rate) P(Bin(N - 1) < k).
    # Source: Li, Qardaji, Su 2012, whose bound is larger (`published_delta`). B50.
    # Needs: epsilon >= -ln(1 - rate); one row for each person; the sample, the number of rows left
    #   out and the number of rows stay secret; maps chosen without looking at the data.
    steps = as_mapping("columns", columns).values()
    if not columns or not all(isinstance(step, HierarchyLevel) for step in steps):
        raise InvalidArgument(
            "columns must map names to hierarchy_level(interval_hierarchy(...), level=...)."
        )
    if relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")
    share, least, eps = _checked(k, rate, epsilon)
    return SafeKAnonymousTable(
        columns=dict(columns),
        rate=share,
        k=least,
        epsilon=eps,
        delta=Fraction(safe_k_delta(k=least, rate=share, epsilon=eps)),
        relation=relation,
    )


def safe_k_delta(*, k: int, rate: Number, epsilon: Number) -> float:
    """Compute the exact delta of safe k-anonymity, rounded up.

    Args:
        k: Smallest size of a group that is released.
        rate: Probability that a row is in the sample, between 0 and 1.
        epsilon: Privacy loss, at least -ln(1 - rate) and at most 30.

    Returns:
        The delta under add/remove neighbors.

    Raises:
        InvalidArgument: An argument is outside its range, or epsilon is too small for the rate.
        OutOfDomain: `k` is too large for an exact computation.

    Examples:
        >>> from discreet import disclosure
        >>> f"{disclosure.safe_k_delta(k=20, rate=0.2, epsilon=1):.1e}"
        '2.8e-10'
    """
    share, least, eps = _checked(k, rate, epsilon)
    beta, g = float(share), _border(share, eps)
    start = max(least, math.ceil(least / g))
    worst, size = 0.0, start
    while size == start or math.exp(-size * _divergence(g, beta)) > worst:
        worst = max(worst, _at_size(size, least, beta, g))
        size += 1
    size = start - 1
    while size >= least and (
        least / size <= beta or math.exp(-size * _divergence(least / size, beta)) > worst
    ):
        worst = max(worst, _at_size(size, least, beta, g))
        size -= 1
    return max(worst * (1 + _ROUNDING), _SMALLEST)


def _at_size(size: int, k: int, beta: float, g: float) -> float:
    """The sum of the theorem for one size of a group."""
    if size > _LONGEST:
        raise OutOfDomain("k is too large for an exact delta: lower it.")
    # A count at the border may be taken or not: its term is zero up to rounding. From there on the
    # law falls by at least this factor a step; gains are at most 1, so the rest is geometric.
    factor = (1 - g) / g * beta / (1 - beta)
    first = max(k, math.floor(g * size))
    c = np.arange(first, min(size, first + _reach(factor)) + 1)
    mass = np.exp(_log_binomial(c, size, beta))
    gain = np.maximum(c - g * size, 0) / (size * (1 - g))
    rest = mass[-1] * factor / (1 - factor) if c[-1] < size else 0.0
    return float(mass @ gain + rest)


def _reach(factor: float) -> int:
    """After so many steps a geometric sequence is below 10^-20 of its beginning."""
    return math.ceil(46 / -math.log(factor))


def safe_k_delta_published(*, k: int, rate: Number, epsilon: Number) -> float:
    """Compute the published bound of delta, for comparison with `safe_k_delta`.

    Args:
        k: Smallest size of a group that is released.
        rate: Probability that a row is in the sample, between 0 and 1.
        epsilon: Privacy loss, at least -ln(1 - rate) and at most 30.

    Returns:
        The bound of Li, Qardaji and Su. It is larger than the exact delta.

    Raises:
        InvalidArgument: An argument is outside its range, or epsilon is too small for the rate.
        OutOfDomain: `k` is too large.

    Examples:
        >>> from discreet import disclosure
        >>> exact = disclosure.safe_k_delta(k=20, rate=0.2, epsilon=1)
        >>> exact <= disclosure.safe_k_delta_published(k=20, rate=0.2, epsilon=1)
        True

    References:
        Li, Qardaji and Su (2012).
    """
    share, least, eps = _checked(k, rate, epsilon)
    beta, g = float(share), _border(share, eps)
    worst, decay = 0.0, _divergence(g, beta)
    n = max(1, math.ceil(least / g - 1))
    while worst == 0.0 or math.exp(-n * decay) > worst:
        if n > _LONGEST:
            raise OutOfDomain("k is too large: lower it.")
        worst = max(worst, float(special.bdtrc(math.floor(g * n), n, beta)))
        n += 1
    return worst


def _checked(k: int, rate: Number, epsilon: Number) -> tuple[Fraction, int, Fraction]:
    share = probability("rate", rate, zero=False, one=False)
    eps = positive("epsilon", epsilon)
    if eps > _LARGEST_EPSILON:
        raise InvalidArgument(f"epsilon must be at most {_LARGEST_EPSILON}, got {float(eps):g}.")
    # e^-epsilon <= 1 - rate, decided exactly.
    precision = 64
    low, high = exp_minus(eps, precision)
    while low <= (1 - share) * 2**precision < high:
        precision *= 2
        low, high = exp_minus(eps, precision)
    if high > (1 - share) * 2**precision:
        raise InvalidArgument(
            "epsilon must be at least -ln(1 - rate) = "
            f"{short(-math.log1p(-float(share)), digits=6)}, "
            f"got {float(eps):g}: raise it or lower the rate."
        )
    return share, count("k", k), eps


def _border(rate: Fraction, epsilon: Fraction) -> float:
    """The share of a group above which a count gives it away: 1 - (1 - rate) e^-epsilon."""
    return -math.expm1(math.log1p(-float(rate)) - float(epsilon))


def _divergence(g: float, beta: float) -> float:
    """KL of two coins, rounded down."""
    return float(special.rel_entr(g, beta) + special.rel_entr(1 - g, 1 - beta)) * (1 - 1e-9)


def _log_binomial(c: Any, n: int, p: float) -> Floats:
    log: Floats = (
        special.gammaln(n + 1)
        - special.gammaln(c + 1)
        - special.gammaln(n - c + 1)
        + special.xlogy(c, p)
        + special.xlog1py(n - c, -p)
    )
    return log


def _summed(k: int, beta: float, epsilon: float) -> float:
    """The divergence of a group of N rows from one of N - 1, both ways, by its definition."""
    grown = math.exp(epsilon)
    g = 1 - (1 - beta) / grown
    worst, size, reach = 0.0, k, _reach((1 - g) / g * beta / (1 - beta))
    # Beyond k/g only sizes matter that Chernoff's bound does not rule out.
    while size <= k / g + 1 or math.exp(-size * _divergence(g, beta)) > worst:
        # Far above g N both laws have nothing left.
        c = np.arange(k, min(size, math.ceil(k + g * size) + reach) + 1)
        p = np.exp(_log_binomial(c, size, beta))
        q = np.exp(_log_binomial(np.minimum(c, size - 1), size - 1, beta)) * (c < size)
        # Counts below k look alike; with size k - 1 there are no others.
        hidden = special.bdtr(k - 1, size, beta)
        hidden_less = special.bdtr(k - 1, size - 1, beta) if size > k else 1.0
        p, q = np.append(p, hidden), np.append(q, hidden_less)
        one, other = np.maximum(p - grown * q, 0).sum(), np.maximum(q - grown * p, 0).sum()
        worst = max(worst, float(one), float(other))
        size += 1
    return worst
