"""Exact bounds of sums of unknown counts, when other sums of them are known.

The unknowns are counts: whole numbers from zero on. Whatever is returned as a bound has been
checked with integers. A linear program proposes multipliers of the rows, and any multipliers prove
a bound (weak duality): errors of its floating-point numbers make bounds weaker, but not false.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog as _linprog
from scipy.sparse import csgraph

from discreet.disclosure.generalization_hierarchy import Floats, Ints

CAP = 10**10
"""No table counts more people than there are: what stands for "no upper bound"."""
Bools = NDArray[np.bool_]
_ROUNDS = 200
_NODES = 400
"""Branches for one bound; beyond, the bound is valid and perhaps not the best."""
_DENOMINATORS = (1, 2, 6, 60, 27_720)
_FINE = 2**24
_SAFE = 2**62
_WHOLE = 1e-6


linprog: Any = _linprog
"""Its types know neither sparse arrays nor bounds in one array."""


class Contradiction(Exception):
    """No counts fit; the rows that prove it."""

    def __init__(self, rows: Iterable[int]) -> None:
        self.rows = tuple(sorted({int(row) for row in rows}))
        super().__init__("no counts fit")


@dataclass(slots=True, eq=False)
class CellSystem:
    """Rows of zeros and ones, each with the range of its sum, and a range for each unknown."""

    matrix: sparse.csr_array
    low: Ints
    high: Ints
    least: Ints
    most: Ints

    def fits(self, counts: Ints) -> bool:
        """Whether whole numbers fulfil every row and range."""
        sums = self.matrix @ counts
        inside = bool(((sums >= self.low) & (sums <= self.high)).all())
        return inside and bool(((counts >= self.least) & (counts <= self.most)).all())


@dataclass(slots=True, eq=False)
class CellRange:
    """Bounds of one sum: proved, and whether counts attain each of them."""

    low: int
    high: int
    low_attained: bool = False
    high_attained: bool = False
    finished: bool = True


def propagate(system: CellSystem) -> None:
    """Narrow the range of each unknown by each row until nothing changes.

    All numbers are integers, so every step is exact.
    """
    # Each sum is at most 2e5 unknowns of 1e10, far below 2^63.
    entries = system.matrix.tocsc()
    row, start = entries.indices, entries.indptr
    column = np.repeat(np.arange(len(system.least)), np.diff(start))
    used = np.flatnonzero(np.diff(start))
    for _ in range(_ROUNDS):
        smallest, largest = system.matrix @ system.least, system.matrix @ system.most
        bad = np.flatnonzero((smallest > system.high) | (largest < system.low))
        if len(bad):
            raise Contradiction(_reasons(system, bad[:1]))
        if not len(used):
            return
        above = (system.high - smallest)[row] + system.least[column]
        below = (system.low - largest)[row] + system.most[column]
        most, least = system.most.copy(), system.least.copy()
        most[used] = np.minimum(most[used], np.minimum.reduceat(above, start[used]))
        least[used] = np.maximum(least[used], np.maximum.reduceat(below, start[used]))
        crossed = np.flatnonzero(least > most)
        if len(crossed):
            raise Contradiction(row[start[crossed[0]] : start[crossed[0] + 1]])
        if (most == system.most).all() and (least == system.least).all():
            return
        system.most, system.least = most, least


def _reasons(system: CellSystem, bad: Ints) -> Ints:
    """The row and those that share an unknown with it."""
    inside = system.matrix[bad].indices
    return np.union1d(bad, np.unique(system.matrix.tocsc()[:, inside].indices))


def merged(matrix: sparse.csc_array) -> tuple[Ints, Ints]:
    """Unknowns in the same rows are one unknown: the class of each, and a member of each."""
    classes: dict[bytes, int] = {}
    indices, start = matrix.indices, matrix.indptr
    of = np.empty(matrix.shape[1], dtype=np.int64)
    for j in range(matrix.shape[1]):
        key = np.sort(indices[start[j] : start[j + 1]]).tobytes()
        of[j] = classes.setdefault(key, len(classes))
    members = np.empty(len(classes), dtype=np.int64)
    members[of[::-1]] = np.arange(len(of))[::-1]
    return of, members


# ── One connected part ───────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, eq=False)
class _Part:
    """Rows and unknowns that hang together, as a linear program."""

    system: CellSystem
    rows: Ints
    """Their numbers in the whole system."""
    _program: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        s = self.system
        same = s.low == s.high
        above = ~same & (s.high < CAP)
        below = ~same & (s.low > 0)
        self._program = {
            "A_eq": s.matrix[same] if same.any() else None,
            "b_eq": s.low[same] if same.any() else None,
            "A_ub": sparse.vstack([s.matrix[above], -s.matrix[below]]).tocsr()
            if above.any() or below.any()
            else None,
            "b_ub": np.concatenate([s.high[above], -s.low[below]])
            if above.any() or below.any()
            else None,
        }
        self._place = np.flatnonzero(same), np.flatnonzero(above), np.flatnonzero(below)

    _place: tuple[Ints, Ints, Ints] = field(init=False)

    def solve(self, goal: Floats, least: Ints, most: Ints) -> tuple[str, Floats, Floats]:
        """Minimize: how it went, where, and a multiplier for each row."""
        ends = np.where(most >= CAP, np.inf, most.astype(float))
        answer = linprog(
            goal, bounds=np.stack([least, ends], axis=1), method="highs", **self._program
        )
        prices = np.zeros(len(self.rows))
        if answer.status != 0:
            return ("empty" if answer.status == 2 else "failed"), np.zeros(0), prices
        same, above, below = self._place
        if len(same):
            prices[same] += answer.eqlin.marginals
        if len(above) or len(below):
            marginals = answer.ineqlin.marginals
            np.add.at(prices, above, marginals[: len(above)])
            np.subtract.at(prices, below, marginals[len(above) :])
        return "solved", answer.x, prices

    def impossible(self, least: Ints, most: Ints) -> Floats | None:
        """Multipliers which prove that no numbers fit, or None."""
        s = self.system
        height, width = s.matrix.shape
        unit = sparse.eye_array(height)
        slack = sparse.csr_array(sparse.hstack([s.matrix, unit, -unit]))
        low = np.concatenate([least, np.zeros(2 * height)])
        high = np.concatenate(
            [np.where(most >= CAP, np.inf, most.astype(float)), np.full(2 * height, np.inf)]
        )
        loose = s.high >= CAP
        answer = linprog(
            np.concatenate([np.zeros(width), np.ones(2 * height)]),
            A_ub=sparse.vstack([slack[~loose], -slack]).tocsr(),
            b_ub=np.concatenate([s.high[~loose], -s.low]),
            bounds=np.stack([low, high], axis=1),
            method="highs",
        )
        if answer.status != 0:
            return None
        prices = -answer.ineqlin.marginals[int((~loose).sum()) :]
        prices[~loose] += answer.ineqlin.marginals[: int((~loose).sum())]
        none = np.zeros(width, dtype=np.int64)
        return prices if self.proved(none, prices, least, most) > 0 else None

    def proved(self, goal: Ints, prices: Floats, least: Ints, most: Ints) -> int:
        """A lower bound of the goal that these multipliers prove, in integers alone."""
        # Theorem: for all multipliers y, c.x = (c - A'y).x + y.(Ax), and each term is at least its
        #   least value over the ranges of x and of the sums Ax.
        # Proof: weak duality of linear programs. Source: Chvatal 1983, section 5.
        best: int | None = None
        for scale in (*_DENOMINATORS, _FINE):
            scaled = prices * scale
            whole = np.rint(scaled)
            near = bool((np.abs(scaled - whole) <= _WHOLE * scale).all())
            if not near and scale != _FINE:
                continue
            found = self._dual(goal, whole, scale, least, most)
            best = found if best is None else max(best, found)
            if near:
                break
        assert best is not None  # noqa: S101 - the last scale is always tried
        return best

    def _dual(self, goal: Ints, whole: Floats, scale: int, least: Ints, most: Ints) -> int:
        s = self.system
        size = float(np.abs(whole).max(initial=0.0) + scale)
        reach = size * float(max(most.max(initial=1), s.high.max(initial=1)))
        small = reach * (sum(s.matrix.shape) + 1) * (s.matrix.shape[0] + 1) < _SAFE
        y = whole.astype(np.int64) if small else np.array([int(one) for one in whole], object)
        rest = scale * goal.astype(y.dtype)
        entries = s.matrix.tocoo()
        np.subtract.at(rest, entries.col, y[entries.row])
        ends = [one.astype(y.dtype) for one in (least, most, s.low, s.high)]
        at_x = np.where(rest > 0, rest * ends[0], rest * ends[1])
        at_rows = np.where(y > 0, y * ends[2], y * ends[3])
        total = int(at_x.sum()) + int(at_rows.sum())
        return -((-total) // scale)  # the goal is a whole number


@dataclass(slots=True, eq=False)
class _Search:
    """Smallest value of a goal over whole numbers, by branching; each bound is proved."""

    part: _Part
    goal: Ints
    nodes: int
    deadline: float
    found: Callable[[Ints], None]

    def run(self, floor: int, best: int | None) -> tuple[int, bool, bool]:
        """A lower bound, whether it is attained, and whether there was time."""
        s = self.part.system
        order = count()
        queue = [(floor, next(order), s.least, s.most)]
        for left in range(self.nodes, -1, -1):
            if not queue:
                break
            bound, _, least, most = heapq.heappop(queue)
            if best is not None and bound >= best:
                return best, True, True
            late = time.monotonic() > self.deadline
            if late or not left:
                return bound, False, not late
            found = self._node(bound, least, most)
            if found is None and len(queue) == 0 and left == self.nodes:
                reasons = self.part.impossible(least, most)
                held = np.abs(reasons) > _WHOLE if reasons is not None else slice(None)
                raise Contradiction(self.part.rows[held])
            if found is None:
                continue
            bound, value, branches = found
            if value is not None:
                best = value if best is None else min(best, value)
            if branches is None:
                # Other branches may have smaller bounds than what this one has come to.
                bound = min([bound, *(one[0] for one in queue[:1])])
                done = best is not None and best <= bound
                return bound if best is None or not done else best, done, True
            for one in branches:
                heapq.heappush(queue, (bound, next(order), *one))
        if best is None:
            raise Contradiction(self.part.rows)
        return best, True, True

    def _node(
        self, bound: int, least: Ints, most: Ints
    ) -> tuple[int, int | None, list[tuple[Ints, Ints]] | None] | None:
        """A better bound, a value that is attained, and branches; None: no counts fit.

        Without branches the bound is the last word.
        """
        s = self.part.system
        how, x, prices = self.part.solve(self.goal.astype(float), least, most)
        if how == "empty" and self.part.impossible(least, most) is not None:
            return None
        if how != "solved":
            return bound, None, None
        bound = max(bound, self.part.proved(self.goal, prices, least, most))
        whole = np.rint(x).astype(np.int64)
        off = np.abs(x - whole)
        value = None
        if s.fits(whole):
            self.found(whole)
            value = int(self.goal @ whole)
        if off.max(initial=0.0) <= _WHOLE:
            # The best of this branch: if its multipliers were not exact enough, that is all.
            return bound, value, None if value != bound else [(least, most)]
        at = int(np.argmax(off))
        down, up = most.copy(), least.copy()
        down[at], up[at] = np.floor(x[at]), np.floor(x[at]) + 1
        branches = []
        for one in ((least, down), (up, most)):
            narrowed = CellSystem(s.matrix, s.low, s.high, *one)
            with suppress(Contradiction):
                propagate(narrowed)
                branches.append((narrowed.least, narrowed.most))
        return bound, value, branches


# ── All of them ──────────────────────────────────────────────────────────────────────────────────


def bound_sums(
    system: CellSystem,
    sums: sparse.csr_array,
    *,
    seconds: float,
    progress: Callable[[int, int], None] | None = None,
    nodes: int = _NODES,
) -> list[CellRange]:
    """Bound each sum (a row of `sums`) over all counts that fit the system.

    Raises:
        Contradiction: No counts fit.
    """
    deadline = time.monotonic() + seconds
    propagate(system)
    fixed = system.least == system.most
    parts, of = _split(system, ~fixed)
    solved: dict[tuple[int, bytes], CellRange] = {}
    pools = [_Pool(part) for part in parts]
    base = sums @ np.where(fixed, system.least, 0)
    found = []
    place = np.empty(len(of), dtype=np.int64)
    for part in parts:
        place[part.unknowns] = np.arange(len(part.unknowns))
    for t in range(sums.shape[0]):
        inside = sums.indices[sums.indptr[t] : sums.indptr[t + 1]]
        inside = inside[of[inside] >= 0]
        total = CellRange(int(base[t]), int(base[t]), low_attained=True, high_attained=True)
        for number in np.unique(of[inside]):
            members = np.sort(place[inside[of[inside] == number]])
            key = (int(number), members.tobytes())
            if key not in solved:
                solved[key] = pools[number].range(members, deadline, nodes)
            one = solved[key]
            total = CellRange(
                total.low + one.low,
                total.high + one.high,
                total.low_attained and one.low_attained,
                total.high_attained and one.high_attained,
                total.finished and one.finished,
            )
        found.append(total)
        if progress is not None:
            progress(t + 1, sums.shape[0])
    return found


@dataclass(slots=True, eq=False)
class _Component(_Part):
    unknowns: Ints = field(kw_only=True)


def _split(system: CellSystem, free: Bools) -> tuple[list[_Component], Ints]:
    """Connected parts of what is not fixed, and the part of each unknown (-1: fixed)."""
    matrix = system.matrix
    smallest, largest = matrix @ system.least, matrix @ system.most
    rows = np.flatnonzero((smallest < system.low) | (largest > system.high))
    unknowns = np.flatnonzero(free)
    kept = matrix[rows][:, unknowns]
    settled = matrix @ np.where(free, 0, system.least)
    height = len(rows)
    entries = kept.tocoo()
    size = height + len(unknowns)
    links = sparse.coo_array(
        (np.ones(kept.nnz), (entries.row, entries.col + height)), shape=(size, size)
    )
    many, found = csgraph.connected_components(links.tocsr(), directed=False)
    label: Ints = np.asarray(found, dtype=np.int64)
    own = _groups(label[:height], many)
    members = _groups(label[height:], many)
    of = np.full(len(free), -1, dtype=np.int64)
    parts: list[_Component] = []
    for cells, inside in zip(own, members, strict=True):
        if not len(inside):
            continue
        of[unknowns[inside]] = len(parts)
        at = rows[cells]
        part = CellSystem(
            kept[cells][:, inside].tocsr(),
            system.low[at] - settled[at],
            np.where(system.high[at] >= CAP, CAP, system.high[at] - settled[at]),
            system.least[unknowns[inside]],
            system.most[unknowns[inside]],
        )
        parts.append(_Component(part, at, unknowns=unknowns[inside]))
    return parts, of


def _groups(labels: Ints, many: int) -> list[Ints]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, many)))


@dataclass(slots=True, eq=False)
class _Pool:
    """A part with the counts that were found to fit it: they show which bounds are attained."""

    part: _Component
    witnesses: list[Ints] = field(default_factory=list)

    def range(self, members: Ints, deadline: float, nodes: int) -> CellRange:
        """Bounds of the sum of these unknowns."""
        s = self.part.system
        if not s.matrix.shape[0]:  # nothing holds the unknowns but their own ranges
            low, high = int(s.least[members].sum()), int(s.most[members].sum())
            return CellRange(low, min(high, CAP), True, high < CAP)  # noqa: FBT003
        goal = np.zeros(s.matrix.shape[1], dtype=np.int64)
        goal[members] = 1
        low, attained, in_time = self._end(goal, int(s.least[members].sum()), deadline, nodes)
        high, reached, also = self._end(-goal, -int(s.most[members].sum()), deadline, nodes)
        return CellRange(low, min(-high, CAP), attained, reached, in_time and also)

    def _end(self, goal: Ints, floor: int, deadline: float, nodes: int) -> tuple[int, bool, bool]:
        seen = [int(goal @ one) for one in self.witnesses]
        best = min(seen, default=None)
        return _Search(self.part, goal, nodes, deadline, self._keep).run(floor, best)

    def _keep(self, counts: Ints) -> None:
        if len(self.witnesses) < 500:
            self.witnesses.append(counts)


def multipliers(system: CellSystem, goal: Ints, *, largest: bool) -> Floats | None:
    """The rows that prove the bound of a sum, with their multipliers; None without a proof."""
    part = _Part(system, np.arange(len(system.low)))
    sign = -1 if largest else 1
    how, _, prices = part.solve((sign * goal).astype(float), system.least, system.most)
    return sign * prices if how == "solved" else None


def rows_of(lists: Sequence[Ints], width: int) -> sparse.csr_array:
    """A matrix of zeros and ones from the places of the ones in each row."""
    start = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    inside = np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64)
    ones = np.ones(len(inside), dtype=np.int64)
    return sparse.csr_array((ones, inside, start), shape=(len(lists), width))
