"""Numbers that the experiments are held against: those of the thesis, and of reference runs.

The thesis prints seven numbers of its traffic example and no error. The reference runs implement
its listing, and the linear programs that replace it, on the same day of the same road.
"""

from __future__ import annotations

THESIS = "Aoutouf 2021, chapter 7"
RUNS = "reference runs, E{}"
APPENDIX_CUTS = (
    ((0.2915309891104698, 0.5484161376953125, 0.8614986836910248), (0.8427658379077911,)),
    ((0.7632079422473907,), ()),
    ((0.5989916622638702, 0.6678785085678101, 0.7035575807094574), (0.2583363652229309,)),
)
"""Cuts of the full tree of the appendix (scikit-learn, random_state 0), by position, attribute."""
APPENDIX = {
    "centers within S/2": 0.2936,
    "centers within S": 0.1622,
    "ranges": 0.1622,
    "constant window": 0.2336,
}
"""Mean absolute error of the best solutions, S = 0.6."""
TRAFFIC = {
    "centers within S/2": 143.9,
    "ranges": 139.0,
    "constant window": 148.7,
    "constant": 153.6,
}
"""The same on the test day itself, S = 10, with a linear forecaster."""
RANKS = {"step": (21, 36, 21, 3), "replace": (21, 49, 11, 0)}
READING = {10: (141.4, 150.6), 40: (96.3, 136.7), 80: (49.0, 119.7), 120: (14.1, 104.3)}
"""Bias of ours and of a constant window by S, one reading protected, real day."""
CAR = {0.25: 7.3, 0.5: 4.3, 1.0: 5.6}
"""Bias by S, one car protected, real day."""
KAPPAS = {
    0.5: {0.001: 1.0105, 0.005: 1.0734, 0.01: 1.1780, 0.02: 1.4964, 0.0345: 2.5952},
    1.0: {0.001: 1.0052, 0.005: 1.0354, 0.01: 1.0817, 0.02: 1.1988, 0.0345: 1.4437, 0.05: 1.8794,
          0.07: 3.1862},
    2.0: {0.001: 1.0026, 0.01: 1.0393, 0.0345: 1.1816, 0.05: 1.3054, 0.1: 2.0676, 0.15: 5.8302},
    4.0: {0.001: 1.0013, 0.01: 1.0193, 0.0345: 1.0832, 0.1: 1.3480, 0.2: 2.3912},
}  # fmt: skip
"""Multipliers at delta 1e-6 by epsilon and smoothness."""
COUNTS = {10: (1.798, 2.942, 1.804), 50: (0.462, 0.667, 0.454), 200: (0.122, 0.104, 0.075)}
"""Errors on counts of ones: one sensitivity, smooth from the textbook, smooth and exact."""
