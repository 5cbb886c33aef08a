"""Releases of many tables: they agree, cover, and can be stored."""

import json
import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet
from discreet import MarginalRelease, col, seeded_rng
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.marginals import plan as planning
from discreet.marginals.counting import count_tables
from discreet.marginals.design import MarginalDesign, measured
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.tables.marginals import ChargedMarginalRelease

PEOPLE = 500
GENERATOR = np.random.default_rng(3)
ROWS = pd.DataFrame(
    {
        "person": np.repeat(np.arange(PEOPLE), 10),
        "site": GENERATOR.choice(list("abcdef"), PEOPLE * 10),
        "sex": GENERATOR.choice(["f", "m"], PEOPLE * 10),
        "age": GENERATOR.integers(0, 100, PEOPLE * 10),
        "ill": GENERATOR.integers(0, 2, PEOPLE * 10).astype(bool),
    }
)
COLUMNS = {
    "site": discreet.category(list("abcdef")),
    "sex": discreet.category(["f", "m"], include_other=False),
    "age": discreet.integer(0, 120),
    "ill": discreet.boolean(),
    "open": discreet.text(),
}
ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE


def opened(rows=2, relation=ADD, limit=10**6, source=ROWS, **limits):
    account = discreet.Ledger("memory://").account(
        "one", limit=discreet.approx_dp(limit, 0.1, relation=relation)
    )
    return discreet.table(
        source,
        columns={name: one for name, one in COLUMNS.items() if name != "open"},
        privacy_unit="person",
        max_rows_per_unit=rows,
        account=account,
        relation=relation,
        **limits,
    )


AMOUNTS = {
    "pure": {"epsilon": 1},
    "rho": {"rho": 0.1},
    "approximate": {"epsilon": 1, "delta": 1e-9},
}
BINS = {"age": col("age").cut([30, 60]), "site": "site", "sex": "sex", "ill": "ill"}


@pytest.fixture(scope="module", params=list(AMOUNTS))
def released(request):
    return opened().marginals(2, columns=BINS, **AMOUNTS[request.param])


def test_all_tables_agree(released):
    names = [column.name for column in released.columns]
    for by in combinations(names, 2):
        table = released.table(by)
        for axis, name in enumerate(by):
            kept = by[1 - axis]
            assert table.cells.sum(axis=axis) == pytest.approx(released.table([kept]).cells)
            assert name in [column.name for column in table.columns]
    for name in names:
        assert released.table([name]).cells.sum() == pytest.approx(released.total)


def test_answers_are_sums_of_cells(released):
    table = released.table(["age", "sex"])
    assert released.answer({"sex": "f", "age": ("< 30", "[30, 60)")}) == pytest.approx(
        table["< 30", "f"] + table["[30, 60)", "f"]
    )
    assert released.answer({}) == pytest.approx(released.total)
    assert released.answer_std({"sex": "f"}) == pytest.approx(float(released.table(["sex"]).std[0]))
    low, high = released.answer_interval({"sex": ["f", "m"]})
    assert low < released.total < high
    whole = released.table([])
    assert whole.value == pytest.approx(released.total)
    assert released.answer_std({"sex": ["f", "m"]}) == pytest.approx(whole.std)


def test_simultaneous_intervals_are_wider(released):
    table = released.table(["site", "sex"])
    alone, all_at_once = table.interval(0.95), table.interval(0.95, simultaneous=True)
    assert np.all(all_at_once[0] < alone[0])
    assert np.all(all_at_once[1] > alone[1])
    every = released.rows(simultaneous=True)
    widest = [row["high"] - row["value"] for row in every if row["table"] == "site, sex"]
    assert min(widest) > (all_at_once[1] - table.cells.ravel()).max() * 0.999


def test_stored_releases_answer_as_before(released):
    text = released.to_json()
    for kind in (ChargedMarginalRelease, MarginalRelease):
        again = kind.from_json(text)
        assert again.rows() == released.rows()
        assert again.answer({"sex": "f"}) == released.answer({"sex": "f"})
        assert again.guarantee == released.guarantee
    assert str(ChargedMarginalRelease.from_json(text)) == str(released)
    assert pickle.loads(pickle.dumps(released)).rows() == released.rows()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(discreet_marginals=2),
        lambda c: c["noise"].pop(),
        lambda c: c["measured"].reverse(),
        lambda c: c["places"].pop(0),
        lambda c: c["tables"].append([99]),
        lambda c: c["tables"].append([2, 1]),
        lambda c: c["tables"].append([0, 1, 2]),
        lambda c: c["columns"][0]["labels"].append("new"),
        lambda c: c["columns"][0].update(chain=[1, 2]),
        lambda c: c.update(max_rows_per_unit=0),
        lambda c: c.pop("guarantee"),
        lambda c: c["noise"].__setitem__(0, {"law": "discrete gaussian", "variance": "-1/2"}),
    ],
)
def test_a_text_whose_parts_do_not_fit_is_refused(change):
    released = opened().marginals([["site", "sex"], ["ill"]], rho=0.1)
    content = json.loads(released.to_json())
    change(content)
    with pytest.raises((InvalidArgument, discreet.Unsupported)):
        MarginalRelease.from_json(json.dumps(content))


def test_a_stored_release_without_a_receipt_is_refused_as_one_of_a_table():
    content = json.loads(opened().marginals([["site"]], rho=0.1).to_json())
    del content["release"]
    with pytest.raises(InvalidArgument, match="table has released"):
        ChargedMarginalRelease.from_json(json.dumps(content))


# ── One pass ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "csv", "text unit"])
def test_tables_agree_although_people_have_more_rows_than_are_used(kind, tmp_path):
    # Separate questions keep different rows: their tables differ even without noise.
    source = ROWS
    if kind == "polars":
        source = pl.from_pandas(ROWS)
    elif kind == "parquet":
        source = tmp_path / "rows.parquet"
        pl.from_pandas(ROWS).write_parquet(source)
    elif kind == "csv":
        source = tmp_path / "rows.csv"
        ROWS.to_csv(source, index=False)
    elif kind == "text unit":
        source = ROWS.assign(person=ROWS.person.map(lambda n: f"person {n}"))
    table = opened(source=source)
    released = table.marginals([["site", "sex"], ["sex", "ill"]], epsilon=10**5)
    assert released.total == pytest.approx(1000)
    whole = {by: released.table(by).cells for by in (("site",), ("sex",), ("site", "sex"))}
    assert np.array_equal(np.rint(whole["site", "sex"]).sum(1), np.rint(whole["site",]))
    assert np.array_equal(np.rint(whole["site", "sex"]).sum(0), np.rint(whole["sex",]))
    if kind == "pandas":
        both = [discreet.query.count(by="sex"), discreet.query.count(by=["site", "sex"])]
        seen = []
        for _ in range(3):
            alone, crossed = table.release(both, epsilon=10**5)
            seen.append(np.array_equal(np.reshape(crossed.value, (7, 2)).sum(0), alone.value))
        assert not all(seen)


def test_a_filter_and_own_limits_are_those_of_the_release():
    table = opened(rows=2)
    released = table.marginals(
        [["site"]], where=col("sex") == "f", max_rows_per_unit=10, epsilon=10**5
    )
    assert released.total == pytest.approx((ROWS.sex == "f").sum())
    exact = ROWS[ROWS.sex == "f"].site.value_counts().sort_index()
    assert np.array_equal(np.rint(released.table(["site"]).cells)[:6], exact)
    assert "at most 10 rows" in released.privacy_statement


def test_wide_tables_are_packed_into_several_integers():
    names = [f"c{i}" for i in range(30)]
    frame = pd.DataFrame({name: GENERATOR.integers(0, 11, 300) for name in names})
    table = discreet.table(
        frame,
        columns={name: discreet.integer(0, 10) for name in names},
        budget=discreet.approx_dp(10**7, 0.1),
    )
    plan = table.plan_marginals([[a, b] for a, b in combinations(names, 2)], epsilon=10**6)
    assert len(plan._query.words) == 2
    released = table.marginals(plan)
    for a, b in (("c0", "c1"), ("c3", "c29"), ("c28", "c29")):
        exact = np.zeros((11, 11))
        np.add.at(exact, (frame[a], frame[b]), 1)
        assert np.array_equal(np.rint(released.table([a, b]).cells), exact)


def test_the_account_is_charged_before_a_row_is_read(monkeypatch):
    table = opened(limit=1)
    from discreet.data import execute

    def fail(*_, **__):
        raise RuntimeError("reading")

    monkeypatch.setattr(execute, "collect_values", fail)
    with pytest.raises(RuntimeError):
        table.marginals([["sex"]], epsilon=0.6)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded):
        table.marginals([["sex"]], epsilon=0.6)
    assert table.marginals([["sex"]], epsilon=0.4).receipt.sequence


def test_a_plan_is_what_is_released():
    table = opened()
    plan = table.plan_marginals([["sex", "site"]], rho=0.2)
    released = table.marginals(plan, label="mine")
    assert released.guarantee == plan.guarantee == released.receipt.guarantee
    assert released.title == "mine" == released.receipt.label
    assert plan.std(["sex"]) == pytest.approx(float(np.mean(released.table(["sex"]).std)))
    low, high = released.table(["sex"]).interval()
    assert float((high - low).max() / 2) == pytest.approx(plan.width(["sex"]), rel=1e-6)
    with pytest.raises(InvalidArgument, match="is a plan"):
        table.marginals(plan, epsilon=1)
    for other in (opened(rows=3), opened(relation=REPLACE)):
        if other.spec.relation is REPLACE:
            with pytest.raises(InvalidArgument, match="own setting"):
                other.marginals(plan)


def test_the_order_of_names_does_not_matter():
    released = opened().marginals([["sex", "site"]], rho=1)
    assert np.array_equal(
        released.table(["sex", "site"]).cells, released.table(["site", "sex"]).cells
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"by": 0}, "by must be"),
        ({"by": True}, "by must be"),
        ({"by": []}, "one table or more"),
        ({"by": "sex"}, "how many columns"),
        ({"by": [["sex", "sex"]]}, "twice"),
        ({"by": [["nobody"]]}, "nobody"),
        ({"by": [["sex"]], "columns": ["site"]}, "sex"),
        ({"by": 1, "ranges": {"ill": "all"}}, "boolean"),
        ({"by": 1, "ranges": {"age": "some"}}, "'all'"),
        ({"by": [["sex"]], "ranges": {"age": "all"}}, "ranges"),
        ({"by": [["sex"]], "weights": {("site",): 2}}, "weights"),
        ({"by": [["sex"]], "weights": {("sex",): 0}}, "weights"),
        ({"by": [["sex"]], "weights": [1]}, "weights"),
        ({"by": [["sex"]], "objective": "best"}, "objective"),
        ({"by": [["sex"]], "where": "sex"}, "where"),
        ({"by": [["sex"]], "max_rows_per_unit": 0}, "max_rows_per_unit"),
        ({"by": [["sex"]], "epsilon": None}, "Give epsilon"),
        ({"by": [["sex"]], "expected_rows": -1}, "expected_rows"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, words):
    with pytest.raises(InvalidArgument, match=words):
        opened().plan_marginals(**{"epsilon": 1, **arguments})


def test_limits_of_groups_are_no_limit_of_many_tables():
    table = opened(rows=None, max_rows_per_unit_per_group=1, max_groups_per_unit=2)
    with pytest.raises(InvalidArgument, match="limit per group"):
        table.plan_marginals([["sex"]], epsilon=1)
    assert table.marginals([["sex"]], max_rows_per_unit=2, epsilon=1).max_rows_per_unit == 2


def test_a_column_with_too_many_values_is_named_with_the_remedy():
    table = discreet.table(
        pd.DataFrame({"x": [0.5]}),
        columns={"x": discreet.real(0, 1, granularity=2.0**-30)},
        budget=1,
    )
    with pytest.raises(InvalidArgument, match=r"'x'.*cut"):
        table.plan_marginals(1, epsilon=1)


def test_wrong_questions_to_a_release_are_refused():
    released = opened().marginals([["sex", "site"], ["age"]], rho=1)
    with pytest.raises(InvalidArgument, match="planned"):
        released.table(["sex", "age"])
    for wanted in ({"sex": "x"}, {"age": (5, 3)}, {"age": (1, 2, 3)}, {"nobody": 1}, "sex"):
        with pytest.raises(InvalidArgument):
            released.answer(wanted)
    with pytest.raises(InvalidArgument, match="confidence"):
        released.answer_interval({"sex": "f"}, confidence=1)


# ── Coverage ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("amount", list(AMOUNTS.values()), ids=list(AMOUNTS))
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
def test_stated_errors_are_those_of_simulated_releases(amount, relation):
    table = opened(rows=1, relation=relation)
    plan = table.plan_marginals([["site", "sex"], ["ill"]], **amount)
    codes = GENERATOR.integers(0, 2, size=(300, 3))
    sizes = [column.size for column in plan.columns]
    exact = count_tables([codes.T], sizes, [(0, 1), (2,), ()])
    runs = 200
    off, inside, at_once = [], [], []
    for seed in range(runs):
        release = plan.release(codes, rng=seeded_rng(seed))
        for key in ((0, 1), (2,), ()):
            one = release.table([plan.columns[i].name for i in key])
            truth = exact[key].ravel()
            off.append(((one.cells.ravel() - truth) / one.std).ravel())
            low, high = one.interval(0.9)
            inside.append(np.ravel((low <= truth) & (truth <= high)))
        low, high = release.table(["site", "sex"]).interval(0.9, simultaneous=True)
        at_once.append(bool(np.all((low <= exact[0, 1].ravel()) & (exact[0, 1].ravel() <= high))))
    every = np.concatenate(off)
    # 17 answers of a run share noise: at worst they are one draw; five deviations of 200 runs.
    assert np.mean(every**2) == pytest.approx(1, abs=5 * np.sqrt(5 / runs))
    assert abs(np.mean(every)) < 5 / np.sqrt(runs)
    assert np.mean(np.concatenate(inside)) > 0.9 - 5 * np.sqrt(0.09 / runs)
    assert np.mean(at_once) > 0.9 - 5 * np.sqrt(0.09 / runs)


def test_a_release_from_a_seed_says_so_and_no_account_pays_for_it():
    plan = opened().plan_marginals([["sex"]], rho=1)
    made = plan.release([[0], [1]], rng=seeded_rng(1))
    assert not made.private
    assert "not private" in str(made)


def test_hostile_codes_count_somewhere_and_never_raise():
    plan = opened().plan_marginals([["sex"], ["ill"]], epsilon=10**6)
    odd = [[float("nan"), 0], [float("inf"), 1], [-5, 10**30], ["x", None], [1], [0.4, 1.0]]
    found = plan.release(odd)
    assert found.total == pytest.approx(len(odd))
    with pytest.raises(OutOfDomain, match="2 columns"):
        plan.release(np.zeros((3, 5)))


# ── Certificates find what is wrong ──────────────────────────────────────────────────────────────


def plan_of(relation=ADD, rows=2, **amount):
    return opened(rows=rows, relation=relation).plan_marginals(
        [["site", "sex"], ["ill"]], **(amount or {"rho": 0.5})
    )


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("amount", list(AMOUNTS.values()), ids=list(AMOUNTS))
def test_plans_are_certified(relation, amount):
    assert plan_of(relation, **amount).certify().holds


def centered_twice(place, table, columns, *, plain):
    found = measured(place, table, columns, plain=plain)
    for axis, (i, level) in enumerate(place):
        if not plain:
            found = columns[i].contrasts(found, axis, level)
    return found


def noise_shared(self, counted, rng):
    exact = self._exact(counted)
    one = self.mechanisms[-1].release(np.zeros(1, dtype=int), rng=rng)[0]
    return tuple(values + one for values in exact), rng.private


def no_noise_on_the_total(self, counted, rng):
    exact = self._exact(counted)
    noisy = [
        np.asarray(m.release(v, rng=rng)).reshape(v.shape)
        for m, v in zip(self.mechanisms, exact, strict=True)
    ]
    return (exact[0], *noisy[1:]), rng.private


def half_the_noise(self, counted, rng):
    exact = self._exact(counted)
    noisy = [
        v + (np.asarray(m.release(np.zeros_like(v), rng=rng)).reshape(v.shape) // 2)
        for m, v in zip(self.mechanisms, exact, strict=True)
    ]
    return tuple(noisy), rng.private


@pytest.mark.parametrize("broken", [noise_shared, no_noise_on_the_total, half_the_noise])
def test_a_release_with_other_noise_is_not_certified(monkeypatch, broken):
    monkeypatch.setattr(planning.MarginalPlan, "_noisy", broken)
    with pytest.raises(NotCertified):
        plan_of().certify()


@pytest.mark.parametrize(
    ("relation", "wrong"),
    [
        (ADD, lambda real, b, r: real // r),  # R in place of its square
        (ADD, lambda real, b, r: real // max(b, 1)),  # n - 1 for n
        (REPLACE, lambda real, b, r: real // 2),  # as if added
    ],
)
def test_a_smaller_sensitivity_is_not_certified(monkeypatch, relation, wrong):
    real = planning.moved_squared

    def smaller(place, columns, *, rows, relation):
        b = max([columns[i].branching(level) for i, level in place], default=1)
        return max(1, wrong(real(place, columns, rows=rows, relation=relation), b, max(rows, 2)))

    monkeypatch.setattr(planning, "moved_squared", smaller)
    with pytest.raises(NotCertified):
        plan_of(relation).certify()


def test_contrasts_taken_twice_are_not_certified(monkeypatch):
    monkeypatch.setattr(planning, "measured", centered_twice)
    with pytest.raises(NotCertified):
        plan_of().certify()


def test_mechanisms_of_a_plan_are_certified_by_themselves():
    for mechanism in plan_of(epsilon=1, delta=1e-6).mechanisms:
        assert isinstance(mechanism, AdditiveMechanism)
        assert mechanism.certify().holds


# ── Counting ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_counted_tables_are_those_of_histograms(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, 60, size=7).tolist()
    rows = int(generator.integers(0, 3000))
    codes = np.array([generator.integers(0, size, rows) for size in sizes])
    tables = [
        tuple(sorted(generator.choice(7, generator.integers(0, 4), replace=False).tolist()))
        for _ in range(30)
    ]
    found = count_tables([codes[:, : rows // 2], codes[:, rows // 2 :]], sizes, tables)
    for table in tables:
        exact = np.zeros([sizes[i] for i in table], dtype=int)
        if table:
            np.add.at(exact, tuple(codes[list(table)]), 1)
        else:
            exact += rows
        assert np.array_equal(found[table], exact), table


def test_a_design_says_what_it_answers():
    plan = plan_of()
    assert isinstance(plan._design, MarginalDesign)
    assert {len(table) for table in plan._design.answered} == {0, 1, 2}


def test_a_row_with_a_missing_number_is_in_no_table():
    # Were it left out of tables of that column alone, tables would not agree.
    rows = pd.DataFrame({"age": [20.0, None, 50.0, 70.0] * 250, "s": ["a", "a", "b", None] * 250})
    table = discreet.table(
        rows,
        columns={"age": discreet.integer(0, 120), "s": discreet.category(["a", "b"])},
        budget=discreet.approx_dp(1000, 1e-6),
    )
    release = table.marginals(
        [["age", "s"]], columns={"age": col("age").cut([30, 60]), "s": "s"}, epsilon=100
    )
    assert release.total == pytest.approx(750)
    crossed = release.table(["age", "s"]).cells
    assert np.abs(crossed.sum(axis=0) - release.table(["s"]).cells).max() < 1e-6
    assert release.table(["s"]).cells.sum() == pytest.approx(750)
