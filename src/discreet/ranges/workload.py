"""Weigh the ranges that matter, with the closed forms that error forecasts need.

A range of cells `a .. b` is the difference of two prefix sums, at the points `a` and `b + 1` of
`0 .. size`. A workload is a weight on pairs of points; weights always sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats, Ints, floats

# ── Workloads ────────────────────────────────────────────────────────────────────────────────────


_SHORT = 16
_MOST_LISTED = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthWorkload:
    """Weight all ranges of some lengths equally.

    Args:
        name: Name of the workload.
        shortest: Smallest number of cells of a range.
        longest: Largest number of cells of a range. If None, all of the domain.
        half: Whether only ranges of at least half of the domain count, in place of `shortest`.

    Examples:
        >>> from discreet.ranges import workload
        >>> str(workload.LengthWorkload(name="two or three", shortest=2, longest=3))
        'two or three'
    """

    name: str
    shortest: int = 1
    longest: int | None = None
    half: bool = False

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the smallest and largest length in a domain.

        Args:
            size: Number of cells of the domain.

        Returns:
            Smallest and largest number of cells of a range.

        Raises:
            InvalidArgument: The domain is smaller than the shortest range.

        Examples:
            >>> workload.short().bounds(8)
            (1, 8)
        """
        low = -(-size // 2) if self.half else self.shortest
        high = size if self.longest is None else min(self.longest, size)
        if low > high:
            raise InvalidArgument(
                f"the workload '{self.name}' needs ranges of {low} cells, the domain has {size}."
            )
        return low, high

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixWorkload:
    """Weight all ranges that start with the first cell equally.

    Args:
        name: Name of the workload.

    Examples:
        >>> str(workload.PrefixWorkload())
        'prefixes'
    """

    name: str = "prefixes"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class ListedWorkload:
    """Weight ranges of cells that are listed. Made by `ranges`.

    Args:
        starts: First cell of each range, counted from zero.
        stops: Last cell of each range, included.
        weights: Weight of each range, not negative.
        name: Name of the workload.

    Examples:
        >>> str(workload.ListedWorkload(starts=(0,), stops=(3,), weights=(1.0,)))
        '1 listed ranges'
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    weights: tuple[float, ...]
    name: str = "listed ranges"

    def arrays(self, size: int) -> tuple[Ints, Ints, Floats]:
        """Return the ranges with weights that add up to one.

        Args:
            size: Number of cells of the domain.

        Returns:
            First cells, last cells and weights.

        Raises:
            InvalidArgument: A range ends outside of the domain.

        Examples:
            >>> starts, stops, weights = workload.ranges([(0, 3), (1, 2)]).arrays(4)
            >>> weights.tolist()
            [0.5, 0.5]
        """
        if max(self.stops) >= size:
            raise InvalidArgument(f"a listed range ends outside the {size} cells of the domain.")
        weights = np.array(self.weights)
        return np.array(self.starts), np.array(self.stops), weights / weights.sum()

    def __str__(self) -> str:
        return f"{len(self.starts)} listed ranges"


Workload: TypeAlias = LengthWorkload | PrefixWorkload | ListedWorkload


def points() -> LengthWorkload:
    """Weight every single cell equally.

    Returns:
        A workload for `plan_ranges`.

    Examples:
        >>> str(workload.points())
        'points'
    """
    return LengthWorkload(name="points", longest=1)


def all_ranges() -> LengthWorkload:
    """Weight every range equally; their mean length is a third of the domain.

    Returns:
        A workload for `plan_ranges`.

    Examples:
        >>> str(workload.all_ranges())
        'all ranges'
    """
    return LengthWorkload(name="all ranges")


def length(cells: int) -> LengthWorkload:
    """Weight every range of one length equally.

    Args:
        cells: Number of cells of each range.

    Returns:
        A workload for `plan_ranges`.

    Raises:
        InvalidArgument: `cells` is not a positive whole number.

    Examples:
        >>> str(workload.length(3))
        'ranges of 3'
    """
    number = check.count("cells", cells)
    return LengthWorkload(name=f"ranges of {number}", shortest=number, longest=number)


def short(longest: int = _SHORT) -> LengthWorkload:
    """Weight every short range equally.

    Args:
        longest: Largest number of cells of a range.

    Returns:
        A workload for `plan_ranges`.

    Raises:
        InvalidArgument: `longest` is not a positive whole number.

    Examples:
        >>> str(workload.short())
        'ranges of at most 16'
    """
    number = check.count("longest", longest)
    return LengthWorkload(name=f"ranges of at most {number}", longest=number)


def long() -> LengthWorkload:
    """Weight every range of at least half of the domain equally.

    Returns:
        A workload for `plan_ranges`.

    Examples:
        >>> workload.long().bounds(8)
        (4, 8)
    """
    return LengthWorkload(name="long ranges", half=True)


def prefixes() -> PrefixWorkload:
    """Weight every range that starts with the first cell equally.

    A cumulative distribution needs these ranges.

    Returns:
        A workload for `plan_ranges`.

    Examples:
        >>> str(workload.prefixes())
        'prefixes'
    """
    return PrefixWorkload()


def ranges(
    pairs: Sequence[tuple[int, int]], *, weights: Sequence[float] | None = None
) -> ListedWorkload:
    """List the ranges that matter.

    Args:
        pairs: Ranges of cells (first, last), both included, counted from zero.
        weights: Weight of each range, not negative. If None, all are equal.

    Returns:
        A workload for `plan_ranges`.

    Raises:
        InvalidArgument: A range is reversed, a weight is negative, or nothing is listed.

    Examples:
        >>> workload.ranges([(0, 3), (1, 2)], weights=[3, 1]).stops
        (3, 2)
    """
    if not 0 < len(pairs) <= _MOST_LISTED:
        raise InvalidArgument(f"pairs must list 1 .. {_MOST_LISTED} ranges, got {len(pairs)}.")
    ends = [
        (check.count("first", a, minimum=0), check.count("last", b, minimum=0)) for a, b in pairs
    ]
    if any(a > b for a, b in ends):
        raise InvalidArgument("a range must not be reversed: its first cell comes first.")
    given = [1.0] * len(ends) if weights is None else [float(weight) for weight in weights]
    if len(given) != len(ends) or not all(0 <= w < np.inf for w in given) or sum(given) <= 0:
        raise InvalidArgument("weights must be as many as ranges, not negative, not all zero.")
    starts, stops = zip(*ends, strict=True)
    return ListedWorkload(starts=starts, stops=stops, weights=tuple(given))


def energy(a: Ints, b: Ints, block: int) -> Floats:
    """Compute the squared norm of ranges that are averaged over blocks of cells.

    Args:
        a: First cell of each range.
        b: Last cell of each range, included.
        block: Number of cells of a block.

    Returns:
        The squared norm for each range.

    Examples:
        >>> import numpy as np
        >>> workload.energy(np.array([0]), np.array([1]), 2).tolist()
        [2.0]
    """
    r = (b - a + 1).astype(np.float64)
    first, last = a // block, b // block
    left = ((first + 1) * block - a).astype(np.float64)
    right = (b - last * block + 1).astype(np.float64)
    inside = (last - first - 1).astype(np.float64)
    apart = (left * left + right * right) / block + inside * block
    return np.where(first == last, r * r / block, apart)


def energies(workload: Workload, size: int, blocks: Sequence[int]) -> Floats:
    """Compute the mean of `energy` over a workload, for each block size.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.
        blocks: Numbers of cells of a block. Blocks need not fill the domain.

    Returns:
        One mean for each block size.

    Examples:
        >>> workload.energies(workload.points(), 4, [1, 2]).tolist()
        [1.0, 0.5]
    """
    # Proof: `block * energy` is the sum over blocks of the squared overlap with the range. For all
    #   ranges and prefixes sum the polynomials of `_overlaps` over the blocks; for given lengths
    #   the overlap depends on the start modulo the block only, see `_by_length`.
    # Source: docs/theory/ranges.md; F27.
    match workload:
        case ListedWorkload():
            a, b, weights = workload.arrays(size)
            return np.array([weights @ energy(a, b, block) for block in blocks])
        case PrefixWorkload():
            return np.array([_overlaps(size, block, pairs=False) for block in blocks]) / size
        case LengthWorkload():
            low, high = workload.bounds(size)
            if (low, high) == (1, size):
                number = size * (size + 1) / 2
                return np.array([_overlaps(size, block, pairs=True) for block in blocks]) / number
            r = np.arange(low, high + 1)
            number = float((size - r + 1).sum())
            return np.array([_by_length(size, r, block).sum() for block in blocks]) / number


def length_energies(size: int, lengths: Ints, blocks: Sequence[int]) -> Floats:
    """Compute the mean of `energy` for each length and each block size.

    Args:
        size: Number of cells of the domain.
        lengths: Numbers of cells of a range.
        blocks: Numbers of cells of a block.

    Returns:
        One row for each length, one column for each block size.

    Examples:
        >>> workload.length_energies(4, np.array([1, 2]), [1, 2])[0].tolist()
        [1.0, 0.5]
    """
    starts = (size - lengths + 1).astype(np.float64)
    return np.stack([_by_length(size, lengths, block) / starts for block in blocks], axis=-1)


def gram(workload: Workload, size: int) -> Floats:
    """Compute the mean Gram matrix of a workload.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.

    Returns:
        The mean of `w w^T` over the ranges `w` of the workload, each a vector of zeros and ones.

    Examples:
        >>> workload.gram(workload.points(), 2).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """
    # On the points 0 .. size, the workload is a graph; its Laplacian, summed twice, is the answer.
    laplacian = -_adjacency(workload, size)
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    tail = laplacian[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return np.ascontiguousarray(tail[1:, 1:])


def mean_squares(workload: Workload, size: int, prefixes: Floats) -> Floats:
    """Compute the mean squared answer over a workload.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.
        prefixes: One column for each vector, with its sums of the first 0 to `size` cells.

    Returns:
        One mean for each column.

    Examples:
        >>> workload.mean_squares(workload.points(), 3, np.array([[0.0], [1], [3], [6]])).round(2)
        array([4.67])
    """
    match workload:
        case ListedWorkload():
            a, b, weights = workload.arrays(size)
            return floats(weights @ np.square(prefixes[b + 1] - prefixes[a]))
        case PrefixWorkload():
            return floats(np.square(prefixes[1:] - prefixes[0]).mean(axis=0))
        case LengthWorkload():
            return _between(prefixes, *workload.bounds(size))


def listed(workload: Workload, size: int) -> tuple[Ints, Ints, Floats]:
    """List every range of a workload with its weight, for small domains.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.

    Returns:
        First cells, last cells and weights that add up to one.

    Examples:
        >>> starts, stops, _ = workload.listed(workload.prefixes(), 3)
        >>> stops.tolist()
        [0, 1, 2]
    """
    match workload:
        case ListedWorkload():
            return workload.arrays(size)
        case PrefixWorkload():
            stops = np.arange(size)
            return np.zeros(size, dtype=np.int64), stops, np.full(size, 1 / size)
        case LengthWorkload():
            low, high = workload.bounds(size)
            a, b = np.triu_indices(size, low - 1)
            kept = b - a < high
            return a[kept], b[kept], np.full(int(kept.sum()), 1 / kept.sum())


def _overlaps(size: int, block: int, *, pairs: bool) -> float:
    """Sum over all ranges (or prefixes) of the energy, any size and block."""
    # Proof: the squared overlap of a range with a block of m cells from L on is the number of pairs
    #   (i, j) of its cells that are in the range; cells i, j are both in
    #   `(L + 1 + min)(size - L - max)` ranges and in `size - L - max` prefixes. Over a block,
    #   min sums to `m(m-1)(2m-1)/6`, max to `m(m-1)(4m+1)/6`, their product to
    #   `(m(m-1)/2)^2`. Whole blocks start at multiples of m, so sums over them are cubics.
    whole, rest = divmod(size, block)
    found = _over_blocks(size, 0, block, many=whole, pairs=pairs)
    if rest:
        found += _over_blocks(size, size - rest, rest, many=1, pairs=pairs)
    return found / block


def _over_blocks(size: int, start: int, m: int, *, many: int, pairs: bool) -> int:
    """The part of ``block`` times the energy from consecutive blocks of m cells: exact."""
    steps = many * (many - 1) // 2
    squares = steps * (2 * many - 1) // 3
    starts = many * start + m * steps
    most = m * (m - 1) * (4 * m + 1) // 6
    after = many * size - starts  # the sum of size - L
    if not pairs:
        return after * m * m - many * most
    least = m * (m - 1) * (2 * m - 1) // 6
    product = (m * (m - 1) // 2) ** 2
    start_squares = many * start**2 + 2 * start * m * steps + m * m * squares
    both = many * size + (size - 1) * starts - start_squares  # of (L + 1)(size - L)
    return both * m * m + after * least - (many + starts) * most - many * product


def _by_length(size: int, lengths: Ints, block: int) -> Floats:
    """For each length r the sum of the energy over all ``size - r + 1`` starts."""
    # Proof: with `r = q block + t` and a start `u` modulo the block, the range leaves the first
    #   block after `block - u` cells and ends `u + t` (or `u + t - block`) cells into the
    #   last one, with `q - 1` (or q) whole blocks between. Squares of consecutive numbers sum to
    #   a cubic, and the starts are whole cycles of u and a rest.
    r = lengths.astype(np.float64)
    q, t = np.divmod(r, block)
    starts = size - r + 1
    cycles, rest = np.divmod(starts, block)

    def until(n: Floats) -> Floats:
        """Sum over u < n of the squared overlaps."""
        early = np.minimum(n, block - t)
        late = np.maximum(n - (block - t), 0)
        one_more = _squares(block - early, block) + _squares(t - 1, t + early - 1)
        near = np.where(q == 0, early * r * r, one_more + early * (q - 1) * block**2)
        begun = block - t  # the first u of the late kind, where the last block starts afresh
        far = _squares(block - begun - late, block - begun) + _squares(-1 + 0 * t, late - 1)
        return floats(near + far + late * q * block**2)

    return (cycles * until(np.full_like(r, block)) + until(rest)) / block


def _squares(low: Floats, high: Floats | float) -> Floats:
    """``(low+1)^2 + ... + high^2``."""

    def upto(n: Floats | float) -> Floats | float:
        return n * (n + 1) * (2 * n + 1) / 6

    return floats(upto(high) - upto(low))


def _adjacency(workload: Workload, size: int) -> NDArray[np.float64]:
    """Weights of pairs of points, symmetric."""
    a, b, weights = listed(workload, size)
    matrix = np.zeros((size + 1, size + 1))
    np.add.at(matrix, (a, b + 1), weights)
    return matrix + matrix.T


def _between(x: Floats, low: int, high: int) -> Floats:
    """Mean of ``(x_q - x_p)^2`` over all pairs of rows with ``low <= q - p <= high``."""
    rows = len(x)
    if (low, high) == (1, rows - 1):  # all pairs: n sum x^2 - (sum x)^2 around the mean
        centered = x - x.mean(axis=0)
        return floats(2 * np.square(centered).sum(axis=0) / (rows - 1))
    if low == high:
        return floats(np.square(x[low:] - x[:-low]).mean(axis=0))
    zero = np.zeros((1, *x.shape[1:]))
    sums = np.concatenate([zero, x.cumsum(axis=0)])
    squares = np.concatenate([zero, np.square(x).cumsum(axis=0)])
    p = np.arange(rows - low)
    first, last = p + low, np.minimum(p + high, rows - 1) + 1
    number = (last - first).astype(np.float64).reshape(-1, *[1] * (x.ndim - 1))
    here = x[: rows - low]
    total = (
        number * here * here
        - 2 * here * (sums[last] - sums[first])
        + (squares[last] - squares[first])
    ).sum(axis=0)
    return floats(total / number.sum())


# ── Sums over blocks ─────────────────────────────────────────────────────────────────────────────
# `gram` is about cells. Here sums over blocks of cells are taken without ever holding a matrix of
# cells, so that large domains can be planned.


_BATCH = 1 << 20


def block_gram(workload: Workload, size: int, block: int) -> Floats:
    """Compute the mean Gram matrix of a workload over blocks of cells.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.
        block: Number of cells of a block.

    Returns:
        The mean of `u u^T`, where `u` is the number of cells of a range in each block.

    Examples:
        >>> workload.block_gram(workload.points(), 4, 2).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """
    # Proof: a range between the points p and q has `clip(q) - clip(p)` cells in a block, where
    #   clip counts the cells of the block before a point. So the mean is `clip^T L clip` with the
    #   Laplacian L of the workload's graph on points; and the product of a vector with `clip` is
    #   the sum over the block of its tail sums.
    blocks = -(-size // block)
    if isinstance(workload, ListedWorkload):
        return _listed_gram(workload, size, block)
    points = np.arange(size + 1)
    found = np.zeros((blocks, blocks))
    step = max(1, _BATCH // (size + 1))
    for first in range(0, blocks, step):
        some = np.arange(first, min(first + step, blocks))
        clip = np.clip(points - some[:, None] * block, 0, block).astype(np.float64)
        tails = _laplacian(workload, size, clip)[:, ::-1].cumsum(axis=1)[:, ::-1]
        found[some] = _summed(tails[:, 1:], block)
    return (found + found.T) / 2


def block_energies(workload: Workload, size: int, block: int) -> Floats:
    """Compute the mean squared number of cells of a range in each block.

    Args:
        workload: Workload of one domain, such as `all_ranges()`.
        size: Number of cells of the domain.
        block: Number of cells of a block.

    Returns:
        One mean for each block, divided by `block`.

    Examples:
        >>> workload.block_energies(workload.points(), 4, 2).tolist()
        [0.25, 0.25]
    """
    # Proof: the square counts pairs of cells i <= j of the block that are both in the range. Of the
    #   ranges that hold i and j, those that end with j do not hold j + 1: start with those that
    #   hold i alone and take them away one distance at a time.
    if isinstance(workload, ListedWorkload):
        return _listed_energies(workload, size, block)
    i = np.arange(size)
    both = _covering(workload, size)
    found = _summed(both, block)
    for distance in range(1, block):
        both = both - _ending(workload, size, i + distance, i)
        inside = (i % block + distance < block) & (i + distance < size)
        found = found + 2 * _summed(np.where(inside, both, 0.0), block)
    return floats(found / block)


def _summed(values: Floats, block: int) -> Floats:
    """Sums over blocks along the last axis; the last block may lack cells."""
    return np.add.reduceat(values, np.arange(0, values.shape[-1], block), axis=-1)


def _laplacian(workload: LengthWorkload | PrefixWorkload, size: int, x: Floats) -> Floats:
    """``L x`` for each row: the sum of ``x_p - x_q`` over the ranges that begin or end at p."""
    if isinstance(workload, PrefixWorkload):
        apart = (x - x[:, :1]) / size
        apart[:, 0] = -apart.sum(axis=1)
        return apart
    low, high = workload.bounds(size)
    if (low, high) == (1, size):  # every pair of points
        return floats(((size + 1) * x - x.sum(axis=1, keepdims=True)) / _ranges(workload, size))
    p = np.arange(size + 1)
    sums = np.concatenate([np.zeros((len(x), 1)), x.cumsum(axis=1)], axis=1)
    after = np.minimum(p + low, size + 1), np.minimum(p + high + 1, size + 1)
    before = np.maximum(p - high, 0), np.maximum(p - low + 1, 0)
    number = after[1] - after[0] + before[1] - before[0]
    near = sums[:, after[1]] - sums[:, after[0]] + sums[:, before[1]] - sums[:, before[0]]
    return floats((number * x - near) / _ranges(workload, size))


def _ranges(workload: LengthWorkload, size: int) -> float:
    """How many ranges there are."""
    low, high = workload.bounds(size)
    return (high - low + 1) * (2 * size - low - high + 2) / 2


def _ending(
    workload: LengthWorkload | PrefixWorkload, size: int, last: Ints, first: Ints
) -> Floats:
    """The weight of the ranges that end before the cell ``last`` and start at ``first`` at most."""
    inside = (last > 0) & (last <= size)
    if isinstance(workload, PrefixWorkload):
        return np.where(inside, 1 / size, 0.0)
    low, high = workload.bounds(size)
    number = np.minimum(first, last - low) - np.maximum(0, last - high) + 1
    return np.where(inside, np.maximum(number, 0), 0) / _ranges(workload, size)


def _covering(workload: LengthWorkload | PrefixWorkload, size: int) -> Floats:
    """The weight of the ranges that hold each cell: those begun, less those ended."""
    cells = np.arange(size)
    ended = np.cumsum(_ending(workload, size, cells, cells - 1))
    if isinstance(workload, PrefixWorkload):
        return 1 - ended
    low, high = workload.bounds(size)
    begun = np.maximum(np.minimum(size, cells + high) - cells - low + 1, 0)
    return floats(np.cumsum(begun) / _ranges(workload, size) - ended)


def _listed_gram(workload: ListedWorkload, size: int, block: int) -> Floats:
    """A point between two ends of blocks is a mean of the two."""
    a, b, weights = workload.arrays(size)
    blocks = -(-size // block)
    rows = np.arange(len(a))
    parts = []
    for points, sign in ((a, -1.0), (b + 1, 1.0)):
        place = np.minimum(points // block, blocks - 1)
        share = points / block - place
        for column, value in ((place, 1 - share), (place + 1, share)):
            parts.append((sign * value, column))
    values = np.concatenate([value for value, _ in parts])
    columns = np.concatenate([column for _, column in parts])
    shape = (len(a), blocks + 1)
    ends = scipy.sparse.csr_array((values, (np.tile(rows, 4), columns)), shape=shape)
    laplacian = (ends.T @ ends.multiply(weights[:, None])).toarray()
    tail = laplacian[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return floats(block**2 * tail[1:, 1:])


def _listed_energies(workload: ListedWorkload, size: int, block: int) -> Floats:
    a, b, weights = workload.arrays(size)
    blocks = -(-size // block)
    first, last = a // block, b // block
    apart = first < last
    left = np.where(apart, (first + 1) * block - a, b - a + 1).astype(np.float64)
    right = np.where(apart, b + 1 - last * block, 0).astype(np.float64)
    found = np.bincount(first, weights * left**2, minlength=blocks)
    found += np.bincount(last, weights * right**2, minlength=blocks)
    steps = np.bincount(np.minimum(first + 1, last), weights * apart, minlength=blocks)
    steps -= np.bincount(last, weights * apart, minlength=blocks)
    return floats((found + block**2 * np.cumsum(steps)) / block)
