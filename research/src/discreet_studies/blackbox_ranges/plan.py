"""The study of Aoutouf 2021: mechanisms learned from public inputs, as published and corrected."""

from __future__ import annotations

from discreet_studies.blackbox_ranges.appendix import appendix
from discreet_studies.blackbox_ranges.corrected_experiment import corrected_experiment
from discreet_studies.blackbox_ranges.illustration import plane
from discreet_studies.blackbox_ranges.scaling import scaling
from discreet_studies.blackbox_ranges.search_against_optimum import searches
from discreet_studies.blackbox_ranges.smooth_ranges_comparison import smooth
from discreet_studies.blackbox_ranges.traffic import traffic
from discreet_studies.blackbox_ranges.traffic_data import FILE
from discreet_studies.study import Experiment, StudyPlan

AOUTOUF = StudyPlan(
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
        Experiment(
            id="E4",
            title="Traffic, with public days and a unit of privacy",
            run=corrected_experiment,
        ),
        Experiment(id="E5", title="The search against the optimum", run=searches),
        Experiment(id="E6", title="Smooth against one sensitivity", run=smooth),
        Experiment(id="E7", title="Sizes", run=scaling),
    ),
    seed=2021,
    files=(f"{FILE}.gz",),
)
