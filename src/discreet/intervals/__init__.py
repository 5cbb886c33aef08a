"""Confidence intervals that hold what they say, for private columns and for local reports.

`mean`, `proportion`, `variance`, `difference` and `quantile` plan an interval from public numbers:
its width is known before, its coverage is stated, and ``release`` gives it for a private column.
What begins with ``reports`` reads noisy reports of clients. `coverage` puts any interval to a test.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
