"""`discreet series`: the command; what it does is in `_series_command`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from discreet.audit.series._fit import Dynamics
    from discreet.audit.series.threat_model import Known

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITTEN = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="How much the published means of a PANEL leak.")
@click.argument("panel", type=_FILE)
@click.option("--bounds", required=True, nargs=2, type=float, help="Public range of the values.")
@click.option("--noise", type=float, help="Standard deviation of the noise on each mean.")
@click.option("--promise", type=float, help="Instead: the epsilon that each mean was noised for.")
@click.option("--released", help="Times that are published, with commas; all by default.")
@click.option("--target", type=float, help="Epsilon to keep for every value; as promised, if none.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Of all epsilons.")
@click.option(
    "--known",
    "attacker_knows",
    type=click.Choice(["time", "none", "all"]),
    default="time",
    show_default=True,
    help="What the attacker knows: the others' values at the time, nothing, or all others.",
)
@click.option("--model", type=_FILE, help="JSON of a public model; else one is fitted.")
@click.option("--order", type=int, default=1, show_default=True, help="Earlier times that matter.")
@click.option(
    "--dynamics",
    type=click.Choice(["own", "full"]),
    default="own",
    show_default=True,
    help="Whether a fitted person depends on their own past, or on everybody's.",
)
@click.option("--epsilon", type=float, help="Fit privately, for this: the report may be published.")
@click.option("--fit-delta", type=float, help="With --epsilon: of the private fit.")
@click.option("--spread", type=float, help="With --epsilon: most that a person's values deviate.")
@click.option("--ledger", help="With --epsilon: the ledger that is charged, sqlite:///FILE.")
@click.option("--account", help="With --ledger: the account.")
@click.option("--person", help="The column that names people; the first by default.")
@click.option("--time", help="In a panel with one value a line: the column of times.")
@click.option("--value", help="In a panel with one value a line: the column of values.")
@click.option("--delimiter", default=",", show_default=True, help="Between cells.")
@click.option("--drop-incomplete", is_flag=True, help="Leave out people with missing values.")
@click.option("--html", type=_WRITTEN, help="Write one page with pictures here.")
@click.option("--csv", "csv_file", type=_WRITTEN, help="Write a line for each person here.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def series(
    panel: Path,
    *,
    attacker_knows: Known,
    dynamics: Dynamics,
    bounds: tuple[float, float],
    **given: Any,
) -> None:
    """Tell how much the published means of a PANEL leak, for whom, and what noise would fix it.

    PANEL is a CSV with a line for each person and a column for each time, or with one value a line.
    Its values are read without noise: what is printed is for those who hold the data, unless the
    model is public (--model) or fitted with differential privacy (--epsilon).
    """
    from discreet.cli._series_command import (
        SeriesBudgetOptions,
        SeriesOptions,
        SeriesOutputOptions,
        run,
    )
    from discreet.spec.panel_csv import PanelLayout

    named = ("noise", "promise", "released", "delta", "target", "order", "model")
    asked = SeriesOptions(
        bounds=bounds,
        attacker_knows=attacker_knows,
        dynamics=dynamics,
        **{name: given[name] for name in named},
    )
    layout = PanelLayout(
        person=given["person"],
        time=given["time"],
        value=given["value"],
        delimiter=given["delimiter"],
        drop=given["drop_incomplete"],
    )
    paid = SeriesBudgetOptions(
        epsilon=given["epsilon"],
        delta=given["fit_delta"],
        spread=given["spread"],
        ledger=given["ledger"],
        account=given["account"],
    )
    written = SeriesOutputOptions(
        as_json=given["as_json"], html=given["html"], csv=given["csv_file"]
    )
    sys.exit(run(panel, layout=layout, asked=asked, paid=paid, written=written))
