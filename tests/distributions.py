"""Statistical checks whose tolerance comes from the exact law.

All of them together may fail by chance with probability 1e-6: each takes ALPHA, for at most
`BUDGET` checks in the whole suite. Seeds are fixed, so a failure is never chance twice.
"""

import math

import numpy as np
from scipy import stats

BUDGET = 1000
ALPHA = 1e-6 / BUDGET


def distance(sample, cdf):
    """Largest distance between the empirical and the stated distribution function."""
    values, counts = np.unique(sample, return_counts=True)
    above = np.cumsum(counts) / len(sample)
    # On the integers the largest distance is attained at the values or just below one.
    gap = np.maximum(
        np.abs(above - cdf(values)), np.abs(above - counts / len(sample) - cdf(values - 1))
    )
    return float(gap.max())


def follows(sample, cdf):
    """Dvoretzky-Kiefer-Wolfowitz with Massart's constant: valid for every law and every n."""
    return distance(sample, cdf) <= math.sqrt(math.log(2 / ALPHA) / (2 * len(sample)))


def frequency(successes, trials, p):
    """Exact binomial test of one probability."""
    return stats.binomtest(int(successes), int(trials), float(p)).pvalue >= ALPHA


def mean_of(sample, mean, variance):
    """The mean of many draws, by its exact variance."""
    z = stats.norm.isf(ALPHA / 2)
    return abs(np.mean(sample) - mean) <= z * math.sqrt(variance / len(sample))
