"""What a table releases, as pictures: any range, any rectangle, the plan before."""

import polars as pl
import pytest

import discreet
from discreet import InvalidArgument

PEOPLE = pl.DataFrame({"age": [30, 41, 30, 77] * 50, "sex": ["f", "m", "m", "f"] * 50})


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")
    with discreet.Ledger(f"sqlite:///{folder}/budget.db") as ledger:
        yield discreet.table(
            PEOPLE,
            columns={
                "age": discreet.integer(lower=0, upper=99),
                "sex": discreet.category(["f", "m"], include_other=False),
            },
            account=ledger.account("survey", limit=discreet.pure_dp(100)),
        )


@pytest.fixture(scope="module")
def shown(people):
    return {
        "Release": people.count(by="sex", epsilon=1),
        "ChargedRanges": people.ranges("age", epsilon=1),
        "ChargedGrid": people.ranges(["age", "sex"], epsilon=1),
        "RangePlan": people.plan_ranges("age", epsilon=1),
    }


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Release", "count by sex (epsilon 1)"),
        ("ChargedRanges", "90 times of 100"),
        ("ChargedGrid", "White: none"),
        ("RangePlan", "Error by length of a range, epsilon 1"),
    ],
)
def test_what_a_table_gives_is_drawn(shown, kind, words, tmp_path):
    assert words in discreet.plot(shown[kind], tmp_path / "a.svg", confidence=0.9).svg


@pytest.mark.parametrize("kind", ["Release", "ChargedRanges", "ChargedGrid", "RangePlan"])
def test_all_of_it_in_other_formats_too(shown, kind, tmp_path):
    discreet.plot(shown[kind], tmp_path / "a.png")
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_a_confidence_is_a_probability(shown, tmp_path):
    for kind in shown:
        with pytest.raises(InvalidArgument, match="confidence"):
            discreet.plot(shown[kind], tmp_path / "a.svg", confidence=1)
