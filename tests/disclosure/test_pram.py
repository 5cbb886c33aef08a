"""Post-randomization: exact chances, the estimate and its covariance, groups that stay."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.disclosure import block_pram, group_sizes, histogram, k_pram, pram, symmetric_pram
from discreet.noise.random_source import seeded_rng
from tests.choice_tree import enumerate_sampler
from tests.distributions import ALPHA, frequency, mean_of

GENDER = pram([[0.8, 0.2], [0.2, 0.8]])
WEEKS = pram([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0, 0.5, 0.5]])


@st.composite
def matrices(draw, size=3):
    rows = []
    for _ in range(size):
        weights = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
        rows.append([Fraction(w, sum(weights)) for w in weights])
    return pram(rows)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_chances_are_exactly_those_of_the_matrix(code):
    found = enumerate_sampler(lambda bits: int(WEEKS.apply([code], rng=bits)[0]), width=8, depth=1)
    assert found.unresolved == 0
    wanted = {place: p for place, p in enumerate(WEEKS.matrix[code]) if p}
    assert found.masses == wanted


def test_thirds_are_thirds():
    third = pram([[Fraction(1, 3)] * 3] * 3)
    found = enumerate_sampler(lambda bits: int(third.apply([0], rng=bits)[0]), width=8, depth=3)
    # Words that would bias are drawn again: the rest is shared alike.
    assert len(set(found.masses.values())) == 1
    assert sum(found.masses.values()) + found.unresolved == 1


@settings(max_examples=25)
@given(matrices(), st.lists(st.integers(0, 50), min_size=3, max_size=3))
def test_invariant_pram_keeps_the_counts_exactly(matrix, counts):
    if not any(counts):
        counts = [1, 0, 0]
    kept = matrix.invariant(counts)
    for place in range(3):
        assert (
            sum(t * row[place] for t, row in zip(counts, kept.matrix, strict=True)) == counts[place]
        )
    assert all(sum(row) == 1 for row in kept.matrix)


def test_invariant_pram_draws_what_its_matrix_says():
    kept = GENDER.invariant([900, 100])
    drawn = kept.apply(np.zeros(200_000, dtype=int), rng=seeded_rng(1))
    assert frequency((drawn == 0).sum(), 200_000, kept.matrix[0][0])
    assert not frequency((drawn == 0).sum(), 200_000, GENDER.matrix[0][0])


def covariance_by_hand(matrix, counts):
    """Of the estimate, from every joint outcome of the few records."""
    codes = [code for code, n in enumerate(counts) for _ in range(n)]
    P = np.array(matrix.matrix, dtype=float)
    back = np.linalg.inv(P.T)
    first, second = np.zeros(len(counts)), np.zeros((len(counts), len(counts)))
    for outcome in itertools.product(range(len(counts)), repeat=len(codes)):
        chance = math.prod(P[k, j] for k, j in zip(codes, outcome, strict=True))
        estimate = back @ np.bincount(outcome, minlength=len(counts))
        first += chance * estimate
        second += chance * np.outer(estimate, estimate)
    return first, second - np.outer(first, first)


@settings(max_examples=20)
@given(matrices(), st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any))
def test_the_estimate_is_unbiased_with_the_stated_covariance(matrix, counts):
    if abs(np.linalg.det(matrix.floats)) < 0.01:
        return
    mean, covariance = covariance_by_hand(matrix, counts)
    assert mean == pytest.approx(counts, abs=1e-8)
    assert matrix.covariance(counts) == pytest.approx(covariance, rel=1e-6, abs=1e-6)
    seen = matrix.expected(counts)
    assert matrix.estimate(seen).counts == pytest.approx(counts, abs=1e-8)


def test_the_worked_case():
    # B9: variance 444.4 at (700, 300); E10: of 500 and 500 a hundred swap each way.
    assert GENDER.covariance([700, 300])[0, 0] == pytest.approx(4000 / 9)
    assert GENDER.local_epsilon == pytest.approx(math.log(4))
    assert GENDER.local_epsilon >= math.log(4)
    assert GENDER.expected([500, 500]).tolist() == [500, 500]
    assert 500 * GENDER.matrix[0][1] == 100
    original = np.repeat([0, 1], [700, 300])
    bits = seeded_rng(2)
    found = [
        GENDER.estimate(np.bincount(GENDER.apply(original, rng=bits))).counts[0]
        for _ in range(1000)
    ]
    assert mean_of(found, 700, 4000 / 9)
    assert not mean_of(np.add(found, 9), 700, 4000 / 9)
    # The variance of 1000 near-normal errors has a relative standard deviation of 1/sqrt(500).
    spread = np.var(found) / (4000 / 9)
    assert abs(spread - 1) < math.sqrt(2 * math.log(2 / ALPHA) * 2 / 1000) * 1.1


def test_posterior_odds():
    # (0.8 * 700) / (0.2 * 300) and (0.8 * 300) / (0.2 * 700).
    assert GENDER.posterior_odds([700, 300]) == pytest.approx([560 / 60, 240 / 140])
    assert pram([[1, 0], [0, 1]]).posterior_odds([5, 0])[0] == np.inf


def test_a_zero_tells_everything():
    assert WEEKS.local_epsilon == math.inf
    assert pram([[0.5, 0.5], [0.5, 0.5]]).local_epsilon == 0
    assert symmetric_pram(0.7, categories=4).local_epsilon == pytest.approx(math.log(7))


def test_a_singular_matrix_is_told():
    found = pram([[0.5, 0.5], [0.5, 0.5]]).estimate([60, 40])
    assert not found.unique
    assert "singular" in repr(found)
    assert found.projected.sum() == pytest.approx(100)


def test_estimates_below_zero_are_projected():
    found = GENDER.estimate([95, 5])
    assert found.counts == pytest.approx([125, -25])
    assert found.projected == pytest.approx([100, 0])
    assert "125.0 ±" in repr(found)


def test_rounded_rows_are_mended():
    third = pram([[1 / 3, 1 / 3, 1 / 3]] * 3)
    assert all(sum(row) == 1 for row in third.matrix)
    with pytest.raises(InvalidArgument, match="sum to 1, got 0.9"):
        pram([[0.8, 0.1], [0.2, 0.8]])


def test_blocks_never_mix():
    blocks = block_pram([([0, 2], [[0.5, 0.5], [0.25, 0.75]]), ([1, 3], [[0.9, 0.1], [0.1, 0.9]])])
    codes = np.arange(4).repeat(100)
    drawn = blocks.apply(codes, rng=seeded_rng(3))
    assert ((drawn % 2) == (codes % 2)).all()
    assert (drawn != codes).any()
    assert group_sizes(codes, matrix=blocks).tolist() == [200, 200]
    assert group_sizes(codes[:250], matrix=blocks).min() == 100
    assert blocks.local_epsilon == math.inf


def test_k_pram_of_numbers_keeps_bins_and_has_its_error():
    x = np.random.default_rng(4).uniform(0, 60, 200_000)
    edges = range(0, 61, 5)
    found = k_pram(x, edges=edges, k=1000, rng=seeded_rng(5))
    assert histogram(found.values, edges=edges).tolist() == found.counts.tolist()
    assert found.utility.changed == 0
    # The square of a difference of two uniforms on [0, w]: mean w^2/6, second moment w^4/15.
    squares = (x - found.values) ** 2
    assert mean_of(squares, 25 / 6, 625 / 15 - (25 / 6) ** 2)
    assert not mean_of(squares * 1.03, 25 / 6, 625 / 15 - (25 / 6) ** 2)
    assert abs(found.utility.bias) < 6 * found.utility.bias_error
    assert "exact" in repr(found)


def test_k_pram_refuses_small_bins_and_values_outside():
    with pytest.raises(OutOfDomain, match="fewer than k = 3"):
        k_pram([1, 2, 3, 8], edges=[0, 5, 10], k=3)
    with pytest.raises(OutOfDomain, match="first and the last edge"):
        k_pram([1, 2, 11], edges=[0, 5, 10], k=1)
    assert k_pram([1, 2, 3], edges=[0, 5, 10], k=3).k == 3


def test_an_edge_goes_right_and_the_last_to_the_last_bin():
    assert histogram([0, 5, 10, 10, 11, -1], edges=[0, 5, 10]).tolist() == [1, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: GENDER.apply([2]),
        lambda: GENDER.apply([0.5]),
        lambda: GENDER.estimate([1]),
        lambda: GENDER.estimate([-1, 2]),
        lambda: GENDER.invariant([0.5, 1]),
        lambda: group_sizes([], matrix=GENDER),
        lambda: group_sizes([3], matrix=GENDER),
    ],
)
def test_inputs_that_do_not_fit_are_refused(call):
    with pytest.raises(OutOfDomain):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: pram([]),
        lambda: pram([[1]] * 2),
        lambda: pram([[2, -1], [0, 1]]),
        lambda: symmetric_pram(0.5, categories=1),
        lambda: block_pram([([0, 0], [[1, 0], [0, 1]])]),
        lambda: block_pram([([0, 1], [[1]])]),
    ],
)
def test_matrices_that_are_none_are_refused(call):
    with pytest.raises(InvalidArgument):
        call()
