"""Released numbers as pictures: labelled, with error bars, readable in black and white."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.core.errors import Unsupported


def save_bars(
    path: Path,
    *,
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float | None],
    high: Sequence[float | None],
    title: str,
    unit: str,
    dots: bool = False,
) -> Path:
    """Draw bars whose whiskers reach from ``low`` to ``high``; the format follows the suffix.

    With ``dots`` places are shown and not sizes, so the axis need not begin at zero.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("Figures need matplotlib: pip install 'discreet[plot]'.") from None

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = range(len(labels))
    below = [0.0 if end is None else value - end for value, end in zip(values, low, strict=True)]
    above = [0.0 if end is None else end - value for value, end in zip(values, high, strict=True)]
    style = "ko" if dots else "none"
    axes.errorbar(places, values, yerr=[below, above], fmt=style, ecolor="black", capsize=4)
    axes.set_xticks(places, labels)
    axes.set_ylabel(unit)
    axes.set_title(title, loc="left", fontsize=11)
    if not dots:
        axes.bar(places, values, color="0.75", edgecolor="0.2", linewidth=0.8)
        axes.axhline(0, color="0.2", linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    return path
