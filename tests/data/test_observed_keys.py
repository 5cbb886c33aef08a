"""Keys that occur and their units: the same on every engine, and stable against one unit."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument
from discreet.data.execute import KeyPlan, collect, collect_keys
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import OTHER, category, integer, text
from discreet.data.source import open_source
from tests.data import reference, sources

TYPES = {"u": pa.int64(), "city": pa.string(), "street": pa.string(), "x": pa.int64()}
SCHEMA = {
    "city": text(),
    "street": text(),
    "x": integer(lower=-2, upper=10**12, missing=0),
}
# Bytes decide: case, accents, trailing spaces, quotes, a text that looks like the rest.
CITIES = ["Rome", "rome", "Rome ", "o'b", 'q"', "ü", "u\u0308", "日本", OTHER, "\x1f", "-- x"]
ROW = st.fixed_dictionaries(
    {
        "u": st.one_of(st.none(), st.integers(1, 4)),
        "city": st.sampled_from([None, "", *CITIES]),
        "street": st.sampled_from([None, "a", "b"]),
        "x": st.one_of(st.none(), st.integers(-3, 2), st.just(10**12)),
    }
)
WAYS = [
    {"by": {"city": col("city")}, "max_groups_per_unit": 1},
    {"by": {"city": col("city")}, "max_groups_per_unit": 3, "where": col("x") > 0},
    {"by": {"street": col("street"), "x": col("x"), "city": col("city")}, "max_groups_per_unit": 2},
    {"by": {"x": col("x")}, "max_groups_per_unit": 2},
]
ENGINES = [sources.polars, sources.pandas, sources.csv_file, sources.relation]


def plain(plan, rows, *, key):
    """The same in plain Python."""
    program = plan.program()
    owned = {}
    for place, row in enumerate(rows):
        unit = place if plan.unit is None else row["u"]
        texts = tuple(row[name] for name in program.texts)
        if unit is None or not all(texts):
            continue
        codes = {n: reference.encode(row[n], c) for n, c in program.columns if n == "x"}
        if program.where is not None and reference.evaluate(program.where, codes) != 1:
            continue
        found = (*(t.encode() for t in texts), reference.evaluate(program.index, codes))
        owned.setdefault(unit, set()).add(found)
    counts = {}
    for unit, mine in owned.items():
        offset = 0 if plan.unit is None else reference.start(key, "groups", unit, 0)
        for one in reference.choose(mine, limit=plan.max_groups_per_unit, offset=offset):
            counts[one] = counts.get(one, 0) + 1
    ordered = sorted(counts)
    keys = [plan.key(one[-1], tuple(t.decode() for t in one[:-1])) for one in ordered]
    return keys, [counts[one] for one in ordered]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keys")


@pytest.mark.parametrize("make", ENGINES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(ROW, max_size=14),
    way=st.sampled_from(WAYS),
    owned=st.booleans(),
    key=st.integers(0, 2**64),
)
def test_every_engine_finds_the_same(make, folder, rows, way, owned, key):
    if not owned:
        way = {**way, "max_groups_per_unit": 1}
    plan = KeyPlan(schema=SCHEMA, unit="u" if owned else None, **way)
    found = collect_keys(
        plan, source=open_source(make(sources.arrow(rows, TYPES), folder)), key=key
    )
    assert (list(found.keys), found.units.tolist()) == plain(plan, rows, key=key)
    assert repr(found) == "Found(private)"


@given(rows=st.lists(ROW, max_size=16), way=st.sampled_from(WAYS), unit=st.integers(1, 4))
def test_one_unit_changes_few_counts_by_one(rows, way, unit):
    plan = KeyPlan(schema=SCHEMA, unit="u", **way)
    with_all, without = (
        dict(zip(*found_in(plan, part), strict=True))
        for part in (rows, [row for row in rows if row["u"] != unit])
    )
    moved = {k: with_all.get(k, 0) - without.get(k, 0) for k in {*with_all, *without}}
    assert set(moved.values()) <= {0, 1}
    assert sum(moved.values()) <= way["max_groups_per_unit"]


def found_in(plan, rows):
    found = collect_keys(plan, source=open_source(sources.arrow(rows, TYPES)), key=5)
    return found.keys, found.units.tolist()


def test_all_keys_of_a_unit_without_the_limit_is_noticed():
    rows = [{"u": 1, "city": city, "street": "a", "x": 0} for city in CITIES]
    plan = KeyPlan(schema=SCHEMA, unit="u", by={"city": col("city")}, max_groups_per_unit=2)
    assert sum(found_in(plan, rows)[1]) == 2
    many = KeyPlan(schema=SCHEMA, unit="u", by={"city": col("city")}, max_groups_per_unit=20)
    assert found_in(many, rows)[0] == tuple((c,) for c in sorted(CITIES, key=str.encode))


def test_a_connection_cannot_merge_keys():
    """Neither collation nor default order of a user's own connection changes what is found."""
    rows = [{"u": i, "city": c, "street": "a", "x": 0} for i, c in enumerate([*CITIES, "Rome"])]
    plan = KeyPlan(schema=SCHEMA, unit="u", by={"city": col("city")}, max_groups_per_unit=1)
    with duckdb.connect() as connection:
        connection.execute("SET default_collation = 'NOCASE.NOACCENT'")
        connection.execute("SET default_order = 'DESC'")
        source = open_source(connection.from_arrow(sources.arrow(rows, TYPES)))
        found = collect_keys(plan, source=source, key=5)
        assert (found.keys, found.units.tolist()) == found_in(plan, rows)
        listed = PLANS[0]
        table = collect(listed, source=source, key=5)
    assert len(found.keys) == len(CITIES)
    got = {name: [int(v) for v in column] for name, column in table.columns.items()}
    assert got == reference.collect(listed, rows, key=5)


# ── groups of open text, and the rest ─────────────────────────────────────────────────────────

LISTED = (("Rome",), ("日本",), ("nowhere",), ("o'b",))
AGGREGATES = {
    "rows": count(),
    "people": units(),
    "x": total(col("x").clip(lower=-2, upper=2)),
}
PLANS = [
    compile_program(
        schema=SCHEMA, unit="u", aggregates=AGGREGATES, by=by, keys=keys, other=other, limits=limits
    )
    for by, keys in (
        ({"city": col("city")}, LISTED),
        ({"street": col("street"), "city": col("city")}, (("a", "Rome"), ("b", "ü"))),
        ({"x": col("x"), "city": col("city")}, ((0, "Rome"), (10**12, "rome"))),
    )
    for other in (False, True)
    for limits in (
        ContributionLimits(max_rows_per_unit=2),
        ContributionLimits(max_groups_per_unit=1, max_rows_per_unit_per_group=2),
    )
]


@pytest.mark.parametrize("make", ENGINES)
def test_open_text_by_listed_keys(make, folder):
    rng = random.Random(4)
    rows = [
        {
            "u": rng.choice([None, 1, 2, 3, 4]),
            "city": rng.choice([None, "", *CITIES]),
            "street": rng.choice([None, "a", "b"]),
            "x": rng.choice([None, 0, 1, -1, 10**12]),
        }
        for _ in range(60)
    ]
    source = open_source(make(sources.arrow(rows, TYPES), folder))
    for plan in PLANS:
        table = collect(plan, source=source, key=3)
        got = {name: [int(v) for v in column] for name, column in table.columns.items()}
        assert got == reference.collect(plan, rows, key=3)
        assert (table.keys[-1] == (OTHER,) * len(plan.by)) is plan.rest
        assert len(table.keys) == len(plan.cells) + plan.rest


@given(rows=st.lists(ROW, max_size=14), plan=st.sampled_from(PLANS), unit=st.integers(1, 4))
def test_one_unit_moves_listed_groups_and_the_rest_as_claimed(rows, plan, unit):
    with_all, without = (
        collect(plan, source=open_source(sources.arrow(part, TYPES)), key=2).columns
        for part in (rows, [row for row in rows if row["u"] != unit])
    )
    for name in plan.aggregates:
        change = [abs(int(a) - int(b)) for a, b in zip(with_all[name], without[name], strict=True)]
        reach = plan.reach(name)
        assert sum(c != 0 for c in change) <= reach.groups
        assert max(change) <= reach.linf
        assert sum(change) <= reach.l1
        assert sum(c * c for c in change) <= reach.l2_squared


def test_the_rest_is_what_is_not_listed():
    rows = [{"u": i, "city": city, "street": "a", "x": 0} for i, city in enumerate(CITIES)]
    rows.append({"u": 99, "city": None, "street": "a", "x": 0})
    plan = compile_program(
        schema=SCHEMA,
        aggregates={"rows": count()},
        by={"city": col("city")},
        keys=(("Rome",), ("ü",)),
        other=True,
    )
    table = collect(plan, source=open_source(sources.arrow(rows, TYPES)), key=1)
    counts = dict(zip(table.keys, table.columns["rows"].tolist(), strict=True))
    assert counts == {("Rome",): 1, ("ü",): 1, (OTHER,): len(rows) - 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda: compile_program(schema=SCHEMA, aggregates={"n": count()}, by={"city": col("city")}),
        lambda: compile_program(
            schema=SCHEMA, aggregates={"n": count()}, where=col("city") == "Rome"
        ),
        lambda: compile_program(
            schema=SCHEMA, aggregates={"n": count()}, where=col("city").isin(["Rome"])
        ),
        lambda: compile_program(
            schema=SCHEMA, aggregates={"n": count()}, where=col("city").isin([])
        ),
        lambda: compile_program(
            schema=SCHEMA, aggregates={"n": count()}, where=col("city") == col("street")
        ),
        lambda: compile_program(schema=SCHEMA, aggregates={"n": total(col("city"))}),
        lambda: compile_program(
            schema=SCHEMA, aggregates={"n": count()}, by={"c": col("city").map({})}
        ),
        lambda: listed([("",)]),
        lambda: listed([(3,)]),
        lambda: listed([("a\0",)]),
        lambda: listed([("a",), ("a",)]),
        lambda: listed([("a", "b")]),
        lambda: listed([]),
        lambda: listed([("a",), (OTHER,)], other=True),
        lambda: compile_program(
            schema={"k": category(["a"])}, aggregates={"n": count()}, by={"k": col("k")}, other=True
        ),
        lambda: KeyPlan(schema=SCHEMA, by={}, max_groups_per_unit=1),
        lambda: KeyPlan(schema=SCHEMA, by={"city": col("city")}, max_groups_per_unit=2),
        lambda: KeyPlan(schema=SCHEMA, by={"city": col("city")}, max_groups_per_unit=0, unit="u"),
        lambda: KeyPlan(
            schema=SCHEMA, by={"city": col("city")}, max_groups_per_unit=1, where=col("x")
        ),
    ],
)
def test_refusals(make):
    with pytest.raises(InvalidArgument):
        make()


def listed(keys, **more):
    return compile_program(
        schema=SCHEMA, aggregates={"n": count()}, by={"city": col("city")}, keys=tuple(keys), **more
    )
