"""Our own mechanisms: none accused, each mutant accused, samplers equal to their laws."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.cases import mechanisms as catalog
from discreet.audit.lattice_distribution import discrete_laplace, listed
from discreet.audit.runner import FAMILY, audit_case, registered
from discreet.audit.side_channels import precision_attack, timing_attack
from discreet.local.oracles.randomized_response import randomized_response
from discreet.mechanisms.above_threshold import above_threshold
from discreet.mechanisms.additive import gaussian, laplace
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.mechanisms.selection import exponential_mechanism, permute_and_flip, report_noisy_max
from discreet.noise.random_source import seeded_rng
from tests.counting_source import CountedBits

OWN = catalog.mechanism_cases()
BY_NAME = {case.name: case for case in OWN}


def verdict(case: AuditCase) -> str:
    # Where every output is a release of its own, sums are the sharper check: few samples do.
    samples = min(case.samples, 500) if case.samples <= catalog.ONE_BY_ONE else case.samples
    return audit_case(case, failure_probability=FAMILY / 100, samples=samples, seed=5).verdict


def test_names_are_unique_and_all_kinds_are_there() -> None:
    names = [case.name for case in registered()]
    assert len(set(names)) == len(names)
    for kind in (
        "laplace",
        "gaussian",
        "truncated laplace",
        "randomized response",
        "exponential",
        "permute and flip",
        "noisy max",
        "above threshold",
        "partition selection",
    ):
        assert any(name.startswith(kind) for name in BY_NAME), kind


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_none_of_ours_is_accused(case: AuditCase) -> None:
    assert verdict(case) in ("holds", "not refuted")


@pytest.mark.parametrize("case", [c for c in OWN if c.laws is not None], ids=lambda c: c.name)
def test_exact_laws_keep_the_claim_and_use_it(case: AuditCase) -> None:
    """Within the claim on these inputs, and at least half of it: the inputs are no easy ones."""
    assert case.laws is not None
    claimed = (
        case.claimed if isinstance(case.claimed, tuple) else (case.claimed.epsilon(1e-9), 1e-9)
    )
    found = exact.epsilon(case.laws(), claimed[1])
    assert found.lower <= claimed[0] * (1 + 1e-9)
    assert found.lower >= 0.5 * claimed[0]


@pytest.mark.parametrize(("left", "right"), [(0.0, 1.0), (1 / 3, -2 / 3), (0.1, 0.1 + 2**-30)])
def test_rounded_laplace_law_is_listed_without_cancellation(left: float, right: float) -> None:
    mechanism = laplace(sensitivity=1, epsilon=1, domain="reals", granularity=2**-8)
    laws = catalog.rounded_laplace_distributions(mechanism, left, right)
    assert laws.left.sum() == pytest.approx(1, abs=1e-12)
    assert laws.right.sum() == pytest.approx(1, abs=1e-12)
    found = exact.epsilon(laws)
    assert found.lower <= abs(left - right) + 1e-15
    assert found.upper >= 0.99 * abs(left - right)
    # Cell by cell against the sampler's own rounding: half a step to each side.
    step = 2**-8
    k = round(min(left, right) / step) + np.arange(len(laws.left) - 2)
    mass = stats.laplace(left).cdf((k + 0.5) * step) - stats.laplace(left).cdf((k - 0.5) * step)
    assert laws.left[1:-1] == pytest.approx(mass, abs=1e-13)


WEAKER = 10 / 9  # epsilon of noise that is 10% too small
MUTANTS = {
    "laplace": laplace(sensitivity=1, epsilon=WEAKER, domain="integers"),
    "laplace, sensitivity 3": laplace(sensitivity=3, epsilon=0.5 * WEAKER, domain="integers"),
    "laplace, small scale": laplace(sensitivity=1, epsilon=4 * WEAKER, domain="integers"),
    "laplace, large scale": laplace(sensitivity=10**6, epsilon=WEAKER, domain="integers"),
    "laplace, reals": laplace(sensitivity=1, epsilon=WEAKER, domain="reals"),
    "laplace, tiny reals": laplace(sensitivity=1e-9, epsilon=WEAKER, domain="reals"),
    "laplace, no domain given": laplace(sensitivity=1, epsilon=WEAKER),
    "laplace, vector": laplace(sensitivity=2, epsilon=WEAKER),
    "gaussian, GDP": gaussian(sensitivity=1, mu=WEAKER, domain="integers"),
    "gaussian, reals": gaussian(sensitivity=1, mu=WEAKER, domain="reals"),
    "gaussian, vector": gaussian(sensitivity=2, mu=WEAKER),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_noise_ten_per_cent_too_small_is_accused_by_samples_alone(name: str) -> None:
    mutant = dataclasses.replace(
        BY_NAME[name], draw=catalog.additive_draw(MUTANTS[name]), laws=None
    )
    assert verdict(mutant) == "ACCUSED"


def test_response_that_keeps_too_often_is_accused() -> None:
    wrong = randomized_response(categories=5, epsilon=WEAKER)
    mutant = dataclasses.replace(
        BY_NAME["randomized response, 5 categories"],
        draw=lambda value, n, seed: wrong.release(np.full(n, value), rng=seeded_rng(seed)),
        laws=None,
    )
    assert verdict(mutant) == "ACCUSED"


def test_a_truncation_one_step_too_narrow_is_accused_by_sums() -> None:
    case = BY_NAME["truncated laplace"]
    assert isinstance(case.claimed, tuple)
    right = truncated_laplace(sensitivity=1, epsilon=1, delta=0.01)
    narrow = discrete_laplace(1.0).condition(-right.noise.upper + 1, right.noise.upper - 1)
    mutant = dataclasses.replace(case, laws=lambda: exact.pair(narrow, narrow.shift(1)))
    assert verdict(mutant) == "ACCUSED"


@pytest.mark.parametrize("make", [exponential_mechanism, permute_and_flip, report_noisy_max])
@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 4), (3, 1, 2, 0, 2)])
def test_choices_follow_our_own_enumeration(make, scores) -> None:
    """Two routes to the law agree, and the sampler follows it cell by cell."""
    mechanism = make(sensitivity=1, epsilon=1)
    law = catalog.selection_distribution(mechanism, scores)
    assert mechanism.probabilities(scores) == pytest.approx(list(law.values()), abs=1e-12)
    n, bits = 2000, seeded_rng(3)
    seen = Counter(mechanism.release(scores, rng=bits) for _ in range(n))
    level = 1e-6 / 100
    for i, p in law.items():
        assert stats.binomtest(seen[i], n, min(p, 1.0)).pvalue > level
    # The check can fail: the law at twice the weight is refused.
    twice = catalog.selection_distribution(make(sensitivity=1, epsilon=2), scores)
    if len(set(scores)) > 1:
        assert min(stats.binomtest(seen[i], n, p).pvalue for i, p in twice.items()) < level


def test_threshold_runs_follow_our_own_enumeration() -> None:
    mechanism = above_threshold(sensitivity=1, epsilon=1, positives=2)
    values = (0, 3, -3, 2)
    law = outputs.SparseVectorOutputs(
        threshold=0,
        threshold_noise=listed(mechanism.threshold_noise),
        query_noise=listed(mechanism.query_noise),
        cutoff=2,
    ).law(values)
    n, bits = 2000, seeded_rng(4)
    seen = Counter(
        tuple(mechanism.release(values, threshold=0, rng=bits).tolist()) for _ in range(n)
    )
    assert set(seen) <= set(law)
    for answers, p in law.items():
        assert stats.binomtest(seen[answers], n, p).pvalue > 1e-6 / len(law)


SCALES = [1e-6, 0.1, 1.0, 37.0, 1e6]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_low_bits_tell_nothing(kind: str, scale: float) -> None:
    """Outputs on 0, on one sensitivity, and on a number with many bits."""
    if kind == "laplace":
        mechanism = laplace(sensitivity=scale, epsilon=1, domain="reals")
    else:
        mechanism = gaussian(sensitivity=scale, mu=1, domain="reals")
    draw = catalog.additive_draw(mechanism)
    seeds = iter(range(10**6))
    for right in (scale, scale / 3, -scale * math.pi / 4):
        found = precision_attack(
            lambda value, n: draw(value, n, next(seeds)), 0.0, right, epsilon=1.5, samples=50_000
        )
        assert not found.separates
        assert max(found.left_only, found.right_only) < 2e-3


@pytest.mark.parametrize(
    "mechanism",
    [
        laplace(sensitivity=1, epsilon=0.1),
        laplace(sensitivity=1, epsilon=0.1, domain="reals"),
        gaussian(sensitivity=1, mu=0.1, domain="integers"),
        gaussian(sensitivity=1, rho=0.005, domain="integers"),
        gaussian(sensitivity=1, mu=0.1, domain="reals"),
    ],
    ids=repr,
)
def test_work_does_not_tell_the_noise(mechanism) -> None:
    bits = CountedBits(8)
    for size in (1, 50):
        found = timing_attack(
            lambda n=size: mechanism.release(
                np.zeros(n, dtype=np.int64 if mechanism.integers else np.float64), rng=bits
            ),
            repetitions=1500,
            clock=lambda: bits.drawn,
        )
        assert not found.tells
