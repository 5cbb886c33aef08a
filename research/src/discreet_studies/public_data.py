"""Real daily counts: births in the United States, 1969 to 1988."""

from __future__ import annotations

import gzip
from importlib.resources import files

import numpy as np

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.noise.law import Ints

DAYS = 7305


def births(days: int) -> Ints:
    """Births on each of the first days from 1969-01-01 on (data/README.md says whose numbers)."""
    if count("days", days) > DAYS:
        raise InvalidArgument(f"days must be at most {DAYS}, got {days}: the series ends in 1988.")
    packed = (files("discreet.studies") / "data" / "births.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    return np.array([int(line.partition(",")[2]) for line in lines[1 : days + 1]], dtype=np.int64)
