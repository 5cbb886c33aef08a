"""Mechanisms learned from public data: any function of a short input, made private."""

from discreet.models.learned.examples import PrivateOutputs, private_outputs
from discreet.models.learned.mechanism import Answer, LearnedMechanism
from discreet.models.learned.metrics import (
    Cells,
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)
from discreet.models.learned.windows import WindowPlan, Windows
from discreet.models.learned.wrap import wrap

__all__ = [
    "Answer",
    "Cells",
    "LearnedMechanism",
    "Metric",
    "PrivateOutputs",
    "Records",
    "Truncated",
    "UnitCount",
    "WindowGroups",
    "WindowPlan",
    "Windows",
    "private_outputs",
    "wrap",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__
