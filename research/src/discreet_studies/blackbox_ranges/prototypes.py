"""The two prototypes of Aoutouf 2021: centers by search, ranges, noise. One of them may release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account, reserve_if_charged
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.data_dependent._smooth_noise import laplace_log_density
from discreet.mechanisms.data_dependent.smooth_sensitivity import divergence
from discreet.models.blackbox.certificate import RangeCertificate, certify_table
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet_studies.blackbox_ranges.area_tables import (
    Adjacency,
    around,
    doubled_ranges,
    ranges,
    widest_gap,
)
from discreet_studies.blackbox_ranges.input_partition import InputPartition
from discreet_studies.blackbox_ranges.local_search import SearchResult, SearchTask, search
from discreet_studies.blackbox_ranges.published_search import search_as_published
from discreet_studies.blackbox_ranges.smooth_ranges import smooth_as_published

Mode: TypeAlias = Literal["faithful", "corrected"]
_BEYOND = 2.0**62
STATEMENT = "no DP guarantee"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prototype:
    """The first prototype: listed areas, searched centers, one sensitivity. See `prototype`."""

    # Theorem: `release` is epsilon-DP if one position of the data set is replaced, for every
    #   function.
    # Proof: `ranges` and its certificate over all areas, in whole numbers, which a release demands;
    #   the function's value is made whole before it is clipped; discrete Laplace noise.
    # Source: Aoutouf 2021, corrected (A14, A16, A18, A43, A44).
    # Needs: partition, training data sets and sensitivity public, and not about the people of the
    #   private data set.

    partition: InputPartition
    mode: Mode
    task: SearchTask
    found: SearchResult
    step: Fraction
    """Of centers and ranges: the target sensitivity over the number of training data sets."""
    low: Ints
    high: Ints

    @property
    def width(self) -> int:
        """The target sensitivity in steps."""
        return self.task.width

    @property
    def gap(self) -> Fraction:
        """The largest difference of neighboring centers; the search promises half the width."""
        return widest_gap(self.found.centers, adjacency=self.task.adjacency) * self.step

    def certificate(self) -> RangeCertificate:
        """Whether all ranges of data sets that differ in one position keep to the sensitivity."""
        return certify_table(self.low, self.high, width=self.width)

    def ranges(self, data: ArrayLike) -> tuple[Ints, Ints]:
        """The output range of each data set, in steps: as private as the data set."""
        areas = self.partition.numbers(data)
        return self.low.ravel()[areas], self.high.ravel()[areas]

    def clip(self, values: ArrayLike, data: ArrayLike) -> Ints:
        """Values in steps within the ranges of their data sets; what is no number goes midway."""
        low, high = self.ranges(data)
        held = np.asarray(values, dtype=np.float64)
        with np.errstate(all="ignore"):
            steps = np.clip(np.nan_to_num(np.floor(held / float(self.step))), -_BEYOND, _BEYOND)
        inside = np.clip(steps.astype(np.int64), low, high)
        return np.asarray(np.where(np.isfinite(held), inside, low + (high - low) // 2))

    def error(self, values: ArrayLike, data: ArrayLike) -> float:
        """Mean distance of clipped values from the values themselves: on public data."""
        return float(np.abs(self.clip(values, data) * float(self.step) - np.asarray(values)).mean())

    def noise(self, epsilon: Number) -> AdditiveMechanism:
        """Laplace noise for the certified sensitivity, in steps."""
        self.certificate().demand()
        if self.mode == "faithful":
            raise NotCertified(
                f"{STATEMENT}: the faithful search is for studies; use mode='corrected'."
            )
        return laplace(
            sensitivity=self.width,
            epsilon=epsilon,
            domain="integers",
            relation=NeighboringRelation.REPLACE_ONE,
        )

    def guarantee(self, epsilon: Number) -> Guarantee:
        """What one release costs."""
        return self.noise(epsilon).guarantee

    def release(
        self,
        function: Callable[[Floats], Any],
        data: ArrayLike,
        *,
        epsilon: Number,
        account: Account | None = None,
        rng: RandomSource | None = None,
        label: str = "prototype",
    ) -> float:
        """The function of one private data set, clipped, with noise; paid before it is called."""
        noise, source = self.noise(epsilon), resolve_rng(rng)
        with reserve_if_charged(account, noise.guarantee, label=label, rng=source):
            inside = self.partition.inside(data)
            whole = self.clip([_value(function, inside)], inside[None])
            noisy = noise.release(int(whole[0]), rng=source)
        return float(int(np.asarray(noisy).item()) * self.step)


def _value(function: Callable[[Floats], Any], data: Floats) -> float:
    """What the function says, or nan: an error that depends on private data is not told."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return float(np.asarray(function(data.copy()), dtype=np.float64).reshape(()))
    except BaseException:  # noqa: BLE001 - whatever a black box does, also sys.exit
        return float("nan")


def prototype(  # noqa: PLR0913 - each has a default and a name
    partition: InputPartition,
    *,
    public_inputs: ArrayLike,
    public_outputs: ArrayLike,
    sensitivity: Number,
    mode: Mode = "corrected",
    adjacency: Adjacency = "replace",
    epochs: int = 500,
    patience: int = 2,
    min_change: float = 1e-4,
    steps: int | None = None,
) -> Prototype:
    """Learn centers and ranges from public inputs, as Aoutouf 2021 does.

    ``mode="faithful"`` searches as printed: it may break its constraint, and never releases.
    ``steps`` of the sensitivity: by default the number of public inputs, as published.
    """
    if mode not in ("faithful", "corrected"):
        raise InvalidArgument(f"mode must be 'faithful' or 'corrected', got {mode!r}.")
    outputs = np.asarray(public_outputs, dtype=np.float64)
    areas = partition.numbers(public_inputs)
    if outputs.ndim != 1 or areas.shape != outputs.shape:
        raise InvalidArgument("public_outputs must be one number for each of public_inputs.")
    size = positive("sensitivity", sensitivity)
    width = len(outputs) if steps is None else count("steps", steps, minimum=2)
    step = size / width
    task = SearchTask(
        shape=partition.shape,
        areas=areas,
        targets=outputs / float(step),
        width=width,
        adjacency=adjacency,
        epochs=epochs,
        patience=patience,
        min_change=min_change,
    )
    found = search(task) if mode == "corrected" else search_as_published(task)
    low, high = ranges(found.centers, width, adjacency=adjacency)
    return Prototype(
        partition=partition, mode=mode, task=task, found=found, step=step, low=low, high=high
    )


# ── the second prototype ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvancedAsPublished:
    """Ranges and noise that follow a "smooth" bound per area, as published (A19). Not private.

    It cannot release anything. It says how far from private it is.
    """

    bounds: NDArray[np.object_]
    """Of each area, as fractions: additive where a factor is needed, down to zero."""
    low: Floats
    high: Floats
    epsilon: float
    gamma: Fraction
    is_private: bool = field(default=False, init=False)

    def release(self, *_: object, **__: object) -> float:
        """Refused."""
        raise NotCertified(f"{STATEMENT}: {self.statement}")

    @property
    def statement(self) -> str:
        """Why."""
        return (
            f"between some neighbors the true delta at epsilon {self.epsilon:g} is "
            f"{self.true_delta():.3g}; use SmoothRanges, or one sensitivity for all areas."
        )

    def true_delta(self) -> float:
        """The largest divergence between neighbors: 1 where one has noise and the other none."""
        worst = 0.0
        held = self.bounds.astype(np.float64)
        for axis in range(held.ndim):
            least, most = (np.broadcast_to(one, held.shape) for one in
                           around(held, axis, adjacency="replace"))  # fmt: skip
            pairs = {(round(a, 12), round(b, 12)) for a, b in
                     zip(least.ravel().tolist(), most.ravel().tolist(), strict=True)}  # fmt: skip
            worst = max([worst, *(pair_delta(a, b, epsilon=self.epsilon) for a, b in pairs)])
        return worst


def pair_delta(one: float, other: float, *, epsilon: float, shift: float | None = None) -> float:
    """The exact delta of two neighbors with these bounds and noise ``2 bound / epsilon`` (M1).

    By default at the shift that their ranges allow: the mean of the two bounds.
    """
    narrow, wide = sorted((one, other))
    if narrow <= 0:
        return 0.0 if wide <= 0 else 1.0
    moved = (one + other) / 2 if shift is None else shift
    p, q = (moved, 2 * wide / epsilon), (0.0, 2 * narrow / epsilon)
    return max(
        divergence(laplace_log_density, p, q, epsilon),
        divergence(laplace_log_density, q, p, epsilon),
    )


def advanced_as_published(
    first: Prototype, *, epsilon: float, gamma: Number | None = None, listing: bool = False
) -> AdvancedAsPublished:
    """The second prototype on the centers of the first; ``gamma`` is a fifth of the sensitivity."""
    size = first.width * first.step
    smooth = size / 5 if gamma is None else positive("gamma", gamma)
    centers = first.found.centers
    bounds, _ = smooth_as_published(
        centers, width=size, step=first.step, gamma=smooth, listing=listing,
        adjacency=first.task.adjacency,
    )  # fmt: skip
    whole = np.array([int(one / first.step + Fraction(1, 2)) for one in bounds.ravel()])
    ends = doubled_ranges(centers, whole.reshape(centers.shape), adjacency=first.task.adjacency)
    low, high = (np.asarray(end * (float(first.step) / 2), dtype=np.float64) for end in ends)
    return AdvancedAsPublished(bounds=bounds, low=low, high=high, epsilon=epsilon, gamma=smooth)
