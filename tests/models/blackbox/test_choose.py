"""The choice on public data, its parts, and the estimate from noisy numbers (A42, A47)."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.learned import Cell, markdown, summary
from benchmarks.learned_boxes import boxes, trimmed
from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.choose import (
    ConstantMethod,
    ConstantWindowMethod,
    IntervalFitMethod,
    LipschitzMethod,
    SelectionTask,
    TreeEnvelopeMethod,
    baselines,
    choose,
    score,
    starters,
    tree_methods,
    trees_of,
)
from discreet.models.blackbox.examples import NoisyValuePosterior, constant_error, noise_nodes
from discreet.models.blackbox.mechanism import distribution_of, make_noise
from discreet.models.blackbox.metrics import Adjacency, CellMetric, Truncated
from discreet.models.blackbox.output_ranges import ConstantRange, to_steps
from discreet.noise.laplace import DiscreteLaplace

DRAW = np.random.default_rng(0)
INPUTS = np.clip(DRAW.uniform(1, 9, (40, 1, 1)) + DRAW.normal(0, 1, (40, 5, 1)), 0, 10)
SAID = INPUTS.mean(axis=(1, 2)) - 5


def task(**changed) -> SelectionTask:
    given = {"inputs": INPUTS, "said": SAID, "adjacency": Adjacency.of("record"), "epsilon": 1}
    return SelectionTask(**(given | changed))


def test_a47_the_estimate_is_the_weighted_median_by_hand() -> None:
    law = DiscreteLaplace(3)
    clipped, said = DRAW.integers(-10, 10, size=15), DRAW.normal(size=15)
    found = NoisyValuePosterior(clipped=clipped, said=said, distribution=law).estimate(
        np.arange(-20, 21)
    )
    for noisy, one in zip(range(-20, 21), found, strict=True):
        weights = np.exp(-np.abs(noisy - clipped) / 3)
        losses = [float(weights @ np.abs(said - x)) for x in said]
        assert weights @ np.abs(said - one) == pytest.approx(min(losses))


def test_a47_noise_of_bounded_reach_falls_back_to_the_median() -> None:
    law = distribution_of(make_noise(4, epsilon=1, delta=0.1))
    far = NoisyValuePosterior(
        clipped=np.array([0, 1, 2]), said=np.array([3.0, 5.0, 4.0]), distribution=law
    )
    assert law.log_pmf(10**9) == -np.inf
    assert far.estimate(np.array([10**9])).tolist() == [4.0]


def test_a47_pairs_must_match() -> None:
    with pytest.raises(InvalidArgument):
        NoisyValuePosterior(
            clipped=np.array([1]), said=np.array([]), distribution=DiscreteLaplace(1)
        )


def test_the_expected_error_is_that_of_a_simulation() -> None:
    law = distribution_of(make_noise(512, epsilon=1))
    said = DRAW.uniform(-3000, 3000, size=400)
    clipped = np.clip(np.floor(said), -2000, 2000).astype(np.int64)
    known, new = slice(0, 300), slice(300, 400)
    made = NoisyValuePosterior(clipped=clipped[known], said=said[known], distribution=law)
    nodes = DRAW.permutation(np.concatenate([noise_nodes(law)] * 10))
    noisy = clipped[new, None] + nodes[None, :]
    errors = np.abs(made.estimate(noisy.ravel()).reshape(noisy.shape) - said[new, None])
    assert made.expected_error() == pytest.approx(errors.mean(), rel=0.15)
    assert made.expected_error() < constant_error(said)


def test_noise_so_large_that_nothing_is_heard_costs_what_a_constant_costs() -> None:
    law = distribution_of(make_noise(1 << 20, epsilon=Fraction(1, 100)))
    made = NoisyValuePosterior(clipped=to_steps(SAID, Fraction(1, 64)), said=SAID, distribution=law)
    assert made.expected_error() == pytest.approx(constant_error(SAID), rel=0.03)


def test_the_nodes_are_the_law() -> None:
    law = distribution_of(make_noise(512, epsilon=1))
    nodes = noise_nodes(law)
    assert np.all(np.diff(nodes) > 0)
    assert nodes.mean() == pytest.approx(0, abs=1)
    shares = law.cdf(nodes)
    assert shares == pytest.approx((np.arange(32) + 0.5) / 32, abs=1e-2)


def test_windows_cut_off_least() -> None:
    said = np.array([0.0, 1.0, 2.0, 10.0])
    window = ConstantRange.fit(said, width=2, step=Fraction(1))
    assert (window.low, window.high) in ((0, 2), (1, 3))
    best = min(np.abs(said - np.clip(said, low, low + 2)).mean() for low in np.arange(-3, 12, 0.5))
    assert np.abs(said - np.clip(said, window.low, window.high)).mean() == best
    with pytest.raises(InvalidArgument):
        ConstantRange(low=1, high=0, step=Fraction(1))


def test_a42_constants_always_take_part_and_the_choice_is_repeated_exactly() -> None:
    kinds = {type(one) for one in baselines(task())}
    assert kinds == {ConstantMethod, ConstantWindowMethod}
    first, second = choose(task()), choose(task())
    assert [one.candidate for one in first] == [one.candidate for one in second]
    assert any(one.candidate.width == 0 for one in first)
    errors = [one.error for one in first]
    assert errors == sorted(errors)
    assert kinds < {type(one) for one in starters(task())}


def test_a42_a_fold_is_not_judged_by_itself() -> None:
    """Outputs that are noise can be learned by heart, which must not help."""
    noise = np.random.default_rng(1).normal(size=len(SAID))
    one = LipschitzMethod(
        metric=Truncated(width=0.1), slope=512, width=512, step=Fraction(1, 256), describes="x"
    )
    folds = [np.arange(start, 40, 4) for start in range(4)]
    heart = one.build(INPUTS, noise)
    low, high = heart.ranges(INPUTS)
    steps = to_steps(noise, one.step)
    assert np.abs(steps - np.clip(steps, low, high)).mean() / 256 < 0.01
    assert score(task(said=noise), one, folds).error > 0.8 * constant_error(noise)


@pytest.mark.parametrize(
    "one",
    [
        LipschitzMethod(
            metric=Truncated(width=2.0), slope=256, width=512, step=Fraction(1, 256), describes="x"
        ),
        IntervalFitMethod(
            metric=CellMetric(cuts=(3.0, 6.0)), width=512, step=Fraction(1, 256), describes="x"
        ),
        ConstantWindowMethod(width=512, step=Fraction(1, 256)),
        ConstantMethod(step=Fraction(1, 256)),
    ],
)
def test_candidates_build_ranges_of_their_width(one) -> None:
    made = one.build(INPUTS, SAID)
    assert made.width == one.width
    assert made.step == one.step
    low, high = made.ranges(INPUTS)
    assert (high - low <= one.width).all()
    assert one.name


def test_a38_trees_need_no_data() -> None:
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    flat = INPUTS[:, :, 0]
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(flat, SAID)
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(flat, SAID)
    boosted = GradientBoostingRegressor(n_estimators=2).fit(flat, SAID)
    assert trees_of(tree) == (tree,)
    assert len(trees_of(forest)) == 3
    assert trees_of(boosted) == trees_of(np.mean) == trees_of(object()) == ()
    for model in (tree, forest):
        one = TreeEnvelopeMethod(
            trees=trees_of(model),
            origin=0.0,
            shape=(5, 1),
            slope=4096,
            width=4096,
            step=Fraction(1, 256),
        )
        made = one.build(INPUTS, SAID)
        assert made.width == 4096
        low, high = made.ranges(INPUTS)
        steps = to_steps(model.predict(flat), one.step)
        assert (low - 4 <= steps).all()
        assert (steps <= high + 4).all()
    assert tree_methods(task(), trees_of(tree), origin=0.0)
    # A tree that is fitted again has other leaves.
    one = replace(one, trees=(tree,))
    before = one.build(INPUTS, SAID).centers.tolist()
    tree.fit(flat, -SAID)
    assert one.build(INPUTS, SAID).centers.tolist() != before
    runs = task(adjacency=Adjacency.of("record", group=2))
    assert not tree_methods(runs, trees_of(tree), origin=0.0)


@pytest.mark.slow
def test_the_boxes_of_the_benchmark_keep_their_sensitivity_and_range() -> None:
    draw = np.random.default_rng(2)
    for box in boxes():
        low, high = box.bounds
        for x in box.private[:10]:
            said = box.function(x)
            assert box.output[0] - 1e-9 <= said <= box.output[1] + 1e-9 or box.statistic is None
            for _ in range(5):
                other = x.copy()
                other[draw.integers(len(x))] = draw.choice([low, high, draw.uniform(low, high)])
                gap = abs(np.clip(box.function(other), *box.output) - np.clip(said, *box.output))
                assert gap <= box.sensitivity * (1 + 1e-12)
    assert trimmed(np.arange(25.0)) == 12.0


def test_the_table_of_the_comparison_says_who_is_best() -> None:
    base = {"constant": 2.0, "plain Laplace": 4.0, "private quantile": 1.0}
    cell = Cell(box="b", epsilon=1, ours=1.01, expected=1.0, chosen="c", baselines=base)
    assert cell.best == "private quantile"
    assert cell.ratio == pytest.approx(1.01)
    assert "at most 2 % above the best one in 1 of 1" in summary([cell])
    assert "1 (private quantile)" in markdown([cell])[-1]
