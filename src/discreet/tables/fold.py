"""Small groups put together after the release: post-processing, at no cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.core import check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.plan import Key
from discreet.data.schema import OTHER
from discreet.queries.bounds import sum_width
from discreet.queries.parts import Scale

if TYPE_CHECKING:
    from discreet.tables.release import Release

_LEVEL = 0.95
SELECTED = "units of shown keys"
"""The name of counts that were selected by a threshold, among others that stay hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A release of counts or sums whose small groups are one, the last: see `Release.fold`."""

    release: Release
    kept: tuple[int, ...]
    merged: tuple[int, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the groups."""
        known = tuple(self.release.keys[place] for place in self.kept)
        return (*known, (OTHER,) * len(self.release.names)) if self.merged else known

    @property
    def value(self) -> tuple[Any, ...]:
        """The published numbers in the order of the keys."""
        return self._picked(self.release.value, sum)

    @property
    def std(self) -> tuple[float, ...]:
        """Deviation of the noise as it was drawn; choosing small groups picks negative noise."""
        return self._picked(self.release.std, lambda many: math.hypot(*many))

    def interval(self, level: float = _LEVEL) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Bounds that hold the answer without noise, each with probability at least ``level``.

        Theorem: also for the merged group, although its members were chosen by their noisy values.
        Proof: with n groups there are C(n, k) choices of k members. The bound on the sum of k
            noises holds for all of these sums at once, and for all k at once (`sum_width`).
        """
        inside = float(check.probability("level", level, zero=False, one=False))
        low, high = self.release.interval(inside)
        n, k = len(low), len(self.merged)
        part, scale = _measured(self.release)
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + math.log(n)
        width = sum_width(part.law, k, inside, choices=ways * (1 + 1e-12))
        step = scale.exponent + scale.shifts[0]
        # Values that were divided by a power of two were also rounded, each by less than a step.
        reach = math.ldexp(width + (k if scale.shifts[0] else 0), step)
        total = sum(self.release.value[place] for place in self.merged)
        ends = (total - reach, total + reach) if self.merged else (0, 0)
        return (
            self._picked(low, lambda _: ends[0]),
            self._picked(high, lambda _: ends[1]),
        )

    def rows(self, level: float = _LEVEL) -> list[dict[str, Any]]:
        """One record for each group: keys, value, std, low, high."""
        names = self.release.names
        columns = zip(self.keys, self.value, self.std, *self.interval(level), strict=True)
        return [
            {**dict(zip(names, key, strict=True)), "value": v, "std": s, "low": a, "high": b}
            for key, v, s, a, b in columns
        ]

    def _picked(self, numbers: Sequence[Any], together: Any) -> tuple[Any, ...]:
        kept = tuple(numbers[place] for place in self.kept)
        if not self.merged:
            return kept
        return (*kept, together([numbers[place] for place in self.merged]))


def fold(release: Release, *, below: float) -> Folded:
    """Put all groups whose published number is below this into one, the last."""
    _measured(release)
    if not release.names:
        raise InvalidArgument("fold needs a release with groups.")
    limit = float(check.finite("below", below))
    rest = (OTHER,) * len(release.names)
    small = [
        key == rest or value < limit for key, value in zip(release.keys, release.value, strict=True)
    ]
    return Folded(
        release=release,
        kept=tuple(place for place, one in enumerate(small) if not one),
        merged=tuple(place for place, one in enumerate(small) if one),
    )


def _measured(release: Release) -> tuple[Any, Scale]:
    answer = release.answer
    if answer is None or not isinstance(answer.scale, Scale) or len(answer.parts) != 1:
        raise Unsupported("Only counts and sums that were measured directly can be folded.")
    if answer.parts[0].name == SELECTED:
        raise Unsupported("Ask for counts by these keys, and fold those: hidden keys bias these.")
    return answer.parts[0], answer.scale
