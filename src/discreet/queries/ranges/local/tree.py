"""Nested blocks in the local model: every client reports its block of one level  (F16, F50)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from discreet.core import canonical, check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.mechanisms.local.catalogue import rebuild
from discreet.mechanisms.local.oracle import Oracle
from discreet.mechanisms.local.randomiser import VERSION
from discreet.noise.law import Ints
from discreet.queries.ranges.domain import Domain, declared, read
from discreet.queries.ranges.local.choice import Oracles, best_oracle
from discreet.queries.ranges.local.law import BlocksLaw, spread
from discreet.queries.ranges.local.layered import Layered
from discreet.queries.ranges.local.release import Level, LocalRanges

_NAMED = 5
"""Levels that a name lists."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tree(Layered):
    """Blocks of sizes ``1 = s_0 | s_1 | ...``, each level with its oracle and its share of clients.

    The whole domain is never a level: in the local model the number of reports is public. One level
    alone is the flat histogram.
    """

    kind: ClassVar[str] = "ranges.tree"
    domain: Domain
    epsilon: Fraction
    sizes: tuple[int, ...]
    shares: tuple[Fraction, ...]
    oracles: tuple[Oracle, ...]

    def __post_init__(self) -> None:
        _check_sizes(self.domain, self.sizes)
        if [oracle.categories for oracle in self.oracles] != nodes(self.domain.size, self.sizes):
            raise InvalidArgument("oracles must have one category for each block of their level.")
        self._check_levels()

    @property
    def blocks(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def parts(self) -> Sequence[Oracle]:
        return self.oracles

    @property
    def law(self) -> BlocksLaw:
        """The error of every range, before a report is collected."""
        return BlocksLaw(
            size=self.domain.size,
            sizes=self.sizes,
            spreads=tuple(spread(oracle) for oracle in self.oracles),
            rates=tuple(float(share) for share in self.shares),
        )

    def estimate(self, counts: Ints, reports: int) -> LocalRanges:
        """All ranges: each level's unbiased shares, made consistent by weighted least squares."""
        levels = [
            Level(
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
        equal = "equal" if len(set(self.shares)) == 1 else "optimised"
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
) -> Tree:
    """The tree that `Tree.parameters` describes."""
    loss = canonical.ratio(epsilon)
    made = [rebuild({"version": VERSION, "epsilon": loss, **oracle}) for oracle in oracles]
    return Tree(
        domain=read(domain),
        epsilon=epsilon,
        sizes=tuple(sizes),
        shares=tuple(canonical.read_ratio("shares", share) for share in shares),
        oracles=tuple(one for one in made if isinstance(one, Oracle)),
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
    report_bits: int | None = None,
) -> Tree:
    """Nested blocks of chosen sizes; by default equal shares and the best oracle on every level.

    ``oracle`` names one for all levels (``"oue"``), or several of which each level takes the best;
    ``report_bits`` is the longest report that clients can afford.
    """
    chain = tuple(check.count("sizes", block) for block in sizes)
    _check_sizes(domain, chain)
    given = (Fraction(1, len(chain)),) * len(chain) if shares is None else tuple(shares)
    room = (
        None
        if report_bits is None
        else check.count("report_bits", report_bits) - 8 * (len(chain) > 1)
    )
    exact = check.positive("epsilon", epsilon)
    oracles = tuple(
        best_oracle(number, epsilon=exact, oracle=oracle, report_bits=room)
        for number in nodes(domain.size, chain)
    )
    return Tree(domain=domain, epsilon=exact, sizes=chain, shares=given, oracles=oracles)


def flat(
    *, domain: Domain, epsilon: Number, oracle: Oracles = None, report_bits: int | None = None
) -> Tree:
    """A histogram alone; its answers are projected on the known total  (F15)."""
    return blocks(
        domain=domain, epsilon=epsilon, sizes=(1,), oracle=oracle, report_bits=report_bits
    )


def tree(
    *,
    domain: Domain,
    epsilon: Number,
    branching: int = 2,
    oracle: Oracles = None,
    report_bits: int | None = None,
) -> Tree:
    """A tree of one branching with equally many clients on every level but the root."""
    check.count("branching", branching, minimum=2)
    sizes = [1]
    while sizes[-1] * branching < declared(domain).size:
        sizes.append(sizes[-1] * branching)
    return blocks(
        domain=domain, epsilon=epsilon, sizes=sizes, oracle=oracle, report_bits=report_bits
    )


def _check_sizes(domain: Domain, sizes: Sequence[int]) -> None:
    if declared(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    chain = all(b > a > 0 and b % a == 0 for a, b in pairwise(sizes))
    if not sizes or sizes[0] != 1 or not chain or sizes[-1] >= domain.size:
        raise InvalidArgument(
            "sizes must start with 1, grow, each divide the next, and stay below the "
            f"{domain.size} cells of the domain."
        )
