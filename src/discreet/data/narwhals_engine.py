"""Frames in memory: columns are read through narwhals, everything after is integer NumPy.

pandas, Polars and pyarrow run the same code, without a copy into another engine and without one
more dependency; narwhals' own expressions have no cast that cannot fail, no 128-bit sums, and treat
NaN differently on each backend. A lazy Polars frame is collected for the needed columns only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, assert_never

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.data.code import Bin, Binary, Clip, Code, Const, Divide, Operator, Pick, Ref
from discreet.data.encode import Ints, by_value, encode, texts
from discreet.data.engine import LIMB, PRIME, Row, mixer
from discreet.data.plan import Program, Sum
from discreet.data.schema import INT64
from discreet.data.source import Frame, Type, sealed
from discreet.data.text import UNIT


@dataclass(frozen=True, slots=True)
class NarwhalsEngine:
    """A frame that narwhals speaks."""

    source: Frame

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        return sealed("the computation", lambda: self._run(program, key))

    def _run(self, program: Program, key: int) -> Sequence[Row]:
        wanted = [field for field, _ in program.columns]
        if program.unit is not None and program.unit not in wanted:
            wanted.append(program.unit)
        narrow = self.source.frame.select(wanted) if wanted else self.source.frame
        data = narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
        types = self.source.columns
        codes = {f: encode(data[f], column, kind=types[f]) for f, column in program.columns}
        rows = _rows(program, codes, _unit(program, data, types))
        rows = rows if program.unit is None else _limit(program, rows, key)
        if program.bins is not None:
            place, many = program.bins
            rows = replace(rows, group=rows.group * many + rows.values[place])
        return _aggregate(program, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows that count: whose (an identity and a number to hash), group, values."""

    unit: Ints
    number: Ints
    group: Ints
    values: tuple[Ints, ...]

    def take(self, which: NDArray[Any]) -> _Rows:
        values = tuple(value[which] for value in self.values)
        return _Rows(
            unit=self.unit[which], number=self.number[which], group=self.group[which], values=values
        )


def _unit(
    program: Program, data: nw.DataFrame[Any], types: Mapping[str, Type]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Identity, number to hash, and whether there is a unit at all."""
    n = len(data)
    if program.unit is None:
        return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool)
    series, kind = data[program.unit], types[program.unit]
    if kind == "integer":
        null = series.is_null().to_numpy()
        values = series.cast(nw.Int64).fill_null(0).to_numpy().astype(np.int64, copy=False)
        return values, values, ~null
    if kind == "float":
        doubles = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
        whole = (doubles == np.floor(doubles)) & (np.abs(doubles) <= 2.0**53)
        values = np.where(whole, doubles, 0.0).astype(np.int64)
        return values, values, whole
    plain = texts(series, kind)
    numbers = [0]

    def identity(value: str) -> int:
        if not value:
            return 0
        numbers.append(_number(value))
        return len(numbers) - 1

    values = by_value(plain, identity)
    return values, np.array(numbers, dtype=np.int64)[values], values > 0


def _number(unit: str) -> int:
    if re.fullmatch(UNIT, unit) and -INT64 - 1 <= int(unit) <= INT64:
        return int(unit)
    digest = hashlib.md5(unit.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") >> 1


def _rows(
    program: Program, codes: dict[str, Ints], unit: tuple[Ints, Ints, NDArray[np.bool_]]
) -> _Rows:
    """Rows with a unit that pass the filter and have a public key."""
    identity, number, kept = unit
    n = len(identity)

    def column(code: Code) -> Ints:
        return np.broadcast_to(_evaluate(code, codes), n)

    if program.where is not None:
        kept = kept & (column(program.where) == 1)
    group = column(program.index)
    if program.cells is not None:
        cells = np.array(program.cells, dtype=np.int64)
        place = np.searchsorted(cells, group).clip(max=len(cells) - 1)
        kept = kept & (cells[place] == group)
        group = place
    values = tuple(column(value) for value in program.values)
    return _Rows(unit=identity, number=number, group=group, values=values).take(kept)


def _evaluate(code: Code, columns: dict[str, Ints]) -> Ints:
    match code:
        case Ref(column):
            return columns[column]
        case Const(value):
            return np.array(value, dtype=np.int64)
        case Binary(operator, left, right):
            a, b = _evaluate(left, columns), _evaluate(right, columns)
            return np.asarray(_OPERATIONS[operator](a, b), dtype=np.int64)
        case Divide(left, right, zero):
            a, b = _evaluate(left, columns), _evaluate(right, columns)
            return np.where(b == 0, zero, np.floor_divide(a, np.where(b == 0, 1, b)))
        case Clip(inner, lower, upper):
            return np.clip(_evaluate(inner, columns), lower, upper)
        case Bin(inner, edges):
            marks = np.array(edges, dtype=np.int64)
            return np.searchsorted(marks, _evaluate(inner, columns), side="right").astype(np.int64)
        case Pick(inner, first, table):
            return np.array(table, dtype=np.int64)[_evaluate(inner, columns) - first]
        case _:
            assert_never(code)


_OPERATIONS: Mapping[Operator, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "<": np.less,
    "<=": np.less_equal,
    "=": np.equal,
    "and": np.minimum,
    "or": np.maximum,
}


def _limit(program: Program, rows: _Rows, key: int) -> _Rows:
    limits = program.limits
    if limits.groups_per_unit is not None and limits.groups_per_unit < program.size:
        rows = _keep_groups(rows, limit=limits.groups_per_unit, key=key)
    if limits.rows_per_unit_and_group is not None:
        rows = _keep_rows(rows, limit=limits.rows_per_unit_and_group, key=key, in_group=True)
    if limits.rows_per_unit is not None:
        rows = _keep_rows(rows, limit=limits.rows_per_unit, key=key, in_group=False)
    return rows


def _first(*keys: Ints) -> NDArray[np.bool_]:
    """Where a run of equal (sorted) keys begins."""
    begins = np.zeros(len(keys[0]), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return begins


def _keep_rows(rows: _Rows, *, limit: int, key: int, in_group: bool) -> _Rows:
    """Keep evenly spaced rows in the order of their content."""
    rows = rows.take(np.lexsort((*reversed(rows.values), rows.group, rows.unit)))
    starts = np.flatnonzero(_first(rows.unit, *([rows.group] if in_group else [])))
    many = np.diff(starts, append=len(rows.unit))
    place = np.arange(len(rows.unit)) - np.repeat(starts, many)
    start = _hash(rows, key=key, purpose="rows in group" if in_group else "rows")
    return rows.take(_chosen(place, np.repeat(many, many), start, limit))


def _keep_groups(rows: _Rows, *, limit: int, key: int) -> _Rows:
    rows = rows.take(np.lexsort((rows.group, rows.unit)))
    starts = np.flatnonzero(_first(rows.unit))
    sizes = np.diff(starts, append=len(rows.unit))
    rank = np.cumsum(_first(rows.unit, rows.group)) - 1
    place = rank - np.repeat(rank[starts], sizes)
    many = np.repeat(place[starts + sizes - 1] + 1, sizes)
    return rows.take(_chosen(place, many, _hash(rows, key=key, purpose="groups"), limit))


def _chosen(place: Ints, many: Ints, start: Ints, limit: int) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = (many <= limit) | ((place * limit + start % many) % many < limit)
    return chosen


def _hash(rows: _Rows, *, key: int, purpose: str) -> Ints:
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


def _aggregate(program: Program, rows: _Rows) -> list[Row]:
    if len(rows.group) == 0:
        return []
    # Few groups fit into 16 bits, which NumPy sorts by radix.
    group = rows.group.astype(np.uint16) if program.entries <= 2**16 else rows.group
    together = (rows.unit, group) if program.count_units else (group,)
    rows = rows.take(np.lexsort(together))
    starts = np.flatnonzero(_first(rows.group))
    counts = np.diff(starts, append=len(rows.group)).tolist()
    units = counts
    if program.unit is not None and program.count_units:
        heads = _first(rows.group, rows.unit).astype(np.int64)
        units = np.add.reduceat(heads, starts).tolist()
    sums = [_sum(total, rows, starts) for total in program.sums]
    return list(zip(rows.group[starts].tolist(), counts, units, *sums, strict=True))


def _sum(total: Sum, rows: _Rows, starts: NDArray[np.intp]) -> list[int]:
    """Exact sums of products: in 64 bits where these suffice, in halves or Python integers else."""
    factors = [rows.values[place] for place in total.factors]
    if total.weight > INT64:
        wide = reduce(np.multiply, [factor.astype(object) for factor in factors])
        return [int(value) for value in np.add.reduceat(wide, starts)]
    product = reduce(np.multiply, factors)
    high = np.add.reduceat(product >> 31, starts).tolist()
    low = np.add.reduceat(product & LIMB, starts).tolist()
    return [(upper << 31) + lower for upper, lower in zip(high, low, strict=True)]
