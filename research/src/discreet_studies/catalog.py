"""The studies there are, by name."""

from __future__ import annotations

from discreet.core.errors import InvalidArgument
from discreet.studies.aoutouf.plan import AOUTOUF
from discreet.studies.biswal_inference.plan import BISWAL_INFERENCE
from discreet.studies.biswal_mechanisms.plan import BISWAL_MECHANISMS
from discreet.studies.friis.plan import FRIIS
from discreet.studies.kalaja.plan import KALAJA
from discreet.studies.muehl.plan import MUEHL
from discreet.studies.study import Plan

PLANS = {
    plan.name: plan for plan in (FRIIS, BISWAL_MECHANISMS, BISWAL_INFERENCE, KALAJA, MUEHL, AOUTOUF)
}


def planned(name: str) -> Plan:
    """The study of this name."""
    if name not in PLANS:
        raise InvalidArgument(f"No study is called {name!r}; there are: {', '.join(PLANS)}.")
    return PLANS[name]
