"""The studies there are, by name."""

from __future__ import annotations

from discreet.core.errors import InvalidArgument
from discreet_studies.blackbox_ranges.plan import AOUTOUF
from discreet_studies.linear_regression.plan import KALAJA
from discreet_studies.noise_mechanisms.plan import BISWAL_MECHANISMS
from discreet_studies.personalized_pate.plan import MUEHL
from discreet_studies.private_inference.plan import BISWAL_INFERENCE
from discreet_studies.range_queries.plan import FRIIS
from discreet_studies.study import StudyPlan

PLANS = {
    plan.name: plan for plan in (FRIIS, BISWAL_MECHANISMS, BISWAL_INFERENCE, KALAJA, MUEHL, AOUTOUF)
}


TOPICS = {
    "range-queries": FRIIS,
    "noise-mechanisms": BISWAL_MECHANISMS,
    "private-inference": BISWAL_INFERENCE,
    "linear-regression": KALAJA,
    "personalized-pate": MUEHL,
    "blackbox-ranges": AOUTOUF,
}
"""The same studies by their subject."""


def planned(name: str) -> StudyPlan:
    """The study of this name or subject."""
    if name in TOPICS:
        return TOPICS[name]
    if name not in PLANS:
        raise InvalidArgument(f"No study is called {name!r}; there are: {', '.join(PLANS)}.")
    return PLANS[name]
