"""A person in a month, a device on a day: privacy units of several parts."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import discreet
from discreet import col
from discreet.cards import _schema
from discreet.cli.main import main
from discreet.query._release_plan import plan_release
from discreet.query.budget import budget
from discreet.spec import release_file
from discreet.tables._execute import reserve_plan

FIRST, LAST = dt.date(2025, 1, 1), dt.date(2025, 1, 10)
COLUMNS = {
    "day": discreet.date(FIRST, LAST),
    "site": discreet.category(["north", "south"]),
    "cost": discreet.integer(0, 100),
}
PERSON_DAY = ["person", col("day")]
EXACT = 200
"""An epsilon at which noise is zero, but for once in 10**80 runs."""


def rows(*given):
    """Rows of a person, a day of January (None: unknown) and a cost."""
    days = [None if day is None else FIRST + dt.timedelta(days=day - 1) for _, day, _ in given]
    return pl.DataFrame(
        {
            "person": [person for person, _, _ in given],
            "day": pl.Series(days, dtype=pl.Date),
            "site": ["north"] * len(given),
            "cost": [cost for _, _, cost in given],
        },
        schema_overrides={"person": pl.String},
    )


def opened(source, unit, *, limit=100_000, **more):
    account = discreet.Ledger("memory://").account("test", limit=discreet.pure_dp(limit))
    limits = {"max_rows_per_unit": 1} | more
    return discreet.table(source, columns=COLUMNS, privacy_unit=unit, account=account, **limits)


def test_each_day_of_a_person_has_limits_of_its_own():
    data = rows(("a", 1, 5), ("a", 1, 5), ("a", 2, 7), ("b", 1, 9), ("a", None, 50), (None, 1, 60))
    by_person = opened(data, "person")
    by_day = opened(data, PERSON_DAY)
    assert by_person.count(epsilon=EXACT).value == 2
    assert by_day.count(epsilon=EXACT).value == 3
    assert by_day.count_units(epsilon=EXACT).value == 3
    assert by_day.sum("cost", epsilon=EXACT * 100).value == 5 + 7 + 9


def test_one_unit_moves_a_release_as_far_as_its_sensitivity_and_k_periods_k_times():
    # Brute force: the worst rows of a person in k periods against none of theirs.
    rest = [("b", day, 40) for day in range(1, 11)]
    empty = opened(rows(*rest), PERSON_DAY, max_rows_per_unit=2)
    before = int(empty.sum("cost", epsilon=EXACT * 200).value)
    for k in (1, 3, 10):
        theirs = [("a", day, 100) for day in range(1, k + 1) for _ in range(5)]
        full = opened(rows(*rest, *theirs), PERSON_DAY, max_rows_per_unit=2)
        assert int(full.sum("cost", epsilon=EXACT * 200).value) - before == k * 2 * 100


def test_rows_that_no_declared_date_reaches_belong_to_nobody():
    beyond = LAST + dt.timedelta(days=1)
    data = rows(("a", 1, 5)).vstack(rows(("a", 2, 5)).with_columns(day=pl.lit(beyond)))
    assert opened(data, PERSON_DAY).count(epsilon=EXACT).value == 1


def test_the_words_name_every_part():
    table = opened(rows(("a", 1, 5)), PERSON_DAY)
    release = table.count(by="site", epsilon=1)
    assert "any one combination of person and day, with all its rows" in release.privacy_statement
    assert repr(table).startswith("Table(columns=['cost', 'day', 'site'], privacy_unit=['person', ")
    assert any("row of each combination of person and day is used" in one for one in release.about)


def test_a_card_states_what_a_person_pays():
    account = discreet.Ledger("memory://").account("daily", limit=discreet.zcdp(1))
    table = discreet.table(
        rows(("a", 1, 5)),
        columns=COLUMNS,
        privacy_unit=PERSON_DAY,
        max_rows_per_unit=1,
        account=account,
    )
    release = table.count(rho=0.015)
    card = discreet.card(release, delta=1e-9)
    privacy = card.content["privacy"]
    assert privacy["unit"]["columns"] == ["person", "day"]
    assert privacy["unit"]["period"] == {"column": "day", "every": "day"}
    found = {(one["length"], one["how"][:3]): one["epsilon"]["value"] for one in privacy["periods"]}
    rho = 0.015

    def at_least(many, *, times):  # Gaussian noise of at most this rho: its exact epsilon
        return discreet.gdp(math.sqrt(2 * rho * many) * times).epsilon(1e-9)

    for many, length in ((7, "7 days"), (30, "30 days"), (365, "365 days")):
        apart, together = found[length, "a r"], found[length, "one"]
        assert at_least(many, times=1) * 0.97 <= apart <= at_least(many, times=1) * 1.03
        assert together > 0.97 * at_least(1, times=many)
    assert card.verify().problems == ()
    assert _schema.problems(json.loads(card.to_json())) == []
    privacy["periods"][1]["how"] = privacy["periods"][0]["how"]
    privacy["periods"][1]["epsilon"] = privacy["periods"][0]["epsilon"]
    assert card.verify().problems == ()  # the other way is as true
    privacy["periods"][1]["how"] = "one release of all periods, as a group"
    [problem] = card.verify().problems
    assert problem.startswith("privacy.periods[1].epsilon")


def test_a_person_in_a_month():
    days = [
        dt.date(2025, 1, 5),
        dt.date(2025, 1, 6),
        dt.date(2025, 2, 6),
        None,
        dt.date(2024, 1, 1),
    ]
    data = pl.DataFrame({"person": ["a"] * 5, "day": days})
    table = discreet.table(
        data,
        columns={"day": discreet.date(FIRST, dt.date(2025, 12, 31))},
        privacy_unit=["person", col("day").truncate("month")],
        max_rows_per_unit=1,
        budget=500,
    )
    release = table.count(epsilon=EXACT)
    assert release.value == 2
    assert "any one combination of person and month of day, with" in release.privacy_statement
    privacy = discreet.card(release).content["privacy"]
    assert privacy["unit"]["period"] == {"column": "day", "every": "month"}
    assert [one["length"] for one in privacy["periods"]] == ["12 months"] * 2


def test_files_pickles_and_plans_keep_the_unit(tmp_path):
    path = tmp_path / "rows.parquet"
    rows(("a", 1, 5), ("a", 2, 5)).write_parquet(path)
    (tmp_path / "release.toml").write_text(
        f"""
[table]
source = "rows.parquet"
privacy_unit = ["person", ["col", "day"]]
max_rows_per_unit = 1
[account]
name = "survey"
ledger = "sqlite:///ledger.db"
limit = {{ epsilon = 400 }}
[columns.day]
kind = "date"
lower = {FIRST}
upper = {LAST}
[[statistic]]
kind = "count"
epsilon = {EXACT}
"""
    )
    file = release_file.read(tmp_path / "release.toml")
    assert str(file.setting.privacy_unit) == "person and day"
    found = CliRunner().invoke(main, ["release", str(tmp_path / "release.toml"), "--json"])
    assert found.exit_code == 0, found.output
    table = discreet.table(
        path,
        columns={"day": COLUMNS["day"]},
        privacy_unit=PERSON_DAY,
        max_rows_per_unit=1,
        budget=500,
    )
    assert pickle.loads(pickle.dumps(table)).spec == table.spec


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ([], "0 parts"),
        ([3], "got int"),
        ({"person"}, "got set"),
        (["person", "person"], "twice"),
        (["person", col("cost")], "must be a date, a category or a truth value"),
        (["person", col("salary")], "salary"),
        (["person", "salary"], "'salary'"),
        (["x"] * 9, "9 parts"),
    ],
)
def test_units_that_are_none(unit, says):
    with pytest.raises(discreet.InvalidArgument, match=says):
        opened(rows(("a", 1, 5)), unit)


def test_a_date_without_col_is_refused_with_the_remedy():
    with pytest.raises(discreet.InvalidArgument, match=r"use discreet\.col\(\)"):
        opened(rows(("a", 1, 5)), ["person", "day"]).count(epsilon=1)


def test_what_needs_people_refuses_a_part_of_one():
    table = opened(rows(("a", 1, 5)), PERSON_DAY)
    with pytest.raises(discreet.Unsupported, match="belong to people"):
        table.with_personal_budgets(privacy_levels={"north": 1, "south": 2}, budget="site")
    with pytest.raises(discreet.InvalidArgument, match="each by one column"):
        table.join_by_unit(table, columns=["site"])


def test_a_plan_of_another_unit_is_refused():
    data = rows(("a", 1, 5))
    other = opened(data, ["person", col("site")])
    plan = plan_release([discreet.query.count()], setting=other.spec, budget=budget(epsilon=1))
    with pytest.raises(discreet.InvalidArgument, match="made for this table"):
        reserve_plan(opened(data, PERSON_DAY), plan, label="x", request_id="1")
    reserve_plan(opened(data, ["person", col("site")]), plan, label="x", request_id="1")


def test_bounds_keys_quantiles_and_many_tables_know_the_unit():
    many = [("a", day, 50) for day in range(1, 11) for _ in range(3)]
    table = opened(rows(*many), PERSON_DAY, limit=10**6)
    assert table.suggest_bounds("cost", outermost=(0, 100), epsilon=EXACT).value is not None
    spread = table.suggest_contribution_limits(epsilon=EXACT)
    assert spread is not None
    release = table.marginals(1, columns=["site", "day"], epsilon=EXACT)
    assert release.table(["day"]).cells.round().tolist() == [1] * 10
    assert "combination of person and day" in release.privacy_statement
    counts = table.count(by=col("day"), epsilon=EXACT)
    np.testing.assert_array_equal(counts.value, np.ones(10))
