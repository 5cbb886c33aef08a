"""Releases of ranges from reports of the local model; they hold no reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.local.ranges._variance import HaarVariance, HierarchicalVariance, Spread
from discreet.noise.distribution import Floats, Ints
from discreet.query.result import row_lines
from discreet.ranges import _range_answers as polish
from discreet.ranges import _range_answers as quantile
from discreet.ranges import domain
from discreet.ranges._measurements import packed, unpacked
from discreet.ranges._range_answers import DEFAULT_CONFIDENCE, RangeAnswers
from discreet.ranges.domain import Domain
from discreet.ranges.release import NonnegativeRelease
from discreet.ranges.strategies.haar import Haar
from discreet.ranges.strategies.hierarchical_histogram import HierarchicalHistogram

VERSION = 1
_UNSEEN = 1e300
"""The variance of a level without reports: it adds nothing, and what hangs on it is unknown."""
Structure: TypeAlias = Literal["blocks", "haar"]
Variances: TypeAlias = Callable[[Any, Any], Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelEstimate:
    """What one level's reports say: an unbiased share for each of its blocks.

    Of the Haar wavelet: for each block, the share of its left half less that of its right one.
    """

    block: int
    spread: Spread
    reports: int
    values: Floats

    def __post_init__(self) -> None:
        self.values.setflags(write=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalRanges(RangeAnswers):
    """Hold estimated numbers of clients in all ranges of a domain.

    Answers are unbiased and consistent. They add up to the number of reports, which is public in
    the local model. Standard deviations come from the exact variance at the estimated shares.
    Intervals, bands and quantiles assume normal errors, which is nearly right from some hundred
    reports on.

    Args:
        domain: Declared domain of the values.
        structure: Structure of the reports, such as a hierarchical histogram.
        levels: Estimates of each level.
        reports: Number of reports.
        guarantee: Privacy guarantee of one report.

    Examples:
        >>> from discreet import local, ranges
        >>> histogram = local.flat_histogram(domain=ranges.integers(0, 3), epsilon=1)
        >>> aggregator = local.Aggregator(histogram).add(histogram.randomize([0, 1, 1, 3] * 50))
        >>> estimate = aggregator.estimate()
        >>> round(estimate.answer(0, 3))
        200
    """

    domain: Domain
    structure: Structure
    levels: tuple[LevelEstimate, ...]
    reports: int
    guarantee: Guarantee

    @cached_property
    def cells(self) -> Floats:
        """The least-squares estimate of each cell, given the number of reports."""
        values = [self.reports * level.values for level in self.levels]
        found: Floats = self._strategy.estimate(values, self._noise)
        if self._padding:
            places = np.arange(self.domain.size)
            found = (
                found[: self.domain.size]
                - self._pulls(places, places) * found[self.domain.size :].sum()
            )
        found.setflags(write=False)
        return found

    @cached_property
    def shares(self) -> Floats:
        """Estimated shares that are not negative and sum to one: where errors are read."""
        if self.reports == 0:
            return np.full(self.domain.size, 1 / self.domain.size)
        return np.diff(quantile.monotone(self._prefixes)) / self.reports

    @property
    def law(self) -> HierarchicalVariance | HaarVariance:
        """The law of the errors, given how many reports each level had."""
        rates = tuple(level.reports / max(self.reports, 1) for level in self.levels)
        if self.structure == "haar":
            return HaarVariance(size=self.domain.size, rates=rates, square=self.levels[0].spread[0])
        return HierarchicalVariance(
            size=self.domain.size,
            sizes=tuple(level.block for level in self.levels),
            spreads=tuple(level.spread for level in self.levels),
            rates=rates,
        )

    def share(self, lower: Any = None, upper: Any = None) -> float:
        """Return the share of the clients between two labels.

        Args:
            lower: Label of the first cell of the range. If None, the range is open below.
            upper: Label of the last cell, included. If None, the range is open above.

        Returns:
            The estimated share. It can be negative.

        Examples:
            >>> round(estimate.share(0, 3), 6)
            1.0
        """
        return self.answer(lower, upper) / max(self.reports, 1)

    def nonnegative(self) -> NonnegativeRelease:
        """Estimate cells that are not negative and add up to the number of reports.

        This is post-processing: it costs nothing. The intervals are lost.

        Returns:
            Cells that are not negative, for all ranges.

        Examples:
            >>> bool((estimate.nonnegative().cells >= 0).all())
            True
        """
        total = float(self.reports)
        strategy = replace(self._strategy, size=self.domain.size)
        cells = polish.non_negative(strategy, self._noise, self.cells, total=total)
        return NonnegativeRelease(
            domain=self.domain, cells=cells, pinned=total, guarantee=self.guarantee
        )

    def to_json(self) -> str:
        """Return the whole estimate as JSON text, for `from_json`.

        Returns:
            Text with the structure and the estimates.

        Examples:
            >>> local.LocalRanges.from_json(estimate.to_json()).reports
            200
        """
        levels = [
            {
                "block": level.block,
                "spread": list(level.spread),
                "reports": level.reports,
                "values": packed(level.values.view(np.int64)),
            }
            for level in self.levels
        ]
        content = {
            "discreet_local_ranges": VERSION,
            "domain": self.domain.content(),
            "structure": self.structure,
            "levels": levels,
            "reports": self.reports,
            "guarantee": json.loads(self.guarantee.to_json()),
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> LocalRanges:
        """Read an estimate back from the text of `to_json`.

        Args:
            text: Text of `to_json`.

        Returns:
            The estimate.

        Raises:
            InvalidArgument: The text is no such estimate.

        Examples:
            >>> local.LocalRanges.from_json(estimate.to_json()).domain
            IntegerDomain(lower=0, upper=3)
        """
        with canonical.reading("a release of local ranges"):
            content = json.loads(text)
            if content["discreet_local_ranges"] != VERSION:
                raise InvalidArgument("text is a release of local ranges of another version.")
            made = cls(
                domain=domain.read(content["domain"]),
                structure=content["structure"],
                levels=tuple(_read_level(level) for level in content["levels"]),
                reports=int(content["reports"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
            )
            fits = made._fits()
        if not fits:
            raise InvalidArgument("text holds levels that do not fit its domain.")
        return made

    def __str__(self) -> str:
        blocks = ", ".join(str(level.block) for level in self.levels)
        kind = "Haar wavelet" if self.structure == "haar" else f"blocks of {blocks}"
        told = (
            f"ranges of {self.domain} from {self.reports:,} local reports "
            f"({kind}; {describe_epsilon(self.guarantee)})"
        )
        if self.reports == 0:
            return told
        # Not the total: it is the number of reports, which is public and exact.
        middle = {"quantile": "median", **self.quantile(1 / 2).rows()[0]}
        return "\n".join([told, *row_lines([middle], confidence=DEFAULT_CONFIDENCE)])

    __repr__ = __str__

    def _fits(self) -> bool:
        if self.structure not in ("blocks", "haar") or self.reports < 0:
            return False
        reports = [level.reports for level in self.levels]
        if min(reports, default=-1) < 0 or sum(reports) != self.reports:
            return False
        numbers = [part for level in self.levels for part in (level.values, level.spread)]
        if not all(np.isfinite(part).all() for part in numbers):
            return False
        shapes = [group.shape for group in self._strategy.measure(np.zeros(self.domain.size, int))]
        return shapes == [level.values.shape for level in self.levels]

    @cached_property
    def _strategy(self) -> HierarchicalHistogram | Haar:
        many = len(self.levels)
        equal = (Fraction(1, many),) * many
        size = self.law.padded
        if self.structure == "haar":
            return Haar(size=size, shares=equal, total=self.reports)
        sizes = tuple(level.block for level in self.levels)
        return HierarchicalHistogram(size=size, sizes=sizes, shares=equal, total=self.reports)

    @cached_property
    def _noise(self) -> Floats:
        """Variances of the levels' counts, for equally frequent cells: the weights of levels."""
        law = self.law
        one = (
            law.noise
            if isinstance(law, HierarchicalVariance)
            else np.full(len(self.levels), law.square)
        )
        reports = np.array([level.reports for level in self.levels], dtype=np.float64)
        seen = self.reports**2 * one / np.maximum(reports, 1.0)
        return np.where(reports > 0, seen, _UNSEEN)

    def _variance(self, a: Ints, b: Ints) -> Floats:
        found = self._at(a, b)
        if self._padding and np.isfinite(found).all():
            pull = self._pulls(a, b)
            found = found - 2 * pull * self._with_padding(a, b, self._at)
            found = found + np.square(pull) * self._at(*self._padded_range)
        # The whole domain is known, even without reports.
        whole = (a == 0) & (b == self.domain.size - 1)
        return np.where(whole, 0.0, np.maximum(max(self.reports, 1) * found, 0.0))

    def _variances(self, p: Ints, q: Ints) -> Floats:
        """Of differences of prefix sums; prefixes and their rests, which curves ask, are kept."""
        low, high = np.minimum(p, q), np.maximum(p, q)
        size = self.domain.size
        if not ((low == 0) | (high == size)).all():
            return super()._variances(p, q)
        # The total is known: what is left of it errs as the prefix does.
        return self._of_prefixes[np.where(low == 0, high, low)]

    @cached_property
    def _of_prefixes(self) -> Floats:
        ends = np.arange(self.domain.size)
        return np.concatenate([[0.0], self._variance(np.zeros_like(ends), ends)])

    def _at(self, a: Ints, b: Ints) -> Floats:
        return self.law.at(a, b, self.shares, reports=self.reports)

    @property
    def _padding(self) -> int:
        """Cells that only fill up the last block: no client is there."""
        return self.law.padded - self.domain.size

    @property
    def _padded_range(self) -> tuple[Ints, Ints]:
        return np.array(self.domain.size), np.array(self.law.padded - 1)

    def _with_padding(self, a: Ints, b: Ints, variance: Variances) -> Floats:
        """The covariance of ranges with what fills up the last block, from variances alone."""
        size, last = self.domain.size, self.law.padded - 1
        # Those of a .. end, b+1 .. size-1 (none if b is the last cell), b+1 .. end, a .. size-1.
        between = np.where(b + 1 < size, variance(np.minimum(b + 1, size - 1), size - 1), 0.0)
        around = variance(a, last) + between
        return (around - variance(b + 1, last) - variance(a, size - 1)) / 2

    def _pulls(self, a: Ints, b: Ints) -> Floats:
        """What ranges gain from each client that was estimated where nobody can be.

        Least squares again, for equally frequent cells: covariance over variance.
        """
        law = self.law
        alone = float(law.uniform(*self._padded_range))
        if not 0 < alone < np.inf:
            return -(b - a + 1) / self.domain.size
        return self._with_padding(a, b, law.uniform) / alone

    def _quick(self, variance: Floats, tail: float) -> Floats:
        return -float(ndtri(tail / 2)) * np.sqrt(variance)


def _read_level(content: dict[str, Any]) -> LevelEstimate:
    alpha, gamma = map(float, content["spread"])
    return LevelEstimate(
        block=int(content["block"]),
        spread=(alpha, gamma),
        reports=int(content["reports"]),
        values=unpacked(content["values"]).view(np.float64),
    )
