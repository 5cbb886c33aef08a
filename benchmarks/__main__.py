"""``python -m benchmarks NAME [--json] [--repeat N] [--update-docs]``."""

from __future__ import annotations

import json
from functools import partial

import click
from rich.console import Console

from benchmarks import page
from benchmarks.cases import SUITES
from benchmarks.environments import peers
from benchmarks.measure import measure


@click.command()
@click.argument("name", type=click.Choice([*SUITES, "all"]))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as they come.")
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1), help="Best of N.")
@click.option("--only", default="", help="Only cases whose name contains this text.")
@click.option("--update-docs", is_flag=True, help="Write the results into docs/benchmarks.md.")
def main(*, name: str, as_json: bool, repeat: int, only: str, update_docs: bool) -> None:
    """Compare with the peers: ratio = their seconds / ours."""
    if update_docs and only:
        raise click.UsageError("--update-docs writes a whole suite: leave --only out.")
    known = peers()
    for suite in SUITES if name == "all" else (name,):
        rows = []
        for case in (case for case in SUITES[suite] if only in case.name):
            for row in measure(case, known, repeat=repeat, say=partial(click.echo, err=True)):
                rows.append(row)
                if as_json:
                    click.echo(json.dumps(row))
        if not as_json:
            Console().print(page.table(rows, suite))
        if update_docs:
            page.update(suite, rows)


if __name__ == "__main__":
    main()
