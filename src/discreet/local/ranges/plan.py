"""The planner of the local model: the error of every structure before a report is collected (F59).

It also finds the best levels of a hierarchical histogram for a workload, and how many clients each
level should get (F50).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.tabular import Record, Tabular
from discreet.local.ranges._variance import ALIKE, LONGEST, HierarchicalVariance, Oracles
from discreet.local.ranges.haar import LocalHaar, haar_wavelet
from discreet.local.ranges.hierarchical import (
    LocalHierarchicalHistogram,
    blocks,
    flat_histogram,
    hierarchical_histogram,
)
from discreet.noise.distribution import Floats, Ints, floats
from discreet.ranges.domain import Domain, check_domain
from discreet.ranges.plan import lengths_of, table, tried_ranges
from discreet.ranges.strategies.base import rounded_shares
from discreet.ranges.table_query import WorkloadLike, workload_of
from discreet.ranges.workload import Workload, energies

# ── Optimal levels ───────────────────────────────────────────────────────────────────────────────


_STEPS = 400
_FADED = 1e-3


def optimal_hierarchical_histogram(
    *,
    domain: Domain,
    epsilon: Number,
    workload: WorkloadLike,
    oracle: Oracles = None,
    max_report_bits: int | None = None,
) -> LocalHierarchicalHistogram:
    """Create the hierarchical histogram with the least mean variance for a workload.

    The variance is the one for equally frequent cells.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        epsilon: Privacy loss of one report.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`.
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
        >>> domain = ranges.integers(0, 7)
        >>> tree = local.optimal_hierarchical_histogram(domain=domain, epsilon=1, workload="all")
        >>> tree.guarantee.epsilon() <= 1
        True
    """
    # Theorem: for given levels and oracles the mean variance is convex in the shares of clients,
    #   and its minimum is found; the law of what is returned is exact.
    # Proof: it is `sum_j d_j / lambda_j` less a constant, with energies that fall by `d_j >= 0`
    #   and `lambda_j` linear in the shares. Levels that get (almost) nobody are left out.
    # Source: F50; docs/theory/local-ranges.md. Among all powers of two, every largest block is
    #   tried: it decides how far the domain is filled up.
    if check_domain(domain).size < 2:
        raise InvalidArgument("a domain needs at least two cells: with one, all is known.")
    check.positive("epsilon", epsilon)
    workload = workload_of(workload, domain)
    # Of the largest blocks that fill up the domain alike, the largest one offers all levels.
    tops = {-(-domain.size // block) * block: block for block in _powers(domain.size)}
    best: tuple[float, LocalHierarchicalHistogram] | None = None
    for top in tops.values():
        sizes = [block for block in _powers(domain.size) if block <= top]
        whole = blocks(
            domain=domain,
            epsilon=epsilon,
            sizes=sizes,
            oracle=oracle,
            max_report_bits=max_report_bits,
        )
        shares = best_shares(whole.law, workload)
        kept = [b for b, share in zip(sizes, shares, strict=True) if share > _FADED or b == 1]
        some = blocks(
            domain=domain,
            epsilon=epsilon,
            sizes=kept,
            oracle=oracle,
            max_report_bits=max_report_bits,
        )
        made = replace(some, shares=rounded_shares(best_shares(some.law, workload)))
        mean = made.law.mean(workload)
        if best is None or mean < best[0] * (1 - 1e-9):
            best = mean, made
    assert best is not None  # noqa: S101 - the flat histogram is always there
    return best[1]


def _powers(size: int) -> list[int]:
    """Powers of two below the size."""
    return [1 << j for j in range((size - 1).bit_length())]


def best_shares(law: HierarchicalVariance, workload: Workload) -> Floats:
    """The shares of clients at which moving one from level to level changes nothing.

    The slope in the share of level i is ``-s_i / V_i`` times the sum over ``j >= i`` of
    ``d_j / lambda_j^2``; shares go with the root of slope times ``share^2`` where they are best.
    """
    held = energies(workload, law.size, (*law.sizes, law.padded))
    drops = np.maximum(-np.diff(held), 0.0)
    rates = np.array(law.sizes, dtype=np.float64) / law.noise
    shares = np.full(len(rates), 1 / len(rates))
    for _ in range(_STEPS):
        inverse = 1 / np.cumsum(rates * shares)
        pull = rates * np.cumsum((drops * inverse * inverse)[::-1])[::-1]
        shares = shares * np.sqrt(np.maximum(pull, 1e-300))
        shares = np.maximum(shares / shares.sum(), 1e-9)
    return floats(shares / shares.sum())


# ── Plans ────────────────────────────────────────────────────────────────────────────────────────


BRANCHINGS = (2, 4, 16)
_ORACLES = ("subset_selection", "oue")
"""Besides the choice of each level: the least error, and the oracle of most published trees."""


@dataclass(frozen=True, kw_only=True)
class LocalCandidate:
    """A randomizer with its error over the workload, for equally frequent cells."""

    randomizer: LocalHierarchicalHistogram | LocalHaar
    mean: float
    """Mean variance of an estimated share over the workload, times the number of reports."""
    largest: float
    """The largest such variance among many ranges of the workload."""
    expected_clients: int

    @property
    def name(self) -> str:
        """Structure, levels and oracles in a few words."""
        return self.randomizer.name

    @property
    def bits(self) -> int:
        """Length of a report."""
        return 8 * self.randomizer.width

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, in clients."""
        return math.sqrt(self.expected_clients * self.mean)

    def by_length(self, lengths: Ints) -> Floats:
        """Root mean squared error in clients over all ranges of each length."""
        return np.sqrt(self.expected_clients * self.randomizer.law.by_length(np.asarray(lengths)))


@dataclass(frozen=True, kw_only=True, repr=False)
class LocalPlan(Tabular):
    """Compare how clients can report ranges, best first. Made by `local.plan_collection`.

    Attributes:
        domain: Declared domain of the values.
        workload: Ranges that matter.
        epsilon: Privacy loss of one report.
        expected_clients: Number of clients that errors are shown for.
        candidates: Every structure with its error, best first.

    Examples:
        >>> from discreet import local, ranges
        >>> cells = ranges.integers(0, 7)
        >>> plan = local.plan_collection(cells, "points", epsilon=1, expected_clients=1_000)
        >>> plan.candidates[0].rmse <= plan.candidates[-1].rmse
        True
    """

    domain: Domain
    workload: Workload
    epsilon: Fraction
    expected_clients: int
    candidates: tuple[LocalCandidate, ...]

    @property
    def best(self) -> LocalHierarchicalHistogram | LocalHaar:
        """The randomizer to use."""
        return self.chosen.randomizer

    @property
    def chosen(self) -> LocalCandidate:
        """The shortest reports among those whose mean variance is within a percent of the least."""
        least = self.candidates[0].mean
        close = [one for one in self.candidates if one.mean <= least * ALIKE]
        return min(close, key=lambda one: one.bits)

    def rows(self) -> list[Record]:
        """List each candidate with its errors, best first.

        Returns:
            One record for each: `strategy`, `rmse`, `mean` and `largest`.

        Examples:
            >>> from discreet import local, ranges
            >>> cells = ranges.integers(0, 7)
            >>> plan = local.plan_collection(cells, "points", epsilon=1, expected_clients=1_000)
            >>> errors = [row["rmse"] for row in plan.rows()]
            >>> errors == sorted(errors)
            True
        """
        return [
            {"strategy": one.name, "rmse": one.rmse, "mean": one.mean, "largest": one.largest}
            | {"bits": one.bits}
            for one in self.candidates
        ]

    def curves(self, lengths: Ints | None = None) -> tuple[Ints, dict[str, Floats]]:
        """Return the error of every candidate by the length of a range.

        Args:
            lengths: Lengths, in cells. If None, some of all sizes.

        Returns:
            The lengths, and the errors of each candidate by its name.

        Examples:
            >>> lengths, errors = plan.curves()
            >>> len(errors) == len(plan.rows())
            True
        """
        given = lengths_of(self.domain.size) if lengths is None else np.asarray(lengths)
        return given, {one.name: one.by_length(given) for one in self.candidates}

    def __str__(self) -> str:
        head = [
            "structure",
            "n x variance",
            "largest",
            f"error at n = {self.expected_clients:,}",
            "bits",
        ]
        lines = [head]
        for one in self.candidates:
            numbers = [one.mean, one.largest, one.rmse]
            lines.append([one.name, *map(short, numbers), str(one.bits)])
        title = f"Ranges of {self.domain}, {self.workload}, epsilon {float(self.epsilon):g} local"
        return "\n".join([title, *table(lines)])

    __repr__ = __str__


def plan_collection(
    domain: Domain,
    workload: WorkloadLike,
    *,
    epsilon: Number,
    expected_clients: int,
    max_report_bits: int | None = None,
) -> LocalPlan:
    """Compare the randomizers for ranges in the local model by their error.

    No data are read. The errors are exact for equally frequent cells.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`.
        epsilon: Privacy loss of one report.
        expected_clients: Expected number of clients.
        max_report_bits: Longest report that clients can send, in bits. If None, 8192 bits.

    Returns:
        A plan: every randomizer with its error. `plan.best` has the smallest error.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        The plan releases nothing. Each report of its randomizers is epsilon-DP in the local model.

    Examples:
        >>> plan = local.plan_collection(domain, "points", epsilon=1, expected_clients=10_000)
        >>> plan.best.guarantee.epsilon() <= 1
        True
    """
    # Theorem: the stated variances are exact, given that every level gets its share of the reports,
    #   if all cells are equally frequent and the blocks fill the domain; at other distributions the
    #   law is as exact (`LocalVariance.at`), but needs to know them.
    # Proof: docs/theory/local-ranges.md.
    # Source: F49, F50, F51, F59.
    # Needs: a declared domain of at least two cells.
    exact = check.positive("epsilon", epsilon)
    check.count("expected_clients", expected_clients)
    if max_report_bits is not None:
        check.count("max_report_bits", max_report_bits)
    workload = workload_of(workload, check_domain(domain))
    a, b = tried_ranges(workload, domain.size)
    made = dict.fromkeys(_randomizers(domain, workload, exact, max_report_bits))
    if not made:
        raise InvalidArgument(
            f"max_report_bits must be more than {max_report_bits}: no report is as short as that."
        )
    found = [
        LocalCandidate(
            randomizer=one,
            mean=one.law.mean(workload),
            largest=float(one.law.uniform(a, b).max()),
            expected_clients=expected_clients,
        )
        for one in made
    ]
    found.sort(key=lambda one: one.mean)
    return LocalPlan(
        domain=domain,
        workload=workload,
        epsilon=exact,
        expected_clients=expected_clients,
        candidates=tuple(found),
    )


def _randomizers(
    domain: Domain, workload: Workload, epsilon: Fraction, max_report_bits: int | None
) -> Iterator[LocalHierarchicalHistogram | LocalHaar]:
    yield from _trees(domain, workload, epsilon, max_report_bits)
    for levels in (None, workload):
        made = haar_wavelet(domain=domain, epsilon=epsilon, workload=levels)
        if max_report_bits is None or 8 * made.width <= max_report_bits:
            yield made


def _trees(
    domain: Domain, workload: Workload, epsilon: Fraction, max_report_bits: int | None
) -> Iterator[LocalHierarchicalHistogram]:
    room = LONGEST if max_report_bits is None else max_report_bits
    for oracle in (None, *_ORACLES):
        with suppress(InvalidArgument):  # reports of this oracle are too long
            yield optimal_hierarchical_histogram(
                domain=domain,
                epsilon=epsilon,
                workload=workload,
                oracle=oracle,
                max_report_bits=room,
            )
    for branching in BRANCHINGS:
        if branching < domain.size:
            with suppress(InvalidArgument):
                yield hierarchical_histogram(
                    domain=domain, epsilon=epsilon, branching=branching, max_report_bits=room
                )
    with suppress(InvalidArgument):
        yield flat_histogram(domain=domain, epsilon=epsilon, max_report_bits=room)
