"""Fitted things, in the style of scikit-learn: regression, private gradient descent, voting.

Needs the extra ``discreet[models]``. Bounds are declared, noise is drawn on a grid, and every fit
states its guarantee and can be charged to an account.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
