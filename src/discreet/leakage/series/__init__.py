"""How much a series of releases about the same people gives away, when values depend on time."""

from discreet.leakage.series.design import design
from discreet.leakage.series.engine import cells, leakage
from discreet.leakage.series.fit import fit
from discreet.leakage.series.model import VAR
from discreet.leakage.series.report import report
from discreet.leakage.series.threat import cell, everyone, releases, row

__all__ = [
    "VAR",
    "cell",
    "cells",
    "design",
    "everyone",
    "fit",
    "leakage",
    "releases",
    "report",
    "row",
]
