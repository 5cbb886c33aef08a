"""The models of the study against enumeration: covers, weights, second moments."""

import itertools
import math

import numpy as np
import pytest

from discreet.audit.cases import _range_outputs as ranges
from discreet_studies.range_queries import central_model
from discreet_studies.range_queries.discreet_results import best_for, designed, model
from discreet_studies.range_queries.example_counts import SEED, even, total_distribution, visits
from discreet_studies.range_queries.local_model import (
    Flat,
    Levels,
    PublishedUnary,
    published,
    response,
)
from discreet_studies.range_queries.tree_cover import cover, height, level_counts, starts


def pieces(first, length, degree, top):
    """The cover of one range as (start, size) of its nodes."""
    found = []
    for runs in cover(np.array([first]), length=length, degree=degree, top=top):
        size = degree**runs.height
        for low, high in ((runs.left, runs.left_end), (runs.right, runs.right_end)):
            found += [(node * size, size) for node in range(low[0], high[0])]
    return sorted(found)


def fewest(first, end, degree, top):
    """The number of nodes, taking the largest aligned block that fits, again and again."""
    nodes = 0
    while first < end:
        size = max(
            degree**j for j in range(top + 1) if first % degree**j == 0 and first + degree**j <= end
        )
        first, nodes = first + size, nodes + 1
    return nodes


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("root", [True, False])
def test_a_cover_is_disjoint_complete_and_minimal(degree, root):
    domain = 40
    top = height(domain, degree=degree) - (0 if root else 1)
    for first, length in itertools.product(range(domain), range(1, domain + 1)):
        if first + length <= domain:
            found = pieces(first, length, degree, top)
            ends = [start + size for start, size in found]
            assert [start for start, _ in found] == [first, *ends[:-1]]
            assert ends[-1] == first + length
            assert len(found) == fewest(first, first + length, degree, top)


def test_the_covers_of_the_thesis():
    assert [
        (a, a + s - 1) for a, s in pieces(2, 21, 2, 5)
    ] == [(2, 3), (4, 7), (8, 15), (16, 19), (20, 21), (22, 22)]  # fmt: skip
    assert len(pieces(5, 53, 4, 3)) == 11
    assert len(pieces(1, 25, 3, 3)) == 9
    assert pieces(0, 27, 3, 3) == [(0, 27)]


@pytest.mark.parametrize(
    ("domain", "degree", "h"), [(32, 2, 5), (125, 5, 3), (216, 6, 3), (1, 2, 0)]
)
def test_heights_are_counted_in_integers(domain, degree, h):
    assert height(domain, degree=degree) == h
    assert height(domain + 1, degree=degree) == h + 1


def pushed_down(leaves, degree, variables):
    """The noise of all nodes as the published code assigns it, level by level from the root."""
    noise = [variables[-1]]
    for own in reversed(variables[:-1]):
        above, here = noise[-1], own.copy()
        here[0::degree] = own[1::degree] + above
        noise.append(here)
    return noise[::-1]


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_the_published_tree_is_the_code_of_the_thesis(degree):
    rng = np.random.default_rng(3)
    h = 3
    domain = degree**h
    variables = [rng.normal(size=degree ** (h - j)) for j in range(h + 1)]
    noise = pushed_down(domain, degree, variables)
    for length in range(1, domain + 1, 2):
        first = starts(domain, length=length)
        coded = central_model.tree_as_coded(
            first, length=length, domain=domain, degree=degree, epsilon=1
        )
        got = coded.weights @ np.concatenate(variables)
        want = [
            sum(noise[round(math.log(s, degree))][a // s] for a, s in pieces(f, length, degree, h))
            for f in first
        ]
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("degree", [2])
def test_the_published_tree_is_the_one_that_is_attacked(degree):
    """The noise of every node, drawn as `leakage` draws it."""
    h, seed = 4, 11
    domain = degree**h
    attacked = ranges.published_tree([0] * domain, epsilon=0.5, seed=seed, degree=degree)
    rng = np.random.default_rng(seed)
    drawn = [rng.laplace(0, math.log2(h + 1) / 0.5, degree**j) for j in range(h + 1)]
    for level in range(h + 1):
        first = np.arange(0, domain, degree**level)
        coded = central_model.tree_as_coded(
            first, length=degree**level, domain=domain, degree=degree, epsilon=0.5
        )
        got = coded.weights @ np.concatenate(drawn[::-1])
        np.testing.assert_allclose(got, attacked[h - level], atol=1e-12)
        assert coded.variance[0] == pytest.approx(2 * (math.log2(h + 1) / 0.5) ** 2)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("domain", [1, 2, 27, 60])
def test_the_closed_form_of_the_published_tree_is_that_of_its_weights(domain, degree):
    for length in range(1, domain + 1):
        size = {"length": length, "domain": domain, "degree": degree}
        first = starts(domain, length=length)
        weights = central_model.tree_as_coded(first, epsilon=1, **size).weights
        want = np.square(weights).sum(axis=1)
        np.testing.assert_array_equal(central_model.coded_energy(first, **size), want)


def test_the_spread_of_squares_is_exact():
    """Var of a quadratic form, against moments of a law with three values."""
    weights = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]])
    # -1, 0, 1 with probabilities p/2, 1 - p, p/2: variance p, excess kurtosis 1/p - 3.
    p = np.array([0.5, 0.2, 0.9])
    linear = central_model.Linear(weights=weights, variance=p, excess=1 / p - 3)
    mean = square = 0.0
    for values in itertools.product((-1, 0, 1), repeat=3):
        chance = math.prod(q / 2 if v else 1 - q for v, q in zip(values, p, strict=True))
        mse = np.square(weights @ values).mean()
        mean, square = mean + chance * mse, square + chance * mse**2
    assert linear.variances.mean() == pytest.approx(mean)
    assert linear.spread() == pytest.approx(math.sqrt(square - mean**2))


def test_the_weights_of_the_house_give_its_own_variance():
    structure = best_for(40, domain=64, epsilon=1)
    first = starts(64, length=40)
    linear = model(structure, first, length=40, epsilon=1)
    design = designed(structure, epsilon=1)
    np.testing.assert_allclose(linear.variances, design.variance(first, first + 39), rtol=1e-9)
    assert 0.999 < design.guarantee.epsilon(0) <= 1


def exclusive(oracle, size):
    """Report laws: rows are values, columns reports."""
    keep = oracle.keep(size)
    return keep * np.eye(size) + (1 - keep) / size


def estimate_table(oracle, size):
    """Reports (rows of supports) with their laws, and the estimate of a count from one report."""
    if isinstance(oracle, PublishedUnary):
        supports = np.array(list(itertools.product((0, 1), repeat=size)), dtype=float)
        q = oracle.noise
        rates = np.where(np.eye(size, dtype=bool), 0.5, q)
        law = np.stack([np.prod(np.where(supports, r, 1 - r), axis=1) for r in rates])
        return law, (supports - q) / (0.5 - q)
    keep = oracle.keep(size)
    return exclusive(oracle, size), (np.eye(size) - (1 - keep) / size) / keep


def covariance(counts, inside, law, estimates):
    """Users are independent: sum the covariances of the single estimates."""
    answers = estimates @ inside.T  # report x range
    total = np.zeros((len(inside), len(inside)))
    for users, probabilities in zip(counts, law, strict=True):
        mean = probabilities @ answers
        second = answers.T @ (probabilities[:, None] * answers)
        total += users * (second - np.outer(mean, mean))
    return total


ORACLES = [published(0.7), response(0.7), PublishedUnary(epsilon=0.7)]


@pytest.mark.parametrize("oracle", ORACLES)
def test_flat_second_moments_are_those_of_all_reports(oracle):
    counts = np.array([3, 0, 5, 1, 2])
    law, estimates = estimate_table(oracle, 5)
    np.testing.assert_allclose(law @ estimates, np.eye(5), atol=1e-12)  # unbiased
    for length in range(1, 6):
        first = starts(5, length=length)
        inside = ((first[:, None] <= np.arange(5)) & (np.arange(5) < first[:, None] + length)) * 1.0
        want = covariance(counts, inside, law, estimates)
        flat = Flat(oracle=oracle)
        np.testing.assert_allclose(flat.covariance(counts, first, length=length), want, atol=1e-9)
        np.testing.assert_allclose(
            flat.variances(counts, first, length=length), np.diag(want), atol=1e-9
        )


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("degree", "domain"), [(2, 4), (3, 7)])
@pytest.mark.parametrize("root", [True, False])
def test_level_second_moments_are_those_of_all_messages(oracle, degree, domain, root):
    counts = np.arange(1, domain + 1) % 4
    tree = Levels(oracle=oracle, degree=degree, root=root)
    top = tree.top(domain)
    length = 3
    first = starts(domain, length=length)
    runs = cover(first, length=length, degree=degree, top=top)
    laws_of, answers = [], []
    for level in range(top + 1):
        size = len(level_counts(counts, degree=degree, top=level)[-1])
        law, estimates = estimate_table(oracle, size)
        node = np.arange(domain) // degree**level
        laws_of.append(law[node] / (top + 1))
        answers.append((top + 1) * estimates @ runs[level].incidence(size).T)
    law, table = np.hstack(laws_of), np.vstack(answers)
    want = covariance(counts, np.eye(len(first)), law, table)
    got = tree.covariance(counts, first, length=length)
    np.testing.assert_allclose(got, want, atol=1e-8)
    np.testing.assert_allclose(tree.variances(counts, first, length=length), np.diag(want))


@pytest.mark.parametrize(
    ("epsilon", "by_response", "by_unary", "as_published"),
    [
        (0.5, 474.7291, 125.6163, 73.3382),
        (1.0, 72.0135, 29.7116, 28.6623),
        (2.0, 6.5818, 6.0425, 4.8735),
    ],
)
def test_range_variances_derived_elsewhere(epsilon, by_response, by_unary, as_published):
    """n Var of a frequency: 32 values, a range of 8 with a quarter of the users."""
    counts, first = even(32), np.array([4])
    for oracle, want in (
        (response(epsilon), by_response),
        (PublishedUnary(epsilon=epsilon), by_unary),
        (published(epsilon), as_published),
    ):
        got = Flat(oracle=oracle).variances(counts, first, length=8)[0] / counts.sum()
        assert got == pytest.approx(want, abs=6e-5)


@pytest.mark.parametrize("size", [2, 5, 40])
def test_the_true_epsilon_is_the_largest_ratio(size):
    for oracle in (published(1.3), response(1.3)):
        law = exclusive(oracle, size)
        ratio = (law[:, None, :] / law[None, :, :]).max()
        assert oracle.true_epsilon(size) == pytest.approx(math.log(ratio))
    assert published(1.3).true_epsilon(size) == pytest.approx(ranges.oracle_epsilon(size, 1.3))
    assert response(1.3).true_epsilon(size) == pytest.approx(1.3)
    assert published(1.3).true_epsilon(size) > 1.3


def test_the_visits_are_always_the_same_and_follow_their_law():
    assert SEED == 775147
    np.testing.assert_array_equal(visits(100), visits(100))
    mean, spread = total_distribution(2048)
    assert abs(visits(2048).sum() - mean) < 5 * spread
    assert even(4).tolist() == [300] * 4
