"""Tables without negative cells and in whole numbers: what they keep, and what they state."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.marginals import _margins_first
from discreet.marginals._margins_first import (
    Parts,
    along_axis,
    largest,
    margins_first,
    part_variances,
    parts_of,
    raked,
)
from discreet.marginals._whole_numbers import rounded
from discreet.marginals.columns import MarginalColumn, ordered_chain
from discreet.marginals.plan import plan_tables
from discreet.query.budget import budget

SIZES = (5, 2, 7, 3)


def released(tables, *, many=3000, seed=1, sizes=SIZES, ordered=(), **amount):
    columns = tuple(
        MarginalColumn(
            name="abcdefg"[i],
            labels=tuple(range(size)),
            chain=ordered_chain(size) if i in ordered else (1, size),
        )
        for i, size in enumerate(sizes)
    )
    plan = plan_tables(
        columns,
        tables,
        budget=budget(**amount or {"rho": 0.01}),
        relation=NeighboringRelation.ADD_REMOVE,
        rows=1,
    )
    generator = np.random.default_rng(seed)
    # Most rows in few cells, as in real tables: many cells are empty.
    codes = np.array([generator.zipf(1.7, many) % size for size in sizes]).T
    return plan.release(codes, rng=seeded_rng(seed)), codes


PAIRS = list(combinations(range(4), 2))


def test_cells_are_not_negative_and_pairs_agree():
    release, _ = released(PAIRS)
    assert min(table.cells.min() for table in release.tables()) < -5
    made = release.nonnegative()
    for one in range(4):
        single = made.table(["abcd"[one]]).cells
        assert abs(single.sum() - made.total) < 1e-5
        for other in range(4):
            if other != one:
                pair = made.table(["abcd"[one], "abcd"[other]])
                assert pair.cells.min() >= 0
                axis = 1 if one < other else 0
                assert np.abs(pair.cells.sum(axis=axis) - single).max() < 1e-5
    assert made.mismatch < 1e-5


def test_margins_first_keeps_the_total_that_plain_projection_loses(monkeypatch):
    release, codes = released(PAIRS, many=2000, sizes=(16, 12, 10, 14))
    kept = release.nonnegative().total
    monkeypatch.setattr(_margins_first, "_TIGHTER", {2: 1.0})
    plain = release.nonnegative().total
    std = release.table().std
    assert abs(kept - release.total) < std
    assert plain - len(codes) > 3 * std


def test_less_error_than_the_unbiased_tables():
    errors, sizes = [], (16, 12, 10, 14)
    for seed in (1, 2):
        release, codes = released(PAIRS, seed=seed, sizes=sizes)
        made = release.nonnegative()
        for key in PAIRS:
            exact = np.zeros([sizes[i] for i in key])
            np.add.at(exact, tuple(codes[:, i] for i in key), 1)
            names = ["abcd"[i] for i in key]
            errors.append([np.abs(one.table(names).cells - exact).sum() for one in (release, made)])
    linear, polished = np.array(errors).sum(axis=0)
    assert polished < 0.8 * linear


def test_the_rounds_tend_to_the_optimum_of_a_dense_program():
    release, _ = released([(0, 1)], sizes=(3, 2), many=60, rho=0.02)
    linear = {(0, 1): release.design.table((0, 1), release._parts)}
    variances = part_variances(release.design.columns, release.design.variances)
    found = margins_first(linear, variances, (3, 2)).table((0, 1))
    # The same problem, solved by another method: cells are the unknowns.
    target = parts_of((0, 1), linear[0, 1])
    tighter = {part: variances[part] * 0.01 ** (2 - len(part)) for part in target}

    def goal(flat):
        parts = parts_of((0, 1), flat.reshape(3, 2))
        return sum(np.square(parts[one] - target[one]).sum() / tighter[one] for one in parts)

    best = minimize(
        goal,
        np.maximum(linear[0, 1], 1).ravel(),
        bounds=[(0, None)] * 6,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10**6},
    )
    assert np.abs(best.x.reshape(3, 2) - found).max() < 0.05


def test_parts_are_those_of_the_tables():
    generator = np.random.default_rng(1)
    cells = generator.normal(size=(3, 4, 2))
    parts = Parts((3, 4, 2), parts_of((0, 1, 2), cells))
    assert np.allclose(parts.table((0, 1, 2)), cells)
    assert np.allclose(parts.table((0, 2)), cells.sum(axis=1))


@pytest.mark.parametrize("ordered", [(), (0, 2)])
def test_variances_of_parts_are_those_of_simulated_releases(ordered):
    release, _ = released([(0, 2)], many=10, seed=1, ordered=ordered, rho=0.05)
    plan_noise = release.design
    found = []
    for seed in range(200):
        generator = seeded_rng(seed)
        noisy = tuple(
            law.sample(group.size, rng=generator).reshape(group.shape)
            for law, group in zip(plan_noise.laws, release.measured, strict=True)
        )
        table = plan_noise.table((0, 2), plan_noise.parts(noisy))
        found.append(parts_of((0, 2), table))
    stated = part_variances(plan_noise.columns, plan_noise.variances)
    for part, free in {(): 1, (0,): 4, (2,): 6, (0, 2): 24}.items():
        sums = np.array([np.square(one[part]).sum() for one in found]) / free
        assert abs(sums.mean() / stated[part] - 1) < 5 * sums.std() / sums.mean() / 200**0.5


def test_intervals_are_those_of_the_unbiased_numbers_above_zero():
    release, _ = released(PAIRS)
    table = release.nonnegative().table(["a", "c"])
    low, high = release.table(["a", "c"]).interval(0.9)
    cut_low, cut_high = table.interval(0.9)
    assert np.array_equal(cut_low, np.maximum(low, 0))
    assert np.array_equal(cut_high, np.maximum(high, 0))
    assert (low < 0).any()
    assert "biased, error not known" in table.statement
    assert table.std == (None,) * 35


def test_zero_or_fewer_rows_make_empty_tables():
    release, _ = released(PAIRS, many=0, seed=5)
    for made in (release.nonnegative(), released([(0, 1)], many=0)[0].nonnegative(integers=True)):
        for table in made.tables():
            assert np.isfinite(table.cells).all()
            assert table.cells.min() >= 0


@pytest.mark.parametrize("tables", [[(0, 1), (2,)], [(0, 1, 2)], [(0,), (1,), (2,), (3,)], [()]])
def test_whole_numbers_add_up(tables):
    release, _ = released(tables)
    made, near = release.nonnegative(integers=True), release.nonnegative()
    assert made.total == round(near.total)
    for table, estimate in zip(made.tables(), near.tables(), strict=True):
        assert np.array_equal(table.cells, np.rint(table.cells))
        assert table.cells.sum() == made.total
        assert np.abs(table.cells - estimate.cells).max() < 1 + 1e-6
    assert made.mismatch == 0


@pytest.mark.parametrize("shape", [(3, 4), (20, 30), (2, 3, 4), (7,)])
@pytest.mark.parametrize("seed", range(5))
def test_each_rounding_is_the_floor_or_the_ceiling(shape, seed):
    cells = np.random.default_rng(seed).gamma(0.7, 2, size=shape)
    cells[cells < 0.2] = 0
    whole = float(cells.sum())
    for total in {int(np.floor(whole)), int(np.ceil(whole))}:
        scaled = cells if abs(whole - total) < 0.5 else cells * total / whole
        found = rounded(cells, total)
        sums = [(found, scaled)]
        if len(shape) == 2:
            sums += [(found.sum(axis=k), scaled.sum(axis=k)) for k in (0, 1)]
        if len(shape) == 3:
            sums += [(found.sum(axis=2), scaled.sum(axis=2))]
            sums += [(found.sum(axis=(1, 2)), scaled.sum(axis=(1, 2)))]
        for whole_sums, estimates in sums:
            assert (whole_sums >= np.floor(estimates - 1e-6)).all()
            assert (whole_sums <= np.ceil(estimates + 1e-6)).all()
        assert found.sum() == total


def test_tables_that_share_a_column_are_not_rounded():
    release, _ = released(PAIRS)
    with pytest.raises(InvalidArgument, match=r"share 'a'\. Tables of synthetic rows"):
        release.nonnegative(integers=True)


def test_raking_reaches_margins_even_from_zeros():
    found, missed = raked(
        np.zeros((2, 2)),
        [along_axis(1, np.array([3.0, 1.0])), along_axis(0, np.array([2.0, 2.0]))],
    )
    assert missed < 1e-6
    assert np.allclose(found, [[1.5, 1.5], [0.5, 0.5]])


def test_largest_tables_hold_all_others():
    assert largest([(), (0,), (0, 1), (2,), (0, 1)]) == ((2,), (0, 1))
