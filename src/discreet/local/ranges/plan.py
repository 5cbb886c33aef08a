"""The planner of the local model: every structure's error before a report is collected (F59)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number
from discreet.noise.law import Floats, Ints
from discreet.queries.ranges.domain import Domain, declared
from discreet.queries.ranges.listing import table
from discreet.queries.ranges.local.choice import ALIKE, LONGEST
from discreet.queries.ranges.local.haar import HaarTree, haar
from discreet.queries.ranges.local.optimise import optimal_tree
from discreet.queries.ranges.local.tree import Tree, flat, tree
from discreet.queries.ranges.plan import lengths_of, tried_ranges
from discreet.queries.ranges.question import Asked, workload_of
from discreet.queries.ranges.workload import Workload

BRANCHINGS = (2, 4, 16)
_ORACLES = ("subset_selection", "oue")
"""Besides the choice of each level: the least error, and the oracle of most published trees."""


@dataclass(frozen=True, kw_only=True)
class LocalCandidate:
    """A randomiser with its error over the workload, for equally frequent cells."""

    randomiser: Tree | HaarTree
    mean: float
    """Mean variance of an estimated share over the workload, times the number of reports."""
    largest: float
    """The largest such variance among many ranges of the workload."""
    clients: int

    @property
    def name(self) -> str:
        """Structure, levels and oracles in a few words."""
        return self.randomiser.name

    @property
    def bits(self) -> int:
        """Length of a report."""
        return 8 * self.randomiser.width

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, in clients."""
        return math.sqrt(self.clients * self.mean)

    def by_length(self, lengths: Ints) -> Floats:
        """Root mean squared error in clients over all ranges of each length."""
        return np.sqrt(self.clients * self.randomiser.law.by_length(np.asarray(lengths)))


@dataclass(frozen=True, kw_only=True)
class LocalPlan:
    """Candidates, best first."""

    domain: Domain
    workload: Workload
    epsilon: Fraction
    clients: int
    candidates: tuple[LocalCandidate, ...]

    @property
    def best(self) -> Tree | HaarTree:
        """The randomiser to use."""
        return self.chosen.randomiser

    @property
    def chosen(self) -> LocalCandidate:
        """The shortest reports among those whose mean variance is within a percent of the least."""
        least = self.candidates[0].mean
        close = [one for one in self.candidates if one.mean <= least * ALIKE]
        return min(close, key=lambda one: one.bits)

    def curves(self, lengths: Ints | None = None) -> tuple[Ints, dict[str, Floats]]:
        """Error against range length for every candidate."""
        given = lengths_of(self.domain.size) if lengths is None else np.asarray(lengths)
        return given, {one.name: one.by_length(given) for one in self.candidates}

    def __str__(self) -> str:
        head = ["structure", "n x variance", "largest", f"error at n = {self.clients:,}", "bits"]
        lines = [head]
        for one in self.candidates:
            numbers = [one.mean, one.largest, one.rmse]
            lines.append([one.name, *(f"{number:.4g}" for number in numbers), str(one.bits)])
        title = f"Ranges of {self.domain}, {self.workload}, epsilon {float(self.epsilon):g} local"
        return "\n".join([title, *table(lines)])

    __repr__ = __str__


def plan_local(
    domain: Domain,
    workload: Asked,
    *,
    epsilon: Number,
    clients: int,
    report_bits: int | None = None,
) -> LocalPlan:
    """Rank the structures of the local model by their mean squared error. Reads no data.

    ``workload`` says which ranges matter, as in `plan_ranges`: "all", "short", pairs of labels.
    ``clients`` will report; ``report_bits`` is the longest report that they can afford.

    Theorem: the stated variances are exact, given that every level gets its share of the reports,
        if all cells are equally frequent and the blocks fill the domain; at other distributions the
        law is as exact (`LocalLaw.at`), but needs to know them.
    Proof: docs/theory/local-ranges.md.
    Source: F49, F50, F51, F59.
    Needs: a declared domain of at least two cells.
    """
    exact = check.positive("epsilon", epsilon)
    check.count("clients", clients)
    if report_bits is not None:
        check.count("report_bits", report_bits)
    workload = workload_of(workload, declared(domain))
    a, b = tried_ranges(workload, domain.size)
    made = dict.fromkeys(_randomisers(domain, workload, exact, report_bits))
    if not made:
        raise InvalidArgument(
            f"report_bits must be more than {report_bits}: no report is as short as that."
        )
    found = [
        LocalCandidate(
            randomiser=one,
            mean=one.law.mean(workload),
            largest=float(one.law.uniform(a, b).max()),
            clients=clients,
        )
        for one in made
    ]
    found.sort(key=lambda one: one.mean)
    return LocalPlan(
        domain=domain, workload=workload, epsilon=exact, clients=clients, candidates=tuple(found)
    )


def _randomisers(
    domain: Domain, workload: Workload, epsilon: Fraction, report_bits: int | None
) -> Iterator[Tree | HaarTree]:
    yield from _trees(domain, workload, epsilon, report_bits)
    for levels in (None, workload):
        made = haar(domain=domain, epsilon=epsilon, workload=levels)
        if report_bits is None or 8 * made.width <= report_bits:
            yield made


def _trees(
    domain: Domain, workload: Workload, epsilon: Fraction, report_bits: int | None
) -> Iterator[Tree]:
    room = LONGEST if report_bits is None else report_bits
    for oracle in (None, *_ORACLES):
        with suppress(InvalidArgument):  # reports of this oracle are too long
            yield optimal_tree(
                domain=domain, epsilon=epsilon, workload=workload, oracle=oracle, report_bits=room
            )
    for branching in BRANCHINGS:
        if branching < domain.size:
            with suppress(InvalidArgument):
                yield tree(domain=domain, epsilon=epsilon, branching=branching, report_bits=room)
    with suppress(InvalidArgument):
        yield flat(domain=domain, epsilon=epsilon, report_bits=room)
