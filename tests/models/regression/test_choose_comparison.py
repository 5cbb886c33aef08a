"""The page of the comparison: who is lowest, who is guarded, what is bold."""

from benchmarks.regression import Cell, markdown, summary
from benchmarks.regression_data import TABLES, tables


def cell(ours, *, others, midpoint=2.0, table="made up"):
    return Cell(
        table=table,
        rows=80,
        features=2,
        epsilon=1.0,
        midpoint=midpoint,
        chosen="boosted",
        forecast=1.1,
        errors={"discreet": ours, **others},
    )


def test_cells_are_counted_as_they_are():
    found = [
        cell(1.2, others={"diffprivlib": 3.0}),
        cell(1.5, others={"diffprivlib": 1.4}, table="lost"),
        cell(2.05, others={"noisy descent": 9.0}, table="unguarded"),
    ]
    text = summary(found)
    assert "2 of 3 cells (67%)" in text
    assert "in 2 of 3; the highest ratio to the midpoint is 1.025" in text
    assert "Elsewhere: lost at 1." in text


def test_the_lowest_is_bold_and_who_cannot_take_part_is_left_out():
    lines = markdown([cell(1.5, others={"diffprivlib": 1.4}), cell(1.2, others={"OpenDP": 3.0})])
    assert "| 1.5 | **1.4** | – |" in lines[2]
    assert "| **1.2** | – | 3 |" in lines[3]


def test_tables_declare_bounds_for_each_column_and_have_their_own_name():
    assert len({table.name for table in TABLES}) == len(TABLES) >= 6
    for table in TABLES:
        assert all(low < high for low, high in (*table.bounds, table.target_bounds))


def test_a_folder_without_tables_has_none(tmp_path):
    assert tables(tmp_path) == ()
