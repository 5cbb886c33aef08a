"""Planner and trust ladder of the local model: predicted, certified, simulated."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.accounting.shuffle import closed_form
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.local.collection.aggregator import Aggregator
from discreet.local.ranges._variance import HierarchicalVariance
from discreet.local.ranges.haar import HaarResponse, haar_wavelet
from discreet.local.ranges.hierarchical import flat_histogram, hierarchical_histogram
from discreet.local.ranges.plan import optimal_hierarchical_histogram, plan_collection
from discreet.local.trust_models import compare_trust_models, parts_of, shuffled_ranges
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import budget
from discreet.ranges import workload as w
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import integers
from discreet.ranges.strategies.base import Contribution, measurement_cost
from discreet.ranges.strategies.hierarchical_histogram import optimal_blocks
from discreet.ranges.table_query import WORKLOADS
from tests.distributions import ALPHA
from tests.local.ranges.messages import message_laws

ALL = w.all_ranges()
SIZE, CLIENTS = 1024, 100_000
DOMAIN = integers(0, SIZE - 1)


@pytest.fixture(scope="module", name="plan")
def fixture_plan():
    return plan_collection(DOMAIN, ALL, epsilon=1, expected_clients=CLIENTS)


@pytest.fixture(scope="module", name="ladder")
def fixture_ladder():
    return compare_trust_models(DOMAIN, ALL, epsilon=1, delta=1e-6, expected_clients=CLIENTS)


def test_candidates_are_ranked_by_their_law(plan):
    means = [one.mean for one in plan.candidates]
    assert means == sorted(means)
    for one in plan.candidates:
        assert one.mean == one.randomizer.law.mean(ALL)
        assert one.largest >= one.mean
        assert one.rmse == pytest.approx(math.sqrt(CLIENTS * one.mean))
    # Ranges of one cell and of all but some: the worst are 1.4 to 1.5 times the mean.
    assert 1.3 < plan.candidates[0].largest / plan.candidates[0].mean < 1.5


def test_the_choice_is_short_and_within_a_percent(plan):
    least = plan.candidates[0]
    assert plan.chosen.mean <= 1.01 * least.mean <= 55
    assert plan.chosen.bits == 32 < least.bits
    assert plan.best is plan.chosen.randomizer


def test_short_reports_are_respected():
    plan = plan_collection(DOMAIN, ALL, epsilon=1, expected_clients=CLIENTS, max_report_bits=24)
    assert {one.bits for one in plan.candidates} <= {8, 16, 24}
    assert plan.chosen.mean < haar_wavelet(domain=DOMAIN, epsilon=1).law.mean(ALL)
    plan = plan_collection(DOMAIN, ALL, epsilon=1, expected_clients=CLIENTS, max_report_bits=16)
    assert {one.bits for one in plan.candidates} == {16}  # too short for most trees
    with pytest.raises(InvalidArgument, match="report_bits must be more than 3"):
        plan_collection(DOMAIN, ALL, epsilon=1, expected_clients=CLIENTS, max_report_bits=3)


def test_single_cells_are_left_flat():
    assert plan_collection(
        integers(0, 255), w.points(), epsilon=1, expected_clients=1000
    ).chosen.name.startswith("flat")


def test_what_is_shown(plan):
    text = str(plan)
    assert "error at n = 100,000" in text
    assert "optimized levels" in text
    lengths, curves = plan.curves()
    assert set(curves) == {one.name for one in plan.candidates}
    assert all(len(errors) == len(lengths) for errors in curves.values())


def test_malformed_questions_are_refused():
    for wrong in ({"epsilon": 0}, {"expected_clients": 0}, {"max_report_bits": 0}):
        given = {"domain": DOMAIN, "workload": ALL, "epsilon": 1, "expected_clients": 10, **wrong}
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            plan_collection(**given)
    with pytest.raises(InvalidArgument, match="two cells"):
        plan_collection(integers(1, 1), ALL, epsilon=1, expected_clients=10)


@pytest.mark.parametrize("pairs", [1, 2, 4])
def test_halves_hide_each_other_as_described(pairs):
    # Likelier messages of each half, by enumeration.
    likelier = [
        {(row, ((row & half >> 1).bit_count() + half) & 1) for row in range(pairs)}
        for half in range(2 * pairs)
    ]
    mass = Fraction(1, 2 * pairs)
    differ = max(len(a - b) * mass for a in likelier for b in likelier)
    part = haar_wavelet(domain=integers(0, 2 * pairs - 1), epsilon=1)
    assert isinstance(part.parts[0], HaarResponse)
    assert {(share, apart) for _, share, apart in parts_of(part)} == {(Fraction(1, 2), differ)}
    assert all(len(one) * mass == Fraction(1, 2) for one in likelier)


def test_parts_are_those_of_the_levels():
    grr = hierarchical_histogram(domain=integers(0, 3), epsilon=1, oracle="grr")
    expected = ((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 2),) * 3)
    assert parts_of(grr) == expected
    assert parts_of(flat_histogram(domain=DOMAIN, epsilon=1, oracle="oue")) == ()


def histograms(laws):
    """The law of how often each message was sent, all a shuffle shows: one client of each law."""
    found = {(): 1.0}
    for law in laws:
        more = {}
        for (seen, chance), (message, p) in itertools.product(found.items(), law.items()):
            key = tuple(sorted((*seen, message)))
            more[key] = more.get(key, 0.0) + chance * p
        found = more
    return found


@pytest.mark.parametrize(
    "randomizer",
    [
        haar_wavelet(domain=integers(0, 3), epsilon=1),
        haar_wavelet(domain=integers(0, 2), epsilon=2),
        hierarchical_histogram(domain=integers(0, 3), epsilon=1, oracle="grr"),
        flat_histogram(domain=integers(0, 2), epsilon=2, oracle="grr"),
    ],
)
def test_no_shuffle_of_few_reports_is_worse_than_stated(randomizer):
    laws = list(message_laws(randomizer))
    guarantee = randomizer.guarantee.shuffled(reports=3, parts=parts_of(randomizer))
    worst = np.zeros(4)
    levels = np.linspace(0, float(randomizer.epsilon) * 0.9, 4)
    for others in itertools.combinations_with_replacement(laws, 2):
        shown = [histograms([own, *others]) for own in laws]
        for p, q in itertools.permutations(shown, 2):
            for place, level in enumerate(levels):
                delta = sum(
                    max(0.0, mass - math.exp(level) * q.get(m, 0.0)) for m, mass in p.items()
                )
                worst[place] = max(worst[place], delta)
    stated = np.array([guarantee.delta(float(level)) for level in levels])
    assert (worst <= stated * (1 + 1e-9)).all()
    # The bound is near what it bounds; values that were said to differ half as much break it.
    assert worst[0] > 0.3 * stated[0]
    closer = tuple((weight, share, apart / 2) for weight, share, apart in parts_of(randomizer))
    wrong = randomizer.guarantee.shuffled(reports=3, parts=closer)
    assert worst[0] > wrong.delta(0.0)


@pytest.mark.parametrize(("epsilon", "n"), [(1, 10_000), (3, 500), (1e-5, 3)])
def test_shuffled_reports_keep_the_target(epsilon, n):
    found = shuffled_ranges(integers(0, 15), ALL, epsilon=epsilon, delta=1e-6, expected_clients=n)
    assert found.guarantee.relation is NeighboringRelation.REPLACE_ONE or n == 500
    assert 0.98 * epsilon < found.guarantee.epsilon(delta=1e-6) <= epsilon
    assert found.randomizer.epsilon >= epsilon * Fraction(99, 100)
    alone = plan_collection(integers(0, 15), ALL, epsilon=epsilon, expected_clients=n).chosen
    assert found.mean <= n * alone.mean * 1.02


def test_the_ladder(ladder):
    # Like for like: one client's value is replaced, n is public.
    assert ladder["central"].rmse == pytest.approx(21.5, abs=0.1)
    assert ladder["shuffle"].rmse < 75
    assert ladder["local"].rmse == pytest.approx(2331, abs=3)
    assert ladder["shuffle"].local_epsilon > 7.5
    assert [rung.model for rung in ladder.rungs] == ["central", "secure sum", "shuffle", "local"]
    assert ladder["secure sum"].rmse == ladder["central"].rmse
    assert "the shuffler" in str(ladder)


def test_fewer_honest_clients_hide_less():
    whole = compare_trust_models(
        integers(0, 15), ALL, epsilon=1, delta=1e-6, expected_clients=10_000
    )
    half = compare_trust_models(
        integers(0, 15), ALL, epsilon=1, delta=1e-6, expected_clients=10_000, honest_share=0.5
    )
    assert half["secure sum"].mean == pytest.approx(2 * whole["central"].mean)
    assert half["shuffle"].local_epsilon < whole["shuffle"].local_epsilon
    assert half["shuffle"].mean > whole["shuffle"].mean
    assert half["local"].mean == whole["local"].mean
    assert half["central"].mean == whole["central"].mean
    with pytest.raises(InvalidArgument, match="honest"):
        compare_trust_models(
            integers(0, 15), ALL, epsilon=1, delta=1e-6, expected_clients=10_000, honest_share=0
        )


def test_the_published_ladder():
    """As it was published: the total unused, a closed form of shuffling, OUE on every level."""
    cost = budget(epsilon=1)
    blocks = optimal_blocks(
        SIZE,
        workload=ALL,
        price=measurement_cost(cost, family="laplace"),
        relation=NeighboringRelation.REPLACE_ONE,
        contribution=Contribution(),
    )
    central = RangeDesign(
        domain=DOMAIN,
        strategy=blocks,
        budget=cost,
        family="laplace",
        relation=NeighboringRelation.REPLACE_ONE,
    )
    assert math.sqrt(central.mean_variance(ALL)) == pytest.approx(24.9, rel=0.03)
    assert closed_form(5.7, delta=1e-6, reports=CLIENTS) == pytest.approx(1, abs=1e-3)
    shuffle = plan_collection(DOMAIN, ALL, epsilon=5.7, expected_clients=CLIENTS)
    assert shuffle.candidates[0].mean == pytest.approx(0.273, abs=5e-4)
    assert shuffle.chosen.rmse == pytest.approx(165, abs=1)
    oue = optimal_hierarchical_histogram(domain=DOMAIN, epsilon=5.7, workload=ALL, oracle="oue")
    assert oue.law.mean(ALL) == pytest.approx(0.584, abs=5e-4)
    assert flat_histogram(domain=DOMAIN, epsilon=5.7, oracle="subset_selection").law.mean(
        ALL
    ) == pytest.approx(2.14, abs=0.005)
    local = optimal_hierarchical_histogram(domain=DOMAIN, epsilon=1, workload=ALL, oracle="oue")
    assert math.sqrt(CLIENTS * local.law.mean(ALL)) == pytest.approx(2403, abs=1)


def covariance(law, shares):
    """Of the cells, times n, by matrices."""
    assert isinstance(law, HierarchicalVariance)
    size = law.padded
    sizes = (*law.sizes, size)
    p = [np.kron(np.eye(size // block), np.full((block, block), 1 / block)) for block in sizes]
    rates = np.array(law.sizes) * law.rates / law.noise
    steps = [(p[j] - p[j + 1]) / total for j, total in enumerate(np.cumsum(rates))]
    population = np.diag(shares) - np.outer(shares, shares)
    found = -population
    for level, (alpha, gamma) in enumerate(law.spreads):
        u = rates[level] * sum(steps[level:])
        spread = (gamma + 1) * np.diag(shares) - np.outer(shares, shares)
        found = found + (alpha / law.sizes[level] * u @ u + u @ spread @ u) / law.rates[level]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", ["local", "shuffle"])
def test_the_ladder_is_as_high_as_simulated(ladder, model):
    randomizer, rounds = ladder[model].design, 40
    shares = np.full(SIZE, 1 / SIZE)
    counts = np.random.default_rng(31).multinomial(CLIENTS, shares)
    values = np.repeat(np.arange(SIZE), counts)
    gram = w.gram(ALL, SIZE)
    bits = seeded_rng(32)
    squares = []
    for _ in range(rounds):
        release = Aggregator(randomizer).add(randomizer.randomize(values, rng=bits)).estimate()
        error = release.cells - counts
        squares.append(error @ gram @ error)
    spread = CLIENTS * covariance(randomizer.law, counts / CLIENTS) @ gram
    mean, deviation = np.trace(spread), math.sqrt(2 * np.sum(spread * spread.T) / rounds)
    assert mean == pytest.approx(ladder[model].mean, rel=0.01)
    z = stats.norm.isf(ALPHA / 2)
    assert abs(np.mean(squares) - mean) <= z * deviation
    assert z * deviation < 0.45 * mean
    # At the published epsilon of the shuffle, or in the other model, errors are other ones.
    other = ladder["shuffle" if model == "local" else "local"].mean
    assert abs(np.mean(squares) - other) > z * deviation * other / mean


@pytest.mark.slow
def test_the_central_rung_is_as_high_as_simulated(ladder):
    rung, rounds = ladder["central"], 2000
    counts = np.random.default_rng(33).multinomial(CLIENTS, np.full(SIZE, 1 / SIZE))
    gram = w.gram(ALL, SIZE)
    bits = seeded_rng(34)
    errors = np.array([rung.design.release(counts, rng=bits).cells - counts for _ in range(rounds)])
    squares = np.einsum("ri,ij,rj->r", errors, gram, errors, optimize=True)
    # A quadratic form of a noise vector varies by at most twice its squared mean, were it normal;
    # Laplace noise has heavier tails: twice that again.
    z = stats.norm.isf(ALPHA / 2)
    assert np.mean(squares) == pytest.approx(rung.mean, rel=z * math.sqrt(4 / rounds))


@pytest.mark.parametrize("build", [haar_wavelet, optimal_hierarchical_histogram])
@pytest.mark.parametrize(
    ("words", "meant"),
    [("short", WORKLOADS["short"]()), ([(1, 4), (9, 12)], w.ranges([(0, 3), (8, 11)]))],
)
def test_a_workload_may_be_told_in_words(build, words, meant):
    domain = integers(1, 12)
    one, other = (build(domain=domain, epsilon=1, workload=asked) for asked in (words, meant))
    assert one == other


@pytest.mark.parametrize("build", [haar_wavelet, optimal_hierarchical_histogram])
def test_an_unknown_workload_is_refused_by_name(build):
    with pytest.raises(InvalidArgument, match="workload must be one of all, points"):
        build(domain=integers(1, 12), epsilon=1, workload="x")
