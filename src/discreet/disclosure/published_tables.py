"""Tables of counts as they were published: numbers, marks, intervals, rounded numbers, totals."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw

from discreet.core._validate import as_mapping, as_tuple, count, flag, one_of
from discreet.core.errors import InvalidArgument
from discreet.disclosure._cell_bounds import CAP

Rounding = Literal["nearest", "random"]

SUPPRESSED = ("x", "*", "..", "...", "-", "–", "—", "c", "s", "")
"""Marks of agencies for a cell that is not shown."""
TOTALS = ("total", "all", "sum")
MOST_CELLS = 200_000
_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+(?:\.0+)?"
_BETWEEN = re.compile(rf"\[?\s*({_NUMBER})\s*(?:-|–|to|,\s)\s*({_NUMBER})\s*\]?")
_ABOVE = re.compile(rf"({_NUMBER})\s*\+|(?:>=|≥)\s*({_NUMBER})|>\s*({_NUMBER})")
_BELOW = re.compile(rf"(?:<=|≤)\s*({_NUMBER})|<\s*({_NUMBER})")


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One count of a published table.

    Attributes:
        labels: Label in each column of the table; None for a total.
        low: Smallest count that the table allows.
        high: Largest count that the table allows, or None.
        text: What the table shows.

    Examples:
        >>> from discreet import disclosure
        >>> table = disclosure.published_table({"sex": ["f", "m"], "count": ["<5", 12]})
        >>> table.cells[0]
        PublishedCell(labels=('f',), low=0, high=4, text='<5')
    """

    labels: tuple[str | None, ...]
    low: int
    high: int | None
    text: str

    @property
    def hidden(self) -> bool:
        """Whether the table leaves the count open."""
        return self.low != self.high

    def __str__(self) -> str:
        return " / ".join("total" if one is None else one for one in self.labels) or "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of counts that everybody can read.

    Attributes:
        name: What the table is called in reports.
        columns: Columns that classify the people.
        cells: All published counts.
        population: Labels that all people of the table share, by column.

    Examples:
        >>> from discreet import disclosure
        >>> table = disclosure.published_table({"sex": ["f", "m", "Total"], "count": ["x", 12, 14]})
        >>> table.columns, len(table.cells)
        (('sex',), 3)
    """

    name: str
    columns: tuple[str, ...]
    cells: tuple[PublishedCell, ...]
    population: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellReading:
    """How the text of a cell is read."""

    suppressed: frozenset[str]
    below: int | None
    zeros: bool
    base: int | None
    rounding: Rounding

    def cell(self, held: object, where: str) -> tuple[int, int | None, str]:
        text = "" if held is None else str(held).strip()
        if text.casefold() in self.suppressed:
            most = None if self.below is None else self.below - 1
            return int(self.zeros), most, text or "(empty)"
        if re.fullmatch(_NUMBER, text):
            return (*self._rounded(_whole(text), where), text)
        if found := _BETWEEN.fullmatch(text):
            return _whole(found[1]), _whole(found[2]), text
        if found := _ABOVE.fullmatch(text):
            return _whole(found[1] or found[2] or found[3]) + (found[3] is not None), None, text
        if found := _BELOW.fullmatch(text):
            least = int(self.zeros)
            return least, _whole(found[1] or found[2]) - (found[2] is not None), text
        raise InvalidArgument(
            f"{where} holds {text[:40]!r}, which is no count, interval or mark of a hidden cell: "
            "name the mark in suppressed."
        )

    def _rounded(self, value: int, where: str) -> tuple[int, int]:
        if self.base is None:
            return value, value
        if value % self.base:
            raise InvalidArgument(
                f"{where} holds {value}, which is no multiple of {self.base}: correct rounded."
            )
        far = self.base // 2 if self.rounding == "nearest" else self.base - 1
        return max(value - far, 0), value + far


def published_table(  # noqa: PLR0913 - how a table is printed takes many words
    source: object,
    *,
    columns: Sequence[str] | None = None,
    across: str | None = None,
    name: str | None = None,
    population: Mapping[str, str] | None = None,
    total: Sequence[str] = TOTALS,
    suppressed: Sequence[str] = SUPPRESSED,
    below: int | None = None,
    zeros_published: bool = False,
    rounded: int | None = None,
    rounding: Rounding = "nearest",
) -> PublishedTable:
    """Read a table of counts as it was published.

    A cell is a count, a mark of a hidden cell, an interval (`5-9`, `<5`, `10+`), or a rounded
    count. A table has one line for each count, or one column for each label of the column that
    runs across the page.

    Args:
        source: A CSV file, a dict of columns, or a data frame of pandas, Polars or PyArrow.
        columns: Columns that classify people. By default all columns but the last one, or, with
            `across`, the first one.
        across: Name for the column whose labels stand in the header, for a cross-tabulation.
        name: What the table is called; by default the name of the file.
        population: Labels that all people of the table share, such as `{"sex": "f"}`.
        total: Labels of totals, in any case.
        suppressed: Marks of hidden cells, in any case. An empty cell is hidden if "" is among them.
        below: The published rule of suppression: each marked cell is smaller than this. Leave it
            out if cells were also suppressed to protect others.
        zeros_published: Whether a hidden cell cannot be 0, because zeros are shown.
        rounded: Base to which all counts are rounded.
        rounding: `"nearest"` for conventional rounding; `"random"` if a count can go to either of
            the two nearest multiples.

    Returns:
        The table with the range that each cell allows.

    Raises:
        InvalidArgument: A column does not exist, a cell cannot be read, or a count stands twice.

    Privacy:
        The table is public, so nothing is charged and errors quote its cells. Do not use it for
        data that are not published.

    Examples:
        >>> from discreet import disclosure
        >>> table = disclosure.published_table(
        ...     {"site": ["a", "b", "Total"], "ill": ["x", 30, 33], "well": [40, 20, 60]},
        ...     across="health",
        ... )
        >>> print(table.cells[0])
        a / ill

    See Also:
        `audit_tables`, [Audit published tables](../how-to/published-tables.md).
    """
    if rounded is not None:
        count("rounded", rounded, minimum=2)
    if below is not None:
        count("below", below, minimum=2)
    reading = _CellReading(
        suppressed=frozenset(_words("suppressed", suppressed)),
        below=below,
        zeros=flag("zeros_published", zeros_published),
        base=rounded,
        rounding=one_of("rounding", rounding, ("nearest", "random")),
    )
    called, header, lines = _lines(source)
    title = called if name is None else _text("name", name)
    keys = _keys(title, header, columns, across)
    counts = [at for at, one in enumerate(header) if one not in keys]
    if len(lines) * len(counts) > MOST_CELLS:
        raise InvalidArgument(
            f"Table {title!r} has more than {MOST_CELLS:,} cells: audit a part of it, or coarser "
            "columns."
        )
    totals = frozenset(_words("total", total))
    places = [header.index(one) for one in keys]
    cells: dict[tuple[str | None, ...], PublishedCell] = {}
    for line in lines:
        row = [_label(line[at], totals) for at in places]
        for at in counts:
            labels = (*row, *(() if across is None else (_label(header[at], totals),)))
            where = f"Table {title!r}, cell {', '.join(str(one or 'total') for one in labels)},"
            if labels in cells:
                raise InvalidArgument(f"{where} stands twice in the table.")
            low, high, text = reading.cell(line[at], where)
            if high is not None and not low <= high < CAP:
                raise InvalidArgument(f"{where} holds {text!r}, which no count can be.")
            cells[labels] = PublishedCell(labels, low, high, text)
    named = (*keys, *(() if across is None else (across,)))
    fixed = {} if population is None else dict(as_mapping("population", population))
    both = [one for one in fixed if one in named]
    if both:
        raise InvalidArgument(f"population names {both}, which are columns of table {title!r}.")
    return PublishedTable(
        name=title,
        columns=named,
        cells=tuple(cells.values()),
        population={str(key): str(held) for key, held in fixed.items()},
    )


def _keys(
    title: str, header: list[str], columns: Sequence[str] | None, across: str | None
) -> tuple[str, ...]:
    """The columns that classify people, next to each other or not."""
    if columns is None:
        keys = tuple(header[:1] if across is not None else header[:-1])
    else:
        keys = tuple(_text("columns", one) for one in as_tuple("columns", columns))
    missing = [one for one in keys if one not in header]
    if missing or not keys:
        raise InvalidArgument(
            f"columns names {missing}, which table {title!r} does not have. Its columns: "
            f"{', '.join(map(repr, header))}."
        )
    rest = len(header) - len(keys)
    if across is None and rest != 1:
        raise InvalidArgument(
            f"Table {title!r} has {rest} columns of counts: name what runs across the page in "
            "across, or name all columns that classify people in columns."
        )
    if across is not None and (_text("across", across) in header or not rest):
        raise InvalidArgument(f"across must be a new name, but {across!r} is a column.")
    return keys


def _text(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{argument} must be text, got {type(value).__name__}.")
    return str(value)


def _words(argument: str, values: Sequence[str]) -> list[str]:
    return [str(one).strip().casefold() for one in as_tuple(argument, values)]


def _label(held: object, totals: frozenset[str]) -> str | None:
    text = "" if held is None else str(held).strip()
    return None if text.casefold() in totals else text


def _whole(text: str) -> int:
    return int(text.replace(",", "").partition(".")[0])


def _lines(source: object) -> tuple[str, list[str], list[list[Any]]]:
    """The name, the header and the lines."""
    if isinstance(source, str | Path):
        return _csv(Path(source))
    if isinstance(source, Mapping):
        held = {str(key): list(as_tuple(str(key), values)) for key, values in source.items()}
        if len({len(values) for values in held.values()}) > 1:
            raise InvalidArgument("source must have columns of one length.")
        return (
            "table",
            list(held),
            [[_plain(one) for one in row] for row in zip(*held.values(), strict=True)],
        )
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise InvalidArgument(
            f"source must be a CSV file, a dict of columns or a data frame, got "
            f"{type(source).__name__}."
        )
    rows = [[_plain(one) for one in row] for row in frame.rows()]
    return "table", list(frame.columns), rows


def _plain(held: object) -> object:
    """Pandas makes 12.0 of 12, and NaN of nothing."""
    if isinstance(held, float):
        return "" if math.isnan(held) else int(held) if held.is_integer() else held
    return held


def _csv(path: Path) -> tuple[str, list[str], list[list[str]]]:
    if not path.is_file():
        raise InvalidArgument(f"source {str(path)!r} is no file.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(map(str.strip, row))]
    except (UnicodeDecodeError, csv.Error):
        raise InvalidArgument(f"source {str(path)!r} is no CSV file in UTF-8.") from None
    header = [one.strip() for one in rows[0]] if rows else []
    if len(rows) < 2 or len(set(header)) < len(header):
        raise InvalidArgument(
            f"source {str(path)!r} needs a line with the names of its columns, all different, and "
            "lines of counts."
        )
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InvalidArgument(
                f"source {str(path)!r}, line {number}, has {len(row)} cells for {len(header)} "
                "columns."
            )
    return path.stem, header, rows[1:]
