"""Confidence intervals for statistics of a private column or of local reports.

`mean`, `proportion`, `variance`, `difference` and `quantile` plan an interval from public numbers.
You see its expected width before you spend budget, and `release` computes it from a private column.
Functions whose name ends in `from_reports` compute intervals from the noisy reports of clients.
`coverage` measures by simulation how often an interval covers the true value.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
