"""From risk to budget: the largest guarantee under which attacks succeed no more than so often."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.accounting.guarantee import Guarantee, gdp, pure_dp, zcdp
from discreet.accounting.meaning import AttackBounds
from discreet.core import events
from discreet.core._validate import one_of, probability
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation

RiskMeasure: TypeAlias = Literal["pure", "laplace", "gdp", "zcdp"]

_PRECISION = 1e-7
_SMALLEST = 1e-9


def budget_for_risk(
    measure: RiskMeasure = "gdp",
    *,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> Guarantee:
    """Find the largest budget under which attacks do not exceed a risk.

    Say the risk as an advantage ("at most 1 in 20 more": 0.05), or as the share of participants
    that an attacker finds at a rate of false alarms.

    Args:
        measure: How the budget is stated: `"pure"` for any release with that epsilon, `"laplace"`
            for one release with Laplace noise, `"gdp"` for Gaussian noise, or `"zcdp"` for any
            release with that rho.
        advantage: Largest accepted difference of true-positive and false-positive rate.
        true_positive_rate: Largest accepted share of participants that an attacker finds, at
            `false_positive_rate`.
        false_positive_rate: Rate of false alarms for `true_positive_rate`.
        relation: Neighboring relation of the guarantee.

    Returns:
        A guarantee that meets the risk, for the limit of an account or for a mechanism. A budget
        that is larger by a ten-millionth is not certified.

    Raises:
        InvalidArgument: The risk is not one of the two, is not a probability, or is not above what
            an attacker has without any release.

    Examples:
        >>> import discreet
        >>> budget = discreet.budget_for_risk("gdp", advantage=0.1)
        >>> round(float(1 / budget.event.mu), 4)  # sigma, for sensitivity 1
        3.9789

    See Also:
        `Guarantee.meaning`, [What epsilon means](../how-to/meaning.md).
    """
    one_of("measure", measure, ("pure", "laplace", "gdp", "zcdp"))
    meets = _risk(advantage, true_positive_rate, false_positive_rate)

    def make(size: float) -> Guarantee:
        amount = Fraction(size)
        match measure:
            case "pure":
                return pure_dp(amount, relation=relation)
            case "laplace":
                return Guarantee(events.LaplaceEvent(1 / amount), relation)
            case "zcdp":
                return zcdp(amount, relation=relation)
            case _:
                return gdp(amount, relation=relation)

    low, high = _SMALLEST, 1.0
    if not meets(make(low).meaning()):
        raise InvalidArgument("The risk is too small to be met by any budget: accept more.")
    while meets(make(high).meaning()):
        low, high = high, 2 * high  # ends: the risk of a large budget is 1 to all digits
    while high - low > _PRECISION * low:
        middle = math.sqrt(low * high) if low * 4 < high else (low + high) / 2
        low, high = (middle, high) if meets(make(middle).meaning()) else (low, middle)
    return make(low)


def _risk(
    advantage: float | None, true: float | None, false: float | None
) -> Callable[[AttackBounds], bool]:
    if advantage is not None and true is None and false is None:
        most = float(probability("advantage", advantage, zero=False, one=False))
        return lambda meaning: meaning.advantage <= most
    if advantage is None and true is not None and false is not None:
        found = float(probability("true_positive_rate", true, zero=False, one=False))
        alarms = float(probability("false_positive_rate", false, zero=False, one=False))
        if found <= alarms:
            raise InvalidArgument(
                f"true_positive_rate must be above false_positive_rate, got {found:g} and "
                f"{alarms:g}: a guess without any release finds as many."
            )
        return lambda meaning: meaning.true_positive_rate(alarms) <= found
    raise InvalidArgument(
        "Give advantage, or true_positive_rate together with false_positive_rate."
    )
