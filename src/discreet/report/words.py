"""A guarantee in plain words."""

from __future__ import annotations

import math

from discreet.accounting.guarantee import Guarantee
from discreet.core.relation import Relation
from discreet.tables.release import DELTA, told_delta, worth


def plainly(guarantee: Guarantee, *, delta: float = DELTA) -> str:
    """What the guarantee promises to one person."""
    pure = guarantee.epsilon(0.0)
    epsilon = pure
    if not math.isfinite(pure):
        delta = told_delta(guarantee, delta=delta)
        epsilon = guarantee.epsilon(delta)
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "beyond all use many"
    plus = "" if math.isfinite(pure) else f", plus a probability of {delta:g} at most"
    other = {
        Relation.ADD_REMOVE: "with one unit in the data as without it",
        Relation.REPLACE_ONE: "with the data of one unit as with any other data in their place",
        Relation.LOCAL: "with one value of a client as with any other",
    }[guarantee.relation]
    return (
        "Whatever anybody knows or will learn elsewhere: anything that these numbers could show is "
        f"at most {factor} times as likely {other}, and the other way round{plus} "
        f"({worth(guarantee, delta=delta)}; {guarantee.relation.value})."
    )
