"""How much of each block the ranges of a workload cover: means of products, in closed form.

`workload.gram` is about cells; here sums over blocks of cells are taken without ever holding a
matrix of cells, so that large domains can be planned.
"""

from __future__ import annotations

import numpy as np
import scipy

from discreet.noise.law import Floats, Ints, floats
from discreet.queries.ranges.workload import Lengths, Listed, Prefixes, Workload

_BATCH = 1 << 20


def block_gram(workload: Workload, size: int, block: int) -> Floats:
    """The mean of ``u u^T`` over a workload, u the number of cells of a range in each block.

    Proof: a range between the points p and q has ``clip(q) - clip(p)`` cells in a block, where
        clip counts the cells of the block before a point. So the mean is ``clip^T L clip`` with the
        Laplacian L of the workload's graph on points; and the product of a vector with ``clip`` is
        the sum over the block of its tail sums.
    """
    blocks = -(-size // block)
    if isinstance(workload, Listed):
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
    """The mean of the squared number of cells in each block, divided by ``block`` (F27).

    Proof: the square counts pairs of cells i <= j of the block that are both in the range. Of the
        ranges that hold i and j, those that end with j do not hold j + 1: start with those that
        hold i alone and take them away one distance at a time.
    """
    if isinstance(workload, Listed):
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


def _laplacian(workload: Lengths | Prefixes, size: int, x: Floats) -> Floats:
    """``L x`` for each row: the sum of ``x_p - x_q`` over the ranges that begin or end at p."""
    if isinstance(workload, Prefixes):
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


def _ranges(workload: Lengths, size: int) -> float:
    """How many ranges there are."""
    low, high = workload.bounds(size)
    return (high - low + 1) * (2 * size - low - high + 2) / 2


def _ending(workload: Lengths | Prefixes, size: int, last: Ints, first: Ints) -> Floats:
    """The weight of the ranges that end before the cell ``last`` and start at ``first`` at most."""
    inside = (last > 0) & (last <= size)
    if isinstance(workload, Prefixes):
        return np.where(inside, 1 / size, 0.0)
    low, high = workload.bounds(size)
    number = np.minimum(first, last - low) - np.maximum(0, last - high) + 1
    return np.where(inside, np.maximum(number, 0), 0) / _ranges(workload, size)


def _covering(workload: Lengths | Prefixes, size: int) -> Floats:
    """The weight of the ranges that hold each cell: those begun, less those ended."""
    cells = np.arange(size)
    ended = np.cumsum(_ending(workload, size, cells, cells - 1))
    if isinstance(workload, Prefixes):
        return 1 - ended
    low, high = workload.bounds(size)
    begun = np.maximum(np.minimum(size, cells + high) - cells - low + 1, 0)
    return floats(np.cumsum(begun) / _ranges(workload, size) - ended)


def _listed_gram(workload: Listed, size: int, block: int) -> Floats:
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


def _listed_energies(workload: Listed, size: int, block: int) -> Floats:
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
