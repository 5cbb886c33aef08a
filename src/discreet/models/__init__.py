"""Models with privacy guarantees, in the style of scikit-learn.

`regression` contains linear regression from noisy sufficient statistics, `glm` logit and Poisson
regression with standard errors, `dp_sgd` noisy gradient descent, `pate` private labels, and
`blackbox` makes any function private. All need the extra
`discreet[models]`. Bounds are declared, and every fit has a guarantee and can be charged to an
account.
"""

from discreet.core._lazy_import import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
