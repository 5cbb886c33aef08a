"""Frames in memory: columns are read through narwhals, everything after is integer NumPy.

pandas, Polars and pyarrow run the same code, without a copy into another engine and without one
more dependency; narwhals' own expressions have no cast that cannot fail, no 128-bit sums, and treat
NaN differently on each backend. A lazy Polars frame is collected for the needed columns only.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, assert_never

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from discreet.data._integer_ops import (
    Code,
    CodeBin,
    CodeBinary,
    CodeClip,
    CodeConst,
    CodeDivide,
    CodePick,
    CodeRef,
    Operator,
    in_order,
    parts,
)
from discreet.data._numpy.contribution_limits import LimitedRows, aggregate, first, limit, tally
from discreet.data._numpy.encode import DistinctTexts, Ints, by_value, distinct, encode
from discreet.data._text_parsing import UNIT
from discreet.data.program import Program, Row, fields
from discreet.data.schema import INT64, TextColumn
from discreet.data.source import FrameSource, Type, run_sealed

_GROUP = "\0group"  # no column has this name


@dataclass(frozen=True, slots=True)
class NarwhalsEngine:
    """A frame that narwhals speaks."""

    source: FrameSource

    def collect(self, program: Program, *, key: int) -> Sequence[Row]:
        return run_sealed("the computation", partial(self._collect, program, key))

    def keys(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return run_sealed("the computation", partial(self._keys, program, key))

    def rows(self, program: Program, *, key: int) -> Sequence[Sequence[Any]]:
        return run_sealed("the computation", partial(self._rows, program, key))

    def values(self, program: Program, *, key: int) -> tuple[Ints, ...]:
        return run_sealed("the computation", partial(self._values, program, key))

    def spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        return run_sealed("the computation", partial(self._spread, program))

    def _collect(self, program: Program, key: int) -> Sequence[Row]:
        data, codes = self._read(program)
        rows = _counted(program, codes, _unit(program, data, codes, self.source.columns))
        return tally(program, rows, key)

    def _keys(self, program: Program, key: int) -> Sequence[Sequence[Any]]:
        data, codes = self._read(program)
        unit = _unit(program, data, codes, self.source.columns)
        declared = dict(program.columns)
        found = [
            _ranked(distinct(data[f], self.source.columns[f], declared[f])) for f in program.texts
        ]
        there = np.logical_and.reduce([unit.there, *(codes >= 0 for _, codes in found)])
        # The order of keys is that of their texts, then of the index.
        index = np.broadcast_to(evaluate(program.index, codes), len(data))
        parts = [*(ranks for _, ranks in found), index]
        group = _together(parts)
        counted = replace(program, index=CodeRef(_GROUP), size=len(data) + 1, count_units=True)
        rows = _limited(counted, {**codes, _GROUP: group}, replace(unit, there=there), key)
        _, heads = np.unique(group, return_index=True)
        answer = []
        for g, _, units in aggregate(counted, rows):
            *ranks, place = (int(part[heads[g]]) for part in parts)
            known = (names[rank] for (names, _), rank in zip(found, ranks, strict=True))
            answer.append((place, units, *known))
        return answer

    def _rows(self, program: Program, key: int) -> Sequence[Sequence[Any]]:
        data, codes = self._read(program)
        unit = _unit(program, data, codes, self.source.columns)
        rows = _limited(program, codes, unit, key)
        named = [unit.names[i] for i in rows.unit] if unit.names else rows.unit.tolist()
        return list(zip(named, *(value.tolist() for value in rows.values), strict=True))

    def _values(self, program: Program, key: int) -> tuple[Ints, ...]:
        data, codes = self._read(program)
        rows = _limited(program, codes, _unit(program, data, codes, self.source.columns), key)
        return tuple([value.astype(np.int64, copy=False) for value in rows.values])

    def _spread(self, program: Program) -> tuple[Sequence[Row], Sequence[Row]]:
        data, codes = self._read(program)
        rows = _limited(program, codes, _unit(program, data, codes, self.source.columns), 0)
        if len(rows.unit) == 0:
            return [], []
        rows = rows.take(np.lexsort((rows.group, rows.unit)))
        starts = np.flatnonzero(first(rows.unit))
        many = np.diff(starts, append=len(rows.unit))
        groups = np.add.reduceat(first(rows.unit, rows.group).astype(np.int64), starts)
        rows_had, groups_had = (np.unique(n, return_counts=True) for n in (many, groups))
        return list(zip(*rows_had, strict=True)), list(zip(*groups_had, strict=True))

    def _read(self, program: Program) -> tuple[nw.DataFrame[Any], dict[str, Ints]]:
        """The fields that are needed, and the codes of all columns but open text."""
        read = fields(program)
        wanted = list(dict.fromkeys([field for field, _ in read]))
        wanted += [name for name in program.unit_columns if name not in wanted]
        narrow = self.source.frame.select(wanted) if wanted else self.source.frame
        data = narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
        codes = {
            name: encode(data[field], column, kind=self.source.columns[field])
            for (name, column), (field, _) in zip(program.columns, read, strict=True)
            if not isinstance(column, TextColumn)
        }
        return data, codes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Whose each row is: an identity, a number to hash, and whether there is a unit at all.

    ``names`` are the texts that identities stand for; without them an identity is the name.
    """

    identity: Ints
    number: Ints
    there: NDArray[np.bool_]
    names: tuple[str, ...] = ()


def _unit(
    program: Program, data: nw.DataFrame[Any], codes: dict[str, Ints], types: Mapping[str, Type]
) -> _Unit:
    n = len(data)
    if program.unit is None:
        nobody = np.zeros(n, dtype=np.int64)
        return _Unit(identity=nobody, number=nobody, there=np.ones(n, dtype=bool))
    owners = [_owner(data[name], types[name]) for name in program.unit_columns]
    if isinstance(program.unit, str):
        return owners[0]
    parts = [owner.identity for owner in owners]
    if program.unit_value is not None:
        parts.append(np.broadcast_to(evaluate(program.unit_value, codes), n))
    identity = _together(parts)
    _, heads, many = np.unique(identity, return_index=True, return_counts=True)
    # No limit drops the row of a unit that has one: only the others are named and hashed.
    several = np.flatnonzero(many > 1)
    heads = heads[several]
    columns = [part[heads].tolist() for part in parts]
    for place, owner in enumerate(owners):
        texts = [owner.names[i] for i in columns[place]] if owner.names else columns[place]
        columns[place] = [f"{len(str(text).encode())}:{text}" for text in texts]
    numbers = np.zeros(len(many), dtype=np.int64)
    numbers[several] = [_number("".join(map(str, one))) for one in zip(*columns, strict=True)]
    there = np.logical_and.reduce([owner.there for owner in owners], initial=True)
    return _Unit(
        identity=identity,
        number=numbers[identity],
        there=np.broadcast_to(there, n),
    )


def _owner(series: nw.Series[Any], kind: Type) -> _Unit:
    """Whose each row is by one column."""
    if kind == "integer":
        null = series.is_null().to_numpy()
        values = series.cast(nw.Int64).fill_null(0).to_numpy().astype(np.int64, copy=False)
        return _Unit(identity=values, number=values, there=~null)
    if kind == "float":
        doubles = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
        whole = (doubles == np.floor(doubles)) & (np.abs(doubles) <= 2.0**53)
        values = np.where(whole, doubles, 0.0).astype(np.int64)
        return _Unit(identity=values, number=values, there=whole)
    names = [""]

    def identity(value: str) -> int:
        if not value:
            return 0
        names.append(value)
        return len(names) - 1

    values = by_value(distinct(series, kind), identity)
    numbers = np.array([0, *map(_number, names[1:])], dtype=np.int64)
    return _Unit(identity=values, number=numbers[values], there=values > 0, names=tuple(names))


def _together(parts: Sequence[Ints]) -> Ints:
    """The rank of each row among all different rows of these columns, in their order."""
    rank = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        values, place = np.unique(part, return_inverse=True)
        if len(values) > 1:
            rank = np.unique(rank * len(values) + place, return_inverse=True)[1]
    return rank


def _ranked(found: DistinctTexts) -> tuple[list[str], Ints]:
    """The texts that occur, in the order of their bytes, and the place of each row's (or -1)."""
    known = sorted((text for text in found.texts if text and "\0" not in text), key=str.encode)
    places = {text: place for place, text in enumerate(known)}
    return known, by_value(found, lambda text: places.get(text, -1))


def _number(unit: str) -> int:
    if re.fullmatch(UNIT, unit) and -INT64 - 1 <= int(unit) <= INT64:
        return int(unit)
    digest = hashlib.md5(unit.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") >> 1


def _limited(program: Program, codes: dict[str, Ints], unit: _Unit, key: int) -> LimitedRows:
    """Rows that count and are within the limits."""
    rows = _counted(program, codes, unit)
    return rows if program.unit is None else limit(program, rows, key)


def _counted(program: Program, codes: dict[str, Ints], unit: _Unit) -> LimitedRows:
    """Rows with a unit that pass the filter and have a public key."""
    kept, n = unit.there, len(unit.identity)

    def column(code: Code) -> Ints:
        return np.broadcast_to(evaluate(code, codes), n)

    for name, one in program.columns:
        if name in program.known and not isinstance(one, TextColumn):
            kept = kept & (codes[name] >= one.lower) & (codes[name] <= one.upper)
    if program.where is not None:
        kept = kept & (column(program.where) == 1)
    group = column(program.index)
    if program.cells is not None:
        cells = np.array(program.cells, dtype=np.int64)
        place = np.searchsorted(cells, group).clip(max=len(cells) - 1)
        hit = cells[place] == group
        kept = kept if program.rest else kept & hit
        group = np.where(hit, place, len(cells))
    values = tuple([column(value) for value in program.values])
    return LimitedRows(unit=unit.identity, number=unit.number, group=group, values=values).take(
        kept
    )


def evaluate(code: Code, columns: Mapping[str, Ints]) -> Ints:
    """The value of an expression; each node is computed once and kept while something needs it."""
    order = in_order([code])
    if len(order) == 1:  # a column, as most often
        return _node(code, [], columns)
    uses = Counter(part for one in order for part in parts(one))
    made: dict[Code, Ints] = {}
    for one in order:
        made[one] = _node(one, [made[part] for part in parts(one)], columns)
        for part in parts(one):
            uses[part] -= 1
            if not uses[part]:
                del made[part]
    return made[code]


def _node(code: Code, inner: list[Ints], columns: Mapping[str, Ints]) -> Ints:
    match code:
        case CodeRef(column):
            return columns[column]
        case CodeConst(value):
            return np.array(value, dtype=np.int64)
        case CodeBinary(operator):
            return np.asarray(_OPERATIONS[operator](*inner), dtype=np.int64)
        case CodeDivide(_, _, zero):
            a, b = inner
            return np.where(b == 0, zero, np.floor_divide(a, np.where(b == 0, 1, b)))
        case CodeClip(_, lower, upper):
            return np.clip(inner[0], lower, upper)
        case CodeBin(_, edges):
            marks = np.array(edges, dtype=np.int64)
            return np.searchsorted(marks, inner[0], side="right").astype(np.int64)
        case CodePick(_, first, table):
            return np.array(table, dtype=np.int64)[inner[0] - first]
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
