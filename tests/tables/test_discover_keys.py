"""Private keys: from the table to the release, as keys of questions; small groups folded."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import polars as pl
import pytest

import discreet
from discreet import col, query
from discreet.core.errors import BudgetExceeded, InvalidArgument, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data.schema import OTHER
from discreet.mechanisms.partition_selection import partition_selection
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.query._estimate import SumEstimator
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query.key_sets import KeySet
from discreet.report import release_report as page
from discreet.tables.discover_keys import release_keys

SECRET = "CANARY-5518"
COUNTS = {"Ulm": 300, "Rome": 200, "Ghent": 150, "Åbo": 120, "Paris": 40}


def frame():
    rows, person = [], 0
    for city, many in COUNTS.items():
        for _ in range(many):
            rows += [{"p": person, "city": city, "sex": "fm"[person % 2], "x": 3}] * 3
            person += 1
    rows += [{"p": person, "city": SECRET, "sex": "f", "x": 9}] * 50
    rows += [{"p": person + i, "city": None, "sex": "f", "x": 1} for i in range(1, 200)]
    return pl.DataFrame(rows)


def columns():
    return {
        "city": discreet.text(),
        "sex": discreet.category(["f", "m"], include_other=False),
        "x": discreet.integer(lower=0, upper=9),
    }


@pytest.fixture
def table(ledger):
    account = ledger.account("a", limit=discreet.approx_dp(200, 1e-3))
    return discreet.table(
        frame(), privacy_unit="p", max_rows_per_unit=2, columns=columns(), account=account
    )


# With so much epsilon no noise but zero is drawn, but for one run in 10**10.
SURE = {"epsilon": 32, "delta": 1e-12}


def test_keys_with_their_counts(table):
    found = table.discover_keys("city", max_groups_per_unit=1, method="laplace", **SURE)
    assert found.keys == tuple((city,) for city in sorted(COUNTS, key=str.encode))
    assert found.value == tuple(COUNTS[city] for (city,) in found.keys)
    assert found.key_columns == ("city",)
    assert found == discreet.Release.from_json(found.to_json())
    assert SECRET not in found.to_json()
    assert "1 group is used of each" in found.privacy_statement
    assert table.account.spent == found.guarantee


def test_the_price_is_told_at_a_delta_that_has_one(table):
    found = table.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-4)
    assert "epsilon 1 at delta 0.0001" in str(found)
    assert "epsilon 1 at delta 1e-06" in str(
        table.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-6)
    )


def test_nothing_is_found(table, tmp_path):
    """Everybody alone: an empty release is a release, too."""
    lonely = pl.DataFrame({"p": range(9), "city": [f"{SECRET} {i}" for i in range(9)]})
    alone = discreet.table(
        lonely,
        privacy_unit="p",
        max_rows_per_unit=1,
        columns={"city": discreet.text()},
        account=table.account,
    )
    found = alone.discover_keys("city", max_groups_per_unit=1, **SURE)
    assert found.keys == found.value == found.std == ()
    assert found.interval() == ((), ())
    assert found.rows() == []
    assert found == discreet.Release.from_json(found.to_json())
    assert "none" in str(found)
    report = page.ReleaseReport(
        title="t", releases=(found,), guarantee=found.guarantee, account="charged"
    )
    texts = [page.as_html(report), page.as_csv(report.releases), page.as_json(report), str(found)]
    assert not any(SECRET in text for text in texts)
    discreet.plot(found, tmp_path / "none.svg")
    with pytest.raises(InvalidArgument, match="find none"):
        alone.count(by="city", keys=found, epsilon=1)


def test_several_columns_and_a_condition(table):
    found = table.discover_keys(
        ["sex", "city"], max_groups_per_unit=1, where=col("x") < 5, method="laplace", **SURE
    )
    assert found.key_columns == ("sex", "city")
    assert ("f", "Ulm") in found.keys
    assert len(found.keys) == 2 * len(COUNTS)
    assert sum(found.value) == sum(COUNTS.values())


def test_a_minimum_hides_small_keys(table):
    found = table.discover_keys(
        "city", max_groups_per_unit=1, minimum=130, method="laplace", **SURE
    )
    assert {key for (key,) in found.keys} == {"Ulm", "Rome", "Ghent"}
    assert dict(zip(found.keys, found.value, strict=True))[("Ulm",)] == 300


@dataclass
class Receipts:
    """An account that takes any bits: for simulations."""

    receipt: object = None

    @contextlib.contextmanager
    def reserve(self, guarantee, **_):
        yield self


def test_the_release_is_the_mechanism_on_counts_of_units(table):
    """Bit by bit: one key for the choice of groups, then the noise of each key in their order."""
    mechanism = partition_selection(groups=1, epsilon=0.5, delta=1e-3, method="laplace")
    free = replace(table, account=Receipts())
    shown = []
    for seed in range(20):
        found = release_keys(free, by="city", mechanism=mechanism, where=None, rng=seeded_rng(seed))
        names = sorted([*COUNTS, SECRET], key=str.encode)
        bits = seeded_rng(seed)
        bits.words(2)
        places, noisy = mechanism.release([COUNTS.get(n, 1) for n in names], rng=bits)
        assert found.keys == tuple((names[place],) for place in places)
        assert found.value == tuple(noisy.tolist())
        shown += [key for (key,) in found.keys]
    assert SECRET not in shown
    assert shown.count("Ulm") == 20


def test_found_keys_are_keys(table):
    found = table.discover_keys("city", max_groups_per_unit=1, method="laplace", **SURE)
    asked = [query.count(by="city", keys=found), query.mean("x", by="city", keys=found)]
    counts, means = table.release(asked, epsilon=64)
    assert counts.keys == found.keys
    assert counts.value == tuple(2 * COUNTS[city] for (city,) in found.keys)
    assert all(abs(mean - 3) < 0.1 for mean in means.value)
    whole = table.count(by="city", keys=discreet.keys(found, include_other=True), epsilon=32)
    assert whole.keys == (*found.keys, (OTHER,))
    assert whole.value[-1] == 2 + 199
    with pytest.raises(InvalidArgument, match="by is"):
        table.count(by="sex", keys=found, epsilon=1)


def test_keys_from_many_sources(tmp_path):
    listed = KeySet(keys=(("a",), ("b",)))
    assert discreet.keys(["a", ("b",)]) == listed
    assert discreet.keys(listed, include_other=True) == replace(listed, include_other=True)
    public = pl.DataFrame({"region": ["n", "s", "n", None], "year": [1, 2, 1, 3]})
    both = discreet.keys(public, columns=["region", "year"])
    assert both == KeySet(keys=(("n", 1), ("s", 2)), key_columns=("region", "year"))
    (tmp_path / "k.csv").write_text('region,year\n"a, b",1\nc,\n')
    assert discreet.keys(tmp_path / "k.csv", columns=["region"]).keys == (("a, b",), ("c",))
    public.write_parquet(tmp_path / "k.parquet")
    assert discreet.keys(tmp_path / "k.parquet", columns="region").keys == (("n",), ("s",))
    for wrong in ("a", 3, tmp_path / "k.csv"):
        with pytest.raises(InvalidArgument):
            discreet.keys(wrong)
    for wrong in (tmp_path / "none.csv", tmp_path, 3):
        with pytest.raises(InvalidArgument):
            discreet.keys(wrong, columns=["region"])
    with pytest.raises(InvalidArgument, match="by"):
        query.count(keys=["a"])


def test_what_it_costs(ledger):
    settings = {"privacy_unit": "p", "max_rows_per_unit": 1, "columns": columns()}
    pure = discreet.table(
        frame(), account=ledger.account("p", limit=discreet.pure_dp(5)), **settings
    )
    with pytest.raises(Unsupported):
        pure.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-6)
    small = ledger.account("s", limit=discreet.approx_dp(1, 1e-6))
    short = discreet.table(frame(), account=small, **settings)
    with pytest.raises(BudgetExceeded):
        short.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-5)
    short.discover_keys("city", max_groups_per_unit=1, epsilon=1, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        short.discover_keys("city", max_groups_per_unit=1, epsilon=0.1, delta=1e-7)
    basic = discreet.table(
        frame(), account=ledger.account("b", limit=discreet.approx_dp(9, 1e-4)), **settings
    )
    basic.discover_keys("city", max_groups_per_unit=1, method="laplace", epsilon=1, delta=1e-6)
    found = basic.discover_keys("city", max_groups_per_unit=20, epsilon=1, delta=1e-6)
    assert "laplace" in found.mechanism
    # Gaussian noise would be less, but this account adds epsilons by now.
    with pytest.raises(BudgetExceeded, match="concentrated"):
        basic.discover_keys(
            "city", max_groups_per_unit=20, epsilon=1, delta=1e-6, method="gaussian"
        )
    swap = discreet.table(
        frame(),
        account=ledger.account(
            "r", limit=discreet.approx_dp(3, 1e-5, relation=NeighboringRelation.REPLACE_ONE)
        ),
        relation=NeighboringRelation.REPLACE_ONE,
        **settings,
    )
    found = swap.discover_keys("city", max_groups_per_unit=2, rho=0.1, delta=1e-6)
    assert found.guarantee.relation is NeighboringRelation.REPLACE_ONE
    with pytest.raises(RelationMismatch):
        found.guarantee + discreet.pure_dp(1)


def test_refusals(table):
    for make in (
        lambda: table.discover_keys("city", **SURE),
        lambda: table.discover_keys("city", max_groups_per_unit=1, epsilon=1),
        lambda: table.discover_keys("city", max_groups_per_unit=1, delta=1e-6),
        lambda: table.discover_keys("nothing", max_groups_per_unit=1, **SURE),
        lambda: table.discover_keys(None, max_groups_per_unit=1, **SURE),
        lambda: table.discover_keys("city", max_groups_per_unit=0.5, **SURE),
        lambda: replace(table, account=None).discover_keys("city", max_groups_per_unit=1, **SURE),
        lambda: table.count(by="city", keys=[], epsilon=1),
    ):
        with pytest.raises(InvalidArgument):
            make()
    assert not table.account.history or table.account.remaining > 0


# ── small groups folded ───────────────────────────────────────────────────────────────────────


def released(table, values, law, *, kind="count", exponent=0, shift=0):
    keys = tuple((f"k{i}",) for i in range(len(values)))
    scale = SumEstimator(kind=kind, lower=0, upper=1, exponent=exponent, shifts=(shift,))
    part = NoisyIntegers(name="rows", values=tuple(values), noise=law)
    found = table.count(epsilon=1)
    return replace(found, _names=("k",), _keys=keys, _estimator=scale, _parts=(part,))


def test_small_groups_become_one(table):
    law = DiscreteLaplace(2)
    release = released(table, [50, 3, -1, 70, 8], law)
    folded = release.merge_small_groups(below=10)
    assert folded.keys == (("k0",), ("k3",), (OTHER,))
    assert folded.value == (50, 70, 10)
    assert folded.std[2] == pytest.approx(math.sqrt(3) * law.std)
    assert [row["k"] for row in folded.rows()] == ["k0", "k3", OTHER]
    low, high = folded.interval(0.9)
    assert low[2] < 10 < high[2]
    assert (low[0], high[0]) == (release.interval(0.9)[0][0], release.interval(0.9)[1][0])
    assert release.merge_small_groups(below=-5).keys == release.keys
    everything = release.merge_small_groups(below=1000)
    assert everything.value == (130,)


def test_a_rest_is_joined(table):
    found = table.count(
        by="city", keys=discreet.keys(["Ulm", "Paris"], include_other=True), epsilon=32
    )
    folded = found.merge_small_groups(below=100)
    assert folded.keys == (("Ulm",), (OTHER,))
    assert folded.value == (600, sum(found.value) - 600)


def test_the_interval_of_the_merged_group_holds(table):
    """Groups chosen by their own noise: the sum of the truths is inside, as often as stated."""
    law, n = DiscreteLaplace(5), 40
    truth = [10] * n
    outside = naive = 0
    release = released(table, truth, law)
    for seed in range(400):
        noisy = [
            t + z for t, z in zip(truth, law.sample(n, seeded_rng(seed)).tolist(), strict=True)
        ]
        folded = reread(release, noisy, law).merge_small_groups(below=10)
        k = len(folded.merged)
        low, high = folded.interval(0.95)
        outside += not low[-1] <= 10 * k <= high[-1]
        naive += abs(folded.value[-1] - 10 * k) > 1.96 * folded.std[-1]
    assert outside == 0
    assert naive > 200  # an interval that ignores the choice would be wrong most of the time


def reread(release, values, law):
    part = NoisyIntegers(name="rows", values=tuple(values), noise=law)
    return replace(release, _parts=(part,))


def test_sums_on_a_grid(table):
    release = released(
        table, [4, 400], DiscreteLaplace(Fraction(1, 50)), kind="sum", exponent=-2, shift=3
    )
    folded = release.merge_small_groups(below=100)
    assert folded.value == (800, 8)
    low, high = folded.interval(0.9)
    assert low[1] <= 8 - 2 < 8 + 2 <= high[1]


def test_what_cannot_be_folded(table):
    with pytest.raises(Unsupported, match="hidden keys"):
        table.discover_keys(
            "city", max_groups_per_unit=1, epsilon=1, delta=1e-6
        ).merge_small_groups(below=100)
    mean = table.mean("x", by="sex", epsilon=1)
    with pytest.raises(Unsupported):
        mean.merge_small_groups(below=3)
    with pytest.raises(Unsupported):
        table.count(by="sex", epsilon=1).map(sum).merge_small_groups(below=3)
    with pytest.raises(InvalidArgument):
        table.count(epsilon=1).merge_small_groups(below=3)
    with pytest.raises(InvalidArgument):
        table.count(by="sex", epsilon=1).merge_small_groups(below=math.nan)
