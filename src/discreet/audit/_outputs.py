"""Exact output laws of mechanisms that are more than a sum: selection, thresholds, flips.

Each function lists the law of the output on one input, by exact sums over the lattice noise. Two
of them make a `Pair` (`discreet.audit.exact.pair`) and so an exact audit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.audit.lattice_distribution import Floats, LatticeDistribution, point
from discreet.core.errors import InvalidArgument

Ties: TypeAlias = Literal["first", "random"]
Answers: TypeAlias = tuple[bool, ...]


def randomized_response(value: int, *, keep: float, categories: int = 2) -> dict[int, float]:
    """Tell the truth with probability ``keep``, else one of the other categories (B20)."""
    other = (1 - keep) / (categories - 1)
    return {k: keep if k == value else other for k in range(categories)}


def exponential(scores: Sequence[float], *, weight: float) -> dict[int, float]:
    """P(i) proportional to exp(weight * score_i)."""
    s = weight * np.asarray(scores, dtype=np.float64)
    w = np.exp(s - s.max())
    return dict(enumerate((w / w.sum()).tolist()))


def permute_and_flip(scores: Sequence[float], *, weight: float) -> dict[int, float]:
    """Visit in random order, accept i with probability exp(weight * (score_i - best))."""
    # Theorem: P(i) = p_i * integral over u in [0, 1] of prod_{j != i} (1 - u p_j).
    # Proof: give each candidate an independent uniform arrival time; i, arriving at u, is chosen if
    #   it accepts and no earlier one did. The integrand is a polynomial of degree K - 1, on which
    #   Gauss-Legendre quadrature with ceil(K/2) nodes is exact.
    # Source: McKenna and Sheldon 2020.
    s = weight * np.asarray(scores, dtype=np.float64)
    p = np.exp(s - s.max())
    nodes, weights = _gauss(len(p))
    factors = 1 - np.outer(nodes, p)
    law = [
        p[i] * float(weights @ np.prod(np.delete(factors, i, axis=1), axis=1))
        for i in range(len(p))
    ]
    return dict(enumerate(law))


def noisy_max(
    scores: Sequence[int], noise: LatticeDistribution, *, ties: Ties = "random"
) -> dict[int, float]:
    """The index of the largest score + noise; ties go to a random one or to the first."""
    # Theorem: P(i) = sum_v p(v - s_i) * integral over u of prod_{j != i} (F(v-1-s_j) + u p(v-s_j)).
    # Proof: with ties broken by independent uniforms, candidate i at noisy value v and tie-breaker
    #   u beats j if j's noisy value is below v, or equal with a smaller tie-breaker. Polynomial in
    #   u.
    # Needs: the unlisted mass of the noise, at most len(scores) times `noise.missing`, is the
    #   absolute error of the whole law: pass it as `error` to `pair`.
    s = np.asarray(scores, dtype=np.int64)
    v = np.arange(noise.start + s.min(), noise.stop + s.max(), dtype=np.int64)
    at = np.array([noise.pmf(v - k) for k in s])
    below = np.array([noise.cdf(v - 1 - k) for k in s])
    if ties == "first":
        return dict(enumerate(_first_max(at, below)))
    nodes, weights = _gauss(len(s))
    law = np.zeros(len(s))
    for u, w in zip(nodes, weights, strict=True):
        factors = below + u * at
        for i in range(len(s)):
            rest = np.prod(np.delete(factors, i, axis=0), axis=0)
            law[i] += w * float(at[i] @ rest)
    return dict(enumerate(law.tolist()))


def _first_max(at: Floats, below: Floats) -> list[float]:
    law = []
    for i in range(len(at)):
        earlier = np.prod(below[:i], axis=0)
        later = np.prod(below[i + 1 :] + at[i + 1 :], axis=0)
        law.append(float(np.sum(at[i] * earlier * later)))
    return law


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseVectorOutputs:
    """A threshold test on a stream of integer queries, with the choices that variants differ in.

    Query i is reported as above when ``q_i + query noise >= threshold + threshold noise``; after
    ``cutoff`` reports the mechanism stops (None: never). ``refresh`` is the law of new threshold
    noise drawn after each report (None: the first draw is kept).
    """

    threshold: int
    threshold_noise: LatticeDistribution
    query_noise: LatticeDistribution | None
    cutoff: int | None
    refresh: LatticeDistribution | None = None

    def law(self, queries: Sequence[int]) -> dict[Answers, float]:
        """The law of the answers (True: above), exact up to the noises' unlisted mass."""
        # Proof: given the threshold noise the answers are independent, so the probability of a
        #   sequence is the sum over the threshold noise of a product; with a refresh the sum is
        #   taken at every report and starts anew.
        found: dict[Answers, float] = {}
        above = {id(n): self._above(n, queries) for n in (self.threshold_noise, self.refresh) if n}
        stack: list[tuple[Answers, int, LatticeDistribution, Floats]] = [
            ((), 0, self.threshold_noise, self.threshold_noise.mass)
        ]
        while stack:
            answers, hits, noise, weight = stack.pop()
            i = len(answers)
            if i == len(queries) or hits == self.cutoff:
                found[answers] = float(weight.sum())
                continue
            up = above[id(noise)][i]
            stack.append(((*answers, False), hits, noise, weight * (1 - up)))
            if self.refresh is None:
                stack.append(((*answers, True), hits + 1, noise, weight * up))
            else:
                start = float((weight * up).sum()) * self.refresh.mass
                stack.append(((*answers, True), hits + 1, self.refresh, start))
        return found

    def law_with_value(self, queries: Sequence[int]) -> dict[tuple[int, int], float]:
        """First report only, published with its noisy value: (index, value); (-1, 0) if none.

        This is the mistake of publishing the very noise that was compared.
        """
        query_noise = self.query_noise or point(0)
        above = self._above(self.threshold_noise, queries)
        weight = np.array(self.threshold_noise.mass)
        found: dict[tuple[int, int], float] = {}
        levels = self.threshold + self.threshold_noise.support
        for i, q in enumerate(queries):
            reach = np.concatenate(([0.0], np.cumsum(weight)))
            values = query_noise.support + q
            # P(value v and v >= threshold + noise): the weight of thresholds at or below v.
            passed = reach[np.searchsorted(levels, values, side="right")]
            for v, mass in zip(values.tolist(), (query_noise.mass * passed).tolist(), strict=True):
                found[(i, v)] = mass
            weight = weight * (1 - above[i])
        found[(-1, 0)] = float(weight.sum())
        return found

    def _above(self, noise: LatticeDistribution, queries: Sequence[int]) -> list[Floats]:
        """P(query i reported | threshold noise), a vector over the threshold noise."""
        query_noise = self.query_noise or point(0)
        level = self.threshold + noise.support
        return [query_noise.sf(level - q - 1) for q in queries]

    def error(self, queries: Sequence[int]) -> float:
        """What the unlisted mass of all draws can change in total."""
        one = self.threshold_noise.missing + (self.query_noise.missing if self.query_noise else 0)
        return (one + (self.refresh.missing if self.refresh else 0)) * len(queries)


def _gauss(degree: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1], exact for polynomials of at least this degree."""
    if degree > 200:
        raise InvalidArgument(f"at most 200 candidates can be integrated, got {degree}.")
    x, w = np.polynomial.legendre.leggauss(max(1, math.ceil((degree + 1) / 2)))
    return (x + 1) / 2, w / 2
