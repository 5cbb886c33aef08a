"""A surrogate of bounded slope: fitted exactly at public anchors, extended to all inputs.

All inputs here are public. Privacy never depends on what these functions return; the proof
of optimality is the gap to a dual solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog, nnls
from scipy.sparse.csgraph import shortest_path

from discreet.core._rational import Number
from discreet.core._validate import non_negative
from discreet.core.errors import InvalidArgument
from discreet.models.blackbox.metrics import FINE, ONE, Floats, Ints, Metric
from discreet.models.blackbox.output_ranges import (
    LARGEST_FINE,
    MetricRanges,
    check_anchors,
    check_size,
    chunks,
    common,
    make_read_only,
    power_of_two,
    same_shape,
    slope_and_width,
    whole_steps,
)

# ── Least deviations ─────────────────────────────────────────────────────────────────────────────


def least_deviations(
    blocks: list[Floats], y: Floats, *, most: float, tube: float, together: int = 1
) -> tuple[list[Floats], float]:
    """Heights f and an offset with the least ``sum of (|y - basis f - offset| - tube)_+``.

    Heights lie between zero and ``most``; of ``together`` blocks in a row, the highest heights add
    up to at most ``most``. All public. The dual has one row for each height instead of two for each
    sample, and its multipliers are the heights.
    """
    many, sizes = len(y), [block.shape[1] for block in blocks]
    total, groups = sum(sizes), len(sizes) // together
    basis = sparse.csr_matrix(np.hstack(blocks).T)
    # Variables: forces on the samples, up and down; what each height is held back by its bound.
    rows: Any = sparse.hstack([basis, -basis, -sparse.eye(total)])
    held = np.full(total, float(most))
    if together > 1:
        block = np.repeat(np.arange(len(sizes)), sizes)
        of_block = sparse.csr_matrix((np.ones(total), (block, np.arange(total))))
        of_group = sparse.kron(sparse.eye(groups), np.ones((together, 1)))
        caps: Any = sparse.hstack([sparse.csr_matrix((len(sizes), 2 * many)), of_block, -of_group])
        rows = sparse.vstack([sparse.hstack([rows, sparse.csr_matrix((total, groups))]), caps])
        held = np.concatenate([np.zeros(total), np.full(groups, float(most))])
    balance = np.concatenate([np.ones(many), -np.ones(many), np.zeros(len(held))])
    limits: Any = [(0, 1)] * (2 * many) + [(0, None)] * len(held)
    found: Any = linprog(
        np.concatenate([tube - y, tube + y, held]),
        A_ub=rows.tocsr(),
        b_ub=np.zeros(rows.shape[0]),
        A_eq=balance[None],
        b_eq=[0.0],
        bounds=limits,
        method="highs",
    )
    if found.x is None:  # a constant is always a solution
        return [np.zeros(size) for size in sizes], float(np.median(y))
    heights = np.clip(-found.ineqlin.marginals[:total], 0, most)
    return np.split(heights, np.cumsum(sizes)[:-1]), -float(found.eqlin.marginals[0])


# ── Extension ────────────────────────────────────────────────────────────────────────────────────


# So many distances of counts add up without leaving the 64 bits.
_MOST_ENTRIES = 1 << 12


class Extension:
    """McShane-Whitney extension of centers at anchors to all inputs; no area is ever listed.

    ``upper(D) = min(z_k + slope d(D, k))`` and ``lower(D) = max(z_k - slope d(D, k))``, and their
    middle.
    """

    # Theorem: all three change by at most `slope * d(D, D')` between any two inputs, for any
    #   centers; they meet the centers if `z_j - z_k <= slope d(j, k)` for all anchors. Hence
    #   fitting only the anchors loses nothing against fitting every area there is.
    # Proof: each term changes by at most slope d(D, D') by the triangle inequality, and so do
    #   minimum, maximum and mean. Floors of integers over an integer keep whole differences. A31.
    # Source: McShane 1934; Whitney 1934.

    def __init__(
        self, *, anchors: ArrayLike, centers: ArrayLike, slope: int, metric: Metric
    ) -> None:
        self.centers = whole_steps("centers", centers)
        self.anchors = check_anchors(metric, anchors, len(self.centers))
        self.slope, _ = slope_and_width(slope, slope)
        self.metric = metric
        if math.prod(self.anchors.shape[1:]) > _MOST_ENTRIES:
            raise InvalidArgument(f"anchors may have at most {_MOST_ENTRIES} entries each.")
        self._coordinates = make_read_only(metric.coordinates(self.anchors))
        # Distances beyond this cannot matter and are cut off, which keeps them a metric.
        self._farthest = (LARGEST_FINE >> 2) // max(1, self.slope)
        check_size(self.centers, 1, self.slope, farthest=ONE)

    def ends(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        """The largest and the smallest extension, in fine units of 2**-20 steps."""
        whole = same_shape(inputs, self.anchors.shape[1:])
        uppers, lowers = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        z = self.centers << FINE
        for few in chunks(whole, self._coordinates.size):
            parts = self.metric.between(self.metric.coordinates(few), self._coordinates)
            rise = np.minimum(self.metric.total(parts), self._farthest) * self.slope
            uppers.append((z + rise).min(axis=1))
            lowers.append((z - rise).max(axis=1))
        return np.concatenate(uppers), np.concatenate(lowers)

    def doubled(self, inputs: ArrayLike) -> Ints:
        """Twice the middle, in fine units."""
        upper, lower = self.ends(inputs)
        return upper + lower

    def middle(self, inputs: ArrayLike) -> Ints:
        """The middle in whole steps, rounded down."""
        return self.doubled(inputs) // (2 * ONE)


class TubeClip(MetricRanges):
    """Ranges of fixed width around the surrogate, for any metric.

    >>> from discreet.models.blackbox.metrics import UnitCount
    >>> cars = TubeClip(anchors=[[5, 7]], centers=[60], slope=1, width=1, metric=UnitCount())
    >>> cars.ranges([[5, 9]])
    (array([60]), array([60]))
    """

    # Theorem: clipping changes by at most `width` steps between inputs at distance at most one.
    #   With `slope == width` the range is a single point, the surrogate itself: then inputs at
    #   whole distance d differ by at most `d * width`, which is privacy in proportion to the
    #   distance. A wider range has no such proportion: then only neighbors are protected.
    # Proof: the ends are the floors of (T -+ (width - slope)) / 2, and T moves by at most 2 slope
    #   between neighbors: (T + width - slope) - (T' - width + slope) <= 2 width.
    # Source: Aoutouf 2021; Chatzikokolakis, Andrés, Bordenabe, Palamidessi 2013 (metric privacy).
    # Needs: the triangle inequality, which the metrics of this package have.

    def __init__(
        self,
        *,
        anchors: ArrayLike,
        centers: ArrayLike,
        slope: int,
        width: int,
        metric: Metric,
        step: Number = 1,
    ) -> None:
        slope, self.width = slope_and_width(slope, width)
        self.metric = metric
        self.surrogate = Extension(anchors=anchors, centers=centers, slope=slope, metric=metric)
        self.step: Fraction = power_of_two(step)
        check_size(self.surrogate.centers, 1, self.width, farthest=ONE)

    @property
    def proportional(self) -> bool:
        """Whether farther inputs are protected in proportion to their distance: only unclipped."""
        return self.width == self.surrogate.slope

    @property
    def hull(self) -> tuple[int, int]:
        centers, spread = self.surrogate.centers, self.width - self.surrogate.slope
        return (2 * int(centers.min()) - spread) // 2, (2 * int(centers.max()) + spread) // 2

    def ranges(self, inputs: ArrayLike) -> tuple[Ints, Ints]:
        doubled = self.surrogate.doubled(inputs)[:, None]
        return common(doubled, spread=(self.width - self.surrogate.slope) << FINE)


# ── Centers at the anchors ───────────────────────────────────────────────────────────────────────


Loss: TypeAlias = Literal["absolute", "squared", "largest", "tube"]
Indices: TypeAlias = NDArray[np.intp]

_ROUNDING = 1e-9
_MOST_ROUNDS = 1_000
_TIGHT = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class CenterFit:
    """Centers that change by at most ``slope`` per unit of distance, and how good they are.

    ``loss`` is their total loss, and no centers whatever have a loss below ``loss - gap``.
    """

    centers: Floats
    loss: float
    gap: float


def fit_centers(
    y: ArrayLike,
    distances: ArrayLike,
    slope: float,
    *,
    loss: Loss = "absolute",
    tube: float = 0.0,
    weights: ArrayLike | None = None,
) -> CenterFit:
    """The centers z nearest to ``y`` with ``z_j - z_k <= slope * distances[j, k]``.

    ``loss`` sums ``absolute`` or ``squared`` deviations, takes the ``largest``, or sums what
    deviates by more than ``tube``. Whole ``weights`` repeat a sample. If y and slope times
    distances are whole, so are the centers of the sums of absolute deviations.

    >>> fit_centers([0, 10], [[0, 1], [1, 0]], 4).centers
    array([3., 7.])
    """
    # Source: Aoutouf 2021, corrected: one linear or quadratic program over the anchors instead of
    #   a search over all areas (A30-A32).
    values, apart = check_samples(y, distances)
    rate = float(non_negative("slope", slope))
    radius = float(non_negative("tube", tube))
    if radius and loss != "tube":
        raise InvalidArgument(f"tube goes with loss='tube', not with {loss!r}.")
    if weights is not None:
        return _weighted(values, apart, rate, loss=loss, tube=radius, weights=np.asarray(weights))
    if loss in ("absolute", "tube"):
        return _absolute(values, rate * apart, radius)
    if loss == "squared":
        return _squared(values, rate * apart)
    if loss == "largest":
        return _largest(values, rate * apart)
    raise InvalidArgument(f"loss must be absolute, squared, largest or tube, got {loss!r}.")


def check_samples(y: ArrayLike, distances: ArrayLike) -> tuple[Floats, Floats]:
    """Finite values, and a distance for each pair."""
    values = np.asarray(y, dtype=np.float64)
    apart = np.asarray(distances, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidArgument("y must be finite numbers, at least one.")
    if apart.shape != (len(values), len(values)) or not np.isfinite(apart).all():
        raise InvalidArgument("distances must be a finite number for each pair of samples.")
    if apart.min() < 0 or np.diagonal(apart).any():
        raise InvalidArgument("distances must not be negative, and zero from a sample to itself.")
    return values, apart


def _weighted(
    y: Floats, apart: Floats, slope: float, *, loss: Loss, tube: float, weights: NDArray[np.generic]
) -> CenterFit:
    """A sample of weight w is w samples at one place, which get one center."""
    if weights.shape != y.shape or weights.dtype.kind not in "iu" or int(weights.min()) < 1:
        raise InvalidArgument("weights must be a whole number, one or above, for each sample.")
    many = np.repeat(np.arange(len(y)), weights.astype(np.intp))
    fit = fit_centers(y[many], apart[np.ix_(many, many)], slope, loss=loss, tube=tube)
    first = np.searchsorted(many, np.arange(len(y)))
    return CenterFit(centers=fit.centers[first], loss=fit.loss, gap=fit.gap)


def _largest(y: Floats, rise: Floats) -> CenterFit:
    """Half the largest excess of a difference over what the slope allows; no search."""
    excess = y[:, None] - y[None, :] - rise
    radius = max(0.0, float(excess.max()) / 2)
    upper = (y + radius + rise).min(axis=1)
    lower = (y - radius - rise).max(axis=1)
    centers = (upper + lower) / 2
    found = float(np.abs(centers - y).max())
    return CenterFit(centers=centers, loss=found, gap=found - radius)


def _absolute(y: Floats, rise: Floats, tube: float) -> CenterFit:
    """Pair what is too high with what is too low, as dearly as possible."""
    # Theorem: the least loss is the largest weight of an assignment of samples i to samples j,
    #   where a pair weighs `max(0, y_i - y_j - 2 tube - rise_ij)`.
    # Proof: the dual of the linear program is a flow from samples that are pulled down to samples
    #   that are pulled up, at most one unit each, at cost rise_ij; by the triangle inequality no
    #   flow gains by passing through a third sample, so it is an assignment. Where it is tight it
    #   fixes the centers up to difference constraints, which shortest paths solve.
    fit = _assigned(y, rise, tube)
    if fit.gap <= _ROUNDING * (abs(fit.loss) + len(y) * float(np.ptp(y)) * 1e-3 + 1e-300):
        return fit
    # Distances without the triangle inequality: replace them by those along shortest paths, which
    # allow the same centers.
    return _assigned(y, shortest_rises(rise), tube)


def shortest_rises(rise: Floats) -> Floats:
    """The same constraints on differences, as tight as they are together."""
    if not rise.any():
        return rise
    # A zero entry means "no arc" to the library, so zero arcs are made tiny and rounded away.
    tiny = float(rise[rise > 0].min()) * 1e-12
    paths = shortest_path(np.where(rise > 0, rise, tiny), method="FW")
    return np.where(paths < 1e-6 * float(rise[rise > 0].min()), 0.0, np.minimum(paths, rise))


def _assigned(y: Floats, rise: Floats, tube: float) -> CenterFit:
    high, low, gain = assignment(y, rise + 2 * tube)
    bound = np.full(len(y), np.inf)
    pulled_down, pulled_up = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    pulled_down[high], pulled_up[low] = True, True
    ceiling = np.where(pulled_down, y - tube, np.where(pulled_up, bound, y + tube))
    floor = np.where(pulled_up, y + tube, np.where(pulled_down, -bound, y - tube))
    pairs = (high, low)
    greatest = _tightened(ceiling, rise, pairs)
    least = -_tightened(-floor, rise.T, (low, high))
    centers = (greatest + least) / 2  # the middle of all best solutions
    found = float(np.maximum(np.abs(y - centers) - tube, 0).sum())
    excess = float(np.maximum(centers[:, None] - centers[None, :] - rise, 0).max())
    # What is not within the slope is no solution: the gap says so.
    return CenterFit(centers=centers, loss=found, gap=found - gain + len(y) * excess)


def assignment(y: Floats, toll: Floats) -> tuple[Indices, Indices, float]:
    """The pairs (i, j) of the dearest assignment at ``y_i - y_j - toll_ij``, and its value."""
    weight = np.maximum(y[:, None] - y[None, :] - toll, 0)
    rows, columns = linear_sum_assignment(weight, maximize=True)
    taken = weight[rows, columns]
    worth = taken > 0
    return rows[worth], columns[worth], float(taken[worth].sum())


def _tightened(ceiling: Floats, rise: Floats, pairs: tuple[Indices, Indices]) -> Floats:
    """The greatest z below ``ceiling`` with ``z_i <= z_j + rise_ij``, and equality for pairs."""
    high, low = pairs
    back = rise[high, low]
    z = ceiling.copy()
    for _ in range(len(z) + 2):
        before = z.copy()
        z = np.minimum(z, (z + rise).min(axis=1))
        z[low] = np.minimum(z[low], z[high] - back)
        if np.allclose(z, before, rtol=1e-13, atol=0):
            break
    tight: Floats = np.minimum(z, (z + rise).min(axis=1))
    return tight


def _squared(y: Floats, rise: Floats) -> CenterFit:
    """Least squares: the constraints that bind are found in rounds, each solved exactly.

    Projecting onto finitely many half-spaces is a non-negative least squares problem (Lawson and
    Hanson 1974, chapter 23). Between rounds, what does not bind is dropped and what is violated
    most is added: the distance grows strictly, so no set of constraints comes back.
    """
    n, size = len(y), float(np.ptp(y))
    rise = np.minimum(rise, rise.T)
    z, bound = y.copy(), 0.0
    binding: set[tuple[int, int]] = set()
    for _ in range(_MOST_ROUNDS):
        excess = z[:, None] - z[None, :] - rise
        tops, bottoms = excess.argmax(axis=1), excess.argmax(axis=0)
        worst = [*enumerate(tops.tolist()), *zip(bottoms.tolist(), range(n), strict=True)]
        added = {pair for pair in worst if excess[pair] > _TIGHT * size} - binding
        if not added:
            break
        pairs = np.array(sorted(binding | added))
        force = _forces(y, rise, pairs)
        flow = np.zeros(n)
        np.add.at(flow, pairs[:, 0], force)
        np.subtract.at(flow, pairs[:, 1], force)
        z = y - flow
        bound = 2 * float(flow @ y - flow @ flow / 2 - force @ rise[pairs[:, 0], pairs[:, 1]])
        binding = {(int(a), int(b)) for (a, b), push in zip(pairs, force, strict=True) if push > 0}
    centers = ((z + rise).min(axis=1) + (z - rise).max(axis=1)) / 2
    found = float(((y - centers) ** 2).sum())
    return CenterFit(centers=centers, loss=found, gap=found - bound)


def _forces(y: Floats, rise: Floats, pairs: Indices) -> Floats:
    """The forces of ``z_a - z_b <= rise_ab``, for the given pairs alone, on the nearest z to y."""
    n, m = len(y), len(pairs)
    excess = y[pairs[:, 0]] - y[pairs[:, 1]] - rise[pairs[:, 0], pairs[:, 1]]
    size = float(np.abs(excess).max())
    system = np.zeros((n + 1, m))
    system[pairs[:, 0], np.arange(m)] = -1
    system[pairs[:, 1], np.arange(m)] = 1
    system[n] = excess / size
    target = np.zeros(n + 1)
    target[n] = 1
    share, _ = nnls(system, target, maxiter=100 * m)
    forces: Floats = share * (size / (1 - float(system[n] @ share)))
    return forces
