"""A question's own limits: less noise where a unit is in few groups, and the promise kept."""

import itertools

import polars as pl
import pytest

import discreet
from discreet import query as queries
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect
from discreet.data.program import ContributionLimits
from discreet.data.source import open_source
from discreet.query._release_plan import TableSpec, plan_release
from discreet.query.budget import budget

SETTING = TableSpec(
    schema={"k": discreet.category(["a", "b", "c"], include_other=False)},
    privacy_unit="who",
    limits=ContributionLimits(max_rows_per_unit=3),
)


def planned(*several, relation=NeighboringRelation.ADD_REMOVE):
    setting = TableSpec(
        schema=SETTING.schema, privacy_unit="who", limits=SETTING.limits, relation=relation
    )
    return plan_release(several, setting=setting, budget=budget(epsilon=1))


def move(query, **more):
    return planned(query, **more).questions[0].measurements[0].move


def test_own_limits_take_the_place_of_the_tables():
    assert move(queries.count_units(by="k")).l1 == 3
    assert move(queries.count_units(by="k").limit_contributions(max_groups_per_unit=1)).l1 == 1
    assert move(queries.count(by="k").limit_contributions(max_rows_per_unit=1)).l1 == 1
    assert (
        move(queries.count(by="k").limit_contributions(max_rows_per_unit_per_group=1)).l2_squared
        == 3
    )
    twice = (
        queries.count(by="k")
        .limit_contributions(max_groups_per_unit=2)
        .limit_contributions(max_rows_per_unit_per_group=1)
    )
    assert move(twice).l1 == 2


def test_questions_with_other_limits_are_read_in_passes_of_their_own():
    one, own = (
        queries.count(by="k"),
        queries.count(by="k").limit_contributions(max_groups_per_unit=1),
    )
    both = planned(one, own)
    assert [plan.limits.max_groups_per_unit for plan in both.passes] == [None, 1]
    assert (
        len(
            planned(
                own, queries.count_units(by="k").limit_contributions(max_groups_per_unit=1)
            ).passes
        )
        == 1
    )
    assert len(both.measurements) == 2


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize(
    "own",
    [{"max_groups_per_unit": 1}, {"max_groups_per_unit": 2, "max_rows_per_unit_per_group": 1}],
)
def test_no_neighbor_moves_further_than_the_own_limits_say(relation, own):
    query = queries.count(by="k").limit_contributions(**own)
    stated = move(query, relation=relation)
    plan = planned(query, relation=relation).passes[0]
    histories = [
        rows for n in range(4) for rows in itertools.combinations_with_replacement("abc", n)
    ]

    def counts(first):
        rows = [(1, k) for k in first] + [(2, "a"), (2, "c")]
        frame = pl.DataFrame(rows, schema=["who", "k"], orient="row")
        return next(iter(collect(plan, source=open_source(frame), key=5).columns.values()))

    found = {rows: counts(rows) for rows in histories}
    others = histories if relation is NeighboringRelation.REPLACE_ONE else [()]
    l1 = max(abs(found[x] - found[y]).sum() for x in histories for y in others)
    squares = max(((found[x] - found[y]) ** 2).sum() for x in histories for y in others)
    assert l1 == stated.l1
    assert squares <= stated.l2_squared


def test_a_release_says_its_own_limits(tmp_path):
    frame = pl.DataFrame({"who": [1, 1, 2], "k": ["a", "b", "a"]})
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        table = discreet.table(
            frame,
            privacy_unit="who",
            max_rows_per_unit=3,
            columns=dict(SETTING.schema),
            account=ledger.account("a", limit=discreet.pure_dp(10)),
        )
        own, plain = table.release(
            [
                queries.count_units(by="k").limit_contributions(max_groups_per_unit=1),
                queries.count_units(by="k"),
            ],
            epsilon=5,
        )
    assert "at most 1 group is used" in own.privacy_statement
    assert "groups" not in plain.privacy_statement
