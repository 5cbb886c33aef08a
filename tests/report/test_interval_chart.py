"""The picture of central against local noise holds the numbers of the plan."""

from __future__ import annotations

import discreet
from discreet.intervals.central_vs_local import compare_by_rows
from discreet.report.comparison_charts import against_rows


def test_curves_are_the_rows_of_the_plan(tmp_path):
    found = compare_by_rows(lower=0, upper=110, rows=[100, 1000, 10_000], epsilon=1, std=12)
    panels = against_rows(found)
    assert [len(panel.lines) for panel in panels] == [2, 3, 3]
    mean, variance, median = panels
    assert list(mean.lines[1].y) == [row.local for row in found.of("mean")]
    assert list(variance.lines[2].y) == [row.uncorrected for row in found.of("variance")]
    assert min(median.lines[2].y) == found.of("median")[0].output
    assert "standard deviation 12" in mean.title
    for panel in panels:
        assert "needs epsilon" in panel.note
    discreet.plot(found, tmp_path / "compare.svg")
    text = (tmp_path / "compare.svg").read_text(encoding="utf-8")
    assert text.count("What it costs to trust no server: median") >= 1


def test_a_constant_column_has_no_median(tmp_path):
    found = compare_by_rows(lower=0, upper=1, rows=[10, 20], epsilon=1, std=0)
    assert len(against_rows(found)) == 2
    discreet.plot(found, tmp_path / "constant.png")
    assert (tmp_path / "constant.png").stat().st_size > 1000
