"""Differential privacy for people who must publish."""

from discreet.core._lazy_import import offered

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = offered(__name__)
