"""Counts of ranges, of rectangles and of streams on ordered domains."""

from discreet.core._lazy_import import offered

__getattr__, __dir__, __all__ = offered(__name__)
