"""Grids: several ordered axes, and workloads of rectangles on them."""

from discreet.ranges.grid.domain import (
    GridDomain,
    all_rectangles,
    marginals,
    points,
    product,
    rectangles,
)

__all__ = ["GridDomain", "all_rectangles", "marginals", "points", "product", "rectangles"]
