"""Group and values packed into one integer: the same choice of rows, and back again exactly."""

import random

import duckdb
import pyarrow as pa
import pytest

from discreet.data._duckdb import engine as duckdb_engine
from discreet.data._duckdb.contribution_limits import _packed, content
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import integer
from discreet.data.source import open_source
from tests.data import reference, sources

TYPES = {"who": pa.int64(), "g": pa.int64(), "a": pa.int64(), "b": pa.int64()}
LIMITS = [
    ContributionLimits(max_rows_per_unit=2),
    ContributionLimits(max_rows_per_unit_per_group=1),
    ContributionLimits(max_rows_per_unit=3, max_groups_per_unit=2, max_rows_per_unit_per_group=2),
]
SUMS = {
    "none": {},
    "one": {"a": total(col("a"))},
    "square": {"aa": total(col("a"), col("a"))},
    "product": {"ab": total(col("a"), col("b"))},
    "all": {"a": total(col("a")), "aa": total(col("a"), col("a")), "b": total(col("b"))},
}
# With the first bounds everything fits into 63 bits, with the others only just or not at all.
WIDTHS = {"narrow": 3, "just": 2**29 - 1, "too wide": 2**30, "widest": 2**42}


def plan_of(*, limits, sums, width, bins=None):
    bound = integer(lower=-width, upper=width - 1)
    return compile_program(
        schema={"g": integer(lower=0, upper=2), "a": bound, "b": bound},
        aggregates={"n": count(), **sums} | ({} if bins is not None else {"u": units()}),
        unit="who",
        by={"g": col("g")},
        limits=limits,
        bins=bins,
    )


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("sums", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_the_rows_of_the_reference_are_kept(limits, sums, width):
    rng = random.Random(f"{width}")
    values = [-width, -1, 0, 1, width - 1]
    rows = [
        {
            "who": rng.choice([0, 1, -1, 2**31 - 1, 2**31, 2**62 + 5, -(2**63)]),
            "g": rng.randrange(3),
            "a": rng.choice(values),
            "b": rng.choice(values),
        }
        for _ in range(50)
    ]
    plan = plan_of(limits=limits, sums=sums, width=width)
    source = open_source(duckdb.from_arrow(sources.arrow(rows, TYPES)))
    for key in range(2):
        table = collect(plan, source=source, key=key)
        got = {name: [int(v) for v in column] for name, column in table.columns.items()}
        assert got == reference.collect(plan, rows, key=key)


@pytest.mark.parametrize("width", [1, 5, 2**14])
@pytest.mark.parametrize("sums", SUMS.values(), ids=SUMS)
def test_what_is_packed_is_in_order_and_comes_back(width, sums):
    program = plan_of(limits=LIMITS[0], sums=sums, width=width)
    fields = content(program)
    packed, parts = _packed(fields)
    rng = random.Random(width)
    ends = [(-f.shift, f.width - f.shift - 1) for f in fields]
    rows = sorted(
        {tuple(rng.choice([*end, rng.randint(*end)]) for end in ends) for _ in range(200)}
    )
    table = pa.table({f.name: [row[i] for row in rows] for i, f in enumerate(fields)})
    source = duckdb.from_arrow(table)
    names = ", ".join(f.name for f in fields)
    found = source.query("t", f"SELECT {names} FROM (SELECT *, {packed} AS p FROM t) ORDER BY p")
    assert found.fetchall() == rows
    back = source.query("t", f"SELECT {', '.join(parts)} FROM (SELECT {packed} AS p FROM t)")
    assert sorted(back.fetchall()) == rows


def test_bounds_follow_from_the_weights():
    for name, sums in SUMS.items():
        program = plan_of(limits=LIMITS[0], sums=sums, width=100)
        shifts = [field.shift for field in content(program)]
        expected = {"none": [0], "one": [0, 100], "square": [0, 100], "all": [0, 100, 100]}
        # Of a product alone only its own bound is known, and it is one for each factor.
        assert shifts == expected.get(name, [0, 10_000, 10_000])


def test_the_bound_of_a_bin_is_known():
    program = plan_of(limits=LIMITS[0], sums={}, width=100, bins=col("a").cut([0, 5]))
    assert [field.shift for field in content(program)] == [0, 2]


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("limits", LIMITS, ids=["rows", "rows in groups", "all"])
def test_few_rows_in_memory_are_chosen_as_out_of_core(tmp_path, monkeypatch, limits, width):
    draw = random.Random(3)
    rows = [
        {
            "who": draw.choice([-4, 0, 1, 2, 2**20]),
            "g": draw.randrange(4),
            "a": draw.randint(-width - 1, width),
            "b": draw.randint(-2, 2),
        }
        for _ in range(60)
    ]
    plan = plan_of(limits=limits, sums=SUMS["all"], width=width)
    path = sources.parquet(sources.arrow(rows, TYPES), tmp_path)
    few = [collect(plan, source=open_source(path), key=key) for key in range(5)]
    monkeypatch.setattr(duckdb_engine, "_FEW_ROWS", -1)
    monkeypatch.setattr(duckdb_engine, "tally", None)  # not asked again
    for key, found in enumerate(few):
        other = collect(plan, source=open_source(path), key=key)
        for name, column in other.columns.items():
            assert found.columns[name].tolist() == column.tolist()
