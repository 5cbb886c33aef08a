"""What the commands of `discreet local` do: read, call, show."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from discreet.cli._console import literal_console
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.number_format import number, short
from discreet.core.tabular import csv_text
from discreet.data.source import open_source, run_sealed
from discreet.ledger.ledger import plain
from discreet.local.collection import _report_frames as frames
from discreet.local.collection.aggregator_state import COLUMNAR, AggregatorState, FileProgress
from discreet.local.collection.report_file import ReportWriter
from discreet.local.collection.spec import CollectionSpec
from discreet.local.ranges.release import LocalRanges
from discreet.spec.estimate_rows import estimate_rows, standard_error

if TYPE_CHECKING:
    from discreet.local.randomizer import LocalRandomizer


# ── Randomizers ──────────────────────────────────────────────────────────────────────────────────


# What `discreet local create` can set up: the function of `discreet.local` that makes the
# randomizer, and its arguments besides epsilon.
_CATEGORIES, _BOUNDS = ("categories",), ("lower", "upper")
RANDOMIZERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "grr": ("grr", _CATEGORIES),
    "sue": ("sue", _CATEGORIES),
    "oue": ("oue", _CATEGORIES),
    "the": ("threshold_histogram_encoding", _CATEGORIES),
    "she": ("summation_histogram_encoding", _CATEGORIES),
    "olh": ("olh", _CATEGORIES),
    "hadamard": ("hadamard_response", _CATEGORIES),
    "subset": ("subset_selection", _CATEGORIES),
    "mean": ("best_mean_randomizer", _BOUNDS),
    "distribution": ("square_wave", (*_BOUNDS, "cells")),
    "ranges": ("plan_collection", _BOUNDS),
    "words": ("heavy_hitters", ("length",)),
}
_CLIENTS = 1_000_000  # a plan of ranges is the same for any number


def make_randomizer(kind: str, *, epsilon: float, given: Mapping[str, Any]) -> LocalRandomizer:
    """The randomizer of this name."""
    from discreet import local

    name, needed = RANDOMIZERS[kind]
    if set(given) != set(needed):
        wanted = " and ".join(f"--{option}" for option in needed)
        raise InvalidArgument(
            f"--randomizer {kind} needs {wanted}, and nothing else besides --epsilon."
        )
    if kind == "ranges":
        return _ranges(epsilon, **given)
    made: LocalRandomizer = getattr(local, name)(epsilon=epsilon, **given)
    return made


def _ranges(epsilon: float, *, lower: float, upper: float) -> LocalRandomizer:
    """The best structure for all ranges of whole numbers."""
    from discreet import local
    from discreet.ranges.workload import all_ranges

    if not (lower.is_integer() and upper.is_integer() and lower < upper):
        raise InvalidArgument("--randomizer ranges needs whole numbers, --lower below --upper.")
    domain = local.integers(lower=int(lower), upper=int(upper))
    return local.plan_collection(
        domain, all_ranges(), epsilon=epsilon, expected_clients=_CLIENTS
    ).best


# ── Commands ─────────────────────────────────────────────────────────────────────────────────────


_VALUES = 1 << 16  # randomized at once
_SHOWN = 20
_MILLION = 1_000_000
_NAMED = ("category", "text", "column")
"""Columns with words of others, in a collection of texts those of its clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOutputOptions:
    """Where an estimate goes, and the level of its intervals."""

    as_json: bool
    csv_file: Path | None
    ranges_file: Path | None
    confidence: float


def create(
    kind: str, *, epsilon: float, categories_file: Path | None, given: Mapping[str, Any]
) -> int:
    """Print the collection, and tell what to expect of it."""
    names = () if categories_file is None else tuple(_text(categories_file).splitlines())
    if names:
        given = {"categories": len(names), **given}
    collection = CollectionSpec(
        randomizer=make_randomizer(kind, epsilon=epsilon, given=given), labels=names
    )
    print(json.dumps(collection.describe(), indent=1, ensure_ascii=False))
    randomizer = collection.randomizer
    error = standard_error(randomizer, reports=_MILLION)
    print(
        f"A report has {randomizer.width:,} bytes and costs its client epsilon "
        f"{number(randomizer.epsilon)}. A million of them give a standard error of at most "
        f"{short(error, digits=2)}.",
        file=sys.stderr,
    )
    return 0


def randomize(
    path: Path,
    values: Path | None,
    *,
    output: Path | None,
    column: str | None,
    unknown: str | None,
) -> int:
    """Randomize values into reports, some at a time."""
    collection = _collection(path)
    target: Path | BinaryIO = sys.stdout.buffer if output is None else output
    if output is None and sys.stdout.isatty():
        raise InvalidArgument("Reports are bytes: name a file with --output, or use a pipe.")
    # Randomized twice, a client would be counted twice and spend twice.
    with ReportWriter(target, collection, all_or_none=True) as writer:
        for texts in _texts(values, column):
            writer.write(collection.randomizer.randomize(collection.parse(texts, unknown=unknown)))
        written = writer.written
    print(f"{written:,} reports of collection {collection.fingerprint}.", file=sys.stderr)
    return 0


def aggregate(
    path: Path,
    reports: Sequence[Path],
    *,
    state: Path | None,
    column: str,
    shown: LocalOutputOptions,
) -> int:
    """Count what is new, write the state, estimate."""
    if not reports and sys.stdin.isatty():
        raise InvalidArgument("Name files of reports, or pipe them in.")
    inputs: Sequence[Path | BinaryIO] = reports or [sys.stdin.buffer]
    with AggregatorState(state, _collection(path)) as held:
        total = sum(os.path.getsize(one) for one in reports) if reports else None  # noqa: PTH202
        with _progress() as progress:
            task = progress.add_task("counting", total=total)
            counted = held.count(
                inputs,
                column=column,
                progress=lambda read: progress.update(task, advance=read),
            )
        _show(held, shown, files=counted)
    # If every file was left out, whoever waits for an estimate must hear of it.
    return 2 if all(one.note for one in counted) else 0


def estimate(paths: Sequence[Path], *, shown: LocalOutputOptions) -> int:
    """Estimate from states, without touching them."""
    with AggregatorState(paths[0]) as first:
        for path in paths[1:]:
            with AggregatorState(path) as other:
                first.merge(other)
        _show(first, shown)
    return 0


def _show(
    held: AggregatorState, shown: LocalOutputOptions, *, files: Sequence[FileProgress] = ()
) -> None:
    found = held.aggregate.estimate()
    rows = estimate_rows(found, held.collection, confidence=shown.confidence)
    if shown.csv_file is not None:
        _write(shown.csv_file, _csv(rows))
    if shown.ranges_file is not None:
        if not isinstance(found, LocalRanges):
            raise InvalidArgument("--ranges needs a collection of kind ranges.")
        _write(shown.ranges_file, found.to_json())
    whole = {"reports": held.aggregate.reports, "refused": held.aggregate.refused}
    if shown.as_json:
        told = {**whole, "collection": held.collection.fingerprint, "level": shown.confidence}
        print(json.dumps({**told, "files": [asdict(one) for one in files], "estimate": rows}))
        return
    for one in files:
        note = f"; {one.note}" if one.note else ""
        print(f"{one.name}: {one.reports:,} new, {one.refused:,} refused{note}", file=sys.stderr)
    print(f"{whole['reports']:,} reports counted, {whole['refused']:,} refused.")
    if whole["reports"] and rows:
        literal_console(soft_wrap=not sys.stdout.isatty()).print(_table(rows, shown.confidence))


def _table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Table:
    """The largest first, unless they have an order of their own."""
    heads = {end: f"{end}, {number(100 * confidence)}%" for end in ("low", "high")}
    left = len(rows) - _SHOWN
    made = Table(caption=f"and {left:,} more: see --csv or --json" if left > 0 else None)
    for head in rows[0]:
        words = head in ("category", "cell", "column", "text")
        made.add_column(heads.get(head, head), justify="left" if words else "right")
    ordered = "from" in rows[0] or "cell" in rows[0]
    for row in sorted(rows, key=lambda row: 0 if ordered else -row.get("share", 0))[:_SHOWN]:
        made.add_row(*(_cell(head, value) for head, value in row.items()))
    return made


def _cell(head: str, value: Any) -> str:
    if head == "count":
        return number(round(value))
    return short(value) if isinstance(value, float) else str(value)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    heads = list(rows[0]) if rows else []
    lines = [heads]
    for row in rows:
        named = {head: plain(str(row[head])) for head in _NAMED if head in row}
        lines.append([{**row, **named}[head] for head in heads])
    return csv_text(lines)


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TransferSpeedColumn())
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _collection(path: Path) -> CollectionSpec:
    return CollectionSpec.from_json(_text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"{path} cannot be read as text.") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written ({type(error).__name__}).") from None


def _texts(values: Path | None, column: str | None) -> Iterator[list[str]]:
    """Private values, some at a time; errors of reading quote none."""
    stored = values is not None and values.suffix.lower() in COLUMNAR
    if values is not None and column is not None and stored:
        found = _of_column(values, column)
    else:
        found = _of_lines(values, column)
    while some := run_sealed("reading the values", lambda: list(islice(found, _VALUES))):
        yield some


def _of_column(values: Path, column: str) -> Iterator[str]:
    source = open_source(values)
    if column not in source.columns:
        raise InvalidArgument(f"column {column!r} is not in {values}: check its name.")
    for piece in frames.pieces(source, column):
        for value in piece.to_pylist() if hasattr(piece, "to_pylist") else piece:
            yield "" if value is None else str(value)


def _of_lines(values: Path | None, column: str | None) -> Iterator[str]:
    stream: TextIO = sys.stdin if values is None else values.open(encoding="utf-8", newline="")
    with stream:
        if column is None:
            yield from (line.rstrip("\r\n") for line in stream)
            return
        lines = csv.reader(stream)
        head = next(lines, [])
        if column not in head:
            raise InvalidArgument(f"column {column!r} is not in the first line: check its name.")
        place = head.index(column)
        for row in lines:
            if len(row) <= place:
                raise OutOfDomain("A line has too few columns.")
            yield row[place]
