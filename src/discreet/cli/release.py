"""`discreet release`: charge, answer, and write JSON, CSV and one HTML page."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from discreet.accounting.guarantee import describe_epsilon
from discreet.cli._console import literal_console
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.noise.random_source import system_rng
from discreet.query._release_plan import ReleasePlan
from discreet.report import release_report as page
from discreet.report.marginal_section import MarginalSection
from discreet.report.range_section import shown
from discreet.spec.release_file import ReleaseFile, account_text, budget_status, read
from discreet.tables._execute import execute
from discreet.tables.marginals import ChargedMarginalRelease
from discreet.tables.range_release import AnyRangeRelease
from discreet.tables.release import Release
from discreet.tables.table import Table, table

EXIT_SHORT = 3
"""The budget is short; nothing was read or spent."""

EXIT_UNWRITTEN = 4
"""Released and charged, but a result has no file: it was printed."""


def run(path: Path, *, folder: Path | None, overwrite: bool, as_json: bool) -> int:
    """Release all statistics of a file, or none."""
    file = read(path)
    planned = file.plan()
    known = budget_status(file).account is not None
    targets = _targets(
        (folder or path.parent) / path.stem,
        ranges=len(planned.ranges),
        marginals=len(planned.marginals),
        overwrite=overwrite,
    )
    if any(target.resolve() == Path(file.source).resolve() for target in targets.values()):
        raise InvalidArgument(f"{file.source} would be overwritten by a result: use --output.")
    with Ledger(file.ledger) as ledger:
        account = ledger.account(file.account, limit=None if known else file.limit)
        try:
            releases, ranges, marginals = _released(file, planned, account)
        except BudgetExceeded as refusal:
            return print_refusal(refusal, as_json=as_json)
        report = page.ReleaseReport(
            title=file.title,
            releases=tuple(releases),
            guarantee=planned.guarantee,
            account=f"Charged to {account_text(account)}.",
            statement=account.statement(),
            marginals=tuple(
                MarginalSection(release=one, plan=plan, file=targets[f"marginals {i}"].name)
                for i, (one, plan) in enumerate(zip(marginals, file.marginals, strict=True), 1)
            ),
            ranges=tuple(
                shown(one, plan, file=targets[f"ranges {i}"].name)
                for i, (one, plan) in enumerate(zip(ranges, planned.ranges, strict=True), 1)
            ),
        )
        # What was paid for is written before pages are made of it: what stops them loses nothing.
        texts = {f"marginals {i}": one.to_json() for i, one in enumerate(marginals, 1)}
        texts |= {f"ranges {i}": one.to_json() for i, one in enumerate(ranges, 1)}
        texts["json"] = page.as_json(report)
        texts["csv"] = page.as_csv(report.releases, report.sections)
        lost = _unwritten(texts, targets)
        try:
            written = page.report_card(report, account=account)
            texts = {"html": page.as_html(report, card=written)}
            texts["card"], texts["card page"] = written.to_json(), written.to_markdown()
            texts["csv metadata"] = page.csv_metadata(
                report, csv=targets["csv"].name, card=targets["card"].name
            )
            lost |= _unwritten(texts, targets)
        finally:
            code = _saved(lost, targets) if lost else 0
        if code:
            return code
        return _told(report, targets, account, as_json=as_json)


def open_table(file: ReleaseFile, account: Account) -> Table:
    """The table of a file; its rows are not read."""
    return table(
        file.source,
        columns=file.setting.schema,
        privacy_unit=file.setting.privacy_unit,
        max_rows_per_unit=file.setting.limits.max_rows_per_unit,
        max_groups_per_unit=file.setting.limits.max_groups_per_unit,
        max_rows_per_unit_per_group=file.setting.limits.max_rows_per_unit_per_group,
        account=account,
        relation=file.setting.relation,
        delimiter=file.delimiter,
        records=file.records,
        engine=file.engine,
        spark=file.spark,
    )


def _released(
    file: ReleaseFile, planned: ReleasePlan, account: Account
) -> tuple[list[Release], tuple[AnyRangeRelease, ...], tuple[ChargedMarginalRelease, ...]]:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("planning")
        made, ranges, marginals = execute(
            open_table(file, account),
            planned,
            rng=system_rng(),
            label=file.title[:200],
            progress=lambda stage: progress.update(task, description=stage),
        )
    places = zip(file.order(), made, strict=True)
    return [release for _, release in sorted(places, key=lambda pair: pair[0])], ranges, marginals


def _targets(stem: Path, *, ranges: int, marginals: int, overwrite: bool) -> dict[str, Path]:
    """Where the results go, checked before anything is spent."""
    ends = {
        "json": "json",
        "csv": "release.csv",
        "csv metadata": "release.csv-metadata.json",
        "html": "html",
        "card": "card.json",
        "card page": "card.md",
    }
    targets = {kind: stem.with_name(f"{stem.name}.{end}") for kind, end in ends.items()}
    for i in range(1, ranges + 1):
        targets[f"ranges {i}"] = stem.with_name(f"{stem.name}.ranges-{i}.json")
    for i in range(1, marginals + 1):
        targets[f"marginals {i}"] = stem.with_name(f"{stem.name}.marginals-{i}.json")
    present = [str(path) for path in targets.values() if path.exists()]
    if present and not overwrite:
        raise InvalidArgument(
            f"{present[0]} exists: releasing again costs again. Use --output, or --overwrite."
        )
    try:
        for path in targets.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a"):
                pass
            if str(path) not in present:
                path.unlink()
    except OSError:
        raise InvalidArgument(f"{stem.parent}: cannot be written to.") from None
    return targets


def _unwritten(texts: dict[str, str], targets: dict[str, Path]) -> dict[str, str]:
    """Write every result; those that could not be written."""
    lost = {}
    for kind, text in texts.items():
        try:
            targets[kind].write_text(text, encoding="utf-8")
        except OSError:
            lost[kind] = text
    return lost


def _saved(lost: dict[str, str], targets: dict[str, Path]) -> int:
    """What was paid for and has no file goes to the screen: a second release would cost again."""
    literal_console(stderr=True).print(
        f"discreet: {', '.join(str(targets[kind]) for kind in lost)} could not be written. "
        "The release was charged: what belongs there follows on standard output, a file each.",
        soft_wrap=True,
        highlight=False,
    )
    for text in lost.values():
        print(text)
    return EXIT_UNWRITTEN


def _told(
    report: page.ReleaseReport, written: dict[str, Path], account: Account, *, as_json: bool
) -> int:
    files = {kind: str(path) for kind, path in written.items()}
    if as_json:
        content = json.loads(page.as_json(report))
        print(json.dumps({**content, "files": files, "remaining": float(account.remaining)}))
        return 0
    for release in (*report.releases, *(one.release for one in report.sections)):
        print(f"{release}\n")
    print(f"Spent: {describe_epsilon(report.guarantee)}. {account_text(account)}.")
    print("Written: " + ", ".join(files.values()))
    return 0


def print_refusal(refusal: BudgetExceeded, *, as_json: bool) -> int:
    """Say that the budget is short."""
    if as_json:
        print(json.dumps({"refused": str(refusal)}))
    else:
        literal_console(stderr=True).print(
            f"discreet: the budget is short. {refusal} The data were not read.",
            soft_wrap=True,
            highlight=False,
        )
    return EXIT_SHORT
