"""Ranges over several attributes in the local model: hybrid grids (HDG).

A client draws one attribute or one pair of attributes inside the randomizer and reports which
block of a public grid over it holds its values: a fine grid for one attribute, a coarse one for a
pair. The server makes the grids agree with each other and answers ranges over any attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import as_mapping, count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import LocalRandomizer, Reports, Tally
from discreet.local.ranges._consistency import BlockShares, GridEstimate
from discreet.local.ranges._variance import best_oracle
from discreet.local.ranges.hierarchical import end_labels, place
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers
from discreet.ranges import domain as domains
from discreet.ranges.domain import Domain, check_domain

Group: TypeAlias = tuple[str, ...]
"""The attributes that a report is about: one or two."""

_CHUNK = 1 << 16
_MOST_EPSILON = 100
# F55: how uniform the data are within a block of the fine and of the coarse grid.
_FINE, _COARSE = 0.7, 0.03


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridGrid(LocalRandomizer):
    """Reports about one attribute or one pair of several, each on a public grid."""

    kind: ClassVar[str] = "grid"
    epsilon: Fraction
    domains: tuple[tuple[str, Domain], ...]
    fine: int
    coarse: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """What a report may be about; each is drawn with the same probability."""
        names = [name for name, _ in self.domains]
        return (*((name,) for name in names), *combinations(names, 2))

    def edges(self, name: str, group: Group) -> Ints:
        """First cells of the blocks of an attribute in a group's grid, and the end."""
        size = dict(self.domains)[name].size
        blocks = min(self.fine if len(group) == 1 else self.coarse, size)
        return np.arange(blocks + 1) * size // blocks

    def shape(self, group: Group) -> tuple[int, ...]:
        """Numbers of blocks of a group's grid."""
        return tuple(len(self.edges(name, group)) - 1 for name in group)

    def oracle(self, group: Group) -> FrequencyOracle:
        """What randomizes the blocks of a group's grid."""
        return best_oracle(math.prod(self.shape(group)), epsilon=self.epsilon)

    @property
    def width(self) -> int:
        return 1 + max(self.oracle(group).width for group in self.groups)

    @property
    def size(self) -> int:
        return sum(self.oracle(group).size + 1 for group in self.groups)

    @property
    def std(self) -> float:
        """Of the share of one block from one report, at worst (divide by sqrt(n))."""
        worst = max(self.oracle(group).std for group in self.groups)
        return worst * math.sqrt(len(self.groups))

    def parameters(self) -> dict[str, Any]:
        return {
            "domains": {name: domain.content() for name, domain in self.domains},
            "fine": self.fine,
            "coarse": self.coarse,
            "oracles": [
                {"kind": one.kind, **one.parameters()} for one in map(self.oracle, self.groups)
            ],
        }

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client. ``value`` maps each attribute to the clients' labels."""
        cells = self._cells(value)
        source = resolve_rng(rng)
        rows = np.zeros((len(cells[self.domains[0][0]]), self.width), dtype=np.uint8)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            drawn = uniform_integers(len(self.groups), len(part), source)
            part[:, 0] = drawn
            for number, group in enumerate(self.groups):
                mine = np.flatnonzero(drawn == number)
                held = {name: cells[name][start : start + _CHUNK][mine] for name in group}
                oracle = self.oracle(group)
                part[mine, 1 : 1 + oracle.width] = oracle.randomize(
                    self._blocks(held, group), rng=source
                )
        return rows

    def _cells(self, value: object) -> dict[str, Ints]:
        names = [name for name, _ in self.domains]
        if not isinstance(value, Mapping) or set(value) != set(names):
            raise OutOfDomain(f"value must map each of {', '.join(names)} to the clients' labels.")
        cells = {name: place(domain, value[name]) for name, domain in self.domains}
        if len({len(column) for column in cells.values()}) > 1:
            raise OutOfDomain("value must hold equally many labels for every attribute.")
        return cells

    def _blocks(self, cells: Mapping[str, Ints], group: Group) -> Ints:
        """The block of each client in a group's grid, row by row."""
        codes: Ints = np.zeros(len(cells[group[0]]), dtype=np.int64)
        for name in group:
            edges = self.edges(name, group)
            codes = codes * (len(edges) - 1) + np.searchsorted(edges, cells[name], side="right") - 1
        return codes

    def tally(self, reports: Reports) -> Tally:
        """Counts of each group; unknown groups and what is not zero behind are refused."""
        counts = np.zeros(self.size, dtype=np.int64)
        accepted = 0
        for number, (group, state) in enumerate(
            zip(self.groups, self._states(counts), strict=True)
        ):
            mine = reports[reports[:, 0] == number]
            oracle = self.oracle(group)
            mine = mine[~mine[:, 1 + oracle.width :].any(axis=1)]
            tally = oracle.tally(np.ascontiguousarray(mine[:, 1 : 1 + oracle.width]))
            state[:-1] += tally.counts
            state[-1] += tally.accepted
            accepted += tally.accepted
        return Tally(counts, accepted, len(reports) - accepted)

    def _states(self, counts: Ints) -> list[Ints]:
        """Views of each group's counts, the number of its reports behind them."""
        sizes = (self.oracle(group).size + 1 for group in self.groups)
        return [counts[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]

    def estimate(self, counts: Ints, reports: int) -> GridEstimate:
        """What the grids say together, and each by itself."""
        measured = {}
        for group, state in zip(self.groups, self._states(counts), strict=True):
            found = self.oracle(group).estimate(state[:-1], int(state[-1]))
            measured[group] = BlockShares(
                edges=tuple(self.edges(name, group) for name in group), shares=found
            )
        return GridEstimate(
            domains=dict(self.domains),
            measured=measured,
            reports=reports,
            guarantee=self.guarantee,
        )

    def certify(self) -> Certificate:
        """The certificates of all groups."""
        found = [self.oracle(group).certify() for group in self.groups]
        checks = dict.fromkeys(check for part in found for check in part.checks)
        drawn = dict.fromkeys(look for part in found for look in part.drawn)
        return Certificate(
            mechanism=self.kind,
            guarantee=self.guarantee,
            checks=tuple(checks),
            drawn=(*drawn, *self._looks()),
        ).demand()

    def _farthest(self, many: int) -> tuple[Any, Any]:
        ends = {name: end_labels(domain, many) for name, domain in self.domains}
        return ({name: ends[name][0] for name in ends}, {name: ends[name][1] for name in ends})


def granularity(
    *, reports: int, epsilon: Number, attributes: int
) -> tuple[tuple[float, float], tuple[int, int]]:
    """Blocks an axis of the fine and the coarse grid: as computed, and as powers of two. F55.

    They balance noise, which grows with the number of blocks, against values that are unevenly
    spread within a block, which is a guess (0.7 and 0.03; Yang et al. 2020).
    """
    n, eps = count("reports", reports), float(positive("epsilon", epsilon))
    d = count("attributes", attributes, minimum=2)
    if eps > _MOST_EPSILON:
        raise InvalidArgument(f"epsilon must be at most {_MOST_EPSILON}, got {epsilon}.")
    groups = d + math.comb(d, 2)
    fine = (n * math.expm1(eps) ** 2 * _FINE**2 / (2 * groups * math.exp(eps))) ** (1 / 3)
    coarse = math.sqrt(2 * _COARSE * math.expm1(eps) * math.sqrt(n / (groups * math.exp(eps))))
    one, two = (_power_of_two(blocks) for blocks in (fine, coarse))
    return (fine, coarse), (max(one, two), two)


def _power_of_two(blocks: float) -> int:
    """The nearest power of two, at least two."""
    below = 1 << max(1, math.floor(math.log2(max(blocks, 2))))
    return below if blocks - below <= 2 * below - blocks else 2 * below


def hybrid_grid(
    attributes: Mapping[str, Domain],
    *,
    epsilon: Number,
    expected_clients: int | None = None,
    fine: int | None = None,
    coarse: int | None = None,
) -> HybridGrid:
    """Create a hybrid-dimensional grid (HDG) for ranges of several attributes.

    Give `expected_clients`, or both `fine` and `coarse`.

    Args:
        attributes: Declared domain of each attribute by name, two to sixteen.
        epsilon: Privacy loss of one report about all attributes of a client.
        expected_clients: Expected number of clients, which decides the grids.
        fine: Number of cells of the grid of one attribute, a multiple of `coarse`.
        coarse: Number of cells of each axis of the grid of two attributes.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for all attributes of the client together, in the local model.

    Examples:
        >>> from discreet import local, ranges
        >>> domain = ranges.integers(0, 7)
        >>> grid = local.hybrid_grid({"a": domain, "b": domain}, epsilon=1, expected_clients=10_000)
        >>> grid.guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model: all attributes of a client together.
    # Proof: the group is drawn without the values, and a block of it is a public function of them,
    #   reported by an epsilon-DP oracle.
    # Source: Yang, Wang, Li, Zhang, Chen 2020 (HDG). F55.
    # Needs: two to sixteen attributes of two cells or more; the coarse grid divides the fine one.
    if not 2 <= len(as_mapping("attributes", attributes)) <= 16:
        raise InvalidArgument(f"attributes must name 2 to 16 domains, got {len(attributes)}.")
    if any(check_domain(domain).size < 2 for domain in attributes.values()):
        raise InvalidArgument("attributes must have at least two cells each.")
    if (fine is None or coarse is None) and expected_clients is None:
        raise InvalidArgument("Give the expected number of clients, or both fine and coarse.")
    if expected_clients is not None:
        _, (one, two) = granularity(
            reports=expected_clients, epsilon=epsilon, attributes=len(attributes)
        )
        fine, coarse = fine or one, coarse or two
    made = HybridGrid(
        epsilon=positive("epsilon", epsilon),
        # In the order of their names: a description is a JSON object, which has no order.
        domains=tuple(sorted(attributes.items(), key=lambda item: item[0])),
        fine=count("fine", fine, minimum=2),
        coarse=count("coarse", coarse, minimum=2),
    )
    if made.fine % made.coarse:
        raise InvalidArgument(
            f"fine must be a multiple of coarse, got {made.fine} and {made.coarse}."
        )
    return made


def described(
    *,
    epsilon: Number,
    domains: Mapping[str, dict[str, Any]],
    fine: int,
    coarse: int,
    oracles: Sequence[dict[str, Any]],  # noqa: ARG001 - compared with what is made
) -> HybridGrid:
    """The grid of a description."""
    return hybrid_grid(
        {name: _domain(content) for name, content in domains.items()},
        epsilon=epsilon,
        fine=fine,
        coarse=coarse,
    )


def _domain(content: dict[str, Any]) -> Domain:
    return domains.read(content)
