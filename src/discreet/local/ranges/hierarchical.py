"""Hierarchical histograms in the local model: clients report blocks of one level (F16, F50).

A client draws its level inside the randomizer, with public probabilities that do not depend on its
value, and reports the block of that level that holds its value. The whole message, level and all,
is one report of one randomizer: it costs epsilon once, and is amplified by shuffling among all
clients, not only among those of its level. Wavelets share the reports of levels.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import VERSION, LocalRandomizer, Reports, Tally
from discreet.local.ranges._variance import (
    HierarchicalVariance,
    LocalVariance,
    Oracles,
    best_oracle,
    spread,
)
from discreet.local.ranges.release import LevelEstimate, LocalRanges
from discreet.local.registry import rebuild
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers
from discreet.ranges.domain import BinnedDomain, Domain, check_domain, read

# ── Reports about levels ─────────────────────────────────────────────────────────────────────────


MOST_LEVELS = 256
_CHUNK = 1 << 17
_FINEST = 1 << 32


class LevelReports(LocalRandomizer):
    """A randomizer that draws a level and reports a block of it.

    A report is the level in one byte (none if there is one level), then the level's report, then
    zeros up to the longest. A server keeps each level's counts and its number of reports.
    """

    # Theorem: if every level's randomizer is epsilon-DP in the local model, so is the whole report.
    # Proof: the level has the same law for every value, and given the level the report is that of
    #   its randomizer: `P(l, y | x) = p_l P_l(y | x) <= e^eps p_l P_l(y | x')`.
    # Source: Kulkarni, Cormode, Srivastava 2018; F16. docs/theory/local-ranges.md.

    domain: Domain
    shares: tuple[Fraction, ...]

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """How many cells a code of each level stands for."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[LocalRandomizer]:
        """What randomizes the codes of each level, at the full epsilon."""

    @property
    @abstractmethod
    def law(self) -> LocalVariance:
        """The error of every range, before a report is collected."""

    @property
    def std(self) -> float:
        """Of the estimated share of half of the domain, from one report, at equal shares."""
        half = np.array([max(1, self.domain.size // 2)])
        return float(np.sqrt(self.law.by_length(half)[0]))

    @property
    def tagged(self) -> int:
        """Bytes of the level."""
        return int(len(self.parts) > 1)

    @property
    def width(self) -> int:
        return self.tagged + max(part.width for part in self.parts)

    @property
    def size(self) -> int:
        return sum(part.size + 1 for part in self.parts)

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client. ``value`` holds labels of the domain."""
        cells = place(self.domain, value)
        source = resolve_rng(rng)
        rows = np.zeros((len(cells), self.width), dtype=np.uint8)
        for start in range(0, len(cells), _CHUNK):
            here = cells[start : start + _CHUNK]
            levels = self._levels(len(here), source)
            for level, (block, part) in enumerate(zip(self.blocks, self.parts, strict=True)):
                chosen = np.flatnonzero(levels == level)
                if not chosen.size:
                    continue
                report = part.randomize(here[chosen] // block, rng=source)
                rows[start + chosen, self.tagged : self.tagged + part.width] = report
            if self.tagged:
                rows[start : start + _CHUNK, 0] = levels
        return rows

    def tally(self, reports: Reports) -> Tally:
        """Add up each level's reports; unknown levels and what is not zero behind are refused."""
        counts = np.zeros(self.size, dtype=np.int64)
        accepted = 0
        for start in range(0, len(reports), _CHUNK):
            rows = reports[start : start + _CHUNK]
            for level, (part, state) in enumerate(
                zip(self.parts, self.states(counts), strict=True)
            ):
                mine = rows[rows[:, 0] == level] if self.tagged else rows
                end = self.tagged + part.width
                if end < self.width:
                    mine = mine[~mine[:, end:].any(axis=1)]
                tally = part.tally(np.ascontiguousarray(mine[:, self.tagged : end]))
                state[:-1] += tally.counts
                state[-1] += tally.accepted
                accepted += tally.accepted
        return Tally(counts, accepted, len(reports) - accepted)

    def states(self, counts: Ints) -> list[Ints]:
        """Views of each level's counts, the number of its reports behind them."""
        ends = accumulate((part.size + 1 for part in self.parts), initial=0)
        return [counts[start:end] for start, end in pairwise(ends)]

    def certify(self) -> Certificate:
        """The certificates of all levels."""
        found = [part.certify() for part in self.parts]
        checks = dict.fromkeys(check for part in found for check in part.checks)
        drawn = dict.fromkeys(look for part in found for look in part.drawn)
        return Certificate(
            mechanism=self.kind,
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=(*drawn, *self._looks()),
        ).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return end_labels(self.domain, many)

    def _levels(self, number: int, rng: RandomSource) -> Ints:
        """Levels, each with exactly the probability of its share."""
        unit = math.lcm(*(share.denominator for share in self.shares))
        ends = np.cumsum([int(share * unit) for share in self.shares])
        return np.searchsorted(ends, uniform_integers(unit, number, rng), side="right").astype(
            np.int64
        )

    def _check_levels(self) -> None:
        if not 1 <= len(self.shares) == len(self.parts) <= MOST_LEVELS:
            raise InvalidArgument(f"levels must be 1 .. {MOST_LEVELS}, with a share for each.")
        if any(share <= 0 for share in self.shares) or sum(self.shares) != 1:
            raise InvalidArgument("shares must be positive rationals that sum to one.")
        if math.lcm(*(share.denominator for share in self.shares)) > _FINEST:
            raise InvalidArgument("shares must be multiples of one fraction of at least 2**-32.")
        if any(part.epsilon != self.epsilon for part in self.parts):
            raise InvalidArgument("every level must have the epsilon of the whole.")


def place(domain: Domain, value: ArrayLike) -> Ints:
    """The cells that hold a client's values, as a flat array. Errors do not show the values."""
    try:
        cells = _in_bins(domain, value) if isinstance(domain, BinnedDomain) else domain.first(value)
    except (ValueError, TypeError, OverflowError):
        raise OutOfDomain(f"value must be of the kind of the declared domain {domain}.") from None
    if cells.size and not 0 <= cells.min() <= cells.max() < domain.size:
        raise OutOfDomain(f"value must lie in the declared domain {domain}; clip it before.")
    return np.ascontiguousarray(cells, dtype=np.int64).ravel()


def end_labels(domain: Domain, many: int) -> tuple[list[Any], list[Any]]:
    """Labels of the first and of the last cell, for so many clients each."""
    first, last = domain.label(0), domain.label(domain.size - 1)
    if isinstance(domain, BinnedDomain):
        first, last = domain.edges[0], domain.edges[-1]
    return [first] * many, [last] * many


def _in_bins(domain: BinnedDomain, value: ArrayLike) -> Ints:
    numbers, edges = np.asarray(value, dtype=np.float64), np.array(domain.edges)
    cells = np.searchsorted(edges, numbers, side="right").astype(np.int64) - 1
    return np.where(numbers == edges[-1], domain.size - 1, cells)  # the last bin is closed


# ── Hierarchical histograms ──────────────────────────────────────────────────────────────────────


_NAMED = 5
"""Levels that a name lists."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LocalHierarchicalHistogram(LevelReports):
    """Blocks of sizes ``1 = s_0 | s_1 | ...``, each level with its oracle and its share of clients.

    The whole domain is never a level: in the local model the number of reports is public. One level
    alone is the flat histogram.
    """

    kind: ClassVar[str] = "ranges.tree"
    domain: Domain
    epsilon: Fraction
    sizes: tuple[int, ...]
    shares: tuple[Fraction, ...]
    oracles: tuple[FrequencyOracle, ...]

    def __post_init__(self) -> None:
        _check_sizes(self.domain, self.sizes)
        if [oracle.categories for oracle in self.oracles] != nodes(self.domain.size, self.sizes):
            raise InvalidArgument("oracles must have one category for each block of their level.")
        self._check_levels()

    @property
    def blocks(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def parts(self) -> Sequence[FrequencyOracle]:
        return self.oracles

    @property
    def law(self) -> HierarchicalVariance:
        """The error of every range, before a report is collected."""
        return HierarchicalVariance(
            size=self.domain.size,
            sizes=self.sizes,
            spreads=tuple(spread(oracle) for oracle in self.oracles),
            rates=tuple(float(share) for share in self.shares),
        )

    def estimate(self, counts: Ints, reports: int) -> LocalRanges:
        """All ranges: each level's unbiased shares, made consistent by weighted least squares."""
        levels = [
            LevelEstimate(
                block=block,
                spread=spread(oracle),
                reports=int(state[-1]),
                values=oracle.estimate(state[:-1], int(state[-1])).shares,
            )
            for block, oracle, state in zip(
                self.sizes, self.oracles, self.states(counts), strict=True
            )
        ]
        return LocalRanges(
            domain=self.domain,
            structure="blocks",
            levels=tuple(levels),
            reports=reports,
            guarantee=self.guarantee,
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "domain": self.domain.content(),
            "sizes": list(self.sizes),
            "shares": [str(share) for share in self.shares],
            "oracles": [{"kind": one.kind, **one.parameters()} for one in self.oracles],
        }

    @property
    def name(self) -> str:
        """In a few words."""
        kinds = list(dict.fromkeys(oracle.kind for oracle in self.oracles))
        by = "/".join(kinds)
        if len(self.sizes) == 1:
            return f"flat, {by}"
        equal = "equal" if len(set(self.shares)) == 1 else "optimized"
        shown = [*self.sizes[:3], "..", self.sizes[-1]] if len(self.sizes) > _NAMED else self.sizes
        listed = "/".join(map(str, shown))
        return f"blocks {listed}, {equal} levels, {by}"


def described(
    *,
    epsilon: Fraction,
    domain: dict[str, Any],
    sizes: list[int],
    shares: list[str],
    oracles: list[dict[str, Any]],
) -> LocalHierarchicalHistogram:
    """The tree that `LocalHierarchicalHistogram.parameters` describes."""
    loss = canonical.ratio(epsilon)
    made = [rebuild({"version": VERSION, "epsilon": loss, **oracle}) for oracle in oracles]
    return LocalHierarchicalHistogram(
        domain=read(domain),
        epsilon=epsilon,
        sizes=tuple(sizes),
        shares=tuple(canonical.read_ratio("shares", share) for share in shares),
        oracles=tuple(one for one in made if isinstance(one, FrequencyOracle)),
    )


def nodes(size: int, sizes: Sequence[int]) -> list[int]:
    """How many blocks there are on each level; the last block of the largest is filled up."""
    padded = -(-size // sizes[-1]) * sizes[-1]
    return [padded // block for block in sizes]


def blocks(
    *,
    domain: Domain,
    epsilon: Number,
    sizes: Sequence[int],
    shares: Sequence[Fraction] | None = None,
    oracle: Oracles = None,
    max_report_bits: int | None = None,
) -> LocalHierarchicalHistogram:
    """Nested blocks of chosen sizes; by default equal shares and the best oracle on every level.

    ``oracle`` names one for all levels (``"oue"``), or several of which each level takes the best;
    ``max_report_bits`` is the longest report that clients can afford.
    """
    chain = tuple(check.count("sizes", block) for block in sizes)
    _check_sizes(domain, chain)
    given = (Fraction(1, len(chain)),) * len(chain) if shares is None else tuple(shares)
    room = (
        None
        if max_report_bits is None
        else check.count("max_report_bits", max_report_bits) - 8 * (len(chain) > 1)
    )
    exact = check.positive("epsilon", epsilon)
    oracles = tuple(
        best_oracle(number, epsilon=exact, oracle=oracle, max_report_bits=room)
        for number in nodes(domain.size, chain)
    )
    return LocalHierarchicalHistogram(
        domain=domain, epsilon=exact, sizes=chain, shares=given, oracles=oracles
    )


def flat_histogram(
    *, domain: Domain, epsilon: Number, oracle: Oracles = None, max_report_bits: int | None = None
) -> LocalHierarchicalHistogram:
    """Create a flat histogram for ranges in the local model.

    The answers are adjusted to the known number of clients.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        epsilon: Privacy loss of one report.
        oracle: Frequency oracle to use, such as "oue", or several to choose from. If None, the one
            with the least error.
        max_report_bits: Longest report that clients can send, in bits. If None, 8192 bits.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local, ranges
        >>> histogram = local.flat_histogram(domain=ranges.integers(0, 7), epsilon=1)
        >>> histogram.guarantee.epsilon() <= 1
        True
    """
    return blocks(
        domain=domain, epsilon=epsilon, sizes=(1,), oracle=oracle, max_report_bits=max_report_bits
    )


def hierarchical_histogram(
    *,
    domain: Domain,
    epsilon: Number,
    branching: int = 2,
    oracle: Oracles = None,
    max_report_bits: int | None = None,
) -> LocalHierarchicalHistogram:
    """Create a hierarchical histogram for ranges in the local model.

    All levels have one branching, and the same number of clients.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        epsilon: Privacy loss of one report.
        branching: Number of parts into which a block is divided, at least 2.
        oracle: Frequency oracle to use, such as "oue", or several to choose from. If None, the one
            with the least error.
        max_report_bits: Longest report that clients can send, in bits. If None, 8192 bits.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> tree = local.hierarchical_histogram(domain=ranges.integers(0, 7), epsilon=1)
        >>> tree.guarantee.epsilon() <= 1
        True

    See Also:
        `optimal_hierarchical_histogram`.
    """
    check.count("branching", branching, minimum=2)
    sizes = [1]
    while sizes[-1] * branching < check_domain(domain).size:
        sizes.append(sizes[-1] * branching)
    return blocks(
        domain=domain, epsilon=epsilon, sizes=sizes, oracle=oracle, max_report_bits=max_report_bits
    )


def _check_sizes(domain: Domain, sizes: Sequence[int]) -> None:
    if check_domain(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    chain = all(b > a > 0 and b % a == 0 for a, b in pairwise(sizes))
    if not sizes or sizes[0] != 1 or not chain or sizes[-1] >= domain.size:
        raise InvalidArgument(
            "sizes must start with 1, grow, each divide the next, and stay below the "
            f"{domain.size} cells of the domain."
        )
