"""Synthetic rows: near their tables, without what is impossible, with bounds that hold."""

import datetime as dt
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet
from discreet import col, seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.marginals._exchange import Exchange, Impossible, tree_start
from discreet.marginals.columns import MarginalColumn, read_column
from discreet.marginals.plan import plan_tables
from discreet.query.budget import budget
from tests.marginals.test_release import COLUMNS, ROWS

SIZES = (5, 2, 7, 3)
PAIRS = list(combinations(range(4), 2))


def exact(codes, key, sizes=SIZES):
    if not key:
        return np.array(float(len(codes)))
    made = np.zeros([sizes[i] for i in key])
    np.add.at(made, tuple(codes[:, i] for i in key), 1)
    return made


def people(many=4000, seed=0, sizes=SIZES):
    """Rows with strong dependence between neighboring columns."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, sizes[0], many)
    columns = [first]
    for size in sizes[1:]:
        noise = generator.integers(0, size, many)
        columns.append(np.where(generator.random(many) < 0.7, columns[-1] % size, noise))
    return np.array(columns).T


def released(codes, tables=PAIRS, sizes=SIZES, seed=1, **amount):
    columns = tuple(
        MarginalColumn(name="abcdefg"[i], labels=tuple(range(size)), chain=(1, size))
        for i, size in enumerate(sizes)
    )
    plan = plan_tables(
        columns,
        tables,
        budget=budget(**amount or {"rho": 0.1}),
        relation=NeighboringRelation.ADD_REMOVE,
        rows=1,
    )
    return plan.release(codes, rng=seeded_rng(seed))


def distance(one, other, key):
    left, right = exact(one, key), exact(other, key)
    return np.abs(left / left.sum() - right / right.sum()).sum() / 2


def test_rows_are_near_the_tables_and_tables_of_three_columns():
    codes = people()
    made = released(codes).synthesize(seed=3)
    pairs = [distance(made.codes, codes, key) for key in PAIRS]
    triples = [distance(made.codes, codes, key) for key in combinations(range(4), 3)]
    assert np.mean(pairs) < 0.03
    assert np.mean(triples) < 0.08
    # A start without dependence is far away: the distance is no property of the columns alone.
    generator = np.random.default_rng(1)
    shuffled = np.array([generator.permutation(held) for held in codes.T]).T
    assert np.mean([distance(shuffled, codes, key) for key in PAIRS]) > 0.1


def test_the_exchange_improves_on_the_start():
    codes = people()
    tables = {key: exact(codes, key) for key in [*PAIRS, *[(i,) for i in range(4)]]}
    rng = np.random.default_rng(1)
    rows = Exchange(tree_start(4000, SIZES, tables, rng), SIZES, tables, impossible=(), rng=rng)
    before = rows.loss
    rows.run()
    assert rows.loss < before / 3


@pytest.mark.parametrize("tables", [PAIRS, [(0, 1, 2), (2, 3)], [(0, 1), (1, 2, 3)]])
def test_the_distance_that_is_kept_is_that_of_the_rows(tables):
    codes = people(500)
    wanted = {key: exact(people(500, seed=9), key) for key in tables}
    rng = np.random.default_rng(2)
    rows = Exchange(codes.copy(), SIZES, wanted, impossible=(), rng=rng)
    for step in range(20):
        rows.move(rng.choice(500, 30, replace=False), step % 4, temperature=2.0)
    loss = sum(np.square(exact(rows.codes, key) - cells).sum() for key, cells in wanted.items())
    assert rows.loss == pytest.approx(loss)
    assert not np.array_equal(rows.codes, codes)


@pytest.mark.parametrize("tables", [PAIRS, [(0, 1, 2), (2, 3)]])
def test_one_row_at_a_time_without_temperature_never_makes_it_worse(tables):
    wanted = {key: exact(people(300, seed=9), key) for key in tables}
    rng = np.random.default_rng(2)
    rows = Exchange(people(300), SIZES, wanted, impossible=(), rng=rng)
    losses = [rows.loss]
    for step in range(300):
        rows.move(np.array([step]), step % 4, temperature=0.0)
        losses.append(rows.loss)
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] < losses[0]


def test_a_row_that_is_in_its_place_does_not_make_it_look_full():
    # Without its own count taken off, all values look alike, and the first one would be taken.
    rows = Exchange(
        np.array([[1, 0]]),
        (2, 2),
        {(0, 1): np.array([[0.0, 0.0], [1.0, 0.0]])},
        impossible=(),
        rng=np.random.default_rng(0),
    )
    rows.move(np.array([0]), 0, temperature=0.0)
    assert rows.codes.tolist() == [[1, 0]]
    assert rows.loss == 0


def test_impossible_combinations_never_occur():
    codes = people()
    release = released(codes)
    forbidden = [{"a": 0, "b": 1}, {"c": (5, 6), "d": [1, 2]}, {"a": [3]}, {"a": 1, "b": 0, "d": 2}]
    made = release.synthesize(impossible=forbidden, seed=1)
    a, b, c, d = made.codes.T
    assert not ((a == 0) & (b == 1)).any()
    assert not ((c >= 5) & (d >= 1)).any()
    assert not (a == 3).any()
    assert not ((a == 1) & (b == 0) & (d == 2)).any()
    assert ((codes[:, 0] == 0) & (codes[:, 1] == 1)).any()  # else nothing was shown
    assert len(set(a.tolist())) == 4


def test_combinations_that_leave_nothing_are_refused():
    release = released(people())
    with pytest.raises(InvalidArgument, match="excludes all rows"):
        release.synthesize(impossible=[{"a": (0, 4)}])
    with pytest.raises(InvalidArgument, match="no rows without these"):
        release.synthesize(size=50, impossible=[{"b": 0}, {"b": 1}])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 0}, "size must be"),
        ({"size": 10**9}, "size must be at most"),
        ({"size": 2.5}, "size must be"),
        ({"impossible": {"a": 1}}, "impossible must be a list"),
        ({"impossible": [3]}, "impossible must list mappings"),
        ({"impossible": [{"z": 1}]}, "impossible must name columns"),
        ({"impossible": [{"a": 77}]}, "77 is not a value of column 'a'"),
        ({"values": "some"}, "values must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        released(people(100)).synthesize(**arguments)


def test_an_estimate_of_no_rows_asks_for_a_size():
    release = released(people(0), seed=5)
    assert release.total < 0.5
    with pytest.raises(InvalidArgument, match="size must be given"):
        release.synthesize()
    assert len(release.synthesize(size=10, seed=1)) == 10


def test_the_same_seed_makes_the_same_rows_and_none_makes_others():
    release = released(people(500))
    one, same, other = (release.synthesize(seed=seed) for seed in (1, 1, None))
    assert np.array_equal(one.codes, same.codes)
    assert not np.array_equal(one.codes, other.codes)
    again = release.synthesize(seed=other.seed)
    assert np.array_equal(again.codes, other.codes)


def test_bounds_hold_for_all_tables_at_once():
    missed = 0
    for seed in range(25):
        codes = people(800, seed=seed)
        made = released(codes, seed=seed).synthesize(seed=seed)
        for row in made.fidelity(0.8):
            key = (
                tuple("abcd".index(name) for name in row["table"].split(", "))
                if (row["table"] != "all rows")
                else ()
            )
            error = np.abs(made._counted(key) - exact(codes, key))
            if error.max() > row["largest bound"] or error.mean() > row["bound"]:
                missed += 1
                break
    # At most 5 of 25 may miss in expectation; 17 or more have a probability below 1e-6.
    assert missed < 17


def test_a_bound_without_the_noise_would_not_hold():
    codes = people(800)
    made = released(codes).synthesize(seed=1)
    for row in made.fidelity():
        assert row["difference"] < row["bound"]
    errors = np.abs(made._counted((0, 2)) - exact(codes, (0, 2))).mean()
    stated = {row["table"]: row for row in made.fidelity()}["a, c"]
    assert 0 < errors < stated["bound"]
    over = np.abs(made._counted((0, 2)) - exact(codes, (0, 2))) > np.abs(
        made._counted((0, 2)) - made.table(["a", "c"]).unbiased.cells
    )
    assert over.any()


def test_tables_of_rows_are_whole_and_agree():
    made = released(people()).synthesize(seed=1)
    pair, single = made.table(["a", "c"]), made.table(["a"])
    assert np.array_equal(pair.cells, np.rint(pair.cells))
    assert np.array_equal(pair.cells.sum(axis=1), single.cells)
    assert made.table().value == len(made)
    half = released(people()).synthesize(size=2000, seed=1)
    assert half.table().value == pytest.approx(released(people()).nonnegative().total)


@pytest.fixture(scope="module")
def mixed():
    start = dt.date(2020, 1, 1)
    source = ROWS.assign(
        day=[start + dt.timedelta(days=int(k) % 400) for k in range(len(ROWS))],
        weight=np.linspace(0, 99.5, len(ROWS)),
    )
    table = discreet.table(
        source,
        columns={
            **{name: one for name, one in COLUMNS.items() if name != "open"},
            "day": discreet.date(start, dt.date(2021, 12, 31)),
            "weight": discreet.real(0, 100, granularity=0.5),
        },
        privacy_unit="person",
        max_rows_per_unit=10,
        budget=discreet.approx_dp(100, 0.1),
    )
    named = {
        "site": "site",
        "ill": "ill",
        "age": col("age").cut([18, 65]),
        "day": col("day").cut([dt.date(2020, 7, 1), dt.date(2021, 1, 1)]),
        "weight": col("weight").cut([25, 50]),
    }
    return table.marginals(2, columns=named, rho=5)


def test_bins_become_values_within_them(mixed):
    labels = mixed.synthesize(seed=4, values="label").to_pandas()
    made = mixed.synthesize(seed=4).to_pandas()
    middle = mixed.synthesize(seed=4, values="middle").to_pandas()
    assert set(labels["age"]) == {"< 18", "[18, 65)", ">= 65"}
    for frame in (made, middle):
        young, old = labels["age"] == "< 18", labels["age"] == ">= 65"
        assert frame["age"][young].between(0, 17).all()
        assert frame["age"][~young & ~old].between(18, 64).all()
        assert frame["age"][old].between(65, 120).all()
        late = labels["day"] == ">= 2021-01-01"
        assert (frame["day"][late] >= dt.date(2021, 1, 1)).all()
        assert (frame["day"][~late] < dt.date(2021, 1, 1)).all()
        light = labels["weight"] == "< 25"
        assert frame["weight"][light].between(0, 24.5).all()
    assert middle["age"].nunique() == 3
    assert made["age"].nunique() > 80
    assert set(made["weight"] * 2 % 1) == {0}
    assert set(made["ill"]) == {True, False}


def test_bins_are_stored_with_the_release(mixed):
    again = discreet.MarginalRelease.from_json(mixed.to_json())
    assert again.columns == mixed.columns
    one, other = (release.synthesize(seed=1).to_pandas() for release in (again, mixed))
    pd.testing.assert_frame_equal(one, other)
    broken = mixed.columns[2].content() | {"bins": [[1, 0], [1, 2], [2, 3]]}
    with pytest.raises(InvalidArgument):
        read_column(broken)


def test_rows_leave_as_csv_and_parquet(mixed, tmp_path):
    made = mixed.synthesize(size=300, seed=1)
    made.to_csv(tmp_path / "rows.csv")
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 300
    made.to_parquet(tmp_path / "rows.parquet")
    assert pl.read_parquet(tmp_path / "rows.parquet").columns == list(made.to_dict())
    with pytest.raises(InvalidArgument, match="exists"):
        made.to_parquet(tmp_path / "rows.parquet")
    assert "Not promised" in str(made)
    assert "households" in str(made.fidelity())


def test_columns_of_no_table_are_not_in_the_rows():
    release = released(people(), tables=[(0, 1), (3,)])
    assert list(release.synthesize(size=10, seed=1).to_dict()) == ["a", "b", "d"]
    with pytest.raises(InvalidArgument, match="number of rows alone"):
        released(people(), tables=[()]).synthesize()


def test_impossible_values_of_a_broken_search_are_seen():
    one = Impossible(values={0: np.array([1.0, 0]), 1: np.array([0, 1.0])})
    codes = np.array([[0, 1], [0, 0], [1, 1]])
    assert one.broken(codes).tolist() == [0]
