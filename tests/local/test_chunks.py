"""Long inputs are worked on in parts: nothing is lost or counted twice where parts meet."""

import numpy as np
import pytest

from discreet.local import distribution as wave
from discreet.local import longitudinal as memoized_hashing
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import longitudinal_olh
from discreet.local.means import base as mean
from discreet.local.means import multidimensional as several
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles import histogram_encoding as histogram
from discreet.local.oracles import local_hashing as hashing
from discreet.local.oracles import randomized_response as response
from discreet.local.oracles import subset_selection as subset
from discreet.local.oracles import unary_encoding as unary
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue
from discreet.noise.random_source import seeded_rng

MODULES = (hashing, histogram, mean, memoized_hashing, response, several, subset, unary, wave)
# An epsilon at which no client of these tests lies.
SURE = 90


@pytest.fixture(params=[1, 3, 64, None])
def chunk(request, monkeypatch):
    for module in MODULES if request.param else ():
        monkeypatch.setattr(module, "_CHUNK", request.param)


VALUES = np.array([0, 7, 7, 1, 2, 3, 7, 5, 5, 6, 4])
COUNTS = np.bincount(VALUES, minlength=8)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    "made",
    [
        grr(categories=8, epsilon=SURE),
        grr(categories=300, epsilon=SURE),
        olh(categories=8, epsilon=SURE, hashes=8),
        subset_selection(categories=8, epsilon=SURE, chosen=1),
        subset_selection(categories=300, epsilon=SURE, chosen=1),
        sue(categories=8, epsilon=SURE),
        longitudinal_olh(categories=8, epsilon=SURE, permanent_epsilon=2 * SURE, hashes=8),
    ],
    ids=str,
)
def test_codes(made):
    reports = made.randomize(VALUES, rng=seeded_rng(3))
    assert reports.shape == (11, made.width)
    found = made.tally(reports)
    assert (found.accepted, found.refused) == (11, 0)
    supports = made.supports(found.counts)
    assert len(supports) == made.categories
    assert supports[:8].tolist() == COUNTS.tolist()
    assert not supports[8:].any()
    assert made.estimate(found.counts, 11).shares[:8] == pytest.approx(COUNTS / 11, abs=1e-6)
    parts = [made.tally(reports[i : i + 1]).counts for i in range(11)]
    assert np.array_equal(sum(parts), found.counts)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("make", [duchi, piecewise_mean])
def test_numbers(make):
    given = {} if make is duchi else {"steps": 7, "window": 1}
    made = make(epsilon=SURE, lower=0, upper=7, **given)
    numbers = np.where(VALUES < 4, 0, 7) if make is duchi else VALUES
    found = made.tally(made.randomize(numbers, rng=seeded_rng(3)))
    expected = np.bincount(numbers // 7 if make is duchi else numbers, minlength=made.size)
    assert found.counts.tolist() == expected.tolist()
    assert made.estimate(found.counts, 11).value == pytest.approx(numbers.mean())


@pytest.mark.usefixtures("chunk")
def test_cells_and_columns():
    made = square_wave(cells=8, epsilon=SURE)
    assert made.window.width == 1
    assert made.tally(made.randomize(VALUES, rng=seeded_rng(3))).counts.tolist() == COUNTS.tolist()
    both = several.multidimensional_mean(
        columns={"a": (0, 7), "b": (-7, 0)}, epsilon=2 * SURE, sampled=2
    )
    found = both.tally(both.randomize({"a": VALUES, "b": -VALUES}, rng=seeded_rng(3)))
    assert (found.accepted, found.refused) == (11, 0)
    told = both.estimate(found.counts, 11)
    assert told["a"].value == pytest.approx(VALUES.mean(), abs=0.1)
    assert told["b"].value == pytest.approx(-VALUES.mean(), abs=0.1)


@pytest.mark.usefixtures("chunk")
def test_histograms():
    made = summation_histogram_encoding(categories=8, epsilon=SURE, steps=500)
    found = made.tally(made.randomize(VALUES, rng=seeded_rng(3)))
    noise = found.counts - 500 * COUNTS
    assert np.abs(noise).max() < 12 * 11 * float(made.noise.scale)
    assert found.accepted == 11


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (grr(categories=5, epsilon=1), 5),
        (oue(categories=5, epsilon=1), 32),
        (subset_selection(categories=5, epsilon=1, chosen=2), 7),
        (subset_selection(categories=5, epsilon=1, chosen=2), 33),
        (olh(categories=4, epsilon=1, hashes=2), 8),
        (square_wave(cells=4, epsilon=1), 200),
    ],
    ids=str,
)
def test_what_is_refused_moves_nothing(made, wrong):
    reports = made.randomize(np.arange(11) % 4, rng=seeded_rng(3))
    assert reports.shape[1] == 1
    broken = reports.copy()
    places = [0, 4, 10]
    broken[places] = wrong
    found = made.tally(broken)
    assert (found.accepted, found.refused) == (8, 3)
    assert np.array_equal(found.counts, made.tally(np.delete(reports, places, axis=0)).counts)
