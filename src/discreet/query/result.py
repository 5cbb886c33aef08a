"""What every published result offers, and what a plan offers: one protocol for all of them.

A *result* carries published numbers: releases of tables, ranges, grids and streams, estimates from
local reports, labels, intervals, coefficients, what an audit or an assessment found. It is a
`Result`: keys, value or values, standard deviation, interval, guarantee, its rows in any frame,
JSON that is read back, and a picture.

A *plan* is a table of what would be: error forecasts, candidates, comparisons of noise, of
strategies or of trust. It is a `Tabular` (`discreet.core.tabular`): its rows in any frame and a
plain text. It has no value, no interval and no guarantee that anybody paid for, and is not stored.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import UNKNOWN, number, percent, short
from discreet.core.tabular import SHOWN, ColumnKind, Record, Tabular, cell, columns_of

AnyGuarantee: TypeAlias = Guarantee | PersonalizedGuarantee
Values: TypeAlias = Sequence[Any] | NDArray[Any]
"""One entry for each row."""

NUMBERS = ("value", "std", "low", "high")
"""The columns that every result has, after those of its keys; None where there is none."""
VERSION = 1
# Control characters, separators of lines, and marks of direction.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_LEVEL = 0.95


class Card(Protocol):
    """The statement of a release: see `discreet.ReleaseCard`."""

    def verify(self, release: str | None = None) -> Tabular:
        """Compute its numbers again."""

    def to_json(self) -> str:
        """The card for machines."""

    def to_markdown(self) -> str:
        """The card for people."""

    def save(self, path: str | Path) -> Path:
        """Write it into a file; the format follows the suffix."""


class Picture(Protocol):
    """A figure: shown by notebooks, saved by `save`."""

    @property
    def svg(self) -> str:
        """The figure as SVG text."""

    def save(self, path: str | Path) -> Path:
        """Write it into a file; the format follows the suffix."""


if TYPE_CHECKING:
    from builtins import property as derived
else:
    T = TypeVar("T")

    class derived(Generic[T]):  # noqa: N801 - it stands where `property` stands
        """A property that a subclass may override by a field of that name.

        A dataclass takes an inherited property for the default of its field, and cannot set it.
        """

        def __init__(self, find: Callable[[Any], T]) -> None:
            self._find = find
            self.__doc__ = find.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> T:
            if instance is None:
                raise AttributeError(self._name)
            return self._find(instance)


class Result(Tabular):
    """A published result. What is done with it reads no data and costs nothing.

    Releases and estimates are differentially private, with `guarantee`. What an audit of series or
    an assessment of disclosure found has none: it tells of the data that were assessed.

    `value`, `std` and the ends of `interval` have one shape: a number where the result is one
    number, otherwise one entry for each row. `values` always has one entry for each row.
    `result[key]` is the value of one key, and `float(result)` that of a result which is one number.
    """

    __slots__ = ()

    @derived
    def keys(self) -> tuple[tuple[Any, ...], ...]:
        """The keys of the rows, in their order; one empty key if the result is one number."""
        return tuple(_key(row) for row in self.rows())

    @derived
    def values(self) -> Values:
        """The published numbers, one for each row."""
        return tuple(row["value"] for row in self.rows())

    @derived
    def value(self) -> Any:
        """The published number; one for each row if there are keys."""
        return self._in_shape("value")

    @derived
    def std(self) -> Any:
        """The standard deviation of the noise, in the shape of the value; None if unknown."""
        return self._in_shape("std")

    @derived
    def guarantee(self) -> AnyGuarantee | None:
        """What the result was charged for, or what each report satisfies; None if unknown.

        Results that are not differentially private have no such attribute.
        """
        raise AttributeError(f"{type(self).__name__} has no guarantee.")

    def interval(self, confidence: float = _LEVEL) -> tuple[Any, Any]:
        """Return the ends of the interval of each number, in the shape of the value.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            The lower and the upper end; None where no error is known.

        Examples:
            >>> import discreet
            >>> import pandas as pd
            >>> account = discreet.Ledger("memory://").account("demo", limit=discreet.pure_dp(1))
            >>> rows = pd.DataFrame({"smokes": [True, False] * 50})
            >>> columns = {"smokes": discreet.boolean()}
            >>> people = discreet.table(rows, columns=columns, account=account)
            >>> release = people.count(by="smokes", epsilon=1)
            >>> low, high = release.interval(0.9)
            >>> len(low), all(one < other for one, other in zip(low, high))
            (2, True)
        """
        return self._in_shape("low", confidence), self._in_shape("high", confidence)

    @derived
    def _confidence(self) -> float:
        """Of the intervals in `rows()`."""
        return _LEVEL

    @property
    def _is_single(self) -> bool:
        """Whether the result is one number."""
        rows = self.rows()
        return len(rows) == 1 and not _key(rows[0])

    def _in_shape(self, name: str, confidence: float | None = None) -> Any:
        column = tuple(row[name] for row in self._rows_at(confidence))
        return column[0] if self._is_single else column

    @abstractmethod
    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each key: the keys, then value, std, low and high.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            A list of dicts. `std`, `low` and `high` are None where no error is known.
        """

    def _rows_at(self, confidence: float | None) -> list[Record]:
        return self.rows() if confidence is None else self.rows(confidence)

    @property
    def _empty(self) -> tuple[str, ...]:
        return NUMBERS

    def plot(self, path: str | Path | None = None, *, confidence: float | None = None) -> Picture:
        """Draw the result with its intervals.

        Args:
            path: File to write as well; the format follows its suffix. SVG needs no library.
            confidence: Probability with which each interval holds, 0.95 unless the result has
                intervals of another one.

        Returns:
            A figure that notebooks show, with `svg` and `save`.

        Raises:
            Unsupported: The values are no numbers.

        Examples:
            >>> release.plot()
            Figure(count by smokes (epsilon 1))
        """
        # By the public name: drawing lies above results, and loads only when something is drawn.
        import discreet  # noqa: PLC0415

        return discreet.plot(self, path, confidence=confidence)

    def card(self) -> Card:
        """Write the release card: what is promised, to whom, and how the noise was made.

        The card holds no released number, costs nothing, and can be checked by others.

        Returns:
            The card. `discreet.card` takes a title, several releases, and what only you know.

        Raises:
            Unsupported: The result has no guarantee.

        Examples:
            >>> print(str(release.card().verify()).splitlines()[0])
            The card holds.
        """
        # By the public name: cards lie above results.
        import discreet  # noqa: PLC0415

        return discreet.card(self)

    def to_json(self) -> str:
        """Return the rows with their 95% intervals and the guarantee as JSON text.

        Returns:
            The text; `from_json` reads it back.

        Examples:
            >>> discreet.Release.from_json(release.to_json()).rows() == release.rows()
            True
        """
        return json.dumps(_content(self))

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read a result that `to_json` has written.

        Args:
            text: The text.

        Returns:
            A result with the same rows and guarantee.

        Raises:
            InvalidArgument: The text is no result.

        Examples:
            >>> discreet.Release.from_json(release.to_json()).guarantee
            Guarantee(discrete Laplace noise of scale 1 at sensitivity 1)
        """
        return StoredResult.read(text)

    def _cell(self, row: Record, name: str) -> str:
        return cell(row, name) if name in NUMBERS else _key_text(row[name])

    def _title(self) -> str:
        """What is stored as the title, and stands above the rows."""
        return re.sub(r"(?<=[a-z])[A-Z]", lambda m: f" {m[0].lower()}", type(self).__name__)

    def _shown(self) -> list[Record]:
        """The rows in the order in which the text lists them."""
        return self.rows()

    def __str__(self) -> str:
        paid = getattr(self, "guarantee", None)
        cost = f" ({describe_epsilon(paid)})" if isinstance(paid, Guarantee) else ""
        return "\n".join(
            [f"{self._title()}{cost}", *row_lines(self._shown(), confidence=self._confidence)]
        )

    def __repr__(self) -> str:
        return str(self)

    def __getitem__(self, key: object) -> Any:
        """Return the value of one key; a tuple, if there are several key columns."""
        wanted = key if isinstance(key, tuple) else (key,)
        for row in self.rows():
            if _key(row) == wanted:
                return row["value"]
        raise KeyError(key)

    def __float__(self) -> float:
        rows = self.rows()
        if len(rows) != 1 or rows[0]["value"] is None:
            raise TypeError(f"{len(rows)} numbers cannot be one: take result[key].")
        return float(rows[0]["value"])


class FixedResult(Result):
    """A result whose intervals were fixed when it was made: they have one confidence."""

    __slots__ = ()

    @abstractmethod
    def rows(self, confidence: float | None = None) -> list[Record]:
        """List one record for each key: the keys, then value, std, low and high.

        Args:
            confidence: That of the intervals, if it is given.

        Returns:
            A list of dicts. `std`, `low` and `high` are None where no error is known.

        Raises:
            Unsupported: Another confidence was asked for.
        """

    def interval(self, confidence: float | None = None) -> tuple[Any, Any]:
        """Return the ends of the interval of each number, in the shape of the value.

        Args:
            confidence: That of the intervals, if it is given.

        Returns:
            The lower and the upper end.

        Raises:
            Unsupported: Another confidence was asked for.

        Examples:
            >>> merged = release.merge_small_groups(below=0)
            >>> stored = type(merged).from_json(merged.to_json())
            >>> stored.interval() == merged.interval()
            True
        """
        return self._in_shape("low", confidence), self._in_shape("high", confidence)


def records(
    names: Sequence[str],
    keys: Iterable[Sequence[Any]],
    *,
    value: Iterable[Any],
    std: Iterable[Any] | None = None,
    low: Iterable[Any] | None = None,
    high: Iterable[Any] | None = None,
) -> list[Record]:
    """Return the rows of a result from its keys and its columns; None: no error is known."""
    numbers = (repeat(None) if one is None else _python(one) for one in (std, low, high))
    return [
        {**dict(zip(names, key, strict=True)), **dict(zip(NUMBERS, held, strict=True))}
        for key, *held in zip(keys, _python(value), *numbers, strict=False)
    ]


def check_confidence(asked: float | None, own: float) -> None:
    """Refuse another confidence than that of intervals which are already fixed."""
    if asked is not None and asked != own:
        raise Unsupported(
            f"confidence must be {number(own)}: the intervals were fixed when the result was "
            f"made, got {asked}."
        )


def _python(numbers: Iterable[Any]) -> Iterable[Any]:
    """Return the numbers of an array as Python's own."""
    listed: Iterable[Any] = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    return listed


def _key(row: Record) -> tuple[Any, ...]:
    return tuple(held for name, held in row.items() if name not in NUMBERS)


def _key_text(held: object) -> str:
    """A key for people: a year has no commas, and an edge not seventeen digits.

    Characters that break a line, steer a terminal or turn the order of letters are shown as codes:
    a discovered key is somebody's words, and must not look like another row.
    """
    if isinstance(held, float):
        return short(held, digits=6)
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(held))


def row_lines(
    rows: Sequence[Record], *, confidence: float = _LEVEL, none: str = ""
) -> Iterator[str]:
    """The first rows as text, each with its interval; ``none`` says why there is no interval."""
    for row in rows[:SHOWN]:
        key = ", ".join(map(_key_text, _key(row)))
        bars = f"  ({none})" if none else ""
        if row["low"] is not None:
            ends = f"{cell(row, 'low')} and {cell(row, 'high')}"
            bars = f"  ({percent(confidence)} between {ends})"
        yield f"  {key + ': ' if key else ''}{cell(row, 'value') or UNKNOWN}{bars}"
    if not rows:
        yield "  none"
    if len(rows) > SHOWN:
        yield f"  ... and {len(rows) - SHOWN:,} more"


# ── Stored results ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredResult(FixedResult):
    """The rows of a result that was stored, with its guarantee.

    Releases that hold their noisy measurements have a format of their own, and answer after
    loading whatever they answered before. Of other results the published table is stored, with
    intervals of 95%.
    """

    title: str
    confidence: float
    columns: tuple[tuple[str, ColumnKind, tuple[Any, ...]], ...]
    guarantee: AnyGuarantee | None = None

    def rows(self, confidence: float | None = None) -> list[Record]:
        """List the stored rows.

        Args:
            confidence: That of the stored intervals, if it is given.

        Returns:
            One record for each key: the keys, then value, std, low and high.

        Raises:
            Unsupported: Another confidence was asked for.
        """
        check_confidence(confidence, self.confidence)
        names = [name for name, _, _ in self.columns]
        held = (column for _, _, column in self.columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*held, strict=True)]

    @property
    def _empty(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns)

    @property
    def _confidence(self) -> float:
        return self.confidence

    def _title(self) -> str:
        return self.title

    @classmethod
    def read(cls, text: str) -> StoredResult:
        """Read the text of any result without a format of its own.

        Args:
            text: What `to_json` has written.

        Returns:
            The stored rows and the guarantee.

        Raises:
            InvalidArgument: The text is no such result.
        """
        with canonical.reading("a result"):
            content = json.loads(text)
            if content["discreet_result"] != VERSION:
                raise InvalidArgument("text is a result of another version.")
            columns = tuple(
                (str(one["name"]), one["kind"], tuple(_read(one["kind"], x) for x in one["cells"]))
                for one in content["columns"]
            )
            paid = content["guarantee"]
            made = cls(
                title=str(content["title"]),
                confidence=float(content["confidence"]),
                columns=columns,
                guarantee=None if paid is None else _read_guarantee(paid),
            )
        if [name for name, _, _ in columns][-4:] != list(NUMBERS) or (
            len({len(held) for _, _, held in columns}) > 1
        ):
            raise InvalidArgument("text must have the columns of a result, all of one length.")
        return made


def _content(result: Result) -> dict[str, Any]:
    paid = getattr(result, "guarantee", None)
    columns = columns_of(result.rows(), empty=result._empty)  # noqa: SLF001 - same module
    return {
        "discreet_result": VERSION,
        "title": result._title(),  # noqa: SLF001 - same module
        "confidence": result._confidence,  # noqa: SLF001 - same module
        "guarantee": None if paid is None else json.loads(paid.to_json()),
        "columns": [
            {"name": name, "kind": kind, "cells": [_written(x) for x in held]}
            for name, (kind, held) in columns.items()
        ],
    }


def _written(value: Any) -> Any:
    """A cell as JSON: texts for dates and for what is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, dt.date) else value


def _read(kind: ColumnKind, held: Any) -> Any:
    if held is None:
        return None
    match kind:
        case "date":
            return dt.date.fromisoformat(held)
        case "time":
            return dt.datetime.fromisoformat(held)
        case "real":
            return float(held)
        case "integer" | "boolean" | "text":
            if type(held) is not {"integer": int, "boolean": bool, "text": str}[kind]:
                raise InvalidArgument(f"text has a cell that is not {kind}.")
            return held
        case _:
            raise InvalidArgument(f"text has a column of the unknown kind {kind!r}.")


def _read_guarantee(content: dict[str, Any]) -> AnyGuarantee:
    text = json.dumps(content)
    if "levels" in content:
        return PersonalizedGuarantee.from_json(text)
    return Guarantee.from_json(text)
