"""Rows that look alike: grouping by several coded columns at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_LARGEST_KEY = 1 << 62
# A table of all combinations is used up to so many entries for each row, and a few more.
_DENSE = 4
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """A partition: the class of each item, one item of each class, the rows in each class."""

    of: Ints = field(repr=False)
    head: Ints = field(repr=False)
    sizes: Ints = field(repr=False)


def together(
    parts: Sequence[NDArray[np.signedinteger]],
    bounds: Sequence[int],
    *,
    counts: Ints | None = None,
    items: int = 0,
) -> Classes:
    """Items with equal codes in all parts, in the order of the codes.

    ``bounds`` says below what the codes of each part lie; ``counts`` how many rows an item stands
    for (one each, if not given). Without parts all ``items`` are one class.
    """
    key, limit = _key(parts, bounds, items)
    n = len(key)
    if limit <= _DENSE * n + _SMALL:
        seen = np.zeros(limit, dtype=np.bool_)
        seen[key] = True
        present = np.flatnonzero(seen)
        rank = np.empty(limit, dtype=np.int64)
        rank[present] = np.arange(len(present))
        of = rank[key]
        head = np.empty(len(present), dtype=np.int64)
        head[of] = np.arange(n)
    else:
        _, head, of = np.unique(key, return_index=True, return_inverse=True)
    return Classes(of=of, head=head, sizes=total(of, len(head), counts))


def total(of: Ints, classes: int, counts: Ints | None) -> Ints:
    """Rows in each class. Sums stay below 2**53, so doubles are exact."""
    if counts is None:
        return np.bincount(of, minlength=classes)
    return np.bincount(of, weights=counts, minlength=classes).astype(np.int64)


def _key(
    parts: Sequence[NDArray[np.signedinteger]], bounds: Sequence[int], items: int
) -> tuple[Ints, int]:
    """One number for each combination, and what all of them lie below."""
    key: Ints = np.zeros(len(parts[0]) if parts else items, dtype=np.int64)
    limit = 1
    for part, bound in zip(parts, bounds, strict=True):
        if limit * max(bound, 1) > _LARGEST_KEY:
            found, key = np.unique(key, return_inverse=True)
            limit = max(len(found), 1)
        key = key * max(bound, 1) + part
        limit *= max(bound, 1)
    return key, limit
