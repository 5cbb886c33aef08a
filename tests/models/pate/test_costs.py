"""Costs that depend on votes: sound in both directions for the exact law, and the exact law."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import discreet
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.models.pate import _data_dependent_cost as costs
from discreet.models.pate import aggregators as old
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.teacher_assignment import UNITS
from discreet.noise.gaussian import DiscreteGaussian
from discreet_studies.personalized_pate import exact_divergence as exact

ORDERS = [2, 5, 10, 20, 50]
VOTES = np.array(
    [
        [250] + [0] * 9,
        [230, 10, 5, 2, 1, 1, 1, 0, 0, 0],
        [150, 60, 20, 10, 5, 2, 1, 1, 1, 0],
        [90, 80, 30, 20, 10, 10, 5, 3, 1, 1],
    ]
)


# ── bounds against the exact law ───────────────────────────────────────────────────────────────


def histograms(total, classes):
    for cuts in itertools.combinations_with_replacement(range(total + 1), classes - 1):
        edges = (0, *cuts, total)
        yield tuple(b - a for a, b in itertools.pairwise(edges))


def moves(histogram, share):
    """All neighbors of an owner with ``share`` unit votes: they may split over classes."""
    reached = {histogram}
    for _ in range(share):
        reached |= {
            tuple(c - (k == i) + (k == j) for k, c in enumerate(h))
            for h in reached
            for i, j in itertools.permutations(range(len(h)), 2)
            if h[i]
        }
    return reached - {histogram}


@pytest.mark.parametrize(
    ("total", "classes", "sigma", "share"), [(20, 2, 4, 1), (12, 3, 2, 1), (16, 2, 4, 2)]
)
def test_two_sided_costs_hold_for_the_discrete_law(total, classes, sigma, share):
    """Every histogram, every neighbor, both directions; units of votes are the grid of noise."""
    orders = np.array([1.1, 2, 5, 20, 100])
    laws = {
        h: np.log(exact.discrete_pmf(h, sigma=Fraction(sigma))) for h in histograms(total, classes)
    }
    worst, one_sided = 0.0, 0.0
    for here, law in laws.items():
        error = costs.log_error([here], sigma=Fraction(sigma, UNITS))
        actual = law.max()  # of the plurality; ties go to the first
        assert math.log(-math.expm1(actual)) <= error[0] + 1e-9
        two = costs.answer_cost(
            error, classes=classes, sigma=sigma / UNITS, share=share / UNITS, orders=orders
        )[0]
        one = old.gaussian_cost(np.minimum(error, 0), sigma=sigma / share, orders=orders)[0]
        for there in moves(here, share):
            reverse = exact.divergence(laws[there], law, orders=orders)
            both = np.maximum(exact.divergence(law, laws[there], orders=orders), reverse)
            worst = max(worst, float((both / two).max()))
            one_sided = max(one_sided, float((reverse / one).max()))
    assert worst <= 1
    assert one_sided > 1  # the published bound would be refuted
    assert worst > 0.5


def test_errors_move_as_they_may():
    """One move changes the error by at most the shift of M16, in both directions."""
    sigma, classes = 3, 3
    broken = 0
    for here in histograms(12, classes):
        error = costs.log_error([here], sigma=Fraction(sigma, UNITS))
        most = costs.error_after(error, classes=classes, step=1 / sigma)[0]
        half = costs.error_after(error, classes=classes, step=0.5 / sigma)[0]
        for there in moves(here, 1):
            moved = costs.log_error([there], sigma=Fraction(sigma, UNITS))[0]
            assert moved <= most + 1e-9
            broken += moved > half + 1e-9
    assert broken  # half the shift would not do


@pytest.mark.parametrize(
    ("log_error", "more", "less"),
    [(-10.019228, 5.241896e-5, 3.779195e-5), (-8.246514, 3.044369e-4, 2.255037e-4)],
)
def test_shifts_as_printed(log_error, more, less):
    """B_U and B_L of M16 for votes A and B."""
    up = costs.error_after(log_error, classes=10, step=1 / 40)
    down = costs.error_after(log_error, classes=10, step=-1 / 40)
    assert np.exp([up, down]) == pytest.approx([more, less], rel=2e-6)


def test_tails_of_differences():
    """M44: the exact tails are above those of continuous noise; ours are above the exact ones."""
    law = DiscreteGaussian(square=Fraction(40) ** 2)
    z = np.arange(-800, 801)
    mass = np.exp(law.log_pmf(z))
    for gap, tail in [(1, 0.496474), (60, 0.146438), (220, 5.216407e-5)]:
        exactly = float((mass * law.sf(z + gap - 1)).sum())
        assert exactly == pytest.approx(tail, rel=5e-6)
        assert norm.sf(gap, scale=40 * math.sqrt(2)) < exactly
        bound = costs.log_error([[gap, 0]], sigma=Fraction(40, UNITS))[0]
        assert exactly <= math.exp(bound) < exactly * 1.1


@pytest.mark.parametrize(("sigma", "share"), [(4, 1), (4, 2), (10, 3)])
def test_questions_hold_for_the_discrete_law(sigma, share):
    law = DiscreteGaussian(square=Fraction(sigma) ** 2)
    orders = np.array([1.1, 2, 5, 20])
    chance = {v: float(law.sf(10 - v - 1)) for v in range(-70, 90)}
    worst, reversed_ = 0.0, 0.0
    for v in range(-60, 80):
        cost = costs.query_cost(
            [v],
            threshold=Fraction(10, UNITS),
            sigma=sigma / UNITS,
            share=share / UNITS,
            orders=orders,
        )[0]
        here = np.log([chance[v], 1 - chance[v]]) if 1e-12 < chance[v] < 1 - 1e-12 else None
        for moved in range(-share, share + 1):
            p = chance[v + moved]
            if here is None or not 1e-12 < p < 1 - 1e-12:
                continue
            there = np.log([p, 1 - p])
            worst = max(worst, float((exact.divergence(here, there, orders=orders) / cost).max()))
            reversed_ = max(
                reversed_, float((exact.divergence(there, here, orders=orders) / cost).max())
            )
    assert 0.5 < max(worst, reversed_) <= 1


def test_the_witness_of_the_thesis():
    """T3: for 20 votes against 0 the published bound is below the divergence from the neighbor."""
    error = costs.log_error([[20 * UNITS, 0]], sigma=4)
    one = old.gaussian_cost(error, sigma=4, orders=[5])[0, 0]
    forward, reverse = exact.exact_cost([20, 0], sigma=4, share=1, orders=[5])
    assert one == pytest.approx(0.0218378, rel=1e-3)
    assert forward[0] == pytest.approx(0.000478, rel=1e-2)
    assert reverse[0] == pytest.approx(0.0281595, rel=1e-5)
    two = costs.answer_cost(error, classes=2, sigma=4, share=1, orders=[5])[0, 0]
    assert two == pytest.approx(0.0475607, rel=2e-3)


def test_random_votes_against_exact_divergences():
    rng = np.random.default_rng(3)
    orders = np.array([1.01, 2, 5, 20, 100])
    beaten = 0
    for _ in range(60):
        m = int(rng.integers(2, 6))
        votes = rng.multinomial(50, rng.dirichlet(np.full(m, 0.3)))
        sigma, share = float(rng.uniform(2, 15)), float(rng.choice([0.5, 1, 2]))
        error = costs.log_error([votes * UNITS], sigma=sigma)
        two = costs.answer_cost(error, classes=m, sigma=sigma, share=share, orders=orders)[0]
        forward, reverse = exact.exact_cost(votes, sigma=sigma, share=share, orders=orders)
        assert (forward <= two).all()
        assert (reverse <= two).all()
        one = old.gaussian_cost(np.minimum(error, 0), sigma=sigma / share, orders=orders)[0]
        beaten += bool((reverse > one).any())
    assert beaten > 3


def test_costs_depend_on_ratios_alone():
    a = costs.answer_cost([-8.0], classes=10, sigma=40, share=0.5, orders=ORDERS)
    b = costs.answer_cost([-8.0], classes=10, sigma=80, share=1, orders=ORDERS)
    assert a == pytest.approx(b, rel=1e-12)
    assert (costs.answer_cost([-8.0], classes=10, sigma=40, share=0, orders=ORDERS) == 0).all()
    extreme = costs.answer_cost(
        -np.geomspace(1e-9, 1e4, 400), classes=10, sigma=40, share=1, orders=costs.ORDERS
    )
    assert np.isfinite(extreme).all()
    assert (np.diff(extreme, axis=0) <= 1e-15).all()  # larger errors never cost less


@pytest.mark.parametrize(
    ("step", "order", "ratio"),
    [(1, 2, 0.661825), (2, 2, 0.751651), (1, 50, 0.996881), (0.05, 1024, 0.997056)],
)
def test_the_exact_cost_of_a_bit(step, order, ratio):
    found = costs.bit_cost(step, orders=[order])[0]
    assert found / (order * step**2 / 2) == pytest.approx(ratio, abs=3e-6)


@pytest.mark.parametrize("step", [1e-9, 1e-7, 1e-5, 1e-3])
def test_tiny_bits_are_not_rounded_down(step):
    """The limit is 2/pi of the plain cost; arithmetic that loses digits must err upwards."""
    orders = np.array([1.1, 2, 10, 100])
    ratios = costs.bit_cost(step, orders=orders) / (orders * step**2 / 2)
    assert ((ratios >= 2 / math.pi - 1e-9) & (ratios <= 1)).all()


def test_the_window_grows_with_the_order():
    assert costs.bit_cost(0.3, orders=[256])[0] / (256 * 0.045) == pytest.approx(0.9986, abs=1e-4)
    small = costs.bit_cost(1 / 150, orders=[2, 20, 50]) * 2 * 150**2 / np.array([2, 20, 50])
    assert ((small >= 2 / math.pi - 1e-6) & (small < 0.7)).all()


# ── the exact law ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("votes", "sigma", "law"),
    [
        ((5, 3, 2), 2, (0.693003, 0.207998, 0.098998)),
        ((10, 4, 4, 1), 5, (0.659360, 0.143536, 0.143536, 0.053567)),
    ],
)
def test_laws_of_winners(votes, sigma, law):
    assert np.exp(exact.log_pmf(votes, sigma=sigma)) == pytest.approx(law, abs=1e-6)


@pytest.mark.parametrize("gap", [10, 50, 83, 250])
def test_far_behind_the_law_keeps_its_digits(gap):
    found = exact.log_pmf([gap, 0], sigma=1)[1]
    assert found == pytest.approx(norm.logsf(gap / math.sqrt(2)), rel=1e-11)


def test_discrete_and_continuous_laws_meet():
    fine = exact.discrete_pmf([2000, 500, 100], sigma=Fraction(900))
    assert fine == pytest.approx(np.exp(exact.log_pmf([2000, 500, 100], sigma=900)), abs=1e-3)
    assert fine.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("row", "forward", "reverse"),
    [
        (
            0,
            [3.784883e-7, 8.549083e-7, 1.465684e-6, 2.253893e-6, 3.214974e-6],
            [4.222009e-7, 1.187794e-6, 2.958040e-6, 1.018177e-5, 3.763457e-4],
        ),
        (
            1,
            [2.129700e-6, 5.983112e-6, 1.483643e-5, 4.994831e-5, 1.363411e-3],
            [2.343640e-6, 6.586888e-6, 1.634388e-5, 5.505079e-5, 1.477922e-3],
        ),
        (
            2,
            [3.208442e-4, 8.554132e-4, 1.908361e-3, 4.758225e-3, 1.980465e-2],
            [3.343081e-4, 8.901885e-4, 1.981175e-3, 4.910006e-3, 1.996526e-2],
        ),
    ],
)
def test_exact_costs(row, forward, reverse):
    found = exact.exact_cost(VOTES[row], sigma=40, share=1, orders=ORDERS)
    assert found[0] == pytest.approx(forward, rel=1e-6)
    assert found[1] == pytest.approx(reverse, rel=1e-6)


def test_two_classes_are_not_the_worst():
    """M42: two of many classes cost more than two classes ever do, so that curve is refused."""
    found = max(c[0] for c in exact.exact_cost([130, 131] + [0] * 8, sigma=40, share=1, orders=[2]))
    assert found == pytest.approx(7.959852e-4, rel=1e-6)
    assert found > costs.bit_cost(math.sqrt(2) / 40, orders=[2])[0]


def test_a_confident_rule_exactly():
    """The threshold test in the output: no answer, or a winner."""
    with_test = exact.exact_cost(VOTES[1], sigma=40, share=1, orders=ORDERS, threshold=(200, 150))
    alone = exact.exact_cost(VOTES[1], sigma=40, share=1, orders=ORDERS)
    assert with_test[0][0] == pytest.approx(2.789559e-5 + 0.579 * alone[0][0], rel=0.05)
    silent = exact.exact_cost([0.5, 0.4], sigma=40, share=1, orders=ORDERS)
    assert (silent[0] == 0).all()  # nobody has a whole vote to move


# ── diagnoses ──────────────────────────────────────────────────────────────────────────────────


RULE = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)


def test_end_to_end_as_printed():
    """M19: 381 questions with votes B, 221 answers; two-sided, so a bit above what is printed."""
    counts = np.repeat(VOTES[1:2] * UNITS, 381, axis=0)
    told = np.arange(381) < 221
    orders = np.arange(2, 51)
    found = costs.data_dependent_cost(
        counts, told, aggregator=RULE, shares={"one": UNITS, "more": 4 * UNITS // 3}, orders=orders
    )
    epsilons = found.epsilons(1e-5)
    assert 0.598575 < epsilons["one"] < 0.598575 * 1.02
    assert 0.819341 < epsilons["more"] < 0.819341 * 1.03
    asked = costs.data_dependent_cost(
        counts, ~told & told, aggregator=RULE, shares={"one": UNITS}, orders=orders
    )
    assert asked.curves["one"] == pytest.approx(381 * orders / 2 / 150**2)


def test_the_exact_diagnosis_is_below_the_bound():
    counts = np.vstack([VOTES, VOTES[:, ::-1]]) * UNITS
    told = np.array([True, True, True, False] * 2)
    given = {"aggregator": RULE, "shares": {"one": UNITS, "none": 0}, "orders": ORDERS}
    found = exact.diagnose_exactly(counts, told, **given).curves
    forward_or_reverse = [4.222009e-7, 2.343640e-6, 3.343081e-4]  # at order 2, the worse of both
    asked = 8 * 2 / (2 * 150**2)
    assert found["one"][0] == pytest.approx(asked + 2 * sum(forward_or_reverse), rel=1e-6)
    bound = costs.data_dependent_cost(counts, told, **given).curves
    assert (found["one"] < bound["one"]).all()
    assert (found["none"] == 0).all()
    with pytest.raises(InvalidArgument, match="answered"):
        exact.diagnose_exactly(counts, told[1:], **given)


def test_many_rows_are_rounded_up_a_little():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(250, rng.dirichlet(np.full(4, 0.1), size=20_000)) * UNITS
    told = np.ones(len(counts), dtype=bool)
    orders = np.array([2.0, 10])
    whole = costs.data_dependent_cost(
        counts, told, aggregator=RULE, shares={"a": UNITS}, orders=orders
    )
    parts = sum(
        costs.data_dependent_cost(c, t, aggregator=RULE, shares={"a": UNITS}, orders=orders).curves[
            "a"
        ]
        for c, t in zip(np.split(counts, 4), np.split(told, 4), strict=True)
    )
    assert (whole.curves["a"] >= parts * (1 - 1e-12)).all()
    assert (whole.curves["a"] <= parts * 1.01).all()


def test_a_diagnosis_cannot_be_charged_or_printed(tmp_path):
    found = costs.data_dependent_cost(
        VOTES * UNITS, [True] * 4, aggregator=RULE, shares={"all": UNITS}
    )
    assert not any(ch.isdigit() for ch in repr(found))
    crowd = discreet.Ledger(f"sqlite:///{tmp_path}/b.db").personal_budgets(
        "data", limits={"all": discreet.approx_dp(1, 1e-6)}, members=[1], privacy_levels=["all"]
    )
    with pytest.raises(PrivacyError):
        crowd.charge_all(found, label="labels")
    with pytest.raises(InvalidArgument, match="answered"):
        costs.data_dependent_cost(VOTES * UNITS, [True], aggregator=RULE, shares={"all": UNITS})
    with pytest.raises(InvalidArgument, match="sigma"):
        costs.log_error(VOTES * UNITS, sigma=0.001)
    with pytest.raises(InvalidArgument, match="histogram"):
        exact.exact_cost(VOTES, sigma=40, share=1, orders=[2])
    with pytest.raises(InvalidArgument, match="small"):
        exact.discrete_pmf([1, 2], sigma=Fraction(10**6))
