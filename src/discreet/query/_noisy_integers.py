"""Integers that may be seen: measured vectors after noise, and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.core.canonical_json import read_ratio
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.noise.distribution import Distribution
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyIntegers:
    """One measured vector after noise, or one choice for each group (without noise): public."""

    name: str
    values: tuple[int, ...]
    noise: Distribution | None

    @property
    def law(self) -> Distribution:
        """The exact law of the noise."""
        if self.noise is None:
            raise Unsupported("A choice has no noise of its own.")
        return self.noise

    @property
    def floats(self) -> NDArray[np.float64]:
        """As doubles."""
        return np.array(self.values, dtype=np.float64)


def distribution_content(law: Distribution) -> dict[str, str]:
    """The noise as JSON."""
    match law:
        case DiscreteLaplace():
            return {"law": "discrete laplace", "scale": str(law.scale)}
        case DiscreteGaussian():
            return {"law": "discrete gaussian", "variance": str(law.square)}
        case _:
            raise Unsupported(f"{type(law).__name__} has no form in a release.")


def read_distribution(content: Mapping[str, str]) -> DiscreteLaplace | DiscreteGaussian:
    """The inverse of ``distribution_content``."""
    match content["law"]:
        case "discrete laplace":
            return DiscreteLaplace(read_ratio("scale", content["scale"]))
        case "discrete gaussian":
            return DiscreteGaussian(square=read_ratio("variance", content["variance"]))
        case _:
            raise InvalidArgument("text must be a release; its noise has an unknown law.")
