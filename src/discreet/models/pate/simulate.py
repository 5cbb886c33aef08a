"""Votes of imagined teachers: to choose parameters without looking at private votes (M45)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import count
from discreet.core.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Imagined items: what teachers say of each, and what is true."""

    votes: NDArray[np.int64] = field(repr=False)
    truth: NDArray[np.int64] = field(repr=False)


def simulate_votes(
    items: int,
    *,
    teachers: int,
    classes: int,
    accuracy: float,
    spread: float = 2.0,
    seed: int = 0,
) -> Simulated:
    """Teachers who are right with a probability that differs from item to item.

    It is Beta distributed with mean ``accuracy``; the smaller ``spread``, the more items are clear
    to all or to few. Who errs names, four times in five, the class that the item resembles, or
    any. Nothing private is in it: the seed may be published.
    """
    if not 0 < accuracy < 1 or not 0 < spread < np.inf:
        raise InvalidArgument("accuracy must lie in (0, 1) and spread must be positive.")
    number = count("classes", classes, minimum=2)
    shape = (count("items", items), count("teachers", teachers))
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, number, shape[0])
    alike = (truth + rng.integers(1, number, shape[0])) % number
    clear = rng.beta(accuracy * spread, (1 - accuracy) * spread, shape[0])
    wrong = np.where(rng.random(shape) < 0.8, alike[:, None], rng.integers(0, number, shape))
    votes = np.where(rng.random(shape) < clear[:, None], truth[:, None], wrong)
    return Simulated(votes=votes, truth=truth)
