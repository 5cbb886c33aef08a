"""k-anonymity: the search against all combinations of levels, the result against its own rows."""

import itertools
from collections import Counter

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument, OutOfDomain, Unsupported
from discreet.disclosure import (
    category_hierarchy,
    disclosure_risk,
    hierarchy_level,
    interval_hierarchy,
    k_anonymize,
    prefix_hierarchy,
)
from discreet.disclosure.generalization_hierarchy import MISSING, OTHER, together

AGES = [32, 45, 27, 19, 31, 25]
AMOUNTS = [75.50, 120.00, 16.75, 85.00, 50.00, 40.50]
SIX = pl.DataFrame({"age": AGES, "amount": AMOUNTS})
YOUNG_OLD = interval_hierarchy([18, 31, 46])

REGIONS = {"Ulm": "south", "Munich": "south", "Kiel": "north", "Jena": "east"}
QUASI = {
    "age": interval_hierarchy(range(0, 101, 10), range(0, 101, 50)),
    "city": category_hierarchy(REGIONS, {"south": "west", "north": "west", "east": "east"}),
    "postcode": prefix_hierarchy(3, keep=[2, 1]),
}
rows = st.tuples(
    st.sampled_from([3, 14, 15, 49, 50, 100, 120, None]),
    st.sampled_from([*REGIONS, "Rome", None]),
    st.sampled_from(["111", "112", "121", "211", "2", None]),
)
tables = st.lists(rows, min_size=6, max_size=25)


def frame(table):
    schema = {"age": pl.Int64, "city": pl.String, "postcode": pl.String}
    return pl.DataFrame(table, schema=schema, orient="row")


def labels(table, levels):
    """The labels of each row, value by value, by the words of the documentation."""

    def age(x, level):
        if x is None:
            return MISSING
        if x > 100:
            return "> 100"
        width = [None, 10, 50][level]
        low = min(x // width * width, 100 - width)
        return f"[{low}, {low + width}{']' if low + width == 100 else ')'}"

    def city(x, level):
        if x is None:
            return MISSING
        for step in QUASI["city"].maps[:level]:
            x = step.get(x, OTHER)
        return x

    def postcode(x, level):
        return MISSING if x is None else x[: [None, 2, 1][level]] + "*"

    makers = [(age, 3), (city, 3), (postcode, 3)]
    return [
        tuple(
            "*" if level == top else x if level == 0 else make(x, level)
            for x, level, (make, top) in zip(row, levels, makers, strict=True)
        )
        for row in table
    ]


def loss_of(table, levels, k):
    """The loss of a node, from the labels alone; None if too many rows are left out."""
    out = labels(table, levels)
    sizes = Counter(out)
    per_level = [
        lambda x, level: [0, 0.1, 0.5, 1][level],
        lambda x, level: {"south": 1 / 3, "west": 2 / 3, OTHER: 1, "*": 1}.get(x, 0),
        lambda x, level: [0, 1 / 3, 2 / 3, 1][level],
    ]
    total = 0.0
    for row, new in zip(table, out, strict=True):
        if sizes[new] < k:
            total += 1
            continue
        for make, old, x, level in zip(per_level, row, new, levels, strict=True):
            if x == MISSING or (old is None and level < 3):
                continue
            outside = x in ("> 100", OTHER) and 0 < level < 3
            total += (1 if outside else make(x, level)) / 3
    return total / len(table), sum(n for n in sizes.values() if n < k)


@settings(max_examples=40)
@given(table=tables, k=st.integers(1, 4), share=st.sampled_from([0, 0.2, 0.5]))
def test_the_optimal_levels_are_the_best_of_all(table, k, share):
    found = k_anonymize(frame(table), quasi_identifiers=QUASI, k=k, suppress=share)
    every = [loss_of(table, levels, k) for levels in itertools.product(range(4), repeat=3)]
    allowed = [loss for loss, lost in every if lost <= share * len(table)]
    levels = tuple(found.levels.values())
    assert found.loss == pytest.approx(min(allowed))
    assert found.loss == pytest.approx(loss_of(table, levels, k)[0])
    assert found.suppressed == loss_of(table, levels, k)[1]


@settings(max_examples=40)
@given(table=tables, k=st.integers(1, 5), method=st.sampled_from(["optimal", "greedy", "local"]))
def test_every_released_row_has_company(table, k, method):
    found = k_anonymize(frame(table), quasi_identifiers=QUASI, k=k, method=method, suppress=0.3)
    shown = Counter(found.frame.select(QUASI.keys()).rows())
    assert all(n >= k for n in shown.values())
    assert found.k == min(shown.values(), default=0) or method == "local"
    assert found.k <= min(shown.values(), default=0)
    assert len(found.frame) + found.suppressed == len(table)
    if method == "local":
        assert found.suppressed == 0


@settings(max_examples=25)
@given(table=tables)
def test_full_domain_rows_are_what_the_levels_say(table):
    found = k_anonymize(frame(table), quasi_identifiers=QUASI, k=2, method="greedy")
    wanted = labels(table, tuple(found.levels.values()))
    assert found.frame.rows() == wanted


@settings(max_examples=25)
@given(table=tables)
def test_local_rows_are_labels_of_their_values(table):
    found = k_anonymize(frame(table), quasi_identifiers=QUASI, k=3, method="local")
    for new, old in zip(found.frame.rows(), table, strict=True):
        for column, label in enumerate(new):
            known = {str(labels([old], (level,) * 3)[0][column]) for level in range(1, 4)}
            assert label in known | {MISSING if old[column] is None else str(old[column])}


def test_local_recoding_loses_less_than_one_level_for_all():
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"age": rng.integers(0, 100, 5000) ** 2 // 100, "sex": rng.choice(list("mf"), 5000)}
    )
    quasi = {
        "age": interval_hierarchy(range(0, 101, 5), range(0, 101, 20)),
        "sex": category_hierarchy(),
    }
    whole, local = (
        k_anonymize(table, quasi_identifiers=quasi, k=20, method=m) for m in ("optimal", "local")
    )
    assert local.loss < whole.loss
    assert local.k >= 20


def test_a_rest_that_is_too_small_takes_in_the_smallest_other_group():
    # Three groups of 5, 4 and 1: the one joins the four at the level above.
    table = pl.DataFrame({"city": ["a"] * 5 + ["b"] * 4 + ["c"]})
    found = k_anonymize(
        table, quasi_identifiers={"city": category_hierarchy()}, k=4, method="local"
    )
    assert Counter(found.frame["city"]) == {"a": 5, "*": 5}


def test_the_published_example_of_one_variable():
    found = k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, keep=["amount"], k=3)
    assert found.risk.sizes.tolist() == [3, 3]
    assert (found.k, found.suppressed) == (3, 0)
    assert found.frame["amount"].to_list() == AMOUNTS


def test_the_published_table_of_two_variables_is_not_3_anonymous():
    # E2, M7: each column alone has classes of 3; together they have 2, 2, 1, 1.
    age = ["31-45", "31-45", "18-30", "18-30", "31-45", "18-30"]
    amount = ["51-100", "51-100", "0-50", "51-100", "0-50", "0-50"]
    both = disclosure_risk(
        pl.DataFrame({"age": age, "amount": amount}), quasi_identifiers=["age", "amount"]
    )
    assert both.sizes.tolist() == [1, 1, 2, 2]
    assert (both.k, both.highest, both.unique) == (1, 1.0, 2)
    for column in ("age", "amount"):
        assert (
            disclosure_risk(
                pl.DataFrame({"age": age, "amount": amount}), quasi_identifiers=[column]
            ).k
            == 3
        )


KINDS = {
    "pandas": lambda table: table.to_pandas(),
    "pandas with an index": lambda table: table.to_pandas().set_index(pd.Index(range(7, 1, -1))),
    "polars": lambda table: table,
    "lazy": lambda table: table.lazy(),
    "pyarrow": lambda table: table.to_arrow(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["optimal", "local"])
def test_frames_of_all_kinds_give_the_same(kind, method):
    table = SIX.with_columns(name=pl.Series(list("abcdef")), sex=pl.Series(list("mmffmf")))
    quasi = {"age": YOUNG_OLD, "sex": category_hierarchy()}
    wanted = k_anonymize(table, quasi_identifiers=quasi, sensitive=["amount"], k=2, method=method)
    found = k_anonymize(
        KINDS[kind](table), quasi_identifiers=quasi, sensitive=["amount"], k=2, method=method
    )
    shown = nw.from_native(found.frame)
    assert shown.columns == ["age", "amount", "sex"]
    assert list(shown.iter_rows()) == wanted.frame.rows()
    assert repr(found) == repr(wanted)


def test_columns_that_are_not_named_are_left_out():
    table = SIX.with_columns(name=pl.Series(list("abcdef")))
    assert k_anonymize(table, quasi_identifiers={"age": YOUNG_OLD}, k=2).frame.columns == ["age"]


def test_an_empty_table_stays_empty():
    found = k_anonymize(SIX.clear(), quasi_identifiers={"age": YOUNG_OLD}, keep=["amount"], k=3)
    assert (len(found.frame), found.k, found.loss) == (0, 0, 0.0)


def test_the_report_tells_risk_and_what_it_is_not():
    told = repr(k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, sensitive=["amount"], k=3))
    assert "k = 3" in told
    assert "at most 0.333" in told
    assert "Not differentially private" in told


def test_progress_is_told():
    said = []
    k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, k=3, progress=said.append)
    assert said[0] == "reading"
    assert said[-1] == "writing"
    assert any("searching" in stage for stage in said)


def test_intervals_take_every_number():
    given = pa.table({"x": [0.0, 5.0, 10.0, -1.0, 11.0, float("nan"), float("inf"), None]})
    step = hierarchy_level(interval_hierarchy([0, 5, 10]), 1)
    names, places = step.labels(nw.from_native(given)["x"])
    wanted = ["[0, 5)", "[5, 10]", "[5, 10]", "< 0", "> 10", MISSING, "> 10", MISSING]
    assert [names[place] for place in places] == wanted


def test_codes_of_many_columns_are_grouped_without_overflow():
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 2**20, 50) for _ in range(6)]
    parts = [np.concatenate([part, part[:10]]) for part in parts]
    found = together(parts, [2**20] * 6)
    rows_of = Counter(zip(*(part.tolist() for part in parts), strict=True))
    assert sorted(found.sizes.tolist()) == sorted(rows_of.values())
    for key, of in zip(zip(*parts, strict=True), found.of, strict=True):
        assert key == tuple(part[found.head[of]] for part in parts)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: interval_hierarchy(), InvalidArgument, "at least one level"),
        (lambda: interval_hierarchy([1, 1]), InvalidArgument, "increasing"),
        (lambda: interval_hierarchy([0, 5, 10], [0, 4, 10]), InvalidArgument, "finer level"),
        (lambda: interval_hierarchy([0, 5, 10], [0, 5]), InvalidArgument, "first and last"),
        (lambda: category_hierarchy({}), InvalidArgument, "empty"),
        (lambda: category_hierarchy({"a": "b"}, {"c": "d"}), InvalidArgument, "every group"),
        (lambda: prefix_hierarchy(3, keep=[3]), InvalidArgument, "below length=3"),
        (lambda: hierarchy_level(interval_hierarchy([0, 1]), 3), InvalidArgument, "at most 2"),
        (
            lambda: k_anonymize([1], quasi_identifiers={"age": YOUNG_OLD}, k=2),
            InvalidArgument,
            "data frame",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={}, k=2),
            InvalidArgument,
            "at least one column",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"x": YOUNG_OLD}, k=2),
            InvalidArgument,
            "does not have",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"age": [1, 2]}, k=2),
            InvalidArgument,
            "interval_hierarchy()",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, k=0),
            InvalidArgument,
            "k must",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, k=7),
            OutOfDomain,
            "at least k rows",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, keep=["age"], k=2),
            InvalidArgument,
            "name each once",
        ),
        (
            lambda: k_anonymize(SIX, quasi_identifiers={"age": YOUNG_OLD}, k=2, method="best"),
            InvalidArgument,
            "'optimal', 'greedy' or 'local'",
        ),
        (
            lambda: disclosure_risk(SIX, quasi_identifiers="age"),
            InvalidArgument,
            "quasi must be a list",
        ),
        (
            lambda: k_anonymize(
                pl.DataFrame({name: [1, 2] for name in "abcdefghi"}),
                quasi_identifiers={
                    name: prefix_hierarchy(9, keep=[3, 2, 1]) for name in "abcdefghi"
                },
                k=2,
            ),
            Unsupported,
            "greedy",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_what_counts_as_equal_looks_equal():
    """A value that differs in its looks alone would be alone in the released table."""
    table = pl.DataFrame(
        {
            "x": [0.0, 0.0, 0.0, -0.0, None, None, float("nan")],
            "t": ["", "", "", "", None, None, None],
        }
    )
    quasi = {"x": interval_hierarchy([-1, 0, 1]), "t": category_hierarchy()}
    found = k_anonymize(table, quasi_identifiers=quasi, k=3)
    assert found.levels == {"x": 0, "t": 0}
    assert Counter(str(row) for row in found.frame.rows()).most_common() in (
        [("(0.0, '')", 4), ("(None, None)", 3)],
        [("(-0.0, '')", 4), ("(nan, None)", 3)],
    )


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_codes_and_truth_values_are_the_same_text_everywhere(kind):
    table = pl.DataFrame({"code": [1, 2, None], "yes": [True, False, None]})
    given = {"polars": table, "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[kind]
    frame = nw.from_native(given, eager_only=True)
    for column, groups, wanted in (
        ("code", {1: "one", 2: "two"}, ["one", "two", MISSING]),
        ("yes", {True: "y", False: "n"}, ["y", "n", MISSING]),
    ):
        names, places = hierarchy_level(category_hierarchy(groups), 1).labels(frame[column])
        assert [names[place] for place in places] == wanted
        names, places = hierarchy_level(category_hierarchy(groups), 0).labels(frame[column])
        assert [names[place] for place in places] == [*map(str, groups), MISSING]


def test_discernibility_by_hand():
    table = pl.DataFrame({"x": list("aaabbc")})
    found = k_anonymize(table, quasi_identifiers={"x": category_hierarchy()}, k=2, suppress=0.2)
    # Classes of 3 and 2, one row left out of six.
    assert found.discernibility == 9 + 4 + 6
    assert found.suppressed == 1
    assert found.loss == pytest.approx(1 / 6)


def test_empty_text_is_not_missing_text():
    assert disclosure_risk(
        pl.DataFrame({"t": ["", None, None]}), quasi_identifiers=["t"]
    ).sizes.tolist() == [
        1,
        2,
    ]
