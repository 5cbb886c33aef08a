"""The trust ladder: what the same guarantee costs if fewer parties are trusted (F56, F59)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.accounting.shuffle import local_epsilon
from discreet.core import check
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.queries.budget import budget
from discreet.queries.ranges.design import RangeDesign
from discreet.queries.ranges.domain import Domain
from discreet.queries.ranges.local.haar import HaarTree
from discreet.queries.ranges.local.plan import plan_local, table
from discreet.queries.ranges.local.tree import Tree
from discreet.queries.ranges.plan import plan_ranges
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
    n: int
    rungs: tuple[Rung, ...]

    def __getitem__(self, model: str) -> Rung:
        """The rung of a model."""
        return next(rung for rung in self.rungs if rung.model == model)

    def __str__(self) -> str:
        lines = [["model", "trusted", "error", "of all", "report's epsilon", "structure"]]
        for rung in self.rungs:
            own = "none" if math.isinf(rung.local_epsilon) else f"{rung.local_epsilon:.4g}"
            numbers = [f"{rung.rmse:,.4g}", f"{rung.rmse / self.n:.2%}", own]
            lines.append([rung.model, rung.trusted, *numbers, rung.structure])
        title = (
            f"Ranges of {self.domain}, {self.workload}, {self.n:,} clients: "
            f"({self.epsilon:g}, {self.delta:g}) if one client's value is replaced"
        )
        return "\n".join([title, *table(lines)])


def trust_ladder(
    domain: Domain, workload: Workload, epsilon: Number, delta: Number, n: int
) -> Ladder:
    """The best central, shuffled and local collection of one guarantee. Reads no data.

    All rungs are (epsilon, delta)-DP if the value of one of n clients is replaced by another; n is
    public. Central and local keep epsilon with delta zero, which is no less.

    Theorem: as stated by each planner, for equally frequent cells; the shuffled reports are those
        of the local model with the largest epsilon that shuffling n of them brings below the
        target.
    Proof: docs/theory/local-ranges.md, docs/theory/shuffle.md.
    Source: F56, F59.
    Needs: all n clients report, honestly and through the shuffler.
    """
    loss = check.positive("epsilon", epsilon)
    slack = check.probability("delta", delta, zero=False, one=False)
    clients = check.count("n", n)
    central = plan_ranges(
        domain, workload, budget(epsilon=loss), n=clients, relation=Relation.REPLACE_ONE
    ).candidates[0]
    rungs = [
        Rung(
            model="central",
            trusted="the curator",
            structure=central.name,
            design=central.design,
            local_epsilon=math.inf,
            mean=central.mean,
        )
    ]
    amplified = local_epsilon(float(loss), delta=float(slack), reports=clients)
    for model, trusted, own in (("shuffle", "the shuffler", amplified), ("local", "nobody", loss)):
        best = plan_local(domain, workload, own, clients).chosen
        rungs.append(
            Rung(
                model=model,
                trusted=trusted,
                structure=best.name,
                design=best.randomiser,
                local_epsilon=float(own),
                mean=clients * best.mean,
            )
        )
    return Ladder(
        domain=domain,
        workload=workload,
        epsilon=float(loss),
        delta=float(slack),
        n=clients,
        rungs=tuple(rungs),
    )
