"""What every private estimator shares: the account it charges, the bits it draws from."""

from __future__ import annotations

import copy
from typing import Self

from sklearn.base import BaseEstimator

from discreet.ledger.account import Account
from discreet.noise.bits import Bits, source_of

_SHARED = ("account", "bits")


class ChargingEstimator(BaseEstimator):
    """An estimator whose fit may charge an ``account``; ``bits`` are for tests and simulations."""

    account: Account | None
    bits: Bits | None

    @property
    def _source(self) -> Bits:
        """Where the noise of a fit comes from."""
        return source_of(self.bits)

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; the account and the bits are shared, not copied."""
        return type(self)(
            **{
                name: value if name in _SHARED else copy.deepcopy(value)
                for name, value in self.get_params(deep=False).items()
            }
        )
