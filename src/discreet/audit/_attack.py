"""The statistical audit of a black box: a lower bound on epsilon from samples alone.

Events that distinguish two inputs are learned on one set of outputs and tested on fresh ones. A
violation is shown with the stated probability. A mechanism that passes may still be broken.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.core.tabular import Record
from discreet.query.result import FixedResult, check_confidence, records

# ── Output features
# ──────────────────────────────────────────────────────────────────────────────── Outputs of any
# shape become named columns of numbers. A column is computed on demand and kept: learning uses all
# of them, the final test only those that the chosen events need.


Floats: TypeAlias = NDArray[np.float64]
COORDINATES = 16
"""Coordinates that get columns of their own; longer outputs are also seen as whole rows."""
NO_BIT = 2000.0
"""Stands for the lowest bit of zero: above the exponent of every double."""


@dataclass(frozen=True, slots=True)
class OutputKey:
    """The name of a column: what is computed, of which coordinates."""

    kind: str
    i: int = -1
    j: int = -1

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(k) for k in (self.i, self.j) if k >= 0)])


class OutputColumns:
    """The columns of one batch of outputs.

    Each entry depends on its own output and on nothing else of the batch: an event on a column
    is an event on the output. Coordinates that an output does not have count as zero.
    """

    def __init__(self, outputs: object) -> None:
        self.matrix, self.length = _spread(outputs)
        self._kept: dict[OutputKey, Floats] = {}

    def __len__(self) -> int:
        return len(self.matrix)

    def rows(self, first: int, last: int) -> OutputColumns:
        """The outputs from first up to last."""
        part = object.__new__(OutputColumns)
        part.matrix, part.length = self.matrix[first:last], self.length[first:last]
        part._kept = {}
        return part

    @property
    def keys(self) -> tuple[OutputKey, ...]:
        """The columns worth looking at."""
        width = self.matrix.shape[1]
        kept = range(min(width, COORDINATES))
        whole = bool(np.all(np.isfinite(self.matrix)) and np.all(self.matrix % 1 == 0))
        one = ("value",) if whole else ("value", "lowest bit", "fraction")
        two = ("difference",) if whole else ("difference", "ratio")
        pairs = itertools.combinations(kept, 2) if width <= 4 else itertools.pairwise(kept)
        return (
            OutputKey("length"),
            OutputKey("not finite"),
            *(OutputKey(kind, j) for j in kept for kind in one),
            *((OutputKey("sum"), OutputKey("largest"), OutputKey("row")) if width > 1 else ()),
            *(OutputKey(kind, i, j) for i, j in pairs for kind in two),
        )

    def __getitem__(self, key: OutputKey) -> Floats:
        if key not in self._kept:
            with np.errstate(divide="ignore", invalid="ignore"):
                column = self._column(key)
            self._kept[key] = np.nan_to_num(column, nan=0.0, posinf=1e308, neginf=-1e308)
        return self._kept[key]

    def _column(self, key: OutputKey) -> Floats:
        match key.kind:
            case "length":
                return self.length
            case "not finite":
                return np.asarray(np.sum(~np.isfinite(self.matrix), axis=1), dtype=np.float64)
            case "sum":
                return self._sum(np.ones(self.matrix.shape[1]))
            case "largest":
                inside = np.arange(self.matrix.shape[1]) < self.length[:, None]
                masked = np.where(inside, self.matrix, -np.inf)
                return np.asarray(np.argmax(masked, axis=1), dtype=np.float64)
            case "row":
                # Almost surely one number per distinct row: an irrational direction.
                return self._sum(np.sqrt(np.arange(2.0, self.matrix.shape[1] + 2)) % 1)
            case "lowest bit":
                return lowest_bit(self._value(key.i))
            case "fraction":
                return np.asarray(self._value(key.i) % 1, dtype=np.float64)
            case "difference":
                return self._value(key.i) - self._value(key.j)
            case "ratio":
                return np.asarray(self._value(key.i) / self._value(key.j), dtype=np.float64)
        return self._value(key.i)

    def _value(self, j: int) -> Floats:
        if j >= self.matrix.shape[1]:
            return np.zeros(len(self))
        return np.asarray(self.matrix[:, j], dtype=np.float64)

    def _sum(self, weights: Floats) -> Floats:
        """Coordinate by coordinate: NumPy's own sums may round differently with the width."""
        total = np.zeros(len(self))
        for j, weight in enumerate(weights.tolist()):
            total += np.nan_to_num(self._value(j), nan=-0.5) * weight
        return total


def _spread(outputs: object) -> tuple[Floats, Floats]:
    """One row per output, and its length: numbers stay, symbols are hashed, rows are padded."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        if outputs.ndim == 0:
            raise InvalidArgument("run must return one output per draw, got a single value.")
        if outputs.dtype.kind in "iu" and outputs.size:
            _exact(max(int(outputs.max()), -int(outputs.min())))
        width = math.prod(outputs.shape[1:])
        matrix = np.zeros((len(outputs), max(1, width)))
        matrix[:, :width] = outputs.reshape(len(outputs), width)
        return matrix, np.full(len(matrix), float(width))
    if not isinstance(outputs, (Sequence, np.ndarray)):
        kind = type(outputs).__name__
        raise InvalidArgument(f"run must return an array or a list of outputs, got {kind}.")
    rows = [
        [_number(v) for v in o] if isinstance(o, (tuple, list, np.ndarray)) else [_number(o)]
        for o in outputs
    ]
    padded = np.zeros((len(rows), max([1, *map(len, rows)])))
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded, np.array([float(len(row)) for row in rows])


def lowest_bit(values: Floats) -> Floats:
    """The exponent of the last non-zero bit of each double: 3 has 0, 1/4 has -2, 0 has NO_BIT."""
    finite = np.where(np.isfinite(values), values, 0.0)
    mantissa, exponent = np.frexp(finite)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = whole & -whole
    _, trailing = np.frexp(last.astype(np.float64))
    return np.where(whole == 0, NO_BIT, (exponent - 54 + trailing).astype(np.float64))


def _exact(largest: int) -> None:
    """Whole outputs are looked at as doubles: refuse those whose last bits would be lost."""
    if largest > 2**53:
        raise InvalidArgument(
            "run returned integers beyond 2**53; return them as two columns, high and low part."
        )


def _number(value: object) -> float:
    if isinstance(value, (int, np.integer)):
        _exact(abs(int(value)))
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)):
        return float(value)
    return float(zlib.crc32(repr(value).encode()))


# ── Attack
# ─────────────────────────────────────────────────────────────────────────────────────────


Run: TypeAlias = Callable[[Any, int], object]
"""``run(input, n)`` returns n independent outputs, drawn afresh at every call."""
Cell: TypeAlias = NDArray[np.intp]
EVENTS = 8
LEARN = 100_000
"""Outputs per input on which the scores are fitted; as many again choose the thresholds."""


class HasGuarantee(Protocol):
    """A guarantee that is a whole curve (`discreet.accounting`)."""

    def epsilon(self, delta: float) -> float: ...
    def delta(self, epsilon: float) -> float: ...


Claimed: TypeAlias = "tuple[float, float] | HasGuarantee"


class ClaimPoint(NamedTuple):
    """One point of the claimed curve."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"(epsilon {short(self.epsilon)}, delta {short(self.delta, digits=3)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding(FixedResult):
    """What an attack found.

    ``epsilon`` is a lower bound on the true epsilon at ``claimed.delta``, and ``refuted`` the point
    of the claimed curve that is contradicted most, if any is, by ``event``: an event that has at
    least probability ``at_least`` on one input and at most ``at_most`` on the other. All of this
    is wrong with probability at most ``failure_probability``.
    """

    claimed: ClaimPoint
    epsilon: float
    refuted: ClaimPoint | None
    event: str
    at_least: float
    at_most: float
    samples: int
    failure_probability: float

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the lower bound on the true epsilon.

        Args:
            confidence: One less `failure_probability`, if it is given.

        Returns:
            One record: value, std (None), low (the same bound) and high (infinite).
        """
        check_confidence(confidence, self._confidence)
        bound = [self.epsilon]
        return records((), [()], value=bound, low=bound, high=[math.inf])

    @property
    def _confidence(self) -> float:
        return 1 - self.failure_probability

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.refuted is not None

    def __str__(self) -> str:
        if self.refuted is None:
            return f"{self.claimed} not refuted by {self.samples} outputs (which proves nothing)"
        true = _log_ratio((self.at_least, self.at_most), self.refuted.delta)
        seen = (
            f"probability >= {short(self.at_least, digits=3)} on one input, <= "
            f"{short(self.at_most, digits=3)} on the other"
        )
        return f"{self.refuted} refuted, epsilon >= {short(true)}: {self.event} has {seen}"

    __repr__ = __str__


def attack(
    run: Run,
    left: object,
    right: object,
    *,
    claimed: Claimed,
    samples: int = 1_000_000,
    failure_probability: float = 1e-9,
) -> Finding:
    """Try to refute a claimed guarantee with samples from two neighboring inputs.

    The attack learns events that distinguish the inputs on one part of the outputs, and tests them
    on fresh outputs. A violation is proven up to the failure probability. If no violation is found,
    the mechanism may still violate its claim.

    Args:
        run: Function `(input, n)` that returns n independent outputs, with fresh randomness at
            every call.
        left: Input.
        right: Neighboring input.
        claimed: Claimed guarantee, a `Guarantee` or a pair `(epsilon, delta)`.
        samples: Number of outputs per input on which events are tested, at least 100.
        failure_probability: Largest probability that a true claim is refuted.

    Returns:
        A finding with `broken` (whether the claim is refuted), a lower bound `epsilon`, and the
        `event` that shows it.

    Raises:
        InvalidArgument: A number is outside its range, or `run` does not return n outputs.

    Examples:
        >>> import numpy
        >>> from discreet import audit
        >>> generator = numpy.random.default_rng(1)
        >>> def run(value, n):
        ...     return value + generator.laplace(scale=0.1, size=n)
        >>> audit.attack(run, 0, 1, claimed=(1, 0), samples=1_000).broken
        True

    See Also:
        [Audit a mechanism](../how-to/audit.md).

    References:
        Clopper and Pearson (1934). Gilbert and McMillan (2018). Bichsel et al. (2021).
        [Proof](../theory/theorems.md#audit._attack.attack).
    """
    # Theorem: if the claim holds, the probability that the finding is `broken` is at most failure.
    # Proof: the events are fixed before the outputs they are tested on are drawn. For each of them
    #   the two Clopper-Pearson bounds fail with probability failure / (2 * number of events)
    #   each; when none fails, P(A) <= e^epsilon Q(A) + delta forbids the finding, at every point
    #   of the claimed curve at once.
    # Source: Clopper and Pearson 1934; Gilbert and McMillan 2018; Bichsel et al. 2021 (DP-Sniper).
    # Needs: run returns independent outputs, with fresh randomness at every call.
    samples = count("samples", samples, minimum=100)
    alpha = float(probability("failure_probability", failure_probability, zero=False, one=False))
    points = claim_points(claimed)
    learn = min(LEARN, samples // 2)
    train = [_drawn(run, value, 2 * learn) for value in (left, right)]
    events = _learn(train[0], train[1], points=points, samples=samples, alpha=alpha)
    test = [_drawn(run, value, samples) for value in (left, right)]
    tested = [event.bounds(*test, level=alpha / (2 * len(events))) for event in events]
    best, point = max(
        itertools.product(range(len(events)), points),
        key=lambda pair: _log_ratio(tested[pair[0]], pair[1].delta) - pair[1].epsilon,
    )
    refuted = _log_ratio(tested[best], point.delta) > point.epsilon
    return Finding(
        claimed=points[0],
        epsilon=max(0.0, *(_log_ratio(bounds, points[0].delta) for bounds in tested)),
        refuted=point if refuted else None,
        event=str(events[best]),
        at_least=tested[best][0],
        at_most=tested[best][1],
        samples=samples,
        failure_probability=alpha,
    )


def _drawn(run: Run, value: object, number: int) -> OutputColumns:
    data = OutputColumns(run(value, number))
    if len(data) != number:
        raise InvalidArgument(f"run must return {number} outputs, as asked, got {len(data)}.")
    return data


def claim_points(claimed: Claimed) -> tuple[ClaimPoint, ...]:
    """The points of a claim that are tested; of a curve, several between 0 and its epsilon."""
    if isinstance(claimed, tuple):
        epsilon, delta = claimed
        if not (epsilon >= 0 and 0 <= delta < 1):
            raise InvalidArgument(
                f"claimed must be (epsilon >= 0, delta in [0, 1)), got {claimed}."
            )
        return (ClaimPoint(float(epsilon), float(delta)),)
    if not callable(getattr(claimed, "epsilon", None)):
        raise InvalidArgument(
            f"claimed must be (epsilon, delta) or a guarantee, got {type(claimed).__name__}."
        )
    pure, typical = ClaimPoint(claimed.epsilon(0.0), 0.0), ClaimPoint(claimed.epsilon(1e-6), 1e-6)
    # At delta 0 where that is the point; a finite but much larger epsilon there says little.
    head = pure if pure.epsilon <= 1.1 * typical.epsilon else typical
    if not math.isfinite(head.epsilon):
        return (head,)  # an empty claim: nothing can contradict it
    lower = [head.epsilon * share for share in (0.0, 0.25, 0.5, 0.75)]
    return (head, *(ClaimPoint(e, claimed.delta(e)) for e in lower))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Columns cut into cells, and for each cell the log-likelihood ratio seen in learning."""

    keys: tuple[OutputKey, ...]
    edges: tuple[Floats, ...]
    ratio: Floats

    def __call__(self, data: OutputColumns) -> Floats:
        return np.asarray(self.ratio[_cell(data, self.keys, self.edges)], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Score:
    """A number per output; an event is that it exceeds a threshold.

    The number is the sum of the cells' log-likelihood ratios, or a column as it is.
    """

    of: tuple[_Cells, ...] | OutputKey
    sign: float = 1.0

    def __call__(self, data: OutputColumns) -> Floats:
        if isinstance(self.of, OutputKey):
            return self.sign * data[self.of]
        total = np.zeros(len(data))
        for cells in self.of:
            total += cells(data)
        return self.sign * total

    def __str__(self) -> str:
        if isinstance(self.of, OutputKey):
            name = str(self.of)
        else:
            keys = dict.fromkeys(str(key) for cells in self.of for key in cells.keys)
            name = "likelihood ratio by " + ", ".join(keys)
        return name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Event:
    score: _Score
    threshold: float
    swapped: bool

    def bounds(
        self, left: OutputColumns, right: OutputColumns, *, level: float
    ) -> tuple[float, float]:
        """At least this likely on one input, at most that likely on the other."""
        one, other = (right, left) if self.swapped else (left, right)
        return (
            lower_bound(self._count(one), len(one), level),
            upper_bound(self._count(other), len(other), level),
        )

    def _count(self, data: OutputColumns) -> int:
        return int(np.count_nonzero(self.score(data) > self.threshold))

    def __str__(self) -> str:
        sign = self.score.sign
        beyond = ">" if sign > 0 else "<"
        where = "right" if self.swapped else "left"
        return f"{self.score} {beyond} {short(sign * self.threshold, digits=6)} ({where})"


def lower_bound(hits: int, trials: int, level: float) -> float:
    """Clopper-Pearson: the true probability is below this with probability at most level."""
    return float(betaincinv(hits, trials - hits + 1, level)) if hits > 0 else 0.0


def upper_bound(hits: int, trials: int, level: float) -> float:
    """Clopper-Pearson: the true probability is above this with probability at most level."""
    # By symmetry a lower bound on the complement: no 1 - level, which may round to 1.
    return 1 - lower_bound(trials - hits, trials, level)


def _learn(
    left: OutputColumns,
    right: OutputColumns,
    *,
    points: tuple[ClaimPoint, ...],
    samples: int,
    alpha: float,
) -> list[_Event]:
    """The few events that look best on outputs that did not shape their scores."""
    half = len(left) // 2
    fit = (left.rows(0, half), right.rows(0, half))
    choose = (left.rows(half, 2 * half), right.rows(half, 2 * half))
    z = -float(ndtri(alpha / (2 * EVENTS)))

    def rank(scores: list[_Score]) -> list[tuple[float, _Event]]:
        return _rank(scores, choose, points=points, samples=samples, z=z)

    single = _single(*fit)
    ranked = rank(_scores(single))
    # The columns that tell most, seen two at a time.
    best = list(dict.fromkeys(e.score.of for _, e in ranked if isinstance(e.score.of, OutputKey)))[
        :3
    ]
    joint = [_cells(*fit, keys=pair, most=24) for pair in itertools.combinations(best, 2)]
    ranked += rank([_Score(of=(cells,)) for cells in joint])
    ranked.sort(key=lambda pair: -pair[0])
    return [event for _, event in ranked[:EVENTS]]


def _single(left: OutputColumns, right: OutputColumns) -> list[_Cells]:
    """Every column that is not one constant on both inputs, cut into cells."""
    keys = dict.fromkeys((*left.keys, *right.keys))
    ranges = {
        key: (min(left[key].min(), right[key].min()), max(left[key].max(), right[key].max()))
        for key in keys
    }
    return [_cells(left, right, keys=(key,), most=128) for key, (a, b) in ranges.items() if a < b]


def _scores(single: list[_Cells]) -> list[_Score]:
    values = tuple(cells for cells in single if cells.keys[0].kind == "value")
    of: list[tuple[_Cells, ...] | OutputKey] = [(cells,) for cells in single]
    of += [cells.keys[0] for cells in single]
    of += [values] if len(values) > 1 else []
    # Outputs that never vary are told apart by nothing: one event that always fails.
    return [_Score(of=what) for what in of or [OutputKey("length")]]


def _cells(
    left: OutputColumns, right: OutputColumns, *, keys: tuple[OutputKey, ...], most: int
) -> _Cells:
    edges = tuple(_edges(left[key], right[key], most=most) for key in keys)
    number = math.prod(len(e) + 1 for e in edges)
    # Half a count in every cell: an empty one stays finite.
    a, b = (np.bincount(_cell(data, keys, edges), minlength=number) + 0.5 for data in (left, right))
    return _Cells(keys=keys, edges=edges, ratio=np.log(a / b))


def _cell(data: OutputColumns, keys: tuple[OutputKey, ...], edges: tuple[Floats, ...]) -> Cell:
    cell = np.zeros(len(data), dtype=np.intp)
    for key, borders in zip(keys, edges, strict=True):
        cell = cell * (len(borders) + 1) + np.searchsorted(borders, data[key], side="right")
    return cell


def _rank(
    scores: list[_Score],
    choose: tuple[OutputColumns, OutputColumns],
    *,
    points: tuple[ClaimPoint, ...],
    samples: int,
    z: float,
) -> list[tuple[float, _Event]]:
    """For every score, side and direction the best threshold, and what it promises; best first."""
    ranked = []
    for score in scores:
        values = [np.sort(score(data)) for data in choose]
        cuts = np.union1d(*(_distinct(v) for v in values))
        above = [1 - np.searchsorted(v, cuts, side="right") / len(v) for v in values]
        below = [np.searchsorted(v, cuts, side="left") / len(v) for v in values]
        for sign, shares in ((1.0, above), (-1.0, below)):
            for swapped in (False, True):
                p, q = reversed(shares) if swapped else shares
                gain = _promise(p, q, points=points, samples=samples, z=z)
                best = int(np.argmax(gain))
                event = _Event(
                    score=replace(score, sign=sign),
                    threshold=sign * float(cuts[best]),
                    swapped=swapped,
                )
                ranked.append((float(gain[best]), event))
    ranked.sort(key=lambda pair: -pair[0])
    return ranked


def _distinct(ordered: Floats) -> Floats:
    """Up to 4096 of the different values."""
    values = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return values[:: 1 + len(values) // 4096]


def _promise(
    p: Floats, q: Floats, *, points: tuple[ClaimPoint, ...], samples: int, z: float
) -> Floats:
    """By how much a test of events of these probabilities is expected to pass the claim."""
    low = p - z * np.sqrt(p * (1 - p) / samples)
    high = q + z * np.sqrt(q * (1 - q) / samples) + z * z / (2 * samples)
    with np.errstate(divide="ignore"):
        gains = [np.log(np.maximum(low - d, 0.0)) - np.log(high) - e for e, d in points]
    return np.asarray(np.max(gains, axis=0), dtype=np.float64)


def _edges(left: Floats, right: Floats, *, most: int) -> Floats:
    """Cell borders: every value its own cell if there are few, else quantiles of both together."""
    values = np.unique(np.concatenate((left, right)))
    if len(values) <= 2 * most:
        return (values[1:] + values[:-1]) / 2
    levels = np.linspace(0, 1, most + 1)[1:-1]
    return np.unique(np.quantile(np.concatenate((left, right)), levels))


def _log_ratio(bounds: tuple[float, float], delta: float) -> float:
    """What bounds on two probabilities prove about epsilon at delta."""
    p, q = bounds[0] - delta, bounds[1]
    if p <= 0:
        return -math.inf
    return math.inf if q <= 0 else math.log(p / q)
