"""What the last iterate of noisy gradient descent costs, if it alone is published (C44).

On a strongly convex loss a step shrinks what is known of earlier ones, so that the cost does not
grow without end with the number of steps, as composition would have it.
"""

from __future__ import annotations

import math

from discreet.core.check import count, non_negative, positive
from discreet.core.errors import InvalidArgument

# The formulas are a few operations on doubles; results are rounded up by this.
_UP = 1 + 1e-12


def factor(*, contraction: float, steps: int) -> float:
    """``sqrt((1 - c^t)/(1 + c^t) (1 + c)/(1 - c))``: the cost of t steps in units of one.

    At c = 1 it is sqrt(t), what composition gives; below, it never exceeds the limit for t without
    end, ``sqrt((1 + c)/(1 - c))``.
    """
    c = float(non_negative("contraction", contraction))
    t = count("steps", steps)
    if c > 1:
        raise InvalidArgument(f"contraction must not exceed 1, got {contraction}.")
    if c == 0:
        return 1.0
    if c == 1:
        return math.sqrt(t)
    half = -math.log(c) / 2
    # The ratio of the two hyperbolic tangents is the fraction above, without cancellation. For c
    # very close to 1 the logarithm is what rounding left of it: composition bounds the result.
    return min(math.sqrt(math.tanh(t * half) / math.tanh(half)) * _UP, math.sqrt(t))


def last_iterate_mu(*, contraction: float, sensitivity: float, sigma: float, steps: int) -> float:
    """The mu of the last of ``steps`` iterates of noisy gradient descent (Gaussian DP).

    ``sensitivity`` is how far one record moves a full-batch step at one theta, ``sigma`` the
    standard deviation of the Gaussian noise of each step in the same unit (both of the gradient,
    or both of the parameters), ``contraction`` see `bolt_on.contraction`.

    Theorem: mu-GDP with ``mu = (s/sigma) sqrt((1 - c^t)/(1 + c^t) (1 + c)/(1 - c))``; exact for
        quadratic losses.
    Source: Bok, Su, Altschuler 2024, Theorem 4.1. Proof in theory/sgd-convergence.
    Needs: all records in every step, a start that does not depend on them, isotropic Gaussian
        noise in every step, contraction on both data sets, no clipping, and that nothing of the
        other iterates is ever published.
    """
    unit = float(positive("sensitivity", sensitivity)) / float(positive("sigma", sigma))
    return unit * factor(contraction=contraction, steps=steps) * _UP


def quadratic_mu(*, contraction: float, sensitivity: float, sigma: float, steps: int) -> float:
    """The same for a quadratic loss, by following mean and variance step by step."""
    shift, variance = 0.0, 0.0
    for _ in range(count("steps", steps)):
        shift = contraction * shift + sensitivity
        variance = contraction**2 * variance + sigma**2
    return shift / math.sqrt(variance)


def composed_mu(*, sensitivity: float, sigma: float, steps: int) -> float:
    """What all iterates together cost: ``sqrt(t) s / sigma``."""
    return sensitivity / sigma * math.sqrt(count("steps", steps))
