"""The harness finds what was once wrong: each fault is put back, and its door must report it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.values import as_double
from discreet.cli import release
from discreet.core import events
from discreet.core.errors import OutOfDomain
from discreet.data import _text_parsing, csv_records, source
from discreet.data._duckdb import encode as sql
from discreet.data._numpy import encode as frames
from discreet.disclosure import _safe_k_anonymity, generalization_hierarchy
from discreet.ledger import _integrity, _sqlite
from discreet.mechanisms import additive, quantiles
from discreet.mechanisms.data_dependent import _smooth_statistics, sample_and_aggregate
from discreet.mechanisms.personalized import sampling
from discreet.models import _model_inputs
from discreet.models.blackbox import mechanism as black_box
from discreet.models.dp_sgd import estimators
from discreet.models.pate import classifier
from discreet.models.regression import _row_sources
from discreet.ranges.stream import file as stream_file
from discreet.server import table_registry
from discreet.server.config import TableConfig
from tests.hostile.harness import Tried, try_session
from tests.hostile.registry import DOORS

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    """What was wrong, where it shows, and how to put it back."""

    name: str
    door: str
    patch: Patch
    seed: int = 1
    """A session that shows it; later ones are tried, too, should the doors have changed."""
    sessions: int = 60
    slow: bool = False


def _setting(owner: object, name: str, made: Any) -> Patch:
    return lambda patched: patched.setattr(owner, name, made)


# ── Faults, as they were ─────────────────────────────────────────────────────────────────────────


def _nan_by_statistics(patched: pytest.MonkeyPatch) -> None:
    """DuckDB's optimizer took isnan for false from the statistics of a file."""
    right = sql._raw

    def raw(kind: Any, column: str) -> str:
        return f"CAST({column} AS DOUBLE)" if kind == "float" else right(kind, column)

    patched.setattr(sql, "_raw", raw)


def _split_at_a_mark(values: Any) -> str:
    """Names of units in one text, split at a character that none of them has, if there is one."""
    used = set().union(*values) if values else set()
    mark = next((code for code in range(1, 128) if chr(code) not in used), None)
    if not values or mark is None:
        return "CAST([] AS VARCHAR[])"
    digits = ",".join(value.encode(errors="surrogatepass").hex() for value in values)
    return f"string_split('{digits}', ',')"


def _strict_numbers(spelling: Any) -> Callable[[str], str]:
    """A declared number read by Python, which refuses what is none."""

    def respelled(text: str) -> str:
        plain = text.replace(spelling.thousands or " ", "").replace(spelling.decimal, ".")
        return repr(float(plain)) if plain not in ("", "NA") else ""

    return respelled


@contextlib.contextmanager
def _shared(_: int) -> Iterator[None]:
    """Calls of an estimator that have no warnings, but all the same generator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _owners_by_numpy(values: Any) -> Any:
    names, found = np.unique(np.asarray(values), return_inverse=True)
    return found.astype(np.int64), len(names)


def _aggregate_by_numpy(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(sample_and_aggregate, "_records", np.asarray)
    patched.setattr(sample_and_aggregate, "number_owners", _owners_by_numpy)
    patched.setattr(sample_and_aggregate, "check_owner_type", lambda *_: None)


def _lattice_of_the_value(patched: pytest.MonkeyPatch) -> None:
    right = additive.AdditiveMechanism.release

    def release(self: Any, value: Any, *, rng: Any = None) -> Any:
        found = right(self, value, rng=rng)
        return float(found) if isinstance(value, float | Fraction | np.floating) else found

    patched.setattr(additive.AdditiveMechanism, "release", release)


def _refused_beyond_the_grid(patched: pytest.MonkeyPatch) -> None:
    """A real number was released up to a bound of the grid, and refused above it."""
    right = additive.AdditiveMechanism.release

    def release(self: Any, value: Any, *, rng: Any = None) -> Any:
        if self.domain == "reals" and np.ndim(value) == 0 and abs(as_double(value)) > 2.0**41:
            raise OutOfDomain("value must be at most 2**41.")
        return right(self, value, rng=rng)

    patched.setattr(additive.AdditiveMechanism, "release", release)


def _read_as_a_whole(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise OutOfDomain("value must be finite: replace NaN and infinity by a declared value.")
    return array.astype(np.float64)


def _group_forgotten(patched: pytest.MonkeyPatch) -> None:
    def for_group(self: Guarantee, size: int) -> Guarantee:
        return Guarantee(events.GroupEvent(size, self.event), self.relation)

    patched.setattr(Guarantee, "for_group", for_group)


def _limit_not_checked(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(_integrity, "check_accounts", lambda *_, **__: None)
    patched.setattr(_integrity, "check_account", lambda *_, **__: None)


def _relative_path(patched: pytest.MonkeyPatch) -> None:
    """Since then two more checks stand behind it: of the file, and of what was seen before."""
    patched.setattr(_sqlite.Path, "absolute", lambda path: path)
    patched.setattr(_sqlite, "_check_same", lambda *_: None)
    _limit_not_checked(patched)


def _object_as_text(patched: pytest.MonkeyPatch) -> None:
    """Each object by its str, which is not how a column of its own type is read."""
    for module in (frames, _text_parsing):
        patched.setattr(module, "as_text", lambda v: "" if pd.isna(v) else str(v))


def _teachers_of_one_type(patched: pytest.MonkeyPatch) -> None:
    def features(self: Any, x: Any) -> Any:
        array = np.asarray(x)
        return array, np.ones(len(array), dtype=bool)

    patched.setattr(classifier.PATEClassifier, "_features", features)


def _teachers_share_a_generator(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(classifier, "alone", _shared)
    patched.setattr(classifier, "_unset_seeds", lambda _: [])


def _labels_by_numpy(y: Any, classes: Any) -> Any:
    given, found = np.asarray(list(y)), np.full(len(y), np.nan)
    for place, label in enumerate(classes):
        found[given == label] = place
    return found


def _labels_of_a_series(patched: pytest.MonkeyPatch) -> None:
    """Since then doubles are refused for such classes, too."""
    patched.setattr(_model_inputs, "_is_nullable_whole", lambda _: False)
    patched.setattr(estimators, "check_label_type", lambda *_: None)


def _places_by_numpy(values: Any, names: Any) -> Any:
    chosen = np.asarray(values).astype(str)
    if not set(chosen.tolist()) <= set(names):
        raise OutOfDomain("privacy_levels must be among the listed ones.")
    return np.array([list(names).index(one) for one in chosen.tolist()], dtype=np.int64)


def _units_as_text(values: Any) -> Any:
    names, found = np.unique(np.array([f"{value}" for value in values]), return_inverse=True)
    return found.astype(np.int64), len(names)


def _units_of_a_stream(units: Any) -> Any:
    names, places = np.unique(np.asarray(units), return_inverse=True)
    return names.tolist(), places


def _header_as_text(path: Path) -> Any:
    with path.open(encoding="utf-8", newline="") as file:
        line = file.readline().encode()
    text = line.rstrip(b"\r\n")
    return csv_records.CsvHeader(line=text, end=line[len(text) :])


def _rows_counted(patched: pytest.MonkeyPatch) -> None:
    """A table that was shown with as many rows as it has."""
    right = table_registry.table_info

    def table_info(config: TableConfig, **more: Any) -> Any:
        return replace(right(config, **more), rows=Path(config.source).read_bytes().count(b"\n"))

    patched.setattr(table_registry, "table_info", table_info)


def _rows_told(patched: pytest.MonkeyPatch) -> None:
    """A release that said of how many rows it is."""
    right = release.account_text

    def account_text(account: Any) -> str:
        (folder,) = Path(account._store._path).parent.glob("people.csv")
        return f"{right(account)}, {len(folder.read_bytes().splitlines())} rows"

    patched.setattr(release, "account_text", account_text)


def _label_by_type(value: object) -> str:
    found = str(value)
    return "" if "\udfff" in found or "\ud800" in found else found


def _black_box_as_a_whole(self: Any, private: Any) -> Any:
    return np.asarray(private, dtype=np.float64).reshape(self.positions, self.attributes)


FAULTS = [
    Fault("NaN in Parquet", "parquet of pyarrow", _nan_by_statistics, seed=19),
    Fault("NaN in Parquet of Polars", "parquet of polars", _nan_by_statistics, seed=15, slow=True),
    Fault(
        "NaN in a relation of a file",
        "duckdb relation of a file",
        _nan_by_statistics,
        sessions=30,
        seed=3,
        slow=True,
    ),
    Fault(
        "names split at a mark", "join by unit", _setting(sql, "_texts", _split_at_a_mark), seed=6
    ),
    Fault("owners and rows by NumPy", "sample and aggregate", _aggregate_by_numpy),
    Fault(
        "groups share a generator",
        "sample and aggregate",
        _setting(sample_and_aggregate, "alone", _shared),
        seed=119,
    ),
    Fault(
        "sums that wrap",
        "wide columns",
        _setting(_smooth_statistics, "exact_sum", lambda v: int(v.sum())),
    ),
    Fault("lattice of the value", "laplace", _lattice_of_the_value),
    Fault("a range that is enforced", "laplace on reals", _refused_beyond_the_grid),
    Fault("values read as a whole", "quantile", _setting(quantiles, "doubles", _read_as_a_whole)),
    Fault("values of bins", "bin counts", _setting(quantiles, "doubles", _read_as_a_whole)),
    Fault("values of spreads", "variance", _setting(quantiles, "doubles", _read_as_a_whole)),
    Fault("a forgotten group", "groups in a sample", _group_forgotten),
    Fault("a relative path", "ledger files", _relative_path),
    Fault("an edited limit", "ledger files", _limit_not_checked),
    Fault("a deleted file", "ledger files", _setting(_sqlite, "_check_same", lambda *_: None)),
    Fault(
        "ids of a file that pandas wrote",
        "parquet of pandas of NumPy",
        _setting(source, "written_by_pandas", lambda *_: False),
        slow=True,
    ),
    Fault(
        "units of a stream", "stream events", _setting(stream_file, "_numbered", _units_of_a_stream)
    ),
    Fault("raw CSV", "csv", _setting(source, "is_plain", lambda *_: True)),
    Fault(
        "raw CSV under a server",
        "over HTTP",
        _setting(source, "is_plain", lambda *_: True),
        seed=3,
        slow=True,
    ),
    Fault("rows counted for a page", "over HTTP", _rows_counted),
    Fault("rows counted for a message", "command line", _rows_told, seed=5),
    Fault("a header as text", "csv", _setting(source, "read_header", _header_as_text), slow=True),
    Fault(
        "ids that became doubles",
        "pandas of NumPy",
        _setting(source, "check_unit_type", lambda *_: None),
        seed=6,
    ),
    Fault(
        "numbers that became doubles",
        "large numbers",
        _setting(source, "_check_exact", lambda *_: None),
        seed=15,
    ),
    Fault(
        "declared numbers by Python",
        "pandas objects",
        _setting(_text_parsing, "respelled_number", _strict_numbers),
    ),
    Fault("objects as text", "pandas of NumPy", _object_as_text),
    Fault("an object without text", "pandas objects", _object_as_text),
    Fault(
        "units of durations",
        "durations",
        _setting(_model_inputs, "_check_kind", lambda *_, **__: None),
    ),
    Fault("large labels", "large labels", _setting(estimators, "class_places", _labels_by_numpy)),
    Fault("labels of a series", "large labels", _labels_of_a_series),
    Fault("one type for all teachers", "teachers", _teachers_of_one_type),
    Fault("one generator for all teachers", "teachers", _teachers_share_a_generator, seed=15),
    Fault(
        "labels of groups",
        "safe k-anonymity",
        _setting(generalization_hierarchy, "_label", _label_by_type),
    ),
    Fault(
        "large labels of groups",
        "safe k-anonymity",
        _setting(_safe_k_anonymity, "_settled", lambda series: series),
        seed=69,
    ),
    Fault(
        "units of estimators",
        "units of a regression",
        _setting(_row_sources, "number_owners", _units_as_text),
    ),
    Fault(
        "levels by NumPy",
        "personalized sampling",
        _setting(sampling, "level_places", _places_by_numpy),
    ),
    Fault(
        "a black box read as a whole",
        "black box",
        _setting(black_box.InputShape, "read", _black_box_as_a_whole),
    ),
]


def found(fault: Fault, folder: Path) -> Tried:
    """Sessions of a door until it reports something."""
    (door,) = (one for one in DOORS if one.name == fault.door)
    tried = Tried()
    for seed in range(fault.seed, fault.seed + fault.sessions):
        with contextlib.suppress(StopIteration):
            try_session(door, seed, folder, tried=tried)
        if tried.violations:
            break
    return tried


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.slow else [])
        for one in FAULTS
    ],
)
def test_a_fault_that_was_put_back_is_reported(fault, tmp_path, monkeypatch):
    fault.patch(monkeypatch)
    assert found(fault, tmp_path).violations, "the harness is blind to it"
