"""What a coin gives away that decides between truth and lie, from the coin as it is thrown."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.core.exact import Real, exp_minus
from discreet.mechanisms.mechanism import Check

# An epsilon beyond it is not certified: the coin would have to be known to too many digits.
_LARGEST = 20_000


def coin_check(part: str, lie: Real, *, epsilon: Fraction, light: int, heavy: int) -> Check:
    """Whether ``heavy`` true reports are at most e^epsilon times likelier than ``light`` lies.

    Theorem: what is returned is at least the divergence of the reports of two clients at epsilon,
        and zero but for rounding if the coin is the stated one.
    Proof: a report has probability (1 - lie) / heavy or lie / light, by whether it is true of its
        client. Only reports that are true of the first client and a lie of the second can be more
        than e^epsilon times likelier; under the first they have at most 1 - lie in all. The lie
        and e^epsilon enter by their lower ends, in integers.
    """
    precision = 256 + 2 * min(math.floor(epsilon), _LARGEST)
    low, _ = lie(precision)
    _, rarer = exp_minus(epsilon, precision)
    told = Fraction((1 << precision) - low, 1 << precision) - Fraction(heavy * low, light * rarer)
    return Check(
        part=part,
        epsilon=float(epsilon),
        claimed=0.0,
        exact=float(max(Fraction(0), told)),
        route="the coin as it is thrown, in integers",
    )
