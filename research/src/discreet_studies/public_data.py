"""Public data that come with other packages."""

from __future__ import annotations

import gzip
import importlib.util
from importlib.resources import files
from pathlib import Path

import numpy as np

from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Ints

# ── Births ───────────────────────────────────────────────────────────────────────────────────────
# Real daily counts: births in the United States, 1969 to 1988.


DAYS = 7305


def births(days: int) -> Ints:
    """Births on each of the first days from 1969-01-01 on (data/README.md says whose numbers)."""
    if count("days", days) > DAYS:
        raise InvalidArgument(f"days must be at most {DAYS}, got {days}: the series ends in 1988.")
    packed = (files("discreet_studies") / "data" / "births.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    return np.array([int(line.partition(",")[2]) for line in lines[1 : days + 1]], dtype=np.int64)


# ── Installed ────────────────────────────────────────────────────────────────────────────────────


def installed(package: str, inside: str) -> Path | None:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / inside
    return path if path.is_file() else None
