"""How noisy integers are read: the ways that there are, and each as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.query import _estimate as estimate
from discreet.query._estimate import CovarianceEstimator
from discreet.query._measure import SumEstimator
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._quantile_estimate import QuantileEstimator

Reading: TypeAlias = SumEstimator | CovarianceEstimator | QuantileEstimator

_PARTS: Mapping[str, tuple[int, ...]] = {
    "count": (1,),
    "units": (1,),
    "sum": (1, 2),
    "mean": (2,),
    "variance": (3,),
    "covariance": (4,),
}
"""How many parts a kind of answer is read from."""


def verify(reading: Reading, parts: Sequence[NoisyIntegers], *, keys: int) -> None:
    """Refuse parts that do not fit."""
    if isinstance(reading, QuantileEstimator):
        reading.check(parts, keys)
    elif {len(part.values) for part in parts} != {keys} or len(parts) != len(reading.shifts):
        raise InvalidArgument("An answer needs a number of each part for each key.")
    elif len(parts) not in _PARTS.get(
        "covariance" if isinstance(reading, CovarianceEstimator) else reading.kind, ()
    ):
        raise InvalidArgument("An answer needs the parts of its kind.")


def values(reading: Reading, parts: Sequence[NoisyIntegers]) -> list[int] | list[float]:
    """The published numbers in the order of the keys."""
    if isinstance(reading, SumEstimator):
        return estimate.value(reading, parts)
    return reading.values(parts)


def stds(reading: Reading, parts: Sequence[NoisyIntegers]) -> list[float] | list[None]:
    """The standard deviation of the noise of each; quantiles have none that is known."""
    match reading:
        case SumEstimator():
            return estimate.std(reading, parts)
        case CovarianceEstimator():
            return reading.std(parts)
        case QuantileEstimator():
            return [None] * len(values(reading, parts))


def interval(
    reading: Reading, parts: Sequence[NoisyIntegers], confidence: float
) -> tuple[list[float], list[float]]:
    """Bounds that hold the answers without noise, each with probability at least ``confidence``."""
    inside = float(check.probability("confidence", confidence, zero=False, one=False))
    if isinstance(reading, SumEstimator):
        return estimate.interval(reading, parts, inside)
    return reading.interval(parts, inside)


def content(reading: Reading) -> dict[str, Any]:
    """As JSON."""
    match reading:
        case SumEstimator():
            return asdict(reading)
        case CovarianceEstimator():
            return {"kind": "covariance", **asdict(reading)}
        case QuantileEstimator():
            held = {("levels" if name == "q" else name): x for name, x in asdict(reading).items()}
            return {**held, "kind": "quantiles", "levels": list(map(str, reading.q))}


def read(held: Mapping[str, Any]) -> Reading:
    """The inverse of ``content``."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
    }
    match fields["kind"]:
        case "covariance":
            del fields["kind"]
            return CovarianceEstimator(**fields)
        case "quantiles":
            del fields["kind"]
            fields["q"] = tuple(Fraction(level) for level in fields.pop("levels"))
            return QuantileEstimator(**fields)
        case _:
            return SumEstimator(**fields)
