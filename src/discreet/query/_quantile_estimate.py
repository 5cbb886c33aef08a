"""From noisy ranks to quantiles, with intervals where a tree was counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy  # its parts are slow to import: they are when they are needed
from numpy.typing import NDArray

from discreet.core._rational import round_down, round_up
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.noise.distribution import Distribution
from discreet.query._estimate import Noise, PredictedError
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._quantile_tree import (
    Floats,
    PrefixError,
    QuantileTree,
    leaves_of,
    parameter,
    reach,
    spread,
)
from discreet.query.builders import Method

Places: TypeAlias = NDArray[np.intp]
_ROUNDING = 2.0**-36
"""Room for the rounding of sums over a tree, relative to the number of rows."""


def isotonic(curves: Floats, weights: Floats) -> Floats:
    """The nearest monotone curves in weighted least squares, one for each row."""
    found = [
        scipy.optimize.isotonic_regression(one, weights=weights).x for one in np.asarray(curves)
    ]
    return np.array(found).reshape(np.shape(curves))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimator:
    """How chosen bins, or the levels of a noisy tree, are read: levels and public bins.

    Bin k holds the codes from ``lower + k * width`` on; codes are multiples of ``2**exponent``.
    """

    q: tuple[Fraction, ...]
    method: Method
    lower: int
    upper: int
    exponent: int
    width: int
    branching: int
    isotonic: bool = False
    """Whether all levels are read from one isotonic curve: not yet in releases of version 0.1."""

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return (self.upper - self.lower) // self.width + 1

    @property
    def shape(self) -> QuantileTree:
        """The tree over the bins."""
        return QuantileTree(leaves=self.bins, branching=self.branching)

    @property
    def step(self) -> float:
        """The width of a bin: an answer is the middle of one."""
        return round_up(self.width * Fraction(2) ** self.exponent)

    def check(self, parts: Sequence[NoisyIntegers], keys: int) -> None:
        """Refuse parts that are not what this reading needs."""
        groups, rest = divmod(keys, len(self.q))
        if self.method == "tree":
            sizes = [self.shape.nodes(level) for level in range(self.shape.height)]
        else:
            sizes = [1] * len(self.q)
        whole = [len(part.values) for part in parts] == [groups * size for size in sizes]
        inside = self.method == "tree" or all(
            0 <= value < self.bins for part in parts for value in part.values
        )
        if rest or not whole or not inside:
            raise InvalidArgument("An answer needs ranks for each key.")

    def values(self, parts: Sequence[NoisyIntegers]) -> list[float]:
        """The middle of the chosen bin, for each group and level."""
        places = self._places(parts)
        return [self._number(2 * k + 1, outward=0) for k in places.ravel().tolist()]

    def std(self, parts: Sequence[NoisyIntegers]) -> list[None]:
        """None for each: the error in value depends on the data."""
        return [None] * len(self.values(parts))

    def interval(
        self, parts: Sequence[NoisyIntegers], confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds of each quantile of the rows (with ``sampling``: of where they come from)."""
        # Theorem: each holds the smallest value that a share q of the group's rows does not exceed,
        #   with probability at least `confidence`, if the group has a row.
        # Proof: let `D_k = C_k - q n`. The quantile lies in the first bin K with `D_K >= 0`; K
        #   does not depend on the noise. The estimate of `D_K` is below `-w_K` with probability
        #   at most half of what is allowed to fail, that of `D_{K-1}` at least `w_{K-1}` with
        #   the same (`reach`). Else K is not before the first k whose estimate is at least -w_k,
        #   and not after the last whose predecessor's is below w. For n rows drawn independently
        #   the share below a quantile differs from q by more than e upwards or downwards with
        #   probability at most exp(-2 n e**2) each (Hoeffding); so q - e and q + e are read
        #   instead, with e from a noisy lower bound of n. A larger e moves both ends outward.
        # Source: docs/theory/queries.md.
        # Needs: a tree; 0 < level < 1. With `sampling` rows must be independent.
        if self.method != "tree":
            raise Unsupported(
                "A quantile that was chosen by the exponential mechanism has no interval in value: "
                "ask with method='tree'."
            )
        prefixes, noise, laws = self._prefixes(parts)
        fail = (1 - confidence) / (3 if sampling else 1)
        margin = np.zeros((len(prefixes), 1))
        if sampling:
            margin = self._margin(prefixes[:, -1:], noise, laws, fail)
        found = self._places(parts)
        low, high = np.empty_like(found), np.empty_like(found)
        rounding = _ROUNDING * np.abs(prefixes).max()
        for i, q in enumerate(map(float, self.q)):
            down, up = np.maximum(q - margin, 0), np.minimum(q + margin, 1)
            width = self._width(laws, noise, (float(down.min()), q), fail / 2) + rounding
            could = prefixes - down * prefixes[:, -1:] >= -width
            first = np.where(could.any(axis=1), np.argmax(could, axis=1), self.bins - 1)
            width = self._width(laws, noise, (q, float(up.max())), fail / 2) + rounding
            below = prefixes - up * prefixes[:, -1:] < width
            last = self.bins - np.argmax(below[:, ::-1], axis=1)
            last = np.where(below.any(axis=1), np.minimum(last, self.bins - 1), 0)
            unknown = sampling & (prefixes[:, -1] <= 0)
            low[:, i] = np.where(unknown, 0, np.minimum(first, found[:, i]))
            high[:, i] = np.where(unknown, self.bins - 1, np.maximum(last, found[:, i]))
        # Outward, so that none covers less: the ends of larger levels are not smaller.
        low = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
        high = np.maximum.accumulate(high, axis=1)
        return (
            [self._number(2 * k, outward=-1) for k in low.ravel().tolist()],
            [self._number(2 * k + 2, outward=1) for k in high.ravel().tolist()],
        )

    def _margin(
        self, totals: Floats, noise: Sequence[float], laws: Sequence[Distribution], fail: float
    ) -> Floats:
        """How far the share of rows below a quantile may be from its level, for each group."""
        whole = spread(self.shape, noise, target=0.0)
        last = PrefixError(variance=whole.variance[-1:], largest=whole.largest[-1:])
        rows = np.maximum(totals - reach(laws, last, fail), 1.0)
        return np.asarray(np.sqrt(math.log(2 / fail) / (2 * rows)))

    def forecast(
        self, noises: Sequence[Noise], rows: int | None, confidence: float
    ) -> PredictedError:
        """The error in rank, as a share of the rows; the one in value depends on the data."""
        std, width = self.rank_error(noises, confidence)
        if rows is None:
            return PredictedError(step=self.step)
        return PredictedError(
            std=None if std is None else min(std / rows, 1.0),
            width=min(width / rows, 1.0),
            rows=rows,
            step=self.step,
        )

    def with_shifts(self, shifts: tuple[int, ...]) -> NoReturn:  # noqa: ARG002 - of the protocol
        """Refused: ranks do not add up over weights."""
        raise Unsupported(
            "Quantiles have no weights by level: use PersonalizedTable.by_level(), or give "
            "max_privacy_level the strictest level."
        )

    def content(self) -> dict[str, Any]:
        """As JSON."""
        held = {("levels" if name == "q" else name): x for name, x in asdict(self).items()}
        if not self.isotonic:
            del held["isotonic"]
        return {**held, "kind": "quantiles", "levels": list(map(str, self.q))}

    def rank_error(self, laws: Sequence[Noise], confidence: float) -> tuple[float | None, float]:
        """Deviation and bound, at `confidence`, of the answer's rank from q n, in rows."""
        # Proof: for a tree, all prefixes are within their widths at once with probability
        #   `confidence` (union bound). The monotone estimate is then as close, since the truth is
        #   monotone and isotonic regression is a maximum of minima of averages; the first bin
        #   where it reaches `q n` has `C_k >= q n - w` and `C_{k-1} < q n + w`. For a choice, the
        #   loss of score passes g with probability at most `(bins - 1) exp(-rate g)`; with several
        #   choices all are within it, and so is their running maximum.
        if self.method == "exponential":
            rates = [float(rate) for rate in laws if not isinstance(rate, Distribution)]
            bound = math.log(max(1, self.bins - 1) * len(rates) / (1 - confidence))
            worst = max(
                max(0.0, bound) / rate / q.denominator
                for rate, q in zip(rates, self.q, strict=True)
            )
            return None, worst
        known = [law for law in laws if isinstance(law, Distribution)]
        noise = [parameter(law) for law in known]
        tail = (1 - confidence) / (2 * self.bins)
        errors = [spread(self.shape, noise, target=float(q)) for q in self.q]
        most = PrefixError(
            variance=np.max([one.variance for one in errors], keepdims=True).ravel(),
            largest=np.max([one.largest for one in errors], keepdims=True).ravel(),
        )
        return math.sqrt(float(most.variance[0])), float(reach(known, most, tail)[0])

    def _width(
        self,
        laws: Sequence[Distribution],
        noise: Sequence[float],
        ends: tuple[float, float],
        tail: float,
    ) -> Floats:
        """Widths that hold for every target between two: variance and coefficients are convex."""
        both = [spread(self.shape, noise, target=end) for end in sorted(set(ends))]
        worst = PrefixError(
            variance=np.max([one.variance for one in both], axis=0),
            largest=np.max([one.largest for one in both], axis=0),
        )
        return reach(laws, worst, tail)

    def _prefixes(
        self, parts: Sequence[NoisyIntegers]
    ) -> tuple[Floats, list[float], list[Distribution]]:
        """Consistent estimates of the prefix counts, one row for each group."""
        laws = [part.law for part in parts]
        noise = [parameter(law) for law in laws]
        levels = [
            np.array(part.values, dtype=np.int64).reshape(-1, self.shape.nodes(level))
            for level, part in enumerate(parts)
        ]
        return np.cumsum(leaves_of(self.shape, levels, noise), axis=1), noise, laws

    def _places(self, parts: Sequence[NoisyIntegers]) -> Places:
        """The bins of the answers: one row for each group, one column for each level."""
        if self.method == "exponential":
            chosen = np.array([part.values for part in parts], dtype=np.intp).T
            # Larger levels have larger quantiles.
            return np.asarray(np.maximum.accumulate(chosen, axis=1))
        prefixes, noise, _ = self._prefixes(parts)
        if self.isotonic:
            # The same curve for all levels and all queries of this tree, so that none cross.
            monotone = isotonic(prefixes, 1 / spread(self.shape, noise, target=0.0).variance)
            rows = np.maximum(monotone[:, -1:], 0)
        else:
            upper = np.maximum.accumulate(prefixes, axis=1)
            lower = np.minimum.accumulate(prefixes[:, ::-1], axis=1)[:, ::-1]
            monotone, rows = (upper + lower) / 2, prefixes[:, -1:]
        rounding = _ROUNDING * np.abs(prefixes[:, -1:])
        targets = [float(q) * rows - rounding for q in self.q]
        found = [np.sum(monotone < target, axis=1) for target in targets]
        return np.asarray(np.minimum(np.stack(found, axis=1), self.bins - 1))

    def _number(self, halves: int, *, outward: int) -> float:
        """The value at so many half bins from the left: codes are cells, so ends are one apart."""
        k, middle = divmod(halves, 2)
        first = self.lower + k * self.width
        if outward > 0:
            code = Fraction(min(first - 1, self.upper))
        elif middle:
            code = Fraction(first + min(first + self.width - 1, self.upper), 2)
        else:
            code = Fraction(first)
        exact = code * Fraction(2) ** self.exponent
        if exact.denominator == 1:
            return int(exact)
        return round_up(exact) if outward > 0 else round_down(exact)
