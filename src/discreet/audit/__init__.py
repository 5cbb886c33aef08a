"""Audits of privacy guarantees: exact checks, statistical attacks, and series.

`attack` and `run_audit` try to refute claims from samples. `exact` and `lattice_distribution`
compute guarantees from output distributions. `series` measures what releases about correlated
values reveal.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
