"""How the members of personal budgets have spent: shares of their limits, by privacy level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import GRAIN, limit_rho
from discreet.ledger.personal_budgets import PersonalBudgets


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentShares:
    """The members of one privacy level, by the share of their limit that is spent.

    As private as the costs were: for the data owner alone.
    """

    level: str
    limit: Guarantee
    members: int
    counts: tuple[int, ...]
    """Members in equal bins of the share, from 0 to 1."""
    mean: float


def spent_shares(budgets: PersonalBudgets, *, bins: int = 10) -> tuple[SpentShares, ...]:
    """A histogram of the spent shares for each privacy level."""
    spent, levels = budgets.spent(), budgets.levels
    found = []
    for level in budgets.limits:
        limit = math.floor(limit_rho(budgets.limits[level]) / GRAIN)
        shares = spent[levels == level] / max(limit, 1)
        counts, _ = np.histogram(shares, bins=bins, range=(0.0, 1.0))
        found.append(
            SpentShares(
                level=level,
                limit=budgets.limits[level],
                members=len(shares),
                counts=tuple(counts.tolist()),
                mean=float(shares.mean()) if len(shares) else 0.0,
            )
        )
    return tuple(found)
