from discreet.intervals._bootstrap import bootstrap
from discreet.intervals._coverage import coverage, each, leave_one_out
from discreet.intervals._mean import difference_interval as difference
from discreet.intervals._mean import mean_interval as mean
from discreet.intervals._mean import variance_interval as variance
from discreet.intervals._proportion import proportion_interval as proportion
from discreet.intervals._quantile import quantile_interval as quantile
from discreet.intervals.central_vs_local import central_and_local, compare_rows
from discreet.local.report_intervals import reports_difference, reports_proportion, reports_quantile
from discreet.local.report_intervals import reports_interval as reports_mean
from discreet.local.report_intervals import reports_variance_interval as reports_variance

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
