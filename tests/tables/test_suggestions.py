"""Bounds and limits found privately: charged, sound, and useful."""

from __future__ import annotations

import math
import random
import tomllib
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.data.execute import collect, engine_of
from discreet.data.program import ContributionLimits, compile_program, units
from discreet.data.schema import category
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query._bound_suggestions import (
    CLASSES,
    count_classes,
    covering_range,
    granularity_of,
    limit_choices,
    power_of_two_edges,
    sum_width,
)


@pytest.fixture
def account(tmp_path):
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        yield ledger.account("a", limit=discreet.pure_dp(200))


# ── reading noisy histograms ──────────────────────────────────────────────────────────────────


def test_edges_are_powers_of_two_of_either_sign():
    found, grid = power_of_two_edges(Fraction(-3), Fraction(100))
    assert found[0] == -2
    assert found[-1] == 64
    assert Fraction(0) in found
    assert all(mark in (0, *found) for mark in map(Fraction, (1, 2, 4, 8, -1)))
    assert all((mark / grid).denominator == 1 for mark in found)
    assert power_of_two_edges(Fraction(5), Fraction(9))[0] == [8]
    _, grid = power_of_two_edges(Fraction(-(2**60)), Fraction(2**60))
    assert 2**60 / grid <= 2**53
    with pytest.raises(InvalidArgument):
        power_of_two_edges(Fraction(1), Fraction(1))


@pytest.mark.parametrize("law", [DiscreteLaplace(3), DiscreteGaussian(5), DiscreteLaplace(0.2)])
@pytest.mark.parametrize("many", [1, 2, 30])
def test_sums_of_noise_stay_within_their_width(law, many):
    """Against the exact law of the sum, by convolution; and the bound is not idle."""
    reach = math.ceil(40 * law.std) + 20
    mass = law.pmf(np.arange(-reach, reach + 1))
    total = np.ones(1)
    for _ in range(many):
        total = np.convolve(total, mass)
    places = np.abs(np.arange(len(total)) - len(total) // 2)
    for level in (0.5, 0.95, 0.9999):
        width = sum_width(law, many, level)
        assert total[places > width].sum() <= (1 - level) * (1 + 1e-9)
        assert width <= 12 * law.std * math.sqrt(many) + 10
    assert sum_width(law, 0, 0.9) == 0


def test_covering_without_much_noise():
    quiet = DiscreteLaplace(Fraction(1, 50))
    counts = [0, 5, 0, 900, 1000, 0, 5, 0]
    assert covering_range(counts, quiet, coverage=0.9).first == 3
    assert covering_range(counts, quiet, coverage=0.9).last == 5
    whole = covering_range(counts, quiet, coverage=0.9999)
    assert (whole.first, whole.last) == (1, 7)
    assert whole.outside < 1e-2
    limits = list(map(Fraction, (-8, -2, 0, 1, 2, 4, 8, 16, 32)))
    assert covering_range(counts, quiet, coverage=0.9, limits=limits).first == 2
    far = list(map(Fraction, (-8, -2, 0, 30, 31, 32, 64, 128, 256)))
    assert covering_range(counts, quiet, coverage=0.9, limits=far).first == 3
    mirrored = [-mark for mark in reversed(limits)]
    assert covering_range(counts[::-1], quiet, coverage=0.9, limits=mirrored).last == 6
    empty = covering_range([0] * 8, DiscreteLaplace(10), coverage=0.9)
    assert empty.outside == 1.0
    assert empty.first < empty.last


def test_what_is_said_to_lie_outside_is_true():
    """Noise drawn 300 times: the stated share holds as often as stated, and far more."""
    truth = np.array([0, 0, 30, 4000, 2000, 300, 40, 0, 1, 0])
    law = DiscreteLaplace(10)
    wrong = narrow = 0
    for seed in range(300):
        noisy = (truth + law.sample(len(truth), seeded_rng(seed))).tolist()
        found = covering_range(noisy, law, coverage=0.99)
        outside = truth[: found.first].sum() + truth[found.last :].sum()
        wrong += outside / truth.sum() > found.outside
        assert found.first <= 3
        assert found.last >= 5
        narrow += (found.first, found.last) in {(2, 6), (3, 6), (2, 7), (3, 7), (2, 5), (3, 5)}
    # Exact binomial bound: more than 45 of 300 failures at 5% happen once in 10**9.
    assert wrong <= 45
    assert narrow >= 240


def test_classes_and_choices():
    pairs = [(1, 10), (2, 5), (3, 4), (4, 1), (5, 2), (2**20, 1), (2**30, 1)]
    found = count_classes(pairs).tolist()
    assert found[:4] == [10, 5, 5, 2]
    assert found[-1] == 2
    assert sum(found) == 24
    assert len(found) == CLASSES
    quiet = DiscreteLaplace(Fraction(1, 50))
    made = limit_choices([100, 50, 0, 20, 0], quiet, noise=1.0)
    assert [one.limit for one in made] == [1, 2, 4, 8, 16]
    assert made[0].lost == 50 + 20 * 7
    assert made[3].lost == 0
    assert made[3].noise == 8
    loud = limit_choices([100, 50, 0, 20, 30], DiscreteLaplace(100), noise=1.0)
    assert all(one.lost == 0 for one in loud)  # nothing that noise does not explain


def test_grid():
    assert granularity_of(Fraction(0), Fraction(2**16)) == 2
    assert granularity_of(Fraction(-1), Fraction(1)) == Fraction(1, 2**14)


# ── the whole way ─────────────────────────────────────────────────────────────────────────────


def people(n=4000):
    rng = random.Random(3)
    rows = []
    for person in range(n):
        rows += [
            {"p": person, "income": max(rng.gauss(30_000, 9_000), 0), "sex": rng.choice("fm")}
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]
    rows += [{"p": 0, "income": 1e30, "sex": "f"}] * 500
    return pl.DataFrame(rows)


@pytest.mark.parametrize("form", ["frame", "file"])
def test_suggestions_for_a_table(account, form, tmp_path):
    source = people()
    if form == "file":
        source.write_csv(tmp_path / "people.csv")
        source = tmp_path / "people.csv"
    table = discreet.table(
        source,
        privacy_unit="p",
        max_rows_per_unit=4,
        columns={"sex": category(["f", "m"])},
        account=account,
    )
    before = account.remaining
    # So much epsilon that no noise but zero is drawn, but for one run in 10**10.
    found = table.suggest_bounds("income", epsilon=32)
    assert before - account.remaining == 32
    assert found.lower == 0  # few are below 4096, but zero costs next to nothing
    assert found.upper == 65536
    assert found.outside < 0.05
    assert "65,536" in str(found)
    line = tomllib.loads(found.toml)["income"]
    discreet.real(**{k: v for k, v in line.items() if k != "kind"})
    limits = table.suggest_contribution_limits(by="sex", epsilon=64, planned_epsilon=0.05)
    assert before - account.remaining == 96
    assert limits.max_rows_per_unit == 4
    assert limits.max_groups_per_unit == 2
    assert tomllib.loads(limits.toml) == {"max_rows_per_unit": 4, "max_groups_per_unit": 2}
    assert "  4 rows: " in str(limits)
    assert "1 rows" not in str(limits)
    assert [entry.label for entry in account.history if entry.label][-1] == "contribution limits"
    with pytest.raises(BudgetExceeded):
        table.suggest_bounds("income", epsilon=1000)


def test_rho_and_rows_without_a_unit(tmp_path):
    frame = pl.DataFrame({"x": [float(i % 50) - 25 for i in range(5000)]})
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        account = ledger.account(
            "z", limit=discreet.zcdp(1000, relation=NeighboringRelation.REPLACE_ONE)
        )
        table = discreet.table(
            frame, columns={}, account=account, relation=NeighboringRelation.REPLACE_ONE
        )
        found = table.suggest_bounds("x", rho=500, outermost=(-1000, 1000))
        assert (found.lower, found.upper) == (-32, 32)
        assert found.guarantee.rdp(2.0) == pytest.approx(1000)
        with pytest.raises(InvalidArgument, match="unit"):
            table.suggest_contribution_limits(rho=0.1)


def test_refusals(account):
    table = discreet.table(
        people(20), privacy_unit="p", max_rows_per_unit=1, columns={}, account=account
    )
    for make in (
        lambda: table.suggest_bounds("nothing", epsilon=1),
        lambda: table.suggest_bounds("income", epsilon=1, coverage=1),
        lambda: table.suggest_bounds("income", epsilon=1, outermost=(1, 0)),
        lambda: table.suggest_bounds("income"),
        lambda: table.suggest_contribution_limits(epsilon=1, planned_epsilon=0),
        lambda: discreet.table(people(20), columns={}).suggest_bounds("income", epsilon=1),
    ):
        with pytest.raises(InvalidArgument):
            make()
    assert account.remaining == 200


def test_one_unit_moves_one_count_of_each_histogram():
    """Over all neighbors: every unit is in one bin and one class, whatever its rows."""
    rng = random.Random(5)
    frame = pl.DataFrame(
        {
            "p": [rng.choice([None, 1, 2, 3, 4]) for _ in range(40)],
            "k": [rng.choice(["a", "b", "c", None]) for _ in range(40)],
        }
    )
    plan = compile_program(
        schema={"k": category(["a", "b"])},
        aggregates={"n": units()},
        unit="p",
        by={"k": discreet.col("k")},
    )

    def measured(rows):
        for make in (lambda f: f, lambda f: f.to_pandas()):
            source = discreet.table(
                make(rows), privacy_unit="p", max_rows_per_unit=1, columns={}
            )._source
            spread = engine_of(source).spread(plan)
            yield [count_classes(pairs).tolist() for pairs in spread]

    whole, same = measured(frame)
    assert whole == same
    for gone in (1, 2, 3, 4):
        for before, after in zip(
            whole, next(measured(frame.filter(pl.col("p") != gone))), strict=True
        ):
            moved = [a - b for a, b in zip(before, after, strict=True)]
            assert max(moved) == sum(moved) == 1
            assert min(moved) == 0


def test_the_histogram_of_bounds_counts_each_unit_once(monkeypatch, account):
    seen = {}

    def spy(plan, **rest):
        seen["plan"] = plan
        seen["table"] = collect(plan, **rest)
        return seen["table"]

    monkeypatch.setattr("discreet.data.execute.collect", spy)
    table = discreet.table(
        people(50), privacy_unit="p", max_rows_per_unit=3, columns={}, account=account
    )
    table.suggest_bounds("income", epsilon=1)
    assert seen["plan"].limits == ContributionLimits(max_rows_per_unit=1)
    assert seen["plan"].reach("units").l1 == 1
    assert seen["table"].columns["units"].sum() == 50


def test_only_numbers_have_bounds(account):
    table = discreet.table(
        pl.DataFrame({"sex": ["f", "m"]}),
        columns={"sex": discreet.category(["f", "m"])},
        account=account,
    )
    before = account.remaining
    with pytest.raises(InvalidArgument, match="'sex' is declared as category"):
        table.suggest_bounds("sex", epsilon=1)
    assert account.remaining == before
