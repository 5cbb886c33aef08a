"""What newcomers get wrong: refused by name, with the remedy, before anything is read or spent."""

import datetime as dt
import io
import random
import subprocess
import sys
from decimal import Decimal
from types import ModuleType

import numpy as np
import pytest

import discreet
from discreet import (
    NeighboringRelation,
    audit,
    blackbox,
    col,
    disclosure,
    local,
    plan_ranges,
    query,
    ranges,
)
from discreet.tables._execute import execute

COLUMNS = {
    "age": discreet.integer(lower=0, upper=120),
    "sex": discreet.category(["f", "m"], include_other=False),
    "income": discreet.real(lower=0, upper=100_000, granularity=0.25),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    drawn = random.Random(7)
    rows = [
        f"{i // 2},{drawn.randint(0, 99)},{drawn.choice('fm')},{drawn.randint(0, 9)}"
        for i in range(60)
    ]
    path = tmp_path_factory.mktemp("data") / "people.csv"
    path.write_text("\n".join(["person,age,sex,income", *rows]), encoding="utf-8")
    return path


@pytest.fixture
def account(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        yield ledger.account("survey", limit=discreet.approx_dp(3, 1e-6))


def refused(call, words, account=None):
    """The package's own error, and an account with no entry but its opening."""
    with pytest.raises(discreet.PrivacyError) as caught:
        call()
    assert words in str(caught.value)
    assert account is None or len(account.history) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columns": None}, "columns must map names to declarations"),
        ({"columns": ["age"]}, "columns must map names to declarations"),
        ({"columns": {1: COLUMNS["age"]}}, "columns must have names of text, got int"),
        ({"columns": {"age": int}}, "columns['age'] must be declared by integer, real"),
        ({"privacy_unit": 3}, "expressions, such as ['person', discreet.col('month')]; got int"),
        (
            {"privacy_unit": ["person", 3]},
            "privacy_unit must be one column's name, or a list",
        ),
        ({"max_rows_per_unit": None}, "max_rows_per_unit must be given"),
        ({"privacy_unit": None}, "unit must name the column that says whose a row is"),
        ({"max_rows_per_unit": "2"}, "max_rows_per_unit must be a whole number, got str"),
        ({"account": "survey"}, "account must come from a ledger"),
        ({"account": discreet.pure_dp(1)}, "account must come from a ledger"),
        ({"relation": "add"}, "relation must be ADD_REMOVE or REPLACE_ONE, got 'add'"),
        (
            {"relation": NeighboringRelation.REPLACE_ONE},
            "its account under NeighboringRelation.ADD_REMOVE",
        ),
        ({"delimiter": None}, "delimiter must be one character"),
        ({"engine": "pandas"}, "engine must be 'spark' or left out"),
    ],
)
def test_a_table_that_cannot_be_opened(file, account, given, words):
    usual = {
        "columns": COLUMNS,
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "account": account,
    }
    refused(lambda: discreet.table(file, **{**usual, **given}).count(epsilon=1), words, account)


@pytest.mark.parametrize("levels", [{"a", "b"}, frozenset({1, 2})])
def test_levels_without_an_order(levels):
    refused(lambda: discreet.category(levels), "categories must be a list: a set has another order")


@pytest.mark.parametrize("address", ["mysql://ann:secret@host/db", "https://ann:secret@host/a.csv"])
def test_an_address_that_is_not_read_is_not_quoted(account, address):
    with pytest.raises(discreet.InvalidArgument, match="fetch what stands elsewhere") as caught:
        discreet.table(address, columns=COLUMNS, account=account)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("people.xlsx", "PK", "must be a CSV, Parquet or Arrow file"),
        ("people.parquet", "no parquet", "reading the header failed"),
        ("empty.csv", "", "the first line of a CSV must hold different column names"),
        (
            "other.csv",
            "person;age\n1;40",
            "'person'] are not in the source: check names and header",
        ),
    ],
)
def test_a_file_that_is_something_else(tmp_path, account, name, text, words):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    refused(
        lambda: discreet.table(
            path, columns=COLUMNS, privacy_unit="person", max_rows_per_unit=2, account=account
        ).count(epsilon=0.1),
        words,
        account,
    )


@pytest.mark.parametrize(
    ("ask_it", "words"),
    [
        (lambda t: t.count(), "Give epsilon, or epsilon and delta, or rho"),
        (lambda t: t.count(epsilon="1"), "epsilon must be a number, got str"),
        (lambda t: t.count(epsilon=0), "epsilon must be positive, got 0"),
        (lambda t: t.count(epsilon=float("nan")), "epsilon must be finite, got nan"),
        (lambda t: t.count(epsilon=np.array([1, 2])), "epsilon must be a number, got ndarray"),
        (lambda t: t.count(epsilon=1, delta=2), "delta must lie in (0, 1), got 2"),
        (lambda t: t.mean("incme", epsilon=1), "column 'incme' is not declared; declared: ['age'"),
        (lambda t: t.mean("sex", epsilon=1), "mean takes a number or a boolean"),
        (lambda t: t.count(by=3, epsilon=1), "by must be a list, got int"),
        (lambda t: t.count(where="age > 3", epsilon=1), "where must be a condition such as"),
        (lambda t: t.count(where=col(3) > 1, epsilon=1), "name must be a column's name, got int"),
        (lambda t: t.count(where=col("sex") == "x", epsilon=1), "value 'x' is none that"),
        (lambda t: t.quantiles("age", 0.5, epsilon=1), "q must be a list, got float"),
        (lambda t: t.quantiles("age", [50], epsilon=1), "levels must lie in (0, 1), got 50"),
        (lambda t: t.histogram("age", edges=10, epsilon=1), "edges must be a list, got int"),
        (lambda t: t.release(query.count(), epsilon=1), "queries must be a list, got Query"),
        (lambda t: t.release("count", epsilon=1), "queries must be a list, got str"),
        (lambda t: t.release([query.count()], epsilon=1, weights=3), "weights must be a list"),
        (lambda t: t.release([query.count()], epsilon=1, label=3), "label must be text, got int"),
        (lambda t: t.release([query.count(name=3)], epsilon=1), "name must be one line of text"),
        (lambda t: t.forecast([query.count()], epsilon=1), "query must be one question"),
        (lambda t: t.budget_for("count", within=5), "query must be one question"),
        (lambda t: t.suggest_bounds("age", outermost=5, epsilon=1), "outermost must be a list"),
        (lambda t: t.suggest_bounds("age", outermost=(5,), epsilon=1), "outermost must be a pair"),
        (
            lambda t: t.discover_keys(by="sex", max_groups_per_unit=0, epsilon=1, delta=1e-6),
            "max_groups_per_unit must be",
        ),
        (lambda t: t.count(epsilon=Decimal("sNaN")), "epsilon must be finite, got sNaN"),
        (lambda t: t.count(epsilon=Decimal("1E-99999999")), "must have at most 4,000 digits"),
        (
            lambda t: execute(t, query.count(), rng=discreet.system_rng()),
            "plan must be a release plan, got Query",
        ),
        (lambda t: t.count(epsilon=50), "nothing was spent"),
    ],
)
def test_a_question_that_cannot_be_answered(file, account, ask_it, words):
    table = discreet.table(
        file, columns=COLUMNS, privacy_unit="person", max_rows_per_unit=2, account=account
    )
    refused(lambda: ask_it(table), words, account)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: discreet.category("fm"), "categories must be a list, got str"),
        (lambda: discreet.category(None), "categories must be a list, got NoneType"),
        (lambda: discreet.integer(lower=5, upper=1), "upper must be at least 5, got 1"),
    ],
)
def test_a_column_that_cannot_be_declared(call, words):
    refused(call, words)


DAY = local.integers(lower=0, upper=63)
COLORS = local.grr(categories=4, epsilon=1)
MEMBERS = local.CollectionSpec(randomizer=COLORS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: local.grr(categories=["a", "b"], epsilon=1), "categories must be a whole number"),
        (lambda: COLORS.randomize(9), "value must hold whole numbers from 0 to 3"),
        (lambda: COLORS.randomize("red"), "value must hold whole numbers"),
        (lambda: local.Aggregator(None), "randomizer must be one, such as discreet.local.oue"),
        (lambda: local.Aggregator(COLORS).add(5), "reports must be a list, got int"),
        (lambda: local.Aggregator(COLORS).merge(1), "other must be an aggregate, got int"),
        (
            lambda: local.hierarchical_histogram(domain=64, epsilon=1),
            "domain must be declared, such as local.int",
        ),
        (
            lambda: local.flat_histogram(domain=[1], epsilon=1),
            "domain must be declared, such as local.int",
        ),
        (lambda: local.integers(lower="a", upper=1), "lower must be a number, got str"),
        (lambda: local.integers(lower=5, upper=1), "in increasing order"),
        (lambda: local.dates(lower="2020-01-01", upper="x"), "upper must be a date, such as"),
        (lambda: local.bins(edges=3), "edges must be a list, got int"),
        (lambda: local.ordered(labels="abc"), "labels must be a list, got str"),
        (
            lambda: local.plan_collection(DAY, "every", epsilon=1, expected_clients=9),
            "one of all, points",
        ),
        (
            lambda: local.plan_collection(64, "all", epsilon=1, expected_clients=9),
            "domain must be declared",
        ),
        (lambda: local.CollectionSpec(randomizer=None), "randomizer must be one, such as"),
        (lambda: local.CollectionSpec(randomizer=COLORS, labels="rgby"), "labels must be a list"),
        (lambda: local.MemoizedClient(COLORS, budget=4), "plan must be of permanent responses"),
        (
            lambda: local.AggregatorState(None, MEMBERS).count("a.dlr"),
            "inputs must be a list, got str",
        ),
        (
            lambda: local.ReportWriter(io.BytesIO(), MEMBERS).write(b"\xff"),
            "reports must be rows of 1",
        ),
        (
            lambda: local.multidimensional_mean(columns=["a"], epsilon=1),
            "columns must be a dict, got list",
        ),
        (
            lambda: local.multidimensional_mean(columns={"a": 5}, epsilon=1),
            "columns must be a list, got int",
        ),
    ],
)
def test_a_collection_that_cannot_be_made(call, words):
    refused(call, words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plan_ranges("age", epsilon=1), "domain must be a declared column such as"),
        (lambda: plan_ranges(discreet.text(), epsilon=1), "or a number of cells; got Text"),
        (lambda: plan_ranges(discreet.boolean(), epsilon=1), "domain must have an order"),
        (lambda: ranges.plan_grid(64, epsilon=1), "domains must be a list, got int"),
        (lambda: ranges.plan_grid("ab", epsilon=1), "domains must be a list, got str"),
        (lambda: ranges.plan_grid([DAY, 2.5], epsilon=1), "or a number of cells; got float"),
        (
            lambda: ranges.plan_grid([DAY, 5], ranges.workload.all_ranges(), epsilon=1),
            "workload of a grid must be one of all, points, marginals, or made by ranges.grid",
        ),
        (lambda: ranges.plan_grid([DAY, 5]), "Give epsilon, or epsilon and delta, or rho"),
    ],
)
def test_ranges_that_cannot_be_planned(call, words):
    refused(call, words)


def test_a_claim_that_cannot_be_attacked():
    refused(
        lambda: audit.attack(lambda value, n: np.full(n, value), 0, 1, claimed=1),
        "claimed must be (epsilon, delta) or a guarantee, got int",
    )


def test_workloads_have_the_same_names_with_and_without_a_server():
    for name in ("all", "points", "prefixes"):
        plan = local.plan_collection(DAY, name, epsilon=1, expected_clients=100)
        assert plan.workload == discreet.plan_ranges(64, name, epsilon=1).workload


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: disclosure.disclosure_risk([1], quasi_identifiers=["age"]),
            "frame must be a data frame",
        ),
        (lambda: disclosure.interval_hierarchy(3), "edges must be a list, got int"),
        (lambda: disclosure.prefix_hierarchy(5, keep=3), "keep must be a list, got int"),
        (lambda: disclosure.category_hierarchy(["a"]), "maps must be a dict, got list"),
        (lambda: disclosure.pram(5), "matrix must be a list, got int"),
        (lambda: disclosure.histogram([1.0], edges=3), "edges must be a list, got int"),
        (
            lambda: disclosure.safe_k_anonymity(columns=["age"], rate=0.1, k=5, epsilon=1),
            "columns must be a dict, got list",
        ),
    ],
)
def test_a_table_that_cannot_be_disclosed(call, words):
    refused(call, words)


class TestAnAccount:
    def test_of_a_model(self):
        pytest.importorskip("sklearn")
        from discreet.models import PrivateLinearRegression

        model = PrivateLinearRegression(
            epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-1, 1), account="survey"
        )
        refused(lambda: model.fit(np.zeros((9, 2)), np.zeros(9)), "account must come from a ledger")

    def test_that_expires_on_a_day(self, tmp_path):
        with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
            refused(
                lambda: ledger.account("a", limit=discreet.pure_dp(1), expires=dt.date(2030, 1, 1)),
                "expires must be a datetime with a time zone",
            )

    def test_whose_ledger_cannot_be_checked(self, tmp_path):
        with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
            refused(lambda: ledger.verify(heads=["3:ab"]), "heads must be a dict, got list")


@pytest.mark.parametrize("package", [query, local, disclosure, blackbox])
def test_completion_offers_no_modules(package):
    assert dir(package) == sorted(package.__all__)
    assert not [name for name in dir(package) if isinstance(getattr(package, name), ModuleType)]


@pytest.mark.parametrize(
    ("missing", "code", "extra"),
    [
        ("sklearn", "discreet.models.PrivateLinearRegression", "models"),
        ("sklearn", "import discreet.models.pate.label_plan", "models"),
        ("psycopg", "discreet.Ledger('postgresql://localhost/db')", "postgres"),
        ("pyspark", "discreet.table('people.csv', columns={}, engine='spark')", "spark"),
        ("uvicorn", "main(['serve', '--demo'], standalone_mode=False)", "web"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(file, missing, code, extra):
    script = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import discreet, discreet.models\n"
        "from discreet.cli.main import main\n"
        f"try:\n    {code}\n"
        "except discreet.Unsupported as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=file.parent)
    assert f"pip install 'discreet[{extra}]'" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (3, "path must be a file's name, got int"),
        ("ages.doc", "path must end in .svg, .png, .pdf"),
        ("none/ages.svg", "which is no folder: make it"),
    ],
)
def test_a_picture_that_cannot_be_drawn(name, words):
    refused(lambda: discreet.plot(local.Aggregator(COLORS), name), words)
