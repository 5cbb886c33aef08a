"""Noisy answers to a query, with intervals for the noise and for noise and sampling."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.program import Key
from discreet.data.schema import Label
from discreet.query import _estimate as estimate
from discreet.query import _reading as reading
from discreet.query._estimate import Floats, Range
from discreet.query._measure import SumEstimator
from discreet.query._noisy_integers import NoisyIntegers, distribution_content, read_distribution
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query._reading import Reading

# ── Intervals that also cover sampling ───────────────────────────────────────────────────────────
# Valid for any number of rows and any distribution, if the units were drawn independently and each
# gives at most one row to a group.


_HALVINGS = 80
_OUTWARD = 2.0**-40


def interval(
    reading: Reading, parts: Sequence[NoisyIntegers], confidence: float
) -> tuple[list[float], list[float]]:
    """Bounds of expected counts, and of means and quantiles in the population.

    Theorem: each group's interval holds its target with probability at least ``confidence``, over
        the
        noise and the drawing of the rows. The target of a count is its expectation, that of a mean
        or quantile the one of the distribution from which the group's rows (clipped) are drawn.
    Proof: half of what may fail goes to the noise, half to sampling (union bound). A count is a sum
        of independent indicators, whose generating function is at most that of a Poisson law of the
        same mean m, so P(N >= x) and, below m, P(N <= x) are at most
        ``exp(-(x log(x/m) - x + m))``. A mean of n independent values in [0, 1] passes x on one
        side of its expectation m with probability at most ``exp(-n kl(x, m))``. Both are inverted
        at the ends of the noise box, where they are widest. Quantiles: see `Quantiles.interval`.
    Source: Chernoff 1952; Hoeffding 1963, theorem 1; docs/theory/queries.md.
    Needs: independent units, at most one row of each in a group; 0 < level < 1.
    """
    if isinstance(reading, QuantileEstimator):
        return reading.interval(parts, confidence, sampling=True)
    if not isinstance(reading, SumEstimator) or reading.kind not in ("count", "units", "mean"):
        raise Unsupported(
            "Sampling is covered for counts, means and quantiles: the spread of what a sum, a "
            "variance or a covariance adds up is not known from their noisy parts."
        )
    half = 1 - (1 - confidence) / 2
    bound = math.log(4 / (1 - confidence))  # two sides, half of what may fail
    if reading.kind != "mean":
        low, high = estimate.box(parts[0], reading.shifts[0], half)
        return _counts(np.maximum(low, 0), np.maximum(high, 0), bound)
    ends = tuple(np.array(end) for end in estimate.interval(reading, parts, half))
    rows = estimate.box(parts[0], reading.shifts[0], 1 - (1 - half) / 2)[0]
    first, last = (math.ldexp(end, reading.exponent) for end in (reading.lower, reading.upper))
    return _means((ends[0], ends[1]), np.maximum(rows, 1), bound, limits=(first, last))


def _counts(low: Floats, high: Floats, bound: float) -> tuple[list[float], list[float]]:
    """All m with ``x log(x/m) - x + m <= bound``, for x at the ends of the box."""

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(x > 0, x * np.log(np.where(x > 0, x / m, 1.0)), 0.0)
        return np.asarray(logs - x + m)

    least = _edge(lambda m: np.asarray(divergence(low, m) > bound), np.zeros_like(low), low)
    far = high + bound + np.sqrt(2 * bound * high + bound**2) + 1
    most = _edge(lambda m: np.asarray(divergence(high, m) > bound), far, high)
    return (
        estimate.listed(least * (1 - _OUTWARD)),
        estimate.listed(most * (1 + _OUTWARD)),
    )


def _means(
    ends: Range, rows: Floats, bound: float, *, limits: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """All m with ``rows * kl(x, m) <= bound`` for x at the ends of the box, scaled to [0, 1]."""
    span = limits[1] - limits[0] or 1.0
    x_low, x_high = (np.clip((end - limits[0]) / span, 0.0, 1.0) for end in ends)

    def divergence(x: Floats, m: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(x > 0, x * np.log(x / m), 0.0)
            right = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - m)), 0.0)
        return np.asarray(left + right)

    zero, one = np.zeros_like(x_low), np.ones_like(x_low)
    least = _edge(lambda m: np.asarray(rows * divergence(x_low, m) > bound), zero, x_low)
    most = _edge(lambda m: np.asarray(rows * divergence(x_high, m) > bound), one, x_high)
    room = _OUTWARD * max(map(abs, limits))
    return (
        estimate.listed(np.maximum(limits[0] + span * least - room, limits[0])),
        estimate.listed(np.minimum(limits[0] + span * most + room, limits[1])),
    )


def _edge(outside: Callable[[Floats], NDArray[np.bool_]], far: Floats, near: Floats) -> Floats:
    """The outer side of where a set that holds ``near`` ends, toward ``far``; by halving."""
    for _ in range(_HALVINGS):
        middle = (far + near) / 2
        out = outside(middle)
        far, near = np.where(out, middle, far), np.where(out, near, middle)
    return far


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswer:
    """What was measured, with noise, for each public key."""

    title: str
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    scale: Reading
    parts: tuple[NoisyIntegers, ...]
    independent: bool = False
    """Whether a unit gives at most one row to a group, so that rows are as independent as units."""

    def __post_init__(self) -> None:
        if any(len(key) != len(self.names) for key in self.keys):
            raise InvalidArgument("An answer needs a value for each name in each key.")
        reading.verify(self.scale, self.parts, keys=len(self.keys))

    @property
    def values(self) -> list[int] | list[float]:
        """The published numbers in the order of the keys."""
        return reading.values(self.scale, self.parts)

    @property
    def std(self) -> list[float] | list[None]:
        """The standard deviation of the noise of each, where it is known."""
        return reading.stds(self.scale, self.parts)

    def interval(
        self, confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds that hold the answer without noise, each with probability at least ``confidence``.

        With ``sampling`` they hold what the answer estimates in the population.
        """
        if not self.keys:  # a discovery that found none
            return [], []
        if not sampling:
            return reading.interval(self.scale, self.parts, confidence)
        if not self.independent:
            raise Unsupported(
                "sampling=True needs independent rows, but a unit may have several in a group, and "
                "rows of one unit are alike: use max_rows_per_unit=1 or "
                "max_rows_per_unit_per_group=1."
            )
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        return interval(self.scale, self.parts, inside)

    @property
    def has_interval(self) -> bool:
        """Whether there are bounds at all: a choice has none."""
        return all(part.noise is not None for part in self.parts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "title": self.title,
            "names": list(self.names),
            "keys": [[_label(label) for label in key] for key in self.keys],
            "scale": reading.content(self.scale),
            "independent": self.independent,
            "parts": [
                {
                    "name": part.name,
                    "noise": None if part.noise is None else distribution_content(part.noise),
                    "values": list(part.values),
                }
                for part in self.parts
            ],
        }

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> NoisyAnswer:
        """The inverse of ``content``."""
        return cls(
            title=content["title"],
            names=tuple(content["names"]),
            keys=tuple(tuple(_read_label(label) for label in key) for key in content["keys"]),
            scale=reading.read(content["scale"]),
            independent=content.get("independent", False) is True,
            parts=tuple(
                NoisyIntegers(
                    name=part["name"],
                    noise=None if part["noise"] is None else read_distribution(part["noise"]),
                    values=tuple(map(int, part["values"])),
                )
                for part in content["parts"]
            ),
        )


def _label(label: Label) -> object:
    """Dates are marked, all else is JSON already."""
    if isinstance(label, dt.datetime):
        return {"time": label.isoformat()}
    return {"date": label.isoformat()} if isinstance(label, dt.date) else label


def _read_label(content: Any) -> Label:
    if not isinstance(content, dict):
        label: Label = content
        return label
    readers: Mapping[str, Callable[[str], Label]] = {
        "time": dt.datetime.fromisoformat,
        "date": dt.date.fromisoformat,
    }
    ((kind, text),) = content.items()
    return readers[kind](text)
