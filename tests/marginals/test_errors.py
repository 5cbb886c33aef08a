"""Stated errors against dense least squares, published numbers and simulations."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from discreet import seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.marginals._noise_widths import gaussian as gaussian_widths
from discreet.marginals.columns import MarginalColumn, ordered_chain
from discreet.marginals.design import MarginalDesign, closure, places_of, weighted_parts
from discreet.marginals.plan import plan_tables
from discreet.noise.gaussian import DiscreteGaussian
from discreet.query.budget import budget

ADD = NeighboringRelation.ADD_REMOVE
ADULT = (15, 9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 6, 5)
PAIRS = list(combinations(range(13), 2))


def columns_of(sizes, ordered=()):
    return tuple(
        MarginalColumn(
            name=f"c{i}",
            labels=tuple(range(size)),
            chain=ordered_chain(size) if i in ordered else (1, size),
        )
        for i, size in enumerate(sizes)
    )


def planned(sizes, tables, *, ordered=(), objective="orders", rows=1, relation=ADD, **amount):
    return plan_tables(
        columns_of(sizes, ordered),
        tables,
        budget=budget(**amount),
        relation=relation,
        rows=rows,
        objective=objective,
        ordered=frozenset(ordered),
    )


def dense(design, query):
    """Variance of a linear query by a dense solve, from nothing but what is measured."""
    sizes = [column.size for column in design.columns]
    cells = int(np.prod(sizes))
    information = np.zeros((cells, cells))
    for place, law in zip(design.places, design.laws, strict=True):
        rows = []
        for cell in np.eye(cells, dtype=np.int64):
            rest = tuple(i for i in range(len(sizes)) if i not in [k for k, _ in place])
            table = cell.reshape(sizes).sum(axis=rest)
            if not design.plain:
                for axis, (i, level) in enumerate(place):
                    column = design.columns[i]
                    table = column.contrasts(column.placed(table, axis), axis, level)
            rows.append(table.ravel())
        matrix = np.array(rows).T.astype(float)
        information += matrix.T @ matrix / law.variance
    return float(query @ np.linalg.pinv(information, hermitian=True) @ query)


@pytest.mark.parametrize("amount", [{"rho": 0.5}, {"epsilon": 1}], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("sizes", "tables", "ordered"),
    [
        ((2, 3), [(0, 1)], ()),
        ((2, 3, 4), [(0, 1), (1, 2)], ()),
        ((3, 2, 2), [(0, 1, 2)], ()),
        ((8, 3), [(0, 1)], (0,)),
    ],
)
def test_variances_are_those_of_a_dense_solve(sizes, tables, ordered, amount):
    plan = planned(sizes, tables, ordered=ordered, **amount)
    design = plan._design
    generator = np.random.default_rng(1)
    for table in sorted(design.answered):
        variance = np.broadcast_to(design.cell_variance(table), [sizes[i] for i in table])
        for _ in range(2):
            cell = tuple(int(generator.integers(sizes[i])) for i in table)
            weights = {i: np.eye(sizes[i])[c] for i, c in zip(table, cell, strict=True)}
            ranged = {i: (generator.random(sizes[i]) < 0.5).astype(float) for i in table}
            for asked in (weights, ranged):
                each = [asked.get(i, np.ones(n)) for i, n in enumerate(sizes)]
                query = each[0]
                for one in each[1:]:
                    query = np.multiply.outer(query, one)
                wanted = dense(design, query.ravel())
                assert design.answer_variance(asked) == pytest.approx(wanted, rel=1e-9)
            assert variance[cell] == pytest.approx(design.answer_variance(weights), rel=1e-9)


def test_a_filled_up_column_states_the_error_of_each_cell():
    plan = planned((5, 2), [(0, 1)], ordered=(0,), rho=0.5)
    assert not plan.columns[0].plain
    design = plan._design
    truth = np.array([[4, 0], [1, 2], [0, 0], [7, 1], [3, 3]])
    codes = np.array([c for c in product(range(5), range(2)) for _ in range(truth[c])])
    seen = [plan.release(codes, rng=seeded_rng(seed)) for seed in range(1500)]
    for by, exact in (((), truth.sum()), (("c0",), truth.sum(1)), (("c0", "c1"), truth)):
        found = np.array([one.table(by).cells for one in seen])
        stated = design.cell_variance(tuple(i for i in range(2) if f"c{i}" in by))
        stated = np.broadcast_to(stated, np.shape(exact))
        # Means of 1500: six deviations of each, a family of a few dozen.
        assert np.all(np.abs(found.mean(0) - exact) < 6 * np.sqrt(stated / 1500))
        assert found.var(0) == pytest.approx(stated, rel=6 * np.sqrt(2 / 1500))


@pytest.mark.parametrize(
    ("objective", "total", "single", "pairs"),
    [("cells", 107.1, 55.4, 34.65), ("orders", 17.0, 28.9, 41.3), ("max_error", 39.2, 39.2, 39.2)],
)
def test_published_errors_of_adult(objective, total, single, pairs):
    # The largest error is that of all tables up to two columns; the others are for the pairs.
    tables = closure(PAIRS) if objective == "max_error" else PAIRS
    plan = planned(ADULT, tables, objective=objective, epsilon=1, delta=1e-9)
    assert plan.gap < 6e-4
    columns = plan.columns
    assert plan.std() == pytest.approx(total, rel=0.01)
    ones = [(plan.std([one.name]) ** 2, one.size) for one in columns]
    assert weighted(ones) == pytest.approx(single, rel=0.01)
    twos = [
        (plan.std([columns[i].name, columns[j].name]) ** 2, columns[i].size * columns[j].size)
        for i, j in PAIRS
    ]
    assert weighted(twos) == pytest.approx(pairs, rel=0.003)
    assert plan.guarantee.epsilon(1e-9) <= 1
    low, high = plan.guarantee.bounds(1e-9)
    assert high - low < 1e-4


def weighted(pairs):
    return np.sqrt(sum(v * n for v, n in pairs) / sum(n for _, n in pairs))


def test_bases_beat_separate_tables_by_the_published_ratio():
    separate = 5.49527 * np.sqrt(78)
    plan = planned(ADULT, PAIRS, objective="cells", epsilon=1, delta=1e-9)
    twos = [
        (plan.std(table) ** 2, np.prod([ADULT[int(c[1:])] for c in table])) for table in plan.tables
    ]
    assert weighted(twos) / separate <= 0.72


def test_pure_epsilon_beats_separate_tables_by_the_published_ratio():
    plan = planned(ADULT, PAIRS, objective="cells", epsilon=1)
    assert plan.noise == "laplace"
    twos = [
        (plan.std(table) ** 2, np.prod([ADULT[int(c[1:])] for c in table])) for table in plan.tables
    ]
    assert weighted(twos) / 110.3 <= 0.715
    assert plan.guarantee.epsilon() <= 1


def test_few_tables_get_laplace_noise_where_that_is_better():
    alone = [(i,) for i in range(13)]
    plan = planned(ADULT, alone, objective="cells", epsilon=1, delta=1e-9)
    assert plan.noise == "laplace"
    assert planned(ADULT, PAIRS, objective="cells", epsilon=1, delta=1e-9).noise == "gaussian"


def test_closed_form_vectors():
    # n = (2, 3), cost 1 in all: rho = 1/2.
    plan = planned((2, 3), [(0, 1)], objective="cells", rho=Fraction(1, 200))
    assert plan.std(["c0", "c1"]) ** 2 / 100 == pytest.approx(1, rel=2e-3)
    assert plan.std() ** 2 / 100 == pytest.approx(6, rel=2e-3)
    tables = [(0,), (1,), (0, 1)]
    plan = planned((2, 3), tables, objective="cells", rho=Fraction(1, 200))
    found = [plan.std(by) ** 2 / 100 for by in ((), ("c0",), ("c1",), ("c0", "c1"))]
    assert found == pytest.approx([4.047207, 2.251001, 1.721604, 1.118845], rel=2e-3)


def test_rho_is_spent_to_the_last_thousandth():
    plan = planned((3, 4, 5), [(0, 1), (1, 2)], rho=0.1, rows=3)
    cost = sum(
        one.guarantee.event.shift_squared / one.guarantee.event.variance / 2
        for one in plan.mechanisms
    )
    assert Fraction(1, 10) * Fraction(998, 1000) <= cost <= Fraction(1, 10)


def test_reconciled_vectors():
    values = {(): 7, (0,): 2, (0, 1): 3, (1, 2): 5}
    sizes = dict(enumerate((2, 3, 4)))
    parts = weighted_parts(
        [(t, np.zeros([sizes[i] for i in t]), v) for t, v in values.items()], sizes=sizes
    )
    known = {t: parts[t][1] for t in parts}

    def variance(table):
        total = 0.0
        for part, one in known.items():
            if set(part) <= set(table):
                each = [1 - 1 / sizes[i] if i in part else 1 / sizes[i] ** 2 for i in table]
                total += one * np.prod(each)
        return total

    wanted = {
        (): 2.150171,
        (0,): 1.355724,
        (0, 1): 1.919867,
        (1, 2): 3.957239,
        (1,): 3.315831,
        (2,): 11.384386,
    }
    for table, value in wanted.items():
        assert variance(table) == pytest.approx(value, rel=1e-6)


def test_energies_of_all_ranges_of_eight_cells():
    column = columns_of((8,), ordered=(0,))[0]
    assert column.chain == (1, 2, 4, 8)
    wanted = [0.234375, 0.444444, 0.263889, 0.121528]
    assert column.mean_range_energies == pytest.approx(wanted, abs=1e-6)
    brute = np.zeros(4)
    for a in range(8):
        for b in range(a, 8):
            ones = (np.arange(8) >= a) & (np.arange(8) <= b)
            brute += [column.energy(ones.astype(float), level) for level in range(4)]
    assert column.mean_range_energies == pytest.approx(brute / 36)


def test_published_deviations_of_all_ranges_inside_five_tables():
    # Age of 64 cells, sex, education, income, workclass: all ranges of age, others by cell.
    tables = [(0,), (0, 1), (0, 2), (0, 1, 3), (2, 4)]
    plan = planned(
        (64, 2, 16, 2, 9), tables, ordered=(0,), objective="tables", rho=Fraction(1, 20_000)
    )
    design = plan._design
    assert len(design.places) == 37
    variances = np.array([design.variances[place] for place in design.bases])
    means = design.mean_energies(tables, frozenset({0})) @ variances / 10_000
    assert np.sqrt(means) == pytest.approx([4.598, 4.016, 4.764, 4.020, 2.902], rel=1e-3)
    assert np.sqrt(means.mean()) == pytest.approx(4.112, rel=1e-3)
    # Without levels the same budget buys a third more error.
    flat = planned((64, 2, 16, 2, 9), tables, objective="tables", rho=Fraction(1, 20_000))._design
    variances = np.array([flat.variances[place] for place in flat.bases])
    means = flat.mean_energies(tables, frozenset({0})) @ variances / 10_000
    assert np.sqrt(means.mean()) > 1.3 * 4.112


@pytest.mark.parametrize("size", [5, 12, 31])
def test_mean_energies_of_ranges_by_brute_force(size):
    column = columns_of((size,), ordered=(0,))[0]
    places = np.arange(size)
    each = [
        [column.energy(((places >= a) & (places <= b)) * 1.0, k) for k in range(len(column.chain))]
        for a in range(size)
        for b in range(a, size)
    ]
    assert column.mean_range_energies == pytest.approx(np.mean(each, axis=0))


def test_ranges_gain_from_a_chain():
    flat = planned((64, 2), [(0, 1)], rho=0.1)
    chained = planned((64, 2), [(0, 1)], ordered=(0,), rho=0.1)

    def mean(plan):
        return np.mean(
            [
                plan._design.answer_variance(
                    {0: ((np.arange(64) >= a) & (np.arange(64) <= b)) * 1.0}
                )
                for a in range(0, 64, 3)
                for b in range(a, 64, 3)
            ]
        )

    assert mean(chained) < mean(flat)


@pytest.mark.parametrize("square", [2, 9, 400])
def test_widths_of_gaussian_noise_hold_and_are_close(square):
    law = DiscreteGaussian(square=Fraction(square))
    for tail in (0.05, 0.01, 1e-6):
        width = float(gaussian_widths(((law, 1),), np.array(law.variance), np.array(1.0), tail))
        exact = 2 * float(law.sf(np.ceil(width) - 1)) if width % 1 else 2 * float(law.sf(width))
        assert exact <= tail
        if square >= 400:
            assert width <= 1.08 * law.interval(1 - tail)[1]


def test_a_width_that_ignores_the_lattice_would_not_hold():
    # Below the noise of a few steps, the normal quantile alone leaves too much outside.
    law = DiscreteGaussian(square=Fraction(1, 4))
    normal = 2.5758 * np.sqrt(law.variance)
    assert 2 * float(law.sf(np.floor(normal))) > 0.01 or normal >= 1
    width = float(gaussian_widths(((law, 1),), np.array(law.variance), np.array(1.0), 0.01))
    assert 2 * float(law.sf(np.floor(width))) <= 0.01


def test_too_many_bases_and_cells_are_refused():
    with pytest.raises(InvalidArgument, match="cells"):
        planned((3000, 3000), [(0, 1)], rho=1)
    with pytest.raises(InvalidArgument, match="groups of measurements"):
        places_of([(0, 1, 2, 3)], columns_of((4096,) * 4, ordered=(0, 1, 2, 3)))


def test_designs_share_nothing_between_places():
    plan = planned((2, 3), [(0, 1)], rho=1)
    assert isinstance(plan._design, MarginalDesign)
    assert len(set(plan._design.places)) == 4 == len(plan.mechanisms)
