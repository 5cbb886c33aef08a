"""How much a series of releases about the same people gives away, when values depend on time."""

from discreet.leakage.series.engine import cells, leakage
from discreet.leakage.series.model import VAR
from discreet.leakage.series.threat import cell, everyone, releases, row

__all__ = ["VAR", "cell", "cells", "everyone", "leakage", "releases", "row"]
