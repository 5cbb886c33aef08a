"""Files and jobs that version 0.1 wrote are read as if they were written today."""

import json

import pytest

from discreet.core.errors import InvalidArgument
from discreet.server import config
from discreet.server.pages.query_form import fields_of
from discreet.spec import release_file
from discreet.spec.statistics import release_spec
from discreet.spec.table import current_words, known, table_spec

COLUMNS = """
[columns]
age = { kind = "integer", lower = 0, upper = 120 }
pay = { kind = "real", lower = 0, upper = 64, GRANULARITY = 0.25 }
sex = { kind = "category", CATEGORIES = ["f", "m"], INCLUDE_OTHER = false }
"""
TABLE = """
source = "rows.csv"
PRIVACY_UNIT = "who"
MAX_ROWS_PER_UNIT = 4
MAX_GROUPS_PER_UNIT = 2
MAX_ROWS_PER_UNIT_PER_GROUP = 3
"""
STATISTICS = """
[[statistic]]
kind = "quantiles"
of = "pay"
Q = [0.25, 0.75]
EXPECTED_ROWS = 500
epsilon = 0.5
MAX_ROWS_PER_UNIT = 1

[[statistic]]
kind = "count"
by = "sex"
keys = { values = ["f"], INCLUDE_OTHER = true }
MAX_GROUPS_PER_UNIT = 1
MAX_ROWS_PER_UNIT_PER_GROUP = 1
epsilon = 0.5

[[statistic]]
kind = "ranges"
of = "age"
EXPECTED_ROWS = 500
MAX_ROWS_PER_UNIT = 1
epsilon = 0.5
"""
RELEASE = f"""
[table]{TABLE}{COLUMNS}
[account]
ledger = "sqlite:///budget.db"
name = "a"
limit = {{ epsilon = 3 }}
{STATISTICS}
"""
SERVER = f"""
[[table]]
name = "people"
EXPECTED_ROWS = 1000
limit = {{ epsilon = 3 }}{TABLE}{COLUMNS.replace("[columns]", "[table.columns]")}
"""
OLD = {
    "PRIVACY_UNIT": "unit",
    "MAX_ROWS_PER_UNIT_PER_GROUP": "rows_per_unit_and_group",
    "MAX_ROWS_PER_UNIT": "rows_per_unit",
    "MAX_GROUPS_PER_UNIT": "groups_per_unit",
    "INCLUDE_OTHER": "other",
    "CATEGORIES": "levels",
    "GRANULARITY": "grid",
    "EXPECTED_ROWS": "rows",
    "Q": "levels",
}
NEW = {word: word.lower() for word in OLD}


def spelled(text, words):
    for word, name in words.items():
        text = text.replace(f"{word} =", f"{name} =")
    return text


def read(folder, name, text, reader):
    folder.mkdir()
    (folder / name).write_text(text)
    return reader(folder / name)


def test_release_files(tmp_path):
    old, new = (
        read(tmp_path / name, "a.toml", spelled(RELEASE, words), release_file.read)
        for name, words in (("old", OLD), ("new", NEW))
    )
    assert old.setting == new.setting
    assert old.setting.privacy_unit == "who"
    assert repr(old.statistics) == repr(new.statistics)
    assert repr(old.ranges) == repr(new.ranges)
    assert old.statistics[0].expected_rows == old.ranges[0].expected_rows == 500
    assert old.statistics[1].query.include_other


def test_configurations_of_a_server(tmp_path):
    old, new = (
        read(tmp_path / name, "a.toml", spelled(SERVER, words), config.read).tables["people"]
        for name, words in (("old", OLD), ("new", NEW))
    )
    assert old.setting == new.setting
    assert old.expected_rows == new.expected_rows == 1000


def test_questions_of_jobs():
    setting = table_spec(
        {"privacy_unit": "who", "max_rows_per_unit": 4},
        {"pay": {"kind": "real", "lower": 0, "upper": 64, "granularity": 0.25}},
    )
    asked = {"kind": "quantiles", "of": "pay", "epsilon": 1, "rows_per_unit": 1, "rows": 10}
    old = [json.loads(json.dumps({**asked, "levels": [0.1, 0.9]}))]
    new = [{"kind": "quantiles", "of": "pay", "epsilon": 1, "max_rows_per_unit": 1}]
    new[0] |= {"expected_rows": 10, "q": [0.1, 0.9]}
    assert repr(release_spec(old, setting=setting)) == repr(release_spec(new, setting=setting))
    assert fields_of(old[0]) == fields_of(new[0])


@pytest.mark.parametrize(
    ("given", "allowed", "found"),
    [
        ({"levels": 1}, ("q",), {"q": 1}),
        ({"levels": 1}, ("categories",), {"categories": 1}),
        ({"levels": 1}, ("levels",), {"levels": 1}),
        ({"other": 1, "kind": 2}, ("kind", "include_other"), {"include_other": 1, "kind": 2}),
        ({"rows": 1, "expected_rows": 2}, ("expected_rows",), {"rows": 1, "expected_rows": 2}),
        ({"rows": 1}, ("kind",), {"rows": 1}),
    ],
)
def test_a_word_is_replaced_where_the_new_one_belongs(given, allowed, found):
    assert current_words(given, allowed) == found


def test_both_words_at_once_are_refused():
    with pytest.raises(InvalidArgument, match=r"unknown \['rows'\]"):
        known("statistic 1", {"rows": 1, "expected_rows": 2}, ("expected_rows",))
