"""Theil-Sen: matchings of neighboring data, scores, guarantee, robustness."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.core import events
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.models.regression._row_sources import ArrayRows
from discreet.models.regression._task import RegressionTask
from discreet.models.regression.auto import AutoLinearRegression
from discreet.models.regression.theil_sen import (
    TheilSen,
    match_pairs,
    predict_at,
    quartile_scores,
    shuffle_order,
)
from discreet.noise.random_source import SeededRandomSource, seeded_rng
from discreet.query.budget import budget

ADD = NeighboringRelation.ADD_REMOVE


def task(relation=ADD, features=1):
    return RegressionTask(
        lower=np.zeros(features),
        upper=np.full(features, 10.0),
        target=(0.0, 10.0),
        rows=100.0,
        mu=0.2,
        relation=relation,
    )


def matchings(rows):
    """All matchings of the rows that leave at most one out, as sets of pairs."""
    if len(rows) < 2:
        return [frozenset()]
    found = []
    if len(rows) % 2:
        for left in rows:
            found += matchings(tuple(row for row in rows if row != left))
        return found
    one, *others = rows
    for other in others:
        rest = tuple(row for row in others if row != other)
        found += [inner | {(one, other)} for inner in matchings(rest)]
    return found


@pytest.mark.parametrize("many", [3, 4, 5, 6])
def test_matchings_of_neighbors_can_be_drawn_together_and_differ_in_one_pair(many):
    # A new row is matched with somebody, or left out: the rule that removes it must turn uniform
    # matchings of the larger data into uniform matchings of the smaller.
    new = many
    larger = Counter(matchings(tuple(range(many + 1))))
    made = Counter()
    for matching, times in larger.items():
        partner = next((sum(pair) - new for pair in matching if new in pair), None)
        kept = {pair for pair in matching if new not in pair}
        matched_rows = {row for pair in kept for row in pair}
        alone = [row for row in range(many) if row not in matched_rows]
        if partner is not None and len(alone) == 2:
            kept |= {tuple(sorted(alone))}
        made[frozenset(kept)] += times
        assert len(kept - matching) <= 1
        assert len(matching - kept) <= 1
    smaller = Counter(matchings(tuple(range(many))))
    assert made.keys() == smaller.keys()
    assert len({made[one] / smaller[one] for one in smaller}) == 1


def test_no_row_moves_a_quartile_score_further_than_is_claimed():
    furthest = {"added": 0, "replaced": 0}
    for level in (1, 3):
        for data in itertools.product(range(3), repeat=4):
            counts = np.array(data)
            for cell, other in itertools.product(range(4), repeat=2):
                more = counts + np.eye(4, dtype=int)[cell]
                swapped = counts + np.eye(4, dtype=int)[other]
                here = quartile_scores(more, level)
                added = np.abs(here - quartile_scores(counts, level)).max()
                replaced = np.abs(here - quartile_scores(swapped, level)).max()
                furthest["added"] = max(furthest["added"], int(added))
                furthest["replaced"] = max(furthest["replaced"], int(replaced))
    assert furthest == {"added": 3, "replaced": 4}


def test_every_row_is_in_one_pair_of_each_matching():
    x = np.arange(9.0)[:, None]
    pairs = match_pairs(ArrayRows(x, x), 5, seeded_rng(1))
    assert pairs.shape == (5 * 4, 4)
    for one in pairs.reshape(5, 4, 4):
        assert len(set(one[:, [0, 2]].ravel())) == 8


def test_pairs_with_equal_features_say_nothing_and_wild_ones_are_clipped():
    pairs = np.array([[1.0, 2, 1, 5], [1, 2, 3, 4], [1, 0, 1 + 1e-300, 1], [-1e308, 9, 1e308, 1]])
    found = predict_at(pairs, 5.0, task())[:, 0]
    assert found[0] == pytest.approx(6.0)
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 10)).all()


@pytest.mark.parametrize("relation", [ADD, NeighboringRelation.REPLACE_ONE])
def test_it_costs_what_was_asked(relation):
    pure = TheilSen().plan(task(relation), budget(epsilon=1, delta=1e-6))
    assert pure.guarantee.epsilon() == 1.0
    assert sum(one.epsilon for one in pure.mechanisms) == 1
    # Mixing over matchings does not keep a bounded range: only pure parts are stated.
    assert all(isinstance(one.guarantee.event, events.PureEvent) for one in pure.released)
    rho = Fraction(1, 50)
    concentrated = TheilSen().plan(task(relation), budget(rho=rho))
    assert sum(one.epsilon**2 / 8 for one in concentrated.mechanisms) <= rho


def test_outliers_hardly_move_it():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, (4000, 1))
    y = 2 + 0.5 * x[:, 0] + rng.normal(0, 0.2, 4000)
    y[:200] = 10.0
    model = AutoLinearRegression(
        epsilon=1,
        delta=1e-6,
        bounds=[(0, 10)],
        target_bounds=(0, 10),
        expected_rows=4000,
        method="theil_sen",
        rng=seeded_rng(3),
    ).fit(x, y)
    assert model.coef_[0] == pytest.approx(0.5, abs=0.05)
    assert model.intercept_ == pytest.approx(2.1, abs=0.2)
    assert model.guarantee_.epsilon() == 1.0


def test_it_takes_one_feature():
    with pytest.raises(InvalidArgument, match="one feature"):
        TheilSen().plan(task(features=2), budget(epsilon=1, delta=1e-6))


class Scripted:
    """Bits that say what they are told."""

    private, width = False, 64

    def __init__(self, *draws):
        self.draws = list(draws)

    def words(self, many):
        return np.array(self.draws.pop(0)[:many], dtype=np.uint64)


def test_ties_are_drawn_again():
    """A tie would be broken by the places of the rows, which is not uniform."""
    bits = Scripted([7, 3, 7, 1], [4, 2, 2**64 - 1, 3])
    assert shuffle_order(4, bits).tolist() == [1, 3, 0, 2]
    assert not bits.draws
    assert shuffle_order(1, seeded_rng(1)).tolist() == [0]
    assert shuffle_order(0, seeded_rng(1)).tolist() == []
    with pytest.raises(OutOfDomain, match="too many rows"):
        shuffle_order(17, SeededRandomSource(1, width=8))
