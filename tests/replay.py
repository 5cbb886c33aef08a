"""An exact audit of anything that reads rows through mechanisms: run it twice, on one tape.

The first run, on one table, records what every mechanism answers; the second, on a neighbor, is
given the same answers. Then

- whatever is published must be the same: no path leads around the mechanisms;
- every mechanism must have been handed inputs that are no further apart than it accounts for: that
  is what adaptive composition asks, for these answers.

Together with the sum of the guarantees that were used this is the whole proof of privacy, on this
pair and for these answers, in exact integers.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.core.events import BoundedRangeEvent, DiscreteGaussianEvent
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.noise.random_source import seeded_rng


@dataclass
class Call:
    """What one mechanism was handed and answered."""

    mechanism: Any
    value: np.ndarray
    answer: Any


@dataclass
class Tape:
    """The answers of a first run; later runs get them in the same order."""

    seed: int = 0
    answers: list[Any] = field(default_factory=list)

    def run(self, function, *arguments):
        """What the function returns, and the calls it made."""
        calls: list[Call] = []
        right = {
            AdditiveMechanism: AdditiveMechanism.release,
            ExponentialMechanism: ExponentialMechanism.choose,
        }

        def answered(kind, mechanism, value):
            place = len(calls)
            if place == len(self.answers):
                # Bits of their own: other randomness of the function is then the same in all runs.
                bits = seeded_rng(1_000 * self.seed + place)
                named = {"rng": bits}
                self.answers.append(right[kind](mechanism, value, **named))
            calls.append(Call(mechanism, np.array(value), self.answers[place]))
            return self.answers[place]

        def release(mechanism, value, *, rng=None):
            return answered(AdditiveMechanism, mechanism, value)

        def choose(mechanism, scores, rng):
            return answered(ExponentialMechanism, mechanism, scores)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(AdditiveMechanism, "release", release)
            patched.setattr(ExponentialMechanism, "choose", choose)
            return function(*arguments), calls


def excess(one: Call, other: Call) -> Fraction:
    """How far the inputs are apart, in what the mechanism accounts for: at most 1 is right."""
    assert one.mechanism is other.mechanism or one.mechanism.guarantee == other.mechanism.guarantee
    assert one.value.shape == other.value.shape
    event = one.mechanism.guarantee.event
    change = [int(a) - int(b) for a, b in zip(one.value.ravel(), other.value.ravel(), strict=True)]
    match event:
        case DiscreteGaussianEvent():
            return Fraction(sum(c * c for c in change)) / event.shift_squared
        case BoundedRangeEvent():
            spread = max(change) - min(change)
            return Fraction(one.mechanism.rate) * spread / event.epsilon
    raise AssertionError(f"say how far apart inputs of {event} may be")


def furthest(calls: list[Call], others: list[Call]) -> Fraction:
    """The largest excess of all calls, which must be the same mechanisms in the same order."""
    return max(excess(one, other) for one, other in zip(calls, others, strict=True))
