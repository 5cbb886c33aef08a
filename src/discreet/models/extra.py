"""Imported first by what needs scikit-learn: says which extra is missing."""

from discreet.core.errors import Unsupported

try:
    import sklearn as _  # noqa: F401 - only whether it is there
except ModuleNotFoundError:
    raise Unsupported("These models need scikit-learn: pip install 'discreet[models]'.") from None
