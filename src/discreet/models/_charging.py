"""The base class of the estimators: the account that a fit charges and its random source.

Packages that need scikit-learn import this module first: it names the extra that is missing.
"""

from __future__ import annotations

import copy
from typing import Self

from discreet.core.errors import Unsupported
from discreet.ledger.account import Account
from discreet.noise.random_source import RandomSource, resolve_rng

try:
    from sklearn.base import BaseEstimator
except ModuleNotFoundError:
    raise Unsupported("These models need scikit-learn: pip install 'discreet[models]'.") from None

_SHARED = ("account", "rng")


class ChargingEstimator(BaseEstimator):
    """An estimator whose fit may charge an ``account``; ``rng`` is for tests and simulations."""

    account: Account | None
    rng: RandomSource | None

    @property
    def _source(self) -> RandomSource:
        """Where the noise of a fit comes from."""
        return resolve_rng(self.rng)

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; the account and the random source are shared, not copied."""
        return type(self)(
            **{
                name: value if name in _SHARED else copy.deepcopy(value)
                for name, value in self.get_params(deep=False).items()
            }
        )
