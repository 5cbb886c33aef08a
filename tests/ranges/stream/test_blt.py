"""Buffered linear Toeplitz matrices: closed forms against dense matrices, published numbers."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.ranges.strategies import square_root as toeplitz
from discreet.ranges.stream.blt_counter import BLT, LONGEST, best_blt

PUBLISHED = BLT((0.0372, 0.069, 0.1601, 0.2305), (0.99923, 0.9889, 0.92183, 0.56279))


def rows(blt, size):
    """The matrix of prefix sums of the inverse."""
    column = np.cumsum(toeplitz.reciprocal(blt.column(size)))
    return np.array([[column[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])


@pytest.mark.parametrize(
    "blt", [PUBLISHED, BLT((0.5,), (0.5,)), BLT((0.9, 0.05), (0.3, 0.9)), best_blt(50)]
)
def test_closed_forms(blt):
    size = 90
    dense = rows(blt, size)
    t = np.arange(1, size + 1)
    assert blt.norm_squared(size) == pytest.approx(np.square(blt.column(size)).sum())
    assert blt.variance(t) == pytest.approx(np.square(dense).sum(axis=1))
    rest = np.square(dense[-1] - dense).sum(axis=1)
    assert blt.suffix_variance(t, size=size) == pytest.approx(rest, abs=1e-9)


def test_published_vector():
    """F33: 1024 steps, rho 1."""
    found = PUBLISHED.variance(np.arange(1, 1025)) * PUBLISHED.norm_squared(1024) / 2
    assert found.max() == pytest.approx(5.3561, abs=5e-5)
    assert found.mean() == pytest.approx(4.8373, abs=5e-5)


@pytest.mark.parametrize("horizon", [4, 10, 256, 1000, 1025, 1500, 100_000])
def test_nearly_as_good_as_the_square_root(horizon):
    blt = best_blt(horizon)
    ours = blt.norm_squared(horizon) * blt.variance(np.array(horizon))
    root = np.square(toeplitz.coefficients(horizon)).sum() ** 2
    assert ours <= 1.001 * root
    # Nothing of this form can be better than the best Toeplitz factors: a check of the check.
    assert ours >= root * (1 - 1e-9)


@pytest.mark.parametrize("band", [1, 4, 16, 64])
def test_bands_need_more_memory(band):
    """No matrix of a few diagonals has a largest variance below steps over diagonals."""
    size = 1024
    source = np.random.default_rng(band)
    root = toeplitz.coefficients(size)
    falling = np.append(1, np.sort(source.uniform(0, 1, size - 1))[::-1])
    for column in (root, falling, np.ones(size)):
        cut = np.where(np.arange(size) < band, column, 0.0)
        largest = np.square(cut).sum() * toeplitz.prefix_variances(cut).max()
        assert largest >= size // band * (1 - 1e-9)
    blt = best_blt(size)
    assert blt.norm_squared(size) * blt.variance(np.array(size)) < size // band


def test_refusals():
    for omega, theta in [((), ()), ((1.0,), (1.0,)), ((-1.0,), (0.5,)), ((1.0, 1.0), (0.5,))]:
        with pytest.raises(InvalidArgument):
            BLT(omega, theta)
    with pytest.raises(InvalidArgument, match="horizon"):
        best_blt(LONGEST + 1)
