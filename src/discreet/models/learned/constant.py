"""One public range for all inputs: plain clipping, or, with a single point, a public constant."""

from __future__ import annotations

from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.core.errors import InvalidArgument
from discreet.models.learned.metrics import Floats, Ints, tuples
from discreet.models.learned.ranges import Ranges, power_of_two

_MOST_TRIED = 2048
_MOST_STEPS = 1 << 52


class Window(Ranges):
    """The same range everywhere, whatever a neighbour is (A42, lambda = 0).

    Theorem: clipped answers differ by at most ``width``. Proof: they lie in one interval.
    """

    def __init__(self, *, low: int, high: int, step: Fraction) -> None:
        if low > high:
            raise InvalidArgument("A window must have low below high.")
        self.low, self.high, self.width = low, high, high - low
        self.step = power_of_two(step)

    @property
    def hull(self) -> tuple[int, int]:
        return self.low, self.high

    @property
    def relation_words(self) -> str:
        return "the whole input replaced by anything"

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        many = len(tuples("inputs", inputs))
        return np.full(many, self.low, dtype=np.int64), np.full(many, self.high, dtype=np.int64)

    @classmethod
    def fit(cls, said: Floats, *, width: int, step: Fraction) -> Self:
        """The window of this width that cuts off least from public outputs."""
        steps = to_steps(said, step)
        tried = np.unique(np.concatenate([steps, steps - width]))
        if len(tried) > _MOST_TRIED:
            tried = tried[np.linspace(0, len(tried) - 1, _MOST_TRIED).astype(np.int64)]
        gaps = steps[:, None] - tried
        cut = np.maximum(gaps - width, 0) + np.maximum(-gaps, 0)
        low = int(tried[np.argmin(cut.mean(axis=0))])
        return cls(low=low, high=low + width, step=step)


def to_steps(values: Floats, step: Fraction) -> Ints:
    """Public values in whole steps, rounded down."""
    scaled = np.floor(np.asarray(values, dtype=np.float64) / float(step))
    return np.clip(scaled, -_MOST_STEPS, _MOST_STEPS).astype(np.int64)
