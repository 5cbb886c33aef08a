"""Trust models compared: the error of one guarantee, central, shuffled or local (F56, F59).

Shuffled ranges choose structure and epsilon together. How far shuffling amplifies depends on how
the reports of a randomizer hide each other, and the best randomizer depends on the epsilon that
amplification leaves. The two are settled in turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import shuffle as randomizers
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.shuffle import Parts, local_epsilon
from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.local.oracles.randomized_response import RandomizedResponse
from discreet.local.oracles.subset_selection import BlockOracle
from discreet.local.randomizer import LocalRandomizer
from discreet.local.ranges import haar
from discreet.local.ranges import hierarchical as tree
from discreet.local.ranges.haar import HaarResponse, LocalHaar
from discreet.local.ranges.hierarchical import LocalHierarchicalHistogram
from discreet.local.ranges.plan import plan_collection
from discreet.query.budget import budget
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import Domain, check_domain
from discreet.ranges.plan import table
from discreet.ranges.strategies.base import Contribution, measurement_cost
from discreet.ranges.strategies.hierarchical_histogram import optimal_blocks
from discreet.ranges.table_query import WorkloadLike, workload_of
from discreet.ranges.workload import Workload

# ── Shuffled ranges ──────────────────────────────────────────────────────────────────────────────


_TURNS = 3
_STEP = 1 << 16
"""Local epsilons are rounded down to multiples of one over this (finer below one)."""


@dataclass(frozen=True, kw_only=True)
class ShuffledRanges:
    """A randomizer of n clients whose shuffled reports have the guarantee."""

    randomizer: LocalHierarchicalHistogram | LocalHaar
    guarantee: Guarantee
    mean: float
    """Mean squared error over the workload, in clients squared, for equally frequent cells."""


def parts_of(randomizer: LocalHierarchicalHistogram | LocalHaar) -> Parts:
    """The levels as two-level randomizers; nothing if one of them is of another kind."""
    # Proof: blocks of a design as in `accounting.randomizers`. A half's sign at a random row: all
    #   rows and signs are alike but that one sign of each row is likelier, so half of the messages
    #   are; two halves of one pair have no likelier message in common.
    described = [_parts(part) for part in randomizer.parts]
    if not all(described):
        return ()
    return randomizers.mixture_parts(zip(randomizer.shares, described, strict=True))


def shuffled_ranges(
    domain: Domain,
    workload: WorkloadLike,
    *,
    epsilon: Number,
    delta: Number,
    expected_clients: int,
    min_honest_reports: int | None = None,
) -> ShuffledRanges:
    """Choose the local randomizer for ranges whose shuffled reports meet a target.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`.
        epsilon: Epsilon of the central target.
        delta: Delta of the central target.
        expected_clients: Expected number of clients.
        min_honest_reports: Number of clients that surely report as they should and keep their
            report secret. Only their reports hide one another. If None, all clients.

    Returns:
        The randomizer, and the guarantee of its shuffled reports.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        The shuffled reports are (epsilon, delta)-DP for neighbors that differ in the value of one
        client, if a shuffler hides who sent what and when.

    Examples:
        >>> from discreet import local, ranges
        >>> domain = ranges.integers(0, 3)
        >>> target = {"epsilon": 0.5, "delta": 1e-6, "expected_clients": 1_000}
        >>> local.shuffled_ranges(domain, "points", **target).guarantee.epsilon(1e-6) <= 0.5
        True
    """
    # Theorem: the guarantee is that of the returned randomizer's own reports, and within the
    #   target.
    # Proof: its local epsilon is the largest that `local_epsilon` certifies for its parts, rounded
    #   down; structure and shares were chosen before, at another epsilon, and are kept.
    # Source: Feldman, McMillan, Talwar 2021; docs/theory/shuffle.md.
    # Needs: one report of each client; a shuffler that hides who sent what and when. Neighbors
    #   replace one client's value.
    target = float(check.positive("epsilon", epsilon))
    slack = float(check.probability("delta", delta, zero=False, one=False))
    check.count("expected_clients", expected_clients)
    hidden = (
        expected_clients
        if min_honest_reports is None
        else min(check.count("min_honest_reports", min_honest_reports), expected_clients)
    )
    workload = workload_of(workload, check_domain(domain))
    local = local_epsilon(target, delta=slack, reports=hidden)
    best: ShuffledRanges | None = None
    for _ in range(_TURNS):
        found = plan_collection(
            domain, workload, epsilon=local, expected_clients=expected_clients
        ).chosen.randomizer
        parts = parts_of(found)
        local = local_epsilon(target, delta=slack, reports=hidden, parts=parts)
        made = _at(found, local)
        mean = expected_clients * made.law.mean(workload)
        if best is None or mean < best.mean:
            pure = made.guarantee
            whole = pure.shuffled(reports=hidden, parts=parts) if local > target else pure
            best = ShuffledRanges(randomizer=made, guarantee=whole, mean=mean)
    assert best is not None  # noqa: S101 - there was a turn
    return best


def _at(
    randomizer: LocalHierarchicalHistogram | LocalHaar, local: float
) -> LocalHierarchicalHistogram | LocalHaar:
    """The same structure with the same designs at another epsilon."""
    # Finer for a small epsilon: what is rounded must not come out as nothing, or as more.
    step = _STEP << max(0, -math.floor(math.log2(local)))
    epsilon = Fraction(math.floor(local * step), step)
    if isinstance(randomizer, LocalHaar):
        return haar.described(epsilon=epsilon, **randomizer.parameters())
    return tree.described(epsilon=epsilon, **randomizer.parameters())


def _parts(part: LocalRandomizer) -> Parts:
    # Fewer than `shuffling.parts` knows: those whose numbers stay when epsilon changes (`_at`).
    match part:
        case BlockOracle():
            return randomizers.block_design_parts(points=part.points, chosen=part.chosen)
        case RandomizedResponse():
            return randomizers.block_design_parts(points=part.categories)
        case HaarResponse():
            return ((Fraction(1), Fraction(1, 2), Fraction(1, 2)),)
        case _:
            return ()


# ── Comparison ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class TrustOption:
    """One model of trust, with its best structure."""

    model: str
    trusted: str
    """Who must behave for the guarantee to hold."""
    structure: str
    design: RangeDesign | LocalHierarchicalHistogram | LocalHaar
    local_epsilon: float
    """What one report is worth to whom it reaches first; infinite if rows leave as they are."""
    mean: float
    """Mean squared error over the workload, in clients squared."""

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, in clients."""
        return math.sqrt(self.mean)


@dataclass(frozen=True, kw_only=True, repr=False)
class TrustComparison(Tabular):
    """Models of trust under one guarantee, from the most trust to the least.

    Made by `local.compare_trust_models`.

    Attributes:
        domain: Declared domain of the values.
        workload: Ranges that matter.
        epsilon: Epsilon of the guarantee of every model.
        delta: Delta of the guarantee of every model.
        expected_clients: Number of clients that errors are shown for.
        rungs: Each model with its error, from the most trusted to the least.

    Examples:
        >>> from discreet import local, ranges
        >>> domain, target = ranges.integers(0, 3), {"epsilon": 0.5, "delta": 1e-6}
        >>> found = local.compare_trust_models(domain, "points", expected_clients=1_000, **target)
        >>> found["central"].rmse < found["local"].rmse
        True
    """

    domain: Domain
    workload: Workload
    epsilon: float
    delta: float
    expected_clients: int
    rungs: tuple[TrustOption, ...]

    def rows(self) -> list[Record]:
        """List each model of trust with its error and what one report is worth.

        Returns:
            One record for each, from the most trusted to the least.

        Examples:
            >>> [row["model"] for row in found.rows()]
            ['central', 'secure sum', 'shuffle', 'local']
        """
        return [
            {
                "model": rung.model,
                "trusted": rung.trusted,
                "strategy": rung.structure,
                "rmse": rung.rmse,
                "local_epsilon": rung.local_epsilon,
            }
            for rung in self.rungs
        ]

    def __getitem__(self, model: str) -> TrustOption:
        """The rung of a model."""
        return next(rung for rung in self.rungs if rung.model == model)

    def __str__(self) -> str:
        lines = [["model", "trusted", "structure", "error", "of all", "report's epsilon"]]
        for rung in self.rungs:
            own = "none" if math.isinf(rung.local_epsilon) else short(rung.local_epsilon)
            numbers = [short(rung.rmse), percent(rung.rmse / self.expected_clients), own]
            lines.append([rung.model, rung.trusted, rung.structure, *numbers])
        title = (
            f"Ranges of {self.domain}, {self.workload}, {self.expected_clients:,} clients: "
            f"({self.epsilon:g}, {self.delta:g}) if one client's value is replaced"
        )
        return "\n".join([title, *table(lines, words=3)])

    __repr__ = __str__


def compare_trust_models(
    domain: Domain,
    workload: WorkloadLike,
    *,
    epsilon: Number,
    delta: Number,
    expected_clients: int,
    honest_share: Number = 1,
) -> TrustComparison:
    """Compare central, shuffle and local collections under one guarantee.

    No data are read. The errors are exact for the central model, and for equally frequent cells in
    the others.

    Args:
        domain: Declared domain of the values, such as `ranges.integers(0, 255)`.
        workload: Ranges that matter: "all", "points", "short", "long", "prefixes", pairs of labels,
            or a workload of `ranges.workload`.
        epsilon: Epsilon of the guarantee of all collections.
        delta: Delta of the guarantee. Only the shuffle model uses it.
        expected_clients: Number of clients, which is public.
        honest_share: Share of the clients that are counted on to hide the others, above 0 and at
            most 1.

    Returns:
        The best collection for each trust model, with its error.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each collection is (epsilon, delta)-DP for neighbors that differ in the value of one client.
        Secure sums and shufflers are not part of discreet.

    Examples:
        >>> found = local.compare_trust_models(domain, "points", expected_clients=1_000, **target)
        >>> "central" in str(found)
        True
    """
    # Theorem: the errors are exact for the central model, and exact for equally frequent cells in
    #   the others; the shuffled reports are those of the local model, at the largest epsilon that
    #   shuffling them brings below the target.
    # Proof: docs/theory/local-ranges.md, docs/theory/shuffle.md.
    # Source: F56, F59.
    # Needs: what is said under `trusted`; secure sums and shufflers are not part of this package.
    loss = check.positive("epsilon", epsilon)
    slack = check.probability("delta", delta, zero=False, one=False)
    check.count("expected_clients", expected_clients)
    workload = workload_of(workload, check_domain(domain))
    central = _central(domain, workload, loss, expected_clients)
    share = check.probability("honest_share", honest_share, zero=False)
    good = max(1, math.floor(share * expected_clients))
    shuffled = shuffled_ranges(
        domain,
        workload,
        epsilon=loss,
        delta=slack,
        expected_clients=expected_clients,
        min_honest_reports=good,
    )
    alone = plan_collection(
        domain, workload, epsilon=loss, expected_clients=expected_clients
    ).chosen
    rungs = (
        TrustOption(
            model="central",
            trusted="the curator",
            structure=central.describe(),
            design=central,
            local_epsilon=math.inf,
            mean=central.mean_variance(workload),
        ),
        TrustOption(
            model="secure sum",
            trusted="a protocol",
            structure=central.describe(),
            design=central,
            local_epsilon=math.inf,
            mean=central.mean_variance(workload) * expected_clients / good,
        ),
        TrustOption(
            model="shuffle",
            trusted="the shuffler",
            structure=shuffled.randomizer.name,
            design=shuffled.randomizer,
            local_epsilon=float(shuffled.randomizer.epsilon),
            mean=shuffled.mean,
        ),
        TrustOption(
            model="local",
            trusted="nobody",
            structure=alone.name,
            design=alone.randomizer,
            local_epsilon=float(loss),
            mean=expected_clients * alone.mean,
        ),
    )
    return TrustComparison(
        domain=domain,
        workload=workload,
        epsilon=float(loss),
        delta=float(slack),
        expected_clients=expected_clients,
        rungs=rungs,
    )


def _central(domain: Domain, workload: Workload, epsilon: Fraction, n: int) -> RangeDesign:
    """Nested blocks with Laplace noise: the best or nearly so, found in a moment."""
    cost = budget(epsilon=epsilon)
    best = optimal_blocks(
        domain.size,
        workload=workload,
        price=measurement_cost(cost, family="laplace"),
        relation=NeighboringRelation.REPLACE_ONE,
        contribution=Contribution(),
        total=n,
    )
    return RangeDesign(
        domain=domain,
        strategy=best,
        budget=cost,
        family="laplace",
        relation=NeighboringRelation.REPLACE_ONE,
    )
