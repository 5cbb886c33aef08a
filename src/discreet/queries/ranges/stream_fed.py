"""What a counter gives for some steps of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.noise.law import Floats, Ints

LARGEST_COUNT = (1 << 31) - 1
"""In one step and lane; what is above is cut off, which moves no neighbours apart."""


@dataclass(frozen=True, slots=True)
class Fed:
    """Answers for some steps: the noisy sum up to each, and how to make that behind it.

    When the epoch is over, the sum of what came after step t is ``whole + part`` with the counter's
    ``closing`` added to each. Until then ``whole`` is private.
    """

    prefix: Floats
    whole: Ints
    part: Floats
