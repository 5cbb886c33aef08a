"""Published tables: what is read, and bounds that equal the exhaustive enumeration."""

import itertools
import json
import stat

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import sparse

from discreet.cli.main import main
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.disclosure import _cell_bounds, audit_tables, published_table
from discreet.disclosure._cell_bounds import CAP, CellSystem, bound_sums
from discreet.report.table_audit_report import as_html

MARGINS = {
    "site": ["a", "b", "Total"],
    "ill": ["x", "x", 7],
    "well": ["x", 20, 60],
    "Total": [43, 24, 67],
}


def crosstab(counts, shown, **given):
    """A table of rows and columns with totals, as it is published."""
    full = np.block(
        [[counts, counts.sum(1, keepdims=True)], [counts.sum(0), counts.sum(keepdims=True)]]
    )
    rows = [f"r{i}" for i in range(len(counts))] + ["Total"]
    columns = {"row": rows}
    for j in range(full.shape[1]):
        name = f"c{j}" if j < counts.shape[1] else "Total"
        columns[name] = [n if s else "x" for n, s in zip(full[:, j], shown[:, j], strict=True)]
    return published_table(columns, across="column", **given), full


def enumerated(rows, low, high, most, limit=60_000):
    """All whole numbers that fit, by trying every one; None if there are too many."""
    found = np.zeros((1, 0), dtype=np.int64)
    for j in range(rows.shape[1]):
        values = np.arange(most[j] + 1)
        if len(found) * len(values) > limit:
            return None
        found = np.hstack(
            [np.repeat(found, len(values), axis=0), np.tile(values, len(found))[:, None]]
        )
        found = found[(found @ rows[:, : j + 1].T <= high).all(axis=1)]
    return found[(found @ rows.T >= low).all(axis=1)]


def as_system(table, shape):
    """The equations of a cross-tabulation, written down independently."""
    rows, low, high = [], [], []
    for cell in table.cells:
        inside = np.zeros(shape, dtype=np.int64)
        at = tuple(slice(None) if one is None else int(one[1:]) for one in cell.labels)
        inside[at] = 1
        rows.append(inside.ravel())
        low.append(cell.low)
        high.append(10**6 if cell.high is None else cell.high)
    return np.array(rows), np.array(low), np.array(high)


def test_bounds_of_200_random_tables_equal_the_enumeration():
    random = np.random.default_rng(2901)
    tables = hidden = 0
    while tables < 200:
        shape = [(2, 2), (2, 3), (3, 3), (3, 4), (2, 6), (4, 3)][tables % 6]
        counts = random.integers(0, 4, shape)
        shown = random.random((shape[0] + 1, shape[1] + 1)) < random.uniform(0.35, 0.9)
        shown[-1, -1] = True
        table, full = crosstab(counts, shown)
        if tables % 3 == 0 and not (full[~shown] >= 12).any():
            table, full = crosstab(counts, shown, below=12)
        rows, low, high = as_system(table, shape)
        most = [high[rows[:, j] == 1].min() for j in range(counts.size)]
        fits = enumerated(rows, low, high, most)
        if fits is None:
            continue
        tables += 1
        sums = fits @ rows.T
        for (_, place), found in audit_tables([table]).cells.items():
            hidden += 1
            assert (found.low, found.high) == (sums[:, place].min(), sums[:, place].max())
            assert found.status in ("exact", "narrow", "tight")
    assert hidden > 500


def test_bounds_of_200_random_systems_equal_the_enumeration():
    random = np.random.default_rng(2902)
    for _ in range(200):
        n, m = random.integers(2, 8), random.integers(1, 6)
        rows = np.vstack([random.random((m, n)) < 0.5, np.ones((1, n))]).astype(np.int64)
        truth = random.integers(0, 3, n)
        low, high = rows @ truth, rows @ truth
        loose = random.random(m) < 0.4
        low[:-1][loose] = np.maximum(low[:-1][loose] - 1, 0)
        high[:-1][loose] += 2
        sums = (random.random((3, n)) < 0.5).astype(np.int64)
        fits = enumerated(rows, low, high, np.full(n, truth.sum()), limit=10**7)
        system = CellSystem(
            sparse.csr_array(rows), low, high, np.zeros(n, np.int64), np.full(n, CAP)
        )
        for one, values in zip(
            bound_sums(system, sparse.csr_array(sums), seconds=60), (fits @ sums.T).T, strict=True
        ):
            assert (one.low, one.high) == (values.min(), values.max())


def larger(random):
    shape = tuple(random.integers(2, 6, 2))
    counts = random.poisson(random.uniform(0.5, 8), shape)
    shown = np.ones((shape[0] + 1, shape[1] + 1), dtype=bool)
    shown[:-1, :-1] = counts >= 3
    shown[:-1, -1] = random.random(shape[0]) < 0.8
    return crosstab(counts, shown)


def check_truth(seed, tables):
    random = np.random.default_rng(seed)
    for _ in range(tables):
        table, full = larger(random)
        for (_, place), found in audit_tables([table]).cells.items():
            at = tuple(-1 if one is None else int(one[1:]) for one in table.cells[place].labels)
            assert found.low <= full[at]
            assert found.high is None or full[at] <= found.high


def test_no_bound_is_false_on_larger_tables():
    check_truth(2903, 60)


@pytest.mark.slow
def test_no_bound_is_false_on_a_thousand_larger_tables():
    check_truth(2904, 1000)


def test_no_bound_is_false_if_the_solver_errs(monkeypatch):
    random = np.random.default_rng(2905)
    solve = _cell_bounds._Part.solve

    def wrong(self, *given):
        how, x, prices = solve(self, *given)
        return how, x + random.normal(0, 0.3, len(x)), prices + random.normal(0, 0.5, len(prices))

    monkeypatch.setattr(_cell_bounds._Part, "solve", wrong)
    check_truth(2906, 10)


def test_the_check_of_bounds_would_notice_a_false_one(monkeypatch):
    end = _cell_bounds._Pool._end

    def wrong(self, *given):
        bound, attained, finished = end(self, *given)
        return bound + 1, attained, finished

    monkeypatch.setattr(_cell_bounds._Pool, "_end", wrong)
    with pytest.raises(AssertionError):
        check_truth(2903, 60)


def test_a_cell_follows_from_its_margins():
    audit = audit_tables([published_table(MARGINS, across="health")])
    assert [(one.cell, one.low, one.high) for one in audit.hidden] == [
        ("a / ill", 3, 3), ("a / well", 40, 40), ("b / ill", 4, 4),
    ]  # fmt: skip
    assert audit.hidden[0].argument == "b / well (20) + total / ill (7) - b / total (24)"
    assert audit.known_exactly == 3
    assert audit.small == 2
    assert audit.finished


def test_people_are_singled_out():
    rows = {"sex": ["f", "m", "Total"], "count": ["x", 12, 13]}
    audit = audit_tables([published_table(rows)])
    assert (audit.singled_out, audit.known_exactly) == (1, 1)
    assert "exactly one person" in as_html(audit, title="<t>")
    assert "<t>" not in as_html(audit, title="<t>")


def test_overlapping_populations_are_subtracted():
    everybody = published_table({"age": ["young", "old"], "count": [30, 41]}, name="everybody")
    women = published_table(
        {"age": ["young", "old"], "count": [29, 20]}, name="women", population={"sex": "f"}
    )
    audit = audit_tables([everybody, women])
    assert not audit.hidden
    assert [(one.low, one.high, one.argument) for one in audit.differences] == [(1, 1, "30 - 29")]
    assert audit.differences[0].cell == "young without young (sex f)"
    assert audit.singled_out == 1
    assert not audit_tables([everybody]).differences


def test_other_labels_of_the_same_column_are_linked():
    fine = published_table(
        {"age": ["20-24", "25-29", "30-34"], "count": [10, "x", 12]}, name="fine"
    )
    coarse = published_table({"age": ["20-29", "30-34"], "count": [12, 12]}, name="coarse")
    bands = {"age": {"20-29": ["20-24", "25-29"]}}
    audit = audit_tables([fine, coarse], hierarchies=bands)
    assert (audit.hidden[0].low, audit.hidden[0].high) == (2, 2)
    assert audit_tables([fine]).hidden[0].high is None
    cut = published_table({"age": ["20-29"], "count": [12]}, name="cut")
    shifted = published_table({"age": ["20-24"], "count": [11]}, name="shifted")
    found = audit_tables([cut, shifted], hierarchies=bands).differences
    assert [(one.low, one.high) for one in found] == [(1, 1)]


def test_open_columns_have_other_labels():
    all_of_them = published_table(
        {"count": ["40"], "where": ["Total"]}, columns=["where"], name="t"
    )
    towns = published_table({"where": ["a", "b"], "count": [10, "x"]}, name="towns")
    assert audit_tables([all_of_them, towns]).hidden[0].low == 30
    assert audit_tables([all_of_them, towns], open_columns=["where"]).hidden[0].low == 0


@pytest.mark.parametrize(
    ("text", "given", "ends"),
    [
        ("1,234", {}, (1234, 1234)),
        ("7.0", {}, (7, 7)),
        (12, {}, (12, 12)),
        ("x", {}, (0, None)),
        ("X", {"below": 10}, (0, 9)),
        ("*", {"below": 10, "zeros_published": True}, (1, 9)),
        (None, {}, (0, None)),
        ("<5", {}, (0, 4)),
        ("<=5", {"zeros_published": True}, (1, 5)),
        ("5-9", {}, (5, 9)),
        ("5–9", {}, (5, 9)),
        ("[5, 9]", {}, (5, 9)),
        ("10+", {}, (10, None)),
        (">10", {}, (11, None)),
        ("≥10", {}, (10, None)),
        ("15", {"rounded": 5}, (13, 17)),
        ("15", {"rounded": 3, "rounding": "random"}, (13, 17)),
        ("0", {"rounded": 5}, (0, 2)),
        ("20", {"rounded": 10}, (15, 25)),
    ],
)
def test_cells_are_read_as_they_are_printed(text, given, ends):
    table = published_table({"a": ["one"], "count": [text]}, **given)
    assert (table.cells[0].low, table.cells[0].high) == ends


def test_rounding_hides_what_suppression_does_not():
    rows = {"a": ["u", "v", "Total"], "count": [5, 10, 15]}
    audit = audit_tables([published_table(rows, rounded=5)])
    assert [(one.low, one.high) for one in audit.hidden] == [(3, 7), (8, 12), (13, 17)]
    assert audit.known_exactly == 0


def test_frames_and_files_are_read_alike(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffsite,ill,well,Total\na,x,x,43\nb,x,20,24\nTotal,7,60,"67"\n', "utf-8")
    read = [
        published_table(path, across="health"),
        published_table(str(path), across="health", columns=["site"]),
        published_table(pl.read_csv(path, infer_schema=False), across="health", name="t"),
        published_table(pd.DataFrame(MARGINS), across="health", name="t"),
        published_table(MARGINS, across="health", name="t"),
    ]
    assert all(one.cells == read[0].cells for one in read)
    missing = pd.DataFrame({"a": ["u", "v"], "count": [3.0, float("nan")]})
    assert [one.low for one in published_table(missing).cells] == [3, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: published_table({"a": ["u"], "count": ["many"]}), "holds 'many'"),
        (lambda: published_table({"a": ["u"], "count": [-3]}), "holds '-3'"),
        (lambda: published_table({"a": ["u"], "count": [2.5]}), "holds '2.5'"),
        (lambda: published_table({"a": ["u"], "count": ["9-5"]}), "no count can be"),
        (lambda: published_table({"a": ["u"], "count": [10**11]}), "no count can be"),
        (lambda: published_table({"a": ["u", "u"], "count": [1, 2]}), "stands twice"),
        (lambda: published_table({"a": ["u"], "count": [7]}, rounded=5), "no multiple of 5"),
        (lambda: published_table({"a": ["u"], "count": [7]}, columns=["b"]), "columns names"),
        (lambda: published_table(MARGINS, columns=["site"]), "name what runs across"),
        (lambda: published_table(MARGINS, across="site"), "across must be a new name"),
        (lambda: published_table({"a": ["u"], "b": [1, 2]}), "columns of one length"),
        (lambda: published_table("no such file.csv"), "is no file"),
        (lambda: published_table([1]), "must be a CSV file"),
        (
            lambda: published_table({"a": ["u"], "n": [1]}, population={"a": "u"}),
            "population names",
        ),
        (lambda: audit_tables([]), "tables must be a list"),
        (lambda: audit_tables([MARGINS]), "tables must be a list"),
    ],
)
def test_what_cannot_be_read_is_named(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_contradictions_name_their_tables():
    one = published_table({"a": ["u", "v", "Total"], "count": [3, 4, 8]}, name="one")
    with pytest.raises(InvalidArgument, match="no counts of people fit one.*Total|one: total = 8"):
        audit_tables([one])
    half = published_table(
        {"pair": ["p", "q", "r", "a"], "count": [1, 1, 1, "x"]},
        name="half",
    )
    bands = {"pair": {"p": ["a", "b"], "q": ["b", "c"], "r": ["a", "c"]}}
    with pytest.raises(InvalidArgument, match="contradict"):
        audit_tables([half], hierarchies=bands)  # halves of people would fit


def test_sizes_are_refused_in_words():
    tables = [
        published_table({f"c{i}": list(map(str, range(60))), "n": [1] * 60}, name=f"t{i}")
        for i in range(3)
    ]
    with pytest.raises(Unsupported, match="216,000 unknown counts.*c0: 60.*merge labels"):
        audit_tables(tables)


def test_time_that_runs_out_is_stated():
    random = np.random.default_rng(2907)
    counts = random.poisson(3, (6, 6))
    shown = np.ones((7, 7), dtype=bool)
    shown[:-1, :-1] = random.random((6, 6)) < 0.4
    table, full = crosstab(counts, shown)
    audit = audit_tables([table], seconds=1e-9)
    assert not audit.finished
    assert {one.status for one in audit.hidden} & {"not finished"}
    assert "not finished" in str(audit)
    assert audit_tables([table]).finished
    for (_, place), found in audit.cells.items():
        at = tuple(-1 if one is None else int(one[1:]) for one in table.cells[place].labels)
        assert found.low <= full[at] <= found.high


def test_a_hierarchy_that_holds_itself_is_refused():
    table = published_table({"a": ["u", "v"], "count": [1, 2]})
    with pytest.raises(InvalidArgument, match="inside itself"):
        audit_tables([table], hierarchies={"a": {"u": ["w"], "w": ["u"]}})
    with pytest.raises(InvalidArgument, match="no table has"):
        audit_tables([table], open_columns=["b"])


def test_the_picture_has_each_table_with_hidden_cells():
    audit = audit_tables([published_table(MARGINS, across="health", name="clinic")])
    figure = audit.plot()
    assert "clinic: what is known about hidden cells" in figure.svg
    assert ">40<" in figure.svg
    nothing = audit_tables([published_table({"a": ["u", "v"], "count": [1, 2]})])
    assert nothing.plot().svg.startswith("<svg")
    assert nothing.advice()[0].startswith("These tables show every count")


def test_noise_of_a_private_release_is_that_of_discrete_laplace():
    audit = audit_tables([published_table(MARGINS, across="health")] * 1)
    k = np.arange(-200, 201)
    mass = np.exp(-np.abs(k) * 0.5)
    assert audit.noise_std(0.5) == pytest.approx(np.sqrt((mass * k**2).sum() / mass.sum()))


# ── Command line ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def files(tmp_path):
    everybody, women = tmp_path / "everybody.csv", tmp_path / "women.csv"
    everybody.write_text("age,count\nyoung,30\nold,x\nTotal,71\n")
    women.write_text("age,count\nyoung,29\nold,20\nTotal,49\n")
    return everybody, women


def test_the_command_reports_and_writes_a_page_for_its_owner(files, tmp_path):
    page = tmp_path / "audit.html"
    asked = ["audit", "tables", *map(str, files), "--population", "women:sex=f"]
    result = CliRunner().invoke(main, [*asked, "--html", str(page)])
    assert result.exit_code == 1
    assert "1 of 1 hidden cells can be computed exactly" in result.output
    assert "young without young (sex f): 1" in result.output
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "<svg" in page.read_text()
    again = CliRunner().invoke(main, [*asked, "--html", str(page)])
    assert again.exit_code == 2
    assert "exists" in again.output


def test_the_command_speaks_json(files):
    result = CliRunner().invoke(main, ["audit", "tables", str(files[0]), "--json"])
    found = json.loads(result.stdout)
    assert (found["known_exactly"], found["findings"][0]["low"]) == (1, 41)


def test_the_command_reads_cross_tabulations_and_hierarchies(tmp_path):
    clinic, ages = tmp_path / "clinic.csv", tmp_path / "ages.csv"
    clinic.write_text("site,ill,well\na,<5,44\nb,7,9\n")
    ages.write_text("site,count\nboth,63\n")
    bands = tmp_path / "bands.json"
    bands.write_text('{"site": {"both": ["a", "b"]}}')
    asked = [*map(str, (clinic, ages)), "--across", "health", "--hierarchies", str(bands)]
    result = CliRunner().invoke(main, ["audit", "tables", *asked, "--columns", "site", "--json"])
    assert json.loads(result.stdout)["findings"][0]["low"] == 3


def test_a_table_that_reveals_nothing_is_no_failure(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text("a,count\nu,x\nv,x\nTotal,60\n")
    result = CliRunner().invoke(main, ["audit", "tables", str(path)])
    assert result.exit_code == 0
    assert "0 of 2 hidden cells" in result.output


@pytest.mark.parametrize("wrong", [["--population", "nothing"], ["--hierarchies", "FILE"]])
def test_what_is_wrong_on_the_command_line_is_named(files, wrong):
    given = [str(files[0]) if one == "FILE" else one for one in wrong]
    result = CliRunner().invoke(main, ["audit", "tables", str(files[0]), *given])
    assert result.exit_code == 2
    assert wrong[0] in result.output


def test_mechanisms_are_still_audited_by_name():
    alone = CliRunner().invoke(main, ["audit", "--list", "laplace"]).output
    named = CliRunner().invoke(main, ["audit", "mechanisms", "--list", "laplace"]).output
    assert alone == named
    assert "laplace" in alone.lower()
    assert "tables" in CliRunner().invoke(main, ["audit", "--help"]).output


def test_labels_with_commas_and_signs_are_kept(tmp_path):
    path = tmp_path / "signs.csv"
    path.write_text('"where, when",count\n"[red] a, b",x\nTotal,9\n')
    result = CliRunner().invoke(main, ["audit", "tables", str(path)])
    assert "[red] a, b" in result.output


def test_every_product_of_labels_is_counted_once():
    labels = list(itertools.product("ab", "cd"))
    rows = {"x": [a for a, _ in labels], "y": [b for _, b in labels], "count": ["x"] * 4}
    audit = audit_tables([published_table(rows, below=3)])
    assert audit.unknowns == 4
    assert {(one.low, one.high) for one in audit.hidden} == {(0, 2)}
