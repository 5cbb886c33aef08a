"""`discreet demo`: a dozen statistics about real people, and why to trust them."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from discreet.audit.runner import run_audit
from discreet.cli import plan, release
from discreet.cli.audit import choose_cases, table
from discreet.core.number_format import number
from discreet.mechanisms.additive import laplace
from discreet.spec.demo_folder import prepare_folder

_GIVEN = ("health.parquet", "health.toml", "README.md")
_WRITTEN = (
    *("health.json", "health.release.csv", "health.html", "budget.db"),
    *("health.card.json", "health.card.md", "health.release.csv-metadata.json"),
)


def run(folder: Path) -> int:
    """Run the main job in a folder of its own and show the way to its result."""
    console = Console(soft_wrap=True)
    console.print(
        "\n[bold]20,190 person-years of 5,912 people[/] in a study of health insurance. The "
        "promise is made to each person, with all years together.\n"
    )
    prepare_folder(folder, given=_GIVEN, written=_WRITTEN)
    file = folder / "health.toml"
    console.print("[bold]1. The plan[/] [dim](discreet plan health.toml)[/]")
    plan.run(file, as_json=False)
    console.print("\n[bold]2. The release[/] [dim](discreet release health.toml)[/]\n")
    code = release.run(file, folder=None, overwrite=False, as_json=False)
    if code:
        return code
    console.print("\n[bold]3. Why to believe it[/] [dim](discreet audit)[/]")
    _believe(console)
    page = folder.resolve() / "health.html"
    console.print(f"\nThe report, to be opened in a browser: [bold]{page.as_uri()}[/]")
    console.print(f"To change and try again: [bold]discreet plan {folder / 'health.toml'}[/]")
    return 0


def _believe(console: Console) -> None:
    """A guarantee recomputed from the exact law, and an attack on a good and a bad mechanism."""
    for check in laplace(sensitivity=1, epsilon=0.5).certify().checks:
        console.print(
            f"   recomputed from the exact law of the noise, {check.part}: at epsilon "
            f"{number(check.epsilon)} {check.verdict}"
        )
    good, bad = choose_cases(("laplace, sensitivity 3",)), choose_cases(("scale 10% too small",))
    console.print(table(run_audit([*good, *bad])))
