"""What attacks can do at most: closed forms, brute force, and likelihood-ratio attacks."""

import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import norm

import discreet
from discreet import Guarantee, NeighboringRelation
from discreet.accounting import meaning as module
from discreet.cli.main import main
from discreet.core import events
from discreet.core.errors import InvalidArgument

RATES = (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9)


def best_test(p, q, rate):
    """The true-positive rate of the best (randomized) test, by Neyman and Pearson."""
    order = np.argsort(-np.where(q > 0, p / np.where(q > 0, q, 1), np.inf), kind="stable")
    spent = found = 0.0
    for i in order:
        share = 1.0 if q[i] <= rate - spent else max(0.0, (rate - spent) / q[i])
        spent, found = spent + share * q[i], found + share * p[i]
        if share < 1:
            break
    return found


def lattice(event, reach=4000):
    """Exact distributions of integer noise on both neighbors."""
    k = np.arange(-reach, reach + 1)
    match event:
        case events.DiscreteLaplaceEvent(scale, shift):
            log = -np.abs(k[:, None] - np.array([0, shift])) / float(scale)
        case events.DiscreteGaussianEvent(variance, squared, 1):
            moved = math.isqrt(int(squared))
            log = -((k[:, None] - np.array([0, moved])) ** 2) / (2 * float(variance))
    mass = np.exp(log)
    return (mass / mass.sum(axis=0)).T


@pytest.mark.parametrize("mu", [0.05, 0.25, 0.5, 1, 2, 4])
def test_gaussians_meet_their_closed_forms_from_above(mu):
    found = discreet.gdp(mu).meaning()
    exact = 2 * norm.cdf(mu / 2) - 1
    assert exact <= found.advantage <= exact * 1.005
    for rate in RATES:
        exact = norm.cdf(norm.ppf(rate) + mu)
        assert exact <= found.true_positive_rate(rate) <= exact * 1.005


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_pure_and_laplace_meet_their_closed_forms_from_above(epsilon):
    worst = discreet.pure_dp(epsilon).meaning()
    assert worst.advantage == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    assert worst.accuracy() == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-9)
    laplace = Guarantee(events.LaplaceEvent(1 / Fraction(epsilon))).meaning()
    assert laplace.advantage == pytest.approx(-math.expm1(-epsilon / 2), rel=1e-9)
    for rate in (1e-4, 1e-3, 0.01):
        line = math.exp(epsilon) * rate
        for found in (worst, laplace):
            assert line <= found.true_positive_rate(rate) <= line * 1.005


@pytest.mark.parametrize(
    "event",
    [
        events.DiscreteLaplaceEvent(Fraction(2), 1),
        events.DiscreteLaplaceEvent(Fraction(3), 2),
        events.DiscreteGaussianEvent(Fraction(16), Fraction(1), 1),
        events.DiscreteGaussianEvent(Fraction(4), Fraction(4), 1),
    ],
    ids=str,
)
def test_small_discrete_mechanisms_meet_brute_force_from_above(event):
    p, q = lattice(event)
    found = Guarantee(event).meaning()
    advantage = 0.5 * np.abs(p - q).sum()
    assert advantage * (1 - 1e-9) <= found.advantage <= advantage * 1.005
    for rate in RATES:
        exact = max(best_test(p, q, rate), best_test(q, p, rate))
        assert exact * (1 - 1e-9) <= found.true_positive_rate(rate) <= exact * 1.005
    for prior in (0.5, 0.1, 0.9):
        right = np.maximum(prior * p, (1 - prior) * q).sum()
        assert right * (1 - 1e-9) <= found.accuracy(prior) <= right * 1.005


def test_the_numbers_of_known_releases():
    cases = {
        discreet.gdp(0.5): (0.1974, 0.004796, 0.03390, 0.5987),
        discreet.zcdp(0.1): (0.2236, 0.004770, 0.03516, 0.6118),
        discreet.gdp(1).sampled(0.01) * 10_000: (0.4801, 0.03802, 0.1540, 0.7400),
        Guarantee(events.DiscreteGaussianEvent(Fraction(16), Fraction(1), 1)): (
            0.0997, 0.002251, 0.01891, 0.5499,
        ),
    }  # fmt: skip
    for guarantee, expected in cases.items():
        one = guarantee.meaning()
        found = one.advantage, *one.curve([0.001, 0.01]), one.accuracy()
        assert found == pytest.approx(expected, rel=0.005)


def random_mechanisms():
    random = np.random.default_rng(2910)
    for _ in range(2000):
        size = random.integers(2, 7)
        shape = random.choice([0.3, 1, 5])
        yield random, random.dirichlet([shape] * size), random.dirichlet([shape] * size)


def check_random_mechanisms(meaning_of):
    for trial, (random, p, q) in enumerate(random_mechanisms()):
        with np.errstate(divide="ignore"):
            pure = float(np.abs(np.log(p) - np.log(q)).max())
        if trial % 2 and pure < 50:
            guarantee = discreet.pure_dp(pure * (1 + 1e-12))
        else:
            e = random.uniform(0, 2)
            delta = max(
                np.maximum(p - math.exp(e) * q, 0).sum(), np.maximum(q - math.exp(e) * p, 0).sum()
            )
            guarantee = discreet.approx_dp(e, min(delta * (1 + 1e-12), 0.999999))
        found = meaning_of(guarantee)
        rate, prior = random.uniform(0, 1, 2)
        assert 0.5 * np.abs(p - q).sum() <= found.advantage * (1 + 1e-9)
        assert best_test(p, q, rate) <= found.true_positive_rate(rate) * (1 + 1e-9)
        assert np.maximum(prior * p, (1 - prior) * q).sum() <= found.accuracy(prior) * (1 + 1e-9)
        after = prior * p / (prior * p + (1 - prior) * q)
        assert after.max() <= found.posterior(prior) * (1 + 1e-9)
        above = random.uniform(prior, 1)
        for chances in (p, q):
            exceeded = chances[after > above].sum()
            assert exceeded <= found.posterior_probability(prior, above=above) * (1 + 1e-9)


def test_no_finite_mechanism_exceeds_any_number():
    check_random_mechanisms(lambda guarantee: guarantee.meaning())


def test_bounds_that_are_a_little_smaller_are_exceeded():
    def smaller(guarantee):
        found = guarantee.meaning()
        return module.AttackBounds(
            found.relation, found.epsilon * 0.9, found.advantage * 0.9, found._epsilons,
            found._deltas * 0.9,
        )  # fmt: skip

    with pytest.raises(AssertionError):
        check_random_mechanisms(smaller)


def test_candidates_are_guessed_no_more_often():
    """A guess among m candidates, each with its own output distribution around a common one."""
    random = np.random.default_rng(2911)
    for _ in range(300):
        outputs, many = random.integers(2, 7), int(random.integers(2, 6))
        centre = random.dirichlet([2] * outputs)
        rows = centre * np.exp(random.uniform(-0.5, 0.5, (many, outputs)))
        rows /= rows.sum(axis=1, keepdims=True)
        pure = float(np.abs(np.log(rows / centre)).max())
        found = discreet.pure_dp(pure * (1 + 1e-12)).meaning()
        assert rows.max(axis=0).sum() / many <= found.identification(many) * (1 + 1e-9)


@pytest.mark.parametrize(
    "event",
    [
        events.DiscreteLaplaceEvent(Fraction(2), 1),
        events.DiscreteGaussianEvent(Fraction(16), Fraction(1), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("copies", [1, 3])
def test_likelihood_ratio_attacks_never_do_better(event, copies):
    """The attack on the exact distributions, composed, and simulated with 200,000 people."""
    p, q = lattice(event, reach=80)
    found = (Guarantee(event) * copies).meaning()
    random = np.random.default_rng(2912)
    people = 200_000
    score = np.zeros((2, people))
    for _ in range(copies):
        for row, chances in enumerate((p, q)):
            drawn = random.choice(len(p), size=people, p=chances)
            score[row] += np.log(p[drawn]) - np.log(q[drawn])
    # Dvoretzky, Kiefer, Wolfowitz with Massart's constant, for all thresholds of both samples.
    off = math.sqrt(math.log(2 / 5e-7) / (2 * people))
    cuts = np.unique(score)
    true = 1 - np.searchsorted(np.sort(score[0]), cuts) / people
    false = 1 - np.searchsorted(np.sort(score[1]), cuts) / people
    assert (true - false).max() <= found.advantage + 2 * off
    assert (true <= np.array(found.curve(list(np.minimum(false + off, 1)))) + off).all()
    half = (Guarantee(events.PureEvent(Fraction(1, 100))) * copies).meaning()
    assert (true - false).max() > half.advantage + 2 * off  # the attack finds a false claim


def test_posteriors_of_pure_guarantees():
    found = discreet.pure_dp(1).meaning()
    priors = (0.5, 0.1, 0.01, 0.001)
    expected = [p * math.e / (1 - p + p * math.e) for p in priors]
    assert [found.posterior(p) for p in priors] == pytest.approx(expected, rel=1e-9)
    assert found.posterior_probability(0.1, above=0.5) == 0.0
    assert discreet.gdp(1).meaning().posterior(0.1) == 1.0


def test_posterior_of_a_gaussian_is_bounded_from_above():
    found = discreet.gdp(0.5).meaning()
    t = math.log(0.1 * 0.99 / (0.9 * 0.01))
    exact = norm.sf(t / 0.5 - 0.25)
    assert exact <= found.posterior_probability(0.01, above=0.1) <= 3 * exact
    assert found.posterior_probability(0.5, above=0.4) == 1.0


def test_more_releases_reveal_more():
    one = discreet.gdp(0.3)
    found = [(one * k).meaning() for k in (1, 2, 5)]
    for first, second in pairwise(found):
        assert first.advantage < second.advantage
        assert all(np.array(first.curve(RATES)) <= np.array(second.curve(RATES)) * (1 + 1e-9))


def test_nothing_released_reveals_nothing():
    found = discreet.pure_dp(0).meaning()
    assert found.advantage == pytest.approx(0, abs=1e-9)
    assert found.true_positive_rate(0.01) == pytest.approx(0.01)
    assert found.accuracy(0.9) == pytest.approx(0.9)


def test_sampled_events_are_bounded_in_both_directions():
    """Randomized response on a sample: the two directions differ, and the bound holds for each."""
    rate, e = 0.2, 1.5
    guarantee = discreet.pure_dp(e).sampled(rate)
    base = np.array([1, math.exp(e)]) / (1 + math.exp(e))
    other = base[::-1]
    with_one = (1 - rate) * base + rate * other
    found = guarantee.meaning()
    for first, second in ((with_one, base), (base, with_one)):
        for alarms in RATES:
            assert best_test(first, second, alarms) <= found.true_positive_rate(alarms) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (discreet.pure_dp(1), "whether they took part"),
        (discreet.pure_dp(1).to_replace_one(), "which of two records is theirs"),
        (discreet.pure_dp(1, relation=NeighboringRelation.LOCAL), "which of two values they hold"),
    ],
)
def test_the_relation_decides_the_words(guarantee, words):
    text = guarantee.meaning().words()
    assert words in text
    assert "at most" in text
    assert "anonym" not in text
    assert "74 of 100" in discreet.pure_dp(1).meaning().words()  # .7311, rounded up


@pytest.mark.parametrize("measure", ["gdp", "pure", "laplace", "zcdp"])
def test_the_budget_for_a_risk_meets_it_and_is_the_largest(measure):
    budget = discreet.budget_for_risk(measure, advantage=0.1)
    assert 0.0999 < budget.meaning().advantage <= 0.1
    if measure == "gdp":
        assert float(1 / budget.event.mu) == pytest.approx(1 / (2 * norm.ppf(0.55)), rel=1e-6)


def test_the_budget_for_a_rate_of_alarms():
    budget = discreet.budget_for_risk(true_positive_rate=0.005, false_positive_rate=0.001)
    assert float(1 / budget.event.mu) == pytest.approx(1.944001, rel=1e-3)
    with pytest.raises(InvalidArgument, match="above false_positive_rate"):
        discreet.budget_for_risk(true_positive_rate=0.001, false_positive_rate=0.01)
    with pytest.raises(InvalidArgument, match="Give advantage"):
        discreet.budget_for_risk("pure")
    with pytest.raises(InvalidArgument, match="too small"):
        discreet.budget_for_risk("pure", advantage=1e-12)
    assert discreet.budget_for_risk("pure", advantage=1 - 2**-53).epsilon() > 28


# ── Command line and picture ─────────────────────────────────────────────────────────────────────


def explain(*given):
    return CliRunner().invoke(main, ["explain", *map(str, given)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--epsilon", 1), "74 of 100"),
        (("--epsilon", 1, "--delta", 1e-6), "74 of 100"),
        (("--rho", 0.1), "62 of 100"),
        (("--mu", 0.5), "60 of 100"),
        (("--mu", 0.5, "--relation", "REPLACE_ONE"), "which of two records"),
    ],
)
def test_the_command_explains_a_budget(given, words):
    result = explain(*given)
    assert result.exit_code == 0
    assert words in result.output


def test_the_command_explains_a_file_and_draws(tmp_path):
    path, picture = tmp_path / "release.json", tmp_path / "curve.svg"
    path.write_text(json.dumps({"guarantee": json.loads(discreet.gdp(0.5).to_json())}))
    result = explain(path, "--json", "--plot", picture)
    assert json.loads(result.output)["rows"][0]["at most"] == pytest.approx(0.1974, abs=1e-4)
    assert "What an attacker gains" in picture.read_text()


@pytest.mark.parametrize(
    "given", [(), ("--epsilon", 1, "--rho", 1), ("--delta", 0.1), ("--epsilon", -1)]
)
def test_what_is_no_budget_is_refused(given):
    assert explain(*given).exit_code == 2


def test_a_file_that_holds_no_guarantee_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[1]")
    assert explain(path).exit_code == 2
    path.write_text(discreet.gdp(1).to_json())
    assert explain(path, "--mu", 1).exit_code == 2


def test_the_picture_has_the_pure_bound_where_there_is_one():
    assert "epsilon 1 alone" in discreet.plot(discreet.pure_dp(1).meaning()).svg
    assert "alone" not in discreet.plot(discreet.gdp(1).meaning()).svg
