"""Integers that may be seen: measured vectors after noise, and choices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import Unsupported
from discreet.noise.law import Law


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """One measured vector after noise, or one choice for each group (without noise): public."""

    name: str
    values: tuple[int, ...]
    noise: Law | None

    @property
    def law(self) -> Law:
        """The exact law of the noise."""
        if self.noise is None:
            raise Unsupported("A choice has no noise of its own.")
        return self.noise

    @property
    def floats(self) -> NDArray[np.float64]:
        """As doubles."""
        return np.array(self.values, dtype=np.float64)
