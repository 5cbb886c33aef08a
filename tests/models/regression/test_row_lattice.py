"""How far one row moves the sums: brute force over neighbors, in exact integers."""

import dataclasses
import itertools

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models.regression._row_lattice import (
    RowLattice,
    RowMap,
    box_radius,
    flat_sums,
    read_sums,
    sum_moments,
)


def lattice(features=2, *, steps=4, intercept=2, target_steps=4, outputs=1):
    """A lattice so small that all rows can be listed."""
    return RowLattice(
        features=features,
        outputs=outputs,
        steps=steps,
        target_steps=target_steps,
        intercept=intercept,
    )


def rows_of(grid):
    """Every row of integers that the lattice allows."""
    reach = range(-grid.steps, grid.steps + 1)
    first = (grid.intercept,) if grid.intercept else ()
    for u in itertools.product(reach, repeat=grid.features):
        if sum(x * x for x in u) <= grid.steps**2:
            for v in itertools.product(
                (-grid.target_steps, -1, 0, grid.target_steps), repeat=grid.outputs
            ):
                yield np.array(first + u), np.array(v)


def contribution(grid, row, target, relation):
    """What one row adds to the released vector: all entries of X'X, X'y, and the count."""
    parts = [np.outer(row, row).ravel(), np.outer(row, target).ravel()]
    if relation is NeighboringRelation.ADD_REMOVE:
        parts.append(np.array([grid.count_steps]))
    return np.concatenate(parts)


@pytest.mark.parametrize("intercept", [0, 2])
@pytest.mark.parametrize("target_steps", [1, 4, 9])
@pytest.mark.parametrize("features", [1, 2])
def test_the_joint_move_is_never_exceeded_and_attained_when_a_row_is_added(
    features, target_steps, intercept
):
    grid = lattice(features, target_steps=target_steps, intercept=intercept)
    moves = [
        int(np.square(contribution(grid, *row, NeighboringRelation.ADD_REMOVE)).sum())
        for row in rows_of(grid)
    ]
    assert max(moves) == grid.joint(NeighboringRelation.ADD_REMOVE)


@pytest.mark.parametrize("intercept", [0, 2])
@pytest.mark.parametrize("target_steps", [1, 3, 4, 9])
def test_no_pair_of_rows_exceeds_the_move_of_a_replacement(target_steps, intercept):
    grid = lattice(target_steps=target_steps, intercept=intercept)
    found = np.array(
        [contribution(grid, *row, NeighboringRelation.REPLACE_ONE) for row in rows_of(grid)]
    )
    squares = np.square(found).sum(axis=1)
    worst = int((squares[:, None] + squares[None, :] - 2 * found @ found.T).max())
    assert worst <= grid.joint(NeighboringRelation.REPLACE_ONE)
    # Whole numbers cannot take the best angle exactly; a small lattice comes near.
    assert worst > 0.85 * grid.joint(NeighboringRelation.REPLACE_ONE)


def test_the_move_of_a_replacement_is_attained_in_the_limit():
    """K4: at equal norms mu^2 is 4.5, not 2 + 4, at the cosine one half."""
    steps = 10**6
    grid = lattice(steps=steps, intercept=0, target_steps=steps)
    u = np.array([steps, 0])
    w = np.array([steps // 2, int(np.sqrt(3) / 2 * steps)])
    pair = np.concatenate((np.outer(u, u).ravel(), u * steps))
    other = np.concatenate((np.outer(w, w).ravel(), -w * steps))
    moved = sum(int(a) ** 2 for a in (pair - other).tolist())
    assert 4.5 * (1 - 1e-5) < moved / steps**4 <= 4.5
    assert grid.joint(NeighboringRelation.REPLACE_ONE) == 9 * steps**4 // 2


def test_random_rows_stay_below_the_table_of_sensitivities():
    """K4: 20000 random unit rows; the value of svec is 1, of a replacement the root of two."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20_000, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    z = np.roll(x, 1, axis=0)
    single = np.square(np.einsum("ni,nj->nij", x, x)).sum(axis=(1, 2))
    pair = np.square(np.einsum("ni,nj->nij", x, x) - np.einsum("ni,nj->nij", z, z)).sum(axis=(1, 2))
    assert single == pytest.approx(1.0)
    assert pair.max() <= 2 + 1e-12
    assert pair.max() > 2 - 1e-3


def test_sums_of_squares_move_by_what_is_stated():
    grid = lattice(outputs=2, target_steps=3)
    worst = max(int((target**4).sum()) for _, target in rows_of(grid))
    assert worst == grid.squares()


def test_what_is_out_of_range_is_refused():
    with pytest.raises(InvalidArgument, match="features"):
        RowLattice.of(features=0)
    with pytest.raises(InvalidArgument, match="intercept_scale"):
        RowLattice.of(features=1, intercept=5)
    with pytest.raises(InvalidArgument, match="relation"):
        RowLattice.of(features=1).joint(NeighboringRelation.LOCAL)


# ── rows ─────────────────────────────────────────────────────────────────────


def row_map(mapping="ball", features=3, intercept=0.35, outputs=1, radius=2.0, **bounds):
    """A map with odd constants."""
    lower = np.full(features, bounds.get("lower", -np.inf))
    upper = np.full(features, bounds.get("upper", np.inf))
    center, scale = np.linspace(-1, 1, features), np.linspace(0.5, 2, features)
    return RowMap(
        lattice=RowLattice.of(features=features, outputs=outputs, intercept=intercept),
        mapping=mapping,
        lower=lower,
        upper=upper,
        center=center,
        scale=scale,
        radius=box_radius(lower, upper, center, scale) if mapping == "box" else radius,
        target_center=np.full(outputs, 3.0),
        target_half=np.full(outputs, 7.0),
    )


def nasty(features, outputs=1):
    """Rows that are long, short, equal to each other, or absurdly far away."""
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.normal(size=(400, features)) * scale
            for scale in (1e-9, 1e-3, 0.7, 1.0, 1.4, 30, 1e9, 1e300)
        ]
        + [np.zeros((1, features)), np.full((1, features), 1e308), -np.eye(features) * 1e200]
    )
    return x, rng.normal(size=(len(x), outputs)) * 1e3


@pytest.mark.parametrize("mapping", ["ball", "row", "box", "weighted"])
@pytest.mark.parametrize("features", [1, 3, 20])
def test_no_row_is_longer_than_the_lattice_says(mapping, features):
    extra = {"lower": -5.0, "upper": 9.0} if mapping == "box" else {}
    rows = row_map(mapping, features, **extra)
    x, y = nasty(features)
    codes = rows.codes(x, y)
    assert np.array_equal(codes, np.rint(codes))
    whole = codes.astype(np.int64)
    u, v = whole[:, 1:-1], whole[:, -1]
    if mapping == "weighted":
        assert ((whole[:, 0] >= 0) & (whole[:, 0] <= rows.lattice.intercept)).all()
    else:
        assert (whole[:, 0] == rows.lattice.intercept).all()
    assert np.square(u).sum(axis=1).max() <= rows.lattice.steps**2
    assert np.abs(v).max() <= rows.lattice.target_steps
    if mapping != "box":
        # Nothing is thrown away: the longest rows reach the edge but for rounding.
        assert np.square(u).sum(axis=1).max() > (0.999 * rows.lattice.steps) ** 2


def test_rows_that_rounding_made_too_long_are_cut():
    """Without room for rounding many rows would be too long: the exact check must catch them."""
    rows = row_map(features=20)

    class Tight(RowMap):
        __slots__ = ()

        def _factor(self, z, room):
            return super()._factor(z, float(self.lattice.steps) + 3)

    tight = Tight(**{name: getattr(rows, name) for name in RowMap.__slots__})
    x, y = nasty(20)
    u = tight.codes(x, y)[:, 1:-1].astype(np.int64)
    assert np.square(u).sum(axis=1).max() <= rows.lattice.steps**2


def test_row_maps_have_unit_length_whatever_the_other_rows_are():
    """K17: with fixed constants each row adds exactly one to the trace, up to the grid."""
    rows = row_map("row", intercept=0.0)
    x, y = nasty(3)
    lengths = np.linalg.norm(rows.codes(x, y)[:, :-1], axis=1) / rows.lattice.steps
    zero = np.isclose(lengths, 0)
    assert np.allclose(lengths[~zero], 1, atol=1e-3)


def test_sums_are_the_same_in_any_order_and_any_pieces():
    rows = row_map()
    x, y = nasty(3)
    whole = sum_moments(rows, x, y)
    order = np.random.default_rng(2).permutation(len(x))
    again = sum_moments(rows, np.asfortranarray(x[order]), y[order])
    parts = sum_moments(rows, x[:7], y[:7]) + sum_moments(rows, x[7:1000], y[7:1000])
    parts += sum_moments(rows, x[1000:], y[1000:])
    assert np.array_equal(whole.total, again.total)
    assert np.array_equal(whole.total, parts.total)
    assert whole.rows == parts.rows == len(x)
    # Against Python's integers.
    codes = rows.codes(x, y).astype(np.int64).astype(object)
    assert (codes.T @ codes == whole.total).all()


def test_flat_sums_round_trip():
    rows = row_map()
    x, y = nasty(3)
    flat = flat_sums(rows, x, y)
    assert flat.dtype == np.int64
    assert np.array_equal(read_sums(rows.lattice, flat).total, sum_moments(rows, x, y).total)
    assert "private" in repr(sum_moments(rows, x, y))


@pytest.mark.parametrize("intercept", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("mapping", ["ball", "box", "weighted"])
def test_original_units_predict_as_mapped_ones(mapping, intercept):
    """K21: to 1e-10 for rows inside the ball, with and without an intercept."""
    rows = row_map(mapping, intercept=intercept, outputs=2, radius=50.0, lower=-20.0, upper=20.0)
    rng = np.random.default_rng(3)
    theta = rng.normal(size=(rows.lattice.columns, 2))
    x = rng.uniform(-5, 5, size=(100, 3))
    slopes, level = rows.coefficients(theta)
    mapped = rows.predictions(rows.design(x), theta)
    assert np.abs(x @ slopes.T + level - mapped).max() < 1e-10


def test_projected_rows_need_the_projection_first():
    """K35: outside the ball the linear form is another prediction."""
    rows = row_map(radius=0.1)
    theta = np.ones((4, 1))
    x = np.full((1, 3), 5.0)
    slopes, level = rows.coefficients(theta)
    assert abs((x @ slopes.T + level - rows.predictions(rows.design(x), theta)).item()) > 1


def test_weighted_rows_keep_the_model_linear():
    """Rows, intercept and targets get the same weight: a line stays that line."""
    rows = row_map("weighted", radius=0.4)
    rng = np.random.default_rng(6)
    x = rng.normal(size=(500, 3))
    y = 3 + x @ [[0.5], [-1.0], [0.2]]
    codes = rows.codes(x, y)
    theta = np.linalg.lstsq(codes[:, :-1], codes[:, -1:])[0]
    scaled = theta * rows.lattice.steps / rows.lattice.target_steps
    slopes, level = rows.coefficients(scaled)
    assert slopes[0] == pytest.approx([0.5, -1.0, 0.2], abs=1e-3)
    assert level[0] == pytest.approx(3, abs=1e-3)
    # All rows, also those far outside the ball, are predicted by the same line.
    assert rows.predictions(rows.design(x), scaled) == pytest.approx(y, abs=2e-2)
    projected = row_map("ball", radius=0.4).codes(x, y)
    theta = np.linalg.lstsq(projected[:, :-1], projected[:, -1:])[0]
    slopes, _ = rows.coefficients(theta * rows.lattice.steps / rows.lattice.target_steps)
    assert np.abs(slopes[0] - [0.5, -1.0, 0.2]).max() > 0.1


@pytest.mark.parametrize(
    "changed",
    [
        {"scale": np.array([1.0, 1e-320, 1.0])},
        {"scale": np.array([1.0, np.inf, 1.0])},
        {"radius": 1e-320},
        {"target_half": np.zeros(1)},
        {"center": np.array([0.0, np.nan, 0.0])},
    ],
)
def test_constants_that_make_no_numbers_of_rows_are_refused(changed):
    """0 times infinity is no number, and as an integer it is the smallest there is."""
    with pytest.raises(InvalidArgument, match="use other units"):
        dataclasses.replace(row_map(), **changed)
