"""A panel from a CSV: a line for each person (wide), or for each value (long)."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.data._float_columns import read_columns
from discreet.data.source import open_source, run_sealed
from discreet.noise.distribution import Floats

_MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "."})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PanelFile:
    """People x times, and what both are called."""

    values: Floats = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    times: tuple[str, ...]
    dropped: int = 0
    """People who were left out because a value of theirs is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLayout:
    """Which columns hold what. Wide, unless ``time`` and ``value`` are named."""

    person: str | None = None
    time: str | None = None
    value: str | None = None
    delimiter: str = ","
    drop: bool = False
    """Whether people with missing values are left out."""

    @property
    def long(self) -> bool:
        """Whether a line is one value."""
        return self.time is not None or self.value is not None


def read(path: Path, layout: PanelLayout) -> PanelFile:
    """Read a panel; no value appears in an error, only how many are wrong, and in which line."""
    if len(layout.delimiter) != 1:
        raise InvalidArgument("--delimiter must be one character.")
    lines = run_sealed("reading the panel", lambda: list(_lines(path, layout.delimiter)))
    if len(lines) < 2:
        raise OutOfDomain(
            "The panel needs a first line with names of columns, and at least one more."
        )
    head, rows = lines[0][1], lines[1:]
    for number, row in rows:
        if len(row) != len(head):
            raise OutOfDomain(
                f"Line {number} has {len(row)} cells, the first line has {len(head)}: "
                "everybody needs as many times."
            )
    names, times, values = (_long if layout.long else _wide)(head, rows, layout)
    whole = np.asarray(np.isfinite(values).all(axis=1))
    if whole.all():
        return PanelFile(values=values, names=names, times=times)
    missing = int(np.isnan(values).sum())
    if not layout.drop:
        raise OutOfDomain(
            f"{missing:,} values of {int((~whole).sum()):,} people are missing. Fill them, cut the "
            "series to times that all have, or leave those people out with --drop-incomplete."
        )
    if not whole.any():
        raise OutOfDomain("Everybody has missing values: no panel is left.")
    kept = tuple(name for name, ok in zip(names, whole, strict=True) if ok)
    return PanelFile(values=values[whole], names=kept, times=times, dropped=len(names) - len(kept))


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    packed = path.suffix == ".gz"
    with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        for row in reader:
            if row:
                yield reader.line_num, row


def read_private(path: Path, layout: PanelLayout) -> PanelFile:
    """A panel for a private fit: each line is read by itself, and none can make this fail.

    The first line is public. What is missing or no number, and all values of a line that does not
    fit, are NaN. Nobody's name is kept.
    """
    if layout.long:
        raise InvalidArgument(
            "A private fit needs one line for each person: where a line is one value, the times "
            "themselves come from people's lines."
        )
    if path.suffix == ".gz":
        raise InvalidArgument(f"{path}: unpack it for a private fit.")
    source = open_source(path, format="csv", delimiter=layout.delimiter)
    head = list(source.columns)
    place = 0 if layout.person is None else _place(head, layout.person)
    times = tuple(name for i, name in enumerate(head) if i != place)
    if not times:
        raise OutOfDomain("The panel has one column: names of people, and no times.")
    return PanelFile(values=read_columns(source, times), names=(), times=times)


_Read = tuple[tuple[str, ...], tuple[str, ...], Floats]


def _wide(head: Sequence[str], rows: Sequence[tuple[int, list[str]]], layout: PanelLayout) -> _Read:
    """The first column, or the named one, says who; all others are times."""
    place = 0 if layout.person is None else _place(head, layout.person)
    times = tuple(name for i, name in enumerate(head) if i != place)
    if not times:
        raise OutOfDomain("The panel has one column: names of people, and no times.")
    names = tuple(row[place] for _, row in rows)
    if len(set(names)) < len(names):
        raise OutOfDomain(
            "The first column must name each person once; if a line is one value, name the columns "
            "with --person, --time and --value."
        )
    values = [
        [_number(cell, line) for i, cell in enumerate(row) if i != place] for line, row in rows
    ]
    return names, times, np.array(values)


def _long(head: Sequence[str], rows: Sequence[tuple[int, list[str]]], layout: PanelLayout) -> _Read:
    if layout.person is None or layout.time is None or layout.value is None:
        raise InvalidArgument("A panel with one value a line needs --person, --time and --value.")
    who, when, what = (_place(head, name) for name in (layout.person, layout.time, layout.value))
    people = {name: i for i, name in enumerate(dict.fromkeys(row[who] for _, row in rows))}
    moments = {name: t for t, name in enumerate(_ordered({row[when] for _, row in rows}))}
    values = np.full((len(people), len(moments)), math.nan)
    seen = np.zeros(values.shape, dtype=bool)
    for number, row in rows:
        cell = people[row[who]], moments[row[when]]
        if seen[cell]:
            raise OutOfDomain(f"Line {number} repeats a person and time: one value for each.")
        seen[cell] = True
        values[cell] = _number(row[what], number)
    return tuple(people), tuple(moments), values


def _ordered(times: set[str]) -> list[str]:
    """As numbers, if they are; otherwise as text, which is right for dates like 2024-05-01."""
    try:
        return sorted(times, key=float)
    except ValueError:
        return sorted(times)


def _place(head: Sequence[str], column: str) -> int:
    if head.count(column) != 1:
        raise InvalidArgument(f"column {column!r} must be in the first line once: check its name.")
    return head.index(column)


def _number(text: str, line: int) -> float:
    word = text.strip()
    if word.lower() in _MISSING:
        return math.nan
    try:
        value = float(word)
    except ValueError:
        raise OutOfDomain(
            f"Line {line} has a cell that is no number. In a wide panel the first column names "
            "people, all others are times."
        ) from None
    if math.isinf(value):
        raise OutOfDomain(f"Line {line} has an infinite value.")
    return value
