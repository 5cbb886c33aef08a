"""Releases put together: least squares against a dense solve, and what is refused."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet
from discreet import ReconciledRelease, reconcile, seeded_rng
from discreet.accounting.guarantee import pure_dp
from discreet.core.errors import InvalidArgument
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import support
from discreet.marginals.reconciled import OneTable, put_together
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from tests.marginals.test_release import REPLACE, opened

SIZES = (2, 3, 4)


def column(i, labels=None):
    return MarginalColumn(
        name="abc"[i], labels=tuple(labels or range(SIZES[i])), chain=(1, SIZES[i])
    )


def one(key, noise, values=None):
    shape = [SIZES[i] for i in key]
    cells = np.zeros(shape, dtype=np.int64) if values is None else values
    return OneTable(columns=tuple(column(i) for i in key), values=cells, noise=noise)


def together(tables, **more):
    return put_together(tables, [], guarantee=pure_dp(1), titles=["t"], assumed=[], **more)


def gaussian(square):
    return DiscreteGaussian(square=Fraction(square))


def dense(release):
    """The matrix of what was measured, over all combinations of the columns, and the variances."""
    sizes = [column.size for column in release.columns]
    every = list(product(*map(range, sizes)))
    lines, noise, values = [], [], []
    for place, law, group in zip(
        release.design.places, release.design.laws, release.measured, strict=True
    ):
        key = support(place)
        shape = [sizes[i] for i in key]
        cells = np.array(
            [
                [float(all(c[i] == k for i, k in zip(key, cell, strict=True))) for c in every]
                for cell in product(*map(range, shape))
            ]
        )
        for axis, (i, level) in enumerate(place):
            if level:
                contrast = sizes[i] * np.eye(sizes[i]) - 1
                folded = cells.reshape([*shape, len(every)])
                cells = np.moveaxis(np.tensordot(contrast, folded, (1, axis)), 0, axis)
                cells = cells.reshape(-1, len(every))
        lines.append(cells)
        noise += [law.variance] * len(cells)
        values += group.ravel().tolist()
    return np.vstack(lines), np.array(noise), np.array(values, dtype=float), every


def check_dense(release, keys):
    matrix, noise, values, every = dense(release)
    information = matrix.T @ (matrix / noise[:, None])
    inverse = np.linalg.pinv(information, rcond=1e-12)
    fitted = inverse @ (matrix.T @ (values / noise))
    for key in keys:
        names = [release.columns[i].name for i in key]
        table = release.table(names)
        for place, cell in enumerate(product(*[range(release.columns[i].size) for i in key])):
            w = np.array([all(c[i] == k for i, k in zip(key, cell, strict=True)) for c in every])
            std = np.sqrt(w @ inverse @ w)
            assert np.atleast_1d(table.std)[place] == pytest.approx(std, rel=1e-9)
            assert table.values[place] == pytest.approx(w @ fitted, rel=1e-7, abs=1e-6)


def test_published_vectors():
    release = together(
        [one((), gaussian(7)), one((0,), gaussian(2)), one((0, 1), gaussian(3)),
         one((1, 2), gaussian(5))]
    )  # fmt: skip
    for names, variance in {
        "": 2.150171, "a": 1.355724, "ab": 1.919867, "bc": 3.957239, "b": 3.315831, "c": 11.384386,
    }.items():  # fmt: skip
        assert np.atleast_1d(release.table(list(names)).std)[0] ** 2 == pytest.approx(
            variance, rel=1e-5
        )


@pytest.fixture(scope="module")
def counted():
    table = opened(rows=2)
    asked = {(): 1, ("site",): 0.5, ("sex",): 1, ("site", "sex"): 1, ("sex", "ill"): 2}
    counts = [table.count(by=list(by) or None, epsilon=epsilon) for by, epsilon in asked.items()]
    return table, counts


def test_counts_of_a_table_are_the_dense_solution(counted):
    _, counts = counted
    release = reconcile(counts)
    numbers = range(len(release.columns))
    check_dense(release, [(), *[(i,) for i in numbers], *release.design.tables])


def test_many_tables_and_counts_are_the_dense_solution(counted):
    table, counts = counted
    many = table.marginals([["sex", "site"], ["ill"]], rho=0.02)
    plain = table.marginals([["ill", "site"]], epsilon=0.3)
    release = reconcile([*counts, many, plain, table.marginals([["site", "sex"]], rho=0.1)])
    check_dense(release, [(), (0,), *release.design.tables])
    single = many.table(["sex", "site"])
    assert (release.table(["sex", "site"]).std < single.std).all()


def test_tables_agree_and_no_error_is_larger(counted):
    _, counts = counted
    release = reconcile(counts)
    for count in counts:
        table = release.table(count.key_columns)
        assert (np.atleast_1d(table.std) < np.atleast_1d(count.std)).all()
        low, high = (np.atleast_1d(end) for end in table.interval())
        before, after = (np.atleast_1d(end) for end in count.interval())
        assert (high - low < after - before + 1e-9).all()
    crossed = release.table(["site", "sex"]).cells
    assert np.abs(crossed.sum(axis=1) - release.table(["site"]).cells).max() < 1e-6
    assert abs(crossed.sum() - release.total) < 1e-6


@pytest.mark.parametrize("mixed", [False, True])
def test_intervals_hold_and_are_close(mixed):
    laws = [
        DiscreteLaplace(Fraction(6)),
        gaussian(30) if mixed else DiscreteLaplace(Fraction(9)),
        DiscreteLaplace(Fraction(4)),
    ]
    keys = [(), (0,), (0, 1)]
    rng, missed, errors = seeded_rng(5), 0, []
    exact = np.full((2, 3), 50)
    made = [np.array(300), np.full(2, 150), exact]
    times = 3000
    for _ in range(times):
        tables = [
            one(key, law, cells + law.sample(cells.size, rng=rng).reshape(cells.shape))
            for key, law, cells in zip(keys, laws, made, strict=True)
        ]  # fmt: skip
        release = together(tables)
        errors.append(release.table(["a", "b"]).cells[0, 1] - 50)
    width = release.design.cell_widths((0, 1), 0.05).ravel()[0]
    missed = np.count_nonzero(np.abs(errors) > width)
    std = release.table(["a", "b"]).std[0]
    # Exact chances: 5% at most; five standard deviations of the count.
    assert missed < 0.05 * times + 5 * np.sqrt(0.05 * 0.95 * times)
    assert missed > 0.02 * times
    assert abs(np.std(errors) / std - 1) < 5 * np.sqrt(1.5 / times)
    assert abs(np.mean(errors)) < 5 * std / np.sqrt(times)


def test_the_guarantee_is_that_of_all_receipts_once(counted):
    _, counts = counted
    release = reconcile(counts)
    assert release.guarantee.epsilon() == pytest.approx(5.5)
    table = opened(rows=2)
    batch = table.release(
        [discreet.query.count(by="site"), discreet.query.count(by="sex")], epsilon=1
    )
    listed = list(batch.values()) if isinstance(batch, dict) else list(batch)
    assert reconcile(listed).guarantee.epsilon() == pytest.approx(1)


def test_public_tables_are_met_and_named(counted):
    _, counts = counted
    release = reconcile(counts, public_tables={("sex",): {"f": 480, "m": 520}, (): 1000})
    assert release.total == pytest.approx(1000, abs=1e-6)
    assert release.table(["sex"]).cells.tolist() == pytest.approx([480, 520])
    assert release.table(["sex"]).std == pytest.approx([0, 0], abs=1e-6)
    crossed = release.table(["site", "sex"])
    assert crossed.cells.sum(axis=0).tolist() == pytest.approx([480, 520])
    assert (crossed.std < reconcile(counts).table(["site", "sex"]).std).all()
    assert "not protected, taken as public: sex" in str(release)
    assert "neighbors that agree in these numbers" in str(release)
    low, high = release.table(["sex"]).interval()
    assert high[0] - low[0] < 1e-6


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ({("sex",): {"f": 480, "m": 520}, (): 999}, "contradict each other.* 1,000 .* 999"),
        ({("sex",): {"f": 480}}, "a count for each value"),
        ({("sex",): {"f": -1, "m": 3}}, "public_tables must be"),
        ({("sex",): {"f": 0.5, "m": 3}}, "public_tables must be"),
        ({("sex",): {"x": 1}}, "'x' is not a value"),
        ({("none",): {"x": 1}}, "columns of releases"),
        ({("sex",): 5}, "a count for each value"),
        (["sex"], "must map columns"),
    ],
)
def test_public_tables_that_cannot_be_are_refused(counted, public, words):
    with pytest.raises(InvalidArgument, match=words):
        reconcile(counted[1], public_tables=public)


def test_other_rows_and_shared_noise_are_refused(counted):
    table, counts = counted
    with pytest.raises(InvalidArgument, match="is given twice"):
        reconcile([counts[1], counts[1]])
    older = table.count(by="sex", where=discreet.col("age") >= 60, epsilon=1)
    with pytest.raises(InvalidArgument, match="differ in the condition where"):
        reconcile([counts[0], older])
    with pytest.raises(InvalidArgument, match="privacy unit and limits"):
        reconcile([counts[0], opened(rows=3).count(epsilon=1)])
    with pytest.raises(InvalidArgument, match="privacy unit and limits|neighboring relation"):
        reconcile([counts[0], opened(rows=2, relation=REPLACE).count(epsilon=1)])
    with pytest.raises(InvalidArgument, match="two or more"):
        reconcile(counts[:1])
    with pytest.raises(InvalidArgument, match="is none"):
        reconcile([counts[0], counts[1].map(lambda value: value)])
    with pytest.raises(InvalidArgument, match="is none"):
        reconcile([counts[0], table.sum("age", epsilon=1)])
    with pytest.raises(InvalidArgument, match="got int"):
        reconcile([counts[0], 3])
    some = table.count(by="site", keys=discreet.keys(["a", "b"]), epsilon=1)
    with pytest.raises(InvalidArgument, match="same values of column 'site'"):
        reconcile([counts[1], some])
    ranges = table.marginals([["age"]], ranges={"age": "all"}, rho=0.1)
    with pytest.raises(InvalidArgument, match="ranges="):
        reconcile([counts[0], ranges])


def test_what_cannot_be_known_is_said(counted):
    text = str(reconcile(counted[1]))
    assert "assumed: the data did not change" in text
    assert "assumed: no privacy unit has more" in text


def test_results_are_stored_printed_and_made_into_rows(counted):
    release = reconcile(counted[1], public_tables={(): 1000})
    again = ReconciledRelease.from_json(release.to_json())
    assert again.rows() == release.rows()
    assert again.public == release.public
    assert str(again) == str(release)
    assert release.nonnegative().table(["site", "sex"]).cells.min() >= 0
    assert len(release.synthesize(seed=1)) == 1000


def test_columns_in_another_order_are_the_same_tables():
    table = opened(rows=2)
    one_way = table.marginals([["site", "sex"]], rho=1)
    other = table.marginals([["sex", "site"], ["ill"]], rho=1)
    assert [c.name for c in one_way.columns] != [c.name for c in other.columns][:2]
    release = reconcile([one_way, other])
    names = ["site", "sex"]
    mean = (one_way.table(names)["a", "f"] + other.table(names)["f", "a"]) / 2
    assert abs(release.table(names)["a", "f"] - mean) < 15
    check_dense(release, release.design.tables)
