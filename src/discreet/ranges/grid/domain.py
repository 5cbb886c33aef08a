"""Grids of several ordered axes, workloads of rectangles, and sums over rectangles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeAlias

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats, Ints, floats
from discreet.ranges import domain as domains
from discreet.ranges import workload as axes
from discreet.ranges.domain import LARGEST, Domain, span
from discreet.ranges.workload import Workload, energies, energy

_MOST_LISTED = 1 << 20
_BATCH = 1 << 14

Ends: TypeAlias = tuple[tuple[Ints, Ints], ...]
"""For each axis the first and last cells of rectangles."""


@dataclass(frozen=True, kw_only=True)
class GridDomain:
    """Combine domains into all combinations of their cells.

    Args:
        domains: Domain of each axis.

    Raises:
        InvalidArgument: There is no axis, or there are more than 2**26 cells.

    Examples:
        >>> from discreet import ranges
        >>> axes = (ranges.integers(0, 3), ranges.ordered(["a", "b"]))
        >>> grid = ranges.grid.GridDomain(domains=axes)
        >>> grid.shape
        (4, 2)
    """

    domains: tuple[Domain, ...]

    def __post_init__(self) -> None:
        if not self.domains:
            raise InvalidArgument("domains must list at least one axis.")
        if self.size > LARGEST:
            raise InvalidArgument(f"a grid must have at most {LARGEST} cells, got {self.size}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each axis."""
        return tuple(domain.size for domain in self.domains)

    @property
    def size(self) -> int:
        """Number of all cells."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> tuple[tuple[object, ...], ...]:
        """Labels of the cells of each axis."""
        return tuple(tuple(map(one.label, range(one.size))) for one in self.domains)

    def ends(self, spans: Sequence[Any]) -> Ends:
        """Translate the labels of rectangles into cells.

        Args:
            spans: For each axis a pair (lower, upper) of labels. None stands for a whole axis, and
                in a pair for an open end. Arrays of labels are broadcast against each other and
                make many rectangles.

        Returns:
            First and last cell of each axis, counted from zero.

        Raises:
            InvalidArgument: There is not one pair for each axis, or a label is not in the domain.

        Examples:
            >>> [(int(first), int(last)) for first, last in grid.ends([(0, 1), None])]
            [(0, 1), (0, 1)]
        """
        if len(spans) != len(self.domains):
            raise InvalidArgument(
                f"a rectangle needs a pair of ends for each of {len(self.domains)} axes, "
                f"got {len(spans)}; None stands for a whole axis."
            )
        found: list[Ints] = []
        for one, domain in zip(spans, self.domains, strict=True):
            found += span(domain, *_pair(one))
        try:
            both = np.broadcast_arrays(*found)
        except ValueError:
            raise InvalidArgument("rectangles need as many ends on every axis.") from None
        return tuple(zip(both[0::2], both[1::2], strict=True))

    def content(self) -> list[dict[str, Any]]:
        """Return the domain as JSON-compatible data.

        Returns:
            One dictionary for each axis.

        Examples:
            >>> grid.content()[0]
            {'kind': 'integers', 'lower': 0, 'upper': 3}
        """
        return [domain.content() for domain in self.domains]

    def __str__(self) -> str:
        return " by ".join(str(domain) for domain in self.domains)


def read_grid(content: Sequence[dict[str, Any]]) -> GridDomain:
    """The inverse of ``content``."""
    return GridDomain(domains=tuple(domains.read(one) for one in content))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductWorkload:
    """A range of each axis, chosen independently; one workload stands for all axes."""

    name: str
    axes: tuple[Workload, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalWorkload:
    """Totals of the rows and of the columns (of each cell of each axis); axes equally likely."""

    name: str = "marginals"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True, eq=False)
class RectangleWorkload:
    """Rectangles of cells that are listed, with weights."""

    first: Ints
    """One row for each rectangle, one column for each axis."""
    last: Ints
    weights: Floats

    def ends(self) -> Ends:
        """By axis."""
        return tuple(zip(self.first.T, self.last.T, strict=True))

    def __str__(self) -> str:
        return f"{len(self.first)} listed rectangles"


GridWorkload: TypeAlias = ProductWorkload | MarginalWorkload | RectangleWorkload


def all_rectangles() -> ProductWorkload:
    """Weight every rectangle equally.

    Returns:
        A workload for `plan_grid`.

    Examples:
        >>> str(ranges.grid.all_rectangles())
        'all rectangles'
    """
    return ProductWorkload(name="all rectangles", axes=(axes.all_ranges(),))


def points() -> ProductWorkload:
    """Weight every single cell equally.

    Returns:
        A workload for `plan_grid`.

    Examples:
        >>> isinstance(ranges.grid.points(), type(ranges.grid.all_rectangles()))
        True
    """
    return ProductWorkload(name="single cells", axes=(axes.points(),))


def marginals() -> MarginalWorkload:
    """Weight the totals of each axis (marginals) equally.

    Returns:
        A workload for `plan_grid`.

    Examples:
        >>> str(ranges.grid.marginals())
        'marginals'
    """
    return MarginalWorkload()


def product(*workloads: Workload) -> ProductWorkload:
    """Combine a workload for each axis.

    For example, short ranges of days by single regions.

    Args:
        workloads: Workload of each axis, such as `ranges.workload.short()`.

    Returns:
        A workload for `plan_grid`.

    Raises:
        InvalidArgument: No workload is given, or one is no workload of an axis.

    Examples:
        >>> str(ranges.grid.product(ranges.workload.short(), ranges.workload.points()))
        'ranges of at most 16 by points'
    """
    if not workloads:
        raise InvalidArgument("workloads must name at least one axis.")
    return ProductWorkload(name=" by ".join(map(str, workloads)), axes=workloads)


def rectangles(
    listed: Sequence[Sequence[tuple[int, int]]], *, weights: Sequence[float] | None = None
) -> RectangleWorkload:
    """List the rectangles that matter.

    Args:
        listed: Rectangles of cells: for each one a pair (first, last) for every axis, both
            included, counted from zero.
        weights: Weight of each rectangle, not negative. If None, all are equal.

    Returns:
        A workload for `plan_grid`.

    Raises:
        InvalidArgument: A rectangle is reversed or has another number of axes, or a weight is
            negative.

    Examples:
        >>> str(ranges.grid.rectangles([[(0, 1), (0, 0)]]))
        '1 listed rectangles'
    """
    if not 0 < len(listed) <= _MOST_LISTED:
        raise InvalidArgument(f"listed must hold 1 .. {_MOST_LISTED} rectangles.")
    try:
        ends = np.array(listed)
    except ValueError:
        raise InvalidArgument("listed rectangles must all have the same axes.") from None
    if ends.ndim != 3 or ends.shape[2] != 2 or ends.dtype.kind not in "iu":
        raise InvalidArgument("a listed rectangle is a pair of whole numbers for each axis.")
    if (ends < 0).any() or (ends[..., 0] > ends[..., 1]).any():
        raise InvalidArgument("a listed rectangle must not be reversed, or start below zero.")
    given = np.ones(len(ends)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != ends.shape[:1] or not np.isfinite(given).all() or (given < 0).any():
        raise InvalidArgument("weights must be as many as rectangles, finite, not negative.")
    if given.sum() <= 0:
        raise InvalidArgument("weights must not all be zero.")
    whole: Ints = ends.astype(np.int64)
    return RectangleWorkload(first=whole[..., 0], last=whole[..., 1], weights=given / given.sum())


def check_workload(workload: GridWorkload, shape: tuple[int, ...]) -> None:
    """Refuse a workload of other axes, or of cells outside the grid."""
    match workload:
        case ProductWorkload() if len(workload.axes) not in (1, len(shape)):
            raise InvalidArgument(
                f"the workload names {len(workload.axes)} axes, the grid has {len(shape)}."
            )
        case RectangleWorkload():
            if workload.first.shape[1] != len(shape):
                raise InvalidArgument(
                    f"listed rectangles have {workload.first.shape[1]} axes, "
                    f"the grid has {len(shape)}."
                )
            if (workload.last >= np.array(shape)).any():
                raise InvalidArgument("a listed rectangle ends outside the grid.")


def on_axes(workload: GridWorkload, shape: tuple[int, ...]) -> tuple[Workload, ...]:
    """The workload of each axis by itself."""
    match workload:
        case ProductWorkload():
            return workload.axes if len(workload.axes) == len(shape) else workload.axes * len(shape)
        case MarginalWorkload():
            return tuple(_marginal_axis(size, len(shape)) for size in shape)
        case RectangleWorkload():
            check_workload(workload, shape)
            return tuple(
                axes.ranges(list(zip(a.tolist(), b.tolist(), strict=True)), weights=list(weights))
                for (a, b) in workload.ends()
                for weights in [workload.weights]
            )


def mean_energies(
    workload: GridWorkload, shape: tuple[int, ...], blocks: Sequence[Sequence[int]]
) -> Floats:
    """The mean over a workload of the product of the axes' energies, for all block sizes (F40).

    ``blocks`` are block sizes of each axis; entry (i, j, ...) belongs to boxes with these sides.
    """
    check_workload(workload, shape)
    match workload:
        case ProductWorkload():
            each = [
                energies(one, size, sizes)
                for one, size, sizes in zip(on_axes(workload, shape), shape, blocks, strict=True)
            ]
            return reduce(np.multiply.outer, each)
        case MarginalWorkload():
            parts = []
            for axis in range(len(shape)):
                each = [
                    energies(axes.points() if k == axis else _whole(size), size, sizes)
                    for k, (size, sizes) in enumerate(zip(shape, blocks, strict=True))
                ]
                parts.append(reduce(np.multiply.outer, each))
            return floats(np.mean(parts, axis=0))
        case RectangleWorkload():
            found = np.zeros([len(sizes) for sizes in blocks])
            for start in range(0, len(workload.weights), _BATCH):
                part = slice(start, start + _BATCH)
                held = workload.weights[part]
                for axis, ((a, b), sizes) in enumerate(zip(workload.ends(), blocks, strict=True)):
                    here = np.stack([energy(a[part], b[part], size) for size in sizes], axis=1)
                    held = held[..., None] * here.reshape(len(here), *[1] * axis, -1)
                found += held.sum(axis=0)
            return found


def _marginal_axis(size: int, number: int) -> Workload:
    """Of all marginals, one in ``number`` asks for single cells of an axis, the others for all."""
    ends = [(cell, cell) for cell in range(size)] + [(0, size - 1)]
    return axes.ranges(ends, weights=[1 / size] * size + [number - 1])


def _whole(size: int) -> Workload:
    return axes.ranges([(0, size - 1)])


def _pair(one: Any) -> tuple[Any, Any]:
    if one is None:
        return None, None
    try:
        lower, upper = one
    except (TypeError, ValueError):
        raise InvalidArgument(
            "a rectangle needs a pair (lower, upper) for each axis, or None."
        ) from None
    return lower, upper


def listed_rectangles(workload: GridWorkload, shape: tuple[int, ...]) -> tuple[Ends, Floats]:
    """Every rectangle of a workload with its weight: for small grids and for tests."""
    check_workload(workload, shape)
    match workload:
        case RectangleWorkload():
            return workload.ends(), workload.weights
        case ProductWorkload():
            return _crossed(
                [
                    axes.listed(one, size)
                    for one, size in zip(on_axes(workload, shape), shape, strict=True)
                ]
            )
        case MarginalWorkload():
            found = [
                _crossed(
                    [
                        axes.listed(axes.points() if k == axis else _whole(size), size)
                        for k, size in enumerate(shape)
                    ]
                )
                for axis in range(len(shape))
            ]
            ends = tuple(
                (
                    np.concatenate([one[0][k][0] for one in found]),
                    np.concatenate([one[0][k][1] for one in found]),
                )
                for k in range(len(shape))
            )
            return ends, np.concatenate([one[1] for one in found]) / len(shape)


def _crossed(each: Sequence[tuple[Ints, Ints, Floats]]) -> tuple[Ends, Floats]:
    number = check.count("rectangles", math.prod(len(one[2]) for one in each))
    if number > _MOST_LISTED:
        raise InvalidArgument(
            f"the workload has {number} rectangles, more than {_MOST_LISTED}: list fewer."
        )
    places = np.indices([len(one[2]) for one in each]).reshape(len(each), -1)
    ends = tuple((a[at], b[at]) for (a, b, _), at in zip(each, places, strict=True))
    weights = [part[at] for (_, _, part), at in zip(each, places, strict=True)]
    return ends, reduce(np.multiply, weights)


def corners(cells: Floats) -> Floats:
    """The summed-area table: the answer to every rectangle that starts at the origin."""
    found = np.zeros([size + 1 for size in cells.shape])
    inner = cells
    for axis in range(cells.ndim):
        inner = np.cumsum(inner, axis=axis)
    found[(slice(1, None),) * cells.ndim] = inner
    return found


def signed_sums(table: Floats, ends: Ends) -> Floats:
    """The answers to rectangles: signed sums of the corners of each."""
    found: Floats = np.zeros(np.shape(ends[0][0]))
    number = len(ends)
    for corner in range(1 << number):
        lower = [bool(corner >> axis & 1) for axis in range(number)]
        at = tuple(a if low else b + 1 for (a, b), low in zip(ends, lower, strict=True))
        found = found + (-1) ** sum(lower) * table[at]
    return found
