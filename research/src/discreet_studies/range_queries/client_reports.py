"""The house's own clients under the study's ranges: real reports, exact errors beside them.

Every simulated answer goes the whole way: each client encodes its value, a server adds up bytes,
and ranges are estimated from the sums. Values are made up or public, and reports go nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import LocalRandomizer
from discreet.local.ranges.haar import LocalHaar
from discreet.local.ranges.hierarchical import LocalHierarchicalHistogram
from discreet.local.ranges.plan import optimal_hierarchical_histogram
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.ranges.domain import Domain, integers
from discreet.ranges.workload import LengthWorkload
from discreet_studies.checks import Claims
from discreet_studies.range_queries.tree_cover import running
from discreet_studies.study import StudyCheck

Structure: TypeAlias = LocalHierarchicalHistogram | LocalHaar
ALL = LengthWorkload(name="all ranges")


def days(number: int) -> Domain:
    """A domain of so many cells."""
    return integers(0, number - 1)


def best_for(length: int, *, domain: int, epsilon: float) -> LocalHierarchicalHistogram:
    """The nested blocks, levels and oracles of least error for all ranges of one length."""
    exactly = LengthWorkload(name=f"ranges of {length}", shortest=length, longest=length)
    return optimal_hierarchical_histogram(domain=days(domain), epsilon=epsilon, workload=exactly)


def rmse(structure: Structure, *, length: int, users: int) -> float:
    """In users, over all ranges of a length, if all cells are equally frequent."""
    variance = float(structure.law.by_length(np.array([length]))[0])
    return math.sqrt(users * variance)


def collected(randomizer: LocalRandomizer, counts: Ints, rng: RandomSource) -> Any:
    """What a server estimates from one report of each user."""
    values = np.repeat(np.arange(len(counts)), counts)
    tally = randomizer.tally(randomizer.randomize(values, rng=rng))
    return randomizer.estimate(tally.counts, tally.accepted)


def cells(found: Any) -> Floats:
    """Estimated counts of the cells, of a structure or of an oracle alone."""
    return np.asarray(found.counts if hasattr(found, "counts") else found.cells, dtype=np.float64)


def errors(
    randomizer: Structure | FrequencyOracle,
    counts: Ints,
    first: Ints,
    last: Ints,
    *,
    structures: int,
    rng: RandomSource,
) -> Floats:
    """Errors of the ranges first .. last (columns) in independent collections (rows)."""
    made = np.empty((structures, len(first)))
    for row in range(structures):
        before = running(cells(collected(randomizer, counts, rng)) - counts)
        made[row] = before[last + 1] - before[first]
    return made


def covariance(structure: Structure, counts: Ints, first: Ints, last: Ints) -> Floats:
    """The exact covariance of the range counts of a structure."""
    users = int(counts.sum())

    def variance(a: Ints, b: Ints) -> Floats:
        return users * structure.law.at(a, b, counts / users, reports=users)

    return from_single(variance, first, last)


def from_single(variance: Callable[[Ints, Ints], Floats], first: Ints, last: Ints) -> Floats:
    """The covariance of ranges, from the variances of single ranges ``a .. b``.

    Errors of ranges are differences of errors of prefixes, so with v(s, t) the variance of the
    range from s up to t, Cov([a, b), [c, d)) = (v(a, d) + v(b, c) - v(a, c) - v(b, d)) / 2.
    """
    ends, place = np.unique(np.concatenate((first, last + 1)), return_inverse=True)
    low, high = np.meshgrid(ends, ends, indexing="ij")
    apart = low < high
    between = np.zeros(low.shape)
    between[apart] = variance(low[apart], high[apart] - 1)
    between = between + between.T
    a, b = place[: len(first)], place[len(first) :]
    found: Floats = between[np.ix_(a, b)] + between[np.ix_(b, a)]
    found = found - between[np.ix_(a, a)] - between[np.ix_(b, b)]
    return found / 2


def squared(
    claims: Claims,
    name: str,
    claim: str,
    drawn: Floats,
    covariances: Floats,
    *,
    excess: float = 0.0,
) -> StudyCheck:
    """Simulated errors against their exact mean square.

    Errors are sums over thousands of users: the spread of squares is that of normal ones. For few
    terms of larger kurtosis ``excess`` is what it is above three, at most: with z'Sz of independent
    z of unit variance, Var = 2 |S|^2 + sum k_i S_ii^2 <= (2 + k) |S|^2.
    """
    ranges = len(covariances)
    return claims.simulated(
        name,
        f"{claim}: mean squared error",
        values=np.square(drawn).mean(axis=1),
        expected=float(np.trace(covariances)) / ranges,
        spread=math.sqrt((2 + excess) * float(np.square(covariances).sum())) / ranges,
    )


def simulated(
    claims: Claims,
    name: str,
    claim: str,
    structure: Structure,
    counts: Ints,
    *,
    ranges: tuple[Ints, Ints],
    structures: int,
    rng: RandomSource,
) -> StudyCheck:
    """Reports of real clients, against the exact law of their structure."""
    first, last = ranges
    drawn = errors(structure, counts, first, last, structures=structures, rng=rng)
    return squared(claims, name, claim, drawn, covariance(structure, counts, first, last))
