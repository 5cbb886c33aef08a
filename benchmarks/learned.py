"""``python -m benchmarks.learned``: black boxes behind learned ranges, as a page and a figure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import page
from benchmarks.environments import ROOT
from benchmarks.learned_boxes import Box, boxes
from benchmarks.pictures import side_by_side
from discreet.mechanisms.mechanism import Mechanism
from discreet.models.blackbox._make_private import make_private
from discreet.noise.random_source import seeded_rng

PAGE = ROOT / "docs" / "learned-comparison.md"
FIGURE = ROOT / "docs" / "learned-comparison.svg"
EPSILONS = (0.3, 1.0, 3.0)
RUNS = 10
STYLES = {
    "constant": ("s", "C0"),
    "plain Laplace": ("^", "C1"),
    "private quantile": ("D", "C2"),
    "smooth sensitivity": ("v", "C3"),
    "sample and aggregate": ("x", "C4"),
}
ALLOWED = 1.02
"""How far above the best baseline an error may lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A black box at one epsilon: mean absolute errors to what it says about private inputs."""

    box: str
    epsilon: float
    ours: float
    expected: float
    chosen: str
    baselines: dict[str, float]

    @property
    def best(self) -> str:
        """The baseline of least error."""
        return min(self.baselines, key=self.baselines.__getitem__)

    @property
    def ratio(self) -> float:
        """Ours to the best baseline."""
        return self.ours / self.baselines[self.best]


def measure(box: Box, epsilon: float) -> Cell:
    """Wrap the box with public inputs, then release private ones, and let all others do it too."""
    others = box.alternatives(epsilon)
    made = make_private(
        box.function if box.model is None else box.model,
        public_inputs=box.public,
        metric="record",
        epsilon=epsilon,
        bounds=box.bounds,
        alternatives=others,
    )
    said = np.array([box.function(x) for x in box.private])
    constant = np.median([box.function(x) for x in box.public])
    errors = {name: _error(one, box, said) for name, one in others.items()}
    return Cell(
        box=box.name,
        epsilon=epsilon,
        ours=_error(made, box, said),
        expected=made.expected.error,
        chosen=made.chosen,
        baselines={"constant": float(np.abs(said - constant).mean()), **errors},
    )


def _error(mechanism: Mechanism, box: Box, said: np.ndarray[Any, Any]) -> float:
    """Mean absolute error of some releases of each private input."""
    bits, made = seeded_rng(7), _release(mechanism)
    runs = [[made(x, bits) for x in box.private] for _ in range(RUNS)]
    return float(np.abs(np.array(runs) - said).mean())


def _release(mechanism: Any) -> Any:
    return lambda x, bits: float(mechanism.release(x, rng=bits))


def summary(found: list[Cell]) -> str:
    """How ours stands against the best baseline."""
    won = sum(cell.ratio < 1 for cell in found)
    kept = sum(cell.ratio <= ALLOWED for cell in found)
    ratios = [cell.ratio for cell in found]
    return (
        f"Lower error than every baseline in {won} of {len(found)} cells; at most 2 % above the "
        f"best one in {kept} of {len(found)}. Ratio to the best baseline: geometric mean "
        f"{float(np.exp(np.mean(np.log(ratios)))):.2f}, best {min(ratios):.2f}, worst "
        f"{max(ratios):.3f}."
    )


def markdown(found: list[Cell]) -> list[str]:
    """One line for each cell."""
    head = ["function", "ε", "learned", "expected", "plain Laplace", "constant", "best other"]
    lines = [page.line([*head, "ratio to best", "chosen on public data"])]
    lines.append(page.line(["---", *["---:"] * 5, "---", "---:", "---"]))
    for cell in found:
        base = cell.baselines
        others = {k: v for k, v in base.items() if k not in ("plain Laplace", "constant")}
        other = min(others, key=others.__getitem__, default=None)
        lines.append(
            page.line(
                [
                    cell.box,
                    f"{cell.epsilon:g}",
                    f"**{cell.ours:.4g}**" if cell.ratio < 1 else f"{cell.ours:.4g}",
                    f"{cell.expected:.4g}",
                    f"{base['plain Laplace']:.4g}",
                    f"{base['constant']:.4g}",
                    "–" if other is None else f"{others[other]:.4g} ({other})",
                    f"{cell.ratio:.3f}",
                    cell.chosen,
                ]
            )
        )
    return lines


def draw(found: list[Cell], target: Path) -> None:
    """One small picture for each black box: error by epsilon, in multiples of the constant's."""
    names = list(dict.fromkeys(cell.box for cell in found))
    up = "mean absolute error / that of a public constant"
    with side_by_side(names, target, height=2.6, x="epsilon", y=up) as places:
        for name, place in places.items():
            own = [cell for cell in found if cell.box == name]
            epsilons = [cell.epsilon for cell in own]
            unit = own[0].baselines["constant"]
            for who in own[0].baselines:
                values = [cell.baselines[who] / unit for cell in own]
                mark, color = STYLES[who]
                look = {"marker": mark, "color": color, "markersize": 4, "label": who}
                place.plot(epsilons, values, ":" if who == "constant" else "-", **look)
            ours = [cell.ours / unit for cell in own]
            place.plot(epsilons, ours, marker="o", color="black", linewidth=1.8, label="learned")
            place.set_xscale("log")
            place.set_yscale("log")
            place.set_xticks(epsilons, [f"{one:g}" for one in epsilons])
            place.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
            place.minorticks_off()
            place.set_title(name, fontsize=9)


def write(found: list[Cell]) -> None:
    """Rewrite the generated part of the page, and the figure."""
    page.replace_section("comparison", [summary(found), "", *markdown(found)], page=PAGE)
    draw(found, FIGURE)


@click.command()
@click.option("--only", default="", help="Only black boxes whose name contains this text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as they come.")
@click.option(
    "--results",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lines of --json, in the place of a new run.",
)
@click.option("--update-docs", is_flag=True, help="Write page and figure.")
def main(*, only: str, as_json: bool, results: Path | None, update_docs: bool) -> None:
    """Compare black boxes behind learned ranges with everything else at the same price."""
    found: list[Cell] = []
    if results is not None:
        lines = results.read_text(encoding="utf-8").splitlines()
        found = [Cell(**json.loads(line)) for line in lines]
    else:
        for box in (one for one in boxes() if only in one.name):
            for epsilon in EPSILONS:
                found.append(measure(box, epsilon))
                if as_json:
                    click.echo(json.dumps(asdict(found[-1])))
    if update_docs and not only:
        write(found)
    if not as_json:
        click.echo("\n".join((summary(found), "", *markdown(found))))


if __name__ == "__main__":
    main()
