"""Small pictures side by side, one for each thing compared, with one legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ACROSS = 4


@contextmanager
def side_by_side(
    names: Sequence[str], target: Path, *, height: float, x: str, y: str
) -> Iterator[dict[str, Any]]:
    """The axes of each name, to draw on; the figure is saved at the end, the same each time."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": target.stem, "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    down = -(-len(names) // ACROSS)
    size = (11, height * down)
    figure, axes = plt.subplots(
        down, ACROSS, figsize=size, squeeze=False, sharex=True, layout="constrained"
    )
    for place in axes.ravel()[len(names) :]:
        place.axis("off")
    yield dict(zip(names, axes.ravel(), strict=False))
    figure.supxlabel(x)
    figure.supylabel(y)
    shown: dict[str, Any] = {}
    for place in axes.ravel():
        shown.update(zip(*reversed(place.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), loc="lower right", fontsize=9)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)
