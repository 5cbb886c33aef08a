"""Ranges of a table on Spark: the same integers as DuckDB's, and releases of them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet import col
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.program import ContributionLimits
from discreet.data.source import SparkSource, open_source
from discreet.query._measure import TableSpec
from discreet.query.budget import budget
from discreet.ranges.grid.table_query import GridQuery, plan_grid_query, rectangles
from discreet.ranges.table_query import ROWS, plan_query, ranges
from tests.data import sources

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
FIRST = dt.date(2024, 1, 1)
COLUMNS = {
    "day": discreet.date(lower=FIRST, upper=FIRST + dt.timedelta(days=365)),
    "age": discreet.integer(lower=0, upper=99),
    "pay": discreet.real(lower=0, upper=1000, granularity=0.25),
    "place": discreet.category(["north", "south", "east"]),
}
MANY = 2_000


@pytest.fixture(scope="module", name="rows")
def fixture_rows():
    random = np.random.default_rng(8)
    days = random.integers(-5, 380, MANY)
    return pa.table(
        {
            "who": random.integers(0, 700, MANY),
            "day": pa.array([FIRST + dt.timedelta(days=int(day)) for day in days]),
            "age": random.integers(-3, 110, MANY),
            "pay": random.uniform(-10, 1100, MANY),
            "place": pa.array(random.choice(["north", "south", "west"], MANY)),
        }
    )


PER_UNIT = ContributionLimits(max_rows_per_unit=3)
PER_CELL = ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=2)
ASKED = [
    (ranges("day"), PER_CELL),
    (ranges("age", where=col("pay") > 200), None),
    (ranges("pay", bins=64), PER_UNIT),
    (ranges("pay", edges=[10, 99.5, 500]), PER_CELL),
    (rectangles(["day", "place"]), PER_UNIT),
]


@pytest.mark.parametrize(("asked", "limits"), ASKED, ids=[one.text for one, _ in ASKED])
def test_the_counts_are_those_of_duckdb(asked, limits, rows, tmp_path):
    setting = TableSpec(
        schema=COLUMNS,
        privacy_unit=None if limits is None else "who",
        limits=ContributionLimits() if limits is None else limits,
        relation=NeighboringRelation.ADD_REMOVE,
    )
    make = plan_grid_query if isinstance(asked, GridQuery) else plan_query
    plan = make(asked, setting=setting, budget=budget(epsilon=1)).counted
    spark = open_source(sources.spark_frame(rows, tmp_path))
    duck = open_source(sources.parquet(rows, tmp_path))
    assert isinstance(spark, SparkSource)
    found, known = (collect(plan, source=one, key=5).columns[ROWS] for one in (spark, duck))
    assert found.tolist() == known.tolist()
    assert found.sum() > MANY / 10


def test_a_release_works(rows, tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        account = ledger.account("days", limit=discreet.pure_dp(1000))
        table = discreet.table(
            sources.spark_frame(rows, tmp_path), columns=COLUMNS, account=account
        )
        made = table.ranges("day", epsilon=200)
        days = np.array([(day - FIRST).days for day in rows["day"].to_pylist()])
        # What lies outside of the declared days is unknown.
        cells = np.bincount(days[(days >= 0) & (days <= 365)], minlength=366)
        assert made.cells == pytest.approx(cells, abs=2)
        assert made.answer("2024-03-01", None) == pytest.approx(cells[60:].sum(), abs=5)
        assert account.remaining == 800
