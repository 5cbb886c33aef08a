"""Noisy measurements that releases of ranges and of grids share: JSON, errors and half-widths."""

from __future__ import annotations

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.noise.distribution import Floats, Ints, floats
from discreet.query._noisy_integers import distribution_content, read_distribution
from discreet.ranges import _noise_tails as tails
from discreet.ranges._noise_tails import NoiseDistribution
from discreet.ranges.domain import Domain
from discreet.ranges.grid.box_strategy import BoxStrategy
from discreet.ranges.grid.domain import GridDomain
from discreet.ranges.strategies import explicit_matrix as dense
from discreet.ranges.strategies import weighted_sums as sums
from discreet.ranges.strategies.base import Contribution, Strategy
from discreet.ranges.strategies.haar import Haar
from discreet.ranges.strategies.hierarchical_histogram import HierarchicalHistogram
from discreet.ranges.strategies.square_root import SquareRootStrategy

# ── Strategies and noise as JSON ─────────────────────────────────────────────────────────────────


def packed(group: Ints) -> str:
    """Integers as text: compressed, then base64."""
    return base64.b64encode(zlib.compress(group.astype("<i8").tobytes(), 1)).decode("ascii")


def unpacked(text: str) -> Ints:
    """The inverse of ``packed``."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)


def read_strategy(content: dict[str, Any]) -> Strategy:
    """The structure of its JSON."""
    match content["kind"]:
        case "blocks":
            return HierarchicalHistogram(
                size=content["size"],
                sizes=tuple(content["sizes"]),
                shares=tuple(Fraction(share) for share in content["shares"]),
                total=content["total"],
            )
        case "haar":
            shares = tuple(Fraction(share) for share in content["shares"])
            return Haar(size=content["size"], shares=shares, total=content["total"])
        case "roots":
            return SquareRootStrategy(size=content["size"], normalized=content["normalised"])
        case "dense":
            return dense.read(content)
        case "sums":
            return sums.read(content)
        case _:
            raise InvalidArgument("text must be a release of ranges; its structure is unknown.")


# ── Measurements ─────────────────────────────────────────────────────────────────────────────────


VERSION = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMeasurements(ABC):
    """What was measured with which noise. Subclasses say of what, and answer."""

    _kind: ClassVar[str]
    """Of the artifact, in its text."""
    _what: ClassVar[str]
    """The same in errors."""
    _place: ClassVar[str]
    """The field that holds the cells' labels."""
    _precision: ClassVar[float]
    """The share of the largest sum that rounding in doubles may take."""

    strategy: Strategy | BoxStrategy
    laws: tuple[NoiseDistribution, ...]
    measured: tuple[Ints, ...]
    guarantee: Guarantee
    contribution: Contribution
    private: bool = True
    """False if the noise came from a seed: for tests and simulations only."""

    def __post_init__(self) -> None:
        for group in self.measured:
            group.setflags(write=False)

    @cached_property
    def cells(self) -> Floats:
        """The best linear unbiased estimate of each cell."""
        found = self.strategy.estimate(self.measured, self._noise)
        found.setflags(write=False)
        return found

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        Returns:
            Text with the strategy, the noisy measurements and the guarantee.

        Examples:
            >>> from discreet import ranges
            >>> release = ranges.plan_ranges(4, epsilon=1).best.release([5, 3, 8, 1])
            >>> ranges.RangeRelease.from_json(release.to_json()).answer() == release.answer()
            True
        """
        content = {
            f"discreet_{self._kind}": VERSION,
            self._place: self._labeled.content(),
            "strategy": self.strategy.content(),
            "noise": [distribution_content(law) for law in self.laws],
            "measured": [packed(group) for group in self.measured],
            "guarantee": json.loads(self.guarantee.to_json()),
            "contribution": {
                "rows": self.contribution.rows,
                "per_cell": self.contribution.per_cell,
            },
            "private": self.private,
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a release back from the text of `to_json`.

        Args:
            text: Text of `to_json`.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no release of this kind.

        Examples:
            >>> text = release.to_json()
            >>> ranges.RangeRelease.from_json(text).domain
            IntegerDomain(lower=0, upper=3)
        """
        with canonical.reading(f"a release of {cls._what}"):
            content = json.loads(text)
            if content[f"discreet_{cls._kind}"] != VERSION:
                raise InvalidArgument(f"text is a release of {cls._what} of another version.")
            made = cls(
                **cls._read(content[cls._place], content["strategy"]),
                laws=tuple(read_distribution(law) for law in content["noise"]),
                measured=tuple(unpacked(group) for group in content["measured"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                contribution=Contribution(**content["contribution"]),
                private=bool(content["private"]),
            )
        if len(made.laws) != len(made.strategy.shares) or not made._fits():
            raise InvalidArgument(f"text holds measurements that do not fit its {cls._place}.")
        return made

    def _told(self, total: float, deviation: float) -> str:
        note = "" if self.private else "; made with a seed: not private"
        return (
            f"{self._kind} of {self._labeled} by {self.strategy.describe()} "
            f"(total {number(total, error=deviation)} ± {number(deviation, error=deviation)}; "
            f"{describe_epsilon(self.guarantee)}{note})"
        )

    @property
    def _labeled(self) -> Domain | GridDomain:
        labeled: Domain | GridDomain = getattr(self, self._place)
        return labeled

    @classmethod
    @abstractmethod
    def _read(cls, place: Any, strategy: Any) -> dict[str, Any]:
        """The fields of labels and structure of their JSON."""

    @abstractmethod
    def _fits(self) -> bool:
        """Whether the measurements are those of the structure, and it that of the labels."""

    @property
    @abstractmethod
    def _sums(self) -> Floats:
        """The sums of cells from which all answers are differences."""

    @cached_property
    def _noise(self) -> Floats:
        return tails.variances(self.laws)

    @cached_property
    def _rounding(self) -> float:
        """Room for the rounding of estimates in doubles: far below the noise."""
        return self._precision * max(1.0, float(np.abs(self._sums).max()))

    def _quick(self, variance: Floats, tail: float) -> Floats:
        largest = self.strategy.largest_weights(self._noise)
        return tails.quick(self.laws, largest, variance, tail) + self._rounding


# ── Half-widths of intervals ─────────────────────────────────────────────────────────────────────


_CLOSE = 1000
_MOST_TERMS = 1 << 20
"""The close bound is for so many ranges, and weights of noise in all of them."""


def half_widths(
    strategy: Strategy, laws: Sequence[NoiseDistribution], a: Ints, b: Ints, *, tail: float
) -> Floats:
    """Half-widths that the noise of ranges of cells ``a .. b`` leaves with probability ``tail``."""
    # Theorem: each noise stays within its half-width with probability at least `1 - tail`.
    # Proof: `tails.quick`, `tails.normal` and `tails.close` are valid, and so is the smallest.
    # Source: docs/theory/ranges.md.
    noise = tails.variances(laws)
    variance = strategy.variance(a, b, noise)
    width = tails.quick(laws, strategy.largest_weights(noise), variance, tail)
    if tails.fine(laws):
        return np.minimum(width, tails.normal(laws, np.sqrt(variance), tail))
    ends = list(zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True))
    if not 0 < len(ends) <= _CLOSE:
        return width
    first = strategy.terms(*ends[0], noise)
    if len(ends) * sum(len(weights) for weights, _ in first) > _MOST_TERMS:
        return width
    close = [
        tails.close(laws, strategy.terms(p, q, noise), float(v), tail)
        for (p, q), v in zip(ends, np.ravel(variance), strict=True)
    ]
    return floats(np.minimum(width, np.reshape(close, np.shape(width))))
