from discreet.intervals._bootstrap import bootstrap as bootstrap
from discreet.intervals._coverage import coverage as coverage
from discreet.intervals._coverage import leave_one_out as leave_one_out
from discreet.intervals._coverage import per_column as per_column
from discreet.intervals._mean import difference_interval as difference
from discreet.intervals._mean import mean_interval as mean
from discreet.intervals._mean import variance_interval as variance
from discreet.intervals._proportion import proportion_interval as proportion
from discreet.intervals._quantile import quantile_interval as quantile
from discreet.intervals.central_vs_local import compare_by_rows as compare_by_rows
from discreet.intervals.central_vs_local import compare_central_local as compare_central_local
from discreet.local.report_intervals import difference_from_reports as difference_from_reports
from discreet.local.report_intervals import mean_from_reports as mean_from_reports
from discreet.local.report_intervals import proportion_from_reports as proportion_from_reports
from discreet.local.report_intervals import quantile_from_reports as quantile_from_reports
from discreet.local.report_intervals import variance_from_reports as variance_from_reports

__all__ = [
    "bootstrap",
    "compare_by_rows",
    "compare_central_local",
    "coverage",
    "difference",
    "difference_from_reports",
    "leave_one_out",
    "mean",
    "mean_from_reports",
    "per_column",
    "proportion",
    "proportion_from_reports",
    "quantile",
    "quantile_from_reports",
    "variance",
    "variance_from_reports",
]
