"""Noisy moments: what they cost, how their noise looks, what is solved from them."""

import dataclasses
import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from discreet.accounting.conversion import gaussian_mu
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.models.regression import (
    MomentSums,
    RowLattice,
    RowMap,
    adassp,
    plan_sufficient_statistics,
    project_psd,
    ridge,
    ssp,
    sum_moments,
)
from discreet.models.regression.ssp_and_adassp import noise_edge, plan_published, published_std
from discreet.noise.random_source import seeded_rng

EPSILON, DELTA = 1.0, 1e-6


def unit_map(lattice):
    """Features and targets as they are, within the unit ball."""
    d, k = lattice.features, lattice.outputs
    return RowMap(
        lattice=lattice,
        mapping="ball",
        lower=np.full(d, -1.0),
        upper=np.full(d, 1.0),
        center=np.zeros(d),
        scale=np.ones(d),
        radius=1.0,
        target_center=np.zeros(k),
        target_half=np.ones(k),
    )


def table(rows=500, features=3, outputs=1, seed=0):
    """Rows in the unit ball with a linear target."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(rows, features)) / math.sqrt(features)
    y = x @ rng.normal(size=(features, outputs)) * 0.3 + 0.05 * rng.normal(size=(rows, outputs))
    return x, np.clip(y, -1, 1)


def zero_sums(lattice):
    """Of no rows."""
    size = lattice.columns + lattice.outputs
    return MomentSums(np.zeros((size, size), dtype=np.int64), 0)


@pytest.fixture(scope="module")
def released():
    lattice = RowLattice.of(features=3)
    rows = unit_map(lattice)
    x, y = table(5000)
    plan = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA)
    return plan.release(sum_moments(rows, x, y), rows=rows, rng=seeded_rng(1))


def exact(lattice, x, y, sigma=1e-6):
    """Moments without noise, for algebra."""
    rows = unit_map(lattice)
    plan = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA)
    moments = plan.release(zero_sums(lattice), rows=rows, rng=seeded_rng(1))
    design = rows.design(x)
    return dataclasses.replace(
        moments,
        gram=design.T @ design,
        cross=design.T @ y,
        squares=np.square(y).sum(axis=0),
        rows=float(len(x)),
        sigma=sigma,
    )


# ── cost ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_whole_budget_is_used_and_not_more(epsilon, relation):
    plan = plan_sufficient_statistics(
        RowLattice.of(features=4), epsilon=epsilon, delta=DELTA, relation=relation
    )
    worth = plan.guarantee.epsilon(DELTA)
    assert plan.guarantee.relation is relation
    assert 0.9999 * epsilon < worth <= epsilon
    assert plan.certify().holds


@pytest.mark.parametrize(
    ("relation", "factor"),
    [(NeighboringRelation.ADD_REMOVE, 2.0), (NeighboringRelation.REPLACE_ONE, 4.5)],
)
def test_noise_is_that_of_the_joint_release(relation, factor):
    """K33: sqrt(2)/mu under add/remove, sqrt(4.5)/mu under replace-one, for rows of norm one."""
    lattice = RowLattice.of(features=4, intercept=0.0)
    plan = plan_sufficient_statistics(
        lattice, epsilon=1, delta=DELTA, relation=relation, squares_share=0
    )
    mu = gaussian_mu(1.0, delta=DELTA)
    counted = (
        1 / 16 if relation is NeighboringRelation.ADD_REMOVE else 0.0
    )  # the number of rows, T^4 / 16
    assert plan.sigma == pytest.approx(math.sqrt(factor + counted) / mu, rel=1e-3)
    assert plan.sigma_cross == pytest.approx(plan.sigma, rel=1e-3)


def test_noise_is_at_most_two_fifths_of_the_thesis():
    """K14 against K33, with the sums of squares and the number of rows on top."""
    lattice = RowLattice.of(features=8, intercept=0.35)
    ours = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA)
    theirs = published_std("adassp", "thesis", epsilon=EPSILON, delta=DELTA)
    bound = lattice.row_squared / lattice.steps**2
    assert theirs == pytest.approx(16.51, abs=0.01)
    assert ours.sigma <= 0.4 * theirs * bound


@pytest.mark.parametrize(("constants", "worth"), [("wang", 0.5956), ("thesis", 0.4178)])
def test_published_constants_cost_less_than_they_say(constants, worth):
    """K6, K31: the true epsilon of Algorithms 2 and 3 at nominal 1."""
    plan = plan_published(
        RowLattice.of(features=5, intercept=0.0),
        method="adassp",
        constants=constants,
        epsilon=1,
        delta=DELTA,
    )
    # The count of rows is ours: without it the numbers are those of the three releases.
    events = (plan.joint, plan.smallest)
    assert all(one is not None for one in events)
    mu = math.sqrt(3) / published_std("adassp", constants, epsilon=1, delta=DELTA)
    assert gaussian_mu(worth, delta=DELTA) == pytest.approx(mu, rel=2e-3)
    assert worth - 0.0005 <= plan.guarantee.epsilon(DELTA) <= worth + 0.0075


@pytest.mark.parametrize(("constants", "worth"), [("wang", 0.5956), ("thesis", 0.4178)])
def test_published_constants_with_an_intercept_are_worth_just_that(constants, worth):
    plan = plan_published(
        RowLattice.of(features=5, intercept=1.0),
        method="adassp",
        constants=constants,
        epsilon=1,
        delta=DELTA,
    )
    assert plan.guarantee.epsilon(DELTA) == pytest.approx(worth, abs=0.0005)


def test_the_constants_of_the_published_code_are_refused():
    """M3b: nominal 1 is worth 1.587."""
    with pytest.raises(NotCertified, match=r"1\.58"):
        plan_published(
            RowLattice.of(features=5), method="ssp", constants="wang-code", epsilon=1, delta=DELTA
        )


def test_an_intercept_beside_the_ball_doubles_the_noise():
    """K24, M11: with a = 1 the squared norm of a row is two."""
    with_it = plan_sufficient_statistics(
        RowLattice.of(features=3, intercept=1.0), epsilon=1, delta=DELTA
    )
    without = plan_sufficient_statistics(
        dataclasses.replace(
            RowLattice.of(features=3, intercept=1e-9), intercept=1, target_steps=16384
        ),
        epsilon=1,
        delta=DELTA,
    )
    assert with_it.sigma == pytest.approx(2 * without.sigma, rel=1e-3)


def test_several_rows_a_unit_cost_as_much_as_a_group():
    one = plan_sufficient_statistics(RowLattice.of(features=3), rho=0.1)
    three = plan_sufficient_statistics(RowLattice.of(features=3), rho=0.1, max_rows_per_unit=3)
    assert three.sigma == pytest.approx(3 * one.sigma, rel=1e-9)


def test_each_statistic_is_listed_with_its_mu():
    """K26, policy 3."""
    plan = plan_sufficient_statistics(
        RowLattice.of(features=3), epsilon=1, delta=DELTA, smallest_share=0.3
    )
    names = [one.name for one in plan.released]
    assert names == ["X'X and X'y", "y'y", "smallest eigenvalue of X'X"]
    total = math.sqrt(sum(one.mu**2 for one in plan.released))
    assert total == pytest.approx(gaussian_mu(1.0, delta=DELTA), rel=1e-6)
    assert all("mu " in str(one) for one in plan.released)


def test_shares_and_budgets_are_checked():
    lattice = RowLattice.of(features=2)
    with pytest.raises(InvalidArgument, match="delta must be given"):
        plan_sufficient_statistics(lattice, epsilon=1)
    with pytest.raises(InvalidArgument, match="leave something"):
        plan_sufficient_statistics(lattice, rho=1, squares_share=0.5, smallest_share=0.5)


# ── noise ────────────────────────────────────────────────────────────────────


def draws(features, count):
    lattice = RowLattice.of(features=features, intercept=0.0)
    plan = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA)
    rows, nothing, bits = unit_map(lattice), zero_sums(lattice), seeded_rng(7)
    return plan, [plan.release(nothing, rows=rows, rng=bits) for _ in range(count)]


def test_the_noise_of_the_matrix_has_shape_c():
    """K9: variance sigma^2 on the diagonal, half of it off the diagonal, symmetric."""
    plan, found = draws(3, 1500)
    matrices = np.array([one.gram for one in found]) / plan.sigma
    assert np.array_equal(matrices, matrices.transpose(0, 2, 1))
    many = len(found)
    # A sample variance of normal numbers is off by sqrt(2 / n), relatively; one in 10**6 by 4.9.
    reach = 4.9 * math.sqrt(2 / many)
    variances = matrices.var(axis=0)
    assert np.abs(np.diag(variances) - 1).max() < reach
    assert np.abs(2 * variances[np.triu_indices(3, 1)] - 1).max() < reach
    cross = np.array([one.cross for one in found]) / plan.sigma_cross
    assert np.abs(cross.var(axis=0) - 1).max() < reach
    squares = np.array([one.squares for one in found]) / plan.sigma_squares
    assert abs(squares.var() - 1) < reach
    rows = np.array([one.rows for one in found]) / plan.sigma_rows
    assert abs(rows.var() - 1) < reach


def test_the_spectral_norm_of_the_noise():
    """K9: the 95 % quantile for 18 columns is 6.5."""
    plan, found = draws(18, 600)
    norms = [np.abs(np.linalg.eigvalsh(one.gram)).max() / plan.sigma for one in found]
    assert np.quantile(norms, 0.95) == pytest.approx(6.5, abs=0.25)


def test_released_numbers_lie_on_the_grid(released):
    """K36: the matrix on half steps, the rest on steps."""
    grid = released.map.lattice
    assert np.array_equal(*(f(released.gram * 2 * grid.steps**2) for f in (np.rint, np.asarray)))
    assert released.cross * grid.steps * grid.target_steps == pytest.approx(
        np.rint(released.cross * grid.steps * grid.target_steps), abs=1e-4
    )


def test_moments_are_close_to_the_truth(released):
    x, y = table(5000)
    design = released.map.design(x)
    assert np.abs(released.gram - design.T @ design).max() < 6 * released.sigma + 1
    assert np.abs(released.cross - design.T @ y).max() < 6 * released.sigma_cross + 1
    assert abs(released.rows - 5000) < 6 * released.sigma_rows


def test_the_number_of_rows_is_public_when_one_is_replaced():
    lattice = RowLattice.of(features=2, intercept=0.0)
    rows = unit_map(lattice)
    plan = plan_sufficient_statistics(lattice, rho=1, relation=NeighboringRelation.REPLACE_ONE)
    moments = plan.release(sum_moments(rows, *table(77, 2)), rows=rows, rng=seeded_rng(1))
    assert (moments.rows, moments.sigma_rows) == (77.0, 0.0)


@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_the_number_of_rows_is_noisy_where_a_unit_may_have_fewer(intercept):
    """Replacing a unit of two rows by one of a single row changes their number."""
    lattice = RowLattice.of(features=2, intercept=intercept)
    rows = unit_map(lattice)
    plan = plan_sufficient_statistics(
        lattice, rho=1, relation=NeighboringRelation.REPLACE_ONE, max_rows_per_unit=2
    )
    moments = plan.release(sum_moments(rows, *table(77, 2)), rows=rows, rng=seeded_rng(1))
    assert moments.sigma_rows > 0
    assert 0 < abs(moments.rows - 77) < 6 * moments.sigma_rows
    # What an added row moves, with the count, is less than what a replaced one may.
    assert lattice.joint(NeighboringRelation.ADD_REMOVE) < lattice.joint(
        NeighboringRelation.REPLACE_ONE
    )
    named = any("number of rows" in one.name for one in plan.released)
    assert named == (intercept == 0)


def test_rows_of_another_lattice_are_refused():
    plan = plan_sufficient_statistics(RowLattice.of(features=2), rho=1)
    other = RowLattice.of(features=3)
    with pytest.raises(InvalidArgument, match="lattice"):
        plan.release(zero_sums(other), rows=unit_map(other), rng=seeded_rng(1))


# ── solutions ────────────────────────────────────────────────────────────────


def test_without_noise_it_is_least_squares():
    """K1, K2."""
    x, y = table(400, 1)
    moments = exact(RowLattice.of(features=1), x, y)
    slopes, level = moments.coefficients(ssp(moments).theta)
    slope, constant = np.polyfit(x[:, 0], y[:, 0], 1)
    assert (slopes.item(), level.item()) == pytest.approx((slope, constant), rel=1e-10)
    x, y = table(400, 4, 2)
    moments = exact(RowLattice.of(features=4, outputs=2), x, y)
    slopes, level = moments.coefficients(ssp(moments).theta)
    found = np.linalg.lstsq(np.column_stack((np.ones(400), x)), y)[0]
    assert np.column_stack((level, slopes)) == pytest.approx(found.T, rel=1e-9)


def test_without_noise_it_is_ridge():
    """K3."""
    x, y = table(300, 4)
    moments = exact(RowLattice.of(features=4, intercept=0.0), x, y)
    found = Ridge(alpha=2.5, fit_intercept=False).fit(x, y[:, 0]).coef_
    assert ridge(moments, 2.5).theta[:, 0] == pytest.approx(found, rel=1e-9)


def test_the_penalty_lifts_every_matrix_above_its_noise():
    """K12, K33: on rank-deficient rows, the penalized matrix is always definite."""
    lattice = RowLattice.of(features=6, intercept=0.0)
    rows = unit_map(lattice)
    x, y = table(3000, 6)
    x[:, 3:] = x[:, :3]
    total = sum_moments(rows, x, y)
    plan = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA)
    bits = seeded_rng(3)
    for _ in range(300):
        moments = plan.release(total, rows=rows, rng=bits)
        found = project_psd(moments)
        assert found.stable
        assert found.smallest == pytest.approx(noise_edge(moments), rel=1e-6)
        assert found.condition < math.inf


def test_no_penalty_where_none_is_needed(released):
    far = dataclasses.replace(released, gram=released.gram + 1e4 * np.eye(4))
    assert project_psd(far).penalty == 0.0


def test_adassp_takes_the_smallest_eigenvalue_down():
    """K11, K32: two deviations below; no penalty where the eigenvalue is large."""
    lattice = RowLattice.of(features=2)
    rows = unit_map(lattice)
    plan = plan_sufficient_statistics(lattice, epsilon=EPSILON, delta=DELTA, smallest_share=0.3)
    x, y = table(20_000, 2)
    moments = plan.release(sum_moments(rows, x, y), rows=rows, rng=seeded_rng(3))
    truth = np.linalg.eigvalsh(rows.design(x).T @ rows.design(x))[0]
    assert abs(moments.smallest - truth) < 6 * moments.sigma_smallest + 1
    assert adassp(moments).penalty == 0.0
    small = dataclasses.replace(moments, smallest=0.0)
    assert adassp(small).penalty == pytest.approx(moments.sigma * (math.sqrt(6) + 2))
    with pytest.raises(InvalidArgument, match="smallest"):
        adassp(dataclasses.replace(moments, smallest=None))


def test_the_published_eigenvalue_is_a_lower_bound():
    """K11: with the published shift it exceeds the truth less than once in 10**4."""
    lattice = RowLattice.of(features=2)
    plan = plan_published(lattice, method="adassp", constants="wang", epsilon=1, delta=DELTA)
    moments = plan.release(zero_sums(lattice), rows=unit_map(lattice), rng=seeded_rng(1))
    shift = math.sqrt(moments.published_log)
    assert 0.5 * math.erfc(shift / math.sqrt(2)) < 1e-4
    target = moments.sigma * math.sqrt(3 * math.log(18 / 0.05))
    lifted = dataclasses.replace(moments, smallest=target + shift * moments.sigma_smallest)
    assert adassp(lifted).penalty == pytest.approx(0.0, abs=1e-9)
    zero = dataclasses.replace(moments, smallest=0.0)
    assert adassp(zero).penalty == pytest.approx(target)


def test_subsets_are_post_processing(released):
    """K39: the moments of a subset are those that were released."""
    part = released.subset([2, 0])
    assert part.guarantee is released.guarantee
    assert part.kept == (2, 0)
    assert np.array_equal(part.gram, released.gram[np.ix_([0, 3, 1], [0, 3, 1])])
    theta = ssp(part).theta
    full = part.full(theta)
    assert np.array_equal(full[[0, 3, 1]], theta)
    assert full[2] == 0
    again = part.subset([0])
    assert np.array_equal(again.gram, released.gram[:2, :2])
    for wrong in ([0, 0], [5], [-1]):
        with pytest.raises(InvalidArgument, match=r"features|at least"):
            released.subset(wrong)
    with pytest.raises(InvalidArgument, match="left"):
        part.subset([1])


def test_a_penalty_is_not_negative(released):
    with pytest.raises(InvalidArgument, match="penalty"):
        ridge(released, -1.0)
