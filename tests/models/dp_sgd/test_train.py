"""Private gradient descent: exact sums, a bound on every record's share, the law of the noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.models.dp_sgd import train
from discreet.models.dp_sgd.losses import Floats, Huber, Logistic, Loss, Softmax, Squared
from discreet.models.dp_sgd.train import (
    FEATURE_BITS,
    FeatureMap,
    SlopeGrid,
    Steps,
    TrainingRun,
    descend,
    squared_norms,
    whole_slopes,
)
from discreet.noise.random_source import seeded_rng
from tests.distributions import ALPHA, follows, frequency
from tests.models.dp_sgd.test_losses import Wavy

OBJECTIVES = [
    Logistic(l2=0.1),
    Huber(huber_threshold=0.5),
    Squared(weight=2.0),
    Softmax(classes=3, intercept=True),
]


def mapped(columns: int = 4, *, row_norm: float = 1.3, intercept: bool = True) -> FeatureMap:
    return FeatureMap.of(
        (-1, 1), columns=columns, names=None, intercept=intercept, row_norm=row_norm
    )


def run_of(objective: Loss, **changes: object) -> TrainingRun:
    plain = TrainingRun(
        objective=objective,
        rate=Fraction(1),
        steps=1,
        noise=Fraction(1),
        clip=0.4,
        rows=1.0,
        learning_rate=1.0,
    )
    return replace(plain, **changes)


def batch(rows: Steps, targets: Floats, run: TrainingRun) -> train.Batch:
    return train.Batch(steps=rows, targets=targets, run=run)


def data(n: int, columns: int = 4, seed: int = 0) -> tuple[Steps, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, columns))
    return mapped(columns).steps(x), rng.integers(0, 2, n).astype(float)


def test_rows_are_whole_bounded_and_short() -> None:
    x = np.random.default_rng(3).uniform(-3, 3, (500, 6))
    rows = mapped(6).steps(x)
    assert (rows == np.rint(rows)).all()
    assert np.abs(rows).max() <= 2**FEATURE_BITS
    assert np.sqrt(squared_norms(rows * 1.0)).max() <= 1.3 * 2**FEATURE_BITS
    free = mapped(6, row_norm=9.0).steps(x)
    assert np.allclose(free[:, 1:] / 2**FEATURE_BITS, np.clip(x, -1, 1), atol=2.0**-14)


def test_zero_stays_zero_and_other_bounds_are_centered() -> None:
    kept = FeatureMap.of(
        [(0, 1), (-2, 4), (17, 90)], columns=3, names=None, intercept=False, row_norm=9.0
    )
    steps = kept.steps(np.array([[1.0, 0.0, 17.0], [0.0, 4.0, 90.0], [2.0, -9.0, 0.0]]))
    units = steps / 2**FEATURE_BITS
    assert units.tolist() == [[1.0, 0.0, -1.0], [0.0, 1.0, 1.0], [1.0, -0.5, -1.0]]
    slopes, starts = kept.in_units(np.array([1.0, 2.0, 3.0]))
    inside = np.array([[0.3, 1.0, 50.0]])
    assert math.isclose(
        (inside @ slopes[0] + starts[0])[0],
        (kept.steps(inside) / 2**FEATURE_BITS @ [1, 2, 3])[0],
        abs_tol=1e-3,
    )


def test_a_row_is_mapped_alike_wherever_it_stands() -> None:
    """Bit by bit: in another order, in other company, alone."""
    x = np.random.default_rng(4).standard_normal((301, 13))
    whole = mapped(13).steps(x)
    order = np.random.default_rng(5).permutation(301)
    assert (mapped(13).steps(x[order]) == whole[order]).all()
    assert all((mapped(13).steps(x[i : i + 1])[0] == whole[i]).all() for i in range(0, 301, 7))


@pytest.mark.parametrize("clip", [2.0**-16, 0.013, 0.4, 1.0, 7.3, 2.0**16])
def test_caps_hold_in_integers(clip: float) -> None:
    rng = np.random.default_rng(1)
    rows = np.concatenate(
        [
            mapped(9, row_norm=99.0).steps(rng.uniform(-1, 1, (2000, 9))),
            np.eye(10),
            np.zeros((1, 10)),
        ]
    )
    grid = SlopeGrid(clip=clip)
    assert Fraction(grid.sensitivity) * Fraction(grid.unit) <= Fraction(clip)
    assert grid.sensitivity > 2**16
    for row, cap in zip(rows, grid.caps(rows), strict=True):
        square = sum(int(value) ** 2 for value in row)
        assert int(cap) ** 2 * square <= grid.sensitivity**2
        # Nearly the largest that is allowed: privacy is not bought by clipping more.
        assert square == 0 or (int(cap) + 2) ** 2 * square > grid.sensitivity**2 * (1 - 2**-30)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sums_are_exact_and_a_record_moves_them_by_its_own_short_share(
    objective: Loss,
) -> None:
    """Brute force over all removals and additions, at many parameters, in integers."""
    rows, targets = data(41)
    spare, others = data(5, seed=9)
    rng = np.random.default_rng(2)
    run = run_of(objective)
    limit = SlopeGrid(clip=run.clip).sensitivity
    reached = 0
    for _ in range(12):
        theta = 4 * rng.standard_normal(objective.dimension(5))
        whole = batch(rows, targets, run).sum(theta, None)
        for i in range(41):
            left = batch(np.delete(rows, i, 0), np.delete(targets, i), run).sum(theta, None)
            own = batch(rows[i : i + 1], targets[i : i + 1], run).sum(theta, None)
            assert (whole - left == own).all()
            square = sum(int(value) ** 2 for value in own)
            assert square <= limit**2
            reached = max(reached, square)
        for row, target in zip(spare, others, strict=True):
            more = batch(np.vstack([row[None], rows]), np.append(target, targets), run)
            own = batch(row[None], np.array([target]), run).sum(theta, None)
            assert (more.sum(theta, None) - whole == own).all()
    assert reached > 0.99 * limit**2


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sums_of_samples_and_of_many_chunks(
    objective: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, targets = data(100)
    theta = np.random.default_rng(8).standard_normal(objective.dimension(5))
    monkeypatch.setattr(train, "_ROWS", 7)
    held = batch(rows, targets, run_of(objective))
    shares = [held.sum(theta, np.array([i])) for i in range(100)]
    chosen = np.flatnonzero(np.arange(100) % 3 == 0)
    assert (held.sum(theta, chosen) == sum(shares[i] for i in chosen)).all()
    assert (held.sum(theta, None) == sum(shares)).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_clipping_sums_are_gradients(objective: Loss) -> None:
    rows, targets = data(200)
    theta = 0.5 * np.random.default_rng(6).standard_normal(objective.dimension(5))
    run = run_of(objective, clip=16.0)
    units = rows / 2**FEATURE_BITS
    exact = objective.mean_gradient(theta, units, targets) - objective.penalty_gradient(theta)
    own = batch(rows, targets, run).sum(theta, None) * SlopeGrid(clip=16.0).unit / 200
    # Slopes are read off every 2**-11, and lie on a grid of 2**-13.
    assert np.abs(own - exact).max() < 3e-4


def test_an_objective_without_whole_slopes_is_refused() -> None:
    with pytest.raises(Unsupported, match="Wavy"):
        whole_slopes(Wavy(), SlopeGrid(clip=1.0))
    with pytest.raises(InvalidArgument, match="clip"):
        SlopeGrid(clip=2.0**30)


def one_step(run: TrainingRun, rows: Steps, targets: Floats, seeds: range) -> Floats:
    """Noisy sums in steps, recovered from the parameters after one step."""
    unit = SlopeGrid(clip=run.clip).unit / float(run.rate)
    return np.concatenate(
        [-descend(rows, targets, run=run, rng=seeded_rng(seed)) / unit for seed in seeds]
    )


def test_noise_is_rounded_gaussian_of_the_stated_size() -> None:
    run = run_of(Logistic(), noise=Fraction(3, 2))
    drawn = one_step(run, np.zeros((0, 2000), np.int16), np.zeros(0), range(60))
    assert np.allclose(drawn, np.rint(drawn), atol=1e-3)
    sigma = 1.5 * SlopeGrid(clip=run.clip).sensitivity

    def cdf(k: Floats, spread: float = sigma) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((k + 0.5) / spread))

    whole = np.rint(drawn)
    assert follows(whole, cdf)
    for wrong in (0.9, 1.1):
        assert not follows(whole, lambda k, w=wrong: cdf(k, w * sigma))


def test_every_row_is_drawn_independently_with_the_rate() -> None:
    rate = Fraction(3, 2**4) + Fraction(1, 2**32)
    run = run_of(Logistic(), rate=rate, steps=4000)
    chosen = np.zeros((4000, 9), dtype=bool)
    for step, (rows, _) in enumerate(train._draws(9, 1, run, seeded_rng(5))):
        chosen[step, rows] = True
    for i, j in itertools.combinations(range(9), 2):
        assert frequency((chosen[:, i] & chosen[:, j]).sum(), 4000, float(rate) ** 2)
    # Also from step to step.
    assert frequency((chosen[1:] & chosen[:-1]).sum(), 3999 * 9, float(rate) ** 2)
    assert frequency(chosen.sum(), 36000, float(rate))
    assert not frequency(chosen.sum(), 36000, float(rate) * 1.2)


def test_steps_follow_momentum_penalty_and_average() -> None:
    """Against a plain loop in doubles, with noise too small to matter."""
    rows, targets = data(60)
    objective = Logistic(l2=0.2, intercept=True)
    run = run_of(
        objective,
        steps=30,
        noise=Fraction(1, 2**20),
        clip=8.0,
        rows=60.0,
        learning_rate=0.3,
        momentum=0.5,
        average=0.5,
    )
    theta, velocity, seen = np.zeros(5), np.zeros(5), []
    for _ in range(30):
        velocity = 0.5 * velocity + objective.mean_gradient(theta, rows / 2**FEATURE_BITS, targets)
        theta = theta - 0.3 * velocity
        seen.append(theta)
    ours = descend(rows, targets, run=run, rng=seeded_rng(1))
    assert np.allclose(ours, np.mean(seen[15:], axis=0), atol=1e-3)
    last = descend(rows, targets, run=replace(run, average=0.0), rng=seeded_rng(1))
    assert np.allclose(last, seen[-1], atol=1e-3)
    assert not np.allclose(last, ours, atol=1e-3)


def test_mean_of_sampled_gradients_is_the_full_gradient() -> None:
    """C35: a step on a sample is unbiased, within 4.7 standard errors at this level."""
    rows, targets = data(50)
    run = run_of(
        Huber(huber_threshold=0.3), rate=Fraction(1, 4), clip=2.0, noise=Fraction(1, 2**10)
    )
    held = batch(rows, targets, run)
    theta = np.full(5, 0.3)
    shares = np.array([held.sum(theta, np.array([i])) for i in range(50)]) * 1.0
    sums = np.array(
        [
            held.sum(theta, chosen)
            for chosen, _ in train._draws(50, 5, replace(run, steps=20000), seeded_rng(3))
        ]
    )
    variance = (shares**2).sum(axis=0) * 3 / 16
    from scipy.stats import norm

    reach = norm.isf(ALPHA / 10) * np.sqrt(variance / 20000)
    gap = np.abs(sums.mean(axis=0) - shares.sum(axis=0) / 4)
    assert (gap <= reach).all()
    assert not (np.abs(sums.mean(axis=0) - shares.sum(axis=0) / 3.8) <= reach).all()


def test_a_run_that_diverges_is_an_error() -> None:
    rows, targets = data(60)
    run = run_of(Squared(), steps=200, rows=0.01, clip=8.0, learning_rate=2.0**30)
    with pytest.raises(NotCertified, match="learning_rate"):
        descend(rows, targets, run=run, rng=seeded_rng(1))


@pytest.mark.parametrize("rows", [100, 101])
def test_noise_that_leaves_64_bits_shows_nothing_of_the_sum(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut noise plus a sum would be the sum: the noisy sum is cut, below where noise is."""
    monkeypatch.setattr("discreet.mechanisms.additive.LARGEST_SQUARE", 1 << 130)
    run = run_of(Logistic(), clip=1.0, noise=Fraction(1 << 31))
    steps = np.full((rows, 64), 1 << (FEATURE_BITS - 3), dtype=np.int16)
    found = descend(steps, np.zeros(rows), run=run, rng=seeded_rng(5))
    assert np.abs(found).max() == 2.0**31
