"""Tables over all areas: ranks, extensions, output ranges, sensitivities; one pass per axis.

A table has one axis for each position. Two areas are neighbors if they differ in one position: in
any way ("replace"), or by one cell up or down ("step", which is what the traffic example of Aoutouf
2021 used and which protects less than it says).
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats, Ints

Adjacency: TypeAlias = Literal["replace", "step"]
Neighbors: TypeAlias = list[list[list[int]]]
LARGEST_GRAPH = 100_000
"""Areas whose neighbors may be listed."""
_T = TypeVar("_T", bound=np.generic)


def check_adjacency(adjacency: str) -> None:
    """Refuse what is neither."""
    if adjacency not in ("replace", "step"):
        raise InvalidArgument(f"adjacency must be 'replace' or 'step', got {adjacency!r}.")


def spread_min(table: NDArray[Any], cost: float, *, adjacency: Adjacency) -> NDArray[Any]:
    """The smallest of every entry plus ``cost`` for each position on the way to it."""
    check_adjacency(adjacency)
    made = table.copy()
    for axis in range(table.ndim):
        if adjacency == "replace":
            made = np.minimum(made, made.min(axis=axis, keepdims=True) + cost)
            continue
        line = np.moveaxis(made, axis, 0)
        for i in range(1, len(line)):
            line[i] = np.minimum(line[i], line[i - 1] + cost)
        for i in range(len(line) - 2, -1, -1):
            line[i] = np.minimum(line[i], line[i + 1] + cost)
    return made


def ranks(trained: NDArray[np.bool_], *, adjacency: Adjacency = "replace") -> Ints:
    """How many positions every area is away from the nearest trained one (A6)."""
    if not trained.any():
        raise InvalidArgument("At least one area must be trained.")
    start = np.where(trained, 0.0, np.inf)
    return spread_min(start, 1.0, adjacency=adjacency).astype(np.int64)


def extended(values: Floats, slope: float, *, adjacency: Adjacency = "replace") -> Floats:
    """Values on some areas (nan elsewhere) extended to all: the mean of both extreme extensions."""
    # Theorem: for any values it changes by at most `slope` between neighbors; where the values do
    #   already, it keeps them.
    # Proof: a minimum of functions of that slope has that slope, and so have the maximum and the
    #   mean (McShane 1934; A31).
    # Source: A31.
    # Needs: at least one value.
    known = ~np.isnan(values)
    if not known.any():
        raise InvalidArgument("At least one area must have a value.")
    above = spread_min(np.where(known, values, np.inf), slope, adjacency=adjacency)
    below = -spread_min(np.where(known, -values, np.inf), slope, adjacency=adjacency)
    return np.asarray((above + below) / 2)


def around(table: NDArray[_T], axis: int, *, adjacency: Adjacency) -> tuple[NDArray[_T], ...]:
    """Smallest and largest entry among an area and its neighbors along one axis."""
    check_adjacency(adjacency)
    if adjacency == "replace":
        return table.min(axis=axis, keepdims=True), table.max(axis=axis, keepdims=True)
    line = np.moveaxis(table, axis, 0)
    low, high = line.copy(), line.copy()
    for made, pick in ((low, np.minimum), (high, np.maximum)):
        made[1:] = pick(made[1:], line[:-1])
        made[:-1] = pick(made[:-1], line[1:])
    return np.moveaxis(low, 0, axis), np.moveaxis(high, 0, axis)


def widest_gap(centers: Ints, *, adjacency: Adjacency = "replace") -> int:
    """The largest difference between neighbors."""
    gaps = [0]
    for axis in range(centers.ndim):
        low, high = around(centers, axis, adjacency=adjacency)
        gaps.append(int(np.maximum(centers - low, high - centers).max()))
    return max(gaps)


def doubled_ranges(
    centers: Ints, width: int | Ints, *, adjacency: Adjacency = "replace"
) -> tuple[Ints, Ints]:
    """Twice the ends of the output range of every area, in steps (A16): whole numbers.

    On each line the range of the centers is extended on both sides to ``width``; an area has what
    its lines have in common.
    """
    low, high = np.full(centers.shape, -(1 << 62)), np.full(centers.shape, 1 << 62)
    for axis in range(centers.ndim):
        ends = around(centers, axis, adjacency=adjacency)
        middle = ends[0] + ends[1]
        low = np.maximum(low, middle - width)
        high = np.minimum(high, middle + width)
    return low, high


def ranges(centers: Ints, width: int, *, adjacency: Adjacency = "replace") -> tuple[Ints, Ints]:
    """Output ranges in whole steps: both ends rounded down (A16, A43)."""
    # Theorem: under "replace", if every range is non-empty, then what neighbors are clipped to
    #   differs by at most `width` steps, whatever the function. If no gap of the centers exceeds
    #   the width, every range is non-empty and holds its center up to one step.
    # Proof: neighbors a, b share a line and both ranges lie in its interval of length `width`;
    #   `floor(x) - floor(y) <= ceil(x - y)`, and the width is whole. A center is at most half
    #   the width away from the middle of each of its lines.
    # Source: Aoutouf 2021, corrected (A16, A34, A43).
    # Needs: `largest_change` at most `width` and no empty range: checked by `Prototype`.
    low, high = doubled_ranges(centers, width, adjacency=adjacency)
    return low // 2, high // 2


def largest_change(
    low: NDArray[Any], high: NDArray[Any], *, adjacency: Adjacency = "replace"
) -> Any:
    """By how much two neighbors, or two data sets of one area, can differ: exact on integers."""
    worst = (high - low).max()
    for axis in range(low.ndim):
        lows, _ = around(low, axis, adjacency=adjacency)
        _, highs = around(high, axis, adjacency=adjacency)
        worst = max(worst, (high - lows).max(), (highs - low).max())
    return worst


def neighbors(shape: tuple[int, ...], *, adjacency: Adjacency = "replace") -> list[list[list[int]]]:
    """Neighbors of each area by position, as numbers in the order of the table."""
    check_adjacency(adjacency)
    if math.prod(shape) > LARGEST_GRAPH:
        raise InvalidArgument(
            f"A search lists at most {LARGEST_GRAPH} areas: use LooClip, which lists none."
        )
    ids = np.arange(math.prod(shape)).reshape(shape)
    made: Neighbors = []
    for area in np.ndindex(shape):
        lines = []
        for axis, here in enumerate(area):
            line = ids[(*area[:axis], slice(None), *area[axis + 1 :])].tolist()
            near = [v for v in range(len(line)) if v != here]
            if adjacency == "step":
                near = [v for v in near if abs(v - here) == 1]
            lines.append([line[v] for v in near])
        made.append(lines)
    return made


def clipped(values: Floats, low: Floats, high: Floats) -> Floats:
    """Values within their ranges; what is not finite is the middle (A17)."""
    middle = low / 2 + high / 2
    return np.clip(np.where(np.isfinite(values), values, middle), low, high)
