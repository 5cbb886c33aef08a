"""`discreet local`: from the values of clients to an estimate, without a trusted server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from discreet.cli._local_commands import RANDOMIZERS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITTEN = click.Path(dir_okay=False, path_type=Path)
_CONFIDENCE = click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Confidence of the intervals."
)
_CSV = click.option("--csv", "csv_file", type=_WRITTEN, help="Write the estimate here, as CSV.")
_RANGES = click.option("--ranges", "ranges_file", type=_WRITTEN, help="For `discreet ranges`.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(short_help="Collect without a trusted server.")
def local() -> None:
    """Collect without a trusted server: each client randomizes its own value.

    Everyone shares one COLLECTION, a small JSON file that `create` writes.
    """


@local.command(short_help="Print a collection: what clients do.")
@click.option(
    "--randomizer",
    required=True,
    type=click.Choice(sorted(RANDOMIZERS)),
    help="Local randomizer that makes the reports.",
)
@click.option("--epsilon", required=True, type=float, help="What one report may cost its client.")
@click.option("--categories", type=int, help="How many categories there are, coded from 0.")
@click.option("--categories-file", type=_FILE, help="Names of the categories, one per line.")
@click.option("--lower", type=float, help="Of numbers: their smallest value.")
@click.option("--upper", type=float, help="Of numbers: their largest value.")
@click.option("--cells", type=int, help="Of a distribution: how fine it is to be.")
@click.option("--length", type=int, help="Of words: their largest number of bytes.")
def create(
    *,
    randomizer: str,
    epsilon: float,
    categories: int | None,
    categories_file: Path | None,
    lower: float | None,
    upper: float | None,
    cells: int | None,
    length: int | None,
) -> None:
    """Print a COLLECTION: what clients do, and how their reports are read.

    What to expect of it is told on standard error.
    """
    from discreet.cli._local_commands import create as run

    numbers = {"lower": lower, "upper": upper, "cells": cells}
    chosen = {"categories": categories, "length": length, **numbers}
    given = {name: value for name, value in chosen.items() if value is not None}
    sys.exit(run(randomizer, epsilon=epsilon, categories_file=categories_file, given=given))


@local.command(short_help="Randomize values into reports, on the client's side.")
@click.argument("collection", type=_FILE)
@click.argument("values", type=_FILE, required=False)
@click.option("--output", "-o", type=_WRITTEN, help="Append reports here; else standard output.")
@click.option("--column", help="The column that holds the values: VALUES is CSV, Parquet, Arrow.")
@click.option("--unknown", help="The label that stands for every value that is no label.")
def randomize(
    collection: Path,
    *,
    values: Path | None,
    output: Path | None,
    column: str | None,
    unknown: str | None,
) -> None:
    """Randomize values, one a line (or from standard input), into reports.

    Each value is a category's code or label, or a number. Reports are safe to send; the values are
    not. Randomizing a person's value again costs epsilon again.
    """
    from discreet.cli._local_commands import randomize as run

    sys.exit(run(collection, values, output=output, column=column, unknown=unknown))


@local.command()
@click.argument("collection", type=_FILE)
@click.argument("reports", type=_FILE, nargs=-1)
@click.option("--state", type=_WRITTEN, help="Keep the count here, to go on later.")
@click.option("--column", default="report", show_default=True, help="In CSV, Parquet, Arrow files.")
@_CSV
@_RANGES
@_CONFIDENCE
@_JSON
def aggregate(
    collection: Path,
    *,
    reports: tuple[Path, ...],
    state: Path | None,
    column: str,
    csv_file: Path | None,
    ranges_file: Path | None,
    confidence: float,
    as_json: bool,
) -> None:
    """Count REPORTS (or standard input) and estimate.

    With --state, what was counted is not counted again: stop this command at any moment, run it
    again, or run it with more files or files that have grown. Reports that no client can have sent
    are refused and counted.
    """
    from discreet.cli._local_commands import LocalOutputOptions
    from discreet.cli._local_commands import aggregate as run

    shown = LocalOutputOptions(
        as_json=as_json, csv_file=csv_file, ranges_file=ranges_file, confidence=confidence
    )
    sys.exit(run(collection, reports, state=state, column=column, shown=shown))


@local.command(short_help="Estimate from counts that were kept.")
@click.argument("states", type=_FILE, nargs=-1, required=True)
@_CSV
@_RANGES
@_CONFIDENCE
@_JSON
def estimate(
    states: tuple[Path, ...],
    *,
    csv_file: Path | None,
    ranges_file: Path | None,
    confidence: float,
    as_json: bool,
) -> None:
    """Estimate from STATES that `aggregate` kept, added up if there are several."""
    from discreet.cli._local_commands import LocalOutputOptions
    from discreet.cli._local_commands import estimate as run

    shown = LocalOutputOptions(
        as_json=as_json, csv_file=csv_file, ranges_file=ranges_file, confidence=confidence
    )
    sys.exit(run(states, shown=shown))
