"""Gradient descent with Laplace noise under pure privacy, accounted as a whole run.

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
from discreet.mechanisms._drawn import EvenWords, Handed, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, DrawCheck, Mechanism
from discreet.models.dp_sgd._laplace_rates import PowerSchedule, best_laplace_scales
from discreet.models.dp_sgd._output_perturbation import (
    distance,
    longest_gradient,
    neighboring_records,
    read_records,
)
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
# Rows so many times as long still have exact sums: 2**(17 + 13 + 6) in a chunk of 2**12.
MOST_TIMES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceGradientDescent(Mechanism):
    """A run of gradient descent with Laplace noise. Made by `laplace_descent`.

    Attributes:
        objective: Loss that is minimized.
        features: Number of features.
        rows: Public number of records.
        row_norm: Largest L1 norm of a row that counts in full. Longer rows weigh less.
        longest_row: Largest L1 norm of a row. Longer rows are shrunk.
        batch: Number of records per step.
        rates: Learning rate of each step.
        steps: Mechanism of each step, in multiples of `unit`.
        unit: Spacing of the gradients.
        longest: Largest L1 norm of a record's gradient, in multiples of `unit`.
        average: Whether the average of the iterates is released.
        relation: Neighboring relation.

    Examples:
        >>> import numpy
        >>> from discreet.models import dp_sgd
        >>> loss = dp_sgd.Logistic(l2=0.1)
        >>> mechanism = dp_sgd.laplace_descent(
        ...     loss, features=1, public_rows=500, row_norm=1, epsilon=1, steps=10
        ... )
        >>> len(mechanism.rates)
        10
    """

    objective: Loss
    features: int
    rows: int
    row_norm: float
    longest_row: float
    batch: int
    rates: tuple[float, ...]
    steps: tuple[AdditiveMechanism, ...]
    unit: float
    longest: int
    average: bool
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release. It covers all iterates together."""
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
        """Standard deviation of the noise that all steps add to one parameter.

        This is an upper bound for a convex loss, whose curvature reduces the noise of earlier
        steps.
        """
        moved = (rate * step.std for rate, step in zip(self.rates, self.steps, strict=True))
        return math.hypot(*moved) * self.unit / self.batch

    def certify(self) -> Certificate:
        """Recompute the guarantee of each kind of step from its exact distribution.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> loss = dp_sgd.Logistic(l2=0.1)
            >>> mechanism = dp_sgd.laplace_descent(
            ...     loss, features=1, public_rows=500, row_norm=1, epsilon=1, steps=10
            ... )
            >>> mechanism.certify().holds
            True
        """
        found = [step.certify() for step in dict.fromkeys(self.steps)]
        return Certificate(
            mechanism="laplace descent",
            guarantee=self.guarantee,
            checks=tuple(check for one in found for check in one.checks),
            drawn=(*(look for one in found for look in one.drawn), *self._moved()),
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        """The sum of the first step, on neighbors of which the first drawn record differs."""
        worst = 0.0
        first = 0 if self.batch == self.rows else int(subset(self.rows, self.batch, EvenWords())[0])
        for records in neighboring_records(self.rows, self.features, self.row_norm):
            seen = []
            for x, y in records:
                noted = [Handed(step) for step in self.steps]
                run = with_stand_in(self, steps=tuple(noted))
                run.release(np.roll(x, first, axis=0), np.roll(y, first), rng=EvenWords())
                seen.append(noted[0].handed.astype(np.float64))
            worst = max(worst, distance(self.steps[0], seen[0] - seen[1]))
        return (moves("one record's target", worst, 1.0),) if worst else ()

    def release(self, x: object, y: object, *, rng: RandomSource | None = None) -> Floats:
        """Run gradient descent on private records and release the result.

        Args:
            x: Features, one row per record. Longer rows than `longest_row` are shrunk.
            y: Target of each record.
            rng: Random source. By default the operating system's.

        Returns:
            The last iterate, or the average of the iterates weighted by their rates.

        Privacy:
            The release satisfies `guarantee` for one record. This method charges no account;
            `OutputPerturbationLogisticRegression` does.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> loss = dp_sgd.Logistic(l2=0.1)
            >>> mechanism = dp_sgd.laplace_descent(
            ...     loss, features=1, public_rows=500, row_norm=1, epsilon=1, steps=10
            ... )
            >>> x = numpy.linspace(-1, 1, 500)[:, None]
            >>> mechanism.release(x, (x[:, 0] > 0).astype(float)).shape
            (1,)
        """
        *_, last = self.iterates(x, y, rng=rng)
        if not self.average:
            return last[0]
        return last[1] / math.fsum(self.rates)

    def iterates(
        self, x: object, y: object, *, rng: RandomSource | None = None
    ) -> Iterator[tuple[Floats, Floats]]:
        """Run gradient descent on private records and yield every iterate.

        Args:
            x: Features, one row per record. Longer rows than `longest_row` are shrunk.
            y: Target of each record.
            rng: Random source. By default the operating system's.

        Yields:
            Each iterate, with the sum of the iterates before it times their rates.

        Privacy:
            All iterates together satisfy `guarantee` for one record.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> loss = dp_sgd.Logistic(l2=0.1)
            >>> mechanism = dp_sgd.laplace_descent(
            ...     loss, features=1, public_rows=500, row_norm=1, epsilon=1, steps=10
            ... )
            >>> x = numpy.linspace(-1, 1, 500)[:, None]
            >>> len(list(mechanism.iterates(x, (x[:, 0] > 0).astype(float))))
            10
        """
        rows, targets = read_records(
            self.objective,
            x,
            y,
            features=self.features,
            row_norm=self.longest_row,
            rows=self.rows if self.relation is NeighboringRelation.REPLACE_ONE else None,
            norm="l1",
            # The grid is that of `row_norm`, however long rows may be.
            bits=FEATURE_BITS + math.frexp(self.longest_row)[1] - math.frexp(self.row_norm)[1],
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
        """The sum of gradients in whole numbers; every record's is checked in whole numbers."""
        # Theorem: one record contributes at most `longest` in L1, and nothing to what the others
        #   contribute.
        # Proof: the first by the check, whatever doubles did. The second because margins are exact
        #   but for one addition, slopes are read off a table, weights are functions of the row
        #   alone, and products and sums are exact.
        total = np.zeros(len(theta), dtype=np.int64)
        place = representable(theta, self.features)
        slopes_of = whole_slopes(self.objective, _SLOPES)
        step = self.unit * 2.0**_SLOPES.slope_bits
        for start in range(0, len(x), _CHUNK):
            rows = x[start : start + _CHUNK]
            margins = exact_margins(self.objective, place, rows)
            whole = rows / step
            lengths = np.abs(whole).sum(axis=1)
            # Slopes of several classes have an L1 norm of up to √2 times the L2 norm of the caps,
            # and rounding adds to it.
            root, room = math.sqrt(min(self.objective.outputs, 2)), self.objective.outputs
            caps = np.floor((self.longest / np.maximum(lengths, 1.0) - room) / root)
            slopes = slopes_of(margins, y[start : start + _CHUNK], caps)
            slopes = slopes.reshape(len(rows), self.objective.outputs)
            kept = np.abs(slopes).sum(axis=1) * lengths <= self.longest
            total += (slopes[kept].T @ whole[kept]).ravel().astype(np.int64)
        return total


def laplace_descent(  # noqa: PLR0913 - each has a name
    objective: Loss,
    *,
    features: int,
    public_rows: int,
    row_norm: float,
    longest_row: float | None = None,
    epsilon: Number,
    steps: int = 30,
    schedule: PowerSchedule | None = None,
    batch: int | None = None,
    average: bool = False,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> LaplaceGradientDescent:
    """Create a mechanism for gradient descent under pure DP.

    Every step adds discrete Laplace noise. The budget is divided among the steps in the best way
    for their rates.

    Args:
        objective: Loss with bounded gradient.
        features: Number of features.
        public_rows: Public number of records; approximate under add/remove.
        row_norm: Largest L1 norm of a row that counts in full. The gradient of a longer row is
            multiplied by a factor of its features alone, so that it is no longer than that.
        longest_row: Largest L1 norm of a row, from `row_norm` to 64 times that. Longer rows are
            shrunk, which moves coefficients. By default `row_norm`.
        epsilon: Privacy loss of the whole run.
        steps: Number of steps.
        schedule: Learning rates. By default the constant rate 1 / smoothness. Its `growth` is not
            used.
        batch: Number of records that are drawn per step, under replace-one only. By default all.
        average: Whether to release the average of the iterates instead of the last one.
        relation: Neighboring relation of the guarantee.

    Returns:
        A mechanism with `release(x, y)`.

    Raises:
        InvalidArgument: An argument is outside its range.
        RelationMismatch: The relation is not supported, or `batch` is given under add/remove.
        Unsupported: The loss has no bounded gradient.

    Privacy:
        epsilon-DP for one record. All iterates are covered.

    Examples:
        >>> import numpy
        >>> from discreet.models import dp_sgd
        >>> loss = dp_sgd.Logistic(l2=0.1)
        >>> mechanism = dp_sgd.laplace_descent(
        ...     loss, features=1, public_rows=500, row_norm=1, epsilon=1, steps=10
        ... )
        >>> round(mechanism.guarantee.epsilon(), 6)
        1.0

    References:
        [Proof](../theory/theorems.md#models.dp_sgd.laplace_gradient_descent.laplace_descent).
    """
    # Theorem: epsilon-DP under `relation` for all iterates and for whatever is computed from them.
    # Proof: given the iterates before it, a step is discrete Laplace noise on whole numbers that a
    #   record moves by at most `longest`, a replaced one by twice that, on a batch drawn without
    #   replacement; `trajectory` adds them up, and shares are such that the sum is epsilon.
    # Source: C36 with C37 in the place of its accounting, C41 for the noise.
    # Needs: a loss with bounded gradient.
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
    most = float(row_norm if longest_row is None else positive("longest_row", longest_row))
    if not row_norm <= most <= MOST_TIMES * row_norm:
        raise InvalidArgument(
            f"longest_row must lie between row_norm and {MOST_TIMES} times that, got {most}."
        )
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
        longest_row=most,
        batch=taken,
        rates=tuple(rates.tolist()),
        steps=tuple(made[scale] for scale in scales),
        unit=unit,
        longest=longest,
        average=average,
        relation=relation,
    )
