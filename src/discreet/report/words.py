"""A guarantee in plain words."""

from __future__ import annotations

import math

from discreet.accounting.guarantee import Guarantee
from discreet.table.release import DELTA, worth


def plainly(guarantee: Guarantee, *, delta: float = DELTA) -> str:
    """What the guarantee promises to one person."""
    pure = guarantee.epsilon(0.0)
    epsilon = pure if math.isfinite(pure) else guarantee.epsilon(delta)
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "a number beyond use"
    unless = "" if math.isfinite(pure) else f", except with probability {delta:g}"
    return (
        f"Whatever anybody knows or will learn elsewhere: seeing these numbers multiplies the odds "
        f"of any guess about one unit by at most {factor}{unless} "
        f"({worth(guarantee, delta=delta)}; {guarantee.relation.value})."
    )
