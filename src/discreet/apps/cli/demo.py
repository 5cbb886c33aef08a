"""`discreet demo`: a private count and a histogram, what they cost and why, and an audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.accounting.guarantee import Guarantee
from discreet.apps.cli.audit import chosen, table
from discreet.core.errors import Unsupported
from discreet.leakage.audit import audit
from discreet.mechanisms.additive import Additive
from discreet.mechanisms.laplace import laplace
from discreet.noise.bits import seeded
from discreet.noise.law import Ints
from discreet.noise.uniform import below
from discreet.report.figures import save_bars

_BANDS = ("18-29", "30-39", "40-49", "50-59", "60-69", "70-79", "80+")
_EDGES = np.array([30, 40, 50, 60, 70, 80])
_DELTA = 1e-6
_LEVEL = 0.95


def tell(figure: Path) -> None:
    """Print the story and write the figure."""
    console = Console()
    ages = _simulated_ages(5000)
    console.print(
        "\n[bold]5,000 simulated patients.[/] Each is one row; the guarantee protects whether any "
        "one of them is in the data at all.\n"
    )
    mechanism = laplace(sensitivity=1, epsilon=0.5)
    console.print(f"[bold]1. Before anything is spent:[/] {mechanism!r}")
    _, width = mechanism.interval(_LEVEL)
    console.print(f"   every count will be within ±{width:g} of the truth, 95 times of 100.\n")

    over_65 = mechanism.release(int((ages >= 65).sum()))
    console.print(f"[bold]2. A private count:[/] {over_65} ± {width:g} patients are 65 or older.\n")

    counts = np.bincount(np.digitize(ages, _EDGES), minlength=len(_BANDS))
    noisy = mechanism.release(counts)
    console.print("[bold]3. A private histogram:[/] one patient is in one band, so it costs once.")
    console.print(_bars(noisy, width))
    _explain(console, mechanism)

    console.print("[bold]6. An audit[/] of a correct and of a broken mechanism:")
    good, bad = chosen(("laplace, sensitivity 3",)), chosen(("scale 10% too small",))
    console.print(table(audit([*good, *bad])))
    _draw(console, figure, noisy, width)


def _draw(console: Console, figure: Path, noisy: Ints, width: float) -> None:
    try:
        save_bars(
            figure,
            labels=_BANDS,
            values=noisy.tolist(),
            low=(noisy - width).tolist(),
            high=(noisy + width).tolist(),
            title="Patients by age, epsilon 0.5 (add or remove one patient), 95% error bars",
            unit="patients",
        )
    except Unsupported as error:
        console.print(f"\nNo picture: {error}")
    else:
        console.print(f"\nThe histogram with its error bars: [bold]{figure.resolve()}[/]")


def _explain(console: Console, mechanism: Additive) -> None:
    total: Guarantee = mechanism.guarantee * 2
    console.print(f"[bold]4. Both together:[/] {total.explain(delta=_DELTA)}\n")
    console.print("[bold]5. Not quoted but recomputed[/] from the exact law of the noise:")
    for check in mechanism.certify().checks:
        console.print(f"   {check.part}: at epsilon {check.epsilon:g} {check.verdict}")
    console.print()


def _bars(noisy: Ints, width: float) -> Table:
    made = Table(show_header=True, box=None)
    made.add_column("age")
    made.add_column("patients", justify="right")
    made.add_column("")
    for band, value in zip(_BANDS, noisy, strict=True):
        made.add_row(band, f"{value} ± {width:g}", "█" * max(0, round(int(value) / 25)))
    return made


def _simulated_ages(size: int) -> Ints:
    """Ages from 18 to 98 with a hump in the middle: three dice, always the same."""
    bits = seeded(1)
    dice = [below(sides, size, bits) for sides in (27, 27, 29)]
    return 18 + dice[0] + dice[1] + dice[2]
