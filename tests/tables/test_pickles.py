"""What is public can be copied and pickled; what cannot refuses in words."""

import copy
import datetime as dt
import pickle
import shutil

import polars as pl
import pytest

import discreet
from discreet import BudgetExceeded, InvalidArgument, Unsupported, query
from discreet.core.errors import PrivacyError
from discreet.ledger.store import StoreFailure
from discreet.query._release_plan import plan_release
from discreet.tables.release import Release
from tests.compatibility.example import SETTINGS
from tests.compatibility.planned import BUDGETS, QUERIES, told_plan, told_question

WAYS = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
SECRET = 7_777_777
ROWS = pl.DataFrame({"who": ["zelda", "zelda", "bob", "eve"], "age": [20, 30, SECRET, 50]})
COLUMNS = {"age": discreet.integer(0, 120)}


@pytest.fixture
def ledger(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as found:
        yield found


@pytest.fixture
def account(ledger):
    return ledger.account("survey", limit=discreet.pure_dp(10))


def opened(source, account, **more):
    return discreet.table(
        source, privacy_unit="who", max_rows_per_unit=2, columns=COLUMNS, account=account, **more
    )


@pytest.mark.parametrize("name", QUERIES)
def test_queries_and_plans(name):
    """The same words, and everything that is known of the answer before a row is read."""
    asked = QUERIES[name]
    setting = SETTINGS["groups" if name == "units limited" else "people"]
    plan = plan_release([asked], setting=setting, budget=BUDGETS["pure"])
    for way in WAYS.values():
        found = way(asked)
        assert (found.text, found.title, repr(found)) == (asked.text, asked.title, repr(asked))
    bound = plan_release([WAYS["pickle"](asked)], setting=setting, budget=BUDGETS["pure"])
    told = [
        (*map(told_plan, one.passes), *map(told_question, one.questions), one.guarantee)
        for one in (plan, bound, WAYS["pickle"](plan), WAYS["deepcopy"](plan))
    ]
    assert all(one == told[0] for one in told)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "thing",
    [
        discreet.integer(0, 120),
        discreet.real(0, 1, granularity=0.5),
        discreet.category(["a", "b"]),
        discreet.date(dt.date(2026, 1, 1), dt.date(2026, 12, 31)),
        discreet.boolean(),
        discreet.text(),
        discreet.keys(["a"], include_other=True),
        SETTINGS["people"],
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_declarations(way, thing):
    assert WAYS[way](thing) == thing


@pytest.mark.parametrize("way", WAYS)
def test_releases(way, account):
    people = opened(ROWS, account)
    single, grouped = people.mean("age", epsilon=1), people.count(by="age", epsilon=1)
    for one in (single, grouped, people.ranges("age", epsilon=1)):
        assert WAYS[way](one).to_json() == one.to_json()
    assert Release.from_json(WAYS[way](single).to_json()) == single
    merged = grouped.merge_small_groups(below=2)
    assert WAYS[way](merged).rows() == merged.rows()
    for one in (
        people.forecast(query.mean("age"), epsilon=1, expected_rows=4),
        people.plan_ranges("age", epsilon=1),
        people.plan_large_domain_quantiles("age", [0.5], epsilon=1),
    ):
        assert str(WAYS[way](one)) == str(one)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["csv", "parquet", "messy"])
def test_a_table_over_files_charges_the_same_account(way, kind, account, tmp_path):
    path = tmp_path / ("rows.parquet" if kind == "parquet" else "rows.csv")
    if kind == "parquet":
        ROWS.write_parquet(path)
    else:
        lines = "".join(f"{who},{age}\n" for who, age in ROWS.rows())
        path.write_text("who,age\n" + lines + ('a"b,"\n' if kind == "messy" else ""))
    people = opened(path, account)
    found = WAYS[way](people)
    assert (found.spec, found.columns) == (people.spec, people.columns)
    assert abs(found.count(epsilon=5).value - 4) < 5
    assert account.remaining == 5
    with pytest.raises(BudgetExceeded):
        found.count(epsilon=6)
    assert found.account.history == account.history


def test_a_pickle_of_a_table_holds_no_row(account, tmp_path):
    ROWS.write_csv(tmp_path / "rows.csv")
    held = pickle.dumps(opened(tmp_path / "rows.csv", account))
    assert str(SECRET).encode() not in held
    assert b"zelda" not in held


def test_a_pickle_of_a_table_refuses_other_files(account, tmp_path):
    path = tmp_path / "rows.csv"
    ROWS.write_csv(path)
    held = pickle.dumps(opened(path, account))
    path.write_text(path.read_text() + "zoe,5\n")
    with pytest.raises(InvalidArgument, match="changed since it was opened"):
        pickle.loads(held)
    path.unlink()
    with pytest.raises(InvalidArgument, match="are not here"):
        pickle.loads(held)
    assert account.remaining == 10


def test_joined_tables(account, tmp_path):
    ROWS.write_csv(tmp_path / "rows.csv")
    pl.DataFrame({"who": ["zelda", "bob"], "sex": ["f", "m"]}).write_csv(tmp_path / "people.csv")
    other = discreet.table(
        tmp_path / "people.csv",
        privacy_unit="who",
        max_rows_per_unit=1,
        columns={"sex": discreet.category(["f", "m"])},
        account=account,
    )
    both = opened(tmp_path / "rows.csv", account).join_by_unit(other, columns=["sex"])
    found = pickle.loads(pickle.dumps(both))
    assert found.spec == both.spec
    assert len(found.count(by="sex", epsilon=1)) == len(both.count(by="sex", epsilon=1))
    assert account.remaining == 8


@pytest.mark.parametrize("kind", ["frame", "lazy", "relation"])
def test_a_table_in_memory_refuses_to_be_pickled_and_is_its_own_copy(kind, account):
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (who VARCHAR, age INTEGER)")
    sources = {"frame": ROWS, "lazy": ROWS.lazy(), "relation": connection.table("rows")}
    people = opened(sources[kind], account)
    assert copy.copy(people) is copy.deepcopy(people) is people
    with pytest.raises(Unsupported, match="Only a table over files can be pickled") as caught:
        pickle.dumps(people)
    assert str(SECRET) not in str(caught.value)


def test_a_ledger_in_a_file_is_one_ledger(ledger, account, tmp_path):
    assert copy.copy(ledger) is copy.deepcopy([ledger])[0] is ledger
    found = pickle.loads(pickle.dumps(ledger))
    assert repr(found) == repr(ledger)
    found.account("survey").charge(discreet.pure_dp(9), label="elsewhere")
    assert account.remaining == 1
    assert found.verify()
    with pytest.raises(BudgetExceeded):
        account.charge(discreet.pure_dp(2), label="here")


def test_a_ledger_that_was_set_back_is_refused_after_a_pickle(ledger, account, tmp_path):
    """A pickle remembers how far the chains went."""
    table = tmp_path / "rows.csv"
    ROWS.write_csv(table)
    ledger.close()
    shutil.copy(tmp_path / "budget.db", tmp_path / "early.db")
    people = opened(table, account)
    people.count(epsilon=9)
    held = pickle.dumps(people)
    ledger.close()
    shutil.copy(tmp_path / "early.db", tmp_path / "budget.db")
    with pytest.raises(StoreFailure):
        pickle.loads(held).count(epsilon=5)


def test_a_ledger_that_is_gone_is_not_begun_again(account, ledger, tmp_path):
    ROWS.write_csv(tmp_path / "rows.csv")
    held = pickle.dumps((ledger, opened(tmp_path / "rows.csv", account)))
    ledger.close()
    (tmp_path / "budget.db").unlink()
    found, people = pickle.loads(held)
    with pytest.raises(StoreFailure, match="nothing was spent"):
        found.account("survey")
    with pytest.raises(StoreFailure, match="nothing was spent"):
        people.count(epsilon=1)
    assert not (tmp_path / "budget.db").exists()


def test_a_ledger_in_memory_refuses_to_be_pickled(tmp_path):
    ledger = discreet.Ledger()
    assert repr(ledger) == "Ledger(memory, not durable)"
    assert copy.deepcopy(ledger) is ledger
    personal = ledger.personal_budgets(
        "all", limits={"open": discreet.zcdp(1)}, members=["zelda"], privacy_levels=["open"]
    )
    for one in (ledger, personal):
        with pytest.raises(Unsupported, match="would be there twice"):
            pickle.dumps(one)
    ROWS.write_csv(tmp_path / "rows.csv")
    people = opened(tmp_path / "rows.csv", ledger.account("a", limit=discreet.pure_dp(1)))
    found = pickle.loads(pickle.dumps(people))
    assert found.forecast(query.count(), epsilon=1) == people.forecast(query.count(), epsilon=1)
    with pytest.raises(PrivacyError, match="comes from a pickle"):
        found.count(epsilon=1)


def test_personal_budgets_and_their_tables(ledger, tmp_path):
    ROWS.write_csv(tmp_path / "rows.csv")
    personal = ledger.personal_budgets(
        "all", limits={"open": discreet.zcdp(1)}, members=["zelda"], privacy_levels=["open"]
    )
    assert copy.deepcopy(personal) is personal
    view = opened(tmp_path / "rows.csv", None).with_personal_budgets(
        privacy_levels={"open": discreet.zcdp(0.5)}, personal_budgets=personal
    )
    held = pickle.dumps(view)
    assert b"zelda" not in held
    pickle.loads(held).count()
    assert personal.spent().max() == 5 * 10**11


# ── A budget without a ledger ────────────────────────────────────────────────────────────────────


def test_a_budget_opens_an_account_in_memory_that_says_so():
    people = opened(ROWS, None, budget=2)
    assert repr(people.account) == "Account('one table', limit: epsilon 2, in memory, not durable)"
    assert "not durable" in repr(people)
    release = people.count(epsilon=1.5)
    assert not release.receipt.durable
    with pytest.raises(BudgetExceeded):
        people.count(epsilon=1)
    assert people.account.spent.epsilon() == 1.5
    # Another table has a budget of its own.
    assert opened(ROWS, None, budget=discreet.zcdp(0.5)).count(rho=0.5).receipt.sequence == 2


def test_a_budget_fits_the_relation_of_its_table():
    replace_one = discreet.NeighboringRelation.REPLACE_ONE
    people = opened(ROWS, None, budget=1, relation=replace_one)
    assert people.count(epsilon=1).guarantee.relation is replace_one
    with pytest.raises(discreet.RelationMismatch):
        opened(ROWS, None, budget=discreet.pure_dp(1), relation=replace_one)


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), "1", True])
def test_a_budget_is_a_guarantee_or_a_positive_number(wrong):
    with pytest.raises(InvalidArgument):
        opened(ROWS, None, budget=wrong)


def test_a_budget_does_not_replace_an_account(account):
    with pytest.raises(InvalidArgument, match="not both"):
        opened(ROWS, account, budget=1)
