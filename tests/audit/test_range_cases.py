"""The published range structures fall, ours stand; every number that was printed is met."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.cases import _range_outputs as ranges
from discreet.audit.cases import ranges as range_cases
from discreet.audit.runner import FAMILY, audit_case, registered
from discreet.cli.main import main
from discreet.core.errors import InvalidArgument
from tests.distributions import ALPHA, frequency


@pytest.mark.parametrize("case", range_cases.published(), ids=lambda case: case.name)
def test_the_published_are_caught(case: AuditCase) -> None:
    row = audit_case(case, failure_probability=FAMILY / 100, samples=case.samples, seed=11)
    assert row.verdict == "BROKEN"
    assert case.why


@pytest.mark.parametrize("case", range_cases.sound(), ids=lambda case: case.name)
def test_the_sound_are_not_accused(case: AuditCase) -> None:
    samples = min(case.samples, 4_000)
    row = audit_case(case, failure_probability=FAMILY / 100, samples=samples, seed=11)
    assert row.verdict in ("holds", "not refuted")


def test_a_stream_with_too_little_noise_is_accused() -> None:
    """The check above can fail: the same draws, with half the epsilon claimed."""
    case = next(case for case in range_cases.sound() if case.name == "stream on a tree")
    half = AuditCase(
        name="half", claimed=(0.5, 0.0), draw=case.draw, left=case.left, right=case.right
    )
    assert audit_case(half, failure_probability=1e-8, samples=20_000, seed=1).verdict == "ACCUSED"


def test_leaves_of_the_published_tree_are_read_and_of_a_sound_one_not() -> None:
    """F22b: 63 of 64, for any epsilon; the first leaf alone stays in the dark."""
    published, sound = range_cases.recoveries(seed=3)
    assert (published.recovered, published.leaves, published.ok) == (63, 64, True)
    assert (sound.recovered, sound.ok) == (0, True)
    leaves = list(range(64))
    for epsilon in (1e-3, 1.0):
        tree = ranges.published_tree(leaves, epsilon=epsilon, seed=1)
        found = ranges.cancel(tree)
        assert math.isnan(found[0])
        assert np.abs(found[1:] - leaves[1:]).max() < 1e-9


def test_the_identity_behind_the_attack_holds_for_any_degree() -> None:
    """Parent - first + second = 2 second + third + ... (M1)."""
    leaves = np.arange(27)
    noisy = ranges.published_tree(leaves.tolist(), epsilon=0.1, seed=4, degree=3)
    true = ranges.tree_counts(leaves.tolist(), degree=3)
    for level in range(3):
        first, second, _ = noisy[level + 1].reshape(-1, 3).T
        _, two, three = true[level + 1].reshape(-1, 3).T
        assert noisy[level] - first + second == pytest.approx(2 * two + three, abs=1e-9)


def test_the_same_differences_of_a_sound_tree_carry_three_noises() -> None:
    """No cancellation: the variance is that of three nodes."""
    leaves = [5, 1, 3, 0]
    estimates = [
        ranges.cancel(ranges.sound_tree(leaves, epsilon=1, seed=seed))[-1] for seed in range(4_000)
    ]
    node = 2 * 3.0**2 * (1 - 1 / (12 * 9))  # discrete Laplace of scale 3, to the next order
    reach = stats.norm.isf(ALPHA / 2) * math.sqrt(5 / 4_000)
    assert abs(np.var(estimates) / (3 * node / 4) - 1) < reach


@pytest.mark.parametrize(
    ("leaves", "degree", "factor"),
    [(32, 2, 2.32), (128, 2, 2.67), (1024, 2, 3.18), (81, 3, 2.15), (64, 4, 2.00), (1024, 4, 2.32)],
)
def test_scale_of_the_published_tree(leaves: int, degree: int, factor: float) -> None:
    """M2: used log2(levels), needed levels."""
    levels = len(ranges.tree_counts([0] * leaves, degree=degree))
    assert ranges.tree_epsilon(levels, 1.0) == pytest.approx(factor, abs=6e-3)


@pytest.mark.parametrize(
    ("size", "epsilon", "real"),
    [(2, 0, 1.099), (2, 1, 1.862), (4, 0.2, 0.966), (4, 1, 1.531), (16, 2, 2.184)],
)
def test_real_epsilon_of_the_published_oracle(size: int, epsilon: float, real: float) -> None:
    """M3, from the formula and from the exact laws."""
    assert ranges.oracle_epsilon(size, epsilon) == pytest.approx(real, abs=6e-4)
    laws = [ranges.oracle_distribution(value, size=size, epsilon=epsilon) for value in (0, 1)]
    assert exact.epsilon(exact.pair(*laws)).upper == pytest.approx(
        ranges.oracle_epsilon(size, epsilon)
    )


def test_the_published_oracle_follows_its_law_and_is_unbiased() -> None:
    n = 100_000
    reports = ranges.published_oracle(np.full(n, 2), size=5, epsilon=1, seed=1)
    law = ranges.oracle_distribution(2, size=5, epsilon=1)
    for value, count in enumerate(np.bincount(reports, minlength=5)):
        assert frequency(count, n, law[value])
    estimates = ranges.oracle_estimates(reports, size=5, epsilon=1)
    assert estimates.sum() == pytest.approx(n)
    assert estimates[2] == pytest.approx(n, rel=0.02)


def test_messages_of_the_published_local_tree_follow_their_law() -> None:
    n = 100_000
    messages = ranges.published_local_tree(np.full(n, 5), size=8, epsilon=1, seed=1)
    law = ranges.local_tree_distribution(5, size=8, epsilon=1)
    assert sum(law.values()) == pytest.approx(1)
    for (level, node), mass in law.items():
        seen = int(((messages[:, 0] == level) & (messages[:, 1] == node)).sum())
        assert frequency(seen, n, mass)


def test_averaging_fresh_noise() -> None:
    """F22a: the deviation falls with the root of the number of repeats."""
    for repeats in (1, 100):
        means = [
            ranges.averaged(7, epsilon=0.1, repeats=repeats, seed=seed) for seed in range(2_000)
        ]
        expected = 2 * 10**2 / repeats
        reach = stats.norm.isf(ALPHA / 2) * math.sqrt(5 / 2_000)
        assert abs(np.var(means) / expected - 1) < reach


def test_reconstruction_from_all_ranges() -> None:
    """F22e: fresh noise on every range gives the bits away; less so for small epsilon."""
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, 64).tolist()
    assert ranges.reconstruct(bits, epsilon=1.0, seed=1) > 0.95
    shares = [ranges.reconstruct(bits, epsilon=0.02, seed=seed) for seed in range(20)]
    assert 0.45 < np.mean(shares) < 0.65


def test_the_flat_one_is_right_but_for_its_doubles() -> None:
    noise = [ranges.published_flat([3], epsilon=0.5, seed=seed)[0] - 3 for seed in range(4_000)]
    assert stats.kstest(noise, stats.laplace(0, 2).cdf).pvalue > ALPHA


def test_trees_of_other_sizes_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="power"):
        ranges.tree_counts([0] * 6, degree=2)
    with pytest.raises(InvalidArgument, match="degree"):
        ranges.tree_counts([0] * 4, degree=1)


def test_all_are_registered() -> None:
    names = {case.name for case in registered()}
    assert {case.name for case in range_cases.cases()} <= names


def test_the_command_line_shows_what_was_recovered() -> None:
    asked = ["published OLH", "tree as "]
    result = CliRunner().invoke(main, ["audit", "--published", "--json", *asked])
    assert result.exit_code == 0
    rows = {row["name"]: row for row in map(json.loads, result.output.splitlines())}
    assert rows["published OLH"]["verdict"] == "BROKEN"
    assert rows["tree as published"]["recovered"] == 63
    assert rows["tree as released here"]["recovered"] == 0
    assert all("published OLH" in name or "tree as " in name for name in rows)


def test_the_command_line_lists_what_was_published() -> None:
    listed = CliRunner().invoke(main, ["audit", "--published", "--list"]).output.splitlines()
    assert {case.name for case in range_cases.cases()} <= set(listed)
    assert "tree as published" in listed


def test_the_command_line_fails_when_a_sound_tree_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = range_cases.Recovery(name="ours", leaves=64, recovered=1, broken=False)
    monkeypatch.setattr("discreet.audit.cases.ranges.recoveries", lambda: (wrong,))
    result = CliRunner().invoke(main, ["audit", "--published", "published OLH", "ours"])
    assert result.exit_code == 1
    assert "1 of 64 leaves" in result.output
