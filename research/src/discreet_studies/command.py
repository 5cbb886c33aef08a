"""`discreet study`: published experiments run again, and a verdict on every number."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from discreet.core.errors import InvalidArgument
from discreet_studies import catalog
from discreet_studies.report import as_html, as_json, shown, tally
from discreet_studies.study import Experiment, Study, StudyCheck, run

_WRITTEN = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(short_help="Run published experiments again, and judge every number.")
@click.argument("name", required=False)
@click.option("--list", "only_list", is_flag=True, help="Only list the studies.")
@click.option("--quick", is_flag=True, help="Simulate less: seconds, not minutes.")
@click.option("--data", type=_FOLDER, help="A folder with public data that is not shipped.")
@click.option("--json", "json_file", type=_WRITTEN, help="Write tables, figures and checks here.")
@click.option("--html", "html_file", type=_WRITTEN, help="Write one page with all figures here.")
def study(
    name: str | None,
    *,
    only_list: bool,
    quick: bool,
    data: Path | None,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Run the published experiments of the study NAME again, and judge every number.

    Exits with 1 if a number that can be reproduced or corrected comes out otherwise.
    """
    if only_list:
        sys.exit(names())
    if name is None:
        raise click.UsageError("Name a study, or use --list.")
    sys.exit(tell(name, quick=quick, data=data, json_file=json_file, html_file=html_file))


def names() -> int:
    """List the studies."""
    for plan in catalog.PLANS.values():
        print(f"{plan.name}: {plan.title}. {plan.source}")
        if plan.files:
            print(f"  reads with --data: {', '.join(plan.files)}")
    return 0


def tell(
    name: str,
    *,
    quick: bool,
    data: Path | None = None,
    json_file: Path | None,
    html_file: Path | None,
) -> int:
    """Run a study, print what came out, write the files; 1 if a check failed."""
    plan = catalog.planned(name)
    for path in (json_file, html_file):
        if path is not None and not path.parent.is_dir():
            raise InvalidArgument(f"{path} cannot be written: there is no such folder.")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("studying", total=len(plan.experiments))
        started = 0

        def step(experiment: Experiment) -> None:
            nonlocal started
            progress.update(
                task, completed=started, description=f"{experiment.id} {experiment.title}"
            )
            started += 1

        study = run(plan, quick=quick, data=data, progress=step)
    console = Console(soft_wrap=not sys.stdout.isatty())
    console.print(_summary(study))
    wrong = [check for check in study.checks if not check.ok]
    if wrong:
        console.print(_failures(wrong))
    console.print(tally(study) + ".")
    if json_file is not None:
        json_file.write_text(as_json(study), encoding="utf-8")
    if html_file is not None:
        html_file.write_text(as_html(study), encoding="utf-8")
        console.print(f"The report, to be opened in a browser: {html_file.resolve().as_uri()}")
    return 0 if study.ok else 1


def _summary(study: Study) -> Table:
    made = Table(title=f"{study.plan.title} ({study.plan.name})", caption=study.plan.summary)
    made.add_column("experiment")
    for column in ("reproduced", "corrected", "beyond", "failed"):
        made.add_column(column, justify="right")
    for experiment, found in study.sections:
        wrong = sum(not check.ok for check in found.checks)
        good = [check.verdict for check in found.checks if check.ok]
        made.add_row(
            f"{experiment.id} {experiment.title}",
            *(str(good.count(v)) for v in ("reproduced", "corrected", "not reproducible")),
            f"[red]{wrong}[/]" if wrong else "0",
        )
    return made


def _failures(checks: list[StudyCheck]) -> Table:
    made = Table(title="Checks that failed")
    for column in ("check", "claim"):
        made.add_column(column, overflow="fold")
    for column in ("expected", "tolerance", "got"):
        made.add_column(column, justify="right")
    for check in checks:
        made.add_row(
            check.id, check.claim, shown(check.expected), shown(check.tolerance), shown(check.got)
        )
    return made
