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

from discreet.core.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from discreet.noise.random_source import seeded_rng
from discreet.ranges.strategies.data_dependent import BucketSelection


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
    buckets: list[Any] = field(default_factory=list)
    """Buckets that were chosen. Their proof is about noisy costs, not about a distance of inputs,
    and `tests/ranges` has it; what is measured in them is replayed for the same buckets."""

    def run(self, function, *arguments):
        """What the function returns, and the calls it made."""
        calls: list[Call] = []
        chosen = iter(range(10**9))
        choose_buckets = BucketSelection.release
        right = {
            AdditiveMechanism: AdditiveMechanism.release,
            ExponentialMechanism: ExponentialMechanism.choose,
            PermuteAndFlip: PermuteAndFlip.choose,
            ReportNoisyMax: ReportNoisyMax.choose,
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
            return answered(type(mechanism), mechanism, scores)

        def cut(selection, counts, *, rng=None):
            place = next(chosen)
            found = choose_buckets(selection, counts, rng=rng)  # it may fail or warn
            if place == len(self.buckets):
                self.buckets.append(found)
            return self.buckets[place]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(BucketSelection, "release", cut)
            patched.setattr(AdditiveMechanism, "release", release)
            for kind in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
                patched.setattr(kind, "choose", choose)
            return function(*arguments), calls


def excess(one: Call, other: Call) -> Fraction:
    """How far the inputs are apart, in what the mechanism accounts for: at most 1 is right."""
    assert one.mechanism is other.mechanism or one.mechanism.guarantee == other.mechanism.guarantee
    assert one.value.shape == other.value.shape
    mechanism, event = one.mechanism, one.mechanism.guarantee.event
    change = _change(one.value.ravel(), other.value.ravel())
    match event:
        case DiscreteGaussianEvent():
            return Fraction(sum(c * c for c in change)) / event.shift_squared
        case DiscreteLaplaceEvent():
            return Fraction(sum(map(abs, change))) / event.shift
        case GaussianEvent():
            step = Fraction(2) ** mechanism.part.noise.exponent
            square = mechanism.part.noise.square * step**2 / event.sigma**2
            return Fraction(sum(c * c for c in change)) / square
        case LaplaceEvent():
            step = Fraction(2) ** mechanism.part.noise.exponent
            return (
                Fraction(sum(map(abs, change))) * event.scale / (mechanism.part.noise.scale * step)
            )
        case BoundedRangeEvent():
            spread = max(change) - min(change)
            return Fraction(mechanism.rate) * spread / event.epsilon
        case PureEvent():
            spread = max(change) - min(change) if mechanism.monotonic else max(map(abs, change))
            return Fraction(spread) / mechanism.scale.shift
    raise AssertionError(f"say how far apart inputs of {event} may be")


def furthest(calls: list[Call], others: list[Call]) -> Fraction:
    """The largest excess of all calls, which must be the same mechanisms in the same order."""
    return max(excess(one, other) for one, other in zip(calls, others, strict=True))


def _change(one: np.ndarray, other: np.ndarray) -> list[Any]:
    """The differences, exactly."""
    if one.dtype.kind in "iu" and other.dtype.kind in "iu":
        return [a - b for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    return [Fraction(a) - Fraction(b) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
