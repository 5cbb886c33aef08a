"""Answers to queries as JSON: keys, noisy integers, and the estimator that reads them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.core.errors import InvalidArgument
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


def answer_content(
    title: str,
    names: Sequence[str],
    keys: Sequence[Key],
    *,
    estimator: Estimator,
    parts: Sequence[NoisyIntegers],
    independent: bool,
) -> dict[str, Any]:
    """What was measured, with noise, for each public key, and how it is read; as JSON."""
    return {
        "title": title,
        "names": list(names),
        "keys": [[_label(label) for label in key] for key in keys],
        "scale": estimator.content(),
        "independent": independent,
        "parts": [
            {
                "name": part.name,
                "noise": None if part.noise is None else distribution_content(part.noise),
                "values": list(part.values),
            }
            for part in parts
        ],
    }


def read_keys(content: Mapping[str, Any]) -> tuple[Key, ...]:
    """The keys of an answer, from its JSON."""
    return tuple([tuple([_read_label(label) for label in key]) for key in content["keys"]])


def read_parts(content: Mapping[str, Any]) -> tuple[NoisyIntegers, ...]:
    """The noisy integers of an answer, from its JSON."""
    return tuple(
        NoisyIntegers(
            name=part["name"],
            noise=None if part["noise"] is None else read_distribution(part["noise"]),
            values=tuple(map(int, part["values"])),
        )
        for part in content["parts"]
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
