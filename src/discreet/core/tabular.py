"""Tables of public numbers, and ways to carry them away.

Results and plans know their own rows. Data frames, Arrow, CSV and HTML follow from these alone, so
that a count, an estimate from local reports and a comparison of strategies all leave in one shape.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import number

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Record: TypeAlias = dict[str, Any]
"""One row: the cells by the names of their columns."""
ColumnKind: TypeAlias = Literal["integer", "real", "boolean", "date", "time", "text"]

SHOWN = 20
"""Rows that a text or an HTML table shows."""
_INT64 = 2**63
_ENDS = 4
"""Standard errors between the ends of a 95% interval, about."""


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as lines of CSV that end in LF. A cell with a line end of any kind is quoted."""
    text = io.StringIO()
    # With this end the writer also quotes a lone CR, at which readers would break the line.
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow(row)
        text.seek(text.tell() - 2)
        text.write("\n")
        text.truncate()
    return text.getvalue()


class Tabular(ABC):
    """A table of public numbers. What is done with it costs nothing.

    From its `rows` follow `to_dict`, `to_pandas`, `to_polars`, `to_arrow`, `to_csv` and `to_html`;
    `len` and iteration go over the same rows.
    """

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[Record]:
        """List the rows, each a dict from the name of a column to a cell."""

    def _rows_at(self, confidence: float | None) -> list[Record]:  # noqa: ARG002 - results depend on it
        return self.rows()

    @property
    def _empty(self) -> tuple[str, ...]:
        """The columns of a table without rows."""
        return ()

    def _frame_rows(self, confidence: float | None) -> list[Record]:
        """The rows as frames, CSV and HTML show them; a table may add columns to them."""
        return self._rows_at(confidence)

    def _columns(self, confidence: float | None) -> dict[str, tuple[ColumnKind, list[Any]]]:
        return columns_of(self._frame_rows(confidence), empty=self._empty)

    def to_dict(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """Return the rows as a dict of columns.

        Args:
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A list for each column, all of one length.

        Examples:
            >>> import discreet
            >>> import pandas as pd
            >>> account = discreet.Ledger("memory://").account("demo", limit=discreet.pure_dp(1))
            >>> rows = pd.DataFrame({"smokes": [True, False] * 50})
            >>> columns = {"smokes": discreet.boolean()}
            >>> people = discreet.table(rows, columns=columns, account=account)
            >>> release = people.count(by="smokes", epsilon=1)
            >>> list(release.to_dict())
            ['smokes', 'value', 'std', 'low', 'high']
        """
        return {name: held for name, (_, held) in self._columns(confidence).items()}

    def to_pandas(self, confidence: float | None = None) -> pd.DataFrame:
        """Return the rows as a pandas data frame.

        Args:
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A data frame; whole numbers with missing ones are `Int64`.

        Raises:
            Unsupported: pandas is not installed.

        Examples:
            >>> release.to_pandas()["smokes"].tolist()
            [False, True]
        """
        pandas = _library("pandas")
        kinds = {"integer": "int64", "real": "float64", "boolean": "bool", "text": "str"}
        nullable = {**kinds, "integer": "Int64", "boolean": "boolean"}
        made = {}
        for name, (kind, held) in self._columns(confidence).items():
            if kind == "time":
                made[name] = pandas.to_datetime(pandas.Series(held, dtype=object), utc=True)
            else:
                types = nullable if None in held else kinds
                made[name] = pandas.Series(held, dtype=types.get(kind, "object"))
        return pandas.DataFrame(made)

    def to_polars(self, confidence: float | None = None) -> pl.DataFrame:
        """Return the rows as a Polars data frame.

        Args:
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A data frame.

        Raises:
            Unsupported: Polars is not installed.

        Examples:
            >>> release.to_polars().columns
            ['smokes', 'value', 'std', 'low', 'high']
        """
        polars = _library("polars")
        kinds = {
            "integer": polars.Int64,
            "real": polars.Float64,
            "boolean": polars.Boolean,
            "date": polars.Date,
            "time": polars.Datetime("us", "UTC"),
            "text": polars.String,
        }
        found = self._columns(confidence)
        made: pl.DataFrame = polars.DataFrame(
            {name: held for name, (_, held) in found.items()},
            schema={name: kinds[kind] for name, (kind, _) in found.items()},
        )
        return made

    def to_arrow(self, confidence: float | None = None) -> pa.Table:
        """Return the rows as an Arrow table.

        Args:
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A PyArrow table.

        Raises:
            Unsupported: PyArrow is not installed.

        Examples:
            >>> release.to_arrow().num_rows
            2
        """
        arrow = _library("pyarrow")
        kinds = {
            "integer": arrow.int64(),
            "real": arrow.float64(),
            "boolean": arrow.bool_(),
            "date": arrow.date32(),
            "time": arrow.timestamp("us", "UTC"),
            "text": arrow.string(),
        }
        found = self._columns(confidence)
        return arrow.table(
            {name: arrow.array(held, type=kinds[kind]) for name, (kind, held) in found.items()}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to any library that speaks Arrow, such as `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_csv(self, path: str | Path | None = None, *, confidence: float | None = None) -> str:
        r"""Return the rows as CSV, and write them to a file if a path is given.

        Args:
            path: File to write, with UTF-8. It must not exist yet. If None, nothing is written.
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            The text: a header, then one line for each row. What is missing is empty.

        Raises:
            InvalidArgument: A file of that name exists.

        Examples:
            >>> release.to_csv().partition("\n")[0]
            'smokes,value,std,low,high'
        """
        found = self._columns(confidence)
        cells = zip(*(map(_cell, held) for _, held in found.values()), strict=True)
        text = csv_text([list(found), *cells])
        if path is not None:
            try:
                with Path(path).open("x", encoding="utf-8", newline="") as file:
                    file.write(text)
            except FileExistsError:
                raise InvalidArgument(
                    f"path {str(path)!r} exists: choose another name, or remove the file first."
                ) from None
        return text

    def to_parquet(self, path: str | Path, *, confidence: float | None = None) -> None:
        """Write the rows to a Parquet file.

        Args:
            path: File to write. It must not exist yet.
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Raises:
            InvalidArgument: A file of that name exists.
            Unsupported: PyArrow is not installed.

        Examples:
            >>> from pathlib import Path
            >>> from tempfile import mkdtemp
            >>> release.to_parquet(Path(mkdtemp()) / "smokers.parquet")
        """
        table = self.to_arrow(confidence)
        try:
            with Path(path).open("xb") as file:
                _library("pyarrow.parquet").write_table(table, file)
        except FileExistsError:
            raise InvalidArgument(
                f"path {str(path)!r} exists: choose another name, or remove the file first."
            ) from None

    def to_html(self, confidence: float | None = None) -> str:
        """Return the first rows as an HTML table, with numbers rounded to their noise.

        Args:
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A table; what is left out is counted below it.

        Examples:
            >>> "<table>" in release.to_html()
            True
        """
        rows = self._frame_rows(confidence)
        names = list(rows[0]) if rows else list(self._empty)
        shown = self._html_names(names)
        lines = [_html_row("th", shown)]
        lines += [
            _html_row("td", [self._cell(row, name) for name in shown]) for row in rows[:SHOWN]
        ]
        more = f"<p>... and {len(rows) - SHOWN:,} more</p>" if len(rows) > SHOWN else ""
        head = escape(self._caption())
        return f"<p>{head}</p><table>{''.join(lines)}</table>{more}"

    def _html_names(self, names: Sequence[str]) -> list[str]:
        """The columns of the HTML table."""
        # The ends of the interval say what the standard deviation says.
        return [name for name in names if name != "std" or "low" not in names]

    def _cell(self, row: Record, name: str) -> str:
        """A cell for people."""
        return cell(row, name)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _caption(self) -> str:
        """The line above the table."""
        return str(self).partition("\n")[0]

    def __bool__(self) -> bool:
        # Without this, `if result:` would list a million rows; no groups are a result as well.
        return True

    def __len__(self) -> int:
        return len(self.rows())

    def __iter__(self) -> Iterator[Record]:
        return iter(self.rows())


def cell(row: Mapping[str, Any], name: str) -> str:
    """A cell for people: numbers about the value are rounded to its noise."""
    if name not in ("value", "low", "high"):
        return number(row[name])
    error, low, high = row.get("std"), row.get("low"), row.get("high")
    if error is None and isinstance(low, int | float) and isinstance(high, int | float):
        error = (high - low) / _ENDS  # of a normal distribution
    return number(row[name], error=error)


def aligned(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """The first rows as lines: names above, texts to the left and numbers to the right."""
    if not rows:
        return ["  none"]
    names = list(rows[0])
    lines = [names, *([cell(row, name) for name in names] for row in rows[:SHOWN])]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    words = [any(isinstance(row[name], str) for row in rows) for name in names]
    made = [
        "  "
        + "  ".join(
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(line, widths, words, strict=True)
        ).rstrip()
        for line in lines
    ]
    return [*made, *([f"  ... and {len(rows) - SHOWN:,} more"] if len(rows) > SHOWN else [])]


def columns_of(
    rows: Sequence[Mapping[str, Any]], *, empty: Sequence[str] = ()
) -> dict[str, tuple[ColumnKind, list[Any]]]:
    """Return each column with its kind: one type for all its values, None for missing ones.

    The keys of one column may be of several types, such as whole numbers and "(other)": then all of
    them are texts.
    """
    names = list(rows[0]) if rows else list(empty)
    return {name: column_of([row[name] for row in rows]) for name in names}


def column_of(held: list[Any]) -> tuple[ColumnKind, list[Any]]:
    """Return one column with its kind: one type for all its values, None for missing ones."""
    kinds = {_kind(one) for one in held if one is not None}
    if kinds <= {"real", "integer"} and kinds != {"integer"}:
        return "real", [None if one is None else float(one) for one in held]
    if len(kinds) > 1 or kinds == {"text"}:
        return "text", [None if one is None else str(one) for one in held]
    return kinds.pop(), held


def _kind(value: object) -> ColumnKind:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer" if -_INT64 <= value < _INT64 else "real"
        case float():
            return "real"
        case dt.datetime():
            return "time"
        case dt.date():
            return "date"
        case _:
            return "text"


def _cell(value: object) -> object:
    return "" if value is None else value


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Unsupported(f"{name} is not installed: pip install {name}.") from None
