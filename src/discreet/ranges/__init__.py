"""Counts of ranges, of rectangles and of streams on ordered domains."""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
