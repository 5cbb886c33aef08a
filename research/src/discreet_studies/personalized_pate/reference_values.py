"""Numbers that the experiments are held against: as printed, and reference runs.

Tables 6.4 to 6.7 of the thesis. Reference runs have kernel ridge teachers (MNIST) and forests
(Adult), with the accounting of the thesis. Keys of cells: epsilon of the generous level, its share.
"""

from __future__ import annotations

HIGHS = (1.5, 2.0, 3.0, 5.0)
SHARES = (0.25, 0.5, 0.75)
CENSORED = 2000
"""The thesis stops counting here."""
BASELINE = {"MNIST": 221, "Adult": 195}

_MNIST = {
    "upsampling": ((271, 338, 412), (335, 477, 655), (462, 820, 1258), (775, 1683, None)),
    "vanishing": ((52, 176, 320), (36, 256, 520), (37, 488, 1068), (65, 1184, None)),
    "weighting": ((267, 340, 408), (329, 481, 655), (459, 819, 1264), (758, 1682, None)),
}
_ADULT = {
    "upsampling": ((239, 296, 359), (292, 419, 561), (404, 706, 1080), (668, 1426, None)),
    "vanishing": ((54, 160, 280), (39, 229, 456), (34, 414, 919), (58, 993, None)),
    "weighting": ((242, 299, 360), (294, 418, 564), (408, 706, 1079), (671, 1427, None)),
}
LABELS = {
    world: {
        way: {
            (high, share): count
            for high, row in zip(HIGHS, rows, strict=True)
            for share, count in zip(SHARES, row, strict=True)
        }
        for way, rows in ways.items()
    }
    for world, ways in (("MNIST", _MNIST), ("Adult", _ADULT))
}
"""Labels until a budget is spent, (1, high); None: above 2,000."""
PLAIN_AT_3 = 1766
"""Labels of a plain ensemble on MNIST at epsilon 3."""
REFERENCE_PLAIN = {"MNIST": {1: 220, 2: 846, 3: 1751}, "Adult": {1: 194, 2: 723, 3: 1494}}
"""Labels of a plain ensemble by epsilon, in the reference run."""

TEACHERS = {"MNIST": 0.902, "Adult": 0.81}
"""Mean accuracy."""
VOTED = {"MNIST": 0.977, "Adult": 0.863}
"""Share of voted labels that are right."""
REJECTED = {"MNIST": 0.43, "Adult": 0.643}

BEST_ORDERS = {
    "plain": (36, 23, 15, 9, 6),
    "low, weight 0.5": (50, 46, 31, 17, 11),
    "high, weight 1.5": (23, 16, 11, 7, 4),
}
"""Reference run on MNIST, after so many queries:"""
BEST_ORDERS_AT = (100, 381, 1000, 3500, 9000)
RATIOS = {2: (2.04, 2.11), 3: (3.09, 3.27), 4: (4.14, 4.41), 5: (5.19, 5.59), 6: (6.28, 6.78),
          7: (7.13, 7.92)}  # fmt: skip
"""Ratio of the two epsilons after 1,000 and 9,000 queries, by ratio of weights; reference run."""

STUDENTS = {
    "MNIST": {
        "weighting": ((90.92, 91.35, 92.91), (91.77, 92.83, 92.81), (92.41, 93.81, 94.52),
                      (93.18, 94.99, None)),
        "upsampling": ((90.64, 91.41, 92.75), (91.61, 93.01, 93.4), (92.39, 93.75, 94.47),
                       (93.6, 94.78, None)),
        "vanishing": ((73.51, 88.67, 92.45), (67.09, 90.83, 92.47), (69.13, 92.49, 94.33),
                      (79.79, 94.48, None)),
    },
    "Adult": {
        "weighting": ((81.45, 81.61, 81.91), (81.61, 81.85, 81.99), (82.15, 82.01, 82.16),
                      (82.01, 82.17, None)),
        "upsampling": ((80.37, 81.57, 81.91), (81.69, 81.85, 81.84), (81.85, 82.0, 82.09),
                       (82.11, 82.24, None)),
        "vanishing": ((78.98, 80.91, 81.63), (77.98, 81.41, 81.94), (78.01, 81.94, 82.23),
                      (78.73, 82.01, None)),
    },
}  # fmt: skip
"""Accuracy of students in per cent, rows by epsilon, columns by share (Tables 6.6, 6.7)."""
STUDENT_BASELINE = {"MNIST": 90.15, "Adult": 80.63}

MENUS = {
    "34/43/23": ({1: 0.34, 2: 0.43, 3: 0.23}, 3.41),
    "54/37/9": ({1: 0.54, 2: 0.37, 3: 0.09}, 2.33),
}
"""Shares by epsilon of two user studies (Boenisch et al. 2023), and the factor of the law."""
EXACT = {"published": 221, "tighter conversion": 325, "exact": 440,
         "exact, tighter conversion": 680}  # fmt: skip
"""Labels on MNIST at epsilon 1, same noise, by accounting; reference run."""
LAW_WORST = {"MNIST": 0.066, "Adult": 0.090}
"""How far the law of labels is at most from the printed u and w cells."""
