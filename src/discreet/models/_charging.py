"""The base class of the estimators: the account that a fit charges and its random source.

Packages that need scikit-learn import this module first: it names the extra that is missing.
"""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Self

from discreet.accounting.guarantee import Guarantee, approx_dp
from discreet.core._rational import Number
from discreet.core.errors import Unsupported
from discreet.core.events import ApproxEvent
from discreet.ledger.account import Account, Reservation, reserve_if_charged
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


def reserve_fit(
    account: Account | None,
    guarantee: Guarantee,
    *,
    epsilon: Number | None,
    delta: Number | None,
    label: str,
    rng: RandomSource,
    remedy: str = "",
) -> AbstractContextManager[Reservation | None]:
    """The budget of a fit, spent now, if there is an account.

    An account that cannot follow the fit's own events pays the (epsilon, delta) that were asked
    for, where its limit speaks of such pairs. ``remedy``: what else to do if it cannot pay.
    """
    # Theorem: what is charged is a guarantee of the fit.
    # Proof: the noise was calibrated so that the fit's events keep (epsilon, delta).
    if not isinstance(account, Account):
        return reserve_if_charged(account, guarantee, label=label, rng=rng)
    charged = guarantee
    if isinstance(account.limit.event, ApproxEvent) and None not in (epsilon, delta):
        asked = approx_dp(Fraction(epsilon or 0), Fraction(delta or 0), relation=guarantee.relation)
        payable = _payable(account, guarantee)
        if payable is None or (not payable and _payable(account, asked)):
            charged = asked
    try:
        return reserve_if_charged(account, charged, label=label, rng=rng)
    except Unsupported as error:
        if not remedy:
            raise
        raise Unsupported(f"This limit cannot be charged for such a fit: {remedy}.") from error


def _payable(account: Account, guarantee: Guarantee) -> bool | None:
    """Whether an account can pay; None where it has no way to count."""
    if guarantee.relation is not account.relation:
        return False
    try:
        return account.can_afford(guarantee)
    except Unsupported:
        return None
