"""Mechanisms learned from public data: any function of a short input, made private."""

from discreet.models.blackbox._make_private import wrap
from discreet.models.blackbox.examples import PrivateOutputs, private_outputs
from discreet.models.blackbox.mechanism import Answer, LearnedMechanism
from discreet.models.blackbox.metrics import (
    Cells,
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)
from discreet.models.blackbox.windows import WindowPlan, Windows

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
