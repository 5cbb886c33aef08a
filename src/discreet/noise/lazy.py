"""Comparing a uniform number with a real threshold, exactly.

A uniform number on [0, 1) is an infinite string of bits of which only the first few are ever
needed: after ``bits`` of them it is known to lie in ``[value, value + 1) / 2**bits``. A threshold
is a real number known by enclosures. The comparison draws more bits, and asks for narrower
enclosures, until the two separate; the answer is the answer for the exact real numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.core.exact import Real
from discreet.noise.bits import Bits

# The first enclosure is this much finer than the uniform, so that it seldom is what fails.
_GUARD = 8


class LazyUniform:
    """A uniform number on [0, 1) whose bits are drawn when a comparison asks for them."""

    __slots__ = ("_source", "bits", "value")

    def __init__(self, source: Bits, *, value: int = 0, bits: int = 0) -> None:
        self._source = source
        self.value = value
        self.bits = bits

    def extend(self) -> None:
        """Learn one more word of the number."""
        self.value = self.value << self._source.width | int(self._source.words(1)[0])
        self.bits += self._source.width

    def below(self, threshold: Real) -> bool:
        """Whether the number is below the threshold."""
        if self.bits == 0:
            self.extend()
        while True:
            low, high = threshold(self.bits + _GUARD)
            if (self.value + 1) << _GUARD <= low:
                return True
            if self.value << _GUARD >= high:
                return False
            self.extend()


def invert(uniform: LazyUniform, at_least: Callable[[int], Real], guess: int) -> int:
    """The largest ``m`` with ``uniform < at_least(m)``: an exact inverse transform.

    ``at_least(m)`` is P(X >= m), non-increasing in ``m``, 1 or more far to the left and 0 far to
    the right. A good guess makes it two comparisons.
    """
    m = guess
    if uniform.below(at_least(m)):
        step = 1
        while uniform.below(at_least(m + step)):
            m += step
            step *= 2
        low, high = m, m + step
    else:
        step = 1
        while not uniform.below(at_least(m - step)):
            m -= step
            step *= 2
        low, high = m - step, m
    while high - low > 1:
        middle = (low + high) // 2
        if uniform.below(at_least(middle)):
            low = middle
        else:
            high = middle
    return low
