"""Differential privacy for people who must publish."""

from discreet.core._lazy_import import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(__name__)
