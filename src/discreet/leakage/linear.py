"""A tight audit of Gaussian claims: how many deviations a score moves between two inputs.

At a small delta samples prove next to nothing about epsilon. They prove much about mu: an event
near the middle, which happens often, bounds the whole curve of a claim that is Gaussian.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from discreet.core.check import probability
from discreet.core.errors import InvalidArgument
from discreet.leakage.attacks import lower_bound, upper_bound
from discreet.leakage.features import Floats


def gaussian_lower_bound(
    with_row: Floats, without: Floats, *, threshold: float, failure: float = 1e-6
) -> float:
    """A lower bound on mu from independent scores on two inputs.

    Theorem: a mechanism that is mu-GDP passes this bound with probability at most failure.
    Proof: mu-GDP means that ``P(A) <= Phi(Phi^-1(Q(A)) + mu)`` for every event A; take the scores
        above the threshold, and a Clopper-Pearson bound on either side.
    Source: Dong, Roth and Su 2022; Nasr et al. 2023.
    Needs: a threshold and a score that were chosen without these scores.
    """
    alpha = float(probability("failure", failure, zero=False, one=False))
    if min(with_row.size, without.size) == 0:
        raise InvalidArgument("with_row and without must hold scores.")
    hits = [int(np.count_nonzero(scores > threshold)) for scores in (with_row, without)]
    low = lower_bound(hits[0], with_row.size, alpha / 2)
    high = upper_bound(hits[1], without.size, alpha / 2)
    return float(ndtri(low) - ndtri(high))
