"""Describe queries of a table: counts, sums, means, quantiles and their keys.

A query is public and reads nothing. Give it to `Table.release`, `Table.forecast` or
`Table.budget_for`.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
