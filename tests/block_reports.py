"""Exact laws of reports that are blocks, from every string of bytes that a server may receive."""

import itertools

import numpy as np
from scipy.stats import chi2

from tests.counting_source import CountedBits
from tests.distributions import ALPHA


def every_report(oracle):
    """All strings of bytes of the oracle's width."""
    return np.array(list(itertools.product(range(256), repeat=oracle.width)), dtype=np.uint8)


def blocks(oracle):
    """The supports of every report that is accepted, by the server's own way of reading them."""
    found = []
    for row in every_report(oracle):
        tally = oracle.tally(row[None])
        assert tally.accepted + tally.refused == 1
        if tally.accepted:
            found.append(oracle.supports(tally.counts))
        else:
            assert not tally.counts.any()
    return np.array(found)


def law(oracle, supports, value):
    """Probability of each block for a client: e^epsilon times more if it holds the value.

    Only what defines the mechanism is used: not its own keep, other or variances.
    """
    weights = np.where(supports[:, value] == 1, np.exp(float(oracle.epsilon)), 1.0)
    return weights / weights.sum()


def moments(oracle, supports, value):
    """Exact mean and covariance of the estimated shares from one report."""
    p = law(oracle, supports, value)
    shares = (supports - oracle.other) / (oracle.keep - oracle.other)
    mean = p @ shares
    return mean, (shares * p[:, None]).T @ shares - np.outer(mean, mean)


def check_moments(oracle):
    """Means, and the variances of all sets, contrasts and pinned sets, equal the closed forms."""
    supports, d = blocks(oracle), oracle.categories
    found = [moments(oracle, supports, v) for v in range(d)]
    for v, (mean, _) in enumerate(found):
        np.testing.assert_allclose(mean, np.eye(d)[v], atol=1e-12)
    sets = np.array(list(itertools.product([0, 1], repeat=d))[1:], dtype=float)
    lengths = sets.sum(axis=1)
    pinned = sets - lengths[:, None] / d
    for v, (_, cov) in enumerate(found):
        shares = sets[:, v]  # all clients alike: the share of a set is zero or one
        for weights, law_of in ((sets, oracle.range_variance), (pinned, oracle.pinned_variance)):
            variances = np.einsum("ki,ij,kj->k", weights, cov, weights)
            exact = law_of(lengths, shares)
            np.testing.assert_allclose(variances, exact, rtol=1e-9, atol=1e-11)
    contrast = np.zeros(d)
    contrast[:2] = 0.5**0.5, -(0.5**0.5)
    average = sum(cov for _, cov in found) / d
    np.testing.assert_allclose(contrast @ average @ contrast, oracle.contrast_variance(), rtol=1e-9)


def follow(oracle, rows, value, *, number):
    """Whether the reports of clients with one value come with their exact probabilities.

    There are ``number`` reports that a client may send. One chi-square test at the tolerance of all
    statistical tests; it needs 50 reports a cell.
    """
    keys, seen = np.unique(rows, axis=0, return_counts=True)
    supports = np.array([oracle.supports(oracle.tally(key[None]).counts) for key in keys])
    if not len(keys) == number == oracle.tally(keys).accepted:
        return False
    expected = len(rows) * law(oracle, supports, value)
    assert expected.min() > 50
    return np.sum((seen - expected) ** 2 / expected) <= chi2.isf(ALPHA, len(keys) - 1)


def work(oracle, values):
    """How many words clients draw, for each value that all of them have."""
    drawn = set()
    for value in values:
        bits = CountedBits(11)
        oracle.randomize(np.full(500, value), rng=bits)
        drawn.add(bits.drawn)
    return drawn
