"""What may be done to estimated shares, and how often their intervals hold the truth."""

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.local.oracles.base import Frequencies
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue

RAW = np.array([0.7, -0.1, 0.3, 0.05, -0.02, 0.2])


def made(shares, reports=1000, oracle=None):
    shares = np.asarray(shares, dtype=float)
    oracle = oue(categories=max(2, len(shares)), epsilon=1) if oracle is None else oracle
    variance = oracle.variance(np.clip(shares, 0, 1)) / reports
    return Frequencies(shares=shares, reports=reports, variance=variance, oracle=oracle)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [2, 3, 30])
def test_projection_is_the_nearest_distribution(seed, size):
    """Optimality: no move toward any corner of the simplex comes nearer."""
    raw = np.random.default_rng(seed).normal(1 / size, 1, size)
    found = made(raw).projected().shares
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)
    # <raw - found, corner - found> <= 0 for all corners: the variational inequality.
    inner = (raw - found) - (raw - found) @ found
    assert inner.max() <= 1e-12


def test_projection_never_grows_the_squared_error():
    generator = np.random.default_rng(6)
    for _ in range(200):
        truth = generator.dirichlet(np.full(8, 0.3))
        raw = truth + generator.normal(0, 0.2, 8)
        nearer = made(raw).projected().shares
        assert ((nearer - truth) ** 2).sum() <= ((raw - truth) ** 2).sum() + 1e-12


def test_adjustments_by_hand():
    f = made(RAW)
    assert f.pinned().shares == pytest.approx(RAW - 0.13 / 6, abs=1e-12)
    assert f.projected().shares == pytest.approx([0.633333, 0, 0.233333, 0, 0, 0.133333], abs=1e-6)
    assert f.norm_mul().shares == pytest.approx(np.maximum(RAW, 0) / 1.25, abs=1e-12)
    assert f.norm_cut().shares == pytest.approx([0.7, 0, 0.3, 0, 0, 0], abs=1e-12)
    # The line: 2.638 standard deviations (miss 0.05 over six) of an empty category, 0.0607.
    line = stats.norm.isf(0.05 / 12) * np.sqrt(f.oracle.variance(0.0) / 1000)
    assert 0.05 < line < 0.2
    assert f.base_cut().shares == pytest.approx([0.7, 0, 0.3, 0, 0, 0.2], abs=1e-12)


def test_adjustments_of_what_is_all_negative():
    f = made([-0.5, -0.2, -0.3])
    assert f.projected().shares == pytest.approx([1 / 6, 7 / 15, 11 / 30], abs=1e-12)
    assert f.norm_mul().shares == pytest.approx([1 / 3] * 3)
    assert f.norm_cut().shares.tolist() == [0, 0, 0]
    assert made([1.5, -0.2]).norm_cut().shares.tolist() == [1, 0]
    assert made([1.5, -0.2]).projected().shares.tolist() == [1, 0]


def test_only_unbiased_estimates_have_an_error_law():
    f = made(RAW)
    for adjusted in (f.projected(), f.norm_mul(), f.norm_cut(), f.base_cut()):
        for ask in (adjusted.interval, adjusted.pinned, lambda a=adjusted: a.range(0, 1)):
            with pytest.raises(Unsupported, match="unbiased"):
                ask()
    assert f.pinned().interval()[0].shape == (6,)
    with pytest.raises(Unsupported, match="unadjusted"):
        f.pinned().interval(guaranteed=True)


def test_ranges_use_the_law_of_sums():
    independent = made(RAW)
    whole, half = independent.range(0, 5), independent.range(0, 2)
    assert whole.share == pytest.approx(RAW.sum())
    assert whole.std == pytest.approx(np.sqrt(independent.oracle.range_variance(6, 1) / 1000))
    assert independent.pinned().range(0, 5).share == pytest.approx(1)
    assert independent.pinned().range(0, 5).std == pytest.approx(0, abs=1e-9)
    assert independent.pinned().range(0, 2).std < half.std
    exclusive = made(RAW / RAW.sum(), oracle=grr(categories=6, epsilon=1))
    assert exclusive.range(0, 5).std == 0
    for low, high in ((-1, 2), (2, 1), (0, 6)):
        with pytest.raises(InvalidArgument, match="low and high"):
            independent.range(low, high)


def coverage(oracle, n, own, bounds):
    """How often bounds hold the share, exactly: T is Bin(own, keep) + Bin(n - own, other)."""
    held = np.convolve(
        stats.binom.pmf(np.arange(own + 1), own, oracle.keep),
        stats.binom.pmf(np.arange(n - own + 1), n - own, oracle.other),
    )
    counts = np.zeros((n + 1, oracle.categories))
    counts[:, 0] = np.arange(n + 1)
    hits = [
        low[0] - 1e-12 <= own / n <= high[0] + 1e-12
        for low, high in (bounds(oracle.estimate(row, n)) for row in counts)
    ]
    return float(held[np.array(hits)].sum())


@pytest.mark.parametrize("build", [grr, oue])
@pytest.mark.parametrize("level", [0.8, 0.99])
def test_guaranteed_intervals_hold_at_least_as_often_as_stated(build, level):
    for epsilon in (0.5, 3, 6):  # at 6 lies are rare, and the normal law is far off
        oracle = build(categories=4, epsilon=epsilon)
        for n in (1, 10, 60):
            for own in {0, n // 3, n}:
                held = coverage(oracle, n, own, lambda f: f.interval(level, guaranteed=True))
                assert held >= level


def test_a_third_of_the_guaranteed_width_does_not_hold():
    oracle = oue(categories=4, epsilon=1)

    def narrow(f):
        low, high = f.interval(0.8, guaranteed=True)
        return f.shares - (f.shares - low) / 3, f.shares + (high - f.shares) / 3

    assert coverage(oracle, 60, 20, narrow) < 0.8


@pytest.mark.parametrize("build", [grr, oue])
@pytest.mark.parametrize("reports", [100, 400])
def test_normal_intervals_hold_about_as_often_as_stated(build, reports):
    oracle = build(categories=4, epsilon=1)
    for own in (0, reports // 4, reports):
        held = coverage(oracle, reports, own, lambda f: f.interval(0.95))
        assert 0.935 <= held <= 0.965
        narrow = coverage(oracle, reports, own, lambda f: f.interval(0.9))
        assert narrow < 0.93


def test_the_ends_of_an_interval_are_just_not_contradicted():
    z = stats.norm.isf(0.025)
    for f, law in ((made(RAW), "range_variance"), (made(RAW).pinned(), "pinned_variance")):
        for end in f.interval(0.95):
            gap = (f.shares - end) ** 2
            assert gap == pytest.approx(z**2 * getattr(f.oracle, law)(1, end) / 1000, rel=1e-9)
    bare = Frequencies(shares=RAW, reports=10, variance=np.ones(6))
    assert bare.interval(0.95)[1] == pytest.approx(RAW + z)


def test_nothing_collected_says_nothing():
    f = oue(categories=3, epsilon=1).estimate(np.zeros(3, dtype=np.int64), 0)
    assert f.shares == pytest.approx([1 / 3] * 3)
    low, high = f.interval(guaranteed=True)
    assert np.all(np.isinf(low) & np.isinf(high))
    assert np.isinf(f.range(0, 1).std)
    assert f.pinned().shares == pytest.approx([1 / 3] * 3)


def test_shown_largest_first():
    f = made(np.r_[RAW, np.zeros(10)])
    assert [share.category for share in f.top(3)] == [0, 2, 5]
    assert len(f.top(99)) == 16
    text = str(f)
    assert "16 shares from 1,000 reports" in text
    assert text.splitlines()[1].startswith("  0: 0.700 ")
    assert text.splitlines()[3].startswith("  5: ")
    assert "1,000 reports, projected" in repr(f.projected())
    assert f.counts[0] == pytest.approx(700)
    with pytest.raises(InvalidArgument, match="k must"):
        f.top(0)


def test_without_an_oracle_there_is_no_law():
    f = Frequencies(shares=RAW, reports=10, variance=np.ones(6))
    for ask in (f.base_cut, lambda: f.range(0, 1), lambda: f.interval(guaranteed=True)):
        with pytest.raises(Unsupported):
            ask()
    assert f.pinned().shares.sum() == pytest.approx(1)
