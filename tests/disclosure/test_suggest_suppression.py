"""Cells that are hidden besides keep the others hidden: checked by trying every table."""

from dataclasses import replace

import numpy as np
from click.testing import CliRunner

from discreet.cli.main import main
from discreet.disclosure import audit_tables, published_table, suggest_suppression
from tests.disclosure.test_published_tables import as_system, crosstab, enumerated


def ranges_by_trying(table, counts, places):
    """The smallest and the largest count of hidden cells in all tables that fit."""
    rows, low, high = as_system(table, counts.shape)
    most = [high[rows[:, j] == 1].min() for j in range(counts.size)]
    fits = enumerated(rows, low, high, most)
    if fits is None:
        return None
    assert (fits == counts.ravel()).all(axis=1).any()
    found = (
        fits.reshape(-1, *counts.shape)[:, *zip(*places, strict=True)] if places else fits[:, :0]
    )
    return found.min(0), found.max(0)


def test_hidden_cells_stay_hidden_in_every_table_that_fits():
    draw = np.random.default_rng(4)
    tried = more = 0
    for _ in range(12):
        counts = draw.integers(0, 6, size=(2, 3))
        shown = np.pad(counts >= 2, ((0, 1), (0, 1)), constant_values=True)
        table, _ = crosstab(counts, shown)
        places = [tuple(map(int, at)) for at in np.argwhere(counts < 2)]
        found = suggest_suppression([table], seconds=1)
        if not found.protected:
            continue
        [after] = found.tables
        ends = ranges_by_trying(after, counts, places)
        if ends is None:
            continue
        assert (ends[1] - ends[0] > 2).all()
        tried += 1
        more += len(found.hide)
    assert tried >= 8
    assert more > tried  # otherwise there was nothing to protect


def test_no_suggested_cell_is_superfluous():
    counts = np.array([[1, 15, 9, 20], [20, 20, 60, 31], [11, 12, 3, 17]])
    table, _ = crosstab(counts, np.pad(counts >= 5, ((0, 1), (0, 1)), constant_values=True))
    first = {one.cell for one in audit_tables([table]).hidden}
    found = suggest_suppression([table])
    assert found.protected
    assert found.hide
    [after] = found.tables
    own = {one.labels: one for one in table.cells}
    for _, words in found.hide:
        cells = tuple(own[one.labels] if str(one) == words else one for one in after.cells)
        again = audit_tables([replace(after, cells=cells)])
        assert min(one.width for one in again.hidden if one.cell in first) <= 2


def test_the_same_people_are_hidden_in_every_table():
    by_sex = published_table(
        {"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]}, name="a"
    )
    again = published_table({"sex": ["m", "x"], "count": [12, 30]}, name="b")
    found = suggest_suppression([by_sex, again])
    assert found.protected
    assert found.hide == (("a", "m"), ("b", "m"))


def test_what_cannot_be_protected_is_said():
    table = published_table({"sex": ["f", "m", "Total"], "count": ["x", 1, 2]}, below=3)
    found = suggest_suppression([table], seconds=5)
    assert not found.protected
    assert "not all are protected" in str(found)


def test_the_command_suggests(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sex,count\nf,x\nm,12\nd,30\nTotal,44\n")
    shown = CliRunner().invoke(main, ["audit", "tables", str(path), "--suggest"])
    assert "hide 1 more cell: all hidden cells are then protected\n  t: m" in shown.output
