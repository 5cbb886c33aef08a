"""Blocks: sensitivities over all neighbors, laws over all assignments."""

import dataclasses
import itertools
import math
import random
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.bin_statistics import (
    BinnedColumn,
    bin_sensitivity,
    bin_statistics,
    private_bin_counts,
)
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.noise.random_source import seeded_rng
from tests.distributions import frequency, mean_of

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
# B41: sensitivity in widths of a bin, under replace-one and under add-remove.
PUBLISHED = [
    ("median", "middle", 1, 0.5),
    ("mean", "middle", 1, 0.5),
    ("median", "lower", 2, 1),
    ("mean", "lower", 2, 1),
    ("lower_median", "middle", 2, 1),
    ("lower_median", "lower", 2, 1),
    ("largest", "middle", 2, 1),
    ("largest", "lower", 2, 1),
]


def aggregate(estimator=np.mean, **options):
    return sample_and_aggregate(
        estimator, **{"lower": 0, "upper": 4, "groups": 2, "epsilon": 1, **options}
    )


def neighbors(data, span, relation):
    for i in range(len(data)):
        rest = data[:i] + data[i + 1 :]
        if relation is ADD:
            yield rest
        else:
            yield from (tuple(sorted((*rest, v))) for v in range(span + 1))


@pytest.mark.parametrize(("statistic", "empty", "replaced", "added"), PUBLISHED)
def test_bins_move_as_far_as_stated_over_all_neighbors(statistic, empty, replaced, added):
    for relation, factor in ((REPLACE, replaced), (ADD, added)):
        assert bin_sensitivity(statistic, empty=empty, relation=relation) == Fraction(factor)
        made = bin_statistics(
            lower=0,
            upper=9,
            bins=2,
            epsilon=1,
            statistic=statistic,
            empty=empty,
            granularity=1,
            relation=relation,
        )
        data = [d for n in range(4) for d in itertools.combinations_with_replacement(range(10), n)]
        exact = {d: made.exact(np.array(d, dtype=np.int64)) for d in data}
        worst = max(
            int(np.abs(exact[d] - exact[other]).sum())
            for d in data
            for other in neighbors(d, 9, relation)
        )
        # Bins hold 5 values each: 4 steps, 8 half steps wide.
        assert worst == 8 * factor
        assert made.inner.integers.noise.scale == worst


@pytest.mark.parametrize("statistic", ["median", "mean", "lower_median", "largest"])
@pytest.mark.parametrize("bins", [1, 3, 4])
def test_bins_hold_the_statistics_they_say(statistic, bins):
    made = bin_statistics(
        lower=-5, upper=6, bins=bins, epsilon=1, statistic=statistic, granularity=0.5, empty="lower"
    )
    values = np.sort(np.random.default_rng(2).integers(-10, 13, size=30) / 2)
    steps = ((values + 5) * 2).astype(int)
    starts = made.bins.starts
    plain = {
        "median": lambda x: 2 * np.median(x),
        "mean": lambda x: np.floor(2 * np.mean(x)),
        "lower_median": lambda x: 2 * np.sort(x)[(len(x) - 1) // 2],
        "largest": lambda x: 2 * np.max(x),
    }[statistic]
    parts = [steps[(steps >= a) & (steps < b)] for a, b in itertools.pairwise(starts)]
    wanted = [plain(part) if len(part) else 2 * a for part, a in zip(parts, starts, strict=False)]
    assert made.exact(made.bins.column.sorted(values)).tolist() == wanted
    assert set(np.diff(starts)) <= {made.bins.reach, made.bins.reach + 1}


def test_released_bins_stay_in_their_bins():
    made = bin_statistics(lower=0, upper=100, bins=4, epsilon=0.1)
    drawn = np.array([made.release([1, 2, 60], rng=seeded_rng(i)) for i in range(50)])
    assert np.all(drawn >= made.bins.edges[:-1])
    assert np.all(drawn <= made.bins.edges[1:])
    sharp = bin_statistics(lower=0, upper=100, bins=4, epsilon=1e4)
    np.testing.assert_allclose(sharp.release([1, 3, 60, 61, 80]), [2, 37.5, 60.5, 80], atol=0.1)
    assert made.certify().holds


@pytest.mark.parametrize("seed", range(5))
def test_average_of_bins_says_nothing_about_the_data(seed):
    """Within half a bin of the middle of the range, wherever the values are (M40)."""
    values = np.random.default_rng(seed).exponential(3, size=200)
    made = bin_statistics(lower=0, upper=100, bins=5, epsilon=1)
    exact = made.exact(made.bins.column.sorted(values)) / 2 * made.bins.column.step
    assert abs(exact.mean() - 50) <= 10


def test_counts_give_quantiles_and_means():
    values = np.random.default_rng(1).exponential(10, size=20_000)
    made = private_bin_counts(lower=0, upper=100, bins=200, epsilon=1)
    found = made.release(values, rng=seeded_rng(1))
    clipped = np.clip(values, 0, 100)
    assert found.quantile() == pytest.approx(np.median(clipped), abs=0.3)
    assert found.quantile(0.9) == pytest.approx(np.quantile(clipped, 0.9), abs=0.8)
    assert found.mean() == pytest.approx(clipped.mean(), abs=0.3)
    assert len(found.counts) == 200
    assert found.total == pytest.approx(20_000, abs=6 * made.std * math.sqrt(200))


def test_counts_without_values_are_answered():
    made = private_bin_counts(lower=-1, upper=3, bins=4, epsilon=1)
    assert BinnedColumn(edges=(0, 1, 2), counts=(-1, 0)).quantile() == 1
    assert BinnedColumn(edges=(0, 1, 2), counts=(-1, 0)).mean() == 1
    assert -1 <= made.release([], rng=seeded_rng(1)).quantile() <= 3
    assert BinnedColumn(edges=(0, 1, 2), counts=(10, 0)).quantile(0.25) == 0.25
    assert BinnedColumn(edges=(0, 1, 2), counts=(6, -6)).mean() == 1


def test_quantiles_of_noisy_counts_rise():
    found = private_bin_counts(lower=0, upper=10, bins=50, epsilon=0.1).release(
        np.arange(100) / 10, rng=seeded_rng(1)
    )
    curve = [found.quantile(level) for level in np.linspace(0, 1, 101)]
    assert min(found.counts) < 0
    assert curve == sorted(curve)


@pytest.mark.parametrize(("relation", "moved"), [(ADD, 1), (REPLACE, 2)])
def test_counts_move_as_far_as_stated(relation, moved):
    made = private_bin_counts(lower=0, upper=4, bins=2, epsilon=1, granularity=1, relation=relation)
    data = [d for n in range(4) for d in itertools.combinations_with_replacement(range(5), n)]
    exact = {d: np.diff(made.bins.ends(np.array(d, dtype=np.int64))) for d in data}
    worst = max(
        int(np.abs(exact[d] - exact[o]).sum()) for d in data for o in neighbors(d, 4, relation)
    )
    assert worst == moved == made.inner.integers.noise.scale
    assert made.guarantee.relation is relation


def coarse(made):
    """The same on four steps, so that laws can be listed."""
    inner = made.inner
    return dataclasses.replace(
        made, column=dataclasses.replace(made.column, first=0, span=4, exponent=0), inner=inner
    )


def summed_law(made, data, assignments):
    """The law of the sum of the estimates over all assignments."""
    found = Counter()
    for groups, chance in assignments:
        total = made.estimates(np.array(data, dtype=float), np.array(groups, dtype=np.int64)).sum()
        found[int(total)] += chance
    return found


def released(law, scale):
    outputs = np.arange(-200, 210)
    ratio = math.exp(-1 / scale)
    noise = (1 - ratio) / (1 + ratio)
    return sum(chance * noise * ratio ** np.abs(outputs - at) for at, chance in law.items())


@pytest.mark.parametrize("estimator", [np.mean, np.max, lambda x: 9 * len(x), np.median])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_exact_laws_over_all_assignments_keep_the_promise(estimator, relation):
    """All data of up to three rows; a narrower scale is caught."""
    made = coarse(aggregate(estimator, relation=relation, default=0))
    laws = {}
    for rows in range(4):
        if relation is ADD:
            every = list(itertools.product(range(2), repeat=rows))
        else:
            every = sorted(set(itertools.permutations([i % 2 for i in range(rows)])))
        weighted = [(groups, 1 / len(every)) for groups in every]
        for data in itertools.combinations_with_replacement((0, 1, 4), rows):
            laws[data] = summed_law(made, data, weighted)
    worst = {4: 0.0, 3: 0.0}
    for data, law in laws.items():
        near = {o for o in neighbors(data, 4, relation) if o in laws}
        for other, scale in itertools.product(near, worst):
            one, two = released(law, scale), released(laws[other], scale)
            ratio = np.abs(np.log(one) - np.log(two))[5:-5].max()
            worst[scale] = max(worst[scale], ratio)
    assert worst[4] <= 1 + 1e-9
    if estimator is np.max and relation is ADD:
        assert worst[3] > 1.1


def test_noise_is_that_of_one_estimate():
    made = aggregate(upper=100, lower=0, groups=20, summary="mean")
    assert made.std == pytest.approx(math.sqrt(2) * 100 / 20, rel=1e-6)
    low, high = made.interval(0.95)
    assert high == pytest.approx(5 * math.log(20), rel=1e-4)
    assert low == -high
    assert made.inner.integers.noise.scale == made.column.span


def test_mean_of_estimates_is_right_on_average():
    made = aggregate(np.mean, lower=-1, upper=1, groups=50, summary="mean", epsilon=2)
    values = np.full(500, 0.25)
    bits = seeded_rng(8)
    drawn = np.array([made.release(values, rng=bits) for _ in range(200)])
    assert mean_of(drawn, 0.25, made.std**2)
    assert not mean_of(drawn, 0.25 + made.std, made.std**2)


def test_median_of_estimates_depends_on_the_bounds_by_their_logarithm():
    values = np.random.default_rng(3).uniform(0, 100, size=2000)
    bits = seeded_rng(3)
    for upper in (100, 1e6):
        made = aggregate(np.median, lower=0, upper=upper, groups=100)
        errors = [made.release(values, rng=bits) - 50 for _ in range(20)]
        assert np.sqrt(np.mean(np.square(errors))) < 10
    with pytest.raises(Unsupported):
        _ = made.std


def test_assignments_are_fair():
    bits = seeded_rng(5)
    equal = aggregate(groups=3, relation=REPLACE)
    firsts = Counter(int(equal.assign(7, bits)[0]) for _ in range(3000))
    assert sorted(Counter(equal.assign(7, bits).tolist()).values()) == [2, 2, 3]
    assert frequency(firsts[0], 3000, 3 / 7)
    assert not frequency(firsts[0], 3000, 1 / 3)
    alone = aggregate(groups=3)
    pairs = Counter(tuple(alone.assign(2, bits).tolist()) for _ in range(9000))
    assert all(frequency(pairs[a, b], 9000, 1 / 9) for a in range(3) for b in range(3))


def test_rows_of_one_owner_stay_together():
    seen = []
    made = aggregate(lambda part: seen.append(sorted(set(part.tolist()))) or 0.0, groups=5)
    owners = np.repeat(np.arange(12), 3)
    made.release(owners * 10, owners=owners.astype(str), rng=seeded_rng(2))
    assert sorted(itertools.chain(*seen)) == (np.arange(12) * 10).tolist()


def test_failures_and_empty_groups_count_as_the_default():
    def fails(part):
        raise RuntimeError(part)

    groups = np.zeros(3, dtype=np.int64)
    middle = aggregate().column.span // 2
    for estimator in (fails, lambda _: math.nan, lambda _: "three"):
        found = aggregate(estimator, default=2).estimates([1.0, 2.0, 3.0], groups)
        assert found.tolist() == [middle, middle]
    high = aggregate(lambda _: math.inf, default=0)
    assert high.estimates([1.0], groups[:1]).tolist() == [high.column.span, 0]
    assert 0 <= aggregate(fails).release([1, 2, 3]) <= 4
    assert 0 <= aggregate(fails, summary="mean").release([]) <= 4


def test_warnings_about_groups_are_not_shown(recwarn):
    aggregate(lambda part: np.log(part - part).mean()).release([1.0, 2.0])
    assert not recwarn.list


@pytest.mark.parametrize("summary", ["mean", "median"])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_guarantees_name_the_relation_of_the_rows(summary, relation):
    made = aggregate(summary=summary, relation=relation)
    assert made.guarantee.relation is relation
    assert made.guarantee.epsilon() == 1
    assert made.certify().holds


def test_tiny_epsilons_have_a_coarser_grid():
    made = aggregate(summary="mean", epsilon=1e-6)
    assert made.std == pytest.approx(math.sqrt(2) * 4 / 2 * 1e6, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"groups": 0},
        {"lower": 4},
        {"epsilon": 0},
        {"summary": "mode"},
        {"default": 5},
        {"relation": "anything"},
    ],
    ids=repr,
)
def test_refused(options):
    with pytest.raises(InvalidArgument):
        aggregate(**options)


@pytest.mark.parametrize(
    "options", [{"bins": 0}, {"bins": 9}, {"statistic": "mode"}, {"empty": "upper"}], ids=repr
)
def test_bins_refused(options):
    with pytest.raises(InvalidArgument):
        bin_statistics(
            **{"lower": 0, "upper": 8, "bins": 2, "epsilon": 1, "granularity": 1, **options}
        )


def test_shapes_are_checked():
    with pytest.raises(OutOfDomain):
        aggregate().release(3.0)
    with pytest.raises(OutOfDomain):
        aggregate().release([1.0, 2.0], owners=[1])


def test_what_one_group_draws_does_not_reach_the_next():
    """An estimator drew as often as its group had rows, and all groups after it changed."""
    seen = []

    def drawing(part):
        seen.append((len(part), *np.random.random(len(part)), random.random()))  # noqa: NPY002
        return float(np.mean(part))

    made = sample_and_aggregate(drawing, lower=0, upper=10, groups=8, epsilon=1)
    told = []
    for rows in ([5.0, 6.0] * 40, [*[5.0, 6.0] * 40, 9.0]):
        seen.clear()
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        made.release(rows, rng=seeded_rng(3))
        told.append([*seen, (np.random.random(), random.random())])  # noqa: NPY002
    # The group of the new row, and no other; nor the numbers that are drawn afterwards.
    assert sum(one != other for one, other in zip(*told, strict=True)) == 1
    assert len({numbers for *_, numbers in told[0]}) == 9


def test_settings_of_one_group_and_its_exit_do_not_reach_the_next():
    def careless(part):
        if max(part) > 9:
            np.seterr(all="raise")
            warnings.simplefilter("error")
            raise SystemExit
        warnings.warn("secret", stacklevel=1)
        return float(np.nan_to_num(np.float64(part[0]) / np.float64(0)))

    made = sample_and_aggregate(careless, lower=0, upper=10, groups=4, epsilon=1, default=0)
    groups = np.arange(8) % 4
    plain = made.estimates([5.0] * 8, groups)
    assert (made.estimates([10.0, *[5.0] * 7], groups) != plain).sum() == 1
