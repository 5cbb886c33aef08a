"""Ends of ranges, rounding and extremes: each number where it is met exactly."""

import inspect
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import _inputs as values
from discreet.mechanisms import mean_without_bounds as unbounded
from discreet.mechanisms import partition_selection as partition
from discreet.mechanisms.data_dependent import _smooth_noise as smooth_noise
from discreet.mechanisms.data_dependent import propose_test_release as propose
from discreet.mechanisms.data_dependent import weighted_sensitivity as weighted
from discreet.mechanisms.data_dependent._smooth_noise import (
    Cauchy,
    Lomax,
    SmoothGaussian,
    SmoothLaplace,
)
from discreet.mechanisms.data_dependent._smooth_statistics import SmoothVariance, TrimmedMean
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet_studies.noise_mechanisms import median_errors

# -- noise that follows the data ----------------------------------------------------------------


@dataclass(frozen=True)
class Own:
    """A statistic that is known for its largest sensitivity alone."""

    size: Fraction
    public_rows: int = 9
    power: int = 1
    whole: bool = True

    def largest(self, span):
        return self.size

    def smooth_bound(self, values, span, *, beta, least):
        return 5.0 if beta == 0.25 - 2.0**-36 and least == 3.5 else 0.0


def test_bounds_are_a_little_smoother_than_they_need_be():
    """By 2**-36, which pays for their rounding to doubles; and they are raised by 2**-38."""
    made = smooth_sensitivity(
        Own(Fraction(9)), lower=0, upper=8, public_rows=9, epsilon=1, granularity=1
    )
    family = replace(made.family, multiplier=Fraction(32, 7))
    made = replace(made, family=family)
    assert (made.smoothness, made._least) == (0.25, 3.5)
    assert made.bound(np.arange(9)) == 5 * (1 + Fraction(1, 2**38))
    with pytest.raises(InvalidArgument, match="too small"):  # then the rounding would matter
        smooth_sensitivity(lower=0, upper=8, public_rows=9, epsilon=Fraction(1, 2**18 + 1))


@pytest.mark.parametrize(
    ("noise", "most"), [("laplace", 500), ("gaussian", 47), ("cauchy", 500), ("lomax", 500)]
)
def test_the_most_steps_of_every_noise(noise, most):
    delta = 1e-6 if noise in ("laplace", "gaussian") else 0
    options = {
        "lower": 0,
        "upper": 1,
        "public_rows": 9,
        "epsilon": 1,
        "delta": delta,
        "noise": noise,
    }
    family = smooth_sensitivity(**options).family
    size = 2**most / family.multiplier / (1 + Fraction(1, 2**38))
    made = smooth_sensitivity(Own(size), **options)
    assert made.largest_steps == 2**most
    with pytest.raises(InvalidArgument, match="too many steps"):
        smooth_sensitivity(Own(size * (1 + Fraction(1, 10**9))), **options)


@pytest.mark.parametrize("statistic", ["median", "mean", "variance"])
def test_answers_are_in_steps_to_a_power(statistic):
    """The forecast, the interval and the deviation of a variance are in squares."""
    made = smooth_sensitivity(
        statistic, lower=0, upper=4, public_rows=5, epsilon=1, granularity=0.25
    )
    unit = 1 / 16 if statistic == "variance" else 1 / 4
    codes = np.array([0, 3, 4, 9, 16])
    k = 4  # the order
    std = math.sqrt(2 / ((k - 1) * (k - 2)))
    scale = float(made.bound(codes) * made.family.multiplier) * unit
    assert made.forecast(codes / 4) == pytest.approx(std * scale, rel=1e-12)
    largest = float(made.largest_steps) * unit
    assert made.std == pytest.approx(std * largest, rel=1e-12)
    tail = 0.1 ** (-1 / k) - 1
    low, high = made.interval(0.9)
    assert high == -low == pytest.approx(tail * largest + unit, rel=1e-12)


@pytest.mark.parametrize("noise", [-(10**9), -3, 0, 5, 10**9])
def test_noisy_variances_stay_where_variances_are(noise, monkeypatch):
    monkeypatch.setattr(Lomax, "draw", lambda self, scale, bits: noise)
    made = smooth_sensitivity(
        "variance", lower=0, upper=2, public_rows=4, epsilon=1, granularity=0.5
    )
    # In steps 0 1 2 4: the variance is 35/12, at most 64/12 steps, rounded up.
    exact = math.floor(Fraction(35, 12))
    expected = min(max(exact + noise, 0), 6) / 4
    assert made.release([0, 0.5, 1, 2], rng=seeded_rng(1)) == expected


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_the_domain_of_a_variance(rows):
    made = SmoothVariance(public_rows=rows)
    for span in (1, 2, 5):
        largest = max(
            made.value(np.array(data))
            for data in itertools.combinations_with_replacement(range(span + 1), rows)
        )
        low, high = made.domain(span)
        assert low == 0
        assert high >= largest
        if rows % 2 == 0:
            assert high == math.ceil(largest)


def test_trimmed_means_say_how_much_is_left_out():
    options = {"lower": 0, "upper": 1, "public_rows": 9, "epsilon": 1}
    assert (
        smooth_sensitivity("trimmed_mean", trim=2, **options).name == "trimmed mean without 2 x 2"
    )
    made = smooth_sensitivity("trimmed_mean", trim=2, **options).statistic
    assert made == TrimmedMean(public_rows=9, below=2, above=2)
    assert smooth_sensitivity("mean", **options).statistic == TrimmedMean(
        public_rows=9, below=0, above=0
    )
    assert smooth_sensitivity("median", **options).statistic == TrimmedMean(
        public_rows=9, below=4, above=4
    )
    assert smooth_sensitivity(**{**options, "public_rows": 10}).statistic == TrimmedMean(
        public_rows=10, below=4, above=5
    )


def test_pairs_of_normal_laws_that_are_always_or_never_told_apart():
    # Below zero a wider law may be above everywhere, and a narrower one nowhere above.
    assert smooth_noise.gaussian_delta(-0.5, 1.05, 0.0) == pytest.approx(1 - math.exp(-0.5))
    assert smooth_noise.gaussian_delta(-0.5, 1.0, 0.0) == pytest.approx(1 - math.exp(-0.5))
    assert smooth_noise.gaussian_delta(2.0, 0.9, 0.0) == 0
    assert smooth_noise.gaussian_delta(2.0, 0.9, 0.01) == 0


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_best_smoothness_is_looked_for_between_a_thousandth_and_nine_tenths(epsilon):
    asked = []
    found = smooth_noise._best(lambda b: asked.append(b) or b**2, epsilon)
    assert found == min(asked) == pytest.approx(epsilon / 1000, rel=1e-12)
    found = smooth_noise._best(lambda b: 1.0, epsilon)
    assert found == max(asked) == pytest.approx(0.9 * epsilon, rel=1e-12)
    assert len(set(asked)) == 120
    found = smooth_noise._best(lambda b: b * abs(math.log(b / epsilon * 10)), epsilon)
    assert found == pytest.approx(epsilon / 10, rel=0.03)


def test_default_smoothness_is_about_the_best():
    eps, delta = Fraction(1), Fraction(1, 10**6)
    pairs = [
        (
            SmoothLaplace.calibrated(eps, delta, None),
            lambda b: SmoothLaplace.calibrated(eps, delta, b),
        ),
        (Cauchy.calibrated(eps, None), lambda b: Cauchy.calibrated(eps, b)),
    ]
    for made, at in pairs:
        cost = made.multiplier / Fraction(made.beta)
        for other in (
            np.linspace(0.01, 0.08, 8) if isinstance(made, SmoothLaplace) else (0.3, 0.6, 0.9)
        ):
            again = at(float(other))
            assert again.beta == other
            assert cost <= again.multiplier / Fraction(again.beta) * Fraction(102, 100)


def test_normal_noise_is_needed_from_a_hundredth_on():
    """Where the first step of the search is enough already, and where it is far from enough."""
    for delta in (0.999, 0.9, 0.3):
        found = smooth_noise._gaussian_multiplier(50.0, delta, 0.001, cells=1)
        assert smooth_noise.gaussian_worst(50.0, 0.001, found, cells=1) <= delta
        if found > 0.01:
            less = found / (1 + 1e-6)
            assert smooth_noise.gaussian_worst(50.0, 0.001, less, cells=1) > delta


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("beta", [0.1, 0.3])
def test_a_smoothness_is_possible_as_long_as_some_noise_will_do(epsilon, beta):
    """However much noise there is, the scales alone give so much away."""
    least = smooth_noise.laplace_delta(epsilon, beta, 1e12)
    for more in (1.001, 1.5, 2.7):
        found = smooth_noise.laplace_multiplier(epsilon, least * more, beta)
        assert smooth_noise.laplace_delta(epsilon, beta, found) <= least * more * (1 + 1e-9)
    assert math.isinf(smooth_noise.laplace_multiplier(epsilon, least * 0.999, beta))


def test_made_up_columns_of_two_groups():
    two = np.sort(median_errors.shapes(4001)["two groups"])
    for quantile, exact in ((0.25, 25), (0.75, 75)):
        assert np.quantile(two, quantile) == pytest.approx(exact, abs=0.02)
    third = 3 * 0.6744897501960817
    for quantile, exact in ((0.125, 25 - third), (0.375, 25 + third), (0.625, 75 - third)):
        assert np.quantile(two, quantile) == pytest.approx(exact, abs=0.05)
    assert inspect.signature(median_errors.mechanisms).parameters["epsilon"].default == 1


def test_multipliers_are_fit_for_a_draw():
    for epsilon, order in ((0.1, 2), (1, 3), (5, 9)):
        made = Lomax.calibrated(Fraction(epsilon), order)
        rate = float(Fraction(epsilon))
        c = min(
            math.exp(rate / (order + 1)) - 1,
            math.exp(rate / order) * (math.exp((rate - rate / order) / (order + 1)) - 1),
        )
        assert float(made.multiplier) == pytest.approx(1 / c, rel=1e-7)
        assert float(made.multiplier) > 1 / c
        assert made.beta <= Fraction(epsilon) / order
    assert isinstance(smooth_sensitivity(lower=0, upper=1, public_rows=9, epsilon=1).family, Lomax)
    normal = smooth_sensitivity(
        lower=0, upper=1, public_rows=9, epsilon=1, delta=1e-3, noise="gaussian"
    ).family
    assert isinstance(normal, SmoothGaussian)
    assert 0.001 < normal.beta < 0.9


# -- propose, test, release ---------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_a_proposed_bound_pays_for_rounding(statistic, monkeypatch):
    made = propose_test_release(
        statistic, bound=3, lower=0, upper=8, public_rows=5, epsilon=1, delta=1e-2, granularity=0.5
    )
    asked, sizes, scales = [], [], []

    def distance(self, codes, span, *, bound):
        asked.append((codes.tolist(), span, bound))
        return 10**6

    def sample(self, size, rng):
        sizes.append(size)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(TrimmedMean, "distance", distance)
    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    monkeypatch.setattr(propose, "laplace_draw", lambda scale, _: scales.append(scale) or 0)
    found = made.release([0, 1, 2, 3, 8], rng=seeded_rng(1))
    room = 6 if statistic == "median" else 5  # rounding a mean down takes a step
    assert asked == [([0, 2, 4, 6, 16], 16, room)]
    assert found == (2 if statistic == "median" else 2.5)  # in steps 28/5, rounded down
    assert (sizes, scales) == ([1], [12])


def test_the_interval_of_an_answer():
    made = propose_test_release(
        bound=3,
        lower=0,
        upper=8,
        public_rows=5,
        epsilon=2,
        delta=1e-2,
        granularity=0.5,
        test=Fraction(1, 4),
    )
    # Half a step for the rounding of the noise, half for that of the statistic: a step.
    width = 3 / 1.5 * math.log(10) + 0.5
    assert made.interval(0.9) == pytest.approx((-width, width), rel=1e-12)
    assert made.std == pytest.approx(math.sqrt(2) * 2, rel=1e-12)


# -- keys ---------------------------------------------------------------------------------------


def test_tails_of_wide_normal_noise_are_bounded():
    """Up to a deviation of 2048 they are summed; beyond, they are those of a normal law."""
    table = 2048
    small = DiscreteGaussian(square=Fraction(table**2))
    wide = DiscreteGaussian(square=Fraction(table**2 + 1))
    for threshold in (table, 3 * table):
        exact = float(small.sf(threshold - 1))
        assert float(partition._at_least(small, threshold)) == pytest.approx(exact, rel=1e-9)
        bound = math.exp(-((threshold - 1) ** 2) / (2 * (table**2 + 1)))
        assert float(partition._at_least(wide, threshold)) == pytest.approx(bound, rel=1e-9)
        assert bound > exact


# -- truncated noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("delta", [0.5, 0.4, 0.1, 0.01])
def test_the_shortest_noise_that_keeps_delta(shift, epsilon, delta):
    made = truncated_laplace(sensitivity=shift, epsilon=epsilon, delta=delta)

    def lost(bound):
        k = np.arange(-bound, bound + 1)
        weights = np.exp(-np.abs(k) * epsilon / shift)
        return weights[k > bound - shift].sum() / weights.sum()

    shortest = next(b for b in range(1000) if lost(b) <= delta * (1 + 1e-12))
    assert made.noise.upper == shortest
    assert made.noise.lower == -shortest
    assert made.noise.scale == shift / Fraction(str(epsilon))


# -- deltas -------------------------------------------------------------------------------------

ROWS = {"lower": 0, "upper": 1, "public_rows": 9, "epsilon": 1}
SMALLEST = {
    "truncated": (lambda d: truncated_laplace(sensitivity=1, epsilon=1, delta=d), 100),
    "propose": (lambda d: propose_test_release(**ROWS, bound=1, delta=d), 100),
    "weighted": (lambda d: weighted.weighted_sensitivity(**ROWS, delta=d), 1000),
    "keys": (
        lambda d: partition.partition_selection(groups=1, epsilon=1, delta=d, method="laplace"),
        200,
    ),
    "keys of groups": (
        lambda d: partition.partition_selection(groups=8, epsilon=1, delta=d, method="laplace"),
        197,
    ),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_deltas_that_cannot_be_shown_to_hold_are_refused(name):
    make, bits = SMALLEST[name]
    make(Fraction(1, 2**bits))
    with pytest.raises(InvalidArgument, match="delta must"):
        make(Fraction(1, 2**bits + 1))


def test_the_smallest_deltas_are_kept():
    test = propose_test_release(**ROWS, bound=1, delta=Fraction(1, 2**100))
    # P(Z > t) = e^(-t/2) / (1 + e^(1/2)) for noise of scale two.
    exact = 200 * math.log(2) - 2 * math.log(1 + math.exp(0.5))
    assert test.threshold == math.ceil(exact)
    keys = partition.partition_selection(
        groups=1, epsilon=1, delta=Fraction(1, 2**200), method="laplace"
    )
    exact = 200 * math.log(2) + math.log(1 / (1 + math.exp(-1)))  # P(Z >= t) = e^-t / (1 + e^-1)
    assert keys.threshold == math.ceil(exact)


# -- weighted noise -----------------------------------------------------------------------------


def test_shares_at_their_ends():
    step = Fraction(1, 2**20)
    assert weighted.smallest_share(1.0, 0.99999) == step
    assert weighted.smallest_share(1.0, -1.0) == 1
    for many in (1000, 300_000):
        met = weighted.weighted_delta(1.0, many / 2**20)
        # A delta that is met exactly may be missed by the rounding of doubles.
        assert weighted.smallest_share(1.0, met) == (many + 1) * step
        assert weighted.smallest_share(1.0, met * (1 + 1e-11)) == many * step


def test_blurred_noise_in_numbers():
    options = {
        "lower": 0,
        "upper": 8,
        "public_rows": 5,
        "epsilon": 2,
        "delta": 1e-3,
        "granularity": 1,
    }
    plain = weighted.weighted_sensitivity(**options)
    blurred = weighted.weighted_sensitivity(**options, blur=(1, 3, 2))
    assert blurred.std == pytest.approx(3 * plain.std, rel=1e-12)
    assert plain.std == pytest.approx(math.sqrt(2) * 4, rel=1e-12)
    low, high = blurred.interval(0.9)
    assert high == -low == pytest.approx(12 * math.log(10) + 1, rel=1e-12)
    b = float(plain.share)
    data = [0, 3, 4, 6, 8]  # the median moves by 2 at most
    scales = [((1 - b) * 2 + b * ceiling * 8) / 2 for ceiling in (1, 3, 2)]
    assert plain.forecast(data) == pytest.approx(math.sqrt(2) * scales[0], rel=1e-12)
    square = 2 * sum(scale**2 for scale in scales) / 3
    assert blurred.forecast(data) == pytest.approx(math.sqrt(square), rel=1e-12)


def test_a_ceiling_is_drawn_for_each_release(monkeypatch):
    scales = []
    monkeypatch.setattr(weighted, "laplace_draw", lambda scale, _: scales.append(scale) or 0)
    options = {
        "lower": 0,
        "upper": 8,
        "public_rows": 5,
        "epsilon": 2,
        "delta": 1e-3,
        "granularity": 1,
    }
    made = weighted.weighted_sensitivity(**options, blur=(1, 3, 2))
    bits = seeded_rng(3)
    for _ in range(60):
        assert made.release([0, 3, 4, 6, 8], rng=bits) == 4
    assert len(set(scales)) == 3
    words = []
    source = seeded_rng(3)

    class Counted:
        private = False
        width = source.width

        def words(self, count):
            words.append(count)
            return source.words(count)

    plain = weighted.weighted_sensitivity(**options)
    plain.release([0, 3, 4, 6, 8], rng=Counted())
    assert words == []  # a single ceiling needs no draw


# -- means without bounds -----------------------------------------------------------------------


def test_a_noisy_number_of_rows_is_one_at_least(monkeypatch):
    seen = []
    monkeypatch.setattr(unbounded, "laplace_draw", lambda scale, _: seen.append(scale) or -(10**6))
    asked = []
    mean = unbounded.MeanWithoutBounds._mean

    def spied(self, column, codes, rows, rng):
        asked.append(rows)
        return mean(self, column, codes, rows, rng)

    monkeypatch.setattr(unbounded.MeanWithoutBounds, "_mean", spied)
    made = mean_without_bounds(unit=1, epsilon=4)
    made.release(np.arange(50.0), rng=seeded_rng(1))
    assert asked == [1]
    assert seen[0] == 4  # a sixteenth of epsilon
    monkeypatch.setattr(unbounded, "laplace_draw", lambda scale, _: 7)
    made.release(np.arange(50.0), rng=seeded_rng(1))
    assert asked == [1, 57]


def test_shares_of_clipped_rows_have_short_denominators():
    made = mean_without_bounds(unit=1, epsilon=2)
    for rows in (14_401, 77_777, 10_007):
        exact = Fraction(144, rows)
        found = made._tail(rows)
        assert found == exact.limit_denominator(10**4)
    assert made._tail(14_401) != Fraction(144, 14_401)


def test_tails_are_for_the_relation_without_rows():
    for rows, relation in (
        (None, NeighboringRelation.REPLACE_ONE),
        (5, NeighboringRelation.ADD_REMOVE),
    ):
        with pytest.raises(InvalidArgument, match="rows"):
            mean_without_bounds(unit=1, epsilon=1, public_rows=rows, relation=relation)


# -- choices ------------------------------------------------------------------------------------


def test_scores_far_apart():
    far = [0, 10**6, 3]
    for make in (discreet.exponential_mechanism, discreet.permute_and_flip):
        law = make(sensitivity=1, epsilon=2).probabilities(far)
        assert law[1] == pytest.approx(1, rel=1e-12)
        assert law[0] == law[2] == 0


@pytest.mark.parametrize("gap", [0, 3, 120])
@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_maximum_that_is_hardly_ever_reached(gap, rate):
    """P(Z >= g + Z'), of the difference of two noises, summed here."""
    made = discreet.report_noisy_max(sensitivity=1, epsilon=2 * rate)
    k = np.arange(-400, 401)
    mass = math.tanh(rate / 2) * np.exp(-rate * np.abs(k))
    tails = np.append(np.cumsum(mass[::-1])[::-1], np.zeros(gap))  # P(Z >= k), then nothing
    beats = math.fsum(mass * tails[gap : gap + len(k)])
    assert made.probabilities([0, gap])[0] == pytest.approx(beats, rel=1e-9)
    loses = math.fsum(mass[k < 300] * np.append(tails, [0.0])[gap + 1 : gap + 1 + len(k)][k < 300])
    assert made.probabilities([gap, 0])[1] == pytest.approx(loses, rel=1e-9)


@pytest.mark.parametrize("many", [1, 2, 3, 9, 24, 25])
def test_flips_of_many_candidates(many):
    """P(i) = p_i E[1 / (1 + heads among the others)], the heads counted one by one."""
    scores = [7 * i % 11 for i in range(many)]
    made = discreet.permute_and_flip(sensitivity=1, epsilon=0.5)
    p = [math.exp(-(max(scores) - score) / 4) for score in scores]
    expected = []
    for i in range(many):
        heads = np.ones(1)
        for j in range(many):
            if j != i:
                heads = np.convolve(heads, [1 - p[j], p[j]])
        expected.append(p[i] * (heads / np.arange(1, many + 1)).sum())
    assert made.probabilities(scores) == pytest.approx(expected, rel=1e-10)


def test_laws_of_noisy_maxima_are_summed_up_to_a_limit(monkeypatch):
    class Reached(Exception):
        pass

    def cdf(self, k):
        raise Reached

    monkeypatch.setattr(DiscreteLaplace, "cdf", cdf)
    made = discreet.report_noisy_max(sensitivity=1, epsilon=Fraction(45, 2**22), monotonic=True)
    with pytest.raises(Reached):
        made.probabilities([0])
    with pytest.raises(Unsupported):
        made.probabilities([0, 1])
    with pytest.raises(Unsupported):
        replace(made, rate=made.rate * Fraction(999_999, 10**6)).probabilities([0])


# -- values at the door -------------------------------------------------------------------------


def test_releases_are_clamped():
    steps = np.array([2**62 + 5, 2**62, 7, -(2**62), -(2**62) - 5])
    assert values.clamp_steps(steps).tolist() == [2**62, 2**62, 7, -(2**62), -(2**62)]
    noise = np.array([2**61 * 3 - 1, -(2**61) * 3, 4])
    found = values.add_clamped(np.array([2**61, -(2**61), 3]), noise)
    assert found.tolist() == [2**62, -(2**62), 7]


@pytest.mark.parametrize("kind", ["i8", "u4", "f8", "f4", "f2"])
def test_nothing_is_nothing_of_its_kind(kind):
    empty = np.empty((0, 3), dtype=kind)
    assert values.read_numbers(empty).dtype == empty.dtype
    found, shape = values.read_reals(empty, exponent=-10)
    assert (found.size, shape) == (0, (0, 3))
    whole, shape = values.read_whole(empty)
    assert (whole.size, shape) == (0, (0, 3))
    one, shape = values.read_whole(np.array([[5]], dtype=kind))
    assert (one.tolist(), shape) == ([5], (1, 1))
