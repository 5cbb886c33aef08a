"""Several outputs at once: ranges for each, or one ball around the surrogates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.blackbox.lipschitz_fit import Extension
from discreet.models.blackbox.metrics import Floats, Ints
from discreet.models.blackbox.output_ranges import (
    OutputRanges,
    clip_to_range,
    exponent_of,
    power_of_two,
)

Norm: TypeAlias = Literal["l1", "l2"]

_BEYOND = 2.0**30


class VectorClip:
    """Ranges for each of several outputs, all in whole steps of their own."""

    # Theorem: what `clip` returns changes by at most `l1` in the sum of absolute differences and
    #   by at most the root of `l2_squared` in the Euclidean norm.
    # Proof: coordinate j changes by at most its width, for the same pair of neighbors. Values are
    #   made whole before they are clipped, so that rounding adds nothing. A45.

    def __init__(self, parts: Sequence[OutputRanges]) -> None:
        if not parts or len({part.relation_words for part in parts}) != 1:
            raise InvalidArgument("parts must be ranges under one relation, at least one.")
        self.parts = tuple(parts)

    @property
    def l1(self) -> int:
        """The largest sum of absolute changes, in steps."""
        return sum(part.width for part in self.parts)

    @property
    def l2_squared(self) -> int:
        """The largest sum of squared changes, in squared steps."""
        return sum(part.width**2 for part in self.parts)

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """Lowest and highest allowed values: (inputs, outputs)."""
        ends = [part.ranges(inputs) for part in self.parts]
        return np.stack([low for low, _ in ends], axis=1), np.stack([up for _, up in ends], axis=1)

    def clip(self, values: ArrayLike, inputs: ArrayLike) -> Ints:
        """Values (inputs, outputs) in whole steps, each inside its range."""
        low, high = self.ranges(inputs)
        floats = np.asarray(values, dtype=np.float64)
        if floats.shape != low.shape:
            raise OutOfDomain(f"values must have shape {low.shape}: (inputs, outputs).")
        columns = [
            clip_to_range(floats[:, j], low[:, j], high[:, j], step=part.step)
            for j, part in enumerate(self.parts)
        ]
        return np.stack(columns, axis=1)


class BallClip:
    """Outputs within a ball around their surrogates, in a norm, in whole steps."""

    # Theorem: what `clip` returns changes by at most the norm of the slopes plus twice the radius
    #   between inputs at distance at most one: `sum(slopes) + 2 radius` in l1, the root of
    #   `sum(slopes^2)` plus `2 radius` in l2.
    # Proof: the surrogates are whole and each changes by at most its slope; the deviations are
    #   whole and of norm at most the radius, because they are scaled with whole numbers toward
    #   zero. The triangle inequality adds the three. Flooring real vectors instead could add a step
    #   for each output: nothing here is floored after it was bounded. A45.

    def __init__(
        self, surrogates: Sequence[Extension], *, radius: int, norm: Norm = "l1", step: Number = 1
    ) -> None:
        if not surrogates or len({one.metric for one in surrogates}) != 1:
            raise InvalidArgument("surrogates must share one metric, and be at least one.")
        if norm not in ("l1", "l2"):
            raise InvalidArgument(f"norm must be 'l1' or 'l2', got {norm!r}.")
        self.surrogates = tuple(surrogates)
        self.radius = count("radius", radius, minimum=0)
        if self.radius > _BEYOND:
            raise InvalidArgument("radius must be at most 2**30 steps: use a larger step.")
        self.norm: Norm = norm
        self.step = power_of_two(step)

    @property
    def l1(self) -> int:
        """The largest sum of absolute changes, in steps."""
        slopes = sum(one.slope for one in self.surrogates)
        # In p outputs the l1 norm is at most the root of p times the l2 norm.
        spread = self.radius if self.norm == "l1" else _root_up(len(self.surrogates), self.radius)
        return slopes + 2 * spread

    @property
    def l2(self) -> int:
        """The largest Euclidean change, in steps, rounded up (the l2 norm never exceeds the l1)."""
        total = sum(one.slope**2 for one in self.surrogates)
        return _ceil_root(total) + 2 * self.radius

    def clip(self, values: ArrayLike, inputs: ArrayLike) -> Ints:
        """Values (inputs, outputs) in whole steps; what holds no number becomes its surrogate."""
        centers = np.stack([one.middle(inputs) for one in self.surrogates], axis=1)
        floats: Floats = np.asarray(values, dtype=np.float64)
        if floats.shape != centers.shape:
            raise OutOfDomain(f"values must have shape {centers.shape}: (inputs, outputs).")
        finite = np.isfinite(floats).all(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            steps = np.floor(np.ldexp(floats, -exponent_of(self.step))) - centers
            away = np.clip(np.nan_to_num(steps), -_BEYOND, _BEYOND).astype(np.int64)
        return centers + np.where(finite, self._shrunk(away), 0)

    def _shrunk(self, away: Ints) -> Ints:
        """Whole deviations scaled into the ball, toward zero."""
        sizes = [
            sum(abs(int(x)) for x in row)
            if self.norm == "l1"
            else _ceil_root(sum(int(x) ** 2 for x in row))
            for row in away
        ]
        size = np.maximum(np.array(sizes, dtype=np.int64), 1)[:, None]
        scaled = np.sign(away) * (np.abs(away) * self.radius // size)
        # A root that was rounded up says "outside" only if it is: whole radius, whole square.
        return np.where(size <= self.radius, away, scaled)


def _ceil_root(square: int) -> int:
    root = math.isqrt(square)
    return root if root * root == square else root + 1


def _root_up(outputs: int, radius: int) -> int:
    return _ceil_root(outputs * radius * radius)
