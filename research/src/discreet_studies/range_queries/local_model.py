"""The local model of the study: the published oracle, the right ones, flat and by levels.

A model of what clients would send, for experiments on public or made-up counts: exact laws of the
server's totals (no loop over users), exact second moments, no way to a release. The names: an
oracle turns a value of ``size`` many into a report; ``keep`` is the probability that a report is
the truth for its own sake, ``noise`` that any given other value is supported by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.noise.distribution import Floats, Ints
from discreet_studies.range_queries.tree_cover import (
    NodeRuns,
    cover,
    height,
    level_counts,
    running,
    starts,
)


class Oracle(Protocol):
    """Frequencies of ``size`` values from one report of each user."""

    def estimates(self, counts: Ints, rng: np.random.Generator, *, structures: int) -> Floats:
        """Unbiased estimates of the counts (columns) in independent rounds (rows)."""

    def second(self, mass: Floats, nodes: Floats, users: float, *, size: int) -> Floats:
        """The sum over users of E[Y_1 Y_2] for the estimates Y of two sets of values.

        ``mass`` is the number of users, ``nodes`` the number of values, that are in both sets
        (matrices with the sets themselves on the diagonal, or vectors of the diagonals).
        """


class LocalModel(Protocol):
    """What flat and by levels have in common."""

    def variances(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        """The variance of each range count, over everything that is random."""

    def covariance(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        """The covariance of the range counts."""

    def simulate(
        self,
        counts: Ints,
        first: Ints,
        *,
        length: int,
        structures: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Errors of every range count (columns) in independent rounds (rows)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Report the truth with probability ``keep``, else any of the ``size`` values alike  # F13.

    The published oracle ("OLH") keeps with e^eps / (e^eps + size - 1); randomized response over k
    values is the same with (e^eps - 1) / (e^eps + size - 1).
    """

    epsilon: float
    published: bool

    def keep(self, size: int) -> float:
        """Probability that the truth is reported for its own sake."""
        weight = math.exp(self.epsilon) if self.published else math.expm1(self.epsilon)
        return min(1.0, weight / (math.exp(self.epsilon) + size - 1))

    def true_epsilon(self, size: int) -> float:
        """What the oracle is worth: the largest ratio of two probabilities of a report  # M3."""
        keep = self.keep(size)
        return math.log1p(keep * size / (1 - keep))

    def estimates(self, counts: Ints, rng: np.random.Generator, *, structures: int) -> Floats:
        size, users = len(counts), int(counts.sum())
        keep = self.keep(size)
        kept = rng.binomial(counts, keep, size=(structures, size))
        rest = users - kept.sum(axis=1)
        support = kept + rng.multinomial(rest, np.full(size, 1 / size))
        return (support.astype(np.float64) - (1 - keep) * users / size) / keep

    def second(self, mass: Floats, nodes: Floats, users: float, *, size: int) -> Floats:
        # Y = (1[report in set] - b) / keep with b = (1 - keep) nodes / size.
        keep = self.keep(size)
        chance = (1 - keep) / size
        own_nodes, own_mass = _own(nodes), _own(mass)
        b1, b2 = _pair(chance * own_nodes, like=nodes)
        m1, m2 = _pair(own_mass, like=mass)
        both = keep * mass + users * chance * nodes
        return (both - keep * (b2 * m1 + b1 * m2) - users * b1 * b2) / keep**2


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedUnary:
    """Optimized unary encoding: own bit kept with 1/2, others set with 1 / (e^eps + 1)  # F44."""

    epsilon: float

    @property
    def noise(self) -> float:
        """Probability that a bit is set that is not the user's."""
        return 1 / (math.exp(self.epsilon) + 1)

    def estimates(self, counts: Ints, rng: np.random.Generator, *, structures: int) -> Floats:
        size, users = len(counts), int(counts.sum())
        shape = (structures, size)
        support = rng.binomial(counts, 0.5, size=shape)
        support = support + rng.binomial(users - counts, self.noise, size=shape)
        return (support.astype(np.float64) - users * self.noise) / (0.5 - self.noise)

    def second(self, mass: Floats, nodes: Floats, users: float, *, size: int) -> Floats:
        # Bits are independent: covariances on the common values, plus 1 for a user in both sets.
        del size
        own, other = 0.25, self.noise * (1 - self.noise)
        spread = mass * own + (users * nodes - mass) * other
        return spread / (0.5 - self.noise) ** 2 + mass


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """One level for each user, drawn uniformly; the node on it through an oracle  # F16."""

    oracle: Oracle
    degree: int
    root: bool

    def top(self, domain: int) -> int:
        """The largest height that users may draw."""
        return height(domain, degree=self.degree) - (0 if self.root else 1)

    def variances(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        domain, top = len(counts), self.top(len(counts))
        levels = level_counts(counts, degree=self.degree, top=top)
        total = np.zeros(len(first))
        for runs, level in zip(self._cover(domain, first, length), levels, strict=True):
            total += self.oracle.second(
                runs.mass(level).astype(np.float64),
                runs.nodes.astype(np.float64),
                float(counts.sum()),
                size=len(level),
            )
        return (top + 1) * total - _range_mass(counts, first, length)

    def covariance(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        domain, top = len(counts), self.top(len(counts))
        levels = level_counts(counts, degree=self.degree, top=top)
        total = np.zeros((len(first), len(first)))
        for runs, level in zip(self._cover(domain, first, length), levels, strict=True):
            inside = runs.incidence(len(level))
            users = float(counts.sum())
            both = (inside * level) @ inside.T
            total += self.oracle.second(both, inside @ inside.T, users, size=len(level))
        inside = _inside(domain, first, length)
        return (top + 1) * total - (inside * counts) @ inside.T

    def simulate(
        self,
        counts: Ints,
        first: Ints,
        *,
        length: int,
        structures: int,
        rng: np.random.Generator,
    ) -> Floats:
        domain, top = len(counts), self.top(len(counts))
        runs = self._cover(domain, first, length)
        answers = np.empty((structures, len(first)))
        for i in range(structures):
            split = rng.multinomial(counts, np.full(top + 1, 1 / (top + 1)))
            answers[i] = sum(
                self._sums(split[:, level], runs[level], rng) for level in range(top + 1)
            )
        return (top + 1) * answers - _range_mass(counts, first, length)

    def _sums(self, users: Ints, runs: NodeRuns, rng: np.random.Generator) -> Floats:
        nodes = level_counts(users, degree=self.degree, top=runs.height)[-1]
        estimates = self.oracle.estimates(nodes, rng, structures=1)[0]
        return runs.mass(estimates)

    def _cover(self, domain: int, first: Ints, length: int) -> Sequence[NodeRuns]:
        return cover(first, length=length, degree=self.degree, top=self.top(domain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """All users through one oracle on the bins  # F15."""

    oracle: Oracle

    def variances(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        mass = _range_mass(counts, first, length).astype(np.float64)
        nodes = np.full(len(first), float(length))
        return self.oracle.second(mass, nodes, float(counts.sum()), size=len(counts)) - mass

    def covariance(self, counts: Ints, first: Ints, *, length: int) -> Floats:
        inside = _inside(len(counts), first, length)
        mass = (inside * counts) @ inside.T
        users = float(counts.sum())
        return self.oracle.second(mass, inside @ inside.T, users, size=len(counts)) - mass

    def simulate(
        self,
        counts: Ints,
        first: Ints,
        *,
        length: int,
        structures: int,
        rng: np.random.Generator,
    ) -> Floats:
        errors = self.oracle.estimates(counts, rng, structures=structures) - counts
        before = np.cumsum(np.pad(errors, ((0, 0), (1, 0))), axis=1)
        return before[:, first + length] - before[:, first]


def published(epsilon: float) -> Keep:
    """The oracle of the published code."""
    return Keep(epsilon=epsilon, published=True)


def response(epsilon: float) -> Keep:
    """Randomized response over k values."""
    return Keep(epsilon=epsilon, published=False)


def _inside(domain: int, first: Ints, length: int) -> Floats:
    place = np.arange(domain)
    inside = (first[:, None] <= place) & (place < first[:, None] + length)
    return inside.astype(np.float64)


def _range_mass(counts: Ints, first: Ints, length: int) -> Ints:
    before = running(counts)
    return before[first + length] - before[first]


def _own(both: Floats) -> Floats:
    return np.diagonal(both) if both.ndim == 2 else both


def _pair(own: Floats, *, like: Floats) -> tuple[Floats, Floats]:
    return (own[:, None], own[None, :]) if like.ndim == 2 else (own, own)


def rmse(model: LocalModel, counts: Ints, *, length: int, ranges: int | None = None) -> float:
    """The root of the mean variance over all ranges of a length, or over some, evenly spaced."""
    first = starts(len(counts), length=length)
    if ranges is not None and ranges < len(first):
        first = first[np.linspace(0, len(first) - 1, ranges).astype(np.int64)]
    # The published oracle is exact on the whole domain: rounding may leave a negative nothing.
    return math.sqrt(max(0.0, float(model.variances(counts, first, length=length).mean())))
