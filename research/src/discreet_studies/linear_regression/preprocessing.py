"""Pre-processing as published: how rows become rows of length at most one (K16 to K24, K35).

Everything here uses exact statistics of the data, as the thesis does. Nothing here is private; the
sets are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from discreet.noise.distribution import Floats

Kind: TypeAlias = Literal["row", "row with y", "max", "ball"]
When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """How regressors and target are scaled, and from which rows the scales are taken."""

    kind: Kind = "row"
    when: When = "after"
    """Statistics of all rows (Wang 2018) or of the training rows (Kalaja 2020)."""
    intercept: bool = False
    clip: float | None = None
    """Largest value of a column, in deviations above its mean (K22)."""
    clip_test: bool = False
    """Whether rows that are predicted are clipped, too (K23)."""
    radius: float = 1.0
    """Of the ball, in units of the root of the number of columns (K35)."""
    project_test: bool = True


class RowSplit(NamedTuple):
    """Training and test rows after the map, targets in units of the largest."""

    x: Floats
    y: Floats
    test_x: Floats
    test_y: Floats


class Scales(NamedTuple):
    """Mean and deviation of each column."""

    mean: Floats
    deviation: Floats


def scales(x: Floats) -> Scales:
    """K16; a constant column has deviation 1."""
    deviation = x.std(axis=0, ddof=1)
    return Scales(x.mean(axis=0), np.where(deviation > 0, deviation, 1.0))


def standardized(x: Floats, by: Scales) -> Floats:
    """Columns in deviations from their means."""
    return (x - by.mean) / by.deviation


def mapped(rows: RowSplit, every: tuple[Floats, Floats], how: Map) -> RowSplit:
    """Training and test rows after pre-processing; ``every`` row and target for "before"."""
    x, test_x = rows.x, rows.test_x
    if how.clip is not None:
        top = x.mean(axis=0) + how.clip * x.std(axis=0, ddof=1)
        x = np.minimum(x, top)
        test_x = np.minimum(test_x, top) if how.clip_test else test_x
    by = scales(every[0] if how.when == "before" else x)
    unit = float(np.abs(every[1] if how.when == "before" else rows.y).max())
    z, test_z = standardized(x, by), standardized(test_x, by)
    if how.intercept:
        z, test_z = with_ones(z), with_ones(test_z)
    y, test_y = rows.y / unit, rows.test_y / unit
    match how.kind:
        case "row":
            return RowSplit(row_normed(z), y, row_normed(test_z), test_y)
        case "row with y":
            # The absolute value is missing in the thesis (M12); a zero row keeps its target.
            norms = np.where(lengths(z) > 0, lengths(z), 1.0)
            unit_too = float(np.abs(y / norms).max())
            return RowSplit(row_normed(z), y / norms / unit_too, unit_too * test_z, test_y)
        case "max":
            largest = float(lengths(z).max())
            return RowSplit(z / largest, y, test_z / largest, test_y)
        case "ball":
            radius = how.radius * np.sqrt(z.shape[1])
            seen = projected(test_z / radius) if how.project_test else test_z / radius
            return RowSplit(projected(z / radius), y, seen, test_y)


def with_ones(z: Floats) -> Floats:
    """A column of ones in front."""
    return np.column_stack((np.ones(len(z)), z))


def lengths(z: Floats) -> Floats:
    """Of the rows."""
    return np.asarray(np.linalg.norm(z, axis=1), dtype=np.float64)


def row_normed(z: Floats) -> Floats:
    """K17: every row has length 1, or 0."""
    norms = lengths(z)
    return z / np.where(norms > 0, norms, 1.0)[:, None]


def projected(z: Floats) -> Floats:
    """K35: rows outside of the unit ball are brought to its surface."""
    return z / np.maximum(lengths(z), 1.0)[:, None]
