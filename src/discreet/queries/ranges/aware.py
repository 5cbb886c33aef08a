"""Releases whose error depends on the data: answers without a standard deviation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical
from discreet.core.errors import InvalidArgument
from discreet.noise.law import Floats
from discreet.queries.ranges.answers import plain
from discreet.queries.ranges.grid import Grid, corners, read_grid, signed_sums

VERSION = 1
NO_PRIOR_ERROR = "no prior error: it depends on the data, and no interval can be given"


@dataclass(frozen=True, kw_only=True, eq=False)
class AwareRelease:
    """Estimates of the cells of a grid by a mechanism that adapts to the data.

    Part of the error is a bias that nobody can state without the data, so there is no standard
    deviation and no interval here. The guarantee is the same as anywhere else.
    """

    grid: Grid
    cells: Floats
    method: str
    guarantee: Guarantee
    private: bool = True
    """False if the noise came from a seed: for tests and simulations only."""

    def __post_init__(self) -> None:
        self.cells.setflags(write=False)

    @property
    def total(self) -> float:
        """The estimate of everything."""
        return float(self.cells.sum())

    def answer(self, *spans: Any) -> Any:
        """The estimated number of rows: for each axis a pair (lower, upper) of labels, or None."""
        return plain(signed_sums(self._corners, self.grid.ends(spans)))

    def to_json(self) -> str:
        """The whole artefact as text; ``from_json`` reads it back."""
        content = {
            "discreet_aware": VERSION,
            "grid": self.grid.content(),
            "cells": self.cells.ravel().tolist(),
            "method": self.method,
            "guarantee": json.loads(self.guarantee.to_json()),
            "private": self.private,
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> AwareRelease:
        """The artefact of a text."""
        with canonical.reading("a data-aware release"):
            content = json.loads(text)
            if content["discreet_aware"] != VERSION:
                raise InvalidArgument("text is a release of another version.")
            grid = read_grid(content["grid"])
            return cls(
                grid=grid,
                cells=np.array(content["cells"], dtype=np.float64).reshape(grid.shape),
                method=str(content["method"]),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                private=bool(content["private"]),
            )

    def __str__(self) -> str:
        note = "" if self.private else "; made with a seed: not private"
        return (
            f"{self.method} of {self.grid} (total about {self.total:,.0f}; {NO_PRIOR_ERROR}; "
            f"{self.guarantee!r}{note})"
        )

    __repr__ = __str__

    @cached_property
    def _corners(self) -> Floats:
        return corners(self.cells)
