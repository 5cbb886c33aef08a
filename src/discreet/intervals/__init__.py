"""Confidence intervals that hold what they say, for private columns and for local reports.

`mean`, `proportion`, `variance`, `difference` and `quantile` plan an interval from public numbers:
its width is known before, its coverage is stated, and ``release`` gives it for a private column.
What begins with ``reports`` reads noisy reports of clients. `coverage` puts any interval to a test.
"""

from discreet.queries.intervals.bootstrap import bootstrap
from discreet.queries.intervals.compare import central_and_local, compare_rows
from discreet.queries.intervals.coverage import coverage, each
from discreet.queries.intervals.diagnostic import leave_one_out
from discreet.queries.intervals.difference import difference_interval as difference
from discreet.queries.intervals.mean import mean_interval as mean
from discreet.queries.intervals.proportion import proportion_interval as proportion
from discreet.queries.intervals.quantile import quantile_interval as quantile
from discreet.queries.intervals.reports import (
    reports_difference,
    reports_proportion,
    reports_quantile,
)
from discreet.queries.intervals.reports import reports_interval as reports_mean
from discreet.queries.intervals.reports import reports_variance_interval as reports_variance
from discreet.queries.intervals.variance import variance_interval as variance

__all__ = [
    "bootstrap",
    "central_and_local",
    "compare_rows",
    "coverage",
    "difference",
    "each",
    "leave_one_out",
    "mean",
    "proportion",
    "quantile",
    "reports_difference",
    "reports_mean",
    "reports_proportion",
    "reports_quantile",
    "reports_variance",
    "variance",
]
