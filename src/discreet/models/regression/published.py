"""Published constants of SSP and AdaSSP, with what they are truly worth (K10-K14, M3).

The formulas split epsilon and add it up again; the joint release is worth more or less than that.
A plan is made only if its own law keeps the nominal claim.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.core.check import positive, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.exact import Number
from discreet.core.relation import Relation
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.gaussian import gaussian
from discreet.models.regression.lattice import Lattice
from discreet.models.regression.moments import MomentsPlan, moves, smallest_move
from discreet.queries.budget import Move

Constants: TypeAlias = Literal["wang", "wang-code", "thesis"]


def published_sd(method: str, constants: Constants, *, epsilon: float, delta: float) -> float:
    """Noise of each release for rows and targets of norm one, as printed."""
    found = {
        ("adassp", "wang"): 3 * math.sqrt(math.log(6 / delta)) / epsilon,
        ("adassp", "thesis"): 3 * math.sqrt(2 * math.log(3.75 / delta)) / epsilon,
        ("ssp", "wang"): 2 * math.sqrt(math.log(4 / delta)) / epsilon,
        ("ssp", "wang-code"): math.sqrt(math.log(4 / delta)) / epsilon,
        ("ssp", "thesis"): 2 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon,
    }.get((method, constants))
    if found is None:
        raise InvalidArgument(
            "constants are published for method='adassp' ('wang', 'thesis') and method='ssp' "
            f"('wang', 'wang-code', 'thesis'), got {constants!r} with {method!r}."
        )
    return found


def published_log(constants: Constants, *, delta: float) -> float:
    """What the printed shift of the smallest eigenvalue is the root of, in deviations (K11)."""
    return math.log(6 / delta) if constants == "wang" else 2 * math.log(3.75 / delta)


def plan_published(
    lattice: Lattice,
    *,
    method: str,
    constants: Constants,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    rows_per_unit: int = 1,
    certified: bool = True,
) -> MomentsPlan:
    """Moments with published noise; the guarantee is that of the noise, not the printed one.

    With ``certified`` a claim that the noise does not keep is refused.
    """
    nominal = float(positive("epsilon", epsilon))
    failure = float(probability("delta", delta, zero=False, one=False))
    sd = published_sd(method, constants, epsilon=nominal, delta=failure)
    sigma = Fraction(sd) * lattice.row_squared * rows_per_unit
    joint, _ = moves(lattice, relation=relation, rows_per_unit=rows_per_unit)
    least = smallest_move(lattice, rows_per_unit=rows_per_unit)
    ada = method == "adassp"
    plan = MomentsPlan(
        lattice=lattice,
        relation=relation,
        rows_per_unit=rows_per_unit,
        joint=_noise(joint, sigma, relation),
        squares=None,
        smallest=_noise(least, sigma, relation) if ada else None,
        published_log=published_log(constants, delta=failure) if ada else None,
    )
    worth = plan.guarantee.epsilon(failure)
    if certified and worth > nominal:
        raise NotCertified(
            f"The published noise is worth epsilon {worth:.4g} at delta {failure:g}, not the "
            f"nominal {nominal:g}: use constants='exact'."
        )
    return plan


def _noise(move: Move, sigma: Fraction, relation: Relation) -> Additive:
    return gaussian(
        sensitivity=1,
        norm="linf",
        dimension=move.l2_squared,
        sigma=sigma,
        on="integers",
        relation=relation,
    )
