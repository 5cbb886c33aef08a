"""Real tables: every number is what pandas says, but for noise and what the answer itself states.

Forty tables are compared by `python -m tests.real`.
"""

from __future__ import annotations

import pytest

from tests.real.catalog import TABLES
from tests.real.compare import SOURCES, compare
from tests.real.questions import Rows

NAMED = {table.name: (place, table) for place, table in enumerate(TABLES)}
FAST = ("breast cancer", "linnerud", "titanic", "health, three years of each person")


def compared(name, folder):
    place, table = NAMED[name]
    return list(compare(table, SOURCES[place % len(SOURCES)], folder, widths=False))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in NAMED]
)
def test_every_difference_from_pandas_is_explained(name, tmp_path):
    found = compared(name, tmp_path)
    assert not [str(one) for one in found if one.faults]
    assert len(found) >= (6 if NAMED[name][1].most == 3 else 30)


def test_an_answer_that_does_not_say_what_it_clips_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.tables.release.about_facts", lambda facts: iter(()))
    silent = [one for one in compared("breast cancer", tmp_path) if one.faults]
    assert {one.faults for one in silent} == {("the answer does not say why",)}
    assert {one.question for one in silent} >= {"sum", "mean by", "maximum"}


def test_wrong_numbers_are_found(tmp_path, monkeypatch):
    right = Rows.value
    monkeypatch.setattr(Rows, "value", lambda rows, name: right(rows, name).fillna(0))
    wrong = [one for one in compared("titanic", tmp_path) if one.faults]
    assert {one.question for one in wrong} >= {"count of", "mean", "mean by", "quantiles"}
