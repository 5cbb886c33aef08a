"""From a query to its number there is one short way, and a scan is compiled once on it."""

import json
import pickle
import sys
from collections import Counter

import polars as pl
import pytest

import discreet
from discreet import query
from discreet.data import program
from discreet.query._release_plan import plan_release
from discreet.query.budget import budget

PEOPLE = pl.DataFrame({"who": list(range(40)) * 2, "age": [n % 90 for n in range(80)]})


@pytest.fixture
def people(ledger):
    return discreet.table(
        PEOPLE,
        privacy_unit="who",
        max_rows_per_unit=2,
        columns={
            "age": discreet.integer(0, 120, missing=0),
            "who": discreet.integer(0, 200_000, missing=0),
        },
        account=ledger.account("survey", limit=discreet.pure_dp(10**6)),
    )


def watched(action):
    """Calls of each function of discreet, and how many of them stand inside each other."""
    calls, inside, deepest = Counter(), [], 0

    def watch(frame, event, _):
        nonlocal deepest
        if event == "call":
            own = frame.f_globals.get("__name__", "").startswith("discreet")
            inside.append(own)
            calls[frame.f_code.co_qualname] += own
            deepest = max(deepest, sum(inside))
        elif event == "return" and inside:
            inside.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(before)
    return +calls, deepest


def test_a_mean_takes_few_calls_and_compiles_once(people):
    people.mean("age", epsilon=0.5)  # imports, caches
    calls, deepest = watched(lambda: people.mean("age", epsilon=0.5))
    assert sum(calls.values()) <= 750
    assert deepest <= 15
    assert calls["compile_program"] == 1
    # Plan, reserve, read, noise, each once and in one function.
    for step in ("plan_release", "execute", "reserve_budget", "collect", "ReleasePlan.noisy"):
        assert calls[step] == 1


NOUNS = {
    "Query": set(),
    "Program": {"AggregateSpec", "SumSpec", "ContributionBound", "DataScan"},
    "Measurement": {"MeasuredVector", "BudgetChange"},
    "SumEstimator": set(),
    "ReleasePlan": {"PlannedQuery", "QueryBudget"},
    "NoisyIntegers": {"ExactResult"},
    "Release": {"LazyFacts", "TableSpec"},
}
"""What a query becomes on its way to a number, and what each of these is made of."""


def test_a_mean_passes_through_seven_nouns(people):
    made = set()

    def watch(frame, event, _):
        itself = frame.f_locals.get("self")
        if event == "call" and frame.f_code.co_name == "__init__":
            room = type(itself).__module__
            if room.startswith(("discreet.query", "discreet.tables", "discreet.data.program")):
                made.add(type(itself).__name__)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        people.mean("age", epsilon=0.5)
    finally:
        sys.setprofile(before)
    assert made == set(NOUNS).union(*NOUNS.values())


def test_facts_for_a_card_are_written_when_they_are_asked_for(people):
    made = []
    calls, _ = watched(lambda: made.append(people.mean("age", epsilon=0.5)))
    assert "question_facts" not in calls
    (release,) = made
    calls, _ = watched(lambda: [release.to_json(), release.to_json()])
    assert calls["question_facts"] == 1
    facts = json.loads(release.to_json())["facts"]
    assert facts == dict(release.facts) == dict(pickle.loads(pickle.dumps(release)).facts)
    assert [one["part"] for one in facts["measurements"]] == ["rows", "centred sum"]
    assert facts["columns"] == [
        {
            "name": "age",
            "origin": "declared",
            "kind": "integer",
            "lower": 0,
            "upper": 120,
            "missing": 0,
            "required": False,
        }
    ]


def test_queries_that_share_a_scan_compile_it_once(people, monkeypatch):
    compiled = []
    real = program.compile_program
    monkeypatch.setattr(
        "discreet.query._measure.compile_program", lambda **all: compiled.append(1) or real(**all)
    )
    asked = [query.count(), query.mean("age"), query.variance("age"), query.count(by="who")]
    made = plan_release(asked, setting=people.spec, budget=budget(epsilon=1))
    assert len(compiled) == len(made.passes) == 2
    people.release(asked, epsilon=1)
    assert len(compiled) == 4


def test_what_a_plan_states_is_what_its_measurements_cost(people):
    made = plan_release(
        [query.mean("age"), query.count(), query.sum("age")],
        setting=people.spec,
        budget=budget(epsilon=1),
    )
    whole, *others = [one.mechanism.guarantee for one in made.measurements]
    assert made.guarantee == sum(others, start=whole)
    for one in made.questions:
        first, *rest = [part.mechanism.guarantee for part in one.measurements]
        assert one.guarantee == sum(rest, start=first)
