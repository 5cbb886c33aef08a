"""The square root of the prefix matrix against the dense matrix and the published numbers."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.ranges.strategies import square_root as toeplitz


def dense(column):
    size = len(column)
    return np.array([[column[i - j] if i >= j else 0 for j in range(size)] for i in range(size)])


def test_the_root_times_itself_is_the_prefix_matrix():
    root = dense(toeplitz.coefficients(64))
    assert np.abs(root @ root - np.tri(64)).max() < 1e-13
    assert np.abs(root @ dense(toeplitz.inverse_coefficients(64)) - np.eye(64)).max() < 1e-13


def test_published_coefficients():
    expected = [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375, 0.2255859375, 0.20947265625]
    assert toeplitz.coefficients(8).tolist() == expected
    squares = np.cumsum(np.square(toeplitz.coefficients(1024)))
    assert squares[[3, 7, 1023]] == pytest.approx([1.48828125, 1.71837926, 3.27255], abs=5e-6)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 257])
def test_exact_product(size):
    """Exact integers, also where a double product would round."""
    rng = np.random.default_rng(size)
    for bits, most in [(4, 10), (30, 2**20), (40, 2**12), (1, 2**50 // size)]:
        column = toeplitz.on_grid(toeplitz.coefficients(size), bits=bits)
        x = rng.integers(-most, most, size)
        expected = dense(column.astype(object)) @ x.astype(object)
        assert toeplitz.exact(column, x).tolist() == expected.tolist()


def test_exact_product_of_a_long_vector():
    """All ones times all ones: the entry t of the product is the sum of t + 1 coefficients."""
    size = 1 << 17
    column = toeplitz.on_grid(toeplitz.coefficients(size), bits=30)
    x = np.full(size, 2**20 - 1)
    assert np.array_equal(toeplitz.exact(column, x), np.cumsum(column) * (2**20 - 1))


def test_exact_product_refuses_overflow():
    with pytest.raises(OutOfDomain, match="62 bits"):
        toeplitz.exact(np.array([2**40]), np.array([2**30]))


def test_norms_are_those_of_the_rounded_matrix():
    column = toeplitz.on_grid(toeplitz.coefficients(100), bits=12)
    matrix = dense(column.astype(object))
    assert toeplitz.norm_squared(column) == max(int(norm) for norm in (matrix * matrix).sum(axis=0))
    floats = toeplitz.coefficients(50)
    assert toeplitz.column_norms(floats) == pytest.approx(np.linalg.norm(dense(floats), axis=0))


def test_reciprocal_is_the_inverse():
    column = toeplitz.coefficients(200)
    assert toeplitz.reciprocal(column) == pytest.approx(
        toeplitz.inverse_coefficients(200), abs=1e-13
    )
    with pytest.raises(InvalidArgument):
        toeplitz.reciprocal(np.zeros(2))


def test_prefix_variances_of_the_table():
    """Gaussian noise at rho = 1, so sigma^2 = S / 2; the normalized matrix has S = 1."""
    for size, plain, normalized in [
        (64, (2.486, 2.853), (2.264, 2.446)),
        (256, (3.561, 4.007), (3.270, 3.498)),
        (1024, (4.835, 5.355), (4.474, 4.746)),
    ]:
        column = toeplitz.coefficients(size)
        found = toeplitz.prefix_variances(column) * np.square(column).sum() / 2
        assert (found.mean(), found.max()) == pytest.approx(plain, abs=6e-4)
        found = toeplitz.normalized_prefix_variances(size) / 2
        assert (found.mean(), found.max()) == pytest.approx(normalized, abs=6e-4)
