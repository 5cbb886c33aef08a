"""Adaptive trees in the local model: look closer only where there is something to see (AHEAD).

Clients are asked in rounds, each client in one round. A round has a public partition of the domain
into blocks; its clients report the block that holds their value. Blocks whose estimated share
stands out of the noise are split for the next round. In the end all rounds are combined by least
squares over the tree of blocks, and what is left inside a block is spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import Frequencies, FrequencyOracle
from discreet.local.randomizer import LocalRandomizer, Reports, Tally
from discreet.local.ranges._variance import best_oracle
from discreet.local.ranges.hierarchical import end_labels, place
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.ranges import domain as domains
from discreet.ranges.domain import Domain, check_domain
from discreet.ranges.release import NonnegativeRelease


class CollectedLevel(Protocol):
    """What a round needs of an aggregate."""

    @property
    def randomizer(self) -> LocalRandomizer: ...
    @property
    def counts(self) -> Ints: ...
    @property
    def reports(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartitionOracle(LocalRandomizer):
    """Reports which block of a public partition holds the value."""

    # Theorem: epsilon-DP in the local model, whatever the partition.
    # Proof: the block is a public function of the value, reported by an epsilon-DP oracle.

    kind: ClassVar[str] = "ranges.partition"
    epsilon: Fraction
    domain: Domain
    starts: tuple[int, ...]
    round: int = 0
    """Two rounds may ask about the same blocks: reports of the one are not those of the other."""

    @property
    def oracle(self) -> FrequencyOracle:
        """What randomizes the blocks."""
        return best_oracle(len(self.starts), epsilon=self.epsilon)

    @property
    def width(self) -> int:
        return self.oracle.width

    @property
    def size(self) -> int:
        return self.oracle.size

    @property
    def std(self) -> float:
        return self.oracle.std

    def parameters(self) -> dict[str, Any]:
        oracle = {"kind": self.oracle.kind, **self.oracle.parameters()}
        return {
            "domain": self.domain.content(),
            "starts": list(self.starts),
            "round": self.round,
            "oracle": oracle,
        }

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client. ``value`` holds labels of the domain."""
        cells = place(self.domain, value)
        blocks = np.searchsorted(np.array(self.starts), cells, side="right") - 1
        return self.oracle.randomize(blocks, rng=rng)

    def tally(self, reports: Reports) -> Tally:
        return self.oracle.tally(reports)

    def estimate(self, counts: Ints, reports: int) -> Frequencies:
        """Unbiased shares of the blocks."""
        return self.oracle.estimate(counts, reports)

    def certify(self) -> Certificate:
        inner = self.oracle.certify()
        drawn = (*inner.drawn, *self._looks())
        return replace(inner, mechanism=self.kind, guarantee=self.guarantee, drawn=drawn).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        return end_labels(self.domain, many)


def described(
    *,
    epsilon: Number,
    domain: dict[str, Any],
    starts: Sequence[int],
    round: int,  # noqa: A002 - its name in a description
    oracle: dict[str, Any],  # noqa: ARG001 - compared with what is made, which must describe itself so
) -> PartitionOracle:
    """The partition of a description."""
    where = domains.read(domain)
    begins = tuple(count("starts", start, minimum=0) for start in starts)
    if (
        len(begins) < 2
        or begins[0] != 0
        or any(a >= b for a, b in zip(begins, (*begins[1:], where.size), strict=True))
    ):
        raise InvalidArgument("starts must rise from 0 to below the size of the domain.")
    return PartitionOracle(
        epsilon=positive("epsilon", epsilon),
        domain=where,
        starts=begins,
        round=count("round", round, minimum=0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of the tree: what its clients said, and the blocks it was split into."""

    start: int
    end: int
    share: float = 0.0
    weight: float = 0.0
    """Inverse variance of the share; zero if nobody was asked."""
    parts: tuple[Block, ...] = ()

    @property
    def leaves(self) -> tuple[Block, ...]:
        """The blocks that were not split, from left to right."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def heard(self, shares: dict[int, float], weight: float) -> Block:
        """This tree after a round asked about its leaves; a leaf's answers are averaged."""
        if self.parts:
            return replace(self, parts=tuple(part.heard(shares, weight) for part in self.parts))
        total = self.weight + weight
        mean = (self.share * self.weight + shares[self.start] * weight) / total
        return replace(self, share=mean, weight=total)

    def split(self, branching: int, wanted: set[int]) -> Block:
        """This tree with the leaves that start at ``wanted`` split into equal parts."""
        if self.parts:
            return replace(self, parts=tuple(part.split(branching, wanted) for part in self.parts))
        size = self.end - self.start
        if self.start not in wanted or size == 1:
            return self
        number = min(branching, size)
        edges = [self.start + size * i // number for i in range(number + 1)]
        return replace(self, parts=tuple(Block(start=a, end=b) for a, b in pairwise(edges)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveHierarchy:
    """The state between two rounds. Frozen: `learn` gives the next one."""

    domain: Domain
    epsilon: Fraction
    branching: int
    rounds: int
    tree: Block
    round: int = 0
    reports: int = 0

    @property
    def finished(self) -> bool:
        """Whether another round would learn nothing new."""
        return self.round >= self.rounds

    @property
    def randomizer(self) -> PartitionOracle:
        """What the clients of this round do."""
        starts = tuple(leaf.start for leaf in self.tree.leaves)
        return PartitionOracle(
            epsilon=self.epsilon, domain=self.domain, starts=starts, round=self.round
        )

    def learn(self, aggregate: CollectedLevel) -> AdaptiveHierarchy:
        """The state after this round's reports: blocks that stand out are split."""
        asked = self.randomizer
        if self.finished:
            raise InvalidArgument("All rounds are over: ask estimate() for the result.")
        if aggregate.randomizer != asked:
            raise InvalidArgument("aggregate must hold reports of this round's randomizer.")
        if aggregate.reports == 0:
            raise InvalidArgument("aggregate holds no reports: collect this round first.")
        found = asked.estimate(aggregate.counts, aggregate.reports)
        noise = float(asked.oracle.variance(0.0)) / aggregate.reports
        # Projected before they are averaged: biased, and the error of whole ranges falls.
        kept = found.projected().shares.tolist()
        tree = self.tree.heard(dict(zip(asked.starts, kept, strict=True)), 1 / noise)
        line = _worth_asking(self.branching, noise)
        wanted = {start for start, share in zip(asked.starts, kept, strict=True) if share >= line}
        last = self.round + 1 >= self.rounds
        return replace(
            self,
            tree=tree if last else tree.split(self.branching, wanted),
            round=self.round + 1,
            reports=self.reports + aggregate.reports,
        )

    def estimate(self) -> NonnegativeRelease:
        """Counts of all cells: no share negative, all adding up to the number of reports.

        Side effects: the tree depends on the data, so no error law holds; what is finer than a
        block that was not split is spread evenly, so narrow spikes below the noise are lost.
        """
        if not self.round:
            raise InvalidArgument("No round is over yet: collect and learn at least one.")
        leaves = self.tree.leaves
        shares = np.array(_downward(self.tree, 1.0))
        blocks = Frequencies(
            shares=shares, reports=self.reports, variance=np.full(len(shares), np.nan)
        ).projected()
        sizes = np.array([leaf.end - leaf.start for leaf in leaves])
        cells: Floats = np.repeat(blocks.shares / sizes, sizes) * self.reports
        return NonnegativeRelease(domain=self.domain, cells=cells, pinned=float(self.reports))


def _worth_asking(branching: int, noise: float) -> float:
    """F53. The parts of a block are worth asking about if their noise is below its share."""
    return math.sqrt((branching + 1) * noise)


def _upward(block: Block) -> tuple[float, float]:
    """The best estimate of a block from itself and all below, and its variance."""
    if not block.parts:
        return (block.share, 1 / block.weight) if block.weight else (0.0, math.inf)
    below = [_upward(part) for part in block.parts]
    total, variance = sum(share for share, _ in below), sum(spread for _, spread in below)
    if math.isinf(variance):
        return (block.share, 1 / block.weight) if block.weight else (total, math.inf)
    weight = block.weight + 1 / variance
    return (block.share * block.weight + total / variance) / weight, 1 / weight


def _downward(block: Block, value: float) -> list[float]:
    """Leaves of a block whose value is known: what is missing goes where the noise is."""
    if not block.parts:
        return [value]
    below = [_upward(part) for part in block.parts]
    spreads = [spread for _, spread in below]
    missing = value - sum(share for share, _ in below)
    if any(map(math.isinf, spreads)):  # a block that was split but not asked about
        sizes = [part.end - part.start for part in block.parts]
        return [
            leaf
            for part, size in zip(block.parts, sizes, strict=True)
            for leaf in _downward(part, value * size / sum(sizes))
        ]
    total = sum(spreads)
    return [
        leaf
        for part, (share, spread) in zip(block.parts, below, strict=True)
        for leaf in _downward(part, share + missing * spread / total)
    ]


def adaptive_hierarchy(*, domain: Domain, epsilon: Number, branching: int = 2) -> AdaptiveHierarchy:
    """Create an adaptive hierarchical histogram (AHEAD).

    Each client reports in one of several rounds. Cells with many clients are divided further in the
    next round.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        epsilon: Privacy loss of one report.
        branching: Number of parts into which a cell is divided, at least 2.

    Returns:
        The hierarchy, with the randomizer of the current round.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local, ranges
        >>> local.adaptive_hierarchy(domain=ranges.integers(0, 7), epsilon=1).rounds
        3
    """
    # Theorem: each client, who reports in one round, is epsilon-DP in the local model.
    # Proof: a round's partition depends on other clients' noisy reports only; given it, the report
    #   is epsilon-DP. Shuffling amplifies among the clients of one round, since rounds are public.
    # Source: Du et al. 2021 (AHEAD). F53, with least squares over all rounds.
    # Needs: at least two cells, branching >= 2.
    if check_domain(domain).size < 2:
        raise InvalidArgument("domain must have at least two cells.")
    width = count("branching", branching, minimum=2)
    rounds, reached = 0, 1
    while reached < domain.size:
        reached *= width
        rounds += 1
    whole = Block(start=0, end=domain.size)
    return AdaptiveHierarchy(
        domain=domain,
        epsilon=positive("epsilon", epsilon),
        branching=width,
        rounds=rounds,
        tree=whole.split(width, {0}),
    )
