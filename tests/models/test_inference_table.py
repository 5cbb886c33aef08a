"""The printed table of coefficients: numbers of Student's and the normal distribution, in words."""

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.core.errors import InvalidArgument
from discreet.models import InferenceTable

VALUES, ERRORS = np.array([2.5, -0.3, 17.0]), np.array([0.5, 0.4, np.inf])


def table(**changes):
    chosen = {
        "model": "Private linear regression",
        "terms": (("age",), ("sex = f",), ("rare",)),
        "coefficients": VALUES,
        "standard_errors": ERRORS,
        **changes,
    }
    return InferenceTable(**chosen)


@pytest.mark.parametrize("freedom", [4.0, 300.0, np.inf])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_and_p_values_are_those_of_scipy(freedom, confidence):
    made = table(degrees_of_freedom=freedom)
    known = stats.norm if np.isinf(freedom) else stats.t(freedom)
    for row, value, error, p in zip(
        made.rows(confidence), VALUES[:2], ERRORS[:2], made.p_values[:2], strict=False
    ):
        low, high = known.interval(confidence)
        assert row["low"] == pytest.approx(value + low * error)
        assert row["high"] == pytest.approx(value + high * error)
        assert p == pytest.approx(2 * known.sf(abs(value / error)), rel=1e-9)


def test_what_is_not_determined_says_so_everywhere():
    made = table()
    assert made.rows()[2]["low"] == -np.inf
    assert made.p_values[2] == 1.0
    assert "rare" in made.as_text()
    assert "not determined" in made.as_text()
    assert "17" not in made.as_text()
    assert "<td>not determined</td>" in made.to_html()
    assert "17" not in made.to_html()


def test_frames_have_tests_and_rows_have_the_columns_of_any_result():
    made = table()
    assert list(made.rows()[0]) == ["term", "value", "std", "low", "high"]
    names = ["term", "value", "std", "statistic", "p_value", "low", "high"]
    assert list(made.to_pandas().columns) == made.to_polars().columns == names
    assert made.to_csv().splitlines()[0] == ",".join(names)
    assert made.to_pandas(0.5)["low"][0] > made.to_pandas()["low"][0]


def test_the_text_has_facts_estimand_notes_and_the_cost():
    made = table(
        estimand="slopes of least squares " * 8,
        facts=(("Rows", "about 5,000"),),
        notes=("one note <of> many words " * 8,),
        guarantee=discreet.pure_dp(1),
        degrees_of_freedom=7.0,
    )
    text = made.as_text(0.9)
    assert "(epsilon 1)" in text.splitlines()[0]
    assert "Rows: about 5,000" in text
    assert "[0.05" in text
    assert "P>|t|" in text
    assert max(map(len, text.splitlines())) <= 78
    assert str(made) == repr(made) == made.as_text()
    assert "&lt;of&gt;" in made.to_html()


def test_several_outputs_have_two_keys():
    made = table(key_columns=("output", "term"), terms=(("y", "age"), ("y", "sex"), ("z", "age")))
    assert made["y", "age"] == 2.5
    assert "z, age" in made.as_text()


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgument, match="one length"):
        table(coefficients=np.zeros(2))
    with pytest.raises(InvalidArgument, match="confidence"):
        table().rows(1.0)
