"""Theil-Sen for one regressor: private medians of what pairs of rows predict (Alabi et al. 2022).

Rows are matched at random. The line through a pair predicts the target at two points; the private
medians of these predictions are the answer. Robust, and no worse for wide bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import root_down
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.mechanisms.selection import exponential_mechanism
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import Ints, RowLattice, RowMap
from discreet.models.regression._row_mapping import CELLS, cell_counts, median
from discreet.models.regression._row_sources import ArrayRows, RowSource, empty
from discreet.models.regression._task import FitStage, NoiseScales, RegressionFit, RegressionTask
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget

LOW, HIGH = "lower quartile of the feature", "upper quartile of the feature"
AT_LOW, AT_HIGH = "prediction at the lower quartile", "prediction at the upper quartile"


@dataclass(frozen=True, slots=True, kw_only=True)
class TheilSen:
    """Private medians of the predictions of random pairs, at two private quartiles.

    ``matchings``: how often all rows are matched; more of them waste less of the rows, at no cost.
    """

    # Theorem: epsilon-DP (or rho-zCDP, for a budget in rho), under add/remove and replace-one.
    # Proof: docs/theory/regression-methods.md. Uniform matchings of n and of n + 1 rows can be
    #   drawn together such that they differ in one pair, which is there, gone or replaced: a median
    #   score `2 below - pairs` moves by at most two for each matching. Mixing over matchings keeps
    #   pure and concentrated bounds, because both are quasi-convex in the pair of laws.
    # Source: Alabi, McMillan, Sarathy, Smith, Vadhan 2022.
    # Needs: one feature; rows in memory.

    name: str = "theil_sen"
    matchings: int = 8

    def plan(self, task: RegressionTask, amount: QueryBudget) -> NoiseScales:
        """A fifth for the quartiles, the rest for the two predictions."""
        if task.features != 1:
            raise InvalidArgument(f"Theil-Sen takes one feature, got {task.features}.")
        many = count("matchings", self.matchings)
        pair = task.choice(2 * many, 2 * many)
        shares = (Fraction(1, 10), Fraction(1, 10), Fraction(2, 5), Fraction(2, 5))
        quartile = task.choice(3, 4)
        parts = tuple(
            FitStage(name=name, sensitivity=move, share=share)
            for name, move, share in zip(
                (LOW, HIGH, AT_LOW, AT_HIGH), (quartile, quartile, pair, pair), shares, strict=True
            )
        )
        each: list[events.Event]
        if amount.rho is not None:
            prices = [root_down(8 * amount.rho * share) for share in shares]
            cost: events.Event = events.ZcdpEvent(amount.rho)
            each = [events.ZcdpEvent(price**2 / 8) for price in prices]
        else:
            whole = Fraction(amount.epsilon or 0)
            prices = [whole * share for share in shares]
            cost = events.PureEvent(whole)
            each = [events.PureEvent(price) for price in prices]
        mechanisms = tuple(
            exponential_mechanism(
                sensitivity=part.sensitivity.l1, epsilon=price, relation=task.relation
            )
            for part, price in zip(parts, prices, strict=True)
        )
        return NoiseScales(
            parts=parts,
            mechanisms=mechanisms,
            costs=tuple(Guarantee(one, task.relation) for one in each),
            declared=Guarantee(cost, task.relation),
        )

    def fit(
        self, rows: RowSource, task: RegressionTask, *, noises: NoiseScales, rng: RandomSource
    ) -> RegressionFit:
        """Two points of the line."""
        if not isinstance(rows, ArrayRows):
            raise InvalidArgument("Theil-Sen takes rows in memory: they are matched at random.")
        low, high = float(task.lower[0]), float(task.upper[0])
        cells = rows.add_up(partial(_cells, task), start=empty(CELLS))
        ends = []
        for name, level in ((LOW, 1), (HIGH, 3)):
            (mechanism,) = noises.choices(name)
            chosen = mechanism.choose(quartile_scores(cells, level), rng)
            ends.append(low + (chosen + 0.5) * ((high - low) / CELLS))
        first, last = min(ends), max(ends)
        if last - first < (high - low) / CELLS:
            last = first + (high - low) / CELLS
        pairs = match_pairs(rows, self.matchings, rng)
        values = []
        for name, point in ((AT_LOW, first), (AT_HIGH, last)):
            (mechanism,) = noises.choices(name)
            found = predict_at(pairs, point, task)
            counts = cell_counts(found, *(np.array([end]) for end in task.target))[0]
            values.append(median(counts, *task.target, mechanism=mechanism, rng=rng))
        return line(task, (first, last), (values[0], values[1]))


def quartile_scores(cells: Ints, level: int) -> Ints:
    """Scores of all cells for the quantile ``level / 4``: a row moves them by at most three."""
    upto = np.cumsum(cells)
    below, many = upto - cells, upto[-1]
    gap = np.maximum(4 * below - level * many, level * many - 4 * upto)
    return np.asarray(-np.maximum(0, gap), dtype=np.int64)


def match_pairs(rows: ArrayRows, matchings: int, rng: RandomSource) -> Floats:
    """Pairs ``(x, y, x', y')`` of uniformly random matchings of all rows but one, if n is odd."""
    found, rows = [], rows.used()
    x, y = np.asarray(rows.x[:, 0], dtype=np.float64), np.asarray(rows.y[:, 0], dtype=np.float64)
    for _ in range(matchings):
        order = shuffle_order(len(x), rng)
        half = len(x) // 2
        one, other = order[:half], order[half : 2 * half]
        found.append(np.column_stack((x[one], y[one], x[other], y[other])))
    return np.concatenate(found)


def shuffle_order(many: int, rng: RandomSource) -> Ints:
    """A uniform order: words without ties have one, whatever the places; with a tie, draw again."""
    if many**2 >> rng.width:
        raise OutOfDomain("There are too many rows for these bits: ties would go on.")
    while True:
        words = rng.words(many)
        order = np.argsort(words, kind="stable")
        if (np.diff(words[order]) > 0).all():
            return order


def predict_at(pairs: Floats, point: float, task: RegressionTask) -> Floats:
    """What the line through each pair predicts at the point; pairs with equal features say nothing.

    Values are clipped to the declared bounds first, and predictions are clipped by the counting.
    """
    x, other_x = (np.clip(pairs[:, i], task.lower[0], task.upper[0]) for i in (0, 2))
    y, other_y = (np.clip(pairs[:, i], *task.target) for i in (1, 3))
    apart = x != other_x
    with np.errstate(over="ignore"):
        slope = (other_y[apart] - y[apart]) / (other_x[apart] - x[apart])
        found = y[apart] + slope * (point - x[apart])
    return np.asarray(np.clip(np.nan_to_num(found), *task.target))[:, None]


def line(
    task: RegressionTask, points: tuple[float, float], values: tuple[float, float]
) -> RegressionFit:
    """The fit of the line through two points."""
    slope = (values[1] - values[0]) / (points[1] - points[0])
    middle = float(task.middle[0])
    level = values[0] + slope * (middle - points[0])
    grid = RowLattice.of(features=1, intercept=0.0)
    mapped = RowMap(
        lattice=grid,
        mapping="ball",
        lower=task.lower,
        upper=task.upper,
        center=task.middle,
        scale=task.half,
        radius=1 + 2.0**-40,
        target_center=np.array([level]),
        target_half=np.array([task.target_half]),
    )
    theta = np.array([slope * task.half[0] * mapped.radius / task.target_half])
    return RegressionFit(map=mapped, theta=theta)


def _cells(task: RegressionTask, x: Floats, _: Floats) -> Ints:
    return cell_counts(x, task.lower, task.upper).ravel()
