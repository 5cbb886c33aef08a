"""Public tables: lists of keys, and tables to join. They are read as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from discreet.core.errors import InvalidArgument
from discreet.data._numpy.encode import encode
from discreet.data.program import Key
from discreet.data.schema import LookupColumn, Plain
from discreet.data.source import check_type, open_source, private_connection, public_keys


def public_frame(table: object) -> nw.DataFrame[Any]:
    """A public frame in memory: itself, or the content of a CSV or Parquet file (CSV: as text)."""
    if isinstance(table, str | Path):
        path = Path(table)
        if not path.is_file() or path.suffix.lower() not in (".csv", ".parquet"):
            raise InvalidArgument(f"{str(path)!r} must be an existing .csv or .parquet file.")
        with private_connection() as connection:
            if path.suffix.lower() == ".csv":
                relation = connection.read_csv(str(path), header=True, all_varchar=True)
            else:
                relation = connection.read_parquet(str(path))
            return nw.from_native(relation.arrow().read_all(), eager_only=True)
    frame = nw.from_native(table, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        raise InvalidArgument(
            f"a public table must be a data frame or a file, got {type(table).__name__}."
        )
    return frame


def listed_keys(table: object, *, columns: Sequence[str]) -> tuple[Key, ...]:
    """The different rows of a public table, as group keys."""
    return public_keys(public_frame(table), columns=columns)


def lookups(
    table: object, *, on: str, source: str, columns: Mapping[str, Plain]
) -> dict[str, LookupColumn]:
    """Columns of a public table, found by the values of one of its own.

    ``on`` names the column of the public table that ``source`` of the private one is matched with;
    its values must be different. A row without a key is never found.
    """
    frame = public_frame(table)
    missing = [name for name in (on, *columns) if name not in frame.columns]
    if missing:
        raise InvalidArgument(f"columns {missing} are not in the public table.")
    types = open_source(frame.to_native()).columns
    keyed = frame.filter(~frame[on].is_null())
    textual = types[on] in ("text", "object")
    if not textual and types[on] != "integer":
        raise InvalidArgument(f"on={on!r} must hold texts or whole numbers in the public table.")
    keys = tuple(str(k) if textual else int(k) for k in keyed[on].to_list())
    kept = [place for place, key in enumerate(keys) if key != ""]
    if len({keys[place] for place in kept}) != len(kept):
        raise InvalidArgument(f"on={on!r} must be different in each row of the public table.")
    if any("\0" in str(key) for key in keys):
        raise InvalidArgument(f"on={on!r} must not contain NUL.")
    found = {}
    for name, column in columns.items():
        check_type(name, column, types[name])
        codes = encode(keyed[name], column, kind=types[name]).tolist()
        found[name] = LookupColumn(
            source=source,
            inner=column,
            textual=textual,
            keys=tuple(keys[place] for place in kept),  # type: ignore[arg-type]
            codes=tuple(codes[place] for place in kept),
        )
    return found
