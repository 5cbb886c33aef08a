"""Ways to make ranges from public pairs, each with its parameters fixed (A30-A38)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from discreet.models.inputs import Floats
from discreet.models.learned.constant import Window, to_steps
from discreet.models.learned.envelope import Boxes, SumClip, TreeClip, leaves_of
from discreet.models.learned.extension import TubeClip
from discreet.models.learned.fit import fit_centres
from discreet.models.learned.intervals import IntervalClip
from discreet.models.learned.loo import LooClip
from discreet.models.learned.metrics import ONE, Metric
from discreet.models.learned.ranges import Ranges


class Candidate(Protocol):
    """One way to make ranges; the step and the width are the same whatever it is fitted to."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def width(self) -> int:
        """Sensitivity in steps."""

    @property
    def step(self) -> Fraction:
        """A power of two."""

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """Ranges from public inputs and what the function says about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The median of public outputs, whatever the input is: no noise and no cost (S = 0)."""

    step: Fraction
    width: int = 0
    name: str = "constant"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """The median, as a window of one point."""
        del inputs
        middle = int(to_steps(np.array([np.median(said)]), self.step)[0])
        return Window(low=middle, high=middle, step=self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantWindow:
    """One window for all inputs: plain clipping, with noise for its length."""

    width: int
    step: Fraction
    name: str = "constant window"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """The window that cuts off least."""
        del inputs
        return Window.fit(said, width=self.width, step=self.step)


@lru_cache(maxsize=16)
def _distances(metric: Metric, held: bytes, shape: tuple[int, ...]) -> Floats:
    """Distances of all pairs: the same for every sensitivity and slope that is tried."""
    inputs = np.frombuffer(held).reshape(shape)
    return metric.distances(inputs, inputs) / ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Centres on public anchors, and ranges around their extension.

    Where a neighbour changes a record, a range is what all other records allow (A35); for finer
    neighbours it is a tube around the extension (A37).
    """

    metric: Metric
    slope: int
    """How far centres may differ at distance one, in steps; at most the width."""
    width: int
    step: Fraction
    describes: str
    """The metric, for people."""

    @property
    def name(self) -> str:
        """The metric, and the slope as a share of the width."""
        kind = "leave-one-out" if self.metric.record_like else "tube"
        return f"{kind}, {self.describes}, slope {self.slope / self.width:.3g} of the width"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """Centres of least loss outside the tube, then the ranges."""
        centres = fit_centres(
            to_steps(said, self.step),
            _distances(self.metric, inputs.tobytes(), inputs.shape),
            self.slope,
            loss="tube",
            tube=(self.width - self.slope) / 2,
        ).centres
        kind = LooClip if self.metric.record_like else TubeClip
        return kind(
            anchors=inputs,
            centres=np.rint(centres).astype(np.int64),
            slope=self.slope,
            width=self.width,
            metric=self.metric,
            step=self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Ranges fitted directly at the anchors, cell by cell (A33)."""

    metric: Metric
    width: int
    step: Fraction
    describes: str

    @property
    def name(self) -> str:
        """The cells."""
        return f"fitted ranges, {self.describes}"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """Ranges that public outputs leave least; their proof is checked in integers."""
        return IntervalClip.fitted(
            anchors=inputs,
            y=to_steps(said, self.step),
            width=self.width,
            metric=self.metric,
            step=self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Ranges around a tree, or around the mean of trees, from their leaves alone (A38)."""

    trees: tuple[Any, ...]
    origin: float
    shape: tuple[int, int]
    slope: int
    width: int
    step: Fraction

    @property
    def name(self) -> str:
        """How many trees, and the slope."""
        many = "the tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        return f"envelope of {many}, slope {self.slope / self.width:.3g} of the width"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """No data are needed: slope and width are split over the trees."""
        del inputs, said
        many = len(self.trees)
        terms = []
        for at, tree in enumerate(self.trees):
            boxes, values = _leaves(tree, tree.tree_, self.shape)
            terms.append(
                TreeClip(
                    boxes=boxes,
                    centres=to_steps((values - self.origin) / many, self.step),
                    slope=self.slope * (at + 1) // many - self.slope * at // many,
                    width=self.width * (at + 1) // many - self.width * at // many,
                    step=self.step,
                )
            )
        return terms[0] if many == 1 else SumClip(terms)


@lru_cache(maxsize=512)
def _leaves(tree: Any, nodes: Any, shape: tuple[int, int]) -> tuple[Boxes, Floats]:
    """The leaves, kept as long as the nodes are the same: a tree may be fitted again."""
    del nodes
    return leaves_of(tree, shape)


def trees_of(function: object) -> tuple[Any, ...]:
    """The trees of a tree or forest of scikit-learn; none of anything else.

    What is taken for a forest and is not gets worse ranges, never less privacy.
    """
    if not type(function).__module__.startswith("sklearn."):
        return ()
    if hasattr(function, "tree_"):
        return (function,)
    found = getattr(function, "estimators_", ())
    if "Forest" in type(function).__name__ or "ExtraTrees" in type(function).__name__:
        return tuple(found)
    return ()
