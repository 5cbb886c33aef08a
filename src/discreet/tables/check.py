"""The exact check of a source, free, for its owner alone: it is no release, and cannot be kept.

What is read here is private and exact. It leaves only by `Check.show`, in words and on paper that
says so; nothing of it can be written, pickled or drawn, and no server offers it.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias

from discreet.boundary.values import as_text
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data._spelling import SPACES, number_of
from discreet.data._text_parsing import decoder, missing_numbers
from discreet.data.execute import engine_of
from discreet.data.program import compile_program, units
from discreet.data.raw_values import RawRows, raw_rows, usual_text
from discreet.data.schema import (
    CategoryColumn,
    Column,
    ColumnSpec,
    DateColumn,
    LookupColumn,
    NumericColumn,
    Schema,
    TextColumn,
    date_label,
)
from discreet.data.source import Source, Type, check_source, check_type, check_unchanged, run_sealed
from discreet.data.unit import unit_columns
from discreet.query._release_plan import TableSpec
from discreet.tables.quality import widened

MARK = "PRIVATE: exact, not a release"
"""Stands above every page."""
REFUSED = (
    "check shows exact values of people and protects nobody: it is for the owner of the data, on "
    "their own screen. If that is you, say private=True. For numbers that others may see, use "
    "quality(columns, epsilon=...)."
)
_EXAMPLES = 5
_LONGEST = 40
_LISTED = 12
_CACHED = 100_000
_FAR = 10**9
Verdict: TypeAlias = tuple[str, Any]
"""The class of a value, and what is compared for the smallest and the largest."""


class Check:
    """What `Table.check` found: private and exact. Only `show` tells it."""

    __slots__ = ("_pages",)

    def __init__(self, pages: Sequence[Sequence[str]]) -> None:
        self._pages = tuple(map(tuple, pages))

    def show(self) -> None:
        """Print what was found, exactly, for the owner of the data alone.

        Every page says that it is private. Do not copy what it says into anything that is
        published, and do not choose bounds or categories by it.

        Privacy:
            None. This is not a release: it shows values of single people.

        Examples:
            >>> import discreet
            >>> import pandas as pd
            >>> ages = pd.DataFrame({"age": [23, 230]})
            >>> people = discreet.table(ages, columns={"age": discreet.integer(0, 120)})
            >>> people.check(private=True).show()
            PRIVATE: exact, not a release
              rows: 2
            <BLANKLINE>
            PRIVATE: exact, not a release
              column age: integer(lower=0, upper=120), integer in the source
              inside 1, below 0, above 1, missing 0, misfit 0
              smallest 23, largest 230
            <BLANKLINE>
        """
        for page in self._pages:
            sys.stdout.write("\n  ".join([MARK, *page]) + "\n\n")

    def __repr__(self) -> str:
        return "Check(private)"

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a check is private and exact: it cannot be copied, pickled or sent.")


def check_rows(source: Source, spec: TableSpec) -> Check:
    """Read a source once and count exactly what becomes of its values; nothing is released."""
    # Needs: the owner of the data asks, and nothing of it is passed on.
    check_unchanged(source)
    named = [name for name, one in spec.schema.items() if not isinstance(one, LookupColumn)]
    lacking = [
        name for name in (*named, *unit_columns(spec.privacy_unit)) if name not in source.columns
    ]
    columns: dict[str, _Column] = {}
    pages: list[list[str]] = []
    for name in named:
        if name in lacking:
            continue
        try:
            check_type(name, spec.schema[name], source.columns[name])
        except InvalidArgument as error:
            pages.append([f"column {name}", str(error)])
        else:
            columns[name] = _Column(name, spec.schema[name], source.columns[name])
    counted = run_sealed("the check", lambda: _counted(source, columns))
    pages += [one.page() for one in columns.values()]
    return Check(
        [
            [*_rows(counted), *_names(lacking, spec.schema, source)],
            *_units(source, spec, counted.rows, lacking),
            *pages,
        ]
    )


class _Rows:
    """How many rows there are, and which lines are none of a value."""

    def __init__(self) -> None:
        self.rows = self.malformed = 0
        self.lines: list[str] = []


def _counted(source: Source, columns: Mapping[str, _Column]) -> _Rows:
    found = _Rows()
    for some in raw_rows(source, list(columns)):
        found.rows += some.rows + len(some.malformed)
        found.malformed += len(some.malformed)
        found.lines += some.malformed[: _EXAMPLES - len(found.lines)]
        for one in columns.values():
            one.read(some)
    return found


# ── One column ───────────────────────────────────────────────────────────────────────────────────


class _Column:
    """The values of one column, counted by what becomes of them."""

    def __init__(self, name: str, column: ColumnSpec, kind: Type) -> None:
        self.name, self.column, self.kind = name, column, kind
        self._text = usual_text(column, kind)
        self._judge = _judge(column)
        self._known: dict[str, Verdict] = {}
        self.classes: Counter[str] = Counter()
        self.examples: dict[str, list[Any]] = {}
        self.ends: tuple[Any, Any] | None = None

    def read(self, some: RawRows) -> None:
        values = some.values[self.name]
        if all(type(value) is str for value in values):
            self._read_texts(values, some.places)
            return
        for place, value in enumerate(values):
            self._add(value, 1, self._judge(self._text(value)), some.places, place)

    def _read_texts(self, values: Sequence[str], places: Sequence[str] | None) -> None:
        """Each different text is judged once."""
        for value, times in Counter(values).items():
            verdict = self._known.get(value)
            if verdict is None:
                verdict = self._judge(self._text(value))
                if len(self._known) < _CACHED:
                    self._known[value] = verdict
            is_misfit = verdict[0] == "misfit" and places is not None
            self._add(value, times, verdict, places, values.index(value) if is_misfit else 0)

    def _add(
        self, value: object, times: int, verdict: Verdict, places: Sequence[str] | None, at: int
    ) -> None:
        kind, number = verdict
        self.classes[kind] += times
        if number is not None:
            low, high = self.ends or (number, number)
            self.ends = (min(low, number), max(high, number))
        if kind != "misfit":
            return
        text = _shown(value)
        if text in self.examples:
            self.examples[text][0] += times
        elif len(self.examples) < _EXAMPLES:
            self.examples[text] = [times, None if places is None else places[at]]

    def page(self) -> list[str]:
        column = self.column
        lines = [f"column {self.name}: {column!r}, {self.kind} in the source"]
        names = ["inside", "below", "above", "missing", "misfit"]
        if not isinstance(column, NumericColumn):
            names = ["inside", "missing", "misfit"]
        lines.append(", ".join(f"{name} {self.classes[name]}" for name in names))
        if self.ends is not None and isinstance(column, NumericColumn | DateColumn):
            low, high = (_end(one, column) for one in self.ends)
            lines.append(f"smallest {low}, largest {high}")
        for text, (times, line) in self.examples.items():
            where = "" if line is None else f", first in line {line}"
            many = "once" if times == 1 else f"{times} times"
            lines.append(f"does not fit: {text}, {many}{where}")
        return lines


def _judge(column: ColumnSpec) -> Callable[[str], Verdict]:
    """The class of a usual text, by the decoder of releases with a wider declaration."""
    if isinstance(column, TextColumn):
        return lambda text: ("inside" if text else "missing", None)
    if isinstance(column, LookupColumn):  # pragma: no cover - not a column of the source
        raise InvalidArgument("columns of other tables are checked there.")
    wide = widened(column)
    decode = decoder(wide)
    match column:
        case CategoryColumn():
            many = len(column.categories)
            classes = {many: "misfit", many + 1: "missing"}
            return lambda text: (classes.get(decode(text), "inside"), None)
        case NumericColumn():
            return _judge_number(column, wide, decode)
        case DateColumn():
            return _judge_date(column, decode)
    return lambda text: (_unknown(text) if decode(text) == wide.missing else "inside", None)


def _judge_number(
    column: NumericColumn, wide: Column, decode: Callable[[str], int]
) -> Callable[[str], Verdict]:
    gaps = missing_numbers(column)

    def judge(text: str) -> Verdict:
        code = decode(text)
        if code == wide.missing:
            is_gap = bool(gaps) and number_of(text.strip(SPACES)) in gaps
            return ("missing" if is_gap else _unknown(text)), None
        number = _exact(text.strip(SPACES))
        if code < column.lower:
            return "below", number
        return ("above" if code > column.upper else "inside"), number

    return judge


def _exact(plain: str) -> float | None:
    """The number that a text says; whole ones beyond doubles as they are."""
    is_whole = plain.isascii() and plain.lstrip("+-").isdigit()
    return int(plain) if is_whole else number_of(plain)


def _judge_date(column: DateColumn, decode: Callable[[str], int]) -> Callable[[str], Verdict]:
    spelling = column.spelling
    gaps = () if spelling is None else spelling.codes
    every = replace(
        column,
        lower=-_FAR,
        upper=_FAR,
        missing=_FAR + 1,
        spelling=None if spelling is None else replace(spelling, codes=()),
    )
    read = decoder(every)

    def judge(text: str) -> Verdict:
        code = read(text)
        if code in gaps:
            return "missing", None
        if code == every.missing:
            return _unknown(text), None
        return ("misfit" if decode(text) == column.upper + 1 else "inside"), code

    return judge


def _unknown(text: str) -> str:
    return "misfit" if text.strip(SPACES) else "missing"


def _end(number: Any, column: ColumnSpec) -> str:
    if not isinstance(column, DateColumn):
        return str(number)
    label = date_label(number, step=column.step)
    return f"{label:%Y-%m-%d %H:%M}" if isinstance(label, dt.datetime) else str(label)


def _shown(value: object) -> str:
    """A value as it stands, in quotes: nothing in it can move a terminal's cursor."""
    text = as_text(value)
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")


# ── Rows, names and units ────────────────────────────────────────────────────────────────────────


def _rows(found: _Rows) -> list[str]:
    lines = [f"rows: {found.rows}"]
    if found.malformed:
        lines.append(
            f"malformed lines: {found.malformed}, the first: {', '.join(found.lines)}; they are "
            "rows without values and are not counted below"
        )
    return lines


def _names(lacking: Iterable[str], schema: Schema, source: Source) -> list[str]:
    free = {name.strip().casefold(): name for name in source.columns if name not in schema}
    lines = []
    for name in dict.fromkeys(lacking):
        close = get_close_matches(name.strip().casefold(), list(free), n=3, cutoff=0.6)
        near = f"; near: {', '.join(_shown(free[one]) for one in close)}" if close else ""
        lines.append(f"column {name} is not in the source{near}")
    return lines


def _units(source: Source, spec: TableSpec, rows: int, lacking: Sequence[str]) -> list[list[str]]:
    """How many rows each unit has, as the engine of releases tells units apart."""
    unit = spec.privacy_unit
    if unit is None or set(unit_columns(unit)) & set(lacking):
        return []
    schema = {
        name: one if isinstance(one, TextColumn | LookupColumn) else replace(one, required=False)
        for name, one in spec.schema.items()
        if name not in lacking
    }
    title = f"privacy unit {unit}"
    try:
        program = compile_program(schema=schema, aggregates={"units": units()}, unit=unit)
        check_source(program, source)
    except InvalidArgument as error:
        return [[title, str(error)]]
    pairs = sorted((int(n), int(times)) for n, times in engine_of(source).spread(program)[0])
    having = sum(n * times for n, times in pairs)
    lines = [
        title,
        f"units: {sum(times for _, times in pairs)}",
        f"rows without a unit: {rows - having}",
    ]
    lines += [f"units with {n} row{'s' * (n > 1)}: {times}" for n, times in pairs[:_LISTED]]
    if rest := pairs[_LISTED:]:
        lines.append(f"units with more, up to {rest[-1][0]} rows: {sum(t for _, t in rest)}")
    limits = spec.limits
    caps = [limits.max_rows_per_unit, limits.max_rows_per_unit_per_group]
    cap = min([one for one in caps if one is not None], default=None)
    if cap is not None:
        cut = sum(max(n - cap, 0) * times for n, times in pairs)
        lines.append(f"a limit of {cap} per unit leaves out {cut} of {having} rows")
    return [lines]
