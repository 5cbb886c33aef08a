"""Ways to make ranges around sums: of what records contribute, or of curves of counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.models.inputs import Floats
from discreet.models.learned.additive import AdditiveClip
from discreet.models.learned.constant import to_steps
from discreet.models.learned.counted import CountTube
from discreet.models.learned.metrics import Metric
from discreet.models.learned.ranges import Ranges

PIECES = 4
MOST_COLUMNS = 24
"""With more entries to an input than this, positions share their curves, or fits take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """Contributions of the records, added up (A35), or curves of counts (A37)."""

    metric: Metric
    slope: int
    """How far one record, or one event, may move the sum, in steps; at most the width."""
    width: int
    step: Fraction
    shared: bool = False
    """Whether all positions contribute alike: for what does not depend on the order."""
    pieces: int = PIECES

    @property
    def name(self) -> str:
        """What is added up, and the slope as a share of the width."""
        alike = "alike" if self.shared else "by position"
        kind = f"sum of records, {alike}" if self.metric.record_like else "sum of counts"
        return f"{kind}, slope {self.slope / self.width:.3g} of the width"

    def build(self, inputs: Floats, said: Floats) -> Ranges:
        """The sum of least loss outside the tube, then the ranges."""
        y = to_steps(said, self.step)
        if not self.metric.record_like:
            return CountTube.fitted(
                inputs=inputs,
                y=y,
                slope=self.slope,
                width=self.width,
                step=self.step,
                pieces=self.pieces,
                missing=self.metric.missing,
            )
        return AdditiveClip.fitted(
            inputs=inputs,
            y=y,
            slope=self.slope,
            width=self.width,
            metric=self.metric,
            step=self.step,
            pieces=self.pieces,
            shared=self.shared,
        )


def sums(
    metric: Metric, sensitivities: list[tuple[int, Fraction]], *, columns: int
) -> list[Summed]:
    """Sums in all these widths, as steep as the width; by position only where that is quick."""
    kinds = [False] if not metric.record_like else [True, False][: 1 + (columns <= MOST_COLUMNS)]
    if not metric.record_like and columns > MOST_COLUMNS:
        return []
    return [
        Summed(metric=metric, slope=width, width=width, step=step, shared=shared)
        for shared in kinds
        for width, step in sensitivities
    ]
