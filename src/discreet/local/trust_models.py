"""The trust ladder: what the same guarantee costs if fewer parties are trusted (F56, F59)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.core import check
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.queries.budget import budget
from discreet.queries.ranges.design import RangeDesign
from discreet.queries.ranges.domain import Domain, declared
from discreet.queries.ranges.listing import table
from discreet.queries.ranges.local.haar import HaarTree
from discreet.queries.ranges.local.plan import plan_local
from discreet.queries.ranges.local.shuffled import shuffled_ranges
from discreet.queries.ranges.local.tree import Tree
from discreet.queries.ranges.noise import price
from discreet.queries.ranges.optimise import optimal_blocks
from discreet.queries.ranges.question import Asked, workload_of
from discreet.queries.ranges.strategy import Contribution
from discreet.queries.ranges.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One model of trust, with its best structure."""

    model: str
    trusted: str
    """Who must behave for the guarantee to hold."""
    structure: str
    design: RangeDesign | Tree | HaarTree
    local_epsilon: float
    """What one report is worth to whom it reaches first; infinite if rows leave as they are."""
    mean: float
    """Mean squared error over the workload, in clients squared."""

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, in clients."""
        return math.sqrt(self.mean)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Models of trust under one guarantee, from the most trust to the least."""

    domain: Domain
    workload: Workload
    epsilon: float
    delta: float
    clients: int
    rungs: tuple[Rung, ...]

    def __getitem__(self, model: str) -> Rung:
        """The rung of a model."""
        return next(rung for rung in self.rungs if rung.model == model)

    def __str__(self) -> str:
        lines = [["model", "trusted", "structure", "error", "of all", "report's epsilon"]]
        for rung in self.rungs:
            own = "none" if math.isinf(rung.local_epsilon) else f"{rung.local_epsilon:.4g}"
            numbers = [f"{rung.rmse:,.4g}", f"{rung.rmse / self.clients:.2%}", own]
            lines.append([rung.model, rung.trusted, rung.structure, *numbers])
        title = (
            f"Ranges of {self.domain}, {self.workload}, {self.clients:,} clients: "
            f"({self.epsilon:g}, {self.delta:g}) if one client's value is replaced"
        )
        return "\n".join([title, *table(lines, words=3)])

    __repr__ = __str__


def trust_ladder(
    domain: Domain,
    workload: Asked,
    *,
    epsilon: Number,
    delta: Number,
    clients: int,
    honest: Number = 1,
) -> Ladder:
    """The best collection under one guarantee for every model of trust. Reads no data.

    All rungs are (epsilon, delta)-DP if the value of one client is replaced by another; their
    number is public. Only the shuffled one uses the delta. Without a curator, ``honest`` is the
    share of the clients that are counted on to hide the others: their reports are shuffled, or
    their shares of the noise enough (mechanisms/local/shares.py); central noise grows to 1/honest.

    Theorem: the errors are exact for the central model, and exact for equally frequent cells in the
        others; the shuffled reports are those of the local model, at the largest epsilon that
        shuffling them brings below the target.
    Proof: docs/theory/local-ranges.md, docs/theory/shuffle.md.
    Source: F56, F59.
    Needs: what is said under ``trusted``; secure sums and shufflers are not part of this package.
    """
    loss = check.positive("epsilon", epsilon)
    slack = check.probability("delta", delta, zero=False, one=False)
    check.count("clients", clients)
    workload = workload_of(workload, declared(domain))
    central = _central(domain, workload, loss, clients)
    share = check.probability("honest", honest, zero=False)
    good = max(1, math.floor(share * clients))
    shuffled = shuffled_ranges(
        domain, workload, epsilon=loss, delta=slack, clients=clients, honest=good
    )
    alone = plan_local(domain, workload, epsilon=loss, clients=clients).chosen
    rungs = (
        Rung(
            model="central",
            trusted="the curator",
            structure=central.describe(),
            design=central,
            local_epsilon=math.inf,
            mean=central.mean_variance(workload),
        ),
        Rung(
            model="secure sum",
            trusted="a protocol",
            structure=central.describe(),
            design=central,
            local_epsilon=math.inf,
            mean=central.mean_variance(workload) * clients / good,
        ),
        Rung(
            model="shuffle",
            trusted="the shuffler",
            structure=shuffled.randomiser.name,
            design=shuffled.randomiser,
            local_epsilon=float(shuffled.randomiser.epsilon),
            mean=shuffled.mean,
        ),
        Rung(
            model="local",
            trusted="nobody",
            structure=alone.name,
            design=alone.randomiser,
            local_epsilon=float(loss),
            mean=clients * alone.mean,
        ),
    )
    return Ladder(
        domain=domain,
        workload=workload,
        epsilon=float(loss),
        delta=float(slack),
        clients=clients,
        rungs=rungs,
    )


def _central(domain: Domain, workload: Workload, epsilon: Fraction, n: int) -> RangeDesign:
    """Nested blocks with Laplace noise: the best or nearly so, found in a moment."""
    cost = budget(epsilon=epsilon)
    best = optimal_blocks(
        domain.size,
        workload=workload,
        price=price(cost, family="laplace"),
        relation=Relation.REPLACE_ONE,
        contribution=Contribution(),
        total=n,
    )
    return RangeDesign(
        domain=domain,
        strategy=best,
        budget=cost,
        family="laplace",
        relation=Relation.REPLACE_ONE,
    )
