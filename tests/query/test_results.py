"""One contract for every result and plan: rows, the same rows in every frame, JSON, pictures."""

import csv
import dataclasses
import datetime as dt
import inspect
import io
import json
import re
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import disclosure, intervals, local, query, ranges, seeded_rng
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.audit import _attack, series, side_channels
from discreet.audit.sensitivity import Sensitivity
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.tabular import Tabular
from discreet.disclosure._private_points import BinnedPoints
from discreet.intervals._coverage import CoverageEstimate
from discreet.marginals.nonnegative import NonnegativeMarginals, NonnegativeTable
from discreet.mechanisms.mean_without_bounds import PrivateMean
from discreet.mechanisms.mechanism import Mechanism
from discreet.models import InferenceTable
from discreet.models.blackbox.examples import PrivateExamples
from discreet.models.dp_sgd._laplace_rates import PowerSchedule
from discreet.models.dp_sgd.convergence import ConvergenceProblem
from discreet.models.dp_sgd.schedule_analysis import analyze_schedule
from discreet.models.pate.classifier import LabelRelease
from discreet.models.regression import PrivateLinearRegression
from discreet.models.regression.auto import choose_method
from discreet.query.personalized_queries import WeightingTradeoff
from discreet.query.result import NUMBERS, FixedResult, Result, StoredResult
from discreet.ranges import workload
from discreet.ranges.release import DataDependentRelease

ROWS = pl.DataFrame(
    {
        "who": range(400),
        "age": [i % 90 for i in range(400)],
        "sex": ["f", "m"] * 200,
        "level": [i % 3 for i in range(400)],
        "day": [dt.date(2026, 1, 1 + i % 28) for i in range(400)],
        "well": [i % 5 > 0 for i in range(400)],
        "open": ["strict", "lax"] * 200,
    }
)
COLUMNS = {
    "age": discreet.integer(0, 120),
    "sex": discreet.category(["f", "m"], include_other=False),
    "level": discreet.category([0, 1, 2]),
    "day": discreet.date(dt.date(2026, 1, 1), dt.date(2026, 1, 28)),
    "well": discreet.boolean(),
    "open": discreet.category(["strict", "lax"]),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    account = discreet.Ledger(f"sqlite:///{path}").account(
        "one", limit=discreet.approx_dp(10**4, 0.1)
    )
    return discreet.table(
        ROWS, columns=COLUMNS, privacy_unit="who", max_rows_per_unit=1, account=account
    )


def stated():
    account = discreet.Ledger("memory://").account("one", limit=discreet.pure_dp(1))
    account.charge(discreet.pure_dp(0.25), label="a count")
    return account.statement()


def aggregated(randomizer, values):
    total = local.Aggregator(randomizer)
    total.add(randomizer.randomize(values))
    return total.estimate()


def fed(table, counts, **how):
    path = Path(mkdtemp()) / "stream.db"
    with closing(
        discreet.stream(path, account=table.account, epsilon=1, horizon=8, **how)
    ) as stream:
        return stream.feed(counts)


GAUSS = np.random.default_rng(5)
LABELS = np.array([1, -1, 0])
PAIR = personalized({"strict": discreet.pure_dp(1), "lax": discreet.pure_dp(2)})
SPAN = local.integers(0, 7)
MODEL = series.VAR(lags=[[0.5, 0.1], [0, 0.5]], noise=[[1, 0.3], [0.3, 1]])
WEEKS = series.releases(times=range(4), width=8, people=2, std=0.5)
WAVE = local.square_wave(cells=6, epsilon=1, lower=0, upper=10)
CLAIM = _attack.ClaimPoint(epsilon=1.0, delta=0.0)
TABLE = pl.DataFrame({"age": [30, 31, 40, 41] * 5, "ill": ["a", "b"] * 10})


def waved():
    return aggregated(WAVE, GAUSS.uniform(0, 10, 500))


def regressed():
    x = GAUSS.uniform(-1, 1, (4000, 2))
    y = np.clip(x @ [0.5, -0.2] + GAUSS.normal(0, 0.1, 4000), -1, 1)
    model = PrivateLinearRegression(epsilon=5, delta=1e-6, bounds=(-1, 1), target_bounds=(-1, 1))
    return model.fit(x, y)


def inferred():
    return InferenceTable(
        model="Private linear regression",
        terms=(("age",), ("rare",), ("intercept",)),
        coefficients=np.array([2.512345678, 17.0, 0.3]),
        standard_errors=np.array([0.5, np.inf, 0.4]),
        degrees_of_freedom=400.0,
        facts=(("Rows", "about 400"),),
        notes=("rare is not determined.",),
        guarantee=discreet.zcdp(0.5),
    )


def panel():
    return MODEL.simulate(times=4, rng=seeded_rng(1))[0]


def fitted():
    truth = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
    people = truth.simulate(people=500, times=8, rng=seeded_rng(1))
    return series.private_fit(people, bounds=(-6, 6), spread=2, epsilon=4, rng=seeded_rng(2))


def black_box():
    inputs = GAUSS.integers(0, 3, size=(60, 4))
    made = discreet.blackbox.make_private(
        lambda row: float(np.mean(row)),
        public_inputs=inputs,
        metric="attribute",
        epsilon=2,
        bounds=(0, 2),
    )
    return made.answer(inputs[0], rng=seeded_rng(4))


RESULTS = {
    "one count": lambda t: t.count(epsilon=1),
    "a mean by category": lambda t: t.mean("age", by="sex", epsilon=1),
    "counts by numbers and the rest": lambda t: t.count(by="level", epsilon=1),
    "counts by day": lambda t: t.count(by="day", epsilon=1),
    "counts by two columns": lambda t: t.count(by=["sex", "well"], epsilon=1),
    "quantiles without intervals": lambda t: t.quantiles(
        "age", [0.25, 0.5], method="exponential", epsilon=1
    ),
    "no keys found": lambda t: t.discover_keys(
        "sex", max_groups_per_unit=1, minimum=10**6, epsilon=1, delta=1e-9
    ),
    "small groups merged": lambda t: t.count(by="day", epsilon=1).merge_small_groups(below=10**6),
    "ranges": lambda t: t.ranges("day", epsilon=1),
    "a grid": lambda t: t.ranges(["sex", "level"], epsilon=1),
    "quantiles of a large domain": lambda t: t.large_domain_quantiles("age", [0.5], epsilon=1),
    "personal budgets": lambda t: t.with_personal_budgets(
        privacy_levels={"strict": 0.5, "lax": 1}, budget="open"
    ).count(by="sex"),
    "a stream": lambda t: fed(t, [1, 0, 2]),
    "a stream of two keys": lambda t: fed(t, [[1, 0], [0, 2]], keys=["bus", "tram"]),
    "local shares": lambda _: aggregated(local.grr(categories=4, epsilon=1), [0, 1, 2, 3] * 50),
    "adjusted local shares": lambda _: aggregated(
        local.grr(categories=4, epsilon=1), [0, 1, 2, 3] * 50
    ).projected(),
    "texts found": lambda _: aggregated(
        local.heavy_hitters(length=2, epsilon=8), ["ab"] * 900 + ["cd"] * 100
    ),
    "local ranges": lambda _: aggregated(
        local.hierarchical_histogram(domain=local.integers(0, 7), epsilon=1), [1, 2, 3] * 100
    ),
    "a local mean": lambda _: aggregated(local.duchi(lower=0, upper=1, epsilon=1), [0.5] * 100),
    "a stored result": lambda t: Result.from_json(Result.to_json(t.count(by="day", epsilon=1))),
    "ranges that no table released": lambda t: discreet.RangeRelease.from_json(
        t.ranges("day", epsilon=1).to_json()
    ),
    "a grid that no table released": lambda t: discreet.GridRelease.from_json(
        t.ranges(["sex", "level"], epsilon=1).to_json()
    ),
    "many tables": lambda t: t.marginals([["sex", "level"], ["well"]], rho=0.1),
    "many tables with Laplace noise": lambda t: t.marginals([["day", "well"]], epsilon=1),
    "many tables that no table released": lambda t: discreet.MarginalRelease.from_json(
        t.marginals([["sex", "level"], ["well"]], rho=0.1).to_json()
    ),
    "one of many tables": lambda t: t.marginals([["sex", "day"]], rho=0.1).table(["day"]),
    "the number of rows": lambda t: t.marginals([["sex"]], rho=0.1).table(),
    "reconciled releases": lambda t: discreet.reconcile(
        [t.count(epsilon=1), t.count(by="sex", epsilon=1)]
    ),
    "many tables that are not negative": lambda t: t.marginals(
        [["sex", "level"], ["well"]], rho=0.1
    ).nonnegative(integers=True),
    "a table that is not negative": lambda t: (
        t.marginals([["sex", "day"], ["day", "well"]], rho=0.1).nonnegative().table(["sex", "day"])
    ),
    "ranges that are not negative": lambda t: t.ranges("day", epsilon=1).nonnegative(),
    "a cumulative curve": lambda t: t.ranges("day", epsilon=1).cdf(confidence=0.9),
    "a quantile of ranges": lambda t: t.ranges("day", epsilon=1).quantile(0.5),
    "a marginal": lambda t: t.ranges(["sex", "level"], epsilon=1).marginal(0),
    "cells that adapt to the data": lambda _: DataDependentRelease(
        grid=ranges.grid.domain.GridDomain(domains=(SPAN,)),
        cells=np.arange(8.0),
        method="DAWA",
        guarantee=discreet.pure_dp(1),
    ),
    "suggested bounds": lambda t: t.suggest_bounds("age", epsilon=5),
    "suggested limits": lambda t: t.suggest_contribution_limits(epsilon=5),
    "a distribution": lambda _: waved(),
    "a bootstrap": lambda _: WAVE.bootstrap(waved(), replicates=20, rng=seeded_rng(1)),
    "local shares of two attributes": lambda _: aggregated(
        local.hybrid_grid({"a": SPAN, "b": SPAN}, epsilon=1, expected_clients=500),
        {"a": GAUSS.integers(0, 8, 500), "b": GAUSS.integers(0, 8, 500)},
    ),
    "an interval": lambda _: intervals.mean(
        lower=0, upper=10, public_rows=500, epsilon=1, confidence=0.9
    ).release(GAUSS.uniform(0, 10, 500)),
    "coverage": lambda _: CoverageEstimate(
        held=960, trials=1000, nominal=0.95, width=1.0, quartiles=(0.9, 1.1), plain=0.8
    ),
    "labels": lambda _: LabelRelease(labels=LABELS, guarantee=PAIR),
    "coefficients": lambda _: regressed().intervals(confidence=0.9),
    "a table of inference": lambda _: inferred(),
    "a black box": lambda _: black_box(),
    "outputs at anchors": lambda _: PrivateExamples(
        anchors=np.array([[0.0, 1.0], [2.0, 3.0]]),
        outputs=np.array([1.5, 2.5]),
        guarantee=discreet.pure_dp(1),
        receipt=None,
    ),
    "what an attack found": lambda _: _attack.Finding(
        claimed=CLAIM,
        epsilon=0.7,
        refuted=None,
        event="",
        at_least=0.0,
        at_most=0.0,
        samples=1000,
        failure_probability=1e-6,
    ),
    "what low bits tell": lambda _: side_channels.PrecisionFinding(
        left_only=0.5, right_only=0.25, epsilon=3.0, failure_probability=1e-6, samples=1000
    ),
    "what time tells": lambda _: side_channels.TimingFinding(
        correlation=0.01, limit=0.2, failure_probability=1e-6, repetitions=500
    ),
    "a sensitivity": lambda _: Sensitivity(value=Fraction(2, 5), left=(0, 1), right=(1,), pairs=9),
    "the leakage of a secret": lambda _: series.leakage(
        MODEL, releases=WEEKS, secret=series.secret_value(0, time=0), attacker_knows="time"
    ),
    "the leakage of all cells": lambda _: series.cells(MODEL, releases=WEEKS),
    "a report of leakage": lambda _: series.report(panel(), bounds=(-4, 4), std=0.5, model=MODEL),
    "means of a series": lambda _: series.publish(panel(), releases=WEEKS, bounds=(-4, 4)),
    "smoothed means": lambda _: series.smooth([0.1, 0.2, 0.1, 0.3], model=MODEL, releases=WEEKS),
    "a private fit": lambda _: fitted(),
    "a private full fit": lambda _: series._private_full_fit.PrivateFullFit(
        model=MODEL, guarantee=discreet.pure_dp(1), projected=False, private=True, sums=LABELS
    ),
    "a risk": lambda _: disclosure.disclosure_risk(
        TABLE, quasi_identifiers=["age"], sensitive=["ill"]
    ),
    "an audit of tables": lambda _: disclosure.audit_tables(
        [disclosure.published_table({"sex": ["f", "m", "Total"], "count": ["x", 12, 13]})]
    ),
    "a loss of utility": lambda _: disclosure.utility([1.0, 2.0, 3.0], released=[1.5, 2.0, 2.5]),
    "values with k-noise": lambda _: disclosure.k_noise(
        GAUSS.uniform(0, 9, 50), k=5, rng=seeded_rng(1)
    ),
    "values by k-PRAM": lambda _: disclosure.k_pram(
        GAUSS.uniform(0, 9, 50), edges=[0, 5, 10], k=5, rng=seeded_rng(1)
    ),
    "counts behind PRAM": lambda _: disclosure.pram([[0.8, 0.2], [0.2, 0.8]]).estimate([70, 30]),
    "points in bins": lambda _: BinnedPoints(
        values=np.array([1.5, 2.5]),
        edges=np.array([1.0, 2.0, 3.0]),
        counts=np.array([1, 1]),
        guarantee=discreet.pure_dp(1),
    ),
}
PLANS = {
    "the meaning of a guarantee": lambda _: discreet.zcdp(0.1).meaning(),
    "a plan of SQL": lambda t: t.plan_sql("SELECT COUNT(*) FROM t"),
    "an answer to SQL": lambda t: t.sql("SELECT sex, COUNT(*) FROM t GROUP BY sex", epsilon=1),
    "a statement of account": lambda _: stated(),
    "costs of periods": lambda _: discreet.zcdp(0.1).over_periods(),
    "the check of a card": lambda t: t.count(epsilon=1).card().verify(),
    "an error forecast": lambda t: t.forecast(query.count(), epsilon=1),
    "an unknown error": lambda t: t.forecast(query.mean("age"), epsilon=1),
    "a range plan": lambda t: t.plan_ranges("day", epsilon=1),
    "synthetic rows": lambda t: t.marginals([["sex", "level"]], rho=0.1).synthesize(20, seed=1),
    "the error of synthetic rows": lambda t: (
        t.marginals([["sex", "level"]], rho=0.1).synthesize(20, seed=1).fidelity()
    ),
    "a plan of many tables": lambda t: t.plan_marginals([["sex", "level"]], epsilon=1),
    "a grid plan": lambda t: t.plan_ranges(["sex", "level"], epsilon=1),
    "a stream forecast": lambda _: discreet.plan_stream(epsilon=1, horizon=8).forecast(3),
    "a collection plan": lambda _: local.plan_collection(
        SPAN, workload.all_ranges(), epsilon=1, expected_clients=1000
    ),
    "trust models": lambda _: local.compare_trust_models(
        SPAN, workload.all_ranges(), epsilon=1, delta=1e-6, expected_clients=1000
    ),
    "bounded noise": lambda _: discreet.compare_bounded_noise(
        lower=0, upper=10, sensitivity=1, epsilon=1
    ),
    "best noise": lambda _: discreet.best_additive_noise(sensitivity=1, epsilon=1),
    "a mean without bounds": lambda _: PrivateMean(value=1.5, lower=0.0, upper=4.0, std=0.1),
    "an interval forecast": lambda _: intervals.mean(
        lower=0, upper=10, public_rows=500, epsilon=1
    ).forecast(std=2),
    "central and local": lambda _: intervals.compare_by_rows(
        lower=0, upper=9, rows=[9, 99], epsilon=1, std=2
    ),
    "a schedule": lambda _: analyze_schedule(
        ConvergenceProblem(dimension=10, smoothness=0.25, variance=0.2, distance=5.0),
        schedule=PowerSchedule(decay=0.5, growth=0.75),
        sensitivity=2,
        epsilon=1,
        steps=[10, 100],
    ),
    "a choice of a method": lambda _: choose_method(
        expected_rows=1000, features=8, epsilon=1, delta=1e-6
    ),
    "a tradeoff of weights": lambda _: WeightingTradeoff(
        max_privacy_level="lax",
        weights={"strict": 1.0, "lax": 0.5},
        noise=1.0,
        bias=0.5,
        confidence=0.95,
    ),
    "further cells to hide": lambda _: disclosure.suggest_suppression(
        [disclosure.published_table({"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]})]
    ),
    "an anonymized table": lambda _: disclosure.k_anonymize(
        TABLE, quasi_identifiers={"age": disclosure.interval_hierarchy([30, 40, 50])}, k=5
    ),
}


@pytest.fixture(scope="module")
def made(table):
    """Each of them, made once."""
    found = {}

    def make(name):
        if name not in found:
            found[name] = (RESULTS | PLANS)[name](table)
        return found[name]

    return make


@pytest.fixture(params=RESULTS)
def result(request, made):
    return made(request.param)


@pytest.fixture(params=[*RESULTS, *PLANS])
def tabular(request, made):
    return made(request.param)


def column(result, name):
    return [row[name] for row in result.rows()]


def test_rows_have_keys_and_numbers(result):
    assert isinstance(result, Result)
    rows = result.rows()
    assert rows == list(result)
    assert len(result) == len(rows)
    assert bool(result)
    for row in rows:
        assert tuple(row)[-4:] == NUMBERS
        if row["low"] is not None:
            assert row["low"] <= row["high"]
            # Its cells are biased, and `statement` counts those outside of the unbiased intervals.
            biased = isinstance(result, NonnegativeMarginals | NonnegativeTable)
            assert biased or row["low"] <= row["value"] <= row["high"]
        assert all(type(row[name]) in (int, float, type(None), dt.date) for name in NUMBERS)


def test_value_std_and_ends_have_one_shape(result):
    rows = result.rows()
    assert list(result.keys) == [
        tuple(held for name, held in row.items() if name not in NUMBERS) for row in rows
    ]
    single = len(rows) == 1 and result.keys[0] == ()
    low, high = result.interval() if has_interval(result) else (None, None)
    for name, found in (("value", result.value), ("std", result.std), ("low", low), ("high", high)):
        if single:
            exact = isinstance(found, Fraction)
            assert (float(found) if exact else found) == rows[0][name]
        elif found is not None:
            assert np.ravel(np.array(found, dtype=object)).tolist() == column(result, name)
    values = np.ravel(np.array(result.values, dtype=object)).tolist()
    assert values == column(result, "value")


def has_interval(result):
    try:
        result.interval()
    except Unsupported:
        assert {None} == {*column(result, "low"), *column(result, "high")}
        return False
    return True


def test_a_wider_interval_for_more_confidence(result):
    if isinstance(result, FixedResult):
        result.rows(result._confidence)
        with pytest.raises(Unsupported, match="confidence must be"):
            result.rows(0.123)
        return
    narrow, wide = result.rows(0.5), result.rows(0.99)
    for one, other in zip(narrow, wide, strict=True):
        if one["low"] is not None:
            assert other["low"] <= one["low"] <= one["high"] <= other["high"]
    assert result.to_dict(0.5)["low"] == [row["low"] for row in narrow]


def test_a_guarantee_is_stated_where_there_is_one(result):
    kinds = (discreet.Guarantee, PersonalizedGuarantee, type(None))
    assert isinstance(getattr(result, "guarantee", None), kinds)
    package = type(result).__module__.split(".")[1]
    if package not in ("audit", "disclosure", "intervals"):
        assert result.guarantee is not None


def test_a_key_finds_its_value(result):
    for row in result.rows():
        key = tuple(held for name, held in row.items() if name not in NUMBERS)
        assert result[key] == row["value"]
        if len(key) == 1:
            assert result[key[0]] == row["value"]
    with pytest.raises(KeyError):
        result["no such key"]


def test_json_holds_the_same(result):
    text = result.to_json()
    json.loads(text, parse_constant=pytest.fail)  # strict JSON
    again = type(result).from_json(text)
    assert again.rows() == result.rows()
    assert again.guarantee == getattr(result, "guarantee", None)
    assert type(again) in (type(result), StoredResult)
    assert again.to_json() == text


def test_every_result_is_drawn_without_a_path(result):
    if any(isinstance(value, dt.date) or value is None for value in column(result, "value")):
        with pytest.raises(Unsupported, match="cannot be drawn"):
            result.plot()
        return
    figure = result.plot()
    assert figure.svg.startswith("<svg")
    assert figure._repr_svg_() == figure.svg
    assert not re.search(r"\b(nan|inf|None)\b", figure.svg)


def test_one_number_is_a_float_and_several_are_not(result):
    rows = result.rows()
    if len(rows) == 1 and isinstance(rows[0]["value"], int | float):
        assert float(result) == rows[0]["value"]
    else:
        with pytest.raises(TypeError):
            float(result)


def test_the_text_is_for_people(tabular):
    text = repr(tabular)
    assert "object at 0x" not in text
    assert "array(" not in text
    assert "Guarantee(" not in text
    assert not re.search(r"\w\(\w+=", text), "a class with its fields"
    assert "np.float64" not in text
    assert "\n\n" not in text
    # No number has more digits than its noise allows; without noise it has six.
    digits = [
        re.sub(r"[.,]", "", number).lstrip("0") for number in re.findall(r"\d[\d,]*\.\d+", text)
    ]
    assert max(map(len, digits), default=0) <= 7
    assert "<" not in type(tabular)._repr_html_(tabular).split("<table>")[0][3:-4]


def test_all_frames_hold_the_same(tabular):
    found = tabular.to_dict()
    pandas, polars, arrow = tabular.to_pandas(), tabular.to_polars(), tabular.to_arrow()
    assert polars.to_dict(as_series=False) == found
    assert arrow.to_pydict() == found
    assert list(pandas.columns) == list(found)
    for name, held in found.items():
        assert [None if pd.isna(one) else one for one in pandas[name]] == held
    assert pl.DataFrame(tabular).equals(polars)
    assert pa.table(tabular).equals(arrow)


def test_types_do_not_depend_on_the_library(tabular):
    polars, arrow, pandas = tabular.to_polars(), tabular.to_arrow(), tabular.to_pandas()
    assert pl.from_arrow(arrow).schema == polars.schema
    for name, dtype in polars.schema.items():
        if dtype.is_numeric():
            assert pd.api.types.is_numeric_dtype(pandas[name])


def test_csv_holds_the_same(tabular, tmp_path):
    found = tabular.to_dict()
    path = tmp_path / "result.csv"
    text = tabular.to_csv(path)
    assert path.read_text(encoding="utf-8") == text
    read = list(csv.DictReader(io.StringIO(text)))
    assert len(read) == len(tabular.rows())
    for place, row in enumerate(read):
        assert row == {
            name: "" if held[place] is None else str(held[place]) for name, held in found.items()
        }
    with pytest.raises(InvalidArgument, match="exists: choose another name"):
        tabular.to_csv(path)


def test_parquet_holds_the_same(tabular, tmp_path):
    path = tmp_path / "result.parquet"
    tabular.to_parquet(path)
    assert pl.read_parquet(path).to_dict(as_series=False).keys() == tabular.to_dict().keys()
    assert len(pl.read_parquet(path)) == len(tabular.rows())
    with pytest.raises(InvalidArgument, match="exists: choose another name"):
        tabular.to_parquet(path)


def test_html_is_a_table_with_escaped_words(tabular):
    html = tabular._repr_html_()
    assert html.count("<tr>") == min(len(tabular.rows()), 20) + 1
    if isinstance(tabular, Result):
        assert "<th>value</th>" in html


def test_one_number_is_a_float(table):
    made = table.count(epsilon=1)
    assert float(made) == made.value
    with pytest.raises(TypeError, match=r"take result\[key\]"):
        float(table.count(by="sex", epsilon=1))


def test_hostile_names_are_escaped(table):
    asked = query.count(name="<script>")
    assert "<script>" not in table.release([asked], epsilon=1)[0]._repr_html_()


def test_mixed_keys_are_texts(table):
    held = table.count(by="level", epsilon=1).to_polars()["level"]
    assert held.dtype == pl.String
    assert held.to_list() == ["0", "1", "2", "(other)"]


def test_a_missing_library_is_named(monkeypatch, table):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(discreet.Unsupported, match="pip install pyarrow"):
        table.count(epsilon=1).to_arrow()


def test_importing_results_loads_no_frame_library():
    code = (
        "import sys, discreet.query.result\n"
        "print(sorted({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── Nothing is missing ───────────────────────────────────────────────────────────────────────────

NOT_TABLES = {
    "the record of what another library released; its numbers are there": {"ClaimedRelease"},
    "one row of a result or of a plan": {
        "PersonLeakage",
        "CentralLocalComparison",
        "HeavyRange",
        "HeavyCell",
        "LocalCandidate",
        "TrustOption",
        "BoundedOption",
        "NoiseCandidate",
        "StrategyCandidate",
        "RangeCandidate",
        "GridCandidate",
        "LimitChoice",
        "StressTest",
        "Diversity",
        "AuditRow",
        "CellFinding",
    },
    "what others published, before it is audited": {"PublishedCell", "PublishedTable"},
    "bounds on the way to a result": {"CellRange", "CellSystem"},
    "a part of a result, never handed out alone": {
        "LevelEstimate",
        "BlockShares",
        "ModelFree",
        "NoisyIntegers",
        "Inference",
        "ChargedRelease",
        "Moments",
        "Peak",
        "ConvergenceBound",
        "ScoringFit",
    },
    "many at once, for simulations of coverage": {"IntervalAnswers", "LeaveOneOut"},
    "how answers are estimated or planned": {
        *(
            "CorrelationEstimator",
            "CovarianceEstimator",
            "DifferenceEstimator",
            "DistinctEstimator",
            "RatioEstimator",
            "ShareEstimator",
            "SumEstimator",
        ),
        "QuantileEstimator",
        "ReleasePlan",
        "Measurement",
        "PrivateFitPlan",
        "BinaryLabels",
    },
    "a step of a fit": {
        "MaximumLikelihoodFit",
        "RegressionFit",
        "IntervalFit",
        "CenterFit",
        "NoiseScales",
    },
    "what is asked, or a column, and no answer": {
        "BinnedDomain",
        "IntegerDomain",
        "DateDomain",
        "EncodedColumn",
        "NumericColumn",
        "PiecewiseConstant",
        "ContributionBound",
        "BoundedCode",
        "BoundedOutputs",
    },
    "pages and drawings": {
        "ReleaseReport",
        "ChartBand",
        "ChartCurve",
        "ChartScale",
        "BarPanel",
        "HeatPanel",
    },
    "certificates and accounting, which have texts of their own": {
        "ComposedLoss",
        "AccountingResult",
        "CertificateCheck",
    },
}
RESULT_NAMES = re.compile(
    "(Release|Estimate|Quantiles|Frequencies|Intervals?|Comparisons?|Forecast|Finding|Report|"
    "Leakage|Risk|Labels?|Curve|Marginal|Fit|Published\\w*|Smoothed\\w*|Analysis|Answers)$"
)


def classes():
    """All classes of the product below its surfaces, wherever they stand."""
    root = Path(discreet.__file__).parent
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in ("server", "cli", "client") or parts[-1].startswith("__"):
            continue
        module = import_module(".".join(["discreet", *parts]))
        for one in vars(module).values():
            if inspect.isclass(one) and one.__module__ == module.__name__:
                yield one


def looks_like_a_result(one):
    protocol = getattr(one, "_is_protocol", False)
    if protocol or issubclass(one, Mechanism | Exception) or one.__name__[0] == "_":
        return False
    names = {name for name in dir(one) if not name.startswith("_")}
    if dataclasses.is_dataclass(one):
        names |= {field.name for field in dataclasses.fields(one)}
    published = names & {"value", "values", "shares", "estimate", "noisy"}
    return (
        RESULT_NAMES.search(one.__name__) is not None
        or {"low", "high"} <= names
        or bool(published and names & {"guarantee", "std", "receipt", "interval"})
    )


def test_what_looks_like_a_result_is_one():
    listed = set().union(*NOT_TABLES.values())
    found = {one.__name__ for one in classes() if looks_like_a_result(one)}
    tables = {one.__name__ for one in classes() if issubclass(one, Tabular)}
    assert found - tables - listed == set()


def test_a_result_that_is_none_is_noticed():
    class Mode:
        value = property(lambda _: 1.0)

        def interval(self, confidence=0.95):
            """Return two ends."""

    assert looks_like_a_result(Mode)
    assert looks_like_a_result(dataclasses.make_dataclass("ModeRelease", ["mode"]))
    assert looks_like_a_result(dataclasses.make_dataclass("Mode", ["values", "guarantee"]))


def test_the_list_of_what_is_no_table_is_not_stale():
    listed = set().union(*NOT_TABLES.values())
    assert listed - {one.__name__ for one in classes()} == set()
    assert listed & {one.__name__ for one in classes() if issubclass(one, Tabular)} == set()


def test_every_table_is_in_the_contract(made):
    tried = {type(made(name)) for name in RESULTS | PLANS}
    concrete = {
        one
        for one in classes()
        if issubclass(one, Tabular) and not inspect.isabstract(one) and one.__name__[0] != "_"
    }
    assert {one for one in concrete if one not in tried} == set()
    assert {type(made(name)) for name in PLANS} & {
        one for one in concrete if issubclass(one, Result)
    } == set()


# ── Types of what is returned ────────────────────────────────────────────────────────────────────

ANY = {
    "whether there are groups, and so a number or a tuple, is known at run time only: a union "
    "would have to be narrowed at each use": {
        *("Result.value", "Result.std", "Result.interval", "FixedResult.interval"),
        *("Release.value", "Release.std", "Release.interval"),
        *("MarginalTable.value", "MarginalTable.std", "MarginalTable.interval"),
        *("NonnegativeTable.value", "NonnegativeTable.std", "NonnegativeTable.interval"),
        *("PersonalizedRelease.value", "PersonalizedRelease.std", "PersonalizedRelease.interval"),
    },
    "a number for one range, an array for arrays of ends; labels are of any type, so that no "
    "overload tells them apart": {
        *("RangeAnswers.answer_std", "RangeAnswers.answer_interval", "NonnegativeRelease.answer"),
        *("GridRelease.answer", "GridRelease.answer_std", "GridRelease.answer_interval"),
        "DataDependentRelease.answer",
    },
    "a cell has the type of its column: number, text, boolean, date or nothing": {
        *("Result.__getitem__", "Result.keys", "StoredResult.columns", "Tabular.to_dict"),
    },
    "the kind of frame that was given": {"AnonymizedTable.frame"},
}


def returned(one):
    """The public members of a class with what they return, as written."""
    for name, member in vars(one).items():
        if name.startswith("_") and name != "__getitem__":
            continue
        found = getattr(member, "fget", None) or getattr(member, "_find", member)
        found = getattr(found, "__func__", getattr(found, "func", found))
        yield name, getattr(found, "__annotations__", {}).get("return", "")
    for name, written in vars(one).get("__annotations__", {}).items():
        if not name.startswith("_"):
            yield name, written


def test_any_is_returned_only_where_it_is_argued():
    found = {
        f"{one.__name__}.{name}"
        for one in classes()
        if issubclass(one, Tabular)
        for name, written in returned(one)
        if re.search(r"\bAny\b", str(written))
    }
    assert found == set().union(*ANY.values())
