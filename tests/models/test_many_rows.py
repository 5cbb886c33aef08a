"""How many rows there are is private under add/remove: sums beyond 64 bits must not show it."""

import numpy as np
import pytest

import discreet
from discreet.models.dp_sgd import train
from discreet.models.regression import MomentSums, RowLattice
from discreet.models.regression._row_lattice import read_sums
from discreet.models.regression._row_sources import ArrayRows
from discreet.noise.random_source import seeded_rng
from tests.replay import Tape, furthest

X = np.linspace(0, 10, 64).reshape(32, 2)
Y = X @ [1.0, -0.5]


@pytest.mark.parametrize("name", ["PrivateLinearRegression", "PrivateLogit"])
def test_sums_beyond_64_bits_are_no_further_apart(monkeypatch, name):
    """2**40 copies of some row come before the others: one more row is one more row."""
    add_up = ArrayRows.add_up

    def after_many(rows, piece, *, start):
        first = piece(X[:1], Y[:1, None] > 2 if name == "PrivateLogit" else Y[:1, None])
        return add_up(rows, piece, start=start + 2**40 * first.astype(start.dtype))

    monkeypatch.setattr(ArrayRows, "add_up", after_many)
    kind = getattr(discreet.models, name)
    targets = {} if name == "PrivateLogit" else {"target_bounds": (-10, 20)}

    def fitted(many):
        model = kind(rho=1, bounds=(0, 10), rng=seeded_rng(3), **targets)
        y = (Y > 2).astype(int) if name == "PrivateLogit" else Y
        return model.fit(X[:many], y[:many]).coef_

    tape = Tape(seed=1)
    one, calls = tape.run(fitted, 31)
    other, others = tape.run(fitted, 32)
    assert np.isfinite(one).all()
    assert (one == other).all()
    assert furthest(calls, others) <= 1
    assert max(np.abs(call.value.astype(float)).max() for call in calls) > 2.0**61


def test_sums_of_many_rows_stay_exact():
    half = MomentSums(np.full((3, 3), 2**62), 2**33)
    assert (half + half).total.tolist() == [[2**63] * 3] * 3
    read = read_sums(RowLattice.of(features=1), np.full(10, 2**64, dtype=object))
    assert read.total[0, 0] == 2**64


def test_descent_cuts_its_sums_instead_of_refusing_them(monkeypatch):
    monkeypatch.setattr(train, "RANGE", 1 << 31)
    model = discreet.models.PrivateLogisticRegression(
        epsilon=1, delta=1e-6, bounds=(0, 10), classes=(0, 1), steps=2, rng=seeded_rng(3)
    )
    model.fit(X, (Y > 2).astype(int))
    assert np.isfinite(model.coef_).all()
