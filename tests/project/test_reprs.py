"""What a session shows of each result: what it is, its guarantee and its error, in few lines."""

import datetime as dt

import numpy as np
import pytest

import discreet
from discreet import local, query

DAY = local.integers(lower=0, upper=63)
MEAN = local.best_mean_randomizer(epsilon=1, lower=0, upper=10)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (discreet.integer(lower=0, upper=9), "integer(lower=0, upper=9)"),
        (
            discreet.real(lower=0, upper=1, granularity=0.25, missing=0.5),
            "real(lower=0, upper=1, granularity=0.25, missing=0.5)",
        ),
        (
            discreet.category(["f", "m"], include_other=False),
            "category(['f', 'm'], include_other=False)",
        ),
        (
            discreet.category(range(99)),
            "category([0, 1, 2, 3, 4, 5, 6, 7, ...], include_other=True)",
        ),
        (
            discreet.date(lower=dt.date(2020, 2, 29), upper=dt.date(2021, 1, 1)),
            "date(2020-02-29 to 2021-01-01, by day)",
        ),
        (discreet.boolean(missing=True), "boolean(missing=True)"),
        (discreet.text(), "text()"),
        (query.mean("age", by="sex"), "Query('mean of age by sex')"),
        (query.count(name="People"), "Query('People')"),
        (MEAN, "balanced(Guarantee(epsilon 1, NeighboringRelation.LOCAL), reports of 1 bytes)"),
        (
            discreet.gaussian(sensitivity=1, rho=0.1),
            (
                "gaussian(rho 0.1, add or remove one unit; std 2.236; on integers with sigma "
                "2.23606798)"
            ),
        ),
        (
            local.Aggregator(MEAN).estimate(),
            "Mean of 0 reports (epsilon 1)\n  5  (95% between 0 and 10)",
        ),
    ],
)
def test_in_one_line(shown, words):
    assert repr(shown) == words


@pytest.mark.parametrize(
    "shown",
    [
        discreet.plan_ranges(64, epsilon=1),
        local.plan_collection(DAY, "all", epsilon=1, expected_clients=1000),
        local.hierarchical_histogram(domain=DAY, epsilon=1),
        local.haar_wavelet(domain=DAY, epsilon=1),
        local.square_wave(cells=16, epsilon=1),
        local.multidimensional_mean(columns={"a": (0, 1), "b": (0, 1)}, epsilon=1),
        discreet.compare_bounded_noise(lower=0, upper=10, sensitivity=1, epsilon=1),
        discreet.laplace(sensitivity=1, epsilon=1).certify(),
        discreet.plan_ranges(64, epsilon=1).best.release(np.zeros(64, dtype=int)).nonnegative(),
        local.Aggregator(local.square_wave(cells=16, epsilon=1)).add(b"").estimate(),
        local.Aggregator(local.heavy_hitters(length=1, epsilon=4)).estimate(),
        local.AggregatorState(None, local.CollectionSpec(randomizer=MEAN)),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_a_plan_shows_its_words_and_not_its_insides(shown):
    assert repr(shown) == str(shown)
    assert "Fraction(" not in repr(shown)
    assert "array(" not in repr(shown)
    assert max(map(len, repr(shown).splitlines())) < 200


def test_a_release_is_a_table_in_a_notebook(tmp_path):
    frame = tmp_path / "people.csv"
    frame.write_text("sex,age\n" + "<f>,30\nm,40\n" * 20, encoding="utf-8")
    with discreet.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        table = discreet.table(
            frame,
            columns={
                "sex": discreet.category(["<f>", "m"], include_other=False),
                "age": discreet.integer(lower=0, upper=99),
            },
            account=ledger.account("a", limit=discreet.pure_dp(9)),
        )
        count, ages, middle = table.release(
            [
                query.count(by="sex"),
                query.histogram("age"),
                query.median("age", method="exponential"),
            ],
            epsilon=3,
        )
    low, high = count.interval()
    shown = count._repr_html_()
    assert "<td>&lt;f&gt;</td>" in shown
    assert f"<td>{count.value[0]}</td><td>{low[0]:g}</td><td>{high[0]:g}</td>" in shown
    assert "epsilon 1, add or remove one unit" in shown
    assert ages._repr_html_().count("<tr>") == 21
    assert "... and 80 more" in ages._repr_html_()
    assert "<td></td><td></td></tr>" in middle._repr_html_()
    assert "<pre>" in count.map(np.sum)._repr_html_()
