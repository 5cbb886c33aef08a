"""The server's side of a collection: a sum of reports that can be split, merged and resumed."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.mechanisms.local.randomiser import Randomiser, Reports


class Aggregate:
    """Counts of the reports seen so far. Aggregates of disjoint reports merge by addition."""

    __slots__ = ("counts", "randomiser", "refused", "reports")

    def __init__(self, randomiser: Randomiser) -> None:
        self.randomiser = randomiser
        self.counts = np.zeros(randomiser.size, dtype=np.int64)
        self.reports = 0
        self.refused = 0

    def add(self, reports: Reports) -> Aggregate:
        """Count some reports. What is malformed is refused and counted, and moves nothing."""
        rows = np.asarray(reports, dtype=np.uint8)
        if rows.ndim != 2:
            raise InvalidArgument("reports must be rows of bytes: an array of two dimensions.")
        if rows.shape[1] != self.randomiser.width:
            self.refused += len(rows)
            return self
        tally = self.randomiser.tally(rows)
        self.counts += tally.counts
        self.reports += tally.accepted
        self.refused += tally.refused
        return self

    def merge(self, other: Aggregate) -> Aggregate:
        """Take over the counts of another aggregate of the same collection."""
        if self.randomiser != other.randomiser:
            raise InvalidArgument("Both aggregates must belong to the same randomiser.")
        self.counts += other.counts
        self.reports += other.reports
        self.refused += other.refused
        return self

    def estimate(self) -> Any:
        """What the reports say, with its error."""
        return self.randomiser.estimate(self.counts, self.reports)

    def __repr__(self) -> str:
        kind = self.randomiser.kind
        return f"Aggregate({kind}, reports={self.reports:,}, refused={self.refused:,})"
