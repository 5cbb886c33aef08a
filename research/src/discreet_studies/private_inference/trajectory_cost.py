"""What a whole run costs: all iterates, and whatever is computed from them (C37).

Given the iterate before it, a step is a Laplace release of a gradient, and what counts is how far
two records' gradients lie apart *at that iterate*. Steps compose; secret draws amplify.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd._laplace_rates import (
    GradientBound,
    marginal_epsilons,
    noise_scales,
    positives,
)


def trajectory(
    scales: ArrayLike, *, sensitivity: float, batch: int | None = None, rows: int | None = None
) -> Guarantee:
    """The guarantee of every iterate of a run together, under replace-one.

    ``scales`` is the Laplace noise of each step in units of the gradient, ``sensitivity`` the L1
    distance of two records' gradients at one theta. With ``batch`` of a public number of ``rows``
    the noise is on the sum over a batch, drawn afresh and in secret for every step, without
    replacement inside it.
    """
    # Theorem: step t is a Laplace mechanism with `epsilon_t = D / gamma_t`; on a secret batch its
    #   profile is that of sampling without replacement; steps compose adaptively.
    # Source: Zhu, Dong, Wang 2022 (both directions in one profile). C37.
    # Needs: draws that are fresh in every step and never published: not shuffled passes.
    gamma = positives("scales", scales)
    unit = positive("sensitivity", sensitivity)
    # Equal steps are counted, not listed: composition then costs no more than one of them.
    steps = Counter(_rounded_down(float(scale)) / unit for scale in gamma)
    parts = []
    for scale, times in steps.items():
        event: events.Event = events.LaplaceEvent(scale)
        if batch is not None or rows is not None:
            event = _drawn(event, batch, rows)
        parts.append((event, times))
    return Guarantee(events.ComposedEvent(tuple(parts)), NeighboringRelation.REPLACE_ONE)


def _drawn(event: events.Event, batch: int | None, rows: int | None) -> events.Event:
    if batch is None or rows is None:
        raise InvalidArgument("sampling takes both batch and rows.")
    return events.SampledWithoutReplacementEvent(count("batch", batch), count("rows", rows), event)


def _rounded_down(scale: float) -> Fraction:
    """A scale that was computed in doubles, a few units in the last place smaller."""
    return Fraction(scale) * (1 - Fraction(1, 1 << 48))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one and the same run costs, by who looks and by how it is accounted (E12)."""

    steps: int
    marginal: float
    """The last iterate alone, by the theorem of the thesis."""
    basic: float
    """All iterates, epsilons added."""
    composed: float
    """All iterates, by their loss distribution at delta."""
    sampled_basic: float
    """All iterates, one secret record a step, epsilons added."""
    sampled_composed: float
    """The same by the loss distribution at delta, for replaced records."""
    poisson_composed: float
    """The same for Poisson draws and added records: another sampler, for comparison."""

    @property
    def last(self) -> float:
        """The smallest proved epsilon of the last iterate at delta zero."""
        return min(self.marginal, self.basic, self.sampled_basic)


def costs(
    rates: ArrayLike,
    *,
    epsilon: float,
    diameter: float,
    rows: int,
    delta: float,
    growths: ArrayLike | None = None,
) -> Costs:
    """The schedule of the thesis, accounted in all ways (E12)."""
    eta = positives("rates", rates)
    scales = noise_scales(eta, diameter=diameter, epsilon=epsilon, growths=growths)
    bound = GradientBound(dimension=1, diameter=diameter)
    whole = trajectory(scales, sensitivity=diameter)
    drawn = trajectory(scales, sensitivity=diameter, batch=1, rows=rows)
    poisson = Guarantee(
        events.compose(
            events.SampledEvent(Fraction(1, rows), event) for event in _repeated(whole.event)
        )
    )
    return Costs(
        steps=eta.size,
        marginal=float(marginal_epsilons(eta, scales=scales, bound=bound)[-1]),
        basic=whole.epsilon(),
        composed=whole.epsilon(delta),
        sampled_basic=drawn.epsilon(),
        sampled_composed=drawn.epsilon(delta),
        poisson_composed=poisson.epsilon(delta),
    )


def _repeated(event: events.Event) -> Sequence[events.Event]:
    assert isinstance(event, events.ComposedEvent)  # noqa: S101 - made by `trajectory`
    return [part for part, times in event.parts for _ in range(times)]


def average_loss(steps: int) -> float:
    """How many epsilons the average of a run costs at least: linear loss, constant rate (M27)."""
    # Theorem: the loss in the tail is the move of the average over its slowest-falling noise,
    #   `(N - 1)/2 / max_t t (N - t)/N`; it tends to 2.
    # Proof: the average is a constant plus `sum_t t (N - t)/N` times independent Laplace noise; far
    #   out, the ratio of the densities of a sum of Laplace variables and of its shift tends to the
    #   exponential of the shift over the largest scale.
    many = count("steps", steps, minimum=2)
    slowest = max(t * (many - t) for t in range(1, many)) / many
    return (many - 1) / 2 / slowest


def harmonic(steps: int) -> float:
    """The cost of all iterates, in epsilons: constant rate, constant promise (M26)."""
    return math.fsum(1 / t for t in range(1, count("steps", steps) + 1))
