"""Personal budgets of a crowd: who takes part, what is charged, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import query
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    RelationMismatch,
    Unsupported,
)
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from tests.tables.privacy_levels import COLUMNS, LEVELS, duck, frame, opened

# ── crowds ───────────────────────────────────────────────────────────────────


def panel(ledger, *, people=60):
    limits = {"strict": discreet.zcdp(0.05), "open": discreet.zcdp(2), "never": discreet.zcdp(1)}
    names = np.array(["strict", "open", "never"])[np.arange(people) % 3]
    return ledger.personal_budgets(
        "panel", limits=limits, members=np.arange(people), privacy_levels=names
    )


@pytest.mark.parametrize("textual", [False, True], ids=["numbers", "texts"])
def test_a_crowd_leaves_out_who_cannot_pay(ledger, textual):
    crowd = panel(ledger)
    rows = frame(tuple((i, "open", ((3, "a"), (3, "b"))) for i in range(90)))  # 30 are strangers
    rows = rows.with_columns(pl.col("who").cast(pl.String)) if textual else rows
    table = discreet.table(duck(rows), columns=COLUMNS, privacy_unit="who", max_rows_per_unit=2)
    menu = {"strict": Fraction(3, 10), "open": 300}
    view = table.with_personal_budgets(personal_budgets=crowd, privacy_levels=menu)
    limits = np.array([float(crowd.limits[x].event.rho) for x in crowd.levels]) * 1e12

    first = view.count(max_privacy_level="open")  # the open pay too much to take part
    assert abs(first.value - 40 * first.weights["strict"]) < 1
    assert first.release.receipt.account == "crowd panel"
    assert first.release.title == "count, of members who can pay, weighted by level"
    spent = crowd.spent()
    assert (spent <= limits).all()
    assert (spent[crowd.levels == "never"] == 0).all()
    assert (spent[crowd.levels == "strict"] > 0).all()
    assert (spent[crowd.levels == "open"] == 0).all()
    second = view.count(max_privacy_level="open")  # now the strict have not enough either
    assert abs(second.value) < 1
    assert (crowd.spent() == spent).all()


def test_a_crowd_and_an_account_are_both_charged(ledger):
    crowd = panel(ledger)
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    found = table.with_personal_budgets(
        personal_budgets=crowd, privacy_levels={"strict": 0.1, "open": 0.5}
    ).count(max_privacy_level="open")
    assert table.account.spent.epsilon() == pytest.approx(0.5)
    assert found.release.receipt.account == table.account.name
    assert crowd.spent().any()
    poor = replace(table, account=ledger.account("poor", limit=discreet.pure_dp(0.1)))
    spent = crowd.spent()
    with pytest.raises(BudgetExceeded):
        poor.with_personal_budgets(
            personal_budgets=crowd, privacy_levels={"strict": 0.1, "open": 0.5}
        ).count(max_privacy_level="open")
    assert (crowd.spent() == spent).all()


def test_no_sequence_of_questions_passes_a_limit(ledger):
    """Menus and caps that follow what was released before."""
    crowd = panel(ledger)
    rows = frame(tuple((i, "open", ((3, "a"), (3, "b"))) for i in range(60)))
    table = discreet.table(rows, columns=COLUMNS, privacy_unit="who", max_rows_per_unit=2)
    limits = np.array([float(crowd.limits[x].event.rho) for x in crowd.levels]) * 1e12
    last, rng = 0.0, np.random.default_rng(4)
    for _ in range(12):
        menu = {
            x: Fraction(int(rng.integers(1, 150)), 100) * (2 if last > 40 else 1)
            for x in crowd.limits
        }
        last = (
            table.with_personal_budgets(personal_budgets=crowd, privacy_levels=menu)
            .count(max_privacy_level=str(rng.choice(list(menu))))
            .value
        )
        assert (crowd.spent() <= limits).all()
    assert crowd.spent().any()


@pytest.mark.parametrize(
    "names", [("1", "01"), ("1", " 1"), ("1", "1_0"), ("1", "x"), ("1", "9" * 30)]
)
def test_members_who_are_not_one_number_each_are_refused_before_anybody_pays(ledger, names):
    """Person 1 is strict, and would count as open: two budgets for one number."""
    limits = {"strict": discreet.zcdp(Fraction(1, 10**6)), "open": discreet.zcdp(1000)}
    crowd = ledger.personal_budgets(
        "odd", limits=limits, members=names, privacy_levels=["strict", "open"]
    )
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    with pytest.raises(InvalidArgument, match="embers"):
        table.with_personal_budgets(
            personal_budgets=crowd, privacy_levels={"strict": 0.1, "open": 1}
        ).by_level(query.count())
    assert not crowd.spent().any()


@pytest.mark.parametrize("odd", ["", "a\0b"])
def test_members_that_are_no_text_of_a_unit_are_refused(ledger, odd):
    crowd = ledger.personal_budgets(
        "odd", limits={"open": discreet.zcdp(1)}, members=["a", odd], privacy_levels=["open"] * 2
    )
    rows = frame(((1, "open", ((3, "a"),)),)).with_columns(pl.col("who").cast(pl.String))
    table = discreet.table(rows, columns=COLUMNS, privacy_unit="who", max_rows_per_unit=2)
    with pytest.raises(InvalidArgument, match="NUL"):
        table.with_personal_budgets(personal_budgets=crowd, privacy_levels={"open": 1})


def test_seeded_bits_are_refused(ledger):
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    crowd = panel(ledger)
    for one in (table, replace(table, account=None)):
        view = one.with_personal_budgets(personal_budgets=crowd, privacy_levels={"strict": 0.1})
        with pytest.raises(NotCertified):
            view._run(view._planned([query.count()], "strict"), label=None, rng=seeded_rng(1))
    assert not crowd.spent().any()


# ── what is refused ──────────────────────────────────────────────────────────


def test_what_is_refused(ledger):
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    with pytest.raises(InvalidArgument, match="one of them"):
        table.with_personal_budgets(privacy_levels=LEVELS)
    with pytest.raises(InvalidArgument, match="category"):
        table.with_personal_budgets(budget="x", privacy_levels=LEVELS)
    with pytest.raises(InvalidArgument, match="levels must map"):
        table.with_personal_budgets(budget="consent", privacy_levels={})
    with pytest.raises(InvalidArgument, match="positive"):
        table.with_personal_budgets(budget="consent", privacy_levels={"open": 0})
    with pytest.raises(InvalidArgument, match="levels of 'consent'"):
        table.with_personal_budgets(budget="consent", privacy_levels={"lax": 1})
    for declared in (
        discreet.category(["open", "strict"], include_other=False, missing="open"),
        discreet.category(["open", "strict"], missing="strict"),
    ):
        schema = {**table.spec.schema, "consent": declared}
        given = replace(table, spec=replace(table.spec, schema=schema))
        with pytest.raises(InvalidArgument, match="left out"):
            given.with_personal_budgets(budget="consent", privacy_levels=LEVELS)
    with pytest.raises(InvalidArgument, match="all be"):
        table.with_personal_budgets(
            budget="consent", privacy_levels={"strict": 1, "open": discreet.zcdp(1)}
        )
    with pytest.raises(InvalidArgument, match="pure, zcdp or approx"):
        table.with_personal_budgets(budget="consent", privacy_levels={"open": discreet.gdp(1)})
    limit = discreet.pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)
    with pytest.raises(RelationMismatch):
        table.with_personal_budgets(budget="consent", privacy_levels={"open": limit})
    view = table.with_personal_budgets(budget="consent", privacy_levels=LEVELS)
    with pytest.raises(InvalidArgument, match="no level 'lax'"):
        view.count(max_privacy_level="lax")
    with pytest.raises(InvalidArgument, match="rows of each level"):
        view.mean("x", expected_rows={"open": 3})
    with pytest.raises(Unsupported, match="by_level"):
        view.release(query.median("x"), max_privacy_level="open")
    with pytest.raises(InvalidArgument, match="account must be given"):
        replace(table, account=None).with_personal_budgets(
            budget="consent", privacy_levels=LEVELS
        ).count()
    crowd = panel(ledger)
    with pytest.raises(InvalidArgument, match="levels of personal_budgets"):
        table.with_personal_budgets(personal_budgets=crowd, privacy_levels={"lax": 1})
    with pytest.raises(InvalidArgument, match="unit"):
        opened((), ledger, privacy_unit=None).with_personal_budgets(
            personal_budgets=crowd, privacy_levels=LEVELS
        )
    assert view.release(query.median("x")).value is not None


def test_a_limit_with_a_delta_becomes_the_rho_it_allows(ledger):
    table = replace(
        opened(((1, "open", ((3, "a"),)),), ledger),
        account=ledger.account("rho", limit=discreet.zcdp(10)),
    )
    menu = {"strict": discreet.approx_dp(0.5, 1e-6), "open": discreet.approx_dp(2, 1e-6)}
    found = table.with_personal_budgets(budget="consent", privacy_levels=menu).mean(
        "x", max_privacy_level="open"
    )
    assert 0.4 < found.guarantee["strict"].epsilon(1e-6) <= 0.5
    assert 1.6 < found.guarantee["open"].epsilon(1e-6) <= 2
    assert "epsilon:" not in str(found)
