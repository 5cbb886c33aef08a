"""What each text means as a number, a boolean and a whole category, the same on every engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import compile_program, count
from discreet.data.schema import boolean, category, integer
from discreet.data.source import open_source
from tests.data import sources

NONE = "unknown"
BELOW, ABOVE = -1000, 9000
# text, as a number (-1000 and 9000 are the bounds), as a boolean
SPELLINGS = [
    ("0", 0, False),
    ("0.0", 0, False),
    ("-0", 0, False),
    ("1", 1, True),
    ("1.0", 1, True),
    ("1.", 1, True),
    ("+1", 1, True),
    ("1e0", 1, True),
    (" 1", 1, True),
    ("\t1", 1, True),
    ("1 \t ", 1, True),
    ("TRUE", NONE, True),
    ("True", NONE, True),
    ("t", NONE, True),
    ("yes", NONE, True),
    (" Y ", NONE, True),
    ("false", NONE, False),
    ("f", NONE, False),
    ("no", NONE, False),
    ("n\t", NONE, False),
    ("2", 2, NONE),
    ("", NONE, NONE),
    (" ", NONE, NONE),
    ("NA", NONE, NONE),
    ("nan", NONE, NONE),
    ("NULL", NONE, NONE),
    ("n/a", NONE, NONE),
    ("+5", 5, NONE),
    (".5", 1, NONE),
    ("+.4", 0, NONE),
    ("5.", 5, NONE),
    ("1e3", 1000, NONE),
    ("+1e3", 1000, NONE),
    ("2.5", 3, NONE),
    ("-2.5", -2, NONE),
    ("0.49999999999999994", 0, NONE),
    ("inf", ABOVE, NONE),
    ("+inf", ABOVE, NONE),
    ("-Infinity", BELOW, NONE),
    ("1e999", ABOVE, NONE),
    ("+" + "9" * 37, ABOVE, NONE),
    ("1,234", NONE, NONE),
    ("1 234", NONE, NONE),
    ("1_000", NONE, NONE),
    ("0x10", NONE, NONE),
    ("12abc", NONE, NONE),
    ("--5", NONE, NONE),
    ("+-5", NONE, NONE),
    ("-+5", NONE, NONE),
    ("++5", NONE, NONE),
    ("+", NONE, NONE),
    ("+ 5", NONE, NONE),
    ("\u0663", NONE, NONE),
    ("\u00a01", NONE, NONE),
]
NUMBERS = sorted({number for _, number, _ in SPELLINGS if number != NONE})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


def found(make, folder, column, labels):
    """The one value of each text; each has a category of its own beside it."""
    rows = [{"t": text, "place": place} for place, (text, *_) in enumerate(SPELLINGS)]
    source = open_source(make(sources.arrow(rows, {"t": pa.string(), "place": pa.int64()}), folder))
    plan = compile_program(
        schema={"t": column, "place": integer(0, len(rows) - 1)},
        by={"place": col("place"), "t": col("t")},
        keys=tuple((place, label) for place in range(len(rows)) for label in labels),
        aggregates={"n": count()},
    )
    table = collect(plan, source=source, key=1)
    values = {key[0]: key[1] for key, n in zip(table.keys, table.columns["n"], strict=True) if n}
    return [values.get(place, NONE) for place in range(len(rows))]


@pytest.mark.parametrize("make", sources.EVERY)
def test_texts_as_numbers(make, folder):
    assert found(make, folder, integer(BELOW, ABOVE), NUMBERS) == [n for _, n, _ in SPELLINGS]


@pytest.mark.parametrize("make", sources.EVERY)
def test_texts_as_booleans(make, folder):
    assert found(make, folder, boolean(), [False, True]) == [truth for *_, truth in SPELLINGS]


@pytest.mark.parametrize("make", sources.EVERY)
def test_texts_as_categories_of_numbers(make, folder):
    column = category([0, 1, 2, 5, 1000], include_other=False)
    whole = {text: number for text, number, _ in SPELLINGS if number in (0, 1, 2, 5, 1000)}
    fractions = {".5", "+.4", "0.49999999999999994"}
    expected = [NONE if t in fractions else whole.get(t, NONE) for t, *_ in SPELLINGS]
    assert found(make, folder, column, column.labels) == expected
