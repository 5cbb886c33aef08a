"""Which ranges, how wide, with which distance: chosen on public data alone.

Every method is fitted to some public inputs and judged on others, by the error of what would be
released: clipping, noise and all. A public constant and one window for all inputs always take
part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import short
from discreet.mechanisms.scalar._base import mean_absolute
from discreet.models._model_inputs import Floats
from discreet.models.blackbox.examples import NoisyValuePosterior, constant_error, noise_nodes
from discreet.models.blackbox.interval_fit import IntervalClip
from discreet.models.blackbox.lipschitz_fit import TubeClip, fit_centers
from discreet.models.blackbox.mechanism import distribution_of, make_noise
from discreet.models.blackbox.metrics import ONE, Adjacency, Metric, UnitCount
from discreet.models.blackbox.output_ranges import (
    ConstantRange,
    DeclaredSensitivityRange,
    LeaveOneOutRange,
    OutputRanges,
    to_steps,
)
from discreet.models.blackbox.surrogates import (
    AdditiveClip,
    CountTube,
    SumClip,
    TreeClip,
    TreeLeaves,
    leaves_of,
)
from discreet.noise.distribution import Ints

# ── Methods ──────────────────────────────────────────────────────────────────────────────────────
# Ways to make ranges from public pairs, each with its parameters fixed (A30-A38).


class RangeMethod(Protocol):
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

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """Ranges from public inputs and what the function says about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantMethod:
    """The median of public outputs, whatever the input is: no noise and no cost (S = 0)."""

    step: Fraction
    width: int = 0
    name: str = "constant"

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """The median, as a window of one point."""
        del inputs
        middle = int(to_steps(np.array([np.median(said)]), self.step)[0])
        return ConstantRange(low=middle, high=middle, step=self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantWindowMethod:
    """One window for all inputs: plain clipping, with noise for its length."""

    width: int
    step: Fraction
    name: str = "constant window"

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """The window that cuts off least."""
        del inputs
        return ConstantRange.fit(said, width=self.width, step=self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSensitivityMethod:
    """The function as it is, with noise for a sensitivity that is known."""

    width: int
    step: Fraction
    name: str = "known sensitivity"

    @classmethod
    def of(cls, sensitivity: Number) -> KnownSensitivityMethod:
        """Steps so fine that what rounding adds is below a four thousandth."""
        step = Fraction(2) ** (math.frexp(float(sensitivity))[1] - 13)
        return cls(width=math.ceil(Fraction(sensitivity) / step) + 1, step=step)

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """The same, whatever the public inputs are."""
        del inputs, said
        return DeclaredSensitivityRange(width=self.width, step=self.step)


@lru_cache(maxsize=16)
def _distances(metric: Metric, held: bytes, shape: tuple[int, ...]) -> Floats:
    """Distances of all pairs: the same for every sensitivity and slope that is tried."""
    inputs = np.frombuffer(held).reshape(shape)
    return metric.distances(inputs, inputs) / ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class LipschitzMethod:
    """Centers on public anchors, and ranges around their extension.

    Where a neighbor changes a record, a range is what all other records allow; for finer
    neighbors it is a tube around the extension.
    """

    metric: Metric
    slope: int
    """How far centers may differ at distance one, in steps; at most the width."""
    width: int
    step: Fraction
    describes: str
    """The metric, for people."""

    @property
    def name(self) -> str:
        """The metric, and the slope as a share of the width."""
        kind = "leave-one-out" if self.metric.record_like else "tube"
        return (
            f"{kind}, {self.describes}, slope "
            f"{short(self.slope / self.width, digits=3)} of the width"
        )

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """Centers of least loss outside the tube, then the ranges."""
        centers = fit_centers(
            to_steps(said, self.step),
            _distances(self.metric, inputs.tobytes(), inputs.shape),
            self.slope,
            loss="tube",
            tube=(self.width - self.slope) / 2,
        ).centers
        kind = LeaveOneOutRange if self.metric.record_like else TubeClip
        return kind(
            anchors=inputs,
            centers=np.rint(centers).astype(np.int64),
            slope=self.slope,
            width=self.width,
            metric=self.metric,
            step=self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFitMethod:
    """Ranges fitted directly at the anchors, cell by cell."""

    metric: Metric
    width: int
    step: Fraction
    describes: str

    @property
    def name(self) -> str:
        """The cells."""
        return f"fitted ranges, {self.describes}"

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """Ranges that public outputs leave least; their proof is checked in integers."""
        return IntervalClip.fitted(
            anchors=inputs,
            y=to_steps(said, self.step),
            width=self.width,
            metric=self.metric,
            step=self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEnvelopeMethod:
    """Ranges around a tree, or around the mean of trees, from their leaves alone."""

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
        return f"envelope of {many}, slope {short(self.slope / self.width, digits=3)} of the width"

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """No data are needed: slope and width are split over the trees."""
        del inputs, said
        many = len(self.trees)
        terms = []
        for at, tree in enumerate(self.trees):
            boxes, values = _leaves(tree, tree.tree_, self.shape)
            terms.append(
                TreeClip(
                    boxes=boxes,
                    centers=to_steps((values - self.origin) / many, self.step),
                    slope=self.slope * (at + 1) // many - self.slope * at // many,
                    width=self.width * (at + 1) // many - self.width * at // many,
                    step=self.step,
                )
            )
        return terms[0] if many == 1 else SumClip(terms)


@lru_cache(maxsize=512)
def _leaves(tree: Any, nodes: Any, shape: tuple[int, int]) -> tuple[TreeLeaves, Floats]:
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


PIECES = 4
MOST_COLUMNS = 24
"""With more entries to an input than this, positions share their curves, or fits take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveMethod:
    """Contributions of the records, added up, or curves of counts."""

    metric: Metric
    slope: int
    """How far one record, or one event, may move the sum, in steps; at most the width."""
    width: int
    step: Fraction
    shared: bool = False
    """Whether all positions contribute alike: for what does not depend on the order."""
    pieces: int = PIECES

    @property
    def name(self) -> str:
        """What is added up, and the slope as a share of the width."""
        alike = "alike" if self.shared else "by position"
        kind = f"sum of records, {alike}" if self.metric.record_like else "sum of counts"
        return f"{kind}, slope {short(self.slope / self.width, digits=3)} of the width"

    def build(self, inputs: Floats, said: Floats) -> OutputRanges:
        """The sum of least loss outside the tube, then the ranges."""
        y = to_steps(said, self.step)
        if not self.metric.record_like:
            return CountTube.fitted(
                inputs=inputs,
                y=y,
                slope=self.slope,
                width=self.width,
                step=self.step,
                pieces=self.pieces,
                missing=self.metric.missing,
            )
        return AdditiveClip.fitted(
            inputs=inputs,
            y=y,
            slope=self.slope,
            width=self.width,
            metric=self.metric,
            step=self.step,
            pieces=self.pieces,
            shared=self.shared,
        )


def additive_methods(
    metric: Metric, sensitivities: list[tuple[int, Fraction]], *, columns: int
) -> list[AdditiveMethod]:
    """Sums in all these widths, as steep as the width; by position only where that is quick."""
    kinds = [False] if not metric.record_like else [True, False][: 1 + (columns <= MOST_COLUMNS)]
    if not metric.record_like and columns > MOST_COLUMNS:
        return []
    return [
        AdditiveMethod(metric=metric, slope=width, width=width, step=step, shared=shared)
        for shared in kinds
        for width, step in sensitivities
    ]


# ── Choice ───────────────────────────────────────────────────────────────────────────────────────


STEPS = 512
"""Steps of the widest part of an octave of sensitivities; widths are whole multiples of an eighth
of it, so that few laws of noise are needed."""
OCTAVES = 7
SHARES = (1.0, 0.5)
WIDTHS = (0.125, 0.25, 0.5, 1.0)
CELLS = (3, 6)
FOLDS = 5
FINALISTS = 6
MAX_ERROR_RATIO = 0.99
"""What costs budget must be better than a public constant, by more than chance."""
_FIRST_LOOK = 240
_SECOND_LOOK = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How a candidate did on public inputs that it was not fitted to."""

    candidate: RangeMethod
    error: float
    """Mean absolute difference of what would be released and what the function says."""
    bias: float
    noise: float
    pairs: tuple[Ints, Floats]
    """Clipped answers, in steps, and what the function said."""
    estimates: bool
    """Whether the estimate from public pairs beats the noisy number itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionTask:
    """Public inputs and outputs, neighbors, and the budget of one answer."""

    inputs: Floats
    said: Floats
    adjacency: Adjacency
    epsilon: Number
    delta: Number = 0
    post_process: bool = True

    def part(self, rows: Ints) -> SelectionTask:
        """Some of the inputs."""
        return replace(self, inputs=self.inputs[rows], said=self.said[rows])

    def sample(self, most: int) -> SelectionTask:
        """At most so many of the inputs, always the same ones."""
        if len(self.said) <= most:
            return self
        return self.part(np.random.default_rng(0).permutation(len(self.said))[:most])


def choose(task: SelectionTask, *, extra: Iterable[RangeMethod] = ()) -> list[Score]:
    """All finalists, best first."""
    few = task.sample(_FIRST_LOOK)
    split = _folds(len(few.said), 3)[:1]
    tried = [_tried(few, one, split) for one in (*starters(task), *extra)]
    best = _best((one for one in tried if one is not None), FINALISTS)
    most = task.sample(_SECOND_LOOK)
    folds = _folds(len(most.said), FOLDS)
    known: dict[RangeMethod, Score] = {}

    def judged(one: RangeMethod) -> None:
        found = None if one in known else _tried(most, one, folds)
        if found is not None:
            known[one] = found

    for one in baselines(task):
        judged(one)
    for found in best:
        judged(found.candidate)
    _climb(known, judged)
    ranked = _best(known.values(), len(known))
    free = next(one for one in ranked if one.candidate.width == 0)
    if ranked[0].error > MAX_ERROR_RATIO * free.error:
        return [free, *(one for one in ranked if one is not free)]
    return ranked


def _climb(known: dict[RangeMethod, Score], judged: Callable[[RangeMethod], None]) -> None:
    """From the best one, go on while a neighboring setting is better."""
    for _ in range(6):
        top = _best(known.values(), 1)[0]
        for other in _around(top.candidate):
            judged(other)
        if _best(known.values(), 1)[0] is top:
            return


def _best(scores: Iterable[Score], most: int) -> list[Score]:
    return sorted(scores, key=lambda one: one.error)[:most]


def _around(one: RangeMethod) -> list[RangeMethod]:
    """Wider and narrower by an eighth to a quarter, steeper and flatter."""
    if one.width == 0:
        return []
    widths = [_normal(round(one.width * factor), one.step) for factor in (0.75, 4 / 3)]
    if isinstance(one, ConstantWindowMethod | IntervalFitMethod):
        return [replace(one, width=width, step=step) for width, step in widths]
    if not isinstance(one, LipschitzMethod | AdditiveMethod | TreeEnvelopeMethod):
        return []
    share = one.slope / one.width
    found: list[RangeMethod] = [
        replace(one, width=width, step=step, slope=math.floor(share * width))
        for width, step in widths
    ]
    slopes = {math.floor(other * one.width) for other in (share * 0.75, min(1.0, share / 0.75))}
    return found + [replace(one, slope=slope) for slope in sorted(slopes - {one.slope})]


def _normal(width: int, step: Fraction) -> tuple[int, Fraction]:
    """A width of 512 to 1023 steps, in multiples of an eighth of 512."""
    while width >= 2 * STEPS:
        width, step = width // 2, step * 2
    while width < STEPS:
        width, step = width * 2, step / 2
    unit = STEPS // 8
    return width // unit * unit, step


def _folds(size: int, folds: int) -> list[Ints]:
    """Inputs to judge by, fold by fold."""
    order = np.random.default_rng(1).permutation(size)
    return [np.sort(part) for part in np.array_split(order, min(folds, size))]


def _tried(task: SelectionTask, candidate: RangeMethod, folds: Sequence[Ints]) -> Score | None:
    """The score; None for what cannot be built from these inputs."""
    try:
        return score(task, candidate, folds)
    except (InvalidArgument, NotCertified):
        return None


def score(task: SelectionTask, candidate: RangeMethod, folds: Sequence[Ints]) -> Score:
    """Fit without each fold, clip the fold, and say what a release would cost in error."""
    places, said = [], []
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(task.said)), fold)
        if len(rest) == 0:
            rest = fold
        model = candidate.build(task.inputs[rest], task.said[rest])
        low, high = model.ranges(task.inputs[fold])
        places.append(np.clip(to_steps(task.said[fold], candidate.step), low, high))
        said.append(task.said[fold])
    return _judge(task, candidate, np.concatenate(places), np.concatenate(said))


def _judge(task: SelectionTask, candidate: RangeMethod, places: Ints, said: Floats) -> Score:
    step = float(candidate.step)
    bias = float(np.abs(places * step - said).mean())
    noise = make_noise(candidate.width, epsilon=task.epsilon, delta=task.delta)
    if noise is None:
        return Score(
            candidate=candidate,
            error=constant_error(said) if task.post_process else bias,
            bias=bias,
            noise=0.0,
            pairs=(places, said),
            estimates=False,
        )
    law = distribution_of(noise)
    spread = mean_absolute(law) * step
    noisy = places[:, None] + noise_nodes(law)
    raw, refined = float(np.abs(noisy * step - said[:, None]).mean()), math.inf
    if task.post_process:
        refined = NoisyValuePosterior(clipped=places, said=said, distribution=law).expected_error()
    return Score(
        candidate=candidate,
        error=min(raw, refined),
        bias=bias,
        noise=spread,
        pairs=(places, said),
        estimates=refined < raw,
    )


def baselines(task: SelectionTask) -> list[RangeMethod]:
    """A public constant, and one window for all inputs, in all widths."""
    found: list[RangeMethod] = [ConstantMethod(step=_sensitivities(task)[-1][1])]
    return found + [ConstantWindowMethod(width=w, step=s) for w, s in _sensitivities(task)]


def starters(task: SelectionTask) -> list[RangeMethod]:
    """Where the search begins: baselines, and learned ranges in steps of a factor of two."""
    found = baselines(task)
    widths = _sensitivities(task, count=task.adjacency.level == "count")
    found += additive_methods(_metrics(task)[0][0], widths, columns=task.inputs[0].size)
    for metric, words in _metrics(task):
        for width, step in widths:
            found += [
                LipschitzMethod(
                    metric=metric,
                    slope=math.floor(share * width),
                    width=width,
                    step=step,
                    describes=words,
                )
                for share in SHARES
            ]
    for metric, words in _cells(task):
        found += [
            IntervalFitMethod(metric=metric, width=width, step=step, describes=words)
            for width, step in _sensitivities(task)
        ]
    return found


def tree_methods(
    task: SelectionTask, trees: tuple[Any, ...], *, origin: float
) -> list[RangeMethod]:
    """Ranges around trees, in steps of a factor of two, where one whole record may change."""
    if not trees or task.adjacency.level != "record" or task.adjacency.group > 1:
        return []
    shape = task.inputs.shape[1], task.inputs.shape[2]
    return [
        TreeEnvelopeMethod(
            trees=trees, origin=origin, shape=shape, slope=width, width=width, step=step
        )
        for width, step in _sensitivities(task)
    ]


def _cells(task: SelectionTask) -> list[tuple[Metric, str]]:
    """Cells between quantiles of public inputs, for each attribute."""
    if task.adjacency.metric is not None or task.adjacency.level == "count":
        return []
    if task.adjacency.group > 1:
        return []
    found = []
    for many in CELLS:
        levels = np.arange(1, many) / many
        cuts = [
            np.unique(np.quantile(task.inputs[:, :, j], levels)).tolist()
            for j in range(task.inputs.shape[2])
        ]
        found.append((task.adjacency.cells(cuts), f"{many} cells"))
    return found


def _sensitivities(task: SelectionTask, *, count: bool = False) -> list[tuple[int, Fraction]]:
    """Widths and steps, from the spread of public outputs downwards by factors of two."""
    spread = float(np.ptp(task.said))
    largest = spread if spread > 0 else max(1.0, float(np.abs(task.said).max()))
    top = math.floor(math.log2(largest / STEPS))
    deepest = OCTAVES + (4 if count else 0)
    return [(STEPS, Fraction(2) ** (top - k)) for k in range(-1, deepest)]


def _metrics(task: SelectionTask) -> list[tuple[Metric, str]]:
    """Distances to try: widths as shares of the spread, alike or by what a linear fit weighs."""
    if task.adjacency.metric is not None:
        return [(task.adjacency.metric, "the given distance")]
    if task.adjacency.level == "count":
        return [(UnitCount(), "counted events")]
    spread = np.ptp(task.inputs, axis=(0, 1))
    plain = np.broadcast_to(np.where(spread > 0, spread, 1.0), task.inputs.shape[1:])
    weighed = _weighed(task, plain)
    found = []
    for share in WIDTHS:
        found.append((task.adjacency.truncated(plain * share), f"width {share:g} of the spread"))
        if weighed is not None:
            metric = task.adjacency.truncated(weighed * share)
            found.append((metric, f"width {share:g} of the spread, weighed by position"))
    return found


def _weighed(task: SelectionTask, plain: Floats) -> Floats | None:
    """Narrow where a linear fit of the outputs is steep; None if there is nothing to weigh."""
    flat = task.inputs.reshape(len(task.said), -1)
    scaled = (flat - flat.mean(axis=0)) / plain.ravel()
    gram = scaled.T @ scaled + 1e-3 * len(flat) * np.eye(flat.shape[1]) / flat.shape[1]
    slopes = np.abs(np.linalg.solve(gram, scaled.T @ (task.said - task.said.mean())))
    if flat.shape[1] == 1 or not np.isfinite(slopes).all() or slopes.max() <= 0:
        return None
    shares = np.maximum(slopes / slopes.max(), 0.05)
    if shares.min() > 0.7:
        return None
    widths: Floats = plain / shares.reshape(plain.shape)
    return widths
