"""The statistical attack: what it catches, what it must not accuse, what it does with any shape."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet.audit._attack import OutputColumns, attack, claim_points, lower_bound, upper_bound
from discreet.audit.cases.sparse_vector import laplace_integers
from discreet.core.errors import InvalidArgument


def seeded(draw, seed: int = 1):
    seeds = itertools.count(seed)
    return lambda value, n: draw(value, n, np.random.default_rng(next(seeds)))


def laplace(scale: float):
    return seeded(lambda x, n, rng: x + laplace_integers(scale, n, rng))


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_scale_ten_per_cent_too_small_is_caught_and_the_right_one_is_not(epsilon: float) -> None:
    samples = 1_000_000
    good = attack(laplace(1 / epsilon), 0, 1, claimed=(epsilon, 0.0), samples=samples)
    bad = attack(laplace(0.9 / epsilon), 0, 1, claimed=(epsilon, 0.0), samples=samples)
    assert not good.broken
    assert good.epsilon > 0.9 * epsilon
    assert bad.broken
    assert epsilon < bad.epsilon <= epsilon / 0.9


def test_clopper_pearson_covers_exactly() -> None:
    """Coverage by summing the binomial law: no sampling."""
    trials, level = 200, 0.01
    hits = np.arange(trials + 1)
    low = np.array([lower_bound(int(k), trials, level) for k in hits])
    high = np.array([upper_bound(int(k), trials, level) for k in hits])
    for p in (0.001, 0.02, 0.3, 0.5, 0.97):
        mass = stats.binom.pmf(hits, trials, p)
        assert mass[low > p].sum() <= level
        assert mass[high < p].sum() <= level
        # and the bounds are not empty: at a level of 60% they do miss
        assert mass[np.array([lower_bound(int(k), trials, 0.6) for k in hits]) > p].sum() > level


def test_no_false_alarm_over_many_attacks() -> None:
    """At failure 0.2 an attack that cheated (tested where it learned) would often accuse."""
    rng_seeds = range(60)
    accused = 0
    for seed in rng_seeds:
        run = seeded(lambda x, n, rng: x + laplace_integers(1.0, n, rng), seed=1000 * seed)
        accused += attack(
            run, 0, 1, claimed=(1.0, 0.0), samples=2000, failure_probability=0.2
        ).broken
    # Binomial(60, 0.2): more than 33 has probability below 1e-8.
    assert accused <= 33
    assert stats.binom.sf(33, 60, 0.2) < 1e-8


def test_every_shape_of_output_is_read() -> None:
    symbols = np.array(["yes", "no"])
    outputs = {
        "strings": lambda x, n, rng: symbols[(rng.random(n) < 0.1 + 0.8 * x).astype(int)],
        "tuples": lambda x, n, rng: [("a",) * int(k) for k in rng.integers(1, 3 + 5 * x, n)],
        "booleans": lambda x, n, rng: rng.random(n) < 0.1 + 0.8 * x,
        "lists": lambda x, n, rng: (x + rng.integers(0, 2, n)).tolist(),
        "matrices": lambda x, n, rng: rng.integers(0, 2, (n, 2, 2)) + x,
        "widths": lambda x, n, rng: np.zeros((n, 2 + x)),
    }
    for name, draw in outputs.items():
        found = attack(seeded(draw), 0, 1, claimed=(0.5, 0.0), samples=5000)
        assert found.broken, name
        same = attack(seeded(draw), 1, 1, claimed=(0.0, 0.0), samples=5000)
        assert not same.broken, name


def test_imaginary_parts_are_read() -> None:
    found = attack(lambda x, n: np.full(n, 1j * x), 0, 1, claimed=(0.5, 0.0), samples=5000)
    assert found.broken


def test_an_event_depends_on_one_output_only() -> None:
    """Columns of a batch, of its parts and in another order agree: else a test would be unsound."""
    rng = np.random.default_rng(3)
    ragged = [tuple(rng.normal(size=int(k)).round(int(k))) for k in rng.integers(0, 6, 300)]
    numbers = np.where(rng.random((300, 3)) < 0.1, np.nan, rng.normal(size=(300, 3)))
    for outputs in (ragged, numbers, rng.integers(-5, 5, (300, 6))):
        whole = OutputColumns(outputs)
        for i in range(0, 300, 7):
            one = OutputColumns(outputs[i : i + 1])
            for key in whole.keys:
                assert one[key][0] == whole[key][i], (key, i)
                assert whole.rows(i, i + 1)[key][0] == whole[key][i]


def test_a_curve_is_tested_at_several_points() -> None:
    class Curve:
        def epsilon(self, delta: float) -> float:
            return math.inf if delta == 0 else 4.9

        def delta(self, epsilon: float) -> float:
            far = math.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon)
            return float(stats.norm.cdf(0.5 - epsilon) - far)

    points = claim_points(Curve())
    assert points[0] == (4.9, 1e-6)
    assert points[1].epsilon == 0
    assert points[1].delta == pytest.approx(0.38292, abs=1e-5)

    def draw(sigma: float):
        return seeded(lambda x, n, rng: np.round((x + rng.normal(0, sigma, n)) * 2**20) / 2**20)

    assert not attack(draw(1.0), 0, 1, claimed=Curve(), samples=400_000).broken
    bad = attack(draw(0.9), 0, 1, claimed=Curve(), samples=400_000)
    assert bad.broken
    assert "refuted" in str(bad)


def test_what_passes_is_said_to_prove_nothing() -> None:
    found = attack(laplace(1.0), 0, 1, claimed=(1.0, 0.0), samples=1000)
    assert "proves nothing" in str(found)


@pytest.mark.parametrize("claimed", [(-1.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -0.1)])
def test_bad_claims_are_refused(claimed: tuple[float, float]) -> None:
    with pytest.raises(InvalidArgument, match="claimed"):
        attack(laplace(1.0), 0, 1, claimed=claimed, samples=1000)


def test_bad_runs_are_refused() -> None:
    for outputs in (np.array([2**60, 0]), [(2**60,), (0,)], [np.int64(2**60), 0]):
        with pytest.raises(InvalidArgument, match="2\\*\\*53"):
            OutputColumns(outputs)
    with pytest.raises(InvalidArgument, match="run"):
        attack(lambda x, n: 3, 0, 1, claimed=(1.0, 0.0), samples=1000)
    # Turned over, these would be three outputs, and the exact input would pass unseen.
    for run in (lambda x, n: np.full((3, n), x), lambda x, n: [], lambda x, n: np.array([])):
        with pytest.raises(InvalidArgument, match="run must return 1000 outputs"):
            attack(run, 0, 1, claimed=(1.0, 0.0), samples=1000)
    with pytest.raises(InvalidArgument, match="samples"):
        attack(laplace(1.0), 0, 1, claimed=(1.0, 0.0), samples=10)
    with pytest.raises(InvalidArgument, match="failure"):
        attack(laplace(1.0), 0, 1, claimed=(1.0, 0.0), samples=1000, failure_probability=0)
