"""``python -m evidence [--quick] [--data FOLDER] [--only NAME]``: run all, write docs/evidence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evidence import packages, page, part
from evidence.steps import RECORDS, ROOT, Outcome, Step, kept, run, steps


@click.command()
@click.option("--quick", is_flag=True, help="Less simulation; benchmarks once.")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="", help="Only steps whose name contains this; the rest is kept.")
@click.option("--limit", default=3600.0, show_default=True, help="Seconds that a step may take.")
def main(*, quick: bool, data: Path | None, only: str, limit: float) -> None:
    """Collect the evidence; 1 if anything failed or did not run."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    planned = steps(RECORDS, quick=quick, data=data)
    outcomes: dict[str, Outcome] = {one.file.name: kept(one) for one in planned}
    todo = [one for one in planned if only in f"{one.kind} {one.name}"]
    console = Console(stderr=True)
    if any(one.kind == "study" for one in todo) and not packages.install():
        console.print("Packages with public data could not be installed: studies say what lacks.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("collecting", total=len(todo))

        def work(step: Step) -> None:
            progress.update(task, description=f"{step.kind} {step.name}")
            found = outcomes[step.file.name] = run(step, limit_s=limit)
            progress.advance(task)
            word = "done" if found.code == 0 else f"exit {found.code}"
            console.print(f"{step.kind} {step.name}: {word}, {found.seconds:.0f} s")

        # Two lanes for what is only computed, then one after the other what is timed.
        with ThreadPoolExecutor(2) as lanes:
            list(lanes.map(work, [one for one in todo if not one.alone]))
        for step in todo:
            if step.alone:
                work(step)
    good = page.write(list(outcomes.values()))
    console.print(f"Written: {part.FOLDER.relative_to(ROOT)}")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
