"""`discreet audit tables`: what published tables of counts reveal together."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from discreet.cli._console import literal_console
from discreet.core.errors import InvalidArgument
from discreet.disclosure import (
    PublishedTable,
    SuppressionSuggestion,
    TableAudit,
    audit_tables,
    published_table,
    suggest_suppression,
)
from discreet.disclosure.published_tables import SUPPRESSED, Rounding
from discreet.report.table_audit_report import as_html, as_json, sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How the tables are printed, and what is asked."""

    columns: str | None
    across: str | None
    suppressed: tuple[str, ...]
    below: int | None
    zeros_published: bool
    rounded: int | None
    rounding: Rounding
    population: tuple[str, ...]
    open_columns: tuple[str, ...]
    hierarchies: Path | None
    threshold: int | None
    seconds: float
    suggest: bool


def run(files: Sequence[Path], options: TableOptions, *, html: Path | None, machine: bool) -> int:
    """Audit the tables; the exit code says whether something follows that was hidden."""
    if html is not None and html.exists():
        raise InvalidArgument(f"{html} exists: choose another name, or remove the file first.")
    tables = [_read(path, options) for path in files]
    names = [one.name for one in tables]
    if len(set(names)) < len(names):
        raise InvalidArgument("Two tables have the same name: rename a file.")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("bounding hidden cells", total=None)
        found = audit_tables(
            tables,
            hierarchies=_hierarchies(options.hierarchies),
            open_columns=options.open_columns,
            threshold=options.threshold or options.below or 5,
            seconds=options.seconds,
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if html is not None:
        _write(html, as_html(found, title=f"Audit of {', '.join(names)}"))
    if machine:
        content = json.loads(as_json(found))
        if options.suggest:
            content["suggestion"] = _suggested(tables, options).rows()
        print(json.dumps(content, indent=1, ensure_ascii=False))
    else:
        _show(found)
        if options.suggest:
            literal_console(soft_wrap=True).print("", str(_suggested(tables, options)), sep="\n")
    return 1 if found.known_exactly or found.differences else 0


def _suggested(tables: Sequence[PublishedTable], options: TableOptions) -> SuppressionSuggestion:
    return suggest_suppression(
        tables,
        hierarchies=_hierarchies(options.hierarchies),
        open_columns=options.open_columns,
        seconds=options.seconds,
    )


def _read(path: Path, options: TableOptions) -> PublishedTable:
    columns = None if options.columns is None else _header(path, options.columns.split(","))
    population = {}
    for one in options.population:
        table, _, rest = one.partition(":")
        column, _, label = rest.partition("=")
        if not label:
            raise InvalidArgument(
                f"--population must be TABLE:COLUMN=LABEL, such as women:sex=f, got {one!r}."
            )
        if table == path.stem:
            population[column] = label
    return published_table(
        path,
        columns=columns,
        across=options.across if _runs_across(path, columns, options.across) else None,
        population=population,
        suppressed=options.suppressed or SUPPRESSED,
        below=options.below,
        zeros_published=options.zeros_published,
        rounded=options.rounded,
        rounding=options.rounding,
    )


def _names(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return [one.strip() for one in next(csv.reader(file), [])]


def _header(path: Path, wanted: Sequence[str]) -> list[str]:
    """Those of the columns that this table has."""
    names = _names(path)
    return [one.strip() for one in wanted if one.strip() in names]


def _runs_across(path: Path, columns: Sequence[str] | None, across: str | None) -> bool:
    """Whether this table has labels in its header: then it has several columns of counts."""
    names = _names(path)
    return across is not None and across not in names and len(names) - len(columns or [""]) > 1


def _hierarchies(path: Path | None) -> Mapping[str, Mapping[str, Sequence[str]]] | None:
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InvalidArgument(f"--hierarchies: {path} is no JSON.") from None
    if not isinstance(found, dict):
        raise InvalidArgument(
            f'--hierarchies: {path} must hold {{"column": {{"coarse label": ["finer label"]}}}}.'
        )
    return found


def _write(path: Path, text: str) -> None:
    """Into a new file that only its owner can read: it shows what was hidden."""
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(target, "w", encoding="utf-8") as file:
        file.write(text)


def _show(found: TableAudit) -> None:
    console = literal_console(soft_wrap=True)
    console.print(sentence(found), "", str(found), "", "What to do:", sep="\n")
    for one in found.advice():
        console.print(f"- {one}")
