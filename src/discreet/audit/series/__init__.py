"""How much a series of releases about the same people gives away, when values depend on time."""

from discreet.leakage.series.alike import Alike
from discreet.leakage.series.design import design
from discreet.leakage.series.engine import cells, leakage
from discreet.leakage.series.fit import fit
from discreet.leakage.series.model import VAR
from discreet.leakage.series.private import plan_fit, private_fit
from discreet.leakage.series.private_full import private_full_fit
from discreet.leakage.series.publish import publish
from discreet.leakage.series.report import assess, report
from discreet.leakage.series.smooth import smooth
from discreet.leakage.series.threat import cell, everyone, releases, row
from discreet.leakage.series.worst import every_model, stress, window, worst

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
