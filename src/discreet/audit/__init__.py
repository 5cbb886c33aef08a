"""How much is really learned: exact and statistical audits, attacks, leakage of time series."""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
