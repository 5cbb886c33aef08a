"""Rows in memory, as integers: which of them the limits leave, and exact sums of what is left.

The same choices as in `limit_sql`, in NumPy. Most of the time goes into sorting the rows of each
unit by their content, so unit, group and values are packed into one integer where bounds allow it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data._duckdb.contribution_limits import content
from discreet.data._numpy.encode import Ints
from discreet.data.program import LIMB, PRIME, Program, Row, SumSpec, mixer
from discreet.data.schema import INT64


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedRows:
    """Rows that count: whose (an identity and a number to hash), group, values.

    Identities of whole numbers are the numbers themselves: then the two are one array.
    """

    unit: Ints
    number: Ints
    group: Ints
    values: tuple[Ints, ...]

    def take(self, which: NDArray[Any]) -> LimitedRows:
        """Some of them, or all in another order."""
        unit = self.unit[which]
        return LimitedRows(
            unit=unit,
            number=unit if self.number is self.unit else self.number[which],
            group=self.group[which],
            values=tuple([value[which] for value in self.values]),
        )


def tally(program: Program, rows: LimitedRows, key: int) -> list[Row]:
    """What an engine answers: limits first, then bins, then sums."""
    if program.unit is not None:
        rows = limit(program, rows, key)
    if program.bins is not None:
        place, many = program.bins
        rows = replace(rows, group=rows.group * many + rows.values[place])
    return aggregate(program, rows)


def limit(program: Program, rows: LimitedRows, key: int) -> LimitedRows:
    """The rows that the program's limits leave."""
    limits = program.limits
    if limits.max_groups_per_unit is not None and limits.max_groups_per_unit < program.size:
        rows = _keep_groups(rows, limit=limits.max_groups_per_unit, key=key)
    if limits.max_rows_per_unit_per_group is not None:
        most = limits.max_rows_per_unit_per_group
        rows = _keep_rows(program, rows, limit=most, key=key, in_group=True)
    if limits.max_rows_per_unit is not None:
        rows = _keep_rows(program, rows, limit=limits.max_rows_per_unit, key=key, in_group=False)
    return rows


def first(*keys: Ints) -> NDArray[np.bool_]:
    """Where a run of equal (sorted) keys begins."""
    begins = np.zeros(len(keys[0]), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return begins


def _keep_rows(
    program: Program, rows: LimitedRows, *, limit: int, key: int, in_group: bool
) -> LimitedRows:
    """Keep evenly spaced rows in the order of their content."""
    rows = _sorted(program, rows)
    starts = np.flatnonzero(first(rows.unit, *([rows.group] if in_group else [])))
    many = np.diff(starts, append=len(rows.unit))
    # Units within the limit keep everything: only the others are hashed.
    over = np.flatnonzero(np.repeat(many > limit, many))
    if len(over) == 0:
        return rows
    place = over - np.repeat(starts, many)[over]
    start = _hash(rows.take(over), key=key, purpose="rows in group" if in_group else "rows")
    kept = np.ones(len(rows.unit), dtype=bool)
    kept[over] = _chosen(place, np.repeat(many, many)[over], start, limit)
    return rows.take(kept)


def _sorted(program: Program, rows: LimitedRows) -> LimitedRows:
    """By unit, group and values."""
    fields = content(program)
    bits = [(field.width - 1).bit_length() for field in fields]
    low = int(rows.unit.min(initial=0))
    apart = int(rows.unit.max(initial=0)) - low
    columns = (rows.group, *rows.values)
    # Bounds hold for every row; if they did not, packing would give rows to other units.
    bounded = all(
        int(column.min(initial=0)) >= -field.shift
        and int(column.max(initial=0)) < field.width - field.shift
        for field, column in zip(fields, columns, strict=True)
    )
    if not bounded or rows.number is not rows.unit or sum(bits) + apart.bit_length() >= 63:
        return rows.take(np.lexsort((*reversed(rows.values), rows.group, rows.unit)))
    packed = rows.unit - low
    for field, many, column in zip(fields, bits, columns, strict=True):
        packed = (packed << many) | (column + field.shift)
    packed.sort()
    found = []
    for field, many in zip(reversed(fields), reversed(bits), strict=True):
        found.append((packed & ((1 << many) - 1)) - field.shift)
        packed = packed >> many
    unit = packed + low
    group, *values = reversed(found)
    return LimitedRows(unit=unit, number=unit, group=group, values=tuple(values))


def _keep_groups(rows: LimitedRows, *, limit: int, key: int) -> LimitedRows:
    rows = rows.take(np.lexsort((rows.group, rows.unit)))
    starts = np.flatnonzero(first(rows.unit))
    sizes = np.diff(starts, append=len(rows.unit))
    rank = np.cumsum(first(rows.unit, rows.group)) - 1
    place = rank - np.repeat(rank[starts], sizes)
    many = np.repeat(place[starts + sizes - 1] + 1, sizes)
    return rows.take(_chosen(place, many, _hash(rows, key=key, purpose="groups"), limit))


def _chosen(place: Ints, many: Ints, start: Ints, limit: int) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = (many <= limit) | ((place * limit + start % many) % many < limit)
    return chosen


def _hash(rows: LimitedRows, *, key: int, purpose: str) -> Ints:
    mix = mixer(key, purpose=purpose)
    limbs = [*zip(_limbs(rows.number), mix.unit, strict=True)]
    if purpose == "rows in group":
        limbs += zip(_limbs(rows.group), mix.group, strict=True)
    state = sum((limb * factor % PRIME for limb, factor in limbs), np.int64(0)) % PRIME
    for constant in mix.rounds:
        x = (state + constant) % PRIME
        y = x * x % PRIME
        state = (y * y % PRIME) * x % PRIME
    return np.asarray(state)


def _limbs(value: Ints) -> tuple[Ints, Ints, Ints]:
    return value & LIMB, (value >> 31) & LIMB, (value >> 62) & 3


def aggregate(program: Program, rows: LimitedRows) -> list[Row]:
    """Group, rows, units, sums, for each group that is not empty."""
    if len(rows.group) == 0:
        return []
    # Few groups fit into 16 bits, which NumPy sorts by radix.
    group = rows.group.astype(np.uint16) if program.entries <= 2**16 else rows.group
    together = (rows.unit, group) if program.count_units else (group,)
    rows = rows.take(np.lexsort(together))
    starts = np.flatnonzero(first(rows.group))
    counts = np.diff(starts, append=len(rows.group)).tolist()
    units = counts
    if program.unit is not None and program.count_units:
        heads = first(rows.group, rows.unit).astype(np.int64)
        units = np.add.reduceat(heads, starts).tolist()
    sums = [_sum(total, rows, starts) for total in program.sums]
    return list(zip(rows.group[starts].tolist(), counts, units, *sums, strict=True))


def _sum(total: SumSpec, rows: LimitedRows, starts: NDArray[np.intp]) -> list[int]:
    """Exact sums of products: in 64 bits where these suffice, in halves or Python integers else."""
    factors = [rows.values[place] for place in total.factors]
    if total.weight > INT64:
        wide = reduce(np.multiply, [factor.astype(object) for factor in factors])
        return [int(value) for value in np.add.reduceat(wide, starts)]
    product = reduce(np.multiply, factors)
    high = np.add.reduceat(product >> 31, starts).tolist()
    low = np.add.reduceat(product & LIMB, starts).tolist()
    return [(upper << 31) + lower for upper, lower in zip(high, low, strict=True)]
