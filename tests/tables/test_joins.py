"""Joins: nothing multiplied, nothing dropped, the same on every engine, one unit moves its own."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect, engine_of
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import category, integer, real, text
from tests.data import reference, sources

VISITS = {"person": pa.int64(), "zip": pa.string(), "cost": pa.int64()}
PEOPLE = {"id": pa.int64(), "age": pa.int64(), "sex": pa.string()}
COST = integer(lower=0, upper=9)
AGE, SEX = integer(lower=0, upper=120, missing=50), category(["f", "m"])
REGION, RATE = (
    category(["n", "s"], include_other=False),
    real(lower=0, upper=2, granularity=0.25, missing=1),
)
PUBLIC = pl.DataFrame(
    {
        "plz": ["1", "02", "z'3", None, "日本"],
        "region": ["s", "n", None, "s", "w"],
        "rate": [0.5, None, 7.0, 1.0, 0.3],
    }
)
ENGINES = [sources.polars, sources.pandas, sources.csv_file, sources.relation]
LIMITS = ContributionLimits(max_rows_per_unit=2)


def visits(rng, n=40):
    return [
        {
            "person": rng.choice([None, 1, 2, 3, 4, 5]),
            "zip": rng.choice([None, "", "1", "01", "02", "z'3", "日本", "x"]),
            "cost": rng.choice([None, 0, 3, 20]),
        }
        for _ in range(n)
    ]


def people(rng, n=8):
    return [
        {
            "id": rng.choice([None, 1, 2, 3, 9]),
            "age": rng.choice([None, 20, 30, 300]),
            "sex": rng.choice([None, "f", "m", "x"]),
        }
        for _ in range(n)
    ]


def opened(rows, types, make, folder, *, unit, columns):
    return discreet.table(
        make(sources.arrow(rows, types), folder),
        privacy_unit=unit,
        max_rows_per_unit=2,
        columns=columns,
    )


def measured(table, plan, key):
    used = [(name, table.spec.schema[name]) for name, _ in plan.columns]
    plan = replace(plan, columns=tuple(used))
    found = collect(plan, source=table._source, key=key)
    return {name: [int(v) for v in column] for name, column in found.columns.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("joins")


@pytest.mark.parametrize("make", ENGINES)
def test_a_public_table(make, folder):
    rows = visits(random.Random(1))
    table = opened(rows, VISITS, make, folder, unit="person", columns={"cost": COST})
    table = table.join(PUBLIC, on={"zip": "plz"}, columns={"region": REGION, "rate": RATE})
    found = {row["plz"]: row for row in PUBLIC.to_dicts() if row["plz"]}
    wide = [{**row, **found.get(row["zip"], {"region": None, "rate": None})} for row in rows]
    schema = {"cost": COST, "region": REGION, "rate": RATE}
    plan = compile_program(
        schema=schema,
        unit="person",
        aggregates={"rows": count(), "people": units(), "paid": total(col("cost"), col("rate"))},
        by={"region": col("region")},
        where=col("rate") > 0,
        limits=LIMITS,
    )
    for key in range(3):
        assert measured(table, plan, key) == reference.collect(plan, wide, key=key)


def attach(rows, others, key):
    """One row of each unit of the other table, by content and keyed hash; then its codes."""
    owned = {}
    for row in others:
        if row["id"] is not None:
            codes = 0, reference.encode(row["age"], AGE), reference.encode(row["sex"], SEX)
            owned.setdefault(row["id"], []).append(codes)
    chosen = {
        unit: reference.limited(ContributionLimits(max_rows_per_unit=1), mine, unit=unit, key=key)[
            0
        ]
        for unit, mine in owned.items()
    }
    missing = 0, AGE.missing, SEX.missing
    names = (*SEX.categories, None)
    return [
        {**row, "age": codes[1], "sex": names[codes[2]]}
        for row in rows
        for codes in [chosen.get(row["person"], missing)]
    ]


UNIT_PLAN = compile_program(
    schema={"cost": COST, "age": AGE, "sex": SEX},
    unit="person",
    aggregates={"rows": count(), "people": units(), "x": total(col("cost"), col("age"))},
    by={"sex": col("sex")},
    where=col("age") < 100,
    limits=LIMITS,
)


@pytest.mark.parametrize("make", ENGINES)
def test_a_private_table_of_the_same_unit(make, folder):
    for seed in range(3):
        rng = random.Random(seed)
        rows, others = visits(rng), people(rng)
        table = opened(rows, VISITS, make, folder, unit="person", columns={"cost": COST})
        known = opened(others, PEOPLE, make, folder, unit="id", columns={"age": AGE, "sex": SEX})
        both = table.join_by_unit(known, columns=["age", "sex"])
        expected = reference.collect(UNIT_PLAN, attach(rows, others, seed), key=seed)
        assert measured(both, UNIT_PLAN, seed) == expected
        # A question that needs none of it does not read the other table.
        alone = compile_program(schema={}, unit="person", aggregates={"n": count()}, limits=LIMITS)
        assert measured(both, alone, seed) == measured(table, alone, seed)


def test_units_that_are_text(folder):
    types = {"person": pa.string(), "cost": pa.int64()}
    rows = [{"person": p, "cost": 1} for p in ("7", "07", "é", "e\u0301", "", None)]
    others = [{"id": i, "age": a, "sex": "f"} for i, a in (("7", 1), ("07", 2), ("é", 4))]
    table = opened(rows, types, sources.polars, folder, unit="person", columns={"cost": COST})
    known = {**PEOPLE, "id": pa.string()}
    for make in ENGINES:
        other = opened(others, known, make, folder, unit="id", columns={"age": AGE, "sex": SEX})
        both = table.join_by_unit(other, columns=["age"])
        plan = compile_program(
            schema={"age": AGE},
            unit="person",
            aggregates={"age": total(col("age"))},
            limits=LIMITS,
        )
        assert measured(both, plan, 1)["age"] == [1 + 2 + 4 + AGE.missing]


def test_one_unit_in_both_tables_moves_only_what_is_claimed(folder):
    """Over all neighbors of random pairs of tables: a unit goes from both."""
    rng = random.Random(11)
    make = sources.polars
    for _ in range(12):
        rows, others = visits(rng, 14), people(rng, 6)
        reach = {name: UNIT_PLAN.reach(name) for name in UNIT_PLAN.aggregates}
        results = []
        for gone in (None, 1, 2, 3, 4, 5, 9):
            left = [row for row in rows if gone is None or row["person"] != gone]
            right = [row for row in others if gone is None or row["id"] != gone]
            table = opened(left, VISITS, make, folder, unit="person", columns={"cost": COST})
            known = opened(right, PEOPLE, make, folder, unit="id", columns={"age": AGE, "sex": SEX})
            both = table.join_by_unit(known, columns=["age", "sex"])
            results.append(measured(both, UNIT_PLAN, 5))
        for without in results[1:]:
            for name, values in results[0].items():
                change = [abs(a - b) for a, b in zip(values, without[name], strict=True)]
                assert max(change) <= reach[name].linf
                assert sum(change) <= reach[name].l1


def test_the_whole_way_with_an_account(tmp_path):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.account("clinic", limit=discreet.pure_dp(10))
    left = pl.DataFrame({"person": [1, 1, 2, 3], "cost": [1, 2, 3, 4]})
    right = pl.DataFrame({"id": [1, 2], "sex": ["f", "m"]})
    table = discreet.table(
        left, privacy_unit="person", max_rows_per_unit=2, columns={"cost": COST}, account=account
    )
    again = ledger.account("clinic")
    other = discreet.table(
        right, privacy_unit="id", max_rows_per_unit=1, columns={"sex": SEX}, account=again
    )
    both = table.join_by_unit(other, columns=["sex"])
    release = both.count(by="sex", epsilon=9)
    assert release.keys == (("f",), ("m",), ("(other)",))
    assert all(abs(a - b) <= 10 for a, b in zip(release.value, (2, 1, 1), strict=True))
    assert both.account.remaining == 1
    with pytest.raises(InvalidArgument, match="same account"):
        table.join_by_unit(replace(other, account=None), columns=["sex"])
    elsewhere = ledger.account("elsewhere", limit=discreet.pure_dp(10))
    with pytest.raises(InvalidArgument, match="same account"):
        table.join_by_unit(replace(other, account=elsewhere), columns=["sex"])
    ledger.close()


def base(**more):
    frame = pl.DataFrame({"person": [1], "zip": ["1"], "cost": [1]})
    return discreet.table(
        frame,
        **{"privacy_unit": "person", "max_rows_per_unit": 1, "columns": {"cost": COST}, **more},
    )


def person(**more):
    frame = pl.DataFrame({"id": [1], "age": [3], "note": ["x"]})
    columns = {"age": AGE, "note": text()}
    return discreet.table(
        frame, **{"privacy_unit": "id", "max_rows_per_unit": 1, "columns": columns, **more}
    )


TWICE = pl.DataFrame({"zip": ["1", "1"], "region": ["s", "n"]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: base().join(TWICE, on="zip", columns={"region": REGION}),
        lambda: base().join(TWICE.head(1), on="nothing", columns={"region": REGION}),
        lambda: base().join(TWICE.head(1), on="cost", columns={"region": REGION}),
        lambda: base().join(TWICE.head(1), on="zip", columns={"absent": REGION}),
        lambda: base().join(TWICE.head(1), on="zip", columns={}),
        lambda: base().join(TWICE.head(1), on="zip", columns={"region": text()}),
        lambda: base().join(
            TWICE.rename({"region": "cost"}).head(1), on="zip", columns={"cost": COST}
        ),
        lambda: base().join(TWICE.head(1), on=["zip"], columns={"region": REGION}),
        lambda: base().join(TWICE.head(1), on="zip", columns=["region"]),
        lambda: base().join(
            pl.DataFrame({"zip": ["1"], "region": [[1]]}), on="zip", columns={"region": AGE}
        ),
        lambda: base().join("no file.csv", on="zip", columns={"region": REGION}),
        lambda: base().join(3, on="zip", columns={"region": REGION}),
        lambda: base().join_by_unit("people.csv", columns=["age"]),
        lambda: base().join_by_unit(person(), columns="age"),
        lambda: base().join_by_unit(person(), columns=[]),
        lambda: base().join_by_unit(person(), columns=["note"]),
        lambda: base().join_by_unit(person(), columns=["absent"]),
        lambda: base(privacy_unit=None, max_rows_per_unit=None).join_by_unit(
            person(), columns=["age"]
        ),
        lambda: base().join_by_unit(
            person(privacy_unit=None, max_rows_per_unit=None), columns=["age"]
        ),
        lambda: base(privacy_unit="zip").join_by_unit(person(), columns=["age"]),
    ],
)
def test_refusals(make):
    with pytest.raises(InvalidArgument):
        make()


def test_relations_must_agree():
    with pytest.raises(RelationMismatch):
        base().join_by_unit(person(relation=NeighboringRelation.REPLACE_ONE), columns=["age"])


def test_many_public_rows():
    """As many keys as there are postcodes in a country: one join, no chain of cases."""
    n = 100_000
    public = pl.DataFrame(
        {"zip": [f"p{i}" for i in range(n)], "rate": [i % 8 / 4 for i in range(n)]}
    )
    private = pa.table({"zip": [f"p{7 * i % (n + 50)}" for i in range(1000)]})
    expected = sum((7 * i % (n + 50)) % 8 if 7 * i % (n + 50) < n else 4 for i in range(1000))
    for make in (sources.polars, sources.relation):
        table = discreet.table(make(private, None), columns={}).join(
            public, on="zip", columns={"rate": RATE}
        )
        plan = compile_program(schema={"rate": RATE}, aggregates={"x": total(col("rate"))})
        assert measured(table, plan, 1) == {"x": [expected]}


def test_a_cluster_is_not_sent_private_codes():
    from discreet.data.execute import JoinedEngine
    from discreet.data.source import JoinedSource, SparkSource

    table = base()
    spark = SparkSource(frame=None, columns=table._source.columns)
    source = JoinedSource(source=spark, other=person()._source, unit="id", attached={"age": AGE})
    here = engine_of(table._source)
    twice = JoinedSource(source=source, other=person()._source, unit="id", attached={"age": AGE})
    plan = replace(
        UNIT_PLAN,
        schema=base().join_by_unit(person(), columns=["age"]).spec.schema,
        by=None,
        aggregates={"age": total(col("age"))},
    )
    for joined in (source, twice):
        engine = JoinedEngine(source=joined, engine=here, other=here)
        with pytest.raises(Unsupported, match="logs"):
            engine.collect(plan, key=1)
