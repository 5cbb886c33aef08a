"""What a user can say to a table stands in its signature, and each word of it in its help."""

import inspect
import re

import pytest

import discreet
from discreet import Table
from discreet import query as queries
from discreet.client.remote_table import RemoteTable
from discreet.tables.personalized_table import PersonalizedTable

SPENDING = [
    "count",
    "count_units",
    "sum",
    "mean",
    "variance",
    "covariance",
    "std",
    "correlation",
    "ratio",
    "weighted_mean",
    "share",
    "compare",
    "count_distinct",
    "minimum",
    "maximum",
    "median",
    "quantiles",
    "histogram",
    "ranges",
    "large_domain_quantiles",
    "discover_keys",
    "suggest_bounds",
    "suggest_contribution_limits",
    "release",
]


def verbs(kind):
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"]


VERBS = verbs(Table)
QUERIES = [
    "count",
    "count_units",
    "sum",
    "mean",
    "variance",
    "covariance",
    "std",
    "correlation",
    "ratio",
    "weighted_mean",
    "share",
    "compare",
    "count_distinct",
    "minimum",
    "maximum",
    "median",
    "quantiles",
    "histogram",
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in (Table, RemoteTable, PersonalizedTable) for name in verbs(kind)],
)
def test_no_argument_hides_behind_stars(kind, name):
    given = inspect.signature(getattr(kind, name)).parameters.values()
    assert not [one.name for one in given if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


@pytest.mark.parametrize("name", SPENDING)
def test_what_spends_shows_its_budget(name):
    assert {"epsilon", "delta", "rho"} <= set(inspect.signature(getattr(Table, name)).parameters)


@pytest.mark.parametrize("name", VERBS)
def test_every_argument_is_described_in_order(name):
    method = getattr(Table, name)
    described = re.findall(r"^    (\w+): ", inspect.getdoc(method).split("Args:")[1], re.MULTILINE)
    wanted = [one for one in inspect.signature(method).parameters if one != "self"]
    assert described[: len(wanted)] == wanted


def test_a_misspelled_argument_is_named_and_nothing_is_spent(tmp_path):
    account = discreet.Ledger(f"sqlite:///{tmp_path / 'budget.db'}").account(
        "one", limit=discreet.pure_dp(1)
    )
    rows = pytest.importorskip("polars").DataFrame({"age": [20, 30]})
    people = discreet.table(rows, columns={"age": discreet.integer(0, 120)}, account=account)
    for call in (people.count, people.suggest_contribution_limits):
        with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
            call(epsilom=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'eps'"):
        people.ranges("age", eps=1)
    assert account.spent.epsilon() == 0


def test_bounds_may_stand_first():
    assert discreet.integer(0, 120) == discreet.integer(lower=0, upper=120)
    assert discreet.real(0, 1, granularity=0.5) == discreet.real(lower=0, upper=1, granularity=0.5)


def test_a_remote_table_has_the_queries_of_a_local_one_and_nothing_that_refuses():
    assert not issubclass(RemoteTable, Table)
    assert {*QUERIES, "ranges", "release", "forecast", "budget_for"} <= set(verbs(RemoteTable))
    assert set(verbs(RemoteTable)) <= set(VERBS)
    for name in [*QUERIES, "ranges"]:
        assert getattr(RemoteTable, name) is getattr(Table, name)
    for name in ("discover_keys", "join", "suggest_bounds", "with_personal_budgets"):
        assert not hasattr(RemoteTable, name)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_means_the_same_wherever_it_is_asked(name):
    """The arguments of a query, in order, with defaults and types, as `discreet.query` has them."""
    plain = _arguments(getattr(queries, name))
    plain.pop("name")
    for kind in (Table, RemoteTable, PersonalizedTable):
        if hasattr(kind, name):
            found = _arguments(getattr(kind, name))
            if kind is PersonalizedTable:  # all rows count by weights, and are no sample
                plain.pop("sampling", None)
                plain.pop("of", None)
            assert list(found.items())[: len(plain)] == list(plain.items())
            assert "label" in found


def _arguments(function):
    return {
        name: (one.kind, one.default, str(one.annotation).replace("QuantileMethod", "Method"))
        for name, one in inspect.signature(function).parameters.items()
        if name != "self"
    }


def test_what_a_table_declares_can_be_looked_up():
    declared = {"age": discreet.integer(0, 120), "well": discreet.boolean()}
    rows = pytest.importorskip("polars").DataFrame({"age": [20], "well": [True], "who": ["a"]})
    people = discreet.table(rows, privacy_unit="who", max_rows_per_unit=1, columns=declared)
    assert people.columns == ("age", "well")
    assert people.schema == declared
    with pytest.raises(TypeError):
        people.schema["who"] = discreet.text()
    remote = RemoteTable(name="people", spec=people.spec, connection=None)
    assert (remote.columns, remote.schema) == (people.columns, people.schema)
