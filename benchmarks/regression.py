"""``python -m benchmarks.regression``: prediction errors on real tables, as a page and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import page, regression_data
from benchmarks.case import Case
from benchmarks.cases import SUITES
from benchmarks.environments import CACHE, ROOT, peers
from benchmarks.measure import measure
from benchmarks.model_cases import regression
from benchmarks.pictures import side_by_side
from discreet.models.regression.auto import choose_method

PAGE = ROOT / "docs" / "regression-comparison.md"
FIGURE = ROOT / "docs" / "regression-comparison.svg"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
SHORT = {
    "discreet": "discreet",
    "diffprivlib 0.6.6": "diffprivlib",
    "plain noisy gradient descent": "noisy descent",
    "OpenDP 0.16.0": "OpenDP",
}
MARKS = {"discreet": "o", "diffprivlib": "s", "noisy descent": "^", "OpenDP": "D"}
# Curves end here, so that the interesting part can be seen.
CEILING = 60.0


@dataclass(slots=True, kw_only=True)
class Cell:
    """A table at one epsilon: everybody's error, in multiples of least squares."""

    table: str
    rows: int
    features: int
    epsilon: float
    midpoint: float
    chosen: str
    forecast: float
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def ours(self) -> float:
        """Our own error."""
        return self.errors["discreet"]

    @property
    def won(self) -> bool:
        """Whether ours is the lowest."""
        return self.ours <= min(self.errors.values())

    @property
    def guarded(self) -> bool:
        """Whether ours is at most a hundredth above the midpoint."""
        return self.ours <= 1.01 * self.midpoint


def cases(folder: Path | None) -> tuple[Case, ...]:
    """One case for each table and epsilon."""
    if folder is None:
        return tuple(one for one in SUITES["regression"] if one.kind == "regression_error")
    found: list[Case] = []
    for number, table in enumerate(regression_data.tables(folder)):
        regression_data.file(number, folder=folder)
        found += regression(number, table.name, given=True)
    return tuple(found)


def cells(rows: Iterable[Mapping[str, Any]], known: Iterable[Case]) -> list[Cell]:
    """The results by table and epsilon."""
    found = {one.name: _cell(one) for one in known}
    for row in rows:
        cell = found.get(row["name"])
        if cell is not None and row.get("error") is not None:
            cell.errors["discreet"] = float(row["error"])
            if row.get("peer_error") is not None:
                cell.errors[SHORT[row["peer"]]] = float(row["peer_error"])
    return [cell for cell in found.values() if cell.errors]


def _cell(case: Case) -> Cell:
    given = "given" if case.params["given"] else "own"
    number = int(case.params["table"])
    held = np.load(CACHE / "data" / f"regression-{given}-{number}.npz")
    epsilon = float(case.params["epsilon"])
    train, features = int(held["train"][0].sum()), held["x"].shape[1]
    chosen = choose_method(expected_rows=train, features=features, epsilon=epsilon, delta=DELTA)
    return Cell(
        table=case.name.split(", ")[1],
        rows=train,
        features=features,
        epsilon=epsilon,
        midpoint=float(np.mean(held["level"]) / np.mean(held["least"])),
        chosen=chosen.method,
        forecast=chosen.errors[chosen.method],
    )


def summary(found: list[Cell]) -> str:
    """Who is lowest, and how ours stands against the midpoint."""
    won = sum(cell.won for cell in found)
    kept = sum(cell.guarded for cell in found)
    worst = max(cell.ours / cell.midpoint for cell in found)
    lost = [f"{c.table} at {c.epsilon:g}" for c in found if not c.won]
    also = f" Elsewhere: {', '.join(lost)}." if lost else ""
    return (
        f"Lowest error in {won} of {len(found)} cells ({won / len(found):.0%}). At most 1 % above "
        f"the midpoint in {kept} of {len(found)}; the highest ratio to the midpoint is "
        f"{worst:.3f}.{also}"
    )


def markdown(found: list[Cell]) -> list[str]:
    """One line for each cell; the lowest in bold."""
    names = [name for name in MARKS if any(name in cell.errors for cell in found)]
    head = ["table", "rows x features", "ε", *names, "midpoint", "method", "forecast"]
    marks = ["---", "---", "---:", *["---:"] * len(names), "---:", "---", "---:"]
    lines = [page.line(head), page.line(marks)]
    for cell in found:
        least = min(cell.errors.values())
        shown = [
            "–"
            if name not in cell.errors
            else f"**{cell.errors[name]:.3g}**"
            if cell.errors[name] == least
            else f"{cell.errors[name]:.3g}"
            for name in names
        ]
        size = f"{cell.rows} x {cell.features}"
        tail = [f"{cell.midpoint:.3g}", cell.chosen, f"{cell.forecast:.3g}"]
        lines.append(page.line([cell.table, size, f"{cell.epsilon:g}", *shown, *tail]))
    return lines


def draw(found: list[Cell], target: Path) -> None:
    """One small picture for each table: error by epsilon."""
    names = list(dict.fromkeys(cell.table for cell in found))
    up = f"mean squared error / least squares (cut at {CEILING:g})"
    with side_by_side(names, target, height=2.4, x="epsilon (delta 1e-6)", y=up) as places:
        for name, place in places.items():
            own = [cell for cell in found if cell.table == name]
            epsilons = [cell.epsilon for cell in own]
            for who, mark in MARKS.items():
                if who not in own[0].errors:
                    continue
                values = [min(cell.errors[who], CEILING) for cell in own]
                bold = {"color": "black", "linewidth": 1.8}
                style = bold if who == "discreet" else {"alpha": 0.8}
                place.plot(epsilons, values, marker=mark, markersize=4, label=who, **style)
            middle = min(own[0].midpoint, CEILING)
            place.axhline(middle, linestyle=":", color="gray", label="midpoint")
            place.axhline(1.0, linestyle="-", linewidth=0.6, color="gray")
            place.set_xscale("log")
            place.set_yscale("log")
            place.set_title(f"{name}: {own[0].rows} x {own[0].features}", fontsize=9)


def write(found: list[Cell]) -> None:
    """Rewrite the generated part of the page, and the figure."""
    page.replace_section("comparison", [summary(found), "", *markdown(found)], page=PAGE)
    draw(found, FIGURE)


@click.command()
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Tables of this folder (airfoil.csv.gz, ...) in the place of those of packages.",
)
@click.option(
    "--results",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lines of `python -m benchmarks regression --json`, in the place of a new run.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--update-docs", is_flag=True, help="Write page and figure.")
def main(*, folder: Path | None, results: Path | None, as_json: bool, update_docs: bool) -> None:
    """Compare prediction errors on real tables."""
    wanted = cases(folder)
    if results is not None:
        lines = results.read_text(encoding="utf-8").splitlines()
        rows: list[Mapping[str, Any]] = [json.loads(line) for line in lines]
    else:
        say = partial(click.echo, err=True)
        rows = [row for case in wanted for row in measure(case, peers(), repeat=1, say=say)]
    found = cells(rows, wanted)
    if update_docs:
        write(found)
    told = [json.dumps(asdict(cell)) for cell in found]
    click.echo("\n".join(told if as_json else (summary(found), "", *markdown(found))))


if __name__ == "__main__":
    main()
