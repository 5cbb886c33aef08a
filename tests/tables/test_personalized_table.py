"""Budgets from a column: every neighbor of small data, what is charged, and who is left out."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import itertools
import math
import types
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import col
from discreet import query as queries
from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.runner import audit_case
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Receipt
from discreet.noise.random_source import seeded_rng
from discreet.query import personalized_queries as weights
from discreet.query._measure import measure
from discreet.query._release_plan import Measurement
from discreet.tables.personalized_table import PersonalizedRelease
from tests.tables.privacy_levels import COLUMNS, LEVELS, duck, frame, opened

QUESTIONS = {
    "count": queries.count(),
    "count by g": queries.count(by="g"),
    "units": queries.count_units(by="g"),
    "sum": queries.sum("x"),
    "mean": queries.mean("x"),
    "variance": queries.variance("x"),
    "covariance": queries.covariance("x", col("g") == "a"),
    "some rows": queries.count(where=col("x") > 0),
}
HELD = [
    (),
    ((0, "a"),),
    ((3, "b"),),
    ((-1, "a"), (3, "a")),
    ((3, "a"),) * 3,
    ((3, "b"),) * 2,
    ((3, "a"), (3, "b")),
]
RELATIONS = [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]


@pytest.fixture
def seen(monkeypatch):
    """The exact integers of a run, each with the noise that it gets."""
    found = []
    plain = Measurement.noisy

    def noisy(self, sums, *, rng):
        exact = measure(self.part, sums, shift=self.shift)
        found.append((exact.astype(object), self.mechanism.guarantee.event))
        return plain(self, sums, rng=rng)

    monkeypatch.setattr(Measurement, "noisy", noisy)
    return found


@pytest.fixture
def free(monkeypatch):
    """Releases that nobody pays for: thousands of them are compared."""
    receipt = Receipt(
        account="none",
        sequence=1,
        hash="",
        guarantee=discreet.pure_dp(1),
        label="",
        time=dt.datetime.now(dt.UTC),
        request_id=None,
    )
    door = importlib.import_module("discreet.tables.personalized_table")
    held = contextlib.nullcontext(types.SimpleNamespace(receipt=receipt))
    monkeypatch.setattr(door, "reserve_budget", lambda *_, **__: held)


def loss(before, after):
    """The exact epsilon (or rho) between two runs, from the laws of their noise."""
    total = Fraction(0)
    for (a, noise), (b, same) in zip(before, after, strict=True):
        assert noise == same
        match noise:
            case events.DiscreteLaplaceEvent(scale, _):
                total += Fraction(int(np.abs(a - b).sum())) / scale
            case events.DiscreteGaussianEvent(variance, _, _):
                total += Fraction(int(np.square(a - b).sum())) / (2 * variance)
    return total


def neighbors(relation):
    """Pairs of what one person has; the other person stays."""
    if relation is NeighboringRelation.ADD_REMOVE:
        return [(held, ()) for held in HELD[1:]]
    return list(itertools.combinations(HELD[1:], 2))


def worst(ask_one, seen, relation, **how):
    """The largest loss of a person of each level, the other person of either level."""
    runs = {}

    def run(people):
        if people not in runs:
            seen.clear()
            ask_one(opened(people, None, relation=relation, **how))
            runs[people] = list(seen)
        return runs[people]

    found = dict.fromkeys(("strict", "open", "none"), Fraction(0))
    for level, other in itertools.product(found, ("strict", "open")):
        for before, after in neighbors(relation):
            rest = (2, other, ((1, "b"), (3, "a")))
            pair = [run(((1, level, held), rest)) for held in (before, after)]
            found[level] = max(found[level], loss(*pair))
    return found


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_neighbor_keeps_its_level(kind, relation, seen, free):
    def one(table):
        view = table.with_personal_budgets(budget="consent", privacy_levels=LEVELS)
        view.release(QUESTIONS[kind], max_privacy_level="open")

    found = worst(one, seen, relation)
    assert found["none"] == 0
    assert found["strict"] <= LEVELS["strict"]
    assert found["open"] <= LEVELS["open"]
    if relation is NeighboringRelation.ADD_REMOVE and kind in (
        "count",
        "count by g",
        "units",
        "sum",
    ):
        # Attained: only the rounding of weights is lost.
        assert found["open"] == 1
        assert found["strict"] > LEVELS["strict"] * (1 - Fraction(1, 2**17))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_every_neighbor_keeps_its_rho(relation, seen, free):
    menu = {
        "strict": discreet.zcdp(Fraction(1, 50), relation=relation),
        "open": discreet.zcdp(Fraction(1, 2), relation=relation),
    }

    def one(table):
        table.with_personal_budgets(budget="consent", privacy_levels=menu).mean(
            "x", max_privacy_level="open"
        )

    found = worst(one, seen, relation)
    assert found["none"] == 0
    assert Fraction(1, 2) * Fraction(1, 4) < found["open"] <= Fraction(1, 2)
    assert Fraction(1, 50) * Fraction(1, 4) < found["strict"] <= Fraction(1, 50)


def test_duckdb_gives_the_same_integers(seen, free):
    people = tuple((i, ("strict", "open", "none", None)[i % 4], HELD[1 + i % 5]) for i in range(40))
    found = []
    for source in (duck, lambda rows: rows):
        seen.clear()
        view = opened(people, None, source=source).with_personal_budgets(
            budget="consent", privacy_levels=LEVELS
        )
        view.release(
            queries.mean("x", by="g").limit_contributions(max_rows_per_unit=3),
            max_privacy_level="open",
        )
        found.append([exact.tolist() for exact, _ in seen])
    assert found[0] == found[1]
    assert any(found[0][0])


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_answers_by_level_keep_every_level(relation, seen, free):
    def one(table):
        table.with_personal_budgets(budget="consent", privacy_levels=LEVELS).by_level(
            queries.count(by="g")
        )

    found = worst(one, seen, relation)
    assert found == {"none": 0, "strict": Fraction(1, 5), "open": 1}


def test_weights_that_are_all_one_are_caught(seen, free, monkeypatch):
    """With noise for the open level and equal weights, the strict pay what the open pay."""
    whole = 1 << weights.WEIGHT_BITS
    monkeypatch.setattr(
        weights.PrivacySpecification, "factors", lambda self, _: dict.fromkeys(self.levels, whole)
    )
    monkeypatch.setattr(
        weights.PrivacySpecification, "share", lambda self, _level, _cap: Fraction(1)
    )

    def one(table):
        table.with_personal_budgets(budget="consent", privacy_levels=LEVELS).count(
            max_privacy_level="open"
        )

    assert worst(one, seen, NeighboringRelation.ADD_REMOVE)["strict"] == 1 > LEVELS["strict"]


@pytest.mark.parametrize("source", [duck, lambda rows: rows], ids=["duckdb", "polars"])
def test_levels_are_read_together_as_they_are_one_by_one(seen, free, monkeypatch, source):
    rng = np.random.default_rng(2)
    people = tuple(
        (i, ("strict", "open", "none", None)[rng.integers(4)], HELD[rng.integers(1, 7)])
        for i in range(60)
    )
    view = opened(people, None, source=source).with_personal_budgets(
        budget="consent", privacy_levels={"open": 1, "strict": Fraction(1, 5)}
    )
    keep = iter(range(10**6))
    door = importlib.import_module("discreet.tables.personalized_table")
    monkeypatch.setattr(door, "fresh_key", lambda _: next(keep) // 2)
    for query, cap in (
        (queries.mean("x").limit_contributions(max_rows_per_unit=1), "open"),
        (
            queries.count(by="g").limit_contributions(max_groups_per_unit=1, max_rows_per_unit=1),
            "open",
        ),
        (queries.count_units(by=["g", "consent"], where=col("x") > 0), "open"),
        (queries.sum("x", by="g", keys=["b"]), "open"),
        (queries.sum("x", by="g", keys=queries.keys(["b"], include_other=True)), "open"),
        (queries.median("x", by="g", method="tree"), "strict"),
    ):
        found = []
        for most in (10**6, 0):
            monkeypatch.setattr("discreet.query.personalized_queries._MOST", most)
            seen.clear()
            view.release(query, max_privacy_level=cap)
            found.append([exact.tolist() for exact, _ in seen])
        assert found[0] == found[1]
        assert np.any(found[0][0])


def test_the_law_itself(seen, free):
    """The same by summing up both laws, point by point."""
    laws = []
    for held in (((3, "a"), (3, "a")), ()):
        seen.clear()
        table = opened(((1, "strict", held), (2, "open", ((1, "b"),))), None)
        table.with_personal_budgets(budget="consent", privacy_levels=LEVELS).sum(
            "x", max_privacy_level="open"
        )
        ((exact, noise),) = seen
        points = np.linspace(-(2**26), 2**26, 10001).astype(np.int64)
        laws.append(-np.abs(points - int(exact[0])) / float(noise.scale))
    ratio = np.abs(laws[0] - laws[1]).max()
    assert 0.199999 * (1 - 2**-16) < ratio <= 0.2 * (1 + 1e-12)


def attacked(level, claim, *, broken=False, factors=None):
    """A count without groups, with and without a person of the level."""
    view = opened((), None).with_personal_budgets(budget="consent", privacy_levels=LEVELS)
    made = view._planned([queries.count()], "open")
    made = made if factors is None else replace(made, factors=factors)
    (name,) = {name for plan in made.design.passes for name in plan.aggregates}

    def draw(people, n, seed):
        # The sums as an engine would give them, one for each level.
        tables = {x: [{name: np.array([people.get(x, 0)])}] for x in LEVELS}
        sums, bits = made.combined(tables), seeded_rng(seed)
        return np.array([made.design.noisy(sums, rng=bits)[0][0].values[0] for _ in range(n)])

    scale = float(made.design.questions[0].measurements[0].mechanism.guarantee.event.scale)
    moved = 2 * made.factors[level]  # two rows of each person
    case = AuditCase(
        name=f"personal count from a table, {level}",
        claimed=claim,
        draw=draw,
        left={"strict": 2, "open": 2},
        right={x: 0 if x == level else 2 for x in LEVELS},
        laws=lambda: exact.laplace_pair(0, moved, scale=scale),
        broken=broken,
    )
    return case, audit_case(case, failure_probability=1e-7, samples=1_000, seed=4)


@pytest.mark.parametrize("level", LEVELS)
def test_an_attack_on_a_level(level):
    case, row = attacked(level, discreet.pure_dp(LEVELS[level]))
    assert row.ok, row
    true = exact.epsilon(case.laws(), 1e-9)
    assert true.lower == pytest.approx(float(LEVELS[level]), rel=1e-4)


def test_an_attack_on_forgotten_weights():
    whole = dict.fromkeys(LEVELS, 1 << weights.WEIGHT_BITS)
    _, row = attacked("strict", (0.2, 0.0), broken=True, factors=whole)
    assert row.verdict == "BROKEN", row


def test_who_names_several_levels_has_one(seen, free):
    """And which one is the same in every pass."""
    found = set()
    for _ in range(40):
        seen.clear()
        rows = pl.concat([frame(((1, "strict", ((1, "a"),)),)), frame(((1, "open", ((1, "a"),)),))])
        table = discreet.table(rows, columns=COLUMNS, privacy_unit="who", max_rows_per_unit=2)
        table.with_personal_budgets(budget="consent", privacy_levels=LEVELS).count(
            max_privacy_level="open"
        )
        ((exact, _),) = seen
        found.add(int(exact[0]))
    one = 1 << weights.WEIGHT_BITS
    assert found == {2 * one, 2 * (one // 5)}


def test_rows_that_are_people(ledger):
    people = tuple((i, ("strict", "open", None)[i % 3], ((3, "a"),)) for i in range(3000))
    view = opened(people, ledger, privacy_unit=None).with_personal_budgets(
        budget="consent", privacy_levels=LEVELS
    )
    found = view.count(max_privacy_level="open")
    low, high = found.interval(1 - 1e-9)
    assert low < 1000 * 1.2 < high
    assert high - low < 60
    assert found.guarantee.epsilons() == pytest.approx({"open": 1, "strict": 0.2}, rel=1e-5)
    assert found.guarantee["strict"].epsilon() <= 0.2
    mean = view.mean("x", max_privacy_level="open")
    low, high = mean.interval(1 - 1e-9)
    assert low <= 3 <= high
    assert "strict 0.2" in str(mean)
    assert "own level" in mean.release.privacy_statement
    assert mean.release.title == "mean of x, weighted by level"
    assert "strict 0.2, open 1" in mean.release.query_text
    again = PersonalizedRelease.from_json(found.to_json())
    assert again.value == found.value
    assert again.release.std == found.release.std
    assert again == found
    for wrong in ("{}", "[", found.to_json().replace('release": 1', 'release": 2')):
        with pytest.raises(InvalidArgument):
            PersonalizedRelease.from_json(wrong)


def test_everybody_counts_unless_something_is_known(ledger):
    people = tuple((i, ("strict", "open")[i % 2], ((3, "a"),)) for i in range(200))
    table = opened(people, ledger)
    before = table.account.spent.epsilon()
    found = table.with_personal_budgets(budget="consent", privacy_levels=LEVELS).count()
    assert found.weights == {"strict": 1, "open": 1}
    assert found.guarantee.epsilons() == {"open": 0.2, "strict": 0.2}
    assert isinstance(found.value, int)
    assert table.account.spent.epsilon() == pytest.approx(before + 0.2)


def test_the_account_pays_for_the_most_open(ledger):
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    view = table.with_personal_budgets(budget="consent", privacy_levels=LEVELS)
    for ask_one in (
        lambda: view.count(max_privacy_level="open"),
        lambda: view.by_level(queries.count()),
    ):
        before = table.account.spent.epsilon()
        ask_one()
        assert table.account.spent.epsilon() == pytest.approx(before + 1)


# ── the error before release ─────────────────────────────────────────────────


def test_the_best_cap_is_taken(ledger):
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    view = table.with_personal_budgets(budget="consent", privacy_levels={"strict": 0.1, "open": 1})
    rows = {"strict": 500, "open": 500}
    alike = view.trades(queries.mean("x"), expected_rows=rows, max_difference=0)
    assert [one.max_privacy_level for one in alike] == ["open", "strict"]
    assert alike[0].bias == 0
    assert alike[1].noise > 4 * alike[0].noise
    far = view.trades(queries.mean("x"), expected_rows=rows)
    assert [one.max_privacy_level for one in far] == ["strict", "open"]
    assert view.trades(queries.count(), expected_rows=rows)[0].max_privacy_level == "strict"
    assert view.trades(queries.variance("x"), expected_rows=rows)[1].bias == math.inf
    assert view.mean("x", expected_rows=rows, max_difference=0).weights["strict"] < 0.11
    assert view.mean("x", expected_rows=rows).weights["strict"] == 1
    assert len(view.trades(queries.median("x"), expected_rows=rows)) == 1


def test_the_bias_is_bounded(ledger):
    rng = np.random.default_rng(5)
    menu = {"strict": Fraction(1, 10), "open": 1}
    table = opened(((1, "open", ((3, "a"),)),), ledger)
    view = table.with_personal_budgets(budget="consent", privacy_levels=menu)
    for _ in range(50):
        values = {level: rng.integers(-1, 4, rng.integers(1, 30)) for level in menu}
        rows = {level: len(held) for level, held in values.items()}
        means = [held.mean() for held in values.values()]
        spread = float(np.ptp(means))
        for query in (queries.mean("x"), queries.sum("x"), queries.count()):
            for one in view.trades(query, expected_rows=rows, max_difference=spread):
                w = np.concatenate([np.full(rows[x], one.weights[x]) for x in menu])
                held = np.concatenate(list(values.values()))
                wrong = {
                    "mean": abs((w * held).sum() / w.sum() - held.mean()),
                    "sum": abs(((1 - w) * held).sum()),
                    "count": (1 - w).sum(),
                }[query.kind]
                assert wrong <= one.bias + 1e-9
                if query.kind == "count" and one.max_privacy_level == "open":
                    assert wrong == pytest.approx(one.bias)


def test_large_values_are_rounded_within_the_interval(ledger):
    """Weighted sums beyond 2**30 are divided by a power of two; also where the net power is 0."""
    for upper in (2**29 + 5, 2**30 - 1, 2**40):
        people = pl.DataFrame({"consent": ["strict", "open"] * 50, "pay": [upper - 3] * 100})
        table = discreet.table(
            people,
            columns={
                "consent": COLUMNS["consent"],
                "pay": discreet.integer(lower=0, upper=upper),
            },
            account=ledger.account("pay", limit=discreet.pure_dp(10**9)),
        )
        view = table.with_personal_budgets(
            budget="consent", privacy_levels={"strict": 10**4, "open": 10**5}
        )
        found = view.sum("pay", max_privacy_level="open")
        low, high = found.interval(1 - 1e-9)
        exact = 50 * (upper - 3) * (1 + Fraction(found.weights["strict"]))
        assert low <= exact <= high
        assert found.guarantee["strict"].epsilon() <= 10**4
        assert found.guarantee["strict"].epsilon() > 0.99 * 10**4
        shifts = found.release._estimator.shifts
        assert shifts[0] != 0
