"""What every engine must do: one set of tests, run on every kind of source."""

# ruff: noqa: DTZ001  # moments without a zone are what is tested
from __future__ import annotations

import datetime as dt
import math
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import boolean, category, date, integer, real
from discreet.data.source import open_source
from discreet.data.unit import CompositeUnit
from tests.data import reference, sources

UNIT = 'per"son; --'
TYPES = {
    UNIT: pa.int64(),
    "x": pa.float64(),
    "whole": pa.int64(),
    "sex": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "yes": pa.bool_(),
    "text": pa.string(),
}
LEVELS = ["f", "o'neil", 'q"', "ü\u0301", "日本", "-- x"]
SCHEMA = {
    "x": real(lower=-2, upper=3.3, granularity=0.25, missing=1),
    "whole": integer(lower=-5, upper=2**40),
    "sex": category(LEVELS),
    "day": date(lower=dt.date(1969, 12, 1), upper=dt.date(2030, 1, 1)),
    "moment": date(lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), step="hour"),
    "yes": boolean(missing=True),
    "text": real(lower=-100, upper=100, granularity=2**-10),
}
NUMBERS = ["1", " 2.5 ", "-0", ".5", "1.", "1e2", "1e-400", "1e400", "-1e400", "inf", "-Infinity"]
OTHERS = ["nan", "+1", "1_0", "0x10", "1e", "--1", "1,5", "abc", "\u0661", " ", "1e9999", "9" * 30]

ROW = st.fixed_dictionaries(
    {
        UNIT: st.one_of(st.none(), st.integers(-2, 3), st.just(2**62 + 1)),
        "x": st.one_of(st.none(), st.floats(), st.floats(-4, 4), st.sampled_from([0.125, -0.125])),
        "whole": st.one_of(st.none(), st.integers(-8, 8), st.integers(-(2**63), 2**63 - 1)),
        "sex": st.one_of(st.none(), st.sampled_from([*LEVELS, "", "F", "f "])),
        "day": st.one_of(st.none(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
        "moment": st.one_of(
            st.none(), st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2050, 1, 1))
        ),
        "yes": st.one_of(st.none(), st.booleans()),
        "text": st.one_of(st.none(), st.sampled_from(NUMBERS + OTHERS), st.floats().map(repr)),
    }
)
AGGREGATES = {
    "rows": count(),
    "people": units(),
    "x": total(col("x")),
    "xx": total(col("x"), col("x")),
    "xw": total(col("x"), col("whole")),
    "text": total(col("text")),
}
LIMITS = [
    ContributionLimits(max_rows_per_unit=1),
    ContributionLimits(max_rows_per_unit=3),
    ContributionLimits(max_groups_per_unit=2, max_rows_per_unit_per_group=2),
    ContributionLimits(max_rows_per_unit=3, max_groups_per_unit=2, max_rows_per_unit_per_group=2),
]
SHAPES = [
    {},
    {"by": {"sex": col("sex"), "yes": col("yes")}},
    {"by": {"sex": col("sex")}, "where": (col("x") >= 0.3) | ~col("yes")},
    {"by": {"bin": (col("x") * 2 - col("whole")).cut([-3, 0, 2.6])}},
    {"by": {"whole": col("whole")}, "keys": ((3,), (0,), (2**40,), (-5,))},
    {"by": {"day": col("day").cut([dt.date(1970, 1, 1), dt.date(2000, 1, 1)])}},
    {"where": col("moment") < dt.datetime(1970, 1, 1, 5, tzinfo=dt.UTC)},
    {"by": {"s": col("sex").map({"f": "a", "日本": "b"})}, "where": col("sex").isin(LEVELS[:5])},
]


COMPOSITE = [
    CompositeUnit(columns=(UNIT,), values=(col("day"),)),
    CompositeUnit(columns=(UNIT, "sex"), values=(col("yes"), col("moment"))),
    CompositeUnit(columns=("sex", UNIT)),
    CompositeUnit(columns=(), values=(col("sex"),)),
]


def plans():
    limited = [(UNIT, limits, shape) for shape in SHAPES for limits in LIMITS]
    limited += [*zip(COMPOSITE, LIMITS, SHAPES[1:], strict=False)]
    limited += [*zip(COMPOSITE, LIMITS[1:], SHAPES[3:], strict=False)]
    return [
        compile_program(schema=SCHEMA, unit=unit, aggregates=AGGREGATES, limits=limits, **shape)
        for unit, limits, shape in limited
    ] + [compile_program(schema=SCHEMA, aggregates=AGGREGATES, **shape) for shape in SHAPES]


def answer(plan, rows, make, folder, *, key=7, types=TYPES):
    source = open_source(make(sources.arrow(rows, types), folder))
    table = collect(plan, source=source, key=key)
    return {name: [int(v) for v in column] for name, column in table.columns.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


class Contract:
    """For subclasses with a parameter ``make``; ``step`` skips plans where each takes long."""

    step = 1

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(
        rows=st.lists(ROW, max_size=14), plan=st.sampled_from(plans()), key=st.integers(0, 2**64)
    )
    def test_gives_the_integers_of_the_reference(self, make, folder, rows, plan, key):
        expected = reference.collect(plan, rows, key=key)
        assert answer(plan, rows, make, folder, key=key) == expected

    def test_every_plan_on_one_table(self, make, folder):
        rng = random.Random(5)
        rows = [some_row(rng) for _ in range(60)]
        source = open_source(make(sources.arrow(rows, TYPES), folder))
        for plan in plans()[:: self.step]:
            table = collect(plan, source=source, key=3)
            got = {name: [int(v) for v in column] for name, column in table.columns.items()}
            assert got == reference.collect(plan, rows, key=3)

    def test_order_of_rows_does_not_matter(self, make, folder):
        rng = random.Random(6)
        rows = [some_row(rng) for _ in range(40)]
        plan = plans()[3]
        first = answer(plan, rows, make, folder)
        for _ in range(3):
            rng.shuffle(rows)
            assert answer(plan, rows, make, folder) == first

    def test_empty_table_has_every_group(self, make, folder):
        for plan in plans()[:: self.step]:
            size = plan.size
            assert answer(plan, [], make, folder) == {n: [0] * size for n in AGGREGATES}

    def test_declared_values_stand_for_missing_ones(self, make, folder):
        nothing = dict.fromkeys(TYPES) | {UNIT: 1}
        declared = {
            "whole": integer(lower=-5, upper=2**40, missing=-5),
            "text": real(lower=-100, upper=100, granularity=2**-10, missing=-100),
        }
        plan = compile_program(
            schema=SCHEMA | declared,
            unit=UNIT,
            aggregates=AGGREGATES,
            limits=ContributionLimits(max_rows_per_unit=9),
        )
        got = answer(plan, [nothing, nothing | {"x": math.nan}], make, folder)
        # x: 1 is four steps of 1/4
        assert got == {
            "rows": [2],
            "people": [1],
            "x": [8],
            "xx": [32],
            "xw": [-40],
            "text": [-204800],
        }

    def test_infinities_and_negative_zero(self, make, folder):
        rows = [
            dict.fromkeys(TYPES) | {UNIT: i, "x": x}
            for i, x in enumerate([math.inf, -math.inf, -0.0])
        ]
        plan = compile_program(schema=SCHEMA, by={"x": col("x")}, aggregates={"n": count()})
        got = answer(plan, rows, make, folder)["n"]
        assert [i for i, n in enumerate(got) if n] == [0, 8, 8 + 13]

    def test_rows_without_a_unit_are_left_out(self, make, folder):
        rows = [dict.fromkeys(TYPES) | {UNIT: u} for u in (None, 1, 1, None)]
        plan = compile_program(
            schema=SCHEMA,
            unit=UNIT,
            aggregates={"n": count(), "u": units()},
            limits=ContributionLimits(max_rows_per_unit=5),
        )
        assert answer(plan, rows, make, folder) == {"n": [2], "u": [1]}

    def test_limits_of_int64(self, make, folder):
        top, bottom = 2**63 - 1, -(2**63)
        schema = {"whole": integer(lower=bottom, upper=top, missing=0)}
        rows = [dict.fromkeys(TYPES) | {"whole": w} for w in (top, top, bottom, top - 1, 0)]
        plan = compile_program(schema=schema, aggregates={"s": total(col("whole"))})
        assert answer(plan, rows, make, folder) == {"s": [3 * top + bottom - 1]}

    def test_products_beyond_64_bits(self, make, folder):
        schema = {"whole": integer(lower=-(2**42), upper=2**42)}
        rows = [dict.fromkeys(TYPES) | {"whole": 2**42 - i} for i in range(9)]
        plan = compile_program(schema=schema, aggregates={"s": total(col("whole"), col("whole"))})
        assert answer(plan, rows, make, folder) == {"s": [sum((2**42 - i) ** 2 for i in range(9))]}

    def test_text_units(self, make, folder):
        types = TYPES | {UNIT: pa.string()}
        names = ["anna", "Anna", "7", "07", "ä", "a\u0308", "", None, "x'y"]
        rng = random.Random(8)
        rows = [some_row(rng) | {UNIT: rng.choice(names)} for _ in range(80)]
        for plan in plans()[:4]:
            expected = reference.collect(plan, rows, key=7)
            assert answer(plan, rows, make, folder, types=types) == expected

    def test_no_two_pairs_become_one_unit(self, make, folder):
        # A separator between the parts would make one unit of several of these.
        types = TYPES | {UNIT: pa.string()}
        parts = ["a", "b", "a:1", "1:a", "1", ":", "11:a", "1:1", "a\x1fb", "\x1f", "ä"]
        rows = [dict.fromkeys(TYPES) | {UNIT: x, "sex": y} for x in parts for y in parts]
        unknown = [{UNIT: None, "sex": "a"}, {UNIT: "a", "sex": ""}, {UNIT: "", "sex": None}]
        rows += [dict.fromkeys(TYPES) | some for some in unknown] + rows[:20]
        plan = compile_program(
            schema={},
            unit=CompositeUnit(columns=(UNIT, "sex")),
            aggregates={"n": count(), "u": units()},
            limits=ContributionLimits(max_rows_per_unit=1),
        )
        many = len(parts) ** 2
        assert answer(plan, rows, make, folder, types=types) == {"n": [many], "u": [many]}

    def test_numbers_as_categories_and_booleans(self, make, folder):
        schema = {
            "x": category([3, -1], include_other=True),
            "whole": boolean(),
            "text": category([1, 100]),
        }
        xs = [3.0, -1.0, 3.5, math.nan, math.inf, 1e300, None, -0.0]
        wholes = [0, 1, 2, None, -1, 1, 2**63 - 1, 0]
        texts = ["1", "1.0", "1e2", "x", "", "1.5", "inf", None]
        rows = [
            dict.fromkeys(TYPES) | {"x": x, "whole": w, "text": t}
            for x, w, t in zip(xs, wholes, texts, strict=True)
        ]
        by = {name: col(name) for name in schema}
        plan = compile_program(schema=schema, by=by, aggregates={"n": count()})
        assert answer(plan, rows, make, folder) == reference.collect(plan, rows, key=7)

    def test_letters_that_only_look_like_a_number_are_none(self, make, folder):
        texts = ["\u0131nf", "\u0130nf", "-\u0131nfinity", "inf"]
        schema = {"text": integer(lower=0, upper=9, missing=5), "sex": category([7])}
        rows = [dict.fromkeys(TYPES) | {"text": t, "sex": t} for t in texts]
        by = {"t": col("text"), "s": col("sex")}
        plan = compile_program(schema=schema, by=by, aggregates={"n": count()})
        rest = [0, 3] + [0, 0] * 3 + [0, 1]
        assert answer(plan, rows, make, folder) == {"n": [0, 0] * 5 + rest}

    def test_only_spaces_and_tabs_are_ignored_around_a_text(self, make, folder):
        around = [" {} ", "\u00a0{}", "{}\u3000", "\t{}", "\u2003{} "]
        schema = {
            "text": integer(lower=0, upper=9),
            "sex": boolean(),
            "day": date(lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 2)),
            "yes": category([1], include_other=True, missing=1),
        }
        said = {"text": "1", "sex": "yes", "day": "2020-01-02", "yes": ""}
        types = TYPES | {"day": pa.string(), "yes": pa.string()}
        rows = [
            dict.fromkeys(TYPES) | {name: form.format(one) for name, one in said.items()}
            for form in around
        ]
        sums = {
            "number": total(col("text")),
            "truth": total(col("sex")),
            "day": total(col("day") == dt.date(2020, 1, 2)),
            "missing": total(col("yes") == 1),
        }
        plan = compile_program(schema=schema, aggregates=sums)
        assert answer(plan, rows, make, folder, types=types) == {name: [2] for name in sums}

    def test_dates_as_text(self, make, folder):
        texts = [
            "1970-01-01",
            "1969-12-31T23:59:59.999999999Z",
            "2023-02-30",
            "1999-1-1",
            "1970-01-01 05:00",
        ]
        texts += [
            "2020-02-29T24:00",
            "1970-01-01T00:30+01:00",
            "1970-01-01 23:30:00.5-00:45",
            "1970-01-01T00:30+1:00",
            "1970-01-01+01:00",
            "2020-02-29T12:60",
            "0000-01-01",
            "9999-12-31",
            " 2000-01-01 ",
            "x",
            None,
        ]
        schema = {"text": date(lower=dt.date(1960, 1, 1), upper=dt.date(1970, 2, 1), step="hour")}
        rows = [dict.fromkeys(TYPES) | {"text": t} for t in texts]
        plan = compile_program(schema=schema, aggregates={"n": count()}, by={"t": col("text")})
        assert answer(plan, rows, make, folder) == reference.collect(plan, rows, key=7)


@pytest.mark.parametrize("make", sources.EVERY)
class TestEngine(Contract):
    pass


def some_row(rng):
    return {
        UNIT: rng.choice([None, 1, 2, 3, 4, -1, 2**62]),
        "x": rng.choice([None, math.nan, math.inf, 0.125, -0.125, 0.37499, 2.2, -7.0, 3.3]),
        "whole": rng.choice([None, 0, 1, 3, -5, -(2**63), 2**63 - 1, 2**40]),
        "sex": rng.choice([None, "", "nobody", *LEVELS]),
        "day": rng.choice([None, dt.date(1969, 12, 31), dt.date(2000, 1, 1), dt.date(1, 1, 1)]),
        "moment": rng.choice([None, dt.datetime(1969, 12, 31, 23, 59), dt.datetime(1970, 1, 1, 5)]),
        "yes": rng.choice([None, True, False]),
        "text": rng.choice([None, *NUMBERS, *OTHERS]),
    }
