"""Black-box mechanisms: make any function of a short input private.

Output ranges are learned from public data. Outputs on private inputs are clipped to them, and noise
is added.
"""

from discreet.models.blackbox._make_private import make_private
from discreet.models.blackbox.examples import PrivateExamples, release_examples
from discreet.models.blackbox.mechanism import BlackBoxMechanism, BlackBoxRelease
from discreet.models.blackbox.metrics import (
    CellMetric,
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
)
from discreet.models.blackbox.windows import WindowPlan, Windows

__all__ = [
    "BlackBoxMechanism",
    "BlackBoxRelease",
    "CellMetric",
    "Metric",
    "PrivateExamples",
    "Records",
    "Truncated",
    "UnitCount",
    "WindowGroups",
    "WindowPlan",
    "Windows",
    "make_private",
    "release_examples",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__
