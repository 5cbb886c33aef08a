"""Levels of a hierarchy in many tables: sensitivity, least squares and agreement."""

import json
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import col, seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import measured, moved_plain, moved_squared, support
from discreet.marginals.plan import plan_tables
from discreet.marginals.spine import Spine
from discreet.query.budget import budget

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
STATE, COUNTY, SEX, AGE = range(4)
COUNTIES = np.array([0, 0, 0, 1, 2, 2])
SPINE = Spine(columns=(STATE, COUNTY), parents=(np.zeros(3, dtype=int), COUNTIES))
SIZES = (3, 6, 2, 3)
AMOUNTS = [{"rho": 0.5}, {"epsilon": 1}]


def columns_of(sizes=SIZES):
    return tuple(
        MarginalColumn(name=name, labels=tuple(range(size)), chain=(1, size))
        for name, size in zip(("state", "county", "sex", "age"), sizes, strict=True)
    )


def planned(
    tables, *, spine=SPINE, relation=ADD, rows=1, columns=None, objective="orders", **amount
):
    return plan_tables(
        columns or columns_of(),
        tables,
        budget=budget(**amount),
        relation=relation,
        rows=rows,
        objective=objective,
        spine=spine,
    )


def coded(cells, sizes=SIZES, parents=COUNTIES):
    """Rows in cells of county x sex x age, with the state that follows."""
    county, *others = np.unravel_index(np.asarray(cells, dtype=int), sizes[1:])
    return np.array([parents[county], county, *others])


def counted(design, codes):
    found = {}
    for place in design.places:
        table = support(place)
        made = np.zeros([design.columns[i].size for i in table], dtype=np.int64)
        np.add.at(made, tuple(codes[i] for i in table), 1) if table else None
        found[place] = made if table else np.array(codes.shape[1])
    return found


def all_measured(design, codes):
    tables = counted(design, codes)
    return [
        measured(place, tables[place], design.columns, plain=design.plain).ravel()
        for place in design.places
    ]


@pytest.mark.parametrize("amount", AMOUNTS, ids=["gaussian", "laplace"])
@pytest.mark.parametrize(("relation", "rows"), [(ADD, 1), (ADD, 2), (REPLACE, 1), (REPLACE, 2)])
def test_nodes_move_as_far_as_stated_on_all_neighbors(amount, relation, rows):
    sizes = (3, 4, 2, 2) if rows == 2 else SIZES
    parents = np.array([0, 0, 1, 2]) if rows == 2 else COUNTIES
    spine = Spine(columns=(STATE, COUNTY), parents=(np.zeros(3, dtype=int), parents))
    design = planned([(COUNTY, SEX, AGE)], spine=spine, columns=columns_of(sizes), **amount)._design
    units = [
        all_measured(design, coded(chosen, sizes, parents))
        for many in range(rows + 1)
        for chosen in combinations_with_replacement(range(int(np.prod(sizes[1:]))), many)
    ]
    assert len(design.places) == 12 or design.plain
    for k, place in enumerate(design.places):
        moved = np.array([unit[k] for unit in units])
        away = moved[:, None] - moved[None] if relation is REPLACE else moved[None]
        if design.plain:
            stated = moved_plain(place, rows=rows, relation=relation)
            assert np.abs(away).sum(-1).max() == stated, place
        else:
            stated = moved_squared(place, design.columns, rows=rows, relation=relation)
            assert (away**2).sum(-1).max() == stated, place


def dense(design, query):
    """Variance of a linear query by a dense solve, from nothing but what is measured."""
    cells = int(np.prod(SIZES[1:]))
    each = [all_measured(design, coded([cell])) for cell in range(cells)]
    information = np.zeros((cells, cells))
    for k, law in enumerate(design.laws):
        matrix = np.array([one[k] for one in each]).T.astype(float)
        information += matrix.T @ matrix / law.variance
    return float(query @ np.linalg.pinv(information, hermitian=True) @ query)


TABLES = [
    [(COUNTY, SEX, AGE)],
    [(COUNTY,), (STATE, SEX)],
    [(STATE, AGE), (COUNTY, SEX), (SEX, AGE)],
]


@pytest.mark.parametrize("amount", AMOUNTS, ids=["gaussian", "laplace"])
@pytest.mark.parametrize("tables", TABLES)
def test_variances_and_estimates_are_those_of_a_dense_solve(tables, amount):
    plan = planned(tables, **amount)
    design = plan._design
    generator = np.random.default_rng(3)
    full = np.arange(int(np.prod(SIZES[1:])))
    for table in sorted(design.answered):
        variance = np.broadcast_to(design.cell_variance(table), [SIZES[i] for i in table])
        for _ in range(2):
            cell = tuple(int(generator.integers(SIZES[i])) for i in table)
            codes = coded(full)
            hit = np.ones(len(full))
            for i, value in zip(table, cell, strict=True):
                hit = hit * (codes[i] == value)
            assert variance[cell] == pytest.approx(dense(design, hit), rel=1e-9), (table, cell)
            weights = {i: generator.normal(size=SIZES[i]) for i in table}
            query = np.ones(len(full))
            for i in table:
                query = query * weights[i][codes[i]]
            wanted = dense(design, query)
            assert design.answer_variance(weights) == pytest.approx(wanted, rel=1e-9), table
    # Without noise the estimates are the counts themselves.
    codes = coded(generator.integers(0, len(full), 500))
    exact = [
        one.reshape(shape)
        for one, shape in zip(
            all_measured(design, codes),
            [
                np.shape(m)
                for m in plan._exact({support(p): c for p, c in counted(design, codes).items()})
            ],
            strict=True,
        )
    ]
    parts = design.parts(exact)
    for table in design.answered:
        made = np.zeros([SIZES[i] for i in table])
        np.add.at(made, tuple(codes[i] for i in table), 1) if table else None
        found = design.table(table, parts)
        assert np.abs(found - (made if table else 500)).max() < 1e-9, table


@pytest.mark.parametrize(
    ("relation", "amount"),
    [(ADD, {"epsilon": 1, "delta": 1e-6}), (REPLACE, {"rho": 0.5}), (REPLACE, {"epsilon": 1})],
)
def test_releases_agree_from_top_to_bottom_and_are_certified(amount, relation):
    plan = planned([(COUNTY, SEX), (STATE, AGE)], relation=relation, rows=2, **amount)
    assert plan.certify().holds
    codes = coded(np.random.default_rng(1).integers(0, 36, 300)).T
    release = plan.release(codes, rng=seeded_rng(4))
    county, state = release.table(["county", "sex"]).cells, release.table(["state", "sex"]).cells
    added = np.zeros_like(state)
    np.add.at(added, COUNTIES, county)
    assert np.abs(added - state).max() < 1e-9
    assert np.abs(release.table(["state", "age"]).cells.sum(1) - state.sum(1)).max() < 1e-9
    assert release.table(["state"]).cells.sum() == pytest.approx(release.total)
    assert plan.guarantee.relation is relation


@pytest.mark.parametrize("amount", AMOUNTS, ids=["gaussian", "laplace"])
def test_stated_errors_and_intervals_are_those_of_simulated_releases(amount):
    plan = planned([(COUNTY, SEX)], **amount)
    codes = coded(np.random.default_rng(2).integers(0, 36, 200)).T
    runs, off, inside = 200, [], []
    for seed in range(runs):
        release = plan.release(codes, rng=seeded_rng(seed))
        for by in ([], ["state"], ["county"], ["county", "sex"]):
            table = release.table(by)
            truth = np.zeros(np.shape(table.cells))
            places = tuple(codes[:, plan._key([name])[0]] for name in by)
            np.add.at(truth, places, 1) if by else None
            truth = truth if by else np.array(200.0)
            off.append(np.ravel((table.cells - truth).ravel() / table.std))
            low, high = table.interval(0.9)
            inside.append(np.ravel((low <= truth.ravel()) & (truth.ravel() <= high)))
    every = np.concatenate(off)
    # Each run is at worst one draw: five deviations (kurtosis up to 6) of 200 runs.
    assert np.mean(every**2) == pytest.approx(1, abs=5 * np.sqrt(5 / runs))
    assert np.mean(np.concatenate(inside)) > 0.9 - 5 * np.sqrt(0.09 / runs)


def test_laplace_noise_of_an_answer_has_the_weights_that_its_width_is_made_of():
    plan = planned([(COUNTY, SEX), (STATE, AGE)], epsilon=1)
    design = plan._design
    generator = np.random.default_rng(6)
    zeros = [np.zeros([SIZES[i] for i in support(place)]) for place in design.places]
    for table in ((COUNTY, SEX), (STATE, AGE), (STATE,), (SEX,), ()):
        weights = {i: generator.integers(0, 3, SIZES[i]).astype(float) for i in table}
        for k, (place, law) in enumerate(zip(design.places, design.laws, strict=True)):
            found = []
            for cell in np.ndindex(zeros[k].shape):
                noisy = [one.copy() for one in zeros]
                noisy[k][cell] = 1
                made = design.table(table, design.parts(noisy))
                for i in table:
                    made = np.tensordot(weights[i], made, axes=1)
                found.append(float(made))
            held, many = design._terms(place, law, weights)
            stated = np.repeat(held, many.astype(int))
            assert np.sort(stated) == pytest.approx(np.sort(found), abs=1e-12), (table, place)
    assert plan.width() < 2.3 * plan.std()


def test_published_deviations_of_trees():
    # Fan-outs 6 and 2, cost one in all, equal shares and least squares.
    parents = (np.zeros(6, dtype=int), np.repeat(np.arange(6), 2))
    columns = columns_of((6, 12, 2, 2))
    spine = Spine(columns=(STATE, COUNTY), parents=parents)
    plan = planned([(COUNTY,)], spine=spine, columns=columns, rho=0.005)
    found = [plan.std(by) / 10 for by in ([], ["state"], ["county"])]
    assert found == pytest.approx([1.549, 1.317, 1.390], rel=1e-3)


def test_weights_move_the_budget_between_levels():
    even = planned([(COUNTY,)], rho=0.1)
    heavy = plan_tables(
        columns_of(),
        [(COUNTY,)],
        budget=budget(rho=0.1),
        relation=ADD,
        rows=1,
        weights={(STATE,): 20.0},
        spine=SPINE,
    )
    assert heavy.std(["state"]) < even.std(["state"])
    assert heavy.std(["county"]) > even.std(["county"])


def test_what_a_spine_cannot_do_is_refused():
    with pytest.raises(InvalidArgument, match="one level"):
        planned([(STATE, COUNTY)], rho=1)
    with pytest.raises(InvalidArgument, match="objective"):
        planned([(COUNTY,)], rho=1, objective="max_error")
    with pytest.raises(InvalidArgument, match="level above"):
        Spine(columns=(STATE, COUNTY), parents=(np.zeros(3, dtype=int), np.array([0, 3])))


# ── Of a table ───────────────────────────────────────────────────────────────────────────────────

PLACES = {"Augsburg": "Bavaria", "Munich": "Bavaria", "Leipzig": "Saxony", "Dresden": "Saxony"}
GENERATOR = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "person": np.arange(900) // 3,
        "city": GENERATOR.choice([*PLACES, "Mainz"], 900),
        "sex": GENERATOR.choice(["f", "m"], 900),
        "age": GENERATOR.integers(0, 90, 900),
    }
)
LEVELS = {
    "state": col("city").map(PLACES, default="elsewhere"),
    "city": "city",
    "sex": "sex",
    "age": col("age").cut([30, 60]),
}


def opened(**more):
    return discreet.table(
        PEOPLE,
        columns={
            "city": discreet.category(list(PLACES)),
            "sex": discreet.category(["f", "m"], include_other=False),
            "age": discreet.integer(0, 119),
        },
        privacy_unit="person",
        max_rows_per_unit=2,
        budget=discreet.approx_dp(10**7, 0.1),
        **more,
    )


def test_a_table_answers_every_level_of_its_spine():
    table = opened()
    asked = {"columns": LEVELS, "spine": ["state", "city"]}
    plan = table.plan_marginals([["city", "sex"], ["state", "age"]], rho=0.5, **asked)
    assert [row["table"] for row in plan.rows()] == [
        *("all rows", "state", "city", "sex", "age"),
        *("state, sex", "state, age", "city, sex"),
    ]
    everything = table.plan_marginals(2, rho=0.5, **asked)
    assert ("state", "city") not in everything.tables
    assert ("state", "age") in everything.tables
    release = table.marginals([["city", "sex"]], epsilon=10**5, **asked)
    crossed, states = release.table(["city", "sex"]), release.table(["state", "sex"])
    assert [label for label, _ in states.keys[::2]] == ["Bavaria", "Saxony", "elsewhere"]
    bavaria = [PLACES.get(city) == "Bavaria" for city, _ in crossed.keys]
    assert states.cells[0].sum() == pytest.approx(crossed.cells.ravel()[bavaria].sum())
    assert release.total == pytest.approx(600)
    low, high = release.answer_interval({"state": "Saxony", "sex": "f"})
    assert low <= release.answer({"city": ["Leipzig", "Dresden"], "sex": "f"}) <= high
    again = discreet.MarginalRelease.from_json(release.to_json())
    assert again.rows() == release.rows()
    assert again.table("state").rows() == release.table("state").rows()


def test_counties_and_states_are_printed_without_contradiction():
    release = opened().marginals(
        [["city", "sex"], ["state", "age"]], columns=LEVELS, spine=["state", "city"], rho=0.002
    )
    printed = release.nonnegative()
    tables = {by: printed.table(by).cells for by in (("city", "sex"), ("state", "sex"), ("state",))}
    assert min(float(one.min()) for one in tables.values()) >= 0
    added = np.zeros((3, 2))
    parents = [0, 0, 1, 1, 2]
    np.add.at(added, parents, tables["city", "sex"])
    assert np.abs(added - tables["state", "sex"]).max() < 1e-3
    assert np.abs(tables["state", "sex"].sum(1) - tables["state",]).max() < 1e-3
    assert printed.table(["state", "age"]).cells.sum() == pytest.approx(printed.total)
    with pytest.raises(InvalidArgument, match="integers"):
        release.nonnegative(integers=True)
    with pytest.raises(InvalidArgument, match="rows cannot"):
        release.synthesize(10)


@pytest.mark.parametrize("by", [["city"], ["city", "sex"]])
def test_whole_numbers_add_up_at_every_level(by):
    release = opened().marginals([by], columns=LEVELS, spine=["state", "city"], rho=0.01)
    smooth, whole = release.nonnegative(), release.nonnegative(integers=True)
    city, state = whole.table(["city"]).cells, whole.table(["state"]).cells
    assert city.sum() == state.sum() == whole.total == round(smooth.total)
    added = np.zeros(3)
    np.add.at(added, [0, 0, 1, 1, 2], city)
    assert np.array_equal(added, state)
    for name in (["city"], ["state"], by):
        away = np.abs(whole.table(name).cells - smooth.table(name).cells)
        assert away.max() < 1 + 1e-6, name
        assert np.array_equal(whole.table(name).cells, np.rint(whole.table(name).cells))


@pytest.mark.parametrize(
    ("spine", "words"),
    [
        ("state", "two columns"),
        (["city"], "two columns"),
        (["state", "nobody"], "no column"),
        (["city", "state"], "several"),
        (["sex", "city"], "one declared column"),
    ],
)
def test_what_is_no_hierarchy_is_refused(spine, words):
    with pytest.raises(InvalidArgument, match=words):
        opened().plan_marginals([["city", "sex"], ["state"]], columns=LEVELS, spine=spine, rho=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["spine"]["parents"][1].append(0),
        lambda c: c["spine"]["parents"][1].__setitem__(0, 7),
        lambda c: c["spine"].update(columns=[0, 0]),
        lambda c: c["spine"].update(columns=[0, 9]),
        lambda c: c.pop("spine"),
        lambda c: c["places"].pop(),
    ],
)
def test_a_text_whose_spine_does_not_fit_is_refused(change):
    release = opened().marginals([["city"]], columns=LEVELS, spine=["state", "city"], rho=1)
    content = json.loads(release.to_json())
    change(content)
    with pytest.raises(InvalidArgument):
        discreet.MarginalRelease.from_json(json.dumps(content))
