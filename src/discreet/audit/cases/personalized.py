"""Personalized mechanisms, audited level by level: nobody loses more than the own level allows.

Each mechanism has one case for each level: two inputs that differ in a person of that level alone,
and that level's epsilon as the claim. Beside them stand the same mechanisms with the mistakes that
personal budgets invite; each of them must be caught.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import pure_dp
from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.lattice_distribution import Floats, LatticeDistribution, discrete_laplace
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.personalized.exponential_mechanism import (
    PersonalizedCount,
    PersonalizedQuantile,
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.partition import privacy_aware
from discreet.mechanisms.personalized.sampling import PersonalizedSampling, personalized_sampling
from discreet.mechanisms.personalized.stretching import StretchedSum, stretched_sum
from discreet.noise.random_source import seeded_rng
from discreet.noise.uniform import bernoulli

EPSILONS = {"strict": Fraction(1, 5), "usual": Fraction(1, 2), "open": Fraction(2)}
LEVELS = tuple(EPSILONS)
ONE_BY_ONE = 500
"""Samples where every output is a release of its own; the exact laws are the sharper check."""
_REPLACED = {x: pure_dp(e, relation=NeighboringRelation.REPLACE_ONE) for x, e in EPSILONS.items()}


def cases() -> tuple[AuditCase, ...]:
    """Ours, one for each level; then what goes wrong."""
    return (*sound(), *mistaken())


def sound() -> tuple[AuditCase, ...]:
    """Our mechanisms: for each level the neighbors that it tells apart best."""
    by_mechanism = (_stretching(), _sampling(), _counting(), _quantiles(), _partitions())
    return tuple(itertools.chain.from_iterable(by_mechanism))


def mistaken() -> tuple[AuditCase, ...]:
    """The same with a mistake."""
    return (_no_weights(), _linear_rates(), _told_size(), _without_half(), _mean_of_run())


# ── stretching ────────────────────────────────────────────────────────────────────────────────


def _stretching() -> list[AuditCase]:
    mechanism = stretched_sum(_REPLACED, lower=0, upper=3)
    return [
        _case(
            "stretching", level, partial(_released, mechanism, LEVELS), _values(level, 3), _sum_laws
        )
        for level in LEVELS
    ]


def _values(level: str, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One person of each level, of whom one has the other bound."""
    here = LEVELS.index(level)
    left = np.ones(len(LEVELS), dtype=np.int64)
    left[here], right = 0, left.copy()
    right[here] = most
    return left, right


def _released(
    mechanism: StretchedSum | PersonalizedCount | PersonalizedQuantile,
    people: tuple[str, ...],
    values: Any,
    n: int,
    seed: int,
) -> NDArray[Any]:
    bits = seeded_rng(seed)
    return np.array([mechanism.release(values, people, rng=bits) for _ in range(n)])


def _sum_laws(left: NDArray[np.int64], right: NDArray[np.int64]) -> exact.OutputPair:
    """Of the sum in whole units: prices 2, 5 and 20 for epsilons 0.2, 0.5 and 2."""
    prices = np.array([int(10 * EPSILONS[level]) for level in LEVELS])
    noise = discrete_laplace(30.0)  # a range of 3 in units of a tenth
    return _apart(noise, int(prices @ left), int(prices @ right))


def _no_weights() -> AuditCase:
    """The noise of the most generous, and everybody's value counts in full."""
    left, right = 0, 20 * 3
    noise = discrete_laplace(30.0)
    return AuditCase(
        name="stretching without weights, strict",
        claimed=(float(EPSILONS["strict"]), 0.0),
        draw=partial(_laplace, epsilon=2.0, sensitivity=60),
        left=left,
        right=right,
        laws=lambda: _apart(noise, left, right),
        broken=True,
        samples=20_000,
        why="noise for the open level, but strict values count as much: true epsilon 2",
    )


# ── sampling ──────────────────────────────────────────────────────────────────────────────────


def _sampling() -> list[AuditCase]:
    limits = {level: pure_dp(epsilon) for level, epsilon in EPSILONS.items()}
    sample = personalized_sampling(pure_dp(2), limits)
    rates = {level: float(rate) for level, rate in sample.rates}
    return [
        _case(
            "sampling",
            level,
            partial(_sampled, sample),
            _present(level),
            partial(_sample_laws, rates),
            samples=200_000,
        )
        for level in LEVELS
    ]


def _present(level: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return LEVELS, tuple(name for name in LEVELS if name != level)


def _sampled(sample: PersonalizedSampling, people: tuple[str, ...], n: int, seed: int) -> object:
    bits = seeded_rng(seed)
    taking = sample.draw(np.tile(np.array(people), n), rng=bits).reshape(n, len(people))
    return laplace(sensitivity=1, epsilon=2).release(taking.sum(axis=1), rng=bits)


def _sample_laws(
    rates: Mapping[str, float], left: tuple[str, ...], right: tuple[str, ...]
) -> exact.OutputPair:
    """All coins listed: a mixture of counts with noise, cut where its tails are alike."""
    noise = discrete_laplace(0.5)

    def law(people: tuple[str, ...]) -> Floats:
        total = np.zeros(len(LEVELS) + 1)
        for coins in itertools.product((0, 1), repeat=len(people)):
            chance = math.prod(
                rates[who] if coin else 1 - rates[who]
                for coin, who in zip(coins, people, strict=True)
            )
            total += chance * noise.shift(sum(coins)).clamp(0, len(LEVELS)).mass
        return total

    return exact.OutputPair(
        outcomes=range(len(LEVELS) + 1),
        left=law(left),
        right=law(right),
        error=noise.missing,
    )


def _linear_rates() -> AuditCase:
    """Rates epsilon / t: amplification by sampling is not linear."""
    rates = {level: float(epsilon / 2) for level, epsilon in EPSILONS.items()}
    left, right = _present("strict")
    return AuditCase(
        name="sampling at rates epsilon / t, strict",
        claimed=(float(EPSILONS["strict"]), 0.0),
        draw=partial(_sampled_at, rates),
        left=left,
        right=right,
        laws=lambda: _sample_laws(rates, left, right),
        broken=True,
        why="a rate of 0.1 at epsilon 2 costs ln(1 + 0.1 (e^2 - 1)) = 0.49, not 0.2",
    )


def _sampled_at(rates: Mapping[str, float], people: tuple[str, ...], n: int, seed: int) -> object:
    bits = seeded_rng(seed)
    taking = sum(bernoulli(Fraction(rates[who]), n, bits).astype(np.int64) for who in people)
    return laplace(sensitivity=1, epsilon=2).release(taking, rng=bits)


def _told_size() -> AuditCase:
    """A base that is private under replacement only: a mean whose number of people is exact."""
    left, right = _present("strict")
    rate = float(np.expm1(0.2) / np.expm1(2))
    return AuditCase(
        name="sampling with the size told, strict",
        claimed=(float(EPSILONS["strict"]), 0.0),
        draw=_sizes,
        left=left,
        right=right,
        laws=lambda: exact.pair({0: 1 - rate, 1: rate}, {0: 1.0}),
        broken=True,
        why="the size of the sample tells who took part: no epsilon at all (T13, M33)",
    )


def _sizes(people: tuple[str, ...], n: int, seed: int) -> NDArray[np.int64]:
    rate = Fraction(float(np.expm1(0.2) / np.expm1(2)))
    # Everybody else is known to take part.
    strict = bernoulli(rate, n, seeded_rng(seed)) if "strict" in people else np.zeros(n, np.bool_)
    return strict.astype(np.int64)


# ── the personalized exponential mechanism ────────────────────────────────────────────────────


def _counting() -> list[AuditCase]:
    mechanism = personalized_count(_REPLACED)
    return [
        _case(
            "personal count",
            level,
            partial(_released, mechanism, _CROWD),
            (_zeros(level, 0), _zeros(level, 1)),
            _count_laws,
        )
        for level in LEVELS
    ]


_CROWD = (*LEVELS, *(["strict"] * 7))


def _zeros(level: str, value: int) -> NDArray[np.int64]:
    """Nobody has the property, but for one person of the level or not."""
    having = np.zeros(len(_CROWD), dtype=np.int64)
    having[LEVELS.index(level)] = value
    return having


def _count_laws(left: NDArray[np.int64], right: NDArray[np.int64]) -> exact.OutputPair:
    return exact.pair(_reached(left, weight=0.5), _reached(right, weight=0.5), error=1e-15)


def _reached(having: NDArray[np.int64], *, weight: float) -> dict[int, float]:
    """By our own search of the cheapest people, not by the mechanism's."""
    budgets = np.array([float(EPSILONS[level]) for level in _CROWD])
    ones, zeros = np.sort(budgets[having == 1]), np.sort(budgets[having == 0])
    count = int(having.sum())
    scores = [
        -float(zeros[: max(r - count, 0)].sum() + ones[: max(count - r, 0)].sum())
        for r in range(len(having) + 1)
    ]
    return outputs.exponential(scores, weight=weight)


def _without_half() -> AuditCase:
    """M34 as misread: the exponent without its half."""
    left, right = _zeros("strict", 0), _zeros("strict", 1)
    return AuditCase(
        name="personal count without the half, strict",
        claimed=(float(EPSILONS["strict"]), 0.0),
        draw=_choices,
        left=left,
        right=right,
        laws=lambda: exact.pair(
            _reached(left, weight=1.0), _reached(right, weight=1.0), error=1e-15
        ),
        broken=True,
        samples=2_000_000,
        why="the sum of the weights moves too: half of the exponent is for it (T12)",
    )


def _choices(having: NDArray[np.int64], n: int, seed: int) -> NDArray[np.int64]:
    """A simulation, with a plain seeded generator."""
    law = _reached(having, weight=1.0)
    return np.random.default_rng(seed).choice(list(law), n, p=list(law.values()))


def _quantiles() -> list[AuditCase]:
    mechanism = personalized_quantile(_REPLACED, quantile=Fraction(1, 2), lower=0, upper=4)
    return [
        _case(
            "personal quantile",
            level,
            partial(_released, mechanism, LEVELS),
            _values(level, 4),
            partial(_median_laws, mechanism),
        )
        for level in LEVELS
    ]


def _median_laws(
    mechanism: PersonalizedQuantile, left: NDArray[np.int64], right: NDArray[np.int64]
) -> exact.OutputPair:
    laws = (dict(enumerate(mechanism.probabilities(x, LEVELS).tolist())) for x in (left, right))
    return exact.pair(*laws, error=1e-15)


# ── partitions ────────────────────────────────────────────────────────────────────────────────

_BUDGETS = tuple(float(EPSILONS[level]) for level in ("strict", "usual", "open", "open"))


def _partitions() -> list[AuditCase]:
    """Two runs, each counted with the smallest budget in it."""
    runs = privacy_aware(_BUDGETS, runs=2)
    made = []
    for level in LEVELS:
        person = LEVELS.index(level)
        place = next(i for i, part in enumerate(runs.parts) if person in part)
        everyone = tuple(len(part) for part in runs.parts)
        without = tuple(size - (i == place) for i, size in enumerate(everyone))
        made.append(
            _case(
                "partition",
                level,
                partial(_runs, runs.epsilons),
                (everyone, without),
                partial(_run_laws, runs.epsilons[place], place),
                samples=200_000,
            )
        )
    return made


def _runs(epsilons: tuple[float, ...], sizes: tuple[int, ...], n: int, seed: int) -> NDArray[Any]:
    bits = seeded_rng(seed)
    counts = [
        laplace(sensitivity=1, epsilon=epsilon).release(np.full(n, size), rng=bits)
        for epsilon, size in zip(epsilons, sizes, strict=True)
    ]
    return np.column_stack(counts)


def _run_laws(
    epsilon: float, place: int, left: tuple[int, ...], right: tuple[int, ...]
) -> exact.OutputPair:
    """The other run has the same law on both inputs, and is independent."""
    noise = discrete_laplace(1 / epsilon)
    return _apart(noise, left[place], right[place])


def _mean_of_run() -> AuditCase:
    """A run used with the mean of its budgets instead of the smallest."""
    mean = (float(EPSILONS["strict"]) + float(EPSILONS["open"])) / 2
    noise = discrete_laplace(1 / mean)
    return AuditCase(
        name="partition at the mean budget, strict",
        claimed=(float(EPSILONS["strict"]), 0.0),
        draw=partial(_laplace, epsilon=mean, sensitivity=1),
        left=2,
        right=1,
        laws=lambda: _apart(noise, 2, 1),
        broken=True,
        samples=20_000,
        why="everybody in a run pays what the run is used with: true epsilon 1.1",
    )


# ── all of them ───────────────────────────────────────────────────────────────────────────────


def _apart(noise: LatticeDistribution, left: int, right: int) -> exact.OutputPair:
    """Laplace noise around two points; beyond them the likelihood ratio is constant."""
    low, high = min(left, right), max(left, right)
    return exact.pair(noise.shift(left).clamp(low, high), noise.shift(right).clamp(low, high))


def _laplace(value: int, n: int, seed: int, *, epsilon: float, sensitivity: int) -> object:
    mechanism = laplace(sensitivity=sensitivity, epsilon=epsilon)
    return mechanism.release(np.full(n, value), rng=seeded_rng(seed))


def _case(
    name: str,
    level: str,
    draw: Any,
    inputs: tuple[Any, Any],
    laws: Any,
    *,
    samples: int = ONE_BY_ONE,
) -> AuditCase:
    left, right = inputs
    return AuditCase(
        name=f"{name}, {level}",
        claimed=pure_dp(EPSILONS[level]),
        draw=draw,
        left=left,
        right=right,
        laws=lambda: laws(left, right),
        samples=samples,
    )
