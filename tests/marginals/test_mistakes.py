"""The mistakes that many tables invite, planted one by one: the checks of this folder see each."""

import numpy as np
import pytest

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.data import execute
from discreet.marginals import design
from discreet.marginals import plan as planning
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.counting import count_tables
from discreet.marginals.design import support
from discreet.mechanisms.mechanism import NotCertified
from discreet.tables import _execute
from tests.marginals.test_errors import planned
from tests.marginals.test_release import opened

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def away_from_exact(plan, codes):
    """How far tables are from the counts if nothing is added to what is measured."""
    sizes = [column.size for column in plan.columns]
    counted = count_tables([codes.T], sizes, [support(place) for place in plan._design.places])
    parts = plan._design.parts(plan._exact(counted))
    return max(
        float(
            np.abs(
                plan._design.table(key, parts) - count_tables([codes.T], sizes, [key])[key]
            ).max()
        )
        for key in plan._design.answered
    )


CODES = np.random.default_rng(1).integers(0, 2, (200, 2))


def test_contrasts_that_are_not_centered_are_seen_by_their_estimates(monkeypatch):
    plan = planned((3, 4), [(0, 1)], rho=1)
    assert away_from_exact(plan, CODES) < 1e-9
    monkeypatch.setattr(
        MarginalColumn,
        "contrasts",
        lambda self, table, axis, level: table,
    )
    assert away_from_exact(plan, CODES) > 1


def test_a_part_that_is_not_divided_by_the_cells_it_is_spread_over_is_seen(monkeypatch):
    plan = planned((3, 4), [(0, 1)], rho=1)
    monkeypatch.setattr(
        MarginalColumn,
        "spread",
        lambda self, part, axis, level: np.repeat(part, self.size, axis) if level == 0 else part,
    )
    assert away_from_exact(plan, CODES) > 1


def test_a_release_that_leaves_the_total_without_noise_is_not_certified_under_replace(monkeypatch):
    # A condition, a limit or a row without an owner makes the number of rows private again.
    real = planning.MarginalPlan._noisy

    def total_is_public(self, counted, rng):
        exact = self._exact(counted)
        noisy, private = real(self, counted, rng)
        return (exact[self._design.places.index(())], *noisy[1:]), private

    plan = opened(rows=2, relation=REPLACE).plan_marginals([["site", "sex"]], rho=0.5)
    assert plan._design.places[0] == ()
    monkeypatch.setattr(planning.MarginalPlan, "_noisy", total_is_public)
    with pytest.raises(NotCertified):
        plan.certify()


def test_rows_chosen_anew_for_each_table_contradict_each_other(monkeypatch):
    # One key for the limits of each table: even without noise the tables disagree.
    table = opened(rows=2)
    plan = table.plan_marginals([["site", "sex"], ["sex", "ill"]], epsilon=10**6)
    query = plan._query

    def collected(key):
        values = execute.collect_values(query.program, source=table._source, key=key)
        return count_tables(query.chunks(values), query.sizes, [(0, 1), (1, 2), (1,)])

    one, other = collected(1), collected(2)
    assert np.array_equal(one[0, 1].sum(0), one[1, 2].sum(1))
    assert not np.array_equal(one[0, 1].sum(0), other[1, 2].sum(1))


def test_one_key_is_not_enough_if_each_table_orders_rows_by_its_own_group(monkeypatch):
    # Separate questions with the same key keep rows in the order of their own groups.
    monkeypatch.setattr(_execute, "fresh_key", lambda rng: 12345)
    table = opened(rows=2)
    agree = []
    for where in (discreet.col("age") >= 0, discreet.col("age") >= 20, discreet.col("age") >= 40):
        both = [discreet.query.count(by=by, where=where) for by in ("sex", ["site", "sex"])]
        alone, crossed = table.release(both, epsilon=10**5)
        agree.append(np.array_equal(np.reshape(crossed.value, (-1, 2)).sum(0), alone.value))
        whole = table.marginals([["site", "sex"]], where=where, epsilon=10**5)
        cells = np.rint(whole.table(["site", "sex"]).cells)
        assert np.array_equal(cells.sum(0), np.rint(whole.table(["sex"]).cells))
    assert not all(agree)


def test_precisions_that_forget_how_many_cells_are_summed_miss_the_least_squares():
    # Reconciled variances of (2, 3, 4) with tables of known noise, as published.
    sizes, values = (2, 3, 4), {(): 7, (0,): 2, (0, 1): 3, (1, 2): 5}

    def variance_of_first(summed):
        known = {}
        for table, noise in values.items():
            for part in design.subsets(table):
                rest = np.prod([sizes[i] for i in table if i not in part]) if summed else 1
                known[part] = known.get(part, 0) + 1 / noise / rest
        return 1 / known[()] / sizes[0] ** 2 + (1 - 1 / sizes[0]) / known[0,]

    assert variance_of_first(summed=True) == pytest.approx(1.355724, rel=1e-6)
    assert variance_of_first(summed=False) != pytest.approx(1.355724, rel=0.05)


def test_noise_is_not_drawn_again_from_anything_that_is_stored():
    plan = opened().plan_marginals([["sex", "site"]], rho=0.1)
    first, second = (opened().marginals(plan.tables, rho=0.1) for _ in range(2))
    assert any(
        not np.array_equal(a, b) for a, b in zip(first.measured, second.measured, strict=True)
    )
    assert set(dir(first)) & {"seed", "rng", "state"} == set()
