"""How much a series of releases about the same people gives away, when values depend on time."""

from discreet.audit.series._leakage import cells, leakage
from discreet.audit.series._private_fit import plan_fit, private_fit
from discreet.audit.series._private_full_fit import private_full_fit
from discreet.audit.series._design import design
from discreet.audit.series.exchangeable import Alike
from discreet.audit.series._fit import fit
from discreet.audit.series.model import VAR
from discreet.audit.series._publish import publish, smooth
from discreet.audit.series._report import assess, report
from discreet.audit.series.threat_model import cell, everyone, releases, row
from discreet.audit.series.worst_case import every_model, stress, window, worst

__all__ = [
    "VAR",
    "Alike",
    "assess",
    "cell",
    "cells",
    "design",
    "every_model",
    "everyone",
    "fit",
    "leakage",
    "plan_fit",
    "private_fit",
    "private_full_fit",
    "publish",
    "releases",
    "report",
    "row",
    "smooth",
    "stress",
    "window",
    "worst",
]
