"""A notebook against a server: the same verbs, the same kinds of answers, one ledger."""

import datetime as dt

import pytest

import discreet
from discreet import BudgetExceeded, InvalidArgument, Release, col, keys
from discreet import query as queries
from discreet.client.connection import ServerRefused
from discreet.tables.range_release import ChargedGridRelease, ChargedRangeRelease
from tests.server.running import Running, write_config, write_people

ASKED = [
    ("count", (), {}),
    ("count", (), {"by": "place"}),
    ("count", (), {"where": (col("age") >= 65) & (col("place") == "north")}),
    ("count", (), {"by": {"month": col("day").month()}}),
    ("count", (), {"by": "place", "keys": keys(["north"], include_other=True)}),
    ("count_units", (), {"where": col("day") < dt.date(2026, 6, 1)}),
    ("sum", ("pay",), {}),
    ("mean", (col("pay") / 4,), {"by": "place"}),
    ("variance", ("age",), {}),
    ("covariance", ("age", "pay"), {}),
    ("correlation", ("age", "pay"), {}),
    ("compare", ("pay",), {"by": "place", "to": "north"}),
    ("count_distinct", ("place",), {"at_least": 5}),
    ("median", ("age",), {}),
    ("quantiles", ("age", [0.25, 0.75]), {"method": "tree"}),
    ("histogram", ("age",), {"edges": [18, 65]}),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    write_people(folder / "people.csv", rows=300)
    found = Running(write_config(folder))
    try:
        found.fork()
        yield found
    finally:
        found.kill()


@pytest.fixture(scope="module")
def people(running):
    return running.connect(running.token("ada"))


@pytest.fixture(scope="module")
def local(running):
    """The same file, opened here, with an account of its own."""
    with discreet.Ledger(f"sqlite:///{running.folder / 'local.db'}") as ledger:
        yield discreet.table(
            str(running.folder / "people.csv"),
            columns={
                "age": discreet.integer(lower=0, upper=120),
                "place": discreet.category(["north", "south"], include_other=False),
                "pay": discreet.real(lower=0, upper=8192, granularity=0.25),
                "day": discreet.date(lower=dt.date(2026, 1, 1), upper=dt.date(2026, 12, 31)),
            },
            privacy_unit="who",
            max_rows_per_unit=2,
            account=ledger.account("local", limit=discreet.pure_dp(1000)),
        )


@pytest.mark.parametrize(("verb", "given", "more"), ASKED)
def test_the_verbs_of_a_table(people, local, verb, given, more):
    """The same question, noise and shape, from a file and from a server."""
    before = people.remaining
    far, near = (getattr(one, verb)(*given, epsilon=0.5, **more) for one in (people, local))
    assert isinstance(far, Release)
    for name in ("title", "query_text", "mechanism", "privacy_statement", "keys", "key_columns"):
        assert getattr(far, name) == getattr(near, name)
    assert far.guarantee == near.guarantee
    assert far.receipt.account == "people/ada"
    assert people.remaining == pytest.approx(before - 0.5)


def test_what_is_declared_is_the_same(people, local):
    assert people.spec == local.spec
    query = queries.mean("pay", by="place")
    far, near = (one.forecast(query, epsilon=1, expected_rows=500) for one in (people, local))
    assert far == near


def test_several_questions_share_a_budget(people, local):
    several = [queries.count(), queries.mean("pay", by="place"), queries.count_units(name="Heads")]
    amount = {"epsilon": 1, "weights": [1, 2, 3]}
    far, near = (one.release(several, **amount) for one in (people, local))
    assert [one.title for one in far] == [one.title for one in near]
    assert [one.mechanism for one in far] == [one.mechanism for one in near]
    assert len({one.receipt.sequence for one in far}) == 1


def test_ranges_and_rectangles(people):
    found = people.ranges("age", epsilon=1, max_rows_per_unit=1)
    assert isinstance(found, ChargedRangeRelease)
    assert found.answer_interval(20, 30)[0] <= found.answer_interval(20, 30)[1]
    grid = people.ranges(["age", "place"], bins={"age": 4}, epsilon=1)
    assert isinstance(grid, ChargedGridRelease)
    assert grid.receipt.account == "people/ada"


def test_the_answers_are_about_the_data(people):
    """A large epsilon: the truth, almost."""
    assert abs(people.count(epsilon=20).value - 300) <= 3
    amount = people.budget_for(queries.count(), within=2)
    assert abs(people.release([queries.count()], **amount)[0].value - 300) <= 60


def test_one_request_id_is_one_answer(running, people):
    before = len(running.charges())
    first, second = (
        people.release([queries.count()], epsilon=0.5, request_id="x") for _ in range(2)
    )
    assert first[0].to_json() == second[0].to_json()
    assert len(running.charges()) == before + 1
    with pytest.raises(ServerRefused, match="another question"):
        people.release([queries.count()], epsilon=0.25, request_id="x")


def test_refusals_have_their_names(running, people):
    with pytest.raises(BudgetExceeded):
        people.count(epsilon=500)
    with pytest.raises(InvalidArgument):
        people.ranges("pay", epsilon=1)
    with pytest.raises(ServerRefused, match="401"):
        running.connect("dsc_wrong")
    with pytest.raises(ServerRefused, match="403"):
        running.connect(running.token("vera", "auditor"))
    with pytest.raises(InvalidArgument, match="table must be one of people"):
        discreet.connect(running.url, running.token("ada"), table="nothing")
