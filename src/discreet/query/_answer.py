"""Noisy answers to a query: their numbers, their errors, and both as JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.program import Key
from discreet.data.schema import Label
from discreet.query._estimate import CovarianceEstimator, Estimator, SumEstimator
from discreet.query._noisy_integers import NoisyIntegers, distribution_content, read_distribution
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query._shared_sums import (
    CorrelationEstimator,
    DifferenceEstimator,
    DistinctEstimator,
    RatioEstimator,
    ShareEstimator,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswer:
    """What was measured, with noise, for each public key."""

    title: str
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    estimator: Estimator
    parts: tuple[NoisyIntegers, ...]
    independent: bool = False
    """Whether a unit gives at most one row to a group, so that rows are as independent as units."""

    def __post_init__(self) -> None:
        if any(len(key) != len(self.names) for key in self.keys):
            raise InvalidArgument("An answer needs a value for each name in each key.")
        self.estimator.check(self.parts, len(self.keys))

    @property
    def values(self) -> list[int] | list[float]:
        """The published numbers in the order of the keys."""
        return self.estimator.values(self.parts)

    @property
    def std(self) -> list[float] | list[None]:
        """The standard deviation of the noise of each, where it is known."""
        return self.estimator.std(self.parts)

    def interval(
        self, confidence: float, *, sampling: bool = False
    ) -> tuple[list[float], list[float]]:
        """Bounds that hold the answer without noise, each with probability at least ``confidence``.

        With ``sampling`` they hold what the answer estimates in the population.
        """
        if not self.keys:  # a discovery that found none
            return [], []
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        if sampling and not self.independent:
            raise Unsupported(
                "sampling=True needs independent rows, but a unit may have several in a group, and "
                "rows of one unit are alike: use max_rows_per_unit=1 or "
                "max_rows_per_unit_per_group=1."
            )
        return self.estimator.interval(self.parts, inside, sampling=sampling)

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
            "scale": self.estimator.content(),
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
            estimator=read_estimator(content["scale"]),
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


def read_estimator(held: Mapping[str, Any]) -> Estimator:
    """The inverse of an estimator's ``content``."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
    }
    plain = {name: value for name, value in fields.items() if name != "kind"}
    match fields["kind"]:
        case "covariance":
            return CovarianceEstimator(**plain)
        case "correlation":
            return CorrelationEstimator(**plain)
        case "ratio":
            ends = {
                end: None if plain[end] is None else Fraction(plain[end])
                for end in ("lower", "upper")
            }
            return RatioEstimator(**{**plain, **ends})
        case "share":
            return ShareEstimator(**plain)
        case "count_distinct":
            return DistinctEstimator(**plain)
        case "compare":
            mean = read_estimator(plain["mean"])
            if not isinstance(mean, SumEstimator):
                raise InvalidArgument("A difference needs means.")
            return DifferenceEstimator(mean=mean, to=plain["to"])
        case "quantiles":
            plain["q"] = tuple(Fraction(level) for level in plain.pop("levels"))
            return QuantileEstimator(**plain)
        case _:
            return SumEstimator(**fields)
