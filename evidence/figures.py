"""Two figures of the index: ratios to the peers, and claims beside what was shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure as Drawing

from evidence import part
from evidence.comparisons import ratios
from evidence.part import records
from evidence.steps import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A file, and what it shows."""

    file: Path
    words: str


def draw(title: str, outcomes: Sequence[Outcome]) -> Figure | None:
    """The figure of a section of the index, if it has one and there is something to draw."""
    if title not in _DRAWN:
        return None
    words, drawing, rows = _DRAWN[title]
    data = rows(outcomes)
    if not data:
        return None
    drawn = Drawing(figsize=(8, 4.2), layout="constrained")
    drawing(drawn.subplots(), data)
    file = part.FOLDER / f"{title.lower()}.svg"
    with rc_context({"svg.hashsalt": title, "svg.fonttype": "none"}):
        drawn.savefig(file, metadata={"Date": None})  # the same each time
    return Figure(file=file, words=words)


def _times(outcomes: Sequence[Outcome]) -> list[tuple[str, list[float]]]:
    found = [
        (one.step.name, ratios(records(one)))
        for one in outcomes
        if one.step.kind == "benchmark" and one.code == 0
    ]
    return [one for one in found if one[1]]


def _draw_times(axes: Any, data: Sequence[tuple[str, list[float]]]) -> None:
    for place, (_, values) in enumerate(reversed(data)):
        axes.plot(values, [place] * len(values), "o", color="C0", alpha=0.5, markersize=5)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(data)), [name for name, _ in reversed(data)])
    axes.set_xlabel("time of a peer / time of discreet (right of the line: discreet is faster)")
    axes.grid(axis="x", alpha=0.3)


def _claims(outcomes: Sequence[Outcome]) -> list[tuple[float, float, bool]]:
    """Claimed epsilon, the most that is shown, and whether the claim is broken."""
    found = []
    for one in outcomes:
        if one.step.kind != "audit":
            continue
        for record in records(one):
            shown = record.get("exact") or record.get("attacked")
            if "verdict" in record and record["claimed"] and shown and math.isfinite(shown):
                found.append((record["claimed"], shown, record["verdict"] == "BROKEN"))
    return found


def _draw_claims(axes: Any, data: Sequence[tuple[float, float, bool]]) -> None:
    for broken, label, look in (
        (False, "mechanisms of discreet", {"marker": "o", "color": "C0"}),
        (True, "published, or wrong on purpose", {"marker": "x", "color": "C3"}),
    ):
        points = [one for one in data if one[2] == broken]
        x, y = [one[0] for one in points], [one[1] for one in points]
        axes.plot(x, y, linestyle="none", alpha=0.6, label=label, **look)
    ends = (min(one[0] for one in data), max(one[0] for one in data))
    axes.plot(ends, ends, color="black", linewidth=0.8, label="what is claimed")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.set_xlabel("ε claimed")
    axes.set_ylabel("ε exact, or else attacked")
    axes.legend(fontsize=9)
    axes.grid(alpha=0.3)


_DRAWN: Mapping[str, tuple[str, Callable[..., None], Callable[..., list[Any]]]] = {
    "Benchmarks": ("Ratios of times by suite", _draw_times, _times),
    "Audits": ("Claimed epsilon against what is exact or attacked", _draw_claims, _claims),
}
