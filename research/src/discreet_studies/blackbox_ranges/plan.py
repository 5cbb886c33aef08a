"""The study of Aoutouf 2021: mechanisms learned from public inputs, as published and corrected."""

from __future__ import annotations

from discreet.studies.aoutouf.appendix import appendix
from discreet.studies.aoutouf.illustration import plane
from discreet.studies.aoutouf.properly import properly
from discreet.studies.aoutouf.roads import FILE
from discreet.studies.aoutouf.scaling import scaling
from discreet.studies.aoutouf.searches import searches
from discreet.studies.aoutouf.smooth import smooth
from discreet.studies.aoutouf.traffic import traffic
from discreet.studies.study import Experiment, Plan

AOUTOUF = Plan(
    name="aoutouf",
    title="Ranges learned from public inputs make any function private",
    source="Aoutouf 2021, Learning advanced differential privacy mechanisms with fixed data order, "
    "master's thesis, ETH Zürich.",
    summary="Clipping an arbitrary function to learned ranges is sound, and pure epsilon-DP. The "
    "search that learns them is not: as printed it breaks its constraint on its own example, and "
    "where it keeps it, it can stall. Both are replaced by exact fits that list no areas. The "
    "traffic example protects cells that are next to each other instead of cars, was fitted on the "
    "day it is shown on, and its error, which is not given, is nearly a constant's. With public "
    "days and cars as the unit, the released forecast is as good as the forecast. The variant with "
    "smooth sensitivity has a true delta of 0.12 to 1; corrected, it helps for long tuples only.",
    experiments=(
        Experiment(id="E1", title="A plane and two inputs (Figure 5.1)", run=plane),
        Experiment(id="E2", title="The decision tree of the appendix", run=appendix),
        Experiment(id="E3", title="Traffic, as published (Chapter 7)", run=traffic),
        Experiment(id="E4", title="Traffic, with public days and a unit of privacy", run=properly),
        Experiment(id="E5", title="The search against the optimum", run=searches),
        Experiment(id="E6", title="Smooth against one sensitivity", run=smooth),
        Experiment(id="E7", title="Sizes", run=scaling),
    ),
    seed=2021,
    files=(f"{FILE}.gz",),
)
