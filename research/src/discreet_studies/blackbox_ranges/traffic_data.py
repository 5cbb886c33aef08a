"""Traffic: the published file from a folder, or days that are made up."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats
from discreet_studies.blackbox_ranges.example_functions import (
    READINGS,
    Forecaster,
    traffic_day,
    windows,
)

TEST_DAY = "2017-09-23"
FILE = "traffic.csv"
ROWS = 7887
ANCHORS = 250


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Road:
    """A test day, earlier days that count as public, and a forecaster fitted on these."""

    name: str
    real: bool
    day: Floats
    earlier: tuple[Floats, ...]

    @property
    def test(self) -> tuple[Floats, Floats]:
        """Windows of the test day, and the reading after each."""
        return windows(self.day)

    @property
    def public(self) -> tuple[Floats, Floats]:
        """Windows of earlier days, and the reading after each."""
        parts = [windows(day) for day in self.earlier]
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])

    def forecaster(self) -> Forecaster:
        """Fitted on earlier days."""
        return Forecaster(*self.public)

    def anchors(self, rng: np.random.Generator) -> Floats:
        """Some of the public windows."""
        inputs, _ = self.public
        return inputs[rng.permutation(len(inputs))[:ANCHORS]]


@cache
def road(folder: Path | None) -> Road:
    """The real road if the folder has its file, else one that is made up."""
    for name in (FILE, f"{FILE}.gz"):
        if folder is not None and (folder / name).is_file():
            return _real(folder / name)
    days = [traffic_day(np.random.Generator(np.random.Philox(seed))) for seed in range(6, 26)]
    return Road(name="made-up road", real=False, day=days[0], earlier=tuple(days[1:]))


def _real(path: Path) -> Road:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
        rows = [(row["time"], float(row["total"])) for row in csv.DictReader(io.StringIO(text))]
    except (ValueError, OSError, EOFError, KeyError, TypeError):
        raise InvalidArgument(
            f"{path.name} must have columns named time and total, one row for each reading."
        ) from None
    if len(rows) != ROWS:
        raise InvalidArgument(f"{path.name} must have {ROWS} rows, got {len(rows)}.")
    days: dict[str, list[float]] = {}
    for time, total in rows:
        days.setdefault(time[:10], []).append(total)
    earlier = tuple(
        np.array(day) for name, day in days.items() if name < TEST_DAY and len(day) == READINGS
    )
    if len(days.get(TEST_DAY, ())) != READINGS or not earlier:
        raise InvalidArgument(
            f"{path.name} must hold {TEST_DAY} and earlier days, {READINGS} each."
        )
    return Road(name="real road", real=True, day=np.array(days[TEST_DAY]), earlier=earlier)
