"""`discreet tables`, `synthesize` and `reconcile`: made of released files alone, at no cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.marginals.reconciled import ReconciledRelease
from discreet.marginals.release import MarginalRelease
from discreet.marginals.synthetic_rows import Values
from discreet.query.result import row_lines
from discreet.tables.marginals import ChargedMarginalRelease
from discreet.tables.reconcile import reconcile
from discreet.tables.release import Release

_PARQUET = ".parquet"
_Reconcilable: TypeAlias = Release | ChargedMarginalRelease


def show_tables(
    path: Path,
    *,
    by: str | None,
    nonnegative: bool,
    integers: bool,
    confidence: float,
    as_json: bool,
) -> int:
    """One table of a released file; without columns what tables there are."""
    release = _read(path)
    if by is None:
        if as_json:
            known = [[column.name for column in table.columns] for table in release.tables()]
            print(json.dumps({"tables": known, "total": release.total}))
        else:
            print(release.nonnegative(integers=integers) if nonnegative or integers else release)
        return 0
    names = [name.strip() for name in by.split(",") if name.strip()]
    unbiased = release.table(names)
    table = (
        release.nonnegative(integers=integers).table(names) if nonnegative or integers else unbiased
    )
    rows = table.rows(confidence)
    if as_json:
        print(json.dumps([{k: _plain(one) for k, one in row.items()} for row in rows]))
        return 0
    print("\n".join([f"count by {', '.join(names)}", *row_lines(rows, confidence=confidence)]))
    if table is not unbiased:
        print(release.nonnegative(integers=integers).table(names).statement)
    return 0


def write_rows(
    path: Path, *, size: int | None, out: Path, values: Values, seed: int | None, as_json: bool
) -> int:
    """Synthetic rows of a released file, into CSV or Parquet."""
    if out.exists():
        raise InvalidArgument(f"{out} exists: choose another name, or remove the file first.")
    if out.suffix not in (".csv", _PARQUET):
        raise InvalidArgument(f"{out} must end in .csv or .parquet.")
    rows = _read(path).synthesize(size, values=values, seed=seed)
    fidelity = rows.fidelity()
    if out.suffix == _PARQUET:
        rows.to_parquet(out)
    else:
        rows.to_csv(out)
    if as_json:
        told = {"rows": len(rows), "seed": rows.seed, "fidelity": fidelity.rows()}
        print(json.dumps(told))
        return 0
    print(f"{rows}\n\n{fidelity}\n\nWritten: {out} (seed {rows.seed})")
    return 0


def write_reconciled(paths: Sequence[Path], *, out: Path | None, as_json: bool) -> int:
    """Released files of the same rows, put together."""
    if out is not None and out.exists():
        raise InvalidArgument(f"{out} exists: choose another name, or remove the file first.")
    made = reconcile([one for path in paths for one in _releases(path)])
    if out is not None:
        out.write_text(made.to_json(), encoding="utf-8")
    if as_json:
        print(json.dumps([{k: _plain(one) for k, one in row.items()} for row in made.rows()]))
        return 0
    for table in made.tables():
        print(f"{table}\n")
    print(made)
    if out is not None:
        print(f"Written: {out}")
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"{path}: cannot be read.") from None


def _read(path: Path) -> MarginalRelease:
    """A release of many tables, with or without its receipt, or a reconciled one."""
    text = _text(path)
    try:
        if '"reconciled"' in text:
            return ReconciledRelease.from_json(text)
        return MarginalRelease.from_json(text)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {error}") from None


def _releases(path: Path) -> list[_Reconcilable]:
    """The releases of a file: counts, many tables, or all counts of a report."""
    text = _text(path)
    try:
        if '"discreet_marginals"' in text:
            return [ChargedMarginalRelease.from_json(text)]
        if '"discreet_release"' in text and '"releases"' in text:
            return [Release.from_json(json.dumps(one)) for one in json.loads(text)["releases"]]
        return [Release.from_json(text)]
    except (InvalidArgument, ValueError, TypeError, KeyError) as error:
        raise InvalidArgument(f"{path}: {error}") from None


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | None) else str(value)
