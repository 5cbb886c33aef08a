"""Private gradient descent for people with budgets of their own: by sampling or by clipping (M37).

Stricter levels take part less often, or with shorter gradients. The noise is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personal import PersonalGuarantee, personal
from discreet.core import events
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.relation import Relation
from discreet.models.sgd.budget import Budget, cost, noise_for
from discreet.models.sgd.features import Steps
from discreet.models.sgd.objectives import Floats
from discreet.models.sgd.train import RATE_BITS, Batch, Descent, follow
from discreet.noise.bits import Bits
from discreet.noise.coins import packed_bernoulli

Method: TypeAlias = Literal["sampling", "clipping"]

_SAFE = 1 - 2.0**-40  # more than rounding can add to a product
_PARTS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalDescent:
    """A run, and how often and how strongly each level takes part in it.

    Theorem: a record of level l costs its person ``run.steps`` Poisson samples, of rate
        ``rates[l]``, of Gaussian noise that is ``run.noise / clips[l]`` times its length, under
        add/remove.
    Proof: coins are drawn for each record with the rate of its level; its contribution is at most
        ``clips[l]`` times the clipping norm long (whole numbers, rounded down). Given the
        parameters so far, a step is that mechanism; then `train.descend`.
    Source: Boenisch et al. 2023 (individualised DP-SGD); Muehl 2021.
    """

    run: Descent
    rates: Mapping[str, Fraction]
    clips: Mapping[str, Fraction]
    """Parts of the clipping norm, at most 1."""

    @property
    def guarantee(self) -> PersonalGuarantee:
        """What each level pays."""
        return personal(
            {
                name: cost(
                    relation=Relation.ADD_REMOVE,
                    rate=rate,
                    steps=self.run.steps,
                    noise=self.run.noise / self.clips[name],
                )
                for name, rate in self.rates.items()
            }
        )


def personal_descent(
    run: Descent, limits: Mapping[str, Guarantee], people: Mapping[str, float], *, method: Method
) -> PersonalDescent:
    """A run in which every level spends what it may.

    ``run.rate`` is the rate of the most generous level; ``run.noise`` and ``run.rows`` are set
    here: the least noise that keeps that level's limit, and the rows that a step is divided by.
    ``people``: public numbers of records of each level.
    """
    names = sorted(limits)
    if sorted(people) != names or not names:
        raise InvalidArgument("limits and people must name the same levels.")
    if method not in ("sampling", "clipping"):
        raise InvalidArgument(f"method must be sampling or clipping, got {method!r}.")
    needed = {name: _noise(limits[name], run) for name in names}
    noise = min(needed.values())
    rates, clips = dict.fromkeys(names, run.rate), dict.fromkeys(names, Fraction(1))
    for name in names:
        if needed[name] == noise:
            continue
        if method == "clipping":
            clips[name] = Fraction(int(noise / needed[name] * _PARTS), _PARTS)
        else:
            rates[name] = _rate(limits[name], replace(run, noise=noise))
    if min(*rates.values(), *clips.values()) <= 0:
        raise NotCertified("A level's limit is too small to take part at all.")
    # On average a step sees this part of all records at the common rate.
    rows = float(sum(people[n] * float(rates[n] / run.rate) for n in names))
    return PersonalDescent(run=replace(run, noise=noise, rows=rows), rates=rates, clips=clips)


def descend_personal(
    steps: Steps, targets: Floats, levels: ArrayLike, *, plan: PersonalDescent, bits: Bits
) -> Floats:
    """The parameters after a personal run on mapped rows, one record a person.

    Theorem and proof: `PersonalDescent`.
    """
    run = plan.run
    chosen = np.asarray(levels).astype(str)
    if chosen.shape != (len(steps),) or not set(np.unique(chosen).tolist()) <= set(plan.rates):
        raise InvalidArgument(f"levels must name one of {', '.join(plan.rates)} for each row.")
    batch = Batch(steps=steps, targets=targets, run=run)
    groups = {name: np.flatnonzero(chosen == name) for name in plan.rates}
    for name, rows in groups.items():
        batch.caps[rows] = np.floor(batch.caps[rows] * float(plan.clips[name]) * _SAFE)

    def noisy_sum(theta: Floats) -> NDArray[np.int64]:
        zeros = np.zeros(len(theta), dtype=np.int64)
        noise: NDArray[np.int64] = run.mechanism.release(zeros, bits=bits)
        return batch.sum(theta, _drawn(groups, plan, bits)) + noise

    return follow(noisy_sum, run=run, features=steps.shape[1])


def _drawn(
    groups: Mapping[str, NDArray[np.intp]], plan: PersonalDescent, bits: Bits
) -> NDArray[np.intp]:
    parts = []
    for name, rows in groups.items():
        if plan.rates[name] == 1 or not len(rows):
            parts.append(rows)
            continue
        packed = packed_bernoulli(plan.rates[name], rows=1, columns=len(rows), bits=bits)[0]
        drawn = np.unpackbits(packed, count=len(rows), bitorder="little")
        parts.append(rows[drawn.view(np.bool_)])
    return np.concatenate(parts)


def _noise(limit: Guarantee, run: Descent) -> Fraction:
    epsilon, delta = limit_target(limit)
    budget = Budget.of(
        relation=Relation.ADD_REMOVE, epsilon=epsilon, delta=delta, rho=None, mu=None
    )
    return noise_for(budget, rate=run.rate, steps=run.steps)


def _rate(limit: Guarantee, run: Descent) -> Fraction:
    """The largest rate, within a part of 2**-10, at which the run keeps a limit."""
    epsilon, delta = limit_target(limit)

    def kept(rate: Fraction) -> bool:
        spent = cost(relation=Relation.ADD_REMOVE, rate=rate, steps=run.steps, noise=run.noise)
        return spent.delta(float(epsilon)) <= float(delta)

    unit = Fraction(1, 1 << RATE_BITS)
    low, high = Fraction(0), run.rate
    while high - low > max(unit, high / (1 << 10)):
        middle = Fraction(int((low + high) / 2 / unit)) * unit
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def limit_target(limit: Guarantee) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a level's limit."""
    if limit.relation is not Relation.ADD_REMOVE:
        raise Unsupported("Personal descent is accounted under Relation.ADD_REMOVE only.")
    match limit.event:
        case events.Approx(epsilon, delta) if delta > 0:
            return epsilon, delta
        case _:
            raise Unsupported("A level's limit must be discreet.approx(epsilon, delta) here.")
