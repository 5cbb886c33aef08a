"""Reference values: the thesis has figures only here, these are its tables, computed again.

Keys are the rows, values the columns that the comment above each table names.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["as_coded", "as_text", "corrected"]
"""As the thesis's listing computes it, as its text says, and as it is."""

ALPHA = 0.05
DELTA = 1e-5
Z = NormalDist().inv_cdf(1 - ALPHA / 2)
UNIFORM_VARIANCE = 1 / 12
COVERAGE_CHANCE = 0.006
"""How far a coverage of 20,000 runs may be off."""

# Epsilon at which noisy rows are as good as a noisy variance: debiased, biased.
MATCHED = {100: (7.43, 12.83), 1000: (18.7, 39.9), 10_000: (57.8, 126.0), 100_000: (182.7, 398.8)}

# (n, epsilon, epsilon of the variance): coverage with known sigma, of the plug-in, with the
# misprinted width, when the noise is ignored; median width of the plug-in.
CLASSICAL = {
    (30, 1.0, 1.0): (0.950, 0.949, 1.0, 0.452, 0.666),
    (100, 1.0, 1.0): (0.948, 0.948, 1.0, 0.685, 0.221),
    (100, 0.1, 0.1): (0.951, 0.951, 1.0, 0.094, 1.903),
    (1000, 1.0, 1.0): (0.948, 0.948, 1.0, 0.913, 0.0405),
    (1000, 0.9, 0.02): (0.949, 0.911, 1.0, 0.908, 0.0415),
    (5000, 1.0, 1.0): (0.954, 0.953, 1.0, 0.947, 0.0164),
}
# The same with exact calibration: coverage and width of the plug-in and of the safe interval.
ANALYTIC = {
    (1000, 5.0, 0.01): (0.754, 0.036, 0.997, 0.0635),
    (1000, 5.0, 0.02): (0.842, 0.036, 0.998, 0.0635),
    (1000, 5.0, 0.1): (0.944, 0.036, 0.986, 0.0457),
    (1000, 0.9, 0.5): (0.952, 0.039, 0.964, 0.042),
    (100, 5.0, 0.2): (0.874, 0.118, 0.997, 0.205),
}
# Rows: width with Laplace noise, classical and exact Gaussian noise, none; coverage of the first.
WIDTHS = {
    30: (0.2803, 0.6661, 0.5294, 0.2066, 0.951),
    100: (0.1263, 0.2211, 0.1849, 0.1132, 0.953),
    1000: (0.0362, 0.0405, 0.0387, 0.0358, 0.951),
    10_000: (0.0113, 0.0115, 0.0114, 0.0113, 0.949),
}
# Epsilon: sigma of the classical formula, the thesis's zCDP, the right one, the best one, exact.
SIGMAS = {
    0.05: (96.90, 192.05, 96.08, 64.27, 57.77),
    0.1: (48.45, 96.08, 48.09, 33.98, 30.75),
    0.3: (16.15, 32.09, 16.10, 12.30, 11.24),
    0.446: (10.86, 21.62, 10.86, 8.52, 7.81),
    0.5: (9.690, 19.30, 9.700, 7.667, 7.032),
    0.9: (5.383, 10.77, 5.434, 4.457, 4.107),
    1.0: (4.845, 9.700, 4.901, 4.045, 3.731),
    2.0: (2.422, 4.901, 2.499, 2.149, 1.994),
    5.0: (0.969, 2.018, 1.055, 0.953, 0.892),
}
# Releases: epsilon by basic composition, zCDP, its best conversion, exactly.
COMPOSED = {
    1: (0.530, 0.531, 0.430, 0.397),
    2: (1.086, 0.753, 0.622, 0.575),
    5: (2.797, 1.200, 1.014, 0.941),
    10: (5.717, 1.712, 1.472, 1.368),
    100: (61.06, 5.757, 5.222, 4.887),
}
# Figure and mode: epsilon at correlations -1, -0.5, 0, 0.5, 1.
RHOS = (-1.0, -0.5, 0.0, 0.5, 1.0)
FIGURES: dict[tuple[str, Mode], tuple[float, ...]] = {
    ("6.1", "as_coded"): (1.0, 0.8444, 0.7444, 0.6731, 0.6191),
    ("6.1", "as_text"): (2.0, 1.7475, 1.5714, 1.4397, 1.3364),
    ("6.1", "corrected"): (2.0, 1.8610, 1.7475, 1.6525, 1.5714),
    ("6.2", "as_coded"): (0.9938, 0.8905, 0.8139, 0.7542, 0.7059),
    ("6.2", "as_text"): (1.9522, 1.3998, 1.1484, 0.9969, 0.8930),
    ("6.2", "corrected"): (1.9757, 1.6219, 1.4084, 1.2618, 1.1531),
    ("6.3", "as_coded"): (0.5475, 0.5365, 0.5262, 0.5164, 0.5071),
    ("6.3", "as_text"): (1.0508, 0.9790, 0.9201, 0.8708, 0.8286),
    ("6.3", "corrected"): (1.0797, 1.0388, 1.0022, 0.9693, 0.9394),
}
# Figure and correlation, as coded: epsilon at a11 = 0.1, ..., 0.9.
SWEEPS = {
    ("6.4", -1.0): (0.358, 0.690, 0.904, 0.943, 0.873, 0.777, 0.687, 0.611, 0.548),
    ("6.4", 0.0): (0.434, 0.925, 1.112, 1.015, 0.873, 0.754, 0.660, 0.586, 0.526),
    ("6.4", 1.0): (0.594, 2.051, 1.592, 1.108, 0.873, 0.733, 0.636, 0.564, 0.507),
    ("6.5", -1.0): (1.205, 1.157, 1.070, 0.970, 0.873, 0.787, 0.708, 0.616, 0.407),
    ("6.5", 0.0): (1.558, 1.394, 1.199, 1.021, 0.873, 0.752, 0.644, 0.529, 0.343),
    ("6.5", 1.0): (2.713, 1.885, 1.389, 1.081, 0.873, 0.721, 0.595, 0.471, 0.301),
}
SHIFTS = (5.0, 2.5, 1.667, 1.25, 1.0, 0.833, 0.714, 0.625, 0.556)
# Target and what is known: mu when the first, the second, both are released.
LEAKAGE = {
    ("A1", "time"): (0.393637, 0.166172, 0.427274),
    ("A2", "time"): (0.215288, 0.393637, 0.448664),
    ("A1", "none"): (0.487366, 0.229745, 0.523202),
    ("A2", "none"): (0.263141, 0.487366, 0.540401),
    ("A3 at t=1", "none"): (0.787274, 0.365578, 0.868014),
    ("A3 at t=2", "none"): (0.363620, 0.787274, 0.867191),
}
EPSILONS = {"A1": (1.5276, 0.5926, 1.6731), "A2": (0.7864, 1.5276, 1.7664)}
# A = a I: the exact mu and the thesis's epsilon for A2+N1.
DECAY = {0.5: (0.166, 0.97), 0.2: (0.0665, 1.09), 0.1: (0.0332, 1.11), 0.01: (0.0033, 1.11)}
# (rho, kappa): growth of the three terms of the bound from 1e5 to 1e6 steps, in powers of N.
EXPONENTS = {
    (0.0, 0.0): (-1.0, 0.0, 2.0),
    (0.5, 0.0): (-0.50, -0.43, 1.50),
    (0.75, 0.0): (-0.26, -0.26, 1.26),
}
# The same, the term of the noise alone.
NOISE_EXPONENTS = {
    (0.5, 0.75): 0.007,
    (0.5, 0.9): -0.27,
    (0.5, 1.2): -0.50,
    (0.0, 1.1): -0.20,
    (0.0, 1.5): -0.92,
}
# (rho, kappa, steps, D / epsilon): mean excess loss, bound.
EXCESS = {
    (0.5, 0.8, 500, 0.2): (0.035, 0.242),
    (0.0, 0.0, 200, 0.2): (6.88, 262.0),
    (0.5, 0.0, 300, 0.05): (0.255, 6.20),
}
# Steps: epsilon of all iterates, basic and exact; the same of steps on one row of 1000.
TRAJECTORY = {
    10: (2.929, 2.928, 0.00396, 0.0032),
    100: (5.187, 3.666, 0.00626, 0.0036),
    1000: (7.485, 3.720, 0.00856, 0.0039),
}
