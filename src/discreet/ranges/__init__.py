"""Count ranges of ordered domains, grids and streams (continual counting)."""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
