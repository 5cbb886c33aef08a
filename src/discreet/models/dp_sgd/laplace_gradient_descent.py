"""Gradient descent with Laplace noise under pure privacy, accounted as a whole run (C37, C41).

What the schedule of the thesis wanted to be: every step adds discrete Laplace noise to an exact sum
of gradients in whole numbers, the best noise for the rates under one epsilon for all steps. So all
iterates are covered, and the average, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.models.dp_sgd._laplace_rates import PowerSchedule, best_laplace_scales
from discreet.models.dp_sgd._output_perturbation import longest_gradient, read_records
from discreet.models.dp_sgd.losses import Floats, Loss
from discreet.models.dp_sgd.schedule_analysis import undrawn_epsilons
from discreet.models.dp_sgd.train import (
    FEATURE_BITS,
    SlopeGrid,
    exact_margins,
    piece_error,
    representable,
    whole_slopes,
)
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import subset

# Slopes in steps of 2**-17, rows in steps of 2**-13 of their length: products of a chunk of rows
# add up to less than 2**53, exactly.
_SLOPES = SlopeGrid(clip=1.0)
_CHUNK = 1 << 12
_NO_CAP = 2.0**26


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceGradientDescent(Mechanism):
    """A run with Laplace noise in every step. Made by `laplace_descent`."""

    objective: Loss
    features: int
    rows: int
    row_norm: float
    """In L1."""
    batch: int
    rates: tuple[float, ...]
    steps: tuple[AdditiveMechanism, ...]
    """The noise of each step, in whole numbers of ``unit``."""
    unit: float
    longest: int
    """The L1 norm of a record's gradient, in units, at most."""
    average: bool
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs: all iterates together."""
        parts: list[tuple[events.Event, int]] = []
        for event, times in Counter(step.guarantee.event for step in self.steps).items():
            if self.batch < self.rows:
                drawn = events.SampledWithoutReplacementEvent(self.batch, self.rows, event)
                parts.append((drawn, times))
            else:
                parts.append((event, times))
        return Guarantee(events.ComposedEvent(tuple(parts)), self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise that all steps add to a parameter of the last iterate.

        Of what the loss does with it nothing is known; where it is curved it is less.
        """
        moved = (rate * step.std for rate, step in zip(self.rates, self.steps, strict=True))
        return math.hypot(*moved) * self.unit / self.batch

    def certify(self) -> Certificate:
        """Recompute the divergence of each kind of step from its exact law."""
        kinds = {step.guarantee.event: step for step in self.steps}
        checks = [check for step in kinds.values() for check in step.certify().checks]
        return Certificate(
            mechanism="laplace descent", guarantee=self.guarantee, checks=tuple(checks)
        ).demand()

    def release(self, x: object, y: object, *, rng: RandomSource | None = None) -> Floats:
        """The last iterate, or the average of the iterates, weighted by their rates."""
        *_, last = self.iterates(x, y, rng=rng)
        if not self.average:
            return last[0]
        return last[1] / math.fsum(self.rates)

    def iterates(
        self, x: object, y: object, *, rng: RandomSource | None = None
    ) -> Iterator[tuple[Floats, Floats]]:
        """Every iterate, and the sum of those before it times their rates: all are covered."""
        rows, targets = read_records(
            self.objective,
            x,
            y,
            features=self.features,
            row_norm=self.row_norm,
            rows=self.rows if self.relation is NeighboringRelation.REPLACE_ONE else None,
            norm="l1",
            bits=FEATURE_BITS,
        )
        source = resolve_rng(rng)
        theta = np.zeros(self.objective.dimension(self.features))
        total = np.zeros_like(theta)
        for rate, step in zip(self.rates, self.steps, strict=True):
            drawn = None if self.batch == self.rows else subset(self.rows, self.batch, source)
            part = (rows, targets) if drawn is None else (rows[drawn], targets[drawn])
            noisy = step.release(self._sum(theta, *part), rng=source)
            slope = noisy * (self.unit / self.batch) + self.objective.penalty_gradient(theta)
            total = total + rate * theta
            theta = theta - rate * slope
            yield theta, total

    def _sum(self, theta: Floats, x: Floats, y: Floats) -> Ints:
        """The sum of gradients in whole numbers; every record's is checked in whole numbers.

        Theorem: one record contributes at most ``longest`` in L1, and nothing to what the others
            contribute.
        Proof: the first by the check, whatever doubles did. The second because margins are exact
            but for one addition, slopes are read off a table, and products and sums are exact.
        """
        total = np.zeros(len(theta), dtype=np.int64)
        place = representable(theta, self.features)
        slopes_of = whole_slopes(self.objective, _SLOPES)
        step = self.unit * 2.0**_SLOPES.slope_bits
        for start in range(0, len(x), _CHUNK):
            rows = x[start : start + _CHUNK]
            margins = exact_margins(self.objective, place, rows)
            caps = np.full(len(rows), _NO_CAP)
            slopes = slopes_of(margins, y[start : start + _CHUNK], caps)
            slopes = slopes.reshape(len(rows), self.objective.outputs)
            whole = rows / step
            kept = np.abs(slopes).sum(axis=1) * np.abs(whole).sum(axis=1) <= self.longest
            total += (slopes[kept].T @ whole[kept]).ravel().astype(np.int64)
        return total


def laplace_descent(  # noqa: PLR0913 - each has a name
    objective: Loss,
    *,
    features: int,
    public_rows: int,
    row_norm: float,
    epsilon: Number,
    steps: int = 30,
    schedule: PowerSchedule | None = None,
    batch: int | None = None,
    average: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> LaplaceGradientDescent:
    """Gradient descent under pure epsilon, with the best Laplace noise for its rates.

    ``row_norm`` is in L1; longer rows are shrunk. ``batch`` records are drawn for each step, in
    secret and afresh, by default all (under replace-one only). ``public_rows`` is a public number:
    under replace-one that of the records, under add/remove roughly that. The schedule's ``growth``
    plays no part.

    Theorem: epsilon-DP under ``relation`` for all iterates and for whatever is computed from them.
    Proof: given the iterates before it, a step is discrete Laplace noise on whole numbers that a
        record moves by at most ``longest``, a replaced one by twice that, on a batch drawn without
        replacement; `trajectory` adds them up, and shares are such that the sum is epsilon.
    Source: C36 with C37 in the place of its accounting, C41 for the noise.
    Needs: a loss with bounded gradient.
    """
    width, n = count("features", features), count("public_rows", public_rows)
    taken = n if batch is None else count("batch", batch)
    piece_error(width)  # refuses too many features before a row is read
    if taken > n:
        raise InvalidArgument(f"batch must not exceed rows={n}, got {taken}.")
    if relation not in (NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE):
        raise RelationMismatch(f"relation must be add/remove or replace-one, got {relation!r}.")
    if taken < n and relation is not NeighboringRelation.REPLACE_ONE:
        raise RelationMismatch("batch needs a public number of rows: use REPLACE_ONE.")
    budget = positive("epsilon", epsilon)
    g = longest_gradient(objective, float(positive("row_norm", row_norm)), norm="l1")
    plan = schedule or PowerSchedule(start=1 / objective.smoothness(row_norm))
    rates = plan.rates(steps)
    unit = 2.0 ** (math.frexp(row_norm)[1] - FEATURE_BITS - _SLOPES.slope_bits)
    # Rounded slopes may be a step too long for each margin.
    room = (objective.outputs + 1) * 2.0**-_SLOPES.slope_bits * row_norm
    longest = math.ceil((g + room) / unit)
    moved = longest * (2 if relation is NeighboringRelation.REPLACE_ONE else 1)
    # Shares of the budget, turned into what a step may spend on a secret batch; rounded outward.
    shares = float(budget) / best_laplace_scales(rates, sensitivity=1.0, epsilon=1.0)
    allowed = undrawn_epsilons(shares, rows=n, batch=taken) * (1 - 1e-9)
    scales = [math.ceil(moved / part) for part in allowed.tolist()]
    made = {
        scale: laplace(sensitivity=moved, scale=scale, domain="integers", relation=relation)
        for scale in set(scales)
    }
    return LaplaceGradientDescent(
        objective=objective,
        features=width,
        rows=n,
        row_norm=float(row_norm),
        batch=taken,
        rates=tuple(rates.tolist()),
        steps=tuple(made[scale] for scale in scales),
        unit=unit,
        longest=longest,
        average=average,
        relation=relation,
    )
