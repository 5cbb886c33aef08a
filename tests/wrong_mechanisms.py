"""Mechanisms that are not what they claim: each is one mistake away from one of ours.

Made as a user's code, or a slip in ours, would make them: by subclasses and changed fields. Neither
their certificates nor their audits may come out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.relation import NeighboringRelation
from discreet.intervals._mean import mean_interval
from discreet.intervals._proportion import ProportionInterval, proportion_interval
from discreet.intervals._quantile import QuantileInterval, quantile_interval
from discreet.intervals.statistics import MeanStatistic
from discreet.local.longitudinal import RAPPOR, rappor
from discreet.local.means.local_laplace import LocalLaplace, local_laplace
from discreet.local.means.piecewise import PiecewiseMean, piecewise_mean
from discreet.local.oracles.randomized_response import RandomizedResponse, randomized_response
from discreet.local.oracles.unary_encoding import OptimizedUnary, oue
from discreet.mechanisms.above_threshold import AboveThreshold, above_threshold
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.bin_statistics import BinCounts, bin_statistics, private_bin_counts
from discreet.mechanisms.bounded.mechanism import BoundedOutput, bounded_laplace, clamp_output
from discreet.mechanisms.bounded.spread import PrivateSpread, private_std
from discreet.mechanisms.data_dependent.propose_test_release import (
    ProposeTestRelease,
    propose_test_release,
)
from discreet.mechanisms.data_dependent.sample_and_aggregate import (
    SampleAndAggregate,
    sample_and_aggregate,
)
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    SmoothSensitivity,
    smooth_sensitivity,
)
from discreet.mechanisms.data_dependent.weighted_sensitivity import (
    WeightedSensitivity,
    weighted_sensitivity,
)
from discreet.mechanisms.mean_without_bounds import MeanWithoutBounds, mean_without_bounds
from discreet.mechanisms.partition_selection import PartitionSelection, partition_selection
from discreet.mechanisms.quantiles import PrivateQuantile, PrivateQuantiles, private_quantiles
from discreet.mechanisms.scalar.staircase import StaircaseMechanism, staircase
from discreet.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from discreet.models.dp_sgd._output_perturbation import output_perturbation
from discreet.models.dp_sgd.laplace_gradient_descent import laplace_descent
from discreet.models.dp_sgd.losses import Logistic
from discreet.models.dp_sgd.noisy_gradient_descent import noisy_descent
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import resolve_rng

REPLACED = NeighboringRelation.REPLACE_ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A wrong mechanism beside the right one, and neighbors on which both may be run."""

    name: str
    right: Any
    wrong: Any
    left: Any
    other: Any
    release: Callable[..., Any] | None = None
    """From the mechanism, data and random numbers to an output; ``release`` if not given."""

    def run(self, made: Any, data: Any, rng: Any) -> Any:
        """One output, as numbers."""
        found = (
            made.release(data, rng=rng) if self.release is None else self.release(made, data, rng)
        )
        return -1 if found is None else found


def remade(kind: type, made: Any, **changes: Any) -> Any:
    """The fields of a mechanism, with another class's code."""
    return kind(**{field.name: getattr(made, field.name) for field in fields(made)} | changes)


def with_noise(made: AdditiveMechanism, noise: Any) -> AdditiveMechanism:
    """Other noise, under the old claim."""
    if made.integers is not None:
        return replace(made, integers=replace(made.integers, noise=noise))
    assert made.reals is not None
    return replace(made, reals=replace(made.reals, noise=noise))


# ── choices and thresholds ────────────────────────────────────────────────────────────────────


class NeverStops(AboveThreshold):
    __slots__ = ()

    def release(self, values, *, threshold, rng=None):
        steps = self.scale.read(values)
        source = resolve_rng(rng)
        level = self.threshold_noise.sample(1, source)[0]
        return steps + self.query_noise.sample(len(steps), source) >= level


class TellsExactly(AboveThreshold):
    __slots__ = ()

    def release(self, values, *, threshold, rng=None):
        above = self.scale.read(values) >= threshold
        passed = np.flatnonzero(above)
        return above[: passed[self.positives - 1] + 1] if len(passed) >= self.positives else above


class NoiseOfOnePositive(AboveThreshold):
    __slots__ = ()

    @property
    def query_noise(self):
        return DiscreteLaplace(AboveThreshold.query_noise.fget(self).scale / self.positives)


class TakesTheBest(ExponentialMechanism):
    __slots__ = ()

    def choose(self, scores, rng):
        return int(np.argmax(scores))


class HardlyFlips(PermuteAndFlip):
    __slots__ = ()

    def choose(self, scores, rng):
        return PermuteAndFlip.choose(self, 4 * scores, rng)


class HardlyNoisy(ReportNoisyMax):
    __slots__ = ()

    def choose(self, scores, rng):
        noise = DiscreteLaplace(1 / self.rate / 20).sample(len(scores), rng)
        return int(np.argmax(scores + noise))


# ── columns ───────────────────────────────────────────────────────────────────────────────────


class MeanWithoutNoise(MeanWithoutBounds):
    __slots__ = ()

    def _mean(self, column, codes, rows, rng):
        found = MeanWithoutBounds._mean(self, column, codes, rows, rng)
        exact = codes.mean() if len(codes) else column.span / 2
        return replace(found, value=column.number(0) + float(exact) * column.step)


class WholeMeanWithoutNoise(MeanWithoutBounds):
    __slots__ = ()

    def release(self, values, *, rng=None):
        found = MeanWithoutBounds.release(self, values, rng=rng)
        return replace(found, value=float(np.clip(values, found.lower, found.upper).mean()))


class DepthOne(PrivateQuantiles):
    __slots__ = ()

    @property
    def depth(self):
        return 1


class ExactQuantile(PrivateQuantile):
    __slots__ = ()

    def release(self, values, *, rng=None):
        codes = self.column.sorted(values)
        return self.column.number(int(codes[len(codes) // 2]))


class TwoCounts(BinCounts):
    __slots__ = ()

    def release(self, values, *, rng=None):
        return BinCounts.release(self, np.repeat(values, 2), rng=rng)


class ShowsTheTruth(BoundedOutput):
    __slots__ = ()

    def release(self, value, *, rng=None):
        return self._inside(value)


class LooksAround(PrivateSpread):
    __slots__ = ()

    def release(self, values, *, rng=None):
        noisy = PrivateSpread.release(self, values, rng=rng)
        return noisy + 1e-9 * float(np.std(values))


class TwoGroups(SampleAndAggregate):
    __slots__ = ()

    def estimates(self, rows, groups):
        found = SampleAndAggregate.estimates(self, rows, groups)
        return np.full_like(found, found.max())


class HalfTheBound(SmoothSensitivity):
    __slots__ = ()

    def bound(self, codes):
        return SmoothSensitivity.bound(self, codes) / 2


class LocalOnly(WeightedSensitivity):
    __slots__ = ()

    def _scale(self, local, ceiling):
        return max(local, Fraction(1)) / self.epsilon


class NeverTests(ProposeTestRelease):
    __slots__ = ()

    @property
    def test_noise(self):
        return DiscreteLaplace(1 / self.test)

    def release(self, values, *, rng=None):
        stable = np.full(self.statistic.public_rows, self.column.number(0))
        noise = ProposeTestRelease.release(self, stable, rng=rng)
        codes = self.column.sorted(values)
        return self.column.number(int(self.statistic.value(codes))) + (noise or 0.0)


class ReachesTheThreshold(PartitionSelection):
    __slots__ = ()

    def release(self, counts, *, rng=None):
        lower = replace(self, threshold=self.threshold - 1)
        return PartitionSelection.release(remade(PartitionSelection, lower), counts, rng=rng)


class QuietStaircase(StaircaseMechanism):
    __slots__ = ()

    def release(self, value, *, rng=None):
        noise = StaircaseMechanism.release(self, 0, rng=rng)
        return value + (noise > 0) - (noise < 0)


# ── intervals ─────────────────────────────────────────────────────────────────────────────────


class SumsTwice(MeanStatistic):
    __slots__ = ()

    def numbers(self, tables):
        center, error = MeanStatistic.numbers(self, tables)
        return 2 * center, error


class CountsTwice(ProportionInterval):
    __slots__ = ()

    def answers(self, tables, rng):
        return ProportionInterval.answers(self, np.repeat(tables, 2, axis=1), rng)


class NearlyExactEnds(QuantileInterval):
    __slots__ = ()

    def _place(self, codes, side, rng):
        end = self.ends[side]
        sharp = replace(
            self, ends=tuple(replace(one, epsilon=20 * one.epsilon) for one in self.ends)
        )
        return (
            QuantileInterval._place(remade(QuantileInterval, sharp), codes, side, rng) if end else 0
        )


# ── clients ───────────────────────────────────────────────────────────────────────────────────


class SeldomLies(RandomizedResponse):
    __slots__ = ()

    def _answers(self, own, rng):
        once = RandomizedResponse._answers(self, own, rng)
        return np.where(np.arange(len(own)) % 2, own, once)


class OwnBitIsOne(OptimizedUnary):
    __slots__ = ()

    def randomize(self, value, *, rng=None):
        rows = OptimizedUnary.randomize(self, value, rng=rng)
        own = np.asarray(value)
        rows[np.arange(len(own)), own >> 3] |= (1 << (own & 7)).astype(np.uint8)
        return rows


class TellsTheGridPoint(PiecewiseMean):
    __slots__ = ()

    def draw(self, places, rng):
        return np.rint(places * self.steps).astype(np.int64)


class QuietClient(LocalLaplace):
    __slots__ = ()

    def draw(self, places, rng):
        points = np.rint(places * self.grid).astype(np.int64)
        return points + DiscreteLaplace(self.noise.scale / 10).sample(len(points), rng) + self.reach


class CopiesWithoutFlips(RAPPOR):
    __slots__ = ()

    def report(self, memory, *, rng=None):
        return self._rows(memory)


def one_report(made: Any, value: Any, rng: Any) -> Any:
    return made.randomize(np.array([value]), rng=rng)[0].astype(np.int64)


# ── all of them ───────────────────────────────────────────────────────────────────────────────


def reported() -> tuple[Wrong, ...]:
    """The first ten."""
    one = laplace(sensitivity=1, epsilon=1)
    real = laplace(sensitivity=0.5, epsilon=1)
    normal = gaussian(sensitivity=1, epsilon=1, delta=1e-5)
    threshold = above_threshold(sensitivity=1, epsilon=1, positives=2)
    best = exponential_mechanism(sensitivity=1, epsilon=1)
    maximum = report_noisy_max(sensitivity=1, epsilon=1)
    mean = mean_without_bounds(unit=1, epsilon=1)
    bins = bin_statistics(lower=0, upper=10, bins=2, epsilon=1)
    seven = private_quantiles([k / 8 for k in range(1, 8)], lower=0, upper=8, epsilon=1)
    assert real.reals is not None
    quiet = replace(real.reals.noise, scale=real.reals.noise.scale / 1000)
    scores, columns = (
        {"left": (0, 1, 0), "other": (1, 0, 1)},
        {"left": (1.0,) * 4, "other": (1.0,) * 5},
    )
    passed = {"left": (0, 0, 0, 1), "other": (1, 1, 1, 0)}
    small = laplace(sensitivity=1, epsilon=1, domain="integers")

    def ran(made: Any, data: Any, rng: Any) -> Any:
        above = made.release(data, threshold=0.5, rng=rng)
        return np.concatenate((above, np.full(len(data) - len(above), -1)))

    return (
        Wrong(
            name="Laplace noise of a hundredth",
            right=one,
            wrong=with_noise(one, DiscreteLaplace(Fraction(1, 100))),
            left=0,
            other=1,
        ),
        Wrong(
            name="noise on a grid of a thousandth",
            right=real,
            wrong=with_noise(real, quiet),
            left=0.0,
            other=0.5,
        ),
        Wrong(
            name="Gaussian sigma of 0.01",
            right=normal,
            wrong=with_noise(normal, DiscreteGaussian(sigma=Fraction(1, 100))),
            left=0,
            other=1,
        ),
        Wrong(
            name="above threshold forgets positives",
            right=threshold,
            wrong=remade(NeverStops, threshold),
            release=ran,
            **passed,
        ),
        Wrong(
            name="above threshold answers exactly",
            right=threshold,
            wrong=remade(TellsExactly, threshold),
            release=ran,
            **passed,
        ),
        Wrong(
            name="exponential mechanism takes the best",
            right=best,
            wrong=remade(TakesTheBest, best),
            **scores,
        ),
        Wrong(
            name="noisy maximum with a twentieth of the noise",
            right=maximum,
            wrong=remade(HardlyNoisy, maximum),
            **scores,
        ),
        Wrong(
            name="mean without bounds, without noise",
            right=mean,
            wrong=remade(MeanWithoutNoise, mean),
            release=lambda made, data, rng: made.release(data, rng=rng).value,
            **columns,
        ),
        Wrong(
            name="statistics of bins with a wrong sensitivity",
            right=bins,
            wrong=replace(bins, inner=small),
            **columns,
        ),
        Wrong(
            name="seven quantiles charged as depth one",
            right=seven,
            wrong=remade(DepthOne, seven),
            **columns,
        ),
    )


def further() -> tuple[Wrong, ...]:
    """More, wherever a certificate is."""
    one = laplace(sensitivity=1, epsilon=1)
    threshold = above_threshold(sensitivity=1, epsilon=1, positives=8)
    flip = permute_and_flip(sensitivity=1, epsilon=1)
    mean = mean_without_bounds(unit=1, epsilon=1)
    exact = PrivateQuantile(
        column=private_quantiles([0.5], lower=0, upper=8, epsilon=1).column,
        quantile=Fraction(1, 2),
        epsilon=Fraction(1),
        method="interpolated",
        relation=NeighboringRelation.ADD_REMOVE,
    )
    counts = private_bin_counts(lower=0, upper=8, bins=4, epsilon=1)
    clamped = clamp_output(one, lower=0, upper=8)
    spread = private_std(lower=0, upper=8, public_rows=6, epsilon=1)
    sampled = sample_and_aggregate(
        np.mean, lower=0, upper=8, groups=4, epsilon=1, summary="mean", relation=REPLACED
    )
    bounded = bounded_laplace(lower=0, upper=8, sensitivity=1, epsilon=1)
    stairs = staircase(sensitivity=3, epsilon=Fraction(1, 2))
    column: dict[str, Any] = {"lower": 0, "upper": 8, "public_rows": 99, "epsilon": 1}
    smooth = smooth_sensitivity(**column)
    weighted = weighted_sensitivity(**column, delta=1e-5)
    tested = propose_test_release(**column, delta=1e-5, bound=1)
    keys = partition_selection(groups=2, epsilon=1, delta=1e-4)
    columns = {"left": (1.0,) * 4, "other": (1.0,) * 5}
    rows = {"left": (0.0,) * 50 + (8.0,) * 49, "other": (0.0,) * 49 + (8.0,) * 50}
    few = {"left": (0.0,) * 6, "other": (0.0,) * 5 + (8.0,)}
    cheaper = Guarantee(events.DiscreteLaplaceEvent(Fraction(4), 1), one.relation).event
    return (
        Wrong(
            name="Laplace noise charged as four times as much",
            right=one,
            wrong=replace(one, integers=replace(one.integers, event=cheaper), target=None),
            left=0,
            other=1,
        ),
        Wrong(
            name="above threshold with the noise of one positive",
            right=threshold,
            wrong=remade(NoiseOfOnePositive, threshold),
            left=(0, 0, 0, 1),
            other=(1, 1, 1, 0),
            release=lambda made, data, rng: made.release(data, threshold=0.5, rng=rng),
        ),
        Wrong(
            name="permute and flip with four times the scores",
            right=flip,
            wrong=remade(HardlyFlips, flip),
            left=(0, 1, 0),
            other=(1, 0, 1),
        ),
        Wrong(
            name="whole mean without bounds, without noise",
            right=mean,
            wrong=remade(WholeMeanWithoutNoise, mean),
            release=lambda made, data, rng: made.release(data, rng=rng).value,
            **columns,
        ),
        Wrong(name="exact median", right=exact, wrong=remade(ExactQuantile, exact), **columns),
        Wrong(
            name="every value counted twice",
            right=counts,
            wrong=remade(TwoCounts, counts),
            release=lambda made, data, rng: made.release(data, rng=rng).counts,
            **columns,
        ),
        Wrong(
            name="clamped output without noise",
            right=clamped,
            wrong=remade(ShowsTheTruth, clamped),
            left=1,
            other=2,
        ),
        Wrong(
            name="deviation that also tells of the rows",
            right=spread,
            wrong=remade(LooksAround, spread),
            **few,
        ),
        Wrong(
            name="one group's estimate counts for all",
            right=sampled,
            wrong=remade(TwoGroups, sampled),
            left=(0.0,) * 8,
            other=(8.0,) + (0.0,) * 7,
        ),
        Wrong(
            name="bounded noise of the usual scale",
            right=bounded,
            wrong=replace(bounded, scale=Fraction(1)),
            left=0,
            other=1,
        ),
        Wrong(
            name="staircase of three steps",
            right=stairs,
            wrong=remade(QuietStaircase, stairs),
            left=0,
            other=3,
        ),
        Wrong(
            name="half of the smooth bound",
            right=smooth,
            wrong=remade(HalfTheBound, smooth),
            **rows,
        ),
        Wrong(
            name="noise of the local sensitivity",
            right=weighted,
            wrong=remade(LocalOnly, weighted),
            **rows,
        ),
        Wrong(name="nothing is tested", right=tested, wrong=remade(NeverTests, tested), **rows),
        Wrong(
            name="keys at the threshold are shown",
            right=keys,
            wrong=remade(ReachesTheThreshold, keys),
            left=(5, 1),
            other=(5, 2),
            release=lambda made, data, rng: len(made.release(data, rng=rng)[0]),
        ),
        *_intervals(),
        *_clients(),
        *_models(),
    )


def _intervals() -> tuple[Wrong, ...]:
    mean = mean_interval(lower=0, upper=1, public_rows=6, epsilon=1)
    share = proportion_interval(public_rows=6, epsilon=1)
    median = quantile_interval(lower=0, upper=1, public_rows=40, granularity=0.125, epsilon=4)
    doubled = remade(SumsTwice, mean.statistic)
    few = {"left": (0.0,) * 6, "other": (0.0,) * 5 + (1.0,)}

    def shown(made: Any, data: Any, rng: Any) -> Any:
        return made.release(data, rng=rng).value

    return (
        Wrong(
            name="interval of a sum counted twice",
            right=mean,
            wrong=replace(mean, statistic=doubled),
            release=shown,
            **few,
        ),
        Wrong(
            name="interval of a share of twice the rows",
            right=share,
            wrong=remade(CountsTwice, share),
            release=shown,
            **few,
        ),
        Wrong(
            name="interval of a median with sharp ends",
            right=median,
            wrong=remade(NearlyExactEnds, median),
            release=shown,
            left=(0.0,) * 20 + (1.0,) * 20,
            other=(0.0,) * 19 + (1.0,) * 21,
        ),
    )


def _clients() -> tuple[Wrong, ...]:
    response = randomized_response(categories=4, epsilon=1)
    unary = oue(categories=4, epsilon=1)
    number: dict[str, Any] = {"epsilon": 1, "lower": -1, "upper": 1}
    piecewise = piecewise_mean(**number, steps=6)
    noisy = local_laplace(**number, steps=16)
    copies = rappor(categories=3, epsilon=Fraction(1, 2), permanent_epsilon=2)
    codes = {"left": 0, "other": 1, "release": one_report}
    ends = {"left": -1.0, "other": 1.0, "release": one_report}
    return (
        Wrong(
            name="randomized response that lies half as often",
            right=response,
            wrong=remade(SeldomLies, response),
            **codes,
        ),
        Wrong(
            name="unary encoding with the own bit set",
            right=unary,
            wrong=remade(OwnBitIsOne, unary),
            **codes,
        ),
        Wrong(
            name="piecewise client without a window",
            right=piecewise,
            wrong=remade(TellsTheGridPoint, piecewise),
            **ends,
        ),
        Wrong(
            name="client with a tenth of the noise",
            right=noisy,
            wrong=remade(QuietClient, noisy),
            **ends,
        ),
        Wrong(
            name="copies of a permanent response without flips",
            right=copies,
            wrong=remade(CopiesWithoutFlips, copies),
            **codes,
        ),
    )


def _models() -> tuple[Wrong, ...]:
    loss = Logistic(l2=0.5)
    given: dict[str, Any] = {"features": 1, "public_rows": 8, "row_norm": 1}
    minimum = output_perturbation(loss, **given, epsilon=4, relation=REPLACED)
    steps = laplace_descent(loss, **given, epsilon=4, steps=3, relation=REPLACED)
    last = noisy_descent(loss, **given, mu=2, steps=3)
    tenth = laplace(
        sensitivity=minimum.noise.sensitivity / 10, epsilon=4, domain="reals", relation=REPLACED
    )
    quiet = laplace(
        sensitivity=steps.steps[0].sensitivity // 10,
        epsilon=1,
        domain="integers",
        relation=REPLACED,
    )
    data = {"left": (0.0,) * 8, "other": (1.0,) + (0.0,) * 7}

    def fitted(made: Any, targets: Any, rng: Any) -> Any:
        return made.release(np.eye(8, 1), np.array(targets), rng=rng)

    return (
        Wrong(
            name="a minimizer with noise for a tenth of what it moves",
            right=minimum,
            wrong=replace(minimum, noise=tenth),
            release=fitted,
            **data,
        ),
        Wrong(
            name="descent with noise for a tenth of a gradient",
            right=steps,
            wrong=replace(steps, steps=(quiet,) * len(steps.steps)),
            release=fitted,
            **data,
        ),
        Wrong(
            name="descent that moves ten times as far",
            right=last,
            wrong=replace(last, rate=10 * last.rate),
            release=fitted,
            **data,
        ),
    )


def wrong_mechanisms() -> tuple[Wrong, ...]:
    """All of them."""
    return (*reported(), *further())
