"""What it costs to trust no server: a mean, against the number of rows."""

from pathlib import Path

from discreet import intervals
from discreet.report.comparison_charts import against_rows
from discreet.report.drawing.figure import save

rows = [100, 300, 1_000, 3_000, 10_000]
found = intervals.compare_by_rows(lower=0, upper=110, rows=rows, epsilon=1, std=12)
save(against_rows(found)[:1], Path("intervals.svg"))
