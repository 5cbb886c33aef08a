"""Bounded outputs: scales against all pairs of laws, errors against exact ones."""

import dataclasses
import itertools
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import laplace
from discreet.mechanisms.bounded._divergence import BoundedOutputs, _margin, table, worst_divergence
from discreet.mechanisms.bounded._error import bounded_error, clamped_error, folded_error
from discreet.mechanisms.bounded.mechanism import bounded_laplace, clamp_output, reflect_output
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import seeded_rng
from tests.distributions import follows

# (epsilon, sensitivity, width) and the scale of diffprivlib 0.6.6, LaplaceBoundedDomain.
PEER = [
    (1, 1, 10, 1.6115601),
    (0.1, 1, 10, 18.7727413),
    (2, 1, 5, 0.6970021),
    (1, 1, 2, 1.4133427),
    (1, 1, 1, 1.0),
    (0.01, 1, 100, 198.7337404),
    (5, 0.3, 7, 0.0695480),
]
# The exact scales of B54, with the center where the divergence is largest.
EXACT = [(0.1, 0.9189, 0.384), (0.01, 1.3550, 0.139), (1e-6, 1.60880, 0.0015)]
SMALL = [
    BoundedOutputs(span=span, shift=shift)
    for span, shift in ((1, 1), (2, 1), (5, 1), (5, 2), (6, 5), (9, 3), (12, 12))
]


def reals(**options):
    return bounded_laplace(lower=0, sensitivity=1, domain="reals", **options)


def brute_force(outputs, scale, epsilon):
    """The largest divergence over all pairs, from the table of all laws."""
    laws = table(outputs.span, scale)
    pairs = itertools.permutations(range(outputs.span + 1), 2)
    return max(
        np.maximum(laws[a] - math.exp(epsilon) * laws[b], 0).sum()
        for a, b in pairs
        if abs(a - b) <= outputs.shift
    )


@pytest.mark.parametrize(("epsilon", "sensitivity", "width", "scale"), PEER)
def test_fine_grids_have_the_scale_of_the_continuous_mechanism(epsilon, sensitivity, width, scale):
    found = bounded_laplace(
        lower=0, upper=width, sensitivity=sensitivity, epsilon=epsilon, domain="reals"
    )
    assert found.width == pytest.approx(scale, rel=1e-5)


@pytest.mark.parametrize(("delta", "scale", "center"), EXACT)
def test_delta_is_used_to_the_full(delta, scale, center):
    found = reals(upper=10, epsilon=1, delta=delta)
    assert found.width == pytest.approx(scale, rel=1e-4)
    worst, place = found.outputs.worst(float(found.scale), 1.0)
    assert delta * (1 - 1e-3) < worst <= delta
    assert place * found.column.step == pytest.approx(center, abs=1e-3)


def test_scales_that_were_published_too_small_are_refused():
    outputs = reals(upper=10, epsilon=1, delta=0.1).outputs
    one = Fraction(outputs.shift)
    assert not outputs.keeps(Fraction("0.916") * one, Fraction(1), Fraction("0.1"))
    assert outputs.worst(float(Fraction("0.816") * one), 1.0)[0] == pytest.approx(0.145, abs=1e-3)
    # The published sufficient condition is far too wide at this delta, and an edge is not worst.
    wide = 1.4317 * outputs.shift
    assert outputs.divergence(0, wide, 1.0) == pytest.approx(0.0026, abs=1e-4)
    assert outputs.worst(wide, 1.0)[0] == pytest.approx(0.00468, abs=1e-4)


def test_the_usual_scale_leaks_half_as_much_again():
    law = table(640, Fraction(64))
    assert np.log(law[0] / law[64]).max() == pytest.approx(1.49, abs=0.01)


@pytest.mark.parametrize("outputs", SMALL, ids=repr)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_pure_scales_are_the_smallest_ones(outputs, epsilon):
    scale = outputs.calibrate(epsilon, Fraction(0))
    # Where the sensitivity is the span the inequality is an equality, which enclosures cannot tell.
    assert outputs.keeps_pure(scale, epsilon) or outputs.shift == outputs.span
    assert brute_force(outputs, scale, float(epsilon)) < 1e-12
    smaller = scale * (1 - Fraction(1, 10**6))
    assert not outputs.keeps_pure(smaller, epsilon)
    assert brute_force(outputs, smaller, float(epsilon)) > 1e-9


@pytest.mark.parametrize("outputs", SMALL, ids=repr)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 50), Fraction(1, 3)])
def test_scales_with_delta_are_the_smallest_ones(outputs, epsilon, delta):
    scale = outputs.calibrate(epsilon, delta)
    assert brute_force(outputs, scale, float(epsilon)) <= delta
    smaller = scale * (1 - Fraction(1, 10**5))
    assert brute_force(outputs, smaller, float(epsilon)) > delta
    assert not outputs.keeps(smaller, epsilon, delta)


@pytest.mark.parametrize("span", [1, 2, 5, 9])
@pytest.mark.parametrize("scale", [0.3, 1.7, 9.0])
def test_divergences_of_pairs_are_sums_over_the_outputs(span, scale):
    laws = table(span, Fraction(scale))
    for a, b in itertools.combinations(range(span + 1), 2):
        for epsilon in (0.0, 0.2, 1.3):
            summed = np.maximum(laws[a] - math.exp(epsilon) * laws[b], 0).sum()
            found = BoundedOutputs(span=span, shift=b - a).divergence(a, scale, epsilon)
            assert found == pytest.approx(summed, abs=1e-13)


def exact_divergence(outputs, q, scale, epsilon):
    """With sixty digits, over the half-lines around the crossing."""
    t, shift, span = Decimal(scale), outputs.shift, outputs.span

    def power(k):
        return (-Decimal(k) / t).exp()

    def normalizer(center):
        return 1 + power(1) - power(center + 1) - power(span - center + 1)

    def reached(center, k):
        if k < center:
            return power(center - k) * (1 - power(k + 1)) / normalizer(center)
        return (power(1) - power(center + 1) + 1 - power(k - center + 1)) / normalizer(center)

    ratio = (normalizer(q + shift) / normalizer(q)).ln()
    crossing = int((shift + (ratio - Decimal(epsilon)) * t) / 2)
    ends = {q + min(max(crossing + i, 0), shift - 1) for i in range(-2, 3)}
    factor = Decimal(epsilon).exp()
    return max(Decimal(0), *(reached(q, k) - factor * reached(q + shift, k) for k in ends))


def test_rounding_stays_far_below_what_is_allowed_for_it():
    generator = random.Random(1)
    with localcontext(prec=60):
        for _ in range(300):
            shift = int(10 ** generator.uniform(0, 9))
            outputs = BoundedOutputs(span=shift + int(10 ** generator.uniform(0, 11)), shift=shift)
            epsilon = 10 ** generator.uniform(-9, 1.8)
            scale = min(shift / epsilon * 10 ** generator.uniform(-0.7, 0.4), 2.0**33)
            last = outputs.span - shift
            near = int(min(last, scale * 10 ** generator.uniform(-6, 1.5)))
            q = generator.choice([0, near, last])
            exact = exact_divergence(outputs, q, scale, epsilon)
            found = outputs.divergence(q, scale, epsilon)
            assert abs(float(exact) - found) <= _margin(epsilon) / 100


@pytest.mark.parametrize("span", [2, 5, 9, 30])
def test_larger_shifts_and_smaller_centers_are_worse(span):
    laws = table(span, Fraction(3))
    for epsilon in (0.05, 0.5):
        far = np.maximum(laws[:, None] - math.exp(epsilon) * laws[None], 0).sum(axis=2)
        for q in range(span):
            assert np.all(np.diff(far[q, q:]) >= -1e-15)
            assert np.all(np.diff(far[: q + 1, q + 1]) <= 1e-15)


@pytest.mark.parametrize("outputs", [*SMALL, BoundedOutputs(span=40, shift=3)], ids=repr)
def test_bounds_over_intervals_of_centers_hold(outputs):
    for scale, epsilon in itertools.product((0.4, 2.0, 8.0), (0.0, 0.1, 1.0)):
        last = outputs.span - outputs.shift
        exact = outputs.divergence(np.arange(last + 1), scale, epsilon)
        low, high = np.array(
            list(itertools.combinations_with_replacement(range(last + 1), 2)), dtype=float
        ).T
        bound = outputs.bound(low, high, scale, epsilon)
        for a, b, found in zip(low.astype(int), high.astype(int), bound, strict=True):
            assert found >= exact[a : b + 1].max() - 1e-15
        np.testing.assert_array_equal(bound[low == high], exact)


@pytest.mark.parametrize(
    "options",
    [
        {"upper": 10, "epsilon": 1},
        {"upper": 10, "epsilon": 1, "delta": 0.1},
        {"upper": 1, "epsilon": 0.01, "delta": 1e-6},
        {"upper": 1000, "epsilon": 3},
        {"upper": 0.5, "epsilon": 0.2},
        {"upper": 1e9, "epsilon": 1e-6, "delta": 1e-9},
        {"upper": 100, "epsilon": 250},
        {"upper": 100, "epsilon": 60, "delta": 1e-3},
        {"upper": 7, "epsilon": 1e-9, "delta": 0.3},
    ],
    ids=repr,
)
def test_certificates(options):
    made = reals(**options)
    assert made.certify().holds
    narrow = dataclasses.replace(made, scale=made.scale * Fraction(9, 10))
    with pytest.raises(NotCertified):
        narrow.certify()


def test_both_routes_of_the_certificate_agree():
    outputs, scale = BoundedOutputs(span=300, shift=30), Fraction(25)
    exact, route = worst_divergence(outputs, scale, 1.0)
    assert "all pairs" in route
    finer = BoundedOutputs(span=300 << 10, shift=30 << 10)
    tails, route = worst_divergence(finer, scale * 1024, 1.0)
    assert "tails" in route
    assert tails == pytest.approx(exact, rel=0.02)
    assert tails == pytest.approx(finer.worst(25.0 * 1024, 1.0)[0], rel=1e-9)


@pytest.mark.parametrize("value", [0, 3, 10])
def test_draws_follow_the_law_and_stay_inside(value):
    made = bounded_laplace(lower=0, upper=10, sensitivity=1, epsilon=0.5)
    bits = seeded_rng(value)
    drawn = np.array([made.release(value, rng=bits) for _ in range(3000)])
    law = np.cumsum(table(10, made.scale)[value])
    assert drawn.min() >= 0
    assert drawn.max() <= 10
    assert follows(drawn, lambda k: np.where(k < 0, 0.0, law[np.clip(k, 0, 10).astype(int)]))
    wrong = np.cumsum(table(10, made.scale * Fraction(7, 10))[value])
    assert not follows(drawn, lambda k: np.where(k < 0, 0.0, wrong[np.clip(k, 0, 10).astype(int)]))


def test_reals_stay_between_bounds_that_are_no_doubles():
    made = bounded_laplace(lower=0.1, upper=0.7, sensitivity=0.3, epsilon=0.1)
    drawn = [made.release(0.1, rng=seeded_rng(i)) for i in range(200)]
    assert min(drawn) >= 0.1
    assert max(drawn) <= 0.7
    assert isinstance(made.release(0.3), float)


def test_whole_numbers_stay_whole():
    made = bounded_laplace(lower=0, upper=110, sensitivity=110, epsilon=1)
    assert type(made.release(10)) is int
    assert made.scale == 110  # both normalizers are alike
    for wrap in (clamp_output, reflect_output):
        within = wrap(laplace(sensitivity=1, epsilon=1), lower=0, upper=3)
        assert type(within.release(2)) is int
        assert within.release(np.arange(4)).dtype == np.int64


@pytest.mark.parametrize("wrap", [clamp_output, reflect_output])
def test_clamping_and_folding_keep_the_promise_and_the_bounds(wrap):
    noise = laplace(sensitivity=1, epsilon=0.05)
    made = wrap(noise, lower=-2, upper=5)
    assert made.guarantee == noise.guarantee
    assert made.certify().holds
    drawn = made.release(np.full(2000, 4), rng=seeded_rng(1))
    assert drawn.min() == -2
    assert drawn.max() == 5
    outside = made.release(np.full(2000, 999), rng=seeded_rng(2))
    assert np.array_equal(outside, made.release(np.full(2000, 5), rng=seeded_rng(2)))


def test_folding_reflects():
    noise = laplace(sensitivity=1, epsilon=0.1)
    plain = noise.release(np.full(500, 3), rng=seeded_rng(5))
    inside = reflect_output(noise, lower=0, upper=7).release(np.full(500, 3), rng=seeded_rng(5))
    mirrored = [abs((x + 7) % 14 - 7) for x in plain.tolist()]
    assert inside.tolist() == mirrored
    assert np.all(np.abs(inside - 3) <= np.abs(plain - 3))


@pytest.mark.parametrize("way", ["clamp", "fold"])
@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(5, 2), Fraction(40)])
def test_errors_of_mapped_noise_are_exact_on_the_lattice(way, scale):
    ratio = math.exp(-1 / scale)
    k = np.arange(-5000, 5001)
    masses = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    column, noise = (
        SortedColumn.of(0, 7, 1),
        laplace(sensitivity=1, epsilon=1 / scale, domain="integers"),
    )
    for truth in range(8):
        out = truth + k
        out = np.clip(out, 0, 7) if way == "clamp" else np.abs((out + 7) % 14 - 7)
        summed = np.bincount(out, weights=masses, minlength=8)
        if way == "clamp":
            found = clamped_error(truth, column, noise)
        else:
            found = folded_error(truth, column, float(scale))
        places = (found.errors + truth).astype(int)
        np.testing.assert_allclose(np.bincount(places, found.masses), summed, atol=1e-13)


@pytest.mark.parametrize("truth", [0.0, 1.0, 5.0, 9.5])
def test_errors_on_fine_grids_are_those_of_the_continuous_law(truth):
    made = reals(upper=10, epsilon=1)
    b, below, above = made.width, truth, 10 - truth
    mass = 1 - (math.exp(-below / b) + math.exp(-above / b)) / 2
    bias = (b + below) / 2 * math.exp(-below / b) - (b + above) / 2 * math.exp(-above / b)
    assert made.error(truth).bias == pytest.approx(bias / mass, abs=1e-4)
    near, far = (math.exp(-x) * (1 + x) for x in (below, above))
    noise = laplace(sensitivity=1, epsilon=1, domain="reals")
    clamp = clamped_error(round(truth / made.column.step), made.column, noise)
    assert clamp.root_mean_square**2 == pytest.approx(2 - near - far, rel=1e-4)


def test_published_comparison_of_errors():
    """At epsilon 1 and width 10 bounded noise costs five times clamping at a bound (M48)."""
    made = reals(upper=10, epsilon=1)
    assert made.error(0).root_mean_square ** 2 == pytest.approx(4.93, abs=0.005)
    assert made.error(5).root_mean_square ** 2 == pytest.approx(3.26, abs=0.005)
    assert made.std**2 == pytest.approx(4.93, abs=0.005)
    wide = reals(upper=10, epsilon=0.1)
    assert wide.error(5).root_mean_square ** 2 == pytest.approx(7.78, abs=0.005)


@pytest.mark.parametrize("scale", [0.4, 3.0, 50.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_hold_whatever_is_true(scale, level):
    made = dataclasses.replace(
        bounded_laplace(lower=0, upper=9, sensitivity=1, epsilon=1), scale=Fraction(scale)
    )
    high = made.interval(level)[1]
    laws = [bounded_error(q, made.column, scale) for q in range(10)]
    inside = [law.masses[np.abs(law.errors) <= high].sum() for law in laws]
    narrower = [law.masses[np.abs(law.errors) <= high - 1].sum() for law in laws]
    assert min(inside) >= level - 1e-12
    assert min(narrower) < level


def test_intervals_of_clamped_noise():
    made = clamp_output(laplace(sensitivity=1, epsilon=0.1), lower=0, upper=5)
    assert made.interval(0.9) == (-5, 5)
    assert made.std == 5


def test_tiny_deltas_are_not_spent():
    made = reals(upper=10, epsilon=1, delta=1e-12)
    assert made.guarantee.delta(1) == 0
    assert made.scale == reals(upper=10, epsilon=1).scale


def test_relation_is_named():
    made = bounded_laplace(
        lower=0, upper=1, sensitivity=1, epsilon=1, relation=NeighboringRelation.REPLACE_ONE
    )
    assert made.guarantee.relation is NeighboringRelation.REPLACE_ONE


@pytest.mark.parametrize(
    "options",
    [
        {"lower": 1},
        {"lower": 2},
        {"upper": math.inf},
        {"sensitivity": 0},
        {"epsilon": 0},
        {"epsilon": 257},
        {"delta": 1},
        {"domain": "integers", "sensitivity": 0.5},
        {"domain": "nothing"},
    ],
    ids=repr,
)
def test_refused(options):
    with pytest.raises(InvalidArgument):
        bounded_laplace(**{"lower": 0, "upper": 1, "sensitivity": 1, "epsilon": 1, **options})
    if not options.keys() <= {"lower", "upper"}:
        return
    with pytest.raises(InvalidArgument):
        clamp_output(laplace(sensitivity=1, epsilon=1), **{"lower": 0, "upper": 1, **options})


def test_inputs_are_single_finite_numbers():
    made = bounded_laplace(lower=0, upper=1, sensitivity=1, epsilon=1)
    for value in ([1, 2], "1"):
        with pytest.raises(OutOfDomain) as caught:
            made.release(value)
        assert "2" not in str(caught.value)
    for value in (math.nan, math.inf, None, 10**400):  # an error would tell of the value
        assert 0 <= made.release(value) <= 1
